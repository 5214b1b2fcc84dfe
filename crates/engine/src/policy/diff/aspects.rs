//! Aspects of requests that policies restrict: sample values, evaluated with the policies of both sets.
//!
//! Each kind of policy implements [`Aspect`] beside its check. The scope of policies is handled elsewhere.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::expressions::{EvaluatedExpressions, WhileUnavailable};
use super::names::{Alphabet, Pattern, representatives};
use super::{Effect, policy_title, result_word};
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

/// Maximum number of differences of one kind that are described for one combination of policies.
const MAX_DESCRIBED: usize = 8;

/// The context of sample requests: object kind, namespace, user and time.
pub(in crate::policy) struct Circumstances<'c> {
    pub(in crate::policy) kind: ApiKind,
    pub(in crate::policy) operation: Operation,
    pub(in crate::policy) user: Value<'c>,
    pub(in crate::policy) now: Timestamp,
    incomplete: Cell<bool>,
}

impl<'c> Circumstances<'c> {
    pub(super) fn new(
        kind: ApiKind,
        operation: Operation,
        user: Value<'c>,
        now: Timestamp,
    ) -> Circumstances<'c> {
        Circumstances { kind, operation, user, now, incomplete: Cell::new(false) }
    }

    /// Names that represent all that these globs distinguish.
    fn sample_names<'g>(&self, globs: impl Iterator<Item = &'g str>, alphabet: Alphabet) -> Vec<String> {
        let globs: BTreeSet<&str> = globs.collect();
        let patterns: Vec<Pattern<'_>> = globs.into_iter().map(Pattern::plain).collect();
        let found = representatives(&patterns, alphabet);
        self.incomplete.set(self.incomplete.get() || !found.complete);
        found.names
    }

    /// True if there were too many representatives.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete.get()
    }
}

/// A property of requests that policies restrict, such as tolerations. Two policy sets are compared aspect by
/// aspect.
pub(in crate::policy) trait Aspect<'s>: Sized {
    /// A sample value of this aspect.
    type Sample: Clone;

    /// Returns sample values that cover every distinction that these policies make.
    fn samples(policies: &[MatchedPolicy<'s>], circumstances: &Circumstances<'_>) -> Vec<Self::Sample>;

    /// Collects the rules of these policies for this aspect.
    fn of(policies: &[MatchedPolicy<'s>], circumstances: &Circumstances<'_>) -> Self;

    /// The level at which the policies report the sample; `None` if they allow it.
    fn level(&self, sample: &Self::Sample) -> Option<Level>;

    fn describe(sample: &Self::Sample) -> String;

    /// The subject of a sample that is compared only by its text. If one text replaces another, the effect is
    /// unknown.
    fn compared_text_subject(_: &Self::Sample) -> Option<String> {
        None
    }

    /// Selects the most informative samples among those with the same difference.
    fn most_informative(samples: Vec<Self::Sample>) -> Vec<Self::Sample> {
        samples
    }

    /// The word for the result at this level.
    fn result_word(level: Option<Level>) -> &'static str {
        result_word(level)
    }
}

/// A difference between two sets of policies, independent of where it occurs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FoundDifference {
    pub(super) effect: Effect,
    pub(super) what: String,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
}

const CANNOT_EVALUATE: &str = "requests to which the policy applies, if it cannot be evaluated";

impl FoundDifference {
    /// Marks the difference as uncertain, because such requests may not exist.
    pub(super) fn mark_uncertain(self) -> FoundDifference {
        FoundDifference { effect: Effect::Unknown, ..self }
    }

    /// The difference between two values of `failurePolicy`, where true means `Ignore`.
    pub(super) fn failure_policy(before: bool, after: bool) -> FoundDifference {
        let result = |ignores: bool| if ignores { "allowed" } else { "refused" };
        let effect = if after { Effect::Wider } else { Effect::Stricter };
        FoundDifference {
            effect,
            what: CANNOT_EVALUATE.to_owned(),
            before: result(before),
            after: result(after),
        }
    }

    /// True if the difference is about expressions that cannot be evaluated.
    pub(super) fn is_failure(&self) -> bool {
        self.what.starts_with(super::expressions::FAILED_EXPRESSION)
    }
}

