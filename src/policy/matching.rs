//! Where a policy applies: namespaces, kinds, drivers, operations; and whom it does not bind.
//!
//! The cheap questions come first, so that a policy for another namespace costs one comparison. A question that
//! cannot be answered (labels of a namespace without namespace data) is [`Answer::Unknown`], never "no".
//!
//! Criteria about namespaces do not apply to objects that have none, as in the API server's own admission policies.

use super::glob::Glob;
use crate::admission::{Labels, Operation};
use crate::doc::Value;
use crate::profile::ApiKind;

/// The label that every namespace carries: its own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Whether a policy applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Yes,
    No,
    /// There is no namespace data.
    Unknown,
}

/// `spec.match`.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    namespaces: Option<Vec<Glob>>,
    excluded: Vec<Glob>,
    selector: Vec<Requirement>,
    drivers: Option<Vec<Glob>>,
    operations: Option<Vec<Operation>>,
    kinds: Vec<ApiKind>,
}

#[derive(Clone, Debug)]
struct Requirement {
    key: Box<str>,
    operator: Compare,
    values: Vec<Box<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compare {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Scope {
    /// Reads `spec.match`; `usual` are the kinds that this kind of policy is about.
    pub(super) fn read(value: Value<'_>, usual: &[ApiKind]) -> Scope {
        let given = value.get("resources");
        let is_named = |kind: &ApiKind| given.items().any(|name| name.str() == kind.name());
        let operations = value.get("operations");
        Scope {
            namespaces: globs(value.get("namespaces")),
            excluded: globs(value.get("excludeNamespaces")).unwrap_or_default(),
            selector: requirements(value.get("namespaceSelector")),
            drivers: globs(value.get("drivers")),
            operations: operations.exists().then(|| {
                let named = |name: &str| operations.items().any(|item| ["*", name].contains(&item.str()));
                let all = [("CREATE", Operation::Create), ("UPDATE", Operation::Update)];
                all.into_iter().filter(|(name, _)| named(name)).map(|(_, operation)| operation).collect()
            }),
            kinds: usual.iter().filter(|kind| !given.exists() || is_named(kind)).copied().collect(),
        }
    }

    /// The kinds of objects it is about.
    pub(super) fn is_about(&self, kind: ApiKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Whether it applies to what is done in that namespace; `None` for objects that have none.
    pub(super) fn applies(
        &self,
        operation: Operation,
        namespace: Option<&str>,
        labels: Labels<'_>,
    ) -> Answer {
        if self.operations.as_ref().is_some_and(|operations| !operations.contains(&operation)) {
            return Answer::No;
        }
        let Some(namespace) = namespace else { return Answer::Yes };
        if !any(self.namespaces.as_deref(), namespace)
            || self.excluded.iter().any(|glob| glob.matches(namespace))
        {
            return Answer::No;
        }
        let mut answer = Answer::Yes;
        for requirement in &self.selector {
            match requirement.holds(namespace, labels) {
                Answer::Yes => {}
                Answer::No => return Answer::No,
                Answer::Unknown => answer = Answer::Unknown,
            }
        }
        answer
    }

    /// Whether it is about that driver. What names no driver touches all of them.
    pub(super) fn has_driver(&self, driver: &str) -> bool {
        driver.is_empty() || any(self.drivers.as_deref(), driver)
    }

    /// It is about certain drivers only.
    pub(super) fn names_drivers(&self) -> bool {
        self.drivers.is_some()
    }

    /// It asks for labels beyond the name that every namespace has.
    pub(super) fn needs_labels(&self) -> bool {
        self.selector.iter().any(|requirement| &*requirement.key != NAME_LABEL)
    }

    /// The namespaces as written, for people.
    pub(super) fn namespaces(&self) -> Option<&[Glob]> {
        self.namespaces.as_deref()
    }
}

/// No list matches everything.
fn any(globs: Option<&[Glob]>, text: &str) -> bool {
    globs.is_none_or(|globs| globs.iter().any(|glob| glob.matches(text)))
}

pub(super) fn globs(list: Value<'_>) -> Option<Vec<Glob>> {
    list.exists().then(|| list.items().map(|item| Glob::new(item.str())).collect())
}

fn requirements(selector: Value<'_>) -> Vec<Requirement> {
    let labels = selector.get("matchLabels").members().map(|(key, value)| Requirement {
        key: key.text().into(),
        operator: Compare::In,
        values: vec![value.str().into()],
    });
    let expressions = selector.get("matchExpressions").items().map(|item| Requirement {
        key: item.get("key").str().into(),
        operator: match item.get("operator").str() {
            "In" => Compare::In,
            "NotIn" => Compare::NotIn,
            "Exists" => Compare::Exists,
            _ => Compare::DoesNotExist,
        },
        values: item.get("values").items().map(|value| value.str().into()).collect(),
    });
    labels.chain(expressions).collect()
}

impl Requirement {
    // upstream v1.36 labels.Requirement.Matches
    fn holds(&self, namespace: &str, labels: Labels<'_>) -> Answer {
        let value = match labels {
            _ if &*self.key == NAME_LABEL => Some(namespace),
            Labels::Unknown => return Answer::Unknown,
            Labels::Known(labels) => labels.member(&self.key).map(|(_, value)| value.str()),
        };
        let is_listed = value.is_some_and(|value| self.values.iter().any(|known| &**known == value));
        let holds = match self.operator {
            Compare::In => is_listed,
            Compare::NotIn => !is_listed,
            Compare::Exists => value.is_some(),
            Compare::DoesNotExist => value.is_none(),
        };
        if holds { Answer::Yes } else { Answer::No }
    }
}

/// `spec.exempt`.
#[derive(Clone, Debug, Default)]
pub(super) struct Exempt {
    users: Vec<Glob>,
    groups: Vec<Glob>,
    service_accounts: Vec<Glob>,
}

impl Exempt {
    /// Reads `spec.exempt`.
    pub(super) fn read(value: Value<'_>) -> Exempt {
        Exempt {
            users: globs(value.get("users")).unwrap_or_default(),
            groups: globs(value.get("groups")).unwrap_or_default(),
            service_accounts: globs(value.get("serviceAccounts")).unwrap_or_default(),
        }
    }

    /// True if the user of a request (`userInfo`) is not bound. Nobody is exempt where nobody is known.
    pub(super) fn has(&self, user: Value<'_>) -> bool {
        let name = user.get("username").str();
        if name.is_empty() {
            return false;
        }
        self.users.iter().any(|glob| glob.matches(name))
            || user
                .get("groups")
                .items()
                .any(|group| self.groups.iter().any(|glob| glob.matches(group.str())))
            || service_account(name)
                .is_some_and(|account| self.service_accounts.iter().any(|glob| glob.matches(&account)))
    }
}

/// `namespace/name` of a service account's user name.
fn service_account(user: &str) -> Option<String> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    Some(format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::{Answer, Exempt, Labels, Operation, Scope};
    use crate::doc;
    use crate::profile::ApiKind;

    fn applies(scope: &str, namespace: Option<&str>, labels: Option<&str>) -> Answer {
        let scope = doc::parse(scope).unwrap();
        let labels = labels.map(|labels| doc::parse(labels).unwrap());
        let known = labels.as_ref().map_or(Labels::Unknown, |labels| Labels::Known(labels.root()));
        Scope::read(scope.root(), &[ApiKind::ResourceClaim]).applies(Operation::Create, namespace, known)
    }

    #[test]
    fn namespaces_are_globs_with_exceptions() {
        let scope = r#"{"namespaces":["ml-*","lab"],"excludeNamespaces":["ml-infra"]}"#;
        for (namespace, expected) in [("ml-a", Answer::Yes), ("lab", Answer::Yes), ("ml-infra", Answer::No)] {
            assert_eq!(applies(scope, Some(namespace), None), expected, "{namespace}");
        }
        assert_eq!(applies(scope, Some("other"), None), Answer::No);
        assert_eq!(applies(scope, None, None), Answer::Yes, "an object without namespace");
        assert_eq!(applies(r#"{"namespaces":[]}"#, Some("a"), None), Answer::No);
        assert_eq!(applies(r#"{"operations":["UPDATE"]}"#, Some("a"), None), Answer::No);
    }

    #[test]
    fn labels_select_and_a_missing_answer_is_no_no() {
        let scope = r#"{"namespaceSelector":{"matchLabels":{"team":"ml"}}}"#;
        assert_eq!(applies(scope, Some("a"), None), Answer::Unknown);
        assert_eq!(applies(scope, Some("a"), Some("{}")), Answer::No);
        assert_eq!(applies(scope, Some("a"), Some(r#"{"team":"ml"}"#)), Answer::Yes);
        let table = [
            (r#"{"key":"team","operator":"NotIn","values":["ml"]}"#, "{}", Answer::Yes),
            (r#"{"key":"team","operator":"NotIn","values":["ml"]}"#, r#"{"team":"ml"}"#, Answer::No),
            (r#"{"key":"team","operator":"Exists"}"#, r#"{"team":""}"#, Answer::Yes),
            (r#"{"key":"team","operator":"DoesNotExist"}"#, r#"{"team":""}"#, Answer::No),
            (r#"{"key":"kubernetes.io/metadata.name","operator":"In","values":["a"]}"#, "{}", Answer::Yes),
        ];
        for (expression, labels, expected) in table {
            let scope = format!(r#"{{"namespaceSelector":{{"matchExpressions":[{expression}]}}}}"#);
            assert_eq!(applies(&scope, Some("a"), Some(labels)), expected, "{expression} {labels}");
        }
        let elsewhere = r#"{"namespaces":["b"],"namespaceSelector":{"matchLabels":{"team":"ml"}}}"#;
        assert_eq!(applies(elsewhere, Some("a"), None), Answer::No, "decided without labels");
        let named = r#"{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"a"}}}"#;
        assert_eq!(applies(named, Some("a"), None), Answer::Yes, "every namespace has its name");
    }

    #[test]
    fn users_groups_and_service_accounts_are_exempt() {
        let exempt = r#"{"users":["system:admin"],"groups":["gpu-*"],"serviceAccounts":["kube-system/*"]}"#;
        let exempt = doc::parse(exempt).unwrap();
        let exempt = Exempt::read(exempt.root());
        let table = [
            (r#"{"username":"system:admin"}"#, true),
            (r#"{"username":"ann","groups":["dev","gpu-oncall"]}"#, true),
            (r#"{"username":"system:serviceaccount:kube-system:x"}"#, true),
            (r#"{"username":"system:serviceaccount:other:x"}"#, false),
            (r#"{"username":"ann","groups":["dev"]}"#, false),
            (r#"{"groups":["gpu-oncall"]}"#, false),
            ("{}", false),
        ];
        for (user, expected) in table {
            assert_eq!(exempt.has(doc::parse(user).unwrap().root()), expected, "{user}");
        }
    }
}
