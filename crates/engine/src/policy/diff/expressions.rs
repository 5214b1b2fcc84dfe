//! Match conditions and validations compared, by the canonical texts of their parts.
//!
//! Whether a condition holds is a circumstance of a request: every outcome is compared ([`condition_combinations`]).
//! Whether a validation fails, and whether an expression cannot be evaluated, are [`ComparedAspect`]s.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::{ComparedAspect, SampleContext, level_at};
use crate::policy::cel::canonical;
use crate::policy::kind::PolicyKind;
use crate::policy::{MatchedPolicy, Policy};
use crate::rules::FindingLevel;
use tollgate_document::doc;
use tollgate_formats::gotime::Timestamp;

/// Maximum number of conditions whose outcomes are combined.
const MAX_COMBINED_CONDITIONS: usize = 10;

/// A part of an expression that must be true.
#[derive(Clone, Debug)]
pub(super) struct ExpressionPart {
    /// The canonical text of the part, by which parts are compared.
    canonical: String,
    /// The whole expression as the user wrote it, on one line.
    written: Rc<str>,
    /// True if the part is the whole expression.
    is_whole: bool,
}

impl PartialEq for ExpressionPart {
    fn eq(&self, other: &ExpressionPart) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for ExpressionPart {}

impl PartialOrd for ExpressionPart {
    fn partial_cmp(&self, other: &ExpressionPart) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ExpressionPart {
    fn cmp(&self, other: &ExpressionPart) -> Ordering {
        self.canonical.cmp(&other.canonical)
    }
}

/// Returns the parts that must all be true of the expressions in a list of a policy: `matchConditions` or `validations`.
fn conjuncts_of(policy: &Policy, list: &str) -> BTreeSet<ExpressionPart> {
    let Ok(document) = doc::parse(&policy.json) else { return BTreeSet::new() };
    let mut parts = BTreeSet::new();
    for item in document.root().get("spec").get(list).items() {
        let text = item.get("expression").str();
        let written: Rc<str> = text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().into();
        let conjuncts = canonical::conjuncts(text).unwrap_or_else(|| [text.to_owned()].into());
        let is_whole = conjuncts.len() == 1;
        parts.extend(conjuncts.into_iter().map(|canonical| ExpressionPart {
            canonical,
            written: Rc::clone(&written),
            is_whole,
        }));
    }
    parts
}

/// Returns the parts of the match conditions of a policy, as canonical texts.
pub(super) fn condition_conjuncts(policy: &Policy) -> BTreeSet<String> {
    conjuncts_of(policy, "matchConditions").into_iter().map(|part| part.canonical).collect()
}

/// Returns the combinations of conditions to compare: the set of conditions that hold, and whether requests with this
/// combination certainly exist. The second result is false if there are too many combinations. If one condition
/// replaces another, they may be equivalent, so requests for which only one of them holds may not exist.
pub(super) fn condition_combinations(
    old: &BTreeSet<String>,
    new: &BTreeSet<String>,
) -> (Vec<(BTreeSet<String>, bool)>, bool) {
    let all: Vec<&String> = old.union(new).filter(|condition| *condition != "false").collect();
    let is_complete = all.len() <= MAX_COMBINED_CONDITIONS;
    let known = all.get(..all.len().min(MAX_COMBINED_CONDITIONS)).unwrap_or_default();
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

/// A sample request, described by what one of its expressions does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FailedExpressionPart {
    /// This part of a validation is false.
    Fails(ExpressionPart),
    /// This part of an expression fails.
    CannotEvaluate(ExpressionPart),
}

/// The validations and match conditions of the policies that bind the user, to be compared by their canonical texts.
pub(super) struct ComparedExpressions<'s> {
    /// Policies that bind the user, with the parts of their validations and of all their expressions.
    policies: Vec<(&'s Policy, BTreeSet<ExpressionPart>, BTreeSet<ExpressionPart>)>,
    now: Timestamp,
}

impl<'s> ComparedAspect<'s> for ComparedExpressions<'s> {
    type Sample = FailedExpressionPart;

