//! Match conditions and validations compared, by the canonical texts of their parts.
//!
//! Whether a condition holds is a circumstance of a request: every outcome is compared ([`condition_combinations`]).
//! Whether a validation fails, and whether an expression cannot be evaluated, are [`Aspect`]s.

use std::collections::BTreeSet;

use super::{Aspect, Circumstances, level_at};
use crate::policy::cel::canonical;
use crate::policy::kind::PolicyKind;
use crate::policy::{MatchedPolicy, Policy};
use crate::rules::Level;
use tollgate_document::doc;
use tollgate_formats::gotime::Timestamp;

/// Maximum number of conditions whose outcomes are combined.
const MAX_CONDITIONS: usize = 10;

/// Beginning of the text for differences in expressions that fail.
pub(super) const FAILED_EXPRESSION: &str = "requests for which an expression cannot be evaluated";

/// The parts of the expressions in a list of a policy; all of them must be true.
fn parts(policy: &Policy, list: &str) -> BTreeSet<String> {
    let Ok(document) = doc::parse(&policy.json) else { return BTreeSet::new() };
    let items = document.root().get("spec").get(list).items();
    let texts = items.map(|item| item.get("expression").str());
    texts.flat_map(|text| canonical::conjuncts(text).unwrap_or_else(|| [text.to_owned()].into())).collect()
}

/// The parts of the match conditions of a policy.
pub(super) fn conditions(policy: &Policy) -> BTreeSet<String> {
    parts(policy, "matchConditions")
}

/// The combinations of conditions to compare: the set of conditions that hold, and whether a request with
/// this combination can be assumed to exist. The second result is false if there are too many.
///
/// If one condition replaces another, they may be equivalent, so a request for which only one of them holds
/// may not exist.
pub(super) fn condition_combinations(
    old: &BTreeSet<String>,
    new: &BTreeSet<String>,
) -> (Vec<(BTreeSet<String>, bool)>, bool) {
    let all: Vec<&String> = old.union(new).filter(|condition| *condition != "false").collect();
    let is_complete = all.len() <= MAX_CONDITIONS;
    let known = all.get(..all.len().min(MAX_CONDITIONS)).unwrap_or_default();
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).filter(|condition| *condition != "false").cloned().collect()
    };
    let (only_old, only_new) = (only(old, new), only(new, old));
    let is_replaced = !only_old.is_empty() && !only_new.is_empty();
    let mut found = Vec::new();
    for bits in 0..1_usize << known.len() {
        let holds = known.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
        let holding: BTreeSet<String> = holds.map(|(_, condition)| (*condition).clone()).collect();
        let mut replaced = only_old.iter().chain(&only_new).map(|condition| holding.contains(condition));
        let first = replaced.next();
        let is_certain = !is_replaced || replaced.all(|holds| Some(holds) == first);
        found.push((holding, is_certain));
    }
    (found, is_complete)
}

/// The outcome of expressions for a sample request.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum SampleOutcome {
    /// This part of a validation is false.
    Fails(String),
    /// This part of an expression fails.
    CannotEvaluate(String),
}

/// The expressions of policies that are compared.
pub(super) struct EvaluatedExpressions<'s> {
    /// Policies that bind the user, with the parts of their validations and of all their expressions.
    policies: Vec<(&'s Policy, BTreeSet<String>, BTreeSet<String>)>,
    now: Timestamp,
}

impl<'s> Aspect<'s> for EvaluatedExpressions<'s> {
    type Sample = SampleOutcome;

    fn samples(policies: &[MatchedPolicy<'s>], circumstances: &Circumstances<'_>) -> Vec<SampleOutcome> {
        let all = EvaluatedExpressions::of(policies, circumstances);
        let mut samples = BTreeSet::new();
        for (_, validations, every) in &all.policies {
            samples.extend(validations.iter().cloned().map(SampleOutcome::Fails));
            // What only one policy evaluates is not compared: a condition that is removed makes no policy weaker.
            let is_shared =
                |part: &&String| all.policies.iter().filter(|(.., all)| all.contains(*part)).count() > 1;
            samples.extend(every.iter().filter(is_shared).cloned().map(SampleOutcome::CannotEvaluate));
        }
        samples.into_iter().collect()
    }

    fn of(policies: &[MatchedPolicy<'s>], circumstances: &Circumstances<'_>) -> EvaluatedExpressions<'s> {
        let binding =
            policies.iter().filter(|matched| matched.binds && !matched.policy.expressions.is_empty());
        let with_parts = binding.map(|matched| {
            let validations = parts(matched.policy, "validations");
            let every = validations.union(&conditions(matched.policy)).cloned().collect();
            (matched.policy, validations, every)
        });
        EvaluatedExpressions { policies: with_parts.collect(), now: circumstances.now }
    }

    fn level(&self, sample: &SampleOutcome) -> Option<Level> {
        let refusing = self.policies.iter().filter(|(policy, validations, every)| match sample {
            SampleOutcome::Fails(part) => validations.contains(part),
            SampleOutcome::CannotEvaluate(part) => {
                every.contains(part) && !policy.expressions.ignore_failures()
            }
        });
        refusing.map(|(policy, ..)| level_at(policy, self.now)).max()
    }

    fn describe(sample: &SampleOutcome) -> String {
        match sample {
            SampleOutcome::Fails(part) => format!("requests that violate the validation {part}"),
            SampleOutcome::CannotEvaluate(part) => format!("{FAILED_EXPRESSION}: {part}"),
        }
    }

    fn compared_text_subject(sample: &SampleOutcome) -> Option<String> {
        matches!(sample, SampleOutcome::Fails(_)).then(|| "validations".to_owned())
    }
}

/// The policies that apply while Tollgate does not respond, by kind.
pub(super) struct WhileUnavailable<'s>(Vec<MatchedPolicy<'s>>);

impl<'s> Aspect<'s> for WhileUnavailable<'s> {
    type Sample = PolicyKind;

    fn samples(_: &[MatchedPolicy<'s>], _: &Circumstances<'_>) -> Vec<PolicyKind> {
        PolicyKind::ALL.to_vec()
    }

    fn of(policies: &[MatchedPolicy<'s>], _: &Circumstances<'_>) -> WhileUnavailable<'s> {
        WhileUnavailable(policies.to_vec())
    }

    fn level(&self, sample: &PolicyKind) -> Option<Level> {
        let is_closed = |matched: &MatchedPolicy<'_>| {
            matched.policy.spec.kind() == *sample && matched.policy.fails_closed
        };
        self.0.iter().any(is_closed).then_some(Level::Deny)
    }

    fn describe(sample: &PolicyKind) -> String {
        format!("objects of {} policies while Tollgate does not respond", sample.name())
    }
}
