//! The scope of a policy: namespaces, kinds, drivers and operations; and the users that it exempts.
//!
//! Cheap criteria come first, so that a policy for another namespace costs one comparison. A criterion that cannot be
//! evaluated (labels of a namespace that are not known) gives [`ScopeMatch::Unknown`], never `No`.
//!
//! Criteria about namespaces do not apply to objects that have none, as in the API server's own admission policies.

mod samples;

use super::glob::Glob;
use crate::admission::{Labels, Operation};
use tollgate_api::labels::{LabelRequirement, read_selector};
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;

/// Maximum length in bytes of a driver's name that is compared with globs; API servers accept 63.
pub(super) const MAX_DRIVER_BYTES: usize = 253;
/// Maximum number of groups of a user that are compared with exemptions.
const MAX_USER_GROUPS: usize = 4_096;

/// The label of every namespace that has its name as value.
const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Result of matching a request against the scope of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScopeMatch {
    Yes,
    No,
    /// The labels of the namespace are not known.
    Unknown,
}

/// The compiled `spec.match` of a policy: which kinds of objects, namespaces and operations it applies to.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyScope {
    /// Patterns of the included namespaces; `None` if all are included.
    pub(super) namespaces: Option<Vec<Glob>>,
    excluded: Vec<Glob>,
    selector: Vec<LabelRequirement<Box<str>>>,
    drivers: Option<Vec<Glob>>,
    operations: Option<Vec<Operation>>,
    /// The kinds of objects that the policy applies to.
    pub(super) kinds: Vec<ApiKind>,
}

impl PolicyScope {
    /// Reads `spec.match`; `supported_kinds` are the kinds that this kind of policy applies to.
    pub(super) fn read(value: Value<'_>, supported_kinds: &[ApiKind]) -> PolicyScope {
        let given = value.get("resources");
        let is_named = |kind: &ApiKind| given.items().any(|name| name.str() == kind.name());
        let operations = value.get("operations");
        PolicyScope {
            namespaces: read_globs(value.get("namespaces")),
            excluded: read_globs(value.get("excludeNamespaces")).unwrap_or_default(),
            selector: read_selector(value.get("namespaceSelector"), Into::into).unwrap_or_default(),
            drivers: read_globs(value.get("drivers")),
            operations: operations.exists().then(|| {
                let named = |name: &str| operations.items().any(|item| ["*", name].contains(&item.str()));
                let all = [("CREATE", Operation::Create), ("UPDATE", Operation::Update)];
                all.into_iter().filter(|(name, _)| named(name)).map(|(_, operation)| operation).collect()
            }),
            kinds: supported_kinds.iter().filter(|kind| !given.exists() || is_named(kind)).copied().collect(),
        }
    }

    /// Reads the valid fields of `spec.match`. Invalid fields do not narrow the scope.
    pub(super) fn read_leniently(
        value: Value<'_>,
        supported_kinds: &[ApiKind],
        is_faulty: &dyn Fn(&str) -> bool,
    ) -> PolicyScope {
        let read = PolicyScope::read(value, supported_kinds);
        let every = PolicyScope { kinds: supported_kinds.to_vec(), ..PolicyScope::default() };
        PolicyScope {
            namespaces: if is_faulty("namespaces") { every.namespaces } else { read.namespaces },
            excluded: if is_faulty("excludeNamespaces") { every.excluded } else { read.excluded },
            selector: if is_faulty("namespaceSelector") { every.selector } else { read.selector },
            drivers: if is_faulty("drivers") { every.drivers } else { read.drivers },
            operations: if is_faulty("operations") { every.operations } else { read.operations },
            kinds: if is_faulty("resources") { every.kinds } else { read.kinds },
        }
    }

