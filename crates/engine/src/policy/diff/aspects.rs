//! Aspects of requests that policies restrict: sample values, evaluated with the policies of both sets.
//!
//! Each kind of policy implements [`ComparedAspect`] beside its check. The scope of policies is handled elsewhere.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::ChangeEffect;
use super::expressions::{ComparedExpressions, DeniedWhileUnavailable};
use super::names::{Alphabet, sample_names_for_globs};
use crate::admission::Operation;
use crate::policy::parameters::ParameterPoliciesToCompare;
use crate::policy::taint::TaintPoliciesToCompare;
use crate::policy::taint_rule::TaintRulePoliciesToCompare;
use crate::policy::toleration::{DefaultTolerationsToCompare, TolerationPoliciesToCompare};
use crate::policy::{MatchedPolicy, Policy};
use crate::rules::FindingLevel;
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::Timestamp;

/// Maximum number of differences of one kind that are described for one combination of policies.
const MAX_DESCRIBED_DIFFERENCES: usize = 8;

/// What sample requests have in common: kind of object, operation, user and time.
pub(in crate::policy) struct SampleContext<'c> {
    pub(in crate::policy) kind: ApiKind,
    pub(in crate::policy) operation: Operation,
    pub(in crate::policy) user: Value<'c>,
    pub(in crate::policy) now: Timestamp,
    /// True if there were too many combinations of globs, so that the samples do not cover all names.
    pub(super) incomplete: Cell<bool>,
}

impl SampleContext<'_> {
    /// Returns names so that each combination of the globs that some name can match is matched by one of them. Notes if
    /// there are too many combinations.
    fn sample_names<'g>(&self, globs: impl Iterator<Item = &'g str>, alphabet: Alphabet) -> Vec<String> {
        let found = sample_names_for_globs(globs, alphabet);
        self.incomplete.set(self.incomplete.get() || !found.complete);
        found.names
    }
}

/// A property of requests that policies restrict, such as tolerations. Two policy sets are compared aspect by
/// aspect.
pub(in crate::policy) trait ComparedAspect<'s>: Sized {
    /// A value of this aspect that stands for all values that the policies treat alike.
    type Sample: Clone;

    /// Collects what these policies say about this aspect.
    fn of(policies: &[MatchedPolicy<'s>], circumstances: &SampleContext<'_>) -> Self;

    /// Returns sample values that cover every distinction that the policies make.
    fn samples(&self, circumstances: &SampleContext<'_>) -> Vec<Self::Sample>;

    /// Returns the level at which the policies report the sample; `None` if they allow it.
    fn level(&self, sample: &Self::Sample, circumstances: &SampleContext<'_>) -> Option<FindingLevel>;

    fn describe(sample: &Self::Sample) -> String;

    /// True if the sample stands for requests for which an expression cannot be evaluated.
    fn is_about_evaluation_failures(_: &Self::Sample) -> bool {
        false
    }

    /// For a sample whose value cannot be compared with others, such as a JSON Schema, returns what it is about, such as a
    /// driver and a key. If one value is removed and another added for the same subject, the effect of the change is
    /// unknown, because neither value is known to be stricter.
    fn subject_if_incomparable(_: &Self::Sample) -> Option<String> {
        None
    }

    /// Selects the samples to report among those with the same difference, because many samples say the same.
    fn most_informative(samples: Vec<Self::Sample>) -> Vec<Self::Sample> {
        samples
    }

    /// Returns the word for the result of a request at this level, such as `denied`.
    fn result_word(level: Option<FindingLevel>) -> &'static str {
        verdict_word(level)
    }
}

/// Returns the word for the result of a request of which the most severe finding has this level, such as `denied`.
pub fn verdict_word(level: Option<FindingLevel>) -> &'static str {
    match level {
        None => "allowed",
        Some(FindingLevel::Audit) => "audited",
        Some(FindingLevel::Warn) => "warned",
        Some(FindingLevel::Deny) => "denied",
    }
}

/// A difference between two sets of policies, independent of where it occurs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FoundDifference {
    pub(super) effect: ChangeEffect,
    pub(super) what: String,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    /// True if it is about requests for which an expression cannot be evaluated.
    pub(super) is_about_failures: bool,
}

