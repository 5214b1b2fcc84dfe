//! Two sets of policies side by side: what the claims of a namespace may tolerate in one and not in the other.
//!
//! An entry counts as lost only if something of it is lost: what other entries still cover stays. To compare an
//! entry with entries, its keys are tried by one key that nobody names, which stands for all of them.

use super::PolicySet;
use super::glob::Glob;
use super::grants::Grant;
use super::kind::PolicySpec;
use super::matching::Answer;
use crate::admission::{Labels, Operation};
use crate::gotime::Timestamp;
use crate::profile::ApiKind;
use crate::rules::Level;
use crate::tolerance::coverage::{KeyPattern, ToleratedTaints, uncovered};

/// A difference for one namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Difference {
    /// What the policies in question do.
    pub action: Level,
    /// More may be tolerated than before, or less.
    pub gained: bool,
    /// What.
    pub what: String,
}

/// What holds for tolerations in a namespace, for one action.
struct Held<'s> {
    restricted: bool,
    allow: Vec<(&'s Grant, String)>,
    deny: Vec<(&'s Grant, String)>,
}

impl PolicySet {
    /// The patterns of namespaces that TolerationPolicies name.
    pub fn toleration_namespaces(&self) -> impl Iterator<Item = &str> {
        let ours = self.policies.iter().filter(|policy| matches!(policy.spec, PolicySpec::Toleration(_)));
        ours.flat_map(|policy| policy.scope.namespaces().unwrap_or_default()).map(Glob::pattern)
    }

    fn held(&self, action: Level, namespace: &str, labels: Labels<'_>, now: Option<Timestamp>) -> Held<'_> {
        let mut held = Held { restricted: false, allow: Vec::new(), deny: Vec::new() };
        for policy in self.policies.iter().filter(|policy| policy.action == action) {
            let PolicySpec::Toleration(spec) = &policy.spec else { continue };
            let is_about = policy.scope.is_about(ApiKind::ResourceClaim);
            // Without labels, what selects by label is taken to apply: a difference too many is better than none.
            if !is_about || policy.scope.applies(Operation::Create, Some(namespace), labels) == Answer::No {
                continue;
            }
            held.restricted |= spec.restricts();
            let live = |grant: &&Grant| !grant.terms.is_over(now);
            held.allow.extend(spec.grants().filter(live).map(|grant| (grant, policy.told())));
            held.deny.extend(spec.denials().iter().filter(live).map(|grant| (grant, policy.told())));
        }
        held
    }

    /// What the claims of a namespace may tolerate in `new` and not here, and the other way round.
    pub fn differences(
        &self,
        new: &PolicySet,
        namespace: &str,
        labels: Labels<'_>,
        now: Option<Timestamp>,
    ) -> Vec<Difference> {
        let mut found = Vec::new();
        for action in [Level::Deny, Level::Warn, Level::Audit] {
            let (before, after) =
                (self.held(action, namespace, labels, now), new.held(action, namespace, labels, now));
            let mut say = |gained: bool, what: String| found.push(Difference { action, gained, what });
            match (before.restricted, after.restricted) {
                (false, true) => say(false, "everything that no allow entry covers".to_owned()),
                (true, false) => say(true, "everything that no deny entry hits".to_owned()),
                (true, true) => {
                    for (gained, ours, theirs) in [(false, &before, &after), (true, &after, &before)] {
                        for (grant, policy) in ours.allow.iter().filter(|(grant, _)| !is_held(grant, theirs))
                        {
                            say(gained, format!("{}, {policy}", grant.told()));
                        }
                    }
                }
                (false, false) => {}
            }
            for (gained, ours, theirs) in [(false, &after, &before), (true, &before, &after)] {
                for (grant, policy) in &ours.deny {
                    if !theirs.deny.iter().any(|(other, _)| other.entry == grant.entry) {
                        let word = if gained { "no longer denied" } else { "denied" };
                        say(gained, format!("{word}: {}, {policy}", grant.told()));
                    }
                }
            }
        }
        found
    }
}

/// True if other entries cover all of an entry.
fn is_held(grant: &Grant, by: &Held<'_>) -> bool {
    let entry = &grant.entry;
    let unnamed = match &entry.keys {
        KeyPattern::Any => None,
        KeyPattern::Prefix(prefix) => Some(format!("{prefix}\u{0}")),
        KeyPattern::Exact(key) => Some(key.to_string()),
    };
    let covered = |value: Option<&str>| {
        let reach = ToleratedTaints {
            key: unnamed.as_deref(),
            value,
            effects: entry.effects,
            seconds: entry.seconds,
        };
        uncovered(&reach, by.allow.iter().map(|(grant, _)| &grant.entry)).is_empty()
    };
    match &entry.values {
        None => covered(None),
        Some(values) => values.iter().all(|value| covered(Some(value))),
    }
}