    /// True if the policy applies to objects of that kind.
    pub(super) fn includes_kind(&self, kind: ApiKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns whether the policy applies to an operation in a namespace with these labels. `namespace` is `None` for
    /// cluster-scoped objects, to which criteria about namespaces do not apply.
    pub(super) fn match_request(
        &self,
        operation: Operation,
        namespace: Option<&str>,
        labels: Labels<'_>,
    ) -> ScopeMatch {
        if !self.applies_by_name(operation, namespace) {
            return ScopeMatch::No;
        }
        let Some(namespace) = namespace else { return ScopeMatch::Yes };
        let mut answer = ScopeMatch::Yes;
        for requirement in &self.selector {
            match match_label_requirement(requirement, namespace, labels) {
                ScopeMatch::Yes => {}
                ScopeMatch::No => return ScopeMatch::No,
                ScopeMatch::Unknown => answer = ScopeMatch::Unknown,
            }
        }
        answer
    }

    /// True if the operation and the name of the namespace match. `namespaceSelector` is ignored.
    pub(super) fn applies_by_name(&self, operation: Operation, namespace: Option<&str>) -> bool {
        let is_named = |namespace: &str| {
            any_matches(self.namespaces.as_deref(), namespace)
                && !self.excluded.iter().any(|glob| glob.matches(namespace))
        };
        self.operations.as_ref().is_none_or(|operations| operations.contains(&operation))
            && namespace.is_none_or(is_named)
    }

    /// True if the policy applies to this driver. An empty or invalid driver name matches every policy.
    pub(super) fn matches_driver(&self, driver: &str) -> bool {
        driver.is_empty() || driver.len() > MAX_DRIVER_BYTES || any_matches(self.drivers.as_deref(), driver)
    }

    /// True if the policy only applies to certain drivers.
    pub(super) fn limits_drivers(&self) -> bool {
        self.drivers.is_some()
    }

    /// True if the selector depends on labels other than the name label.
    pub(super) fn needs_namespace_labels(&self) -> bool {
        self.selector.iter().any(|requirement| &*requirement.key != NAMESPACE_NAME_LABEL)
    }
}

/// True if one of the globs matches the text, or if there is no list.
fn any_matches(globs: Option<&[Glob]>, text: &str) -> bool {
    globs.is_none_or(|globs| globs.iter().any(|glob| glob.matches(text)))
}

/// Reads a list of globs; `None` if it does not exist.
pub(super) fn read_globs(list: Value<'_>) -> Option<Vec<Glob>> {
    list.exists().then(|| list.items().map(|item| Glob::new(item.str())).collect())
}

/// Returns whether a namespace meets one requirement of `namespaceSelector`; unknown if its labels are.
fn match_label_requirement(
    requirement: &LabelRequirement<Box<str>>,
    namespace: &str,
    labels: Labels<'_>,
) -> ScopeMatch {
    let value = match labels {
        _ if &*requirement.key == NAMESPACE_NAME_LABEL => Some(namespace),
        Labels::Unknown => return ScopeMatch::Unknown,
        Labels::Known(labels) => labels.member(&requirement.key).map(|(_, value)| value.str()),
    };
    if requirement.holds(value) { ScopeMatch::Yes } else { ScopeMatch::No }
}

/// The compiled `spec.exempt` of a policy: the users and groups that it does not bind.
#[derive(Clone, Debug, Default)]
pub(super) struct Exemptions {
    users: Vec<Glob>,
    groups: Vec<Glob>,
    service_accounts: Vec<Glob>,
}

impl Exemptions {
    /// Reads `spec.exempt` of a policy.
    pub(super) fn read(value: Value<'_>) -> Exemptions {
        Exemptions {
            users: read_globs(value.get("users")).unwrap_or_default(),
            groups: read_globs(value.get("groups")).unwrap_or_default(),
            service_accounts: read_globs(value.get("serviceAccounts")).unwrap_or_default(),
        }
    }