/// Compares all aspects under two groups of policies that apply; returns the differences and the policies whose change
/// makes each of them.
pub(super) fn compare_aspects<'s>(
    before: &[MatchedPolicy<'s>],
    after: &[MatchedPolicy<'s>],
    circumstances: &SampleContext<'_>,
    changed: &BTreeSet<String>,
) -> Vec<(FoundDifference, Vec<String>)> {
    let sides = ComparedSets { before, after, circumstances, changed };
    let mut found = Vec::new();
    sides.compare_aspect::<TolerationPoliciesToCompare<'s>>(&mut found);
    sides.compare_aspect::<DefaultTolerationsToCompare<'s>>(&mut found);
    sides.compare_aspect::<TaintPoliciesToCompare<'s>>(&mut found);
    sides.compare_aspect::<TaintRulePoliciesToCompare<'s>>(&mut found);
    sides.compare_aspect::<ParameterPoliciesToCompare<'s>>(&mut found);
    sides.compare_aspect::<ComparedExpressions<'s>>(&mut found);
    sides.compare_aspect::<DeniedWhileUnavailable<'s>>(&mut found);
    found
}

/// The policies of both sets that match the same requests, ready to be compared aspect by aspect.
struct ComparedSets<'c, 's> {
    before: &'c [MatchedPolicy<'s>],
    after: &'c [MatchedPolicy<'s>],
    circumstances: &'c SampleContext<'c>,
    changed: &'c BTreeSet<String>,
}

impl<'s> ComparedSets<'_, 's> {
    fn compare_aspect<A: ComparedAspect<'s>>(&self, found: &mut Vec<(FoundDifference, Vec<String>)>) {
        let both: Vec<MatchedPolicy<'s>> = self.before.iter().chain(self.after).copied().collect();
        let [old, new, all] = [self.before, self.after, &both].map(|side| A::of(side, self.circumstances));
        let mut by_levels: BTreeMap<_, Vec<A::Sample>> = BTreeMap::new();
        let mut differing = Vec::new();
        // For each subject, whether a value was added and whether one was removed.
        let mut subjects: BTreeMap<String, (bool, bool)> = BTreeMap::new();
        for sample in all.samples(self.circumstances) {
            let levels = (old.level(&sample, self.circumstances), new.level(&sample, self.circumstances));
            if levels.0 == levels.1 {
                continue;
            }
            if let Some(subject) = A::subject_if_incomparable(&sample) {
                let (added, removed) = subjects.entry(subject).or_default();
                *added |= levels.0.is_none();
                *removed |= levels.1.is_none();
            }
            differing.push((levels, sample));
        }
        for ((before, after), sample) in differing {
            let is_replaced = A::subject_if_incomparable(&sample)
                .is_some_and(|subject| subjects.get(&subject) == Some(&(true, true)));
            by_levels.entry((before, after, is_replaced)).or_default().push(sample);
        }
        for ((before, after, is_replaced), samples) in by_levels {
            let effect = match before > after {
                _ if is_replaced => ChangeEffect::Unknown,
                true => ChangeEffect::Wider,
                false => ChangeEffect::Stricter,
            };
            for sample in A::most_informative(samples).into_iter().take(MAX_DESCRIBED_DIFFERENCES) {
                let policies = self.responsible_policies::<A>(&sample, after);
                let (what, before, after) =
                    (A::describe(&sample), A::result_word(before), A::result_word(after));
                let is_about_failures = A::is_about_evaluation_failures(&sample);
                found.push((FoundDifference { effect, what, before, after, is_about_failures }, policies));
            }
        }
    }

    /// Returns the policies whose change causes the difference: undoing the change of one of them removes it. If no
    /// single change causes it, all changed policies that match.
    fn responsible_policies<A: ComparedAspect<'s>>(
        &self,
        sample: &A::Sample,
        after: Option<FindingLevel>,
    ) -> Vec<String> {
        let both = self.before.iter().chain(self.after);
        let titles: BTreeSet<String> = both.map(|matched| matched.policy.title()).collect();
        let titles: Vec<String> = titles.into_iter().filter(|title| self.changed.contains(title)).collect();
        let is_responsible = |name: &&String| {
            let kept = self.after.iter().filter(|matched| matched.policy.title() != **name);
            let restored = self.before.iter().filter(|matched| matched.policy.title() == **name);
            let reverted: Vec<MatchedPolicy<'s>> = kept.chain(restored).copied().collect();
            A::of(&reverted, self.circumstances).level(sample, self.circumstances) != after
        };
        let alone: Vec<String> = titles.iter().filter(is_responsible).cloned().collect();
        if alone.is_empty() { titles } else { alone }
    }
}

/// Returns sample drivers for the globs of policies. The empty name represents objects without a driver.
pub(in crate::policy) fn sample_drivers<'p>(
    policies: impl Iterator<Item = &'p Policy>,
    circumstances: &SampleContext<'_>,
) -> Vec<String> {
    let globs = policies.flat_map(|policy| policy.scope.driver_patterns());
    let mut names = circumstances.sample_names(globs, Alphabet::Driver);
    names.insert(0, String::new());
    names
}

/// Returns sample taint keys for the globs of policies.
pub(in crate::policy) fn sample_keys(patterns: &[String], circumstances: &SampleContext<'_>) -> Vec<String> {
    circumstances.sample_names(patterns.iter().map(String::as_str), Alphabet::Key)
}