/// Compares all aspects under two groups of policies that apply; returns the differences and the policies whose change
/// makes each of them.
pub(super) fn compare<'s>(
    before: &[MatchedPolicy<'s>],
    after: &[MatchedPolicy<'s>],
    circumstances: &Circumstances<'_>,
    changed: &BTreeSet<String>,
) -> Vec<(FoundDifference, Vec<String>)> {
    let sides = ComparedSets { before, after, circumstances, changed };
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

/// The policies of both sets that apply to the same requests.
struct ComparedSets<'c, 's> {
    before: &'c [MatchedPolicy<'s>],
    after: &'c [MatchedPolicy<'s>],
    circumstances: &'c Circumstances<'c>,
    changed: &'c BTreeSet<String>,
}

impl<'s> ComparedSets<'_, 's> {
    fn compare<A: Aspect<'s>>(&self, found: &mut Vec<(FoundDifference, Vec<String>)>) {
        let both: Vec<MatchedPolicy<'s>> = self.before.iter().chain(self.after).copied().collect();
        let (old, new) = (A::of(self.before, self.circumstances), A::of(self.after, self.circumstances));
        let mut by_levels: BTreeMap<_, Vec<A::Sample>> = BTreeMap::new();
        let mut differing = Vec::new();
        // For each slot, whether something was added to it and removed from it.
        let mut slots: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        for sample in A::samples(&both, self.circumstances) {
            let levels = (old.level(&sample), new.level(&sample));
            if levels.0 == levels.1 {
                continue;
            }
            if let Some(slot) = A::compared_text_subject(&sample) {
                let (added, removed) = slots.entry(slot).or_default();
                *added |= levels.0.is_none();
                *removed |= levels.1.is_none();
            }
            differing.push((levels, sample));
        }
        for ((before, after), sample) in differing {
            let is_replaced =
                A::compared_text_subject(&sample).is_some_and(|slot| slots.get(&slot) == Some(&(true, true)));
            by_levels.entry((before, after, is_replaced)).or_default().push(sample);
        }
        for ((before, after, is_replaced), samples) in by_levels {
            let effect = match before > after {
                _ if is_replaced => Effect::Unknown,
                true => Effect::Wider,
                false => Effect::Stricter,
            };
            for sample in A::most_informative(samples).into_iter().take(MAX_DESCRIBED) {
                let policies = self.responsible_policies::<A>(&sample, after);
                let (what, before, after) =
                    (A::describe(&sample), A::result_word(before), A::result_word(after));
                found.push((FoundDifference { effect, what, before, after }, policies));
            }
        }
    }

    /// Names of the policies whose change causes the difference. If no single change causes it, all policies
    /// that apply.
    fn responsible_policies<A: Aspect<'s>>(&self, sample: &A::Sample, after: Option<Level>) -> Vec<String> {
        let both = self.before.iter().chain(self.after);
        let titles: BTreeSet<String> = both.map(|matched| policy_title(matched.policy)).collect();
        let titles: Vec<String> = titles.into_iter().filter(|title| self.changed.contains(title)).collect();
        let is_responsible = |name: &&String| {
            let kept = self.after.iter().filter(|matched| policy_title(matched.policy) != **name);
            let restored = self.before.iter().filter(|matched| policy_title(matched.policy) == **name);
            let reverted: Vec<MatchedPolicy<'s>> = kept.chain(restored).copied().collect();
            A::of(&reverted, self.circumstances).level(sample) != after
        };
        let alone: Vec<String> = titles.iter().filter(is_responsible).cloned().collect();
        if alone.is_empty() { titles } else { alone }
    }
}

/// Sample drivers for the patterns of policies. The empty name represents objects without a driver.
pub(in crate::policy) fn sample_drivers<'p>(
    policies: impl Iterator<Item = &'p Policy>,
    circumstances: &Circumstances<'_>,
) -> Vec<String> {
    let globs = policies.flat_map(|policy| policy.scope.compared_drivers());
    let mut names = circumstances.sample_names(globs, Alphabet::Driver);
    names.insert(0, String::new());
    names
}

/// Representative keys of taints for the patterns of policies.
pub(in crate::policy) fn sample_keys(patterns: &[String], circumstances: &Circumstances<'_>) -> Vec<String> {
    circumstances.sample_names(patterns.iter().map(String::as_str), Alphabet::Key)
}