    /// True if the user of a request (`userInfo`) is exempt from the policy; false without a user name.
    pub(super) fn exempts_user(&self, user: Value<'_>) -> bool {
        let name = user.get("username").str();
        if name.is_empty() {
            return false;
        }
        self.users.iter().any(|glob| glob.matches(name))
            || user
                .get("groups")
                .items()
                .take(MAX_USER_GROUPS)
                .any(|group| self.groups.iter().any(|glob| glob.matches(group.str())))
            || service_account_of_user(name)
                .is_some_and(|account| self.service_accounts.iter().any(|glob| glob.matches(&account)))
    }
}

/// Returns `namespace/name` of the service account that has this user name; `None` for other users.
fn service_account_of_user(user: &str) -> Option<String> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    Some(format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::{Exemptions, Labels, Operation, PolicyScope, ScopeMatch};
    use tollgate_api::profile::ApiKind;
    use tollgate_document::doc;

    fn applies(scope: &str, namespace: Option<&str>, labels: Option<&str>) -> ScopeMatch {
        let scope = doc::parse(scope).unwrap();
        let labels = labels.map(|labels| doc::parse(labels).unwrap());
        let known = labels.as_ref().map_or(Labels::Unknown, |labels| Labels::Known(labels.root()));
        PolicyScope::read(scope.root(), &[ApiKind::ResourceClaim]).match_request(
            Operation::Create,
            namespace,
            known,
        )
    }

    #[test]
    fn namespaces_are_globs_with_exceptions() {
        let scope = r#"{"namespaces":["ml-*","lab"],"excludeNamespaces":["ml-infra"]}"#;
        for (namespace, expected) in
            [("ml-a", ScopeMatch::Yes), ("lab", ScopeMatch::Yes), ("ml-infra", ScopeMatch::No)]
        {
            assert_eq!(applies(scope, Some(namespace), None), expected, "{namespace}");
        }
        assert_eq!(applies(scope, Some("other"), None), ScopeMatch::No);
        assert_eq!(applies(scope, None, None), ScopeMatch::Yes, "an object without namespace");
        assert_eq!(applies(r#"{"namespaces":[]}"#, Some("a"), None), ScopeMatch::No);
        assert_eq!(applies(r#"{"operations":["UPDATE"]}"#, Some("a"), None), ScopeMatch::No);
    }

    #[test]
    fn labels_select_and_a_missing_answer_is_no_no() {
        let scope = r#"{"namespaceSelector":{"matchLabels":{"team":"ml"}}}"#;
        assert_eq!(applies(scope, Some("a"), None), ScopeMatch::Unknown);
        assert_eq!(applies(scope, Some("a"), Some("{}")), ScopeMatch::No);
        assert_eq!(applies(scope, Some("a"), Some(r#"{"team":"ml"}"#)), ScopeMatch::Yes);
        let table = [
            (r#"{"key":"team","operator":"NotIn","values":["ml"]}"#, "{}", ScopeMatch::Yes),
            (r#"{"key":"team","operator":"NotIn","values":["ml"]}"#, r#"{"team":"ml"}"#, ScopeMatch::No),
            (r#"{"key":"team","operator":"Exists"}"#, r#"{"team":""}"#, ScopeMatch::Yes),
            (r#"{"key":"team","operator":"DoesNotExist"}"#, r#"{"team":""}"#, ScopeMatch::No),
            (
                r#"{"key":"kubernetes.io/metadata.name","operator":"In","values":["a"]}"#,
                "{}",
                ScopeMatch::Yes,
            ),
        ];
        for (expression, labels, expected) in table {
            let scope = format!(r#"{{"namespaceSelector":{{"matchExpressions":[{expression}]}}}}"#);
            assert_eq!(applies(&scope, Some("a"), Some(labels)), expected, "{expression} {labels}");
        }
        let elsewhere = r#"{"namespaces":["b"],"namespaceSelector":{"matchLabels":{"team":"ml"}}}"#;
        assert_eq!(applies(elsewhere, Some("a"), None), ScopeMatch::No, "decided without labels");
        let named = r#"{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"a"}}}"#;
        assert_eq!(applies(named, Some("a"), None), ScopeMatch::Yes, "every namespace has its name");
    }

    #[test]
    fn users_groups_and_service_accounts_are_exempt() {
        let exempt = r#"{"users":["system:admin"],"groups":["gpu-*"],"serviceAccounts":["kube-system/*"]}"#;
        let exempt = doc::parse(exempt).unwrap();
        let exempt = Exemptions::read(exempt.root());
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
            assert_eq!(exempt.exempts_user(doc::parse(user).unwrap().root()), expected, "{user}");
        }
    }
}
