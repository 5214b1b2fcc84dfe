//! The violations of a request: how they are collected, and how much is said about each.
//!
//! The checks of each kind of policy are in the file named after the kind.
//!
//! Invariant: the number of messages that are formatted, and the number of JSON Schema steps, are limited, whatever the
//! object contains.

use std::collections::BTreeMap;

use super::json_schema::{JsonCheck, SchemaBudget, SchemaViolation};
use super::{Policy, Violation};
use crate::admission::{Context, DecodedAttributes};
use crate::rules::ratchet::{BorrowedFinding, RatchetMode};
use crate::rules::report::{FindingBuilder, FindingSink, LazyText, ReportedFinding};
use crate::rules::{FindingLevel, RuleSet};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, Finding, FindingBudget, RuleId};
use tollgate_formats::gotime::{self, Timestamp};

/// Maximum number of policies that are named as denying one toleration or taint.
pub(super) const MAX_DENYING_POLICIES: usize = 16;
/// Number of violations of a request that name the closest entry and what would be allowed. Further ones do not,
/// because each takes a search through all entries.
const MAX_EXPLAINED_VIOLATIONS: usize = 100;

/// Number of JSON Schema steps that are charged for one violation, because it must be described and compared
/// with the stored object.
const STEPS_PER_VIOLATION: u64 = 64;

/// The violations of a request.
#[derive(Clone, Default, Debug)]
pub struct Violations {
    /// The violations that are kept.
    pub list: Vec<Violation>,
    /// The number of violations that are not kept, by level.
    pub left_out: BTreeMap<FindingLevel, usize>,
}

/// One value for the policies that deny and one for the others, such as the steps that they may take. A policy that
/// only warns or records must not use up what one that denies needs.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ByEffect<T> {
    denying: T,
    harmless: T,
}

impl<T> ByEffect<T> {
    pub(super) fn both(value: T) -> ByEffect<T>
    where
        T: Copy,
    {
        ByEffect { denying: value, harmless: value }
    }

    pub(super) fn of_mut(&mut self, level: FindingLevel) -> &mut T {
        if level == FindingLevel::Deny { &mut self.denying } else { &mut self.harmless }
    }
}

/// Collects the violations of a request, within a budget and only of selected rules.
#[derive(Clone)]
pub(super) struct ViolationReport<'r> {
    pub(super) violations: Vec<Violation>,
    pub(super) left_out: BTreeMap<FindingLevel, usize>,
    /// Number of reported violations, including those that were dropped.
    pub(super) reported: usize,
    budget: FindingBudget,
    pub(super) ratchet: Option<RatchetMode<'r>>,
    rules: &'r RuleSet,
    /// The request that is checked.
    pub(super) admission: &'r DecodedAttributes<'r>,
    /// What is known besides the request.
    pub(super) context: &'r Context<'r>,
    /// Step budgets that the JSON Schemas of all policies share.
    schema_budgets: ByEffect<SchemaBudget>,
}

impl<'r> ViolationReport<'r> {
    /// Creates an empty report about a request that keeps violations of the selected rules within a budget, at the level
    /// that the policies have at the time of the request.
    pub(super) fn with_budget(
        budget: FindingBudget,
        rules: &'r RuleSet,
        admission: &'r DecodedAttributes<'r>,
        context: &'r Context<'r>,
    ) -> ViolationReport<'r> {
        ViolationReport {
            violations: Vec::new(),
            left_out: BTreeMap::new(),
            reported: 0,
            budget,
            ratchet: None,
            rules,
            admission,
            context,
            schema_budgets: ByEffect::default(),
        }
    }

    /// The level of a policy's violations at the time of the request.
    pub(super) fn level_of(&self, policy: &Policy) -> FindingLevel {
        policy.level_at(self.admission.now.time)
    }

    /// True if the next violation should name the closest entry and what would be allowed. False after many
    /// violations, because explanations are expensive.
    pub(super) fn should_explain_next(&self) -> bool {
        self.violations.len() < MAX_EXPLAINED_VIOLATIONS && !self.budget.is_used_up()
    }

    /// Reports that an object has more taints, tolerations or parameters than policies check, so that it is denied
    /// unchecked. On an update, only an identical spec excuses it.
    pub(super) fn report_excess(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        what: &str,
        count: usize,
        max: usize,
    ) {
        let short = format!("has {count} {what}, but policies check at most {max} in one object");
        self.report_forbidden(policy, rule, &Path::ROOT.field("spec"), &short);
    }

    /// Checks a JSON value or its keys.
    pub(super) fn check_json(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        check: JsonCheck<'_>,
        value: Value<'_>,
        at: &Path<'_>,
    ) {
        if !self.rules.has(rule) {
            return;
        }
        let level = self.level_of(policy);
        let budget = std::mem::take(self.schema_budgets.of_mut(level));
        let before = self.reported;
        check.check_value(value, at, &budget, &mut |at, SchemaViolation { text, value, on_key }| {
            let detail = || format!("{text}; see {}", policy.describe());
            let report = self.report(policy, rule, at);
            let reported = match value {
                Some(value) => report.invalid(BadValue::Json(value.into()), detail),
                // An error type without a value: only an identical stored violation excuses it.
                None => report.forbidden(detail),
            };
            reported
                .update_if_kept(|finding| finding.on_key = on_key)
                .with_warning_texts(policy, &text, None);
        });
        if let JsonCheck::Contents(_) = check {
            budget.take_available((self.reported - before) as u64 * STEPS_PER_VIOLATION);
        }
        *self.schema_budgets.of_mut(level) = budget;
    }

    /// Reports what a policy forbids, with a text that does not name the policy.
    pub(super) fn report_forbidden(&mut self, policy: &Policy, rule: RuleId, at: &Path<'_>, short: &str) {
        let detail = || format!("{short}; see {}", policy.describe());
        self.report(policy, rule, at).forbidden(detail).with_warning_texts(policy, short, None);
    }

    /// Reports that something is missing that a policy requires, with a text that does not name the policy.
    pub(super) fn report_missing_requirement(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        at: &Path<'_>,
        short: &str,
    ) {
        let detail = || format!("{short} by {}", policy.describe());
        self.report(policy, rule, at).required(detail).with_warning_texts(policy, short, None);
    }

    /// Starts a violation at the level of the policy. The next call in the chain adds the message.
    pub(super) fn report<'s>(
        &'s mut self,
        policy: &'s Policy,
        rule: RuleId,
        at: &'s Path<'s>,
    ) -> FindingBuilder<'s, ViolationSink<'s, 'r>> {
        let denied_from = policy.future_deny_time(self.admission.now.time);
        let level = self.level_of(policy);
        FindingBuilder { rule, at, sink: ViolationSink { report: self, policy, level, denied_from } }
    }
}