    fn samples(
        policies: &[MatchedPolicy<'s>],
        circumstances: &SampleContext<'_>,
    ) -> Vec<FailedExpressionPart> {
        let all = ComparedExpressions::of(policies, circumstances);
        let mut samples = BTreeSet::new();
        for (_, validations, every) in &all.policies {
            samples.extend(validations.iter().cloned().map(FailedExpressionPart::Fails));
            // What only one policy evaluates is not compared: a condition that is removed makes no policy weaker.
            let is_shared = |part: &&ExpressionPart| {
                all.policies.iter().filter(|(.., all)| all.contains(*part)).count() > 1
            };
            samples.extend(every.iter().filter(is_shared).cloned().map(FailedExpressionPart::CannotEvaluate));
        }
        samples.into_iter().collect()
    }

    fn of(policies: &[MatchedPolicy<'s>], circumstances: &SampleContext<'_>) -> ComparedExpressions<'s> {
        let binding =
            policies.iter().filter(|matched| matched.binds && !matched.policy.expressions.is_empty());
        let with_parts = binding.map(|matched| {
            let validations = conjuncts_of(matched.policy, "validations");
            let every =
                validations.union(&conjuncts_of(matched.policy, "matchConditions")).cloned().collect();
            (matched.policy, validations, every)
        });
        ComparedExpressions { policies: with_parts.collect(), now: circumstances.now }
    }

    fn level(&self, sample: &FailedExpressionPart) -> Option<FindingLevel> {
        let refusing = self.policies.iter().filter(|(policy, validations, every)| match sample {
            FailedExpressionPart::Fails(part) => validations.contains(part),
            FailedExpressionPart::CannotEvaluate(part) => {
                every.contains(part) && !policy.expressions.ignores_failures
            }
        });
        refusing.map(|(policy, ..)| level_at(policy, self.now)).max()
    }

    fn describe(sample: &FailedExpressionPart) -> String {
        match sample {
            FailedExpressionPart::Fails(part) => {
                let which = if part.is_whole { "the validation" } else { "a part of the validation" };
                format!("requests that violate {which} `{}`", part.written)
            }
            FailedExpressionPart::CannotEvaluate(part) => {
                let which = if part.is_whole { "the expression" } else { "a part of the expression" };
                format!("requests for which {which} `{}` cannot be evaluated", part.written)
            }
        }
    }

    fn is_about_evaluation_failures(sample: &FailedExpressionPart) -> bool {
        matches!(sample, FailedExpressionPart::CannotEvaluate(_))
    }

    fn subject_if_incomparable(sample: &FailedExpressionPart) -> Option<String> {
        matches!(sample, FailedExpressionPart::Fails(_)).then(|| "validations".to_owned())
    }
}

/// The policies that match, to be compared by whether they deny requests while Tollgate does not respond
/// (`onUnavailable: Deny`).
pub(super) struct DeniedWhileUnavailable<'s>(Vec<MatchedPolicy<'s>>);

impl<'s> ComparedAspect<'s> for DeniedWhileUnavailable<'s> {
    type Sample = PolicyKind;

    fn samples(_: &[MatchedPolicy<'s>], _: &SampleContext<'_>) -> Vec<PolicyKind> {
        PolicyKind::ALL.to_vec()
    }

    fn of(policies: &[MatchedPolicy<'s>], _: &SampleContext<'_>) -> DeniedWhileUnavailable<'s> {
        DeniedWhileUnavailable(policies.to_vec())
    }

    fn level(&self, sample: &PolicyKind) -> Option<FindingLevel> {
        let is_closed = |matched: &MatchedPolicy<'_>| {
            matched.policy.spec.kind() == *sample && matched.policy.fails_closed
        };
        self.0.iter().any(is_closed).then_some(FindingLevel::Deny)
    }

    fn describe(sample: &PolicyKind) -> String {
        format!("objects of {} policies while Tollgate does not respond", sample.name())
    }
}
