//! Differences between two sets of policies: what the claims of a namespace may tolerate under only one of them.
//!
//! An entry counts as lost only if other entries no longer cover all of it. To compare a key pattern with other entries,
//! one key that no entry names stands for all keys of the pattern.

use super::PolicySet;
use super::entries::TolerationEntry;
use super::glob::Glob;
use super::kind::PolicySpec;
use super::matching::ScopeMatch;
use crate::admission::{Labels, Operation};
use crate::rules::Level;
use crate::tolerance::coverage::{KeyPattern, ToleratedTaints, uncovered};
use tollgate_api::profile::ApiKind;
use tollgate_formats::gotime::Timestamp;

/// A difference for one namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TolerationDifference {
    /// The action of the policies.
    pub action: Level,
    /// True if the tolerations are allowed only by the new set, false if only by the old one.
    pub gained: bool,
    /// Which tolerations.
    pub tolerations: String,
}

/// The namespace to compare for.
#[derive(Clone, Copy, Debug)]
pub struct ComparedNamespace<'n> {
    /// Its name.
    pub name: &'n str,
    /// Its labels.
    pub labels: Labels<'n>,
    /// The `namespaceSelector` that it matches, one of [`PolicySet::toleration_selectors`], if its labels are not known.
    pub selector: Option<&'n str>,
}

/// The entries that apply to tolerations in a namespace, of the policies with one action.
struct EffectiveTolerations<'s> {
    /// True if a policy has an allow list.
    restricted: bool,
    allow: Vec<(&'s TolerationEntry, String)>,
    deny: Vec<(&'s TolerationEntry, String)>,
}

impl PolicySet {
    /// Returns the patterns of namespaces that TolerationPolicies include or exclude.
    pub fn toleration_namespaces(&self) -> impl Iterator<Item = &str> {
        let ours = self.policies.iter().filter(|policy| matches!(policy.spec, PolicySpec::Toleration(_)));
        ours.flat_map(|policy| policy.scope.named_namespaces()).map(Glob::pattern)
    }

    /// Returns the namespace selectors of TolerationPolicies.
    pub fn toleration_selectors(&self) -> impl Iterator<Item = String> {
        let ours = self.policies.iter().filter(|policy| matches!(policy.spec, PolicySpec::Toleration(_)));
        ours.filter_map(|policy| policy.scope.selector_text())
    }

    /// Returns the entries of the policies with that action that apply to the namespace.
    fn effective_tolerations(
        &self,
        action: Level,
        namespace: ComparedNamespace<'_>,
        now: Option<Timestamp>,
    ) -> EffectiveTolerations<'_> {
        let mut effective = EffectiveTolerations { restricted: false, allow: Vec::new(), deny: Vec::new() };
        for policy in self.policies.iter().filter(|policy| policy.action == action) {
            let PolicySpec::Toleration(spec) = &policy.spec else { continue };
            let is_about = policy.scope.includes_kind(ApiKind::ResourceClaim);
            let name = Some(namespace.name);
            let applies = match (namespace.selector, policy.scope.selector_text()) {
                (Some(wanted), Some(selector)) => {
                    selector == wanted && policy.scope.applies_by_name(Operation::Create, name)
                }
                _ => policy.scope.applies(Operation::Create, name, namespace.labels) == ScopeMatch::Yes,
            };
            if !is_about || !applies {
                continue;
            }
            effective.restricted |= spec.has_allow_list();
            let live = |grant: &&TolerationEntry| !grant.terms.is_expired(now);
            effective
                .allow
                .extend(spec.allowed_entries().filter(live).map(|grant| (grant, policy.describe())));
            effective
                .deny
                .extend(spec.denied_entries().iter().filter(live).map(|grant| (grant, policy.describe())));
        }
        effective
    }

    /// Returns what the claims of a namespace may tolerate only under `new`, or only under this set.
    pub fn differences(
        &self,
        new: &PolicySet,
        namespace: ComparedNamespace<'_>,
        now: Option<Timestamp>,
    ) -> Vec<TolerationDifference> {
        let mut found = Vec::new();
        for action in [Level::Deny, Level::Warn, Level::Audit] {
            let (before, after) = (
                self.effective_tolerations(action, namespace, now),
                new.effective_tolerations(action, namespace, now),
            );
            let mut say = |gained: bool, tolerations: String| {
                found.push(TolerationDifference { action, gained, tolerations })
            };
            match (before.restricted, after.restricted) {
                (false, true) => say(false, "everything that no allow entry covers".to_owned()),
                (true, false) => say(true, "everything that no deny entry matches".to_owned()),
                (true, true) => {
                    for (gained, ours, theirs) in [(false, &before, &after), (true, &after, &before)] {
                        for (grant, policy) in
                            ours.allow.iter().filter(|(grant, _)| !is_covered(grant, theirs))
                        {
                            say(gained, format!("{}, {policy}", grant.describe()));
                        }
                    }
                }
                (false, false) => {}
            }
            for (gained, ours, theirs) in [(false, &after, &before), (true, &before, &after)] {
                for (grant, policy) in &ours.deny {
                    if !theirs.deny.iter().any(|(other, _)| other.entry == grant.entry) {
                        let word = if gained { "no longer denied" } else { "denied" };
                        say(gained, format!("{word}: {}, {policy}", grant.describe()));
                    }
                }
            }
        }
        found
    }
}

/// True if the allow entries of `by` cover everything that this entry allows.
fn is_covered(grant: &TolerationEntry, by: &EffectiveTolerations<'_>) -> bool {
    let entry = &grant.entry;
    let unnamed = match &entry.keys {
        KeyPattern::Any => None,
        KeyPattern::Prefix(prefix) => Some(format!("{prefix}\u{0}")),
        KeyPattern::Exact(key) => Some(key.to_string()),
    };
    let covered = |value: Option<&str>| {
        let tolerated = ToleratedTaints {
            key: unnamed.as_deref(),
            value,
            effects: entry.effects,
            seconds: entry.seconds,
        };
        uncovered(&tolerated, by.allow.iter().map(|(grant, _)| &grant.entry)).is_empty()
    };
    match &entry.values {
        None => covered(None),
        Some(values) => values.iter().all(|value| covered(Some(value))),
    }
}
