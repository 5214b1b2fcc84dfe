//! Lists the tolerations that the claims of a namespace may use: the entries that apply, and their policies.
//!
//! The verdict on a toleration is in [`super::check_tolerations`].

use super::{EntryWithPolicy, TolerationEntryGroup};
use crate::admission::{LabelsIfKnown, Operation};
use crate::policy::conditions::ObjectDependency;
use crate::policy::entries::TolerationEntry;
use crate::policy::kind::{PolicySpec, policies_of_kind};
use crate::policy::matching::ScopeMatch;
use crate::policy::{MatchedPolicy, Policy, PolicySet};
use crate::rules::FindingLevel;
use crate::tolerance::coverage::PolicyEntry;
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::{self, Timestamp};

/// An entry of a policy, as shown in lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedEntry {
    /// Kind and name of the policy, such as `TolerationPolicy/research`.
    pub policy: String,
    /// Location of the policy.
    pub source: String,
    /// Path of the entry, such as `allow[0]`.
    pub location: String,
    /// The entry as YAML: `{key: a/b, effects: [NoSchedule]}`.
    pub text: String,
    /// The tolerations that the entry matches; `None` for a default toleration.
    pub entry: Option<PolicyEntry>,
    pub reason: Option<String>,
    /// The time at which the entry expires or has expired.
    pub expires: Option<String>,
    /// True if the policy has match conditions, so that it may not apply to every claim.
    pub is_conditional: bool,
}

/// The tolerations that the policies with one action allow, deny and add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedTolerationEntries {
    /// The level for tolerations that are not allowed.
    pub action: FindingLevel,
    /// The policies that restrict tolerations to `allow`; empty if everything is allowed that `deny` does not match.
    pub restricted_by: Vec<String>,
    /// The policies that require a key.
    pub requires_key: Vec<String>,
    /// The policies from which the user is exempt.
    pub exempt: Vec<String>,
    /// The policies that apply to the user and whose verdict depends on more of a claim than its tolerations, once for
    /// each reason.
    pub claim_dependent: Vec<(String, ObjectDependency)>,
    pub allow: Vec<ListedEntry>,
    pub deny: Vec<ListedEntry>,
    /// Allow entries that have expired.
    pub expired: Vec<ListedEntry>,
    /// Tolerations that new claims get.
    pub defaults: Vec<ListedEntry>,
}

impl PolicySet {
    /// Returns what claims may tolerate that this user creates in a namespace, for each action that a policy has. The
    /// error names a policy that selects namespaces by labels which are not known.
    pub fn listed_tolerations(
        &self,
        namespace: &str,
        labels: LabelsIfKnown<'_>,
        user: Value<'_>,
        now: Timestamp,
    ) -> Result<Vec<ListedTolerationEntries>, String> {
        let mut matched = Vec::new();
        let about_claims = self
            .policies
            .iter()
            .filter(|policy| policy.broken.is_none() && policy.scope.includes_kind(ApiKind::ResourceClaim));
        for policy in about_claims {
            match policy.scope.match_request(Operation::Create, Some(namespace), labels) {
                ScopeMatch::No => {}
                ScopeMatch::Yes => {
                    matched.push(MatchedPolicy { policy, binds: !policy.exempt.exempts_user(user) })
                }
                ScopeMatch::Unknown => return Err(policy.kind_and_name()),
            }
        }
        let levels = FindingLevel::ALL.into_iter().rev();
        Ok(levels.filter_map(|action| list_entries(&matched, action, now)).collect())
    }
}

/// Lists the entries of the policies with an action; `None` if there are none.
fn list_entries(
    policies: &[MatchedPolicy<'_>],
    action: FindingLevel,
    now: Timestamp,
) -> Option<ListedTolerationEntries> {
    let ours: Vec<_> = policies_of_kind(policies, PolicySpec::toleration)
        .filter(|(matched, _)| matched.policy.action == action)
        .collect();
    if ours.is_empty() {
        return None;
    }
    let named = |is_meant: &dyn Fn(&MatchedPolicy<'_>, &super::TolerationPolicy) -> bool| -> Vec<String> {
        let meant = ours.iter().filter(|(matched, policy)| is_meant(matched, policy));
        meant.map(|(matched, _)| matched.policy.kind_and_name()).collect()
    };
    let group = TolerationEntryGroup::from_policies(policies, action, Some(now));
    let entries = |grants: Option<&Vec<EntryWithPolicy<'_>>>| -> Vec<ListedEntry> {
        let grants = grants.into_iter().flatten();
        grants.map(|(policy, grant)| listed_entry(policy, grant, grant.describe())).collect()
    };
    let mut defaults = Vec::new();
    for (matched, policy) in
        ours.iter().filter(|(matched, _)| matched.binds && matched.policy.adds_tolerations())
    {
        defaults.extend(policy.defaults.iter().zip(&policy.default_entries).map(|(default, grant)| {
            ListedEntry { entry: None, ..listed_entry(matched.policy, grant, default.to_string()) }
        }));
    }
    Some(ListedTolerationEntries {
        action,
        restricted_by: named(&|matched, policy| matched.binds && policy.has_allow_list()),
        requires_key: named(&|matched, policy| matched.binds && policy.require_key),
        exempt: named(&|matched, _| !matched.binds),
        claim_dependent: ours
            .iter()
            .filter(|(matched, _)| matched.binds)
            .flat_map(|(matched, _)| {
                let dependencies = matched.policy.expressions.object_dependencies();
                dependencies.map(|dependency| (matched.policy.kind_and_name(), dependency))
            })
            .collect(),
        allow: entries(group.as_ref().map(|group| &group.allowed)),
        deny: entries(group.as_ref().map(|group| &group.denied)),
        expired: entries(group.as_ref().map(|group| &group.expired)),
        defaults,
    })
}

/// Creates a list entry for an entry of a policy.
fn listed_entry(policy: &Policy, grant: &TolerationEntry, text: String) -> ListedEntry {
    ListedEntry {
        policy: policy.kind_and_name(),
        source: policy.source.to_string(),
        location: grant.terms.location.to_string(),
        text,
        entry: Some(grant.entry.clone()),
        reason: grant.terms.reason.as_deref().map(str::to_owned),
        expires: grant.terms.expires.map(gotime::rfc3339),
        is_conditional: !policy.expressions.conditions.is_empty(),
    }
}
