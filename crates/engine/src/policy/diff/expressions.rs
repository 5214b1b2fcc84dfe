//! Match conditions and validations compared, by the canonical texts of their parts.
//!
//! Whether a condition holds is a circumstance of a request: every outcome is compared ([`condition_combinations`]).
//! Whether a validation fails, and whether an expression cannot be evaluated, are [`ComparedAspect`]s.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{ComparedAspect, SampleContext};
use crate::policy::cel::canonical;
use crate::policy::kind::PolicyKind;
use crate::policy::{MatchedPolicy, Policy};
use crate::rules::FindingLevel;
use tollgate_document::doc;

/// Maximum number of conditions whose outcomes are combined.
const MAX_COMBINED_CONDITIONS: usize = 10;

/// The parts of expressions that must be true, by their canonical texts, by which parts are compared.
type ExpressionParts = BTreeMap<String, WrittenExpression>;

/// The expression that a part belongs to.
#[derive(Clone, Debug)]
struct WrittenExpression {
    /// As the user wrote it, on one line.
    text: Rc<str>,
    /// True if the part is not the whole expression.
    is_part: bool,
}

/// Returns the parts that must all be true of the expressions in a list of a policy: `matchConditions` or `validations`.
fn conjuncts_of(policy: &Policy, list: &str) -> ExpressionParts {
    let Ok(document) = doc::parse(&policy.json) else { return ExpressionParts::new() };
    let mut parts = ExpressionParts::new();
    for item in document.root().get("spec").get(list).items() {
        let text = item.get("expression").str();
        let written: Rc<str> = text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().into();
        let conjuncts = canonical::conjuncts(text).unwrap_or_else(|| [text.to_owned()].into());
        let expression = WrittenExpression { text: written, is_part: conjuncts.len() > 1 };
        for canonical in conjuncts {
            parts.entry(canonical).or_insert_with(|| expression.clone());
        }
    }
    parts
}

/// Returns the parts of the match conditions of a policy, as canonical texts.
pub(super) fn condition_conjuncts(policy: &Policy) -> BTreeSet<String> {
    conjuncts_of(policy, "matchConditions").into_keys().collect()
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
#[derive(Clone, Debug)]
pub(super) struct FailedExpressionPart {
    /// True if this part of an expression cannot be evaluated; otherwise, this part of a validation is false.
    is_unevaluable: bool,
    canonical: String,
    expression: WrittenExpression,
}

/// The validations and match conditions of the policies that bind the user, to be compared by their canonical texts.
/// With each policy, the parts of its validations and of all its expressions.
pub(super) struct ComparedExpressions<'s>(Vec<(&'s Policy, ExpressionParts, ExpressionParts)>);

impl<'s> ComparedAspect<'s> for ComparedExpressions<'s> {
    type Sample = FailedExpressionPart;

    fn of(policies: &[MatchedPolicy<'s>], _: &SampleContext<'_>) -> ComparedExpressions<'s> {
        let binding =
            policies.iter().filter(|matched| matched.binds && !matched.policy.expressions.is_empty());
        let with_parts = binding.map(|matched| {
            let validations = conjuncts_of(matched.policy, "validations");
            let mut every = conjuncts_of(matched.policy, "matchConditions");
            every.extend(validations.clone());
            (matched.policy, validations, every)
        });
        ComparedExpressions(with_parts.collect())
    }

    fn samples(&self, _: &SampleContext<'_>) -> Vec<FailedExpressionPart> {
        let mut samples: BTreeMap<(bool, &String), &WrittenExpression> = BTreeMap::new();
        for (_, validations, every) in &self.0 {
            // What only one policy evaluates is not compared: a condition that is removed makes no policy weaker.
            let is_shared = |(part, _): &(&String, &WrittenExpression)| {
                self.0.iter().filter(|(.., all)| all.contains_key(*part)).count() > 1
            };
            let unevaluable = every.iter().filter(is_shared).map(|part| (true, part));
            for (is_unevaluable, (part, expression)) in
                validations.iter().map(|part| (false, part)).chain(unevaluable)
            {
                samples.entry((is_unevaluable, part)).or_insert(expression);
            }
        }
        let sample = |((is_unevaluable, canonical), expression): ((bool, &String), &WrittenExpression)| {
            let (canonical, expression) = (canonical.clone(), expression.clone());
            FailedExpressionPart { is_unevaluable, canonical, expression }
        };
        samples.into_iter().map(sample).collect()
    }

    fn level(
        &self,
        sample: &FailedExpressionPart,
        circumstances: &SampleContext<'_>,
    ) -> Option<FindingLevel> {
        let refusing = self.0.iter().filter(|(policy, validations, every)| {
            if sample.is_unevaluable {
                every.contains_key(&sample.canonical) && !policy.expressions.ignores_failures
            } else {
                validations.contains_key(&sample.canonical)
            }
        });
        refusing.map(|(policy, ..)| policy.level_at(Some(circumstances.now))).max()
    }

    fn describe(sample: &FailedExpressionPart) -> String {
        let WrittenExpression { text, is_part } = &sample.expression;
        let which = if *is_part { "a part of the" } else { "the" };
        if sample.is_unevaluable {
            format!("requests for which {which} expression `{text}` cannot be evaluated")
        } else {
            format!("requests that violate {which} validation `{text}`")
        }
    }

    fn is_about_evaluation_failures(sample: &FailedExpressionPart) -> bool {
        sample.is_unevaluable
    }

    fn subject_if_incomparable(sample: &FailedExpressionPart) -> Option<String> {
        (!sample.is_unevaluable).then(|| "validations".to_owned())
    }
}

/// The policies that match, to be compared by whether they deny requests while Tollgate does not respond
/// (`onUnavailable: Deny`).
pub(super) struct DeniedWhileUnavailable<'s>(Vec<MatchedPolicy<'s>>);

impl<'s> ComparedAspect<'s> for DeniedWhileUnavailable<'s> {
    type Sample = PolicyKind;

    fn of(policies: &[MatchedPolicy<'s>], _: &SampleContext<'_>) -> DeniedWhileUnavailable<'s> {
        DeniedWhileUnavailable(policies.to_vec())
    }

    fn samples(&self, _: &SampleContext<'_>) -> Vec<PolicyKind> {
        PolicyKind::ALL.to_vec()
    }

    fn level(&self, sample: &PolicyKind, _: &SampleContext<'_>) -> Option<FindingLevel> {
        let is_closed = |matched: &MatchedPolicy<'_>| {
            matched.policy.spec.kind() == *sample && matched.policy.fails_closed
        };
        self.0.iter().any(is_closed).then_some(FindingLevel::Deny)
    }

    fn describe(sample: &PolicyKind) -> String {
        format!("objects of {} policies while Tollgate does not respond", sample.name())
    }
}
