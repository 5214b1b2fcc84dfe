//! What requests contain, as far as policies look at it: representative contents, asked of the policies of both sets.
//!
//! Each kind of policy has an [`Aspect`] beside its check. Not here: where and when policies apply.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::expressions::{EvaluatedExpressions, WhileUnavailable};
use super::names::{Alphabet, Pattern, representatives};
use super::{Effect, title, word};
use crate::admission::Operation;
use crate::policy::parameters::KnownParameters;
use crate::policy::taint::PublishedTaints;
use crate::policy::taint_rule::RuleGuards;
use crate::policy::toleration::{AddedTolerations, AllowedTolerations};
use crate::policy::{MatchedPolicy, Policy};
use crate::rules::Level;
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::Timestamp;

/// Most differences of one kind that are described for one combination of policies.
const MAX_DESCRIBED: usize = 8;

/// The circumstances of requests.
pub(in crate::policy) struct Scene<'c> {
    pub(in crate::policy) kind: ApiKind,
    pub(in crate::policy) operation: Operation,
    pub(in crate::policy) user: Value<'c>,
    pub(in crate::policy) now: Timestamp,
    incomplete: Cell<bool>,
}

impl<'c> Scene<'c> {
    pub(super) fn new(kind: ApiKind, operation: Operation, user: Value<'c>, now: Timestamp) -> Scene<'c> {
        Scene { kind, operation, user, now, incomplete: Cell::new(false) }
    }

    /// True if there were too many representatives.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete.get()
    }
}

/// A property of requests that policies restrict, such as tolerations. Two policy sets are compared aspect by
/// aspect.
pub(in crate::policy) trait Aspect<'s>: Sized {
    /// A representative of what requests contain.
    type Probe: Clone;

    /// Returns sample values that cover every distinction that these policies make.
    fn probes(policies: &[MatchedPolicy<'s>], scene: &Scene<'_>) -> Vec<Self::Probe>;

    /// Collects the rules of these policies for this aspect.
    fn of(policies: &[MatchedPolicy<'s>], scene: &Scene<'_>) -> Self;

    /// The level at which the policies report it; `None` if they allow it.
    fn level(&self, probe: &Self::Probe) -> Option<Level>;

    fn describe(probe: &Self::Probe) -> String;

    /// The subject of a sample that is compared only by its text. If one text replaces another, the effect is
    /// unknown.
    fn slot(_: &Self::Probe) -> Option<String> {
        None
    }

    /// Selects the most informative samples among those with the same difference.
    fn most_telling(probes: Vec<Self::Probe>) -> Vec<Self::Probe> {
        probes
    }

    /// The word for what happens.
    fn word(level: Option<Level>) -> &'static str {
        word(level)
    }
}

/// A difference, wherever it is found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Found {
    pub(super) effect: Effect,
    pub(super) what: String,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
}

const CANNOT_EVALUATE: &str = "requests to which the policy applies, if it cannot be evaluated";

impl Found {
    /// Marks the difference as uncertain, because such requests may not exist.
    pub(super) fn uncertain(self) -> Found {
        Found { effect: Effect::Unknown, ..self }
    }

    /// The difference that another `failurePolicy` makes; true is `Ignore`.
    pub(super) fn failure_policy(before: bool, after: bool) -> Found {
        let word = |ignores: bool| if ignores { "allowed" } else { "refused" };
        let effect = if after { Effect::Wider } else { Effect::Stricter };
        Found { effect, what: CANNOT_EVALUATE.to_owned(), before: word(before), after: word(after) }
    }

    /// True if it is about expressions that cannot be evaluated.
    pub(super) fn is_failure(&self) -> bool {
        self.what.starts_with(super::expressions::FAILURE)
    }
}

/// Compares all aspects under two groups of policies that apply; returns the differences and the policies whose change
/// makes each of them.
pub(super) fn compare<'s>(
    before: &[MatchedPolicy<'s>],
    after: &[MatchedPolicy<'s>],
    scene: &Scene<'_>,
    changed: &BTreeSet<String>,
) -> Vec<(Found, Vec<String>)> {
    let sides = Sides { before, after, scene, changed };
    let mut found = Vec::new();
    sides.compare::<AllowedTolerations<'s>>(&mut found);
    sides.compare::<AddedTolerations<'s>>(&mut found);
    sides.compare::<PublishedTaints<'s>>(&mut found);
    sides.compare::<RuleGuards<'s>>(&mut found);
    sides.compare::<KnownParameters<'s>>(&mut found);
    sides.compare::<EvaluatedExpressions<'s>>(&mut found);
    sides.compare::<WhileUnavailable<'s>>(&mut found);
    found
}

/// Two groups of policies that apply to the same requests.
struct Sides<'c, 's> {
    before: &'c [MatchedPolicy<'s>],
    after: &'c [MatchedPolicy<'s>],
    scene: &'c Scene<'c>,
    changed: &'c BTreeSet<String>,
}