/// Receives one violation of one policy, and keeps, counts or drops it.
pub(super) struct ViolationSink<'s, 'r> {
    report: &'s mut ViolationReport<'r>,
    policy: &'s Policy,
    level: FindingLevel,
    /// The time from which the level is Deny, if it is lower until then.
    denied_from: Option<Timestamp>,
}

impl FindingBuilder<'_, ViolationSink<'_, '_>> {
    /// Lowers the level of the violation to `level`, as for `onUnknown: Warn` of a policy that denies. Never raises it.
    pub(super) fn lower_level_to(mut self, level: FindingLevel) -> Self {
        self.sink.level = self.sink.level.min(level);
        self.sink.denied_from = self.sink.denied_from.filter(|_| level == FindingLevel::Deny);
        self
    }

    /// Uses the level of another policy than the one that the message names. If several policies together forbid
    /// something, the first one in force determines the level.
    pub(super) fn with_level_of(mut self, policy: &Policy) -> Self {
        self.sink.level = self.sink.report.level_of(policy);
        self.sink.denied_from = policy.future_deny_time(self.sink.report.admission.now.time);
        self
    }
}

impl<'s> FindingSink<'s> for ViolationSink<'s, '_> {
    fn receive_finding(
        self,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: impl Into<BadValue>,
        detail: impl LazyText,
    ) -> ReportedFinding<'s> {
        let ViolationSink { report, policy, level, denied_from } = self;
        if !report.rules.has(rule) {
            return ReportedFinding::DROPPED;
        }
        report.reported += 1;
        let (location, value) = (policy.location(), value.into());
        let (mut detail, mut text) = (Some(detail), None);
        if let Some(ratchet) = report.ratchet {
            // Without a value, whatever a policy says of the same field is the same, and need not be written for that.
            if kind.shows_value() {
                text = detail.take().map(LazyText::compose);
            }
            let said = text.as_deref().unwrap_or_default();
            let (at, policy) = (&at.owned(), Some(&*location));
            if ratchet.should_drop_finding(&BorrowedFinding {
                rule,
                at,
                kind,
                value: &value,
                detail: said,
                policy,
            }) {
                return ReportedFinding::DROPPED;
            }
        }
        let kept = (!report.budget.is_used_up()).then(|| {
            let mut text = text.or_else(|| detail.map(LazyText::compose)).unwrap_or_default();
            let denied_from = denied_from.map(gotime::rfc3339);
            if let Some(time) = &denied_from {
                text = format!("{text}; will be denied from {time}").into();
            }
            let denied_from = denied_from.map(Into::into);
            Finding { denied_from, ..Finding::new(rule, at.owned(), kind, value, text) }
        });
        if let Some(mut finding) = kept
            && report.budget.shorten_and_spend(&mut finding)
        {
            report.violations.push(Violation { finding, level, policy: location });
            ReportedFinding::from_kept(
                report.violations.last_mut().map(|violation| &mut violation.finding),
                false,
            )
        } else {
            *report.left_out.entry(level).or_default() += 1;
            ReportedFinding::DROPPED
        }
    }
}

impl<'r> ReportedFinding<'r> {
    /// Adds the texts for webhook warnings: a short form of the message, and the contact of the policy and the reason
    /// of the entry, if set.
    pub(super) fn with_warning_texts(
        self,
        policy: &Policy,
        short: impl std::fmt::Display,
        reason: Option<&str>,
    ) -> ReportedFinding<'r> {
        self.update_if_kept(|finding| {
            finding.short = Some(format!("{short} (policy {})", policy.name).into());
            finding.advice = policy.reason_contact_and_docs(reason).map(Into::into);
        })
    }
}
