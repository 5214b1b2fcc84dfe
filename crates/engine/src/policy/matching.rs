//! The scope of a policy: namespaces, kinds, drivers and operations; and the users that it exempts.
//!
//! Cheap criteria come first, so that a policy for another namespace costs one comparison. A criterion that cannot be
//! evaluated (labels of a namespace that are not known) gives [`ScopeMatch::Unknown`], never `No`.
//!
//! Criteria about namespaces do not apply to objects that have none, as in the API server's own admission policies.

mod samples;

use super::glob::Globs;
use crate::admission::{LabelsIfKnown, Operation};
use tollgate_api::labels::{LabelRequirement, read_selector};
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;

/// Maximum length in bytes of a driver's name that is compared with globs; API servers accept 63.
pub(super) const MAX_DRIVER_BYTES: usize = 253;
/// Maximum number of groups of a user that are compared with exemptions.
const MAX_COMPARED_USER_GROUPS: usize = 4_096;

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
    pub(super) namespaces: Option<Globs>,
    excluded: Globs,
    selector: Vec<LabelRequirement<Box<str>>>,
    drivers: Option<Globs>,
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
            namespaces: Globs::from_list_if_present(value.get("namespaces")),
            excluded: Globs::from_list_if_present(value.get("excludeNamespaces")).unwrap_or_default(),
            selector: read_selector(value.get("namespaceSelector"), Into::into).unwrap_or_default(),
            drivers: Globs::from_list_if_present(value.get("drivers")),
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
        labels: LabelsIfKnown<'_>,
    ) -> ScopeMatch {
        if self.operations.as_ref().is_some_and(|operations| !operations.contains(&operation)) {
            return ScopeMatch::No;
        }
        let Some(namespace) = namespace else { return ScopeMatch::Yes };
        if self.namespaces.as_ref().is_some_and(|globs| !globs.match_any(namespace))
            || self.excluded.match_any(namespace)
        {
            return ScopeMatch::No;
        }
        let mut answer = ScopeMatch::Yes;
        for requirement in &self.selector {
            let value = match labels {
                _ if &*requirement.key == NAMESPACE_NAME_LABEL => Some(namespace),
                LabelsIfKnown::Unknown => {
                    answer = ScopeMatch::Unknown;
                    continue;
                }
                LabelsIfKnown::Known(labels) => {
                    labels.last_key_and_value(&requirement.key).map(|(_, value)| value.str())
                }
            };
            if !requirement.holds(value) {
                return ScopeMatch::No;
            }
        }
        answer
    }

    /// True if the policy applies to this driver. An empty or invalid driver name matches every policy.
    pub(super) fn matches_named_or_unknown_driver(&self, driver: &str) -> bool {
        driver.is_empty()
            || driver.len() > MAX_DRIVER_BYTES
            || self.drivers.as_ref().is_none_or(|globs| globs.match_any(driver))
    }

    /// True if the policy only applies to certain drivers.
    pub(super) fn is_limited_to_certain_drivers(&self) -> bool {
        self.drivers.is_some()
    }

    /// True if the selector depends on labels other than the name label.
    pub(super) fn needs_namespace_labels(&self) -> bool {
        self.selector.iter().any(|requirement| &*requirement.key != NAMESPACE_NAME_LABEL)
    }
}

/// The compiled `spec.exempt` of a policy: the users and groups that it does not bind.
#[derive(Clone, Debug, Default)]
pub(super) struct Exemptions {
    pub(super) users: Globs,
    pub(super) groups: Globs,
    pub(super) service_accounts: Globs,
}

impl Exemptions {
    /// Reads `spec.exempt` of a policy.
    pub(super) fn read(value: Value<'_>) -> Exemptions {
        Exemptions {
            users: Globs::from_list_if_present(value.get("users")).unwrap_or_default(),
            groups: Globs::from_list_if_present(value.get("groups")).unwrap_or_default(),
            service_accounts: Globs::from_list_if_present(value.get("serviceAccounts")).unwrap_or_default(),
        }
    }

    /// True if the user of a request (`userInfo`) is exempt from the policy; false without a user name.
    pub(super) fn exempts_user(&self, user: Value<'_>) -> bool {
        let name = user.get("username").str();
        if name.is_empty() {
            return false;
        }
        let service_account =
            name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
        let mut groups = user.get("groups").items().take(MAX_COMPARED_USER_GROUPS);
        self.users.match_any(name)
            || groups.any(|group| self.groups.match_any(group.str()))
            || service_account.is_some_and(|(namespace, name)| {
                self.service_accounts.match_any(&format!("{namespace}/{name}"))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{Exemptions, LabelsIfKnown, Operation, PolicyScope, ScopeMatch};
    use tollgate_api::profile::ApiKind;
    use tollgate_document::doc;

    fn applies(scope: &str, namespace: Option<&str>, labels: Option<&str>) -> ScopeMatch {
        let scope = doc::parse(scope).unwrap();
        let labels = labels.map(|labels| doc::parse(labels).unwrap());
        let known =
            labels.as_ref().map_or(LabelsIfKnown::Unknown, |labels| LabelsIfKnown::Known(labels.root()));
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