impl<'s> Sides<'_, 's> {
    fn compare<A: Aspect<'s>>(&self, found: &mut Vec<(Found, Vec<String>)>) {
        let both: Vec<MatchedPolicy<'s>> = self.before.iter().chain(self.after).copied().collect();
        let (old, new) = (A::of(self.before, self.scene), A::of(self.after, self.scene));
        let mut by_levels: BTreeMap<_, Vec<A::Probe>> = BTreeMap::new();
        let mut differing = Vec::new();
        // For each slot, whether something was added to it and removed from it.
        let mut slots: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        for probe in A::probes(&both, self.scene) {
            let levels = (old.level(&probe), new.level(&probe));
            if levels.0 == levels.1 {
                continue;
            }
            if let Some(slot) = A::slot(&probe) {
                let (added, removed) = slots.entry(slot).or_default();
                *added |= levels.0.is_none();
                *removed |= levels.1.is_none();
            }
            differing.push((levels, probe));
        }
        for ((before, after), probe) in differing {
            let is_replaced = A::slot(&probe).is_some_and(|slot| slots.get(&slot) == Some(&(true, true)));
            by_levels.entry((before, after, is_replaced)).or_default().push(probe);
        }
        for ((before, after, is_replaced), probes) in by_levels {
            let effect = match before > after {
                _ if is_replaced => Effect::Unknown,
                true => Effect::Wider,
                false => Effect::Stricter,
            };
            for probe in A::most_telling(probes).into_iter().take(MAX_DESCRIBED) {
                let policies = self.responsible::<A>(&probe, after);
                let (what, before, after) = (A::describe(&probe), A::word(before), A::word(after));
                found.push((Found { effect, what, before, after }, policies));
            }
        }
    }

    /// Names of the policies whose change causes the difference. If no single change causes it, all policies
    /// that apply.
    fn responsible<A: Aspect<'s>>(&self, probe: &A::Probe, after: Option<Level>) -> Vec<String> {
        let both = self.before.iter().chain(self.after);
        let titles: BTreeSet<String> = both.map(|matched| title(matched.policy)).collect();
        let titles: Vec<String> = titles.into_iter().filter(|title| self.changed.contains(title)).collect();
        let is_responsible = |name: &&String| {
            let kept = self.after.iter().filter(|matched| title(matched.policy) != **name);
            let restored = self.before.iter().filter(|matched| title(matched.policy) == **name);
            let reverted: Vec<MatchedPolicy<'s>> = kept.chain(restored).copied().collect();
            A::of(&reverted, self.scene).level(probe) != after
        };
        let alone: Vec<String> = titles.iter().filter(is_responsible).cloned().collect();
        if alone.is_empty() { titles } else { alone }
    }
}

/// Sample drivers for the patterns of policies. The empty name represents objects without a driver.
pub(in crate::policy) fn drivers<'p>(
    policies: impl Iterator<Item = &'p Policy>,
    scene: &Scene<'_>,
) -> Vec<String> {
    let globs: BTreeSet<&str> = policies.flat_map(|policy| policy.scope.compared_drivers()).collect();
    let patterns: Vec<Pattern<'_>> = globs.into_iter().map(Pattern::plain).collect();
    let found = representatives(&patterns, Alphabet::Driver);
    scene.incomplete.set(scene.incomplete.get() || !found.complete);
    let mut names = found.names;
    names.insert(0, String::new());
    names
}

/// Representative keys of taints for the patterns of policies.
pub(in crate::policy) fn sample_keys(patterns: &[String], scene: &Scene<'_>) -> Vec<String> {
    let globs: BTreeSet<&str> = patterns.iter().map(String::as_str).collect();
    let patterns: Vec<Pattern<'_>> = globs.into_iter().map(Pattern::plain).collect();
    let found = representatives(&patterns, Alphabet::Key);
    scene.incomplete.set(scene.incomplete.get() || !found.complete);
    found.names
}
