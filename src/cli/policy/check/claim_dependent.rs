//! Policies whose verdict on a toleration depends on more of the claim, such as its name or its device class.
//!
//! Invariant: if one of them may change the verdict, it is returned. One that cannot change it may be returned too.
//! Validations always count, because `policy check` does not evaluate them.

use super::toleration_arg::TolerationArg;
use crate::report::record::{Json, record};
use tollgate_engine::policy::{ListedEntry, ListedTolerationEntries, ObjectDependency};
use tollgate_engine::rules::FindingLevel;
use tollgate_engine::tolerance::coverage::{ToleratedTaints, uncovered_effects};

type DependentPolicy = (String, ObjectDependency);

/// Returns the policies on which it depends whether a toleration is denied, with the reasons; `None` if it is decided.
/// `is_allowed` is the verdict on some claim.
pub(super) fn undecided_policies(
    toleration: &TolerationArg,
    listed: &[ListedTolerationEntries],
    is_allowed: bool,
) -> Option<String> {
    let tolerated = toleration.tolerated_taints();
    let listed = listed.iter().find(|listed| listed.action == FindingLevel::Deny)?;
    if !is_allowed && is_denied_in_any_claim(&tolerated, listed) {
        return None;
    }
    let is_undecided = |dependent: &&DependentPolicy| match dependent.1 {
        ObjectDependency::Validations => is_allowed,
        ObjectDependency::MatchConditions => !is_allowed || may_deny(&dependent.0, &tolerated, listed),
    };
    let undecided: Vec<String> = listed.claim_dependent.iter().filter(is_undecided).map(describe).collect();
    (!undecided.is_empty()).then(|| undecided.join(", and "))
}

/// Returns what of the policy depends on the claim.
pub(super) fn describe((policy, dependency): &DependentPolicy) -> String {
    match dependency {
        ObjectDependency::MatchConditions => format!("{policy} applies only if its match conditions hold"),
        ObjectDependency::Validations => format!("{policy} also has validations"),
    }
}

/// Returns the policy as JSON.
pub(super) fn to_record((policy, dependency): &DependentPolicy) -> Json {
    let depends_on = match dependency {
        ObjectDependency::MatchConditions => "matchConditions",
        ObjectDependency::Validations => "validations",
    };
    record! { "policy": policy, "dependsOn": depends_on }
}

/// True if policies without match conditions deny the toleration, whatever else applies.
fn is_denied_in_any_claim(tolerated: &ToleratedTaints<'_>, listed: &ListedTolerationEntries) -> bool {
    let has_conditions = |name: &str| {
        let of_policy = |(policy, dependency): &DependentPolicy| {
            policy == name && *dependency == ObjectDependency::MatchConditions
        };
        listed.claim_dependent.iter().any(of_policy)
    };
    let deny = |entry: &ListedEntry| !entry.is_conditional;
    are_denying(tolerated, listed, |name| !has_conditions(name), |_| true, deny)
}

/// True if a policy denies the toleration in claims for which its match conditions hold.
fn may_deny(policy: &str, tolerated: &ToleratedTaints<'_>, listed: &ListedTolerationEntries) -> bool {
    let allows = |entry: &ListedEntry| !entry.is_conditional || entry.policy == policy;
    are_denying(tolerated, listed, |name| name == policy, allows, |entry| entry.policy == policy)
}

/// True if the toleration is denied by the policies that restrict it, of which only some entries allow something, or by
/// some of the entries that deny something.
fn are_denying(
    tolerated: &ToleratedTaints<'_>,
    listed: &ListedTolerationEntries,
    restricts: impl Fn(&str) -> bool,
    allows: impl Fn(&ListedEntry) -> bool,
    denies: impl Fn(&ListedEntry) -> bool,
) -> bool {
    let allowed = listed.allow.iter().filter(|entry| allows(entry)).filter_map(|entry| entry.entry.as_ref());
    let is_denying = |entry: &ListedEntry| {
        denies(entry) && entry.entry.as_ref().is_some_and(|entry| entry.intersects(tolerated))
    };
    let restrict = |names: &[String]| names.iter().any(|name| restricts(name));
    (restrict(&listed.restricted_by) && !uncovered_effects(tolerated, allowed).is_empty())
        || (restrict(&listed.requires_key) && tolerated.key.is_none())
        || listed.deny.iter().any(is_denying)
}
