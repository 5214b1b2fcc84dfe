//! The violations of a request: how they are collected, and how much is said about each.
//!
//! Not here: what a violation is. The files named after the kinds of policies know that.
//!
//! Invariant: the number of texts that are written, and the steps that JSON takes, do not depend on the object.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::json_schema::{self, Budget, Schema, SchemaViolation, SoughtNames};
use super::{Policy, Violation};
use crate::rules::ratchet::{At, Ratchet, Statement};
use crate::rules::{Level, RuleSet};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, Finding, FindingBudget, RuleId};

/// Policies that are named as denying one toleration or taint.
pub(super) const MAX_DENIALS: usize = 16;
/// Violations of one object that name the closest entry and what would be allowed. More of them help nobody, and each
/// takes a search through all entries.
const MAX_EXPLAINED: usize = 100;

/// Steps of a JSON Schema that one violation counts for: it is described, and compared with those of the stored object.
const STEPS_PER_VIOLATION: u64 = 64;

/// The violations of a request.
#[derive(Clone, Default, Debug)]
pub struct Violations {
    /// Those that are kept.
    pub list: Vec<Violation>,
    /// The number of omitted ones, by level.
    pub left_out: BTreeMap<Level, usize>,
}

/// Collects violations.
#[derive(Clone)]
pub(super) struct ViolationReport<'r> {
    pub(super) violations: Vec<Violation>,
    pub(super) left_out: BTreeMap<Level, usize>,
    /// How many were reported, kept or not.
    pub(super) reported: usize,
    /// The level of the last one, if it was not kept.
    last_omitted: Option<Level>,
    budget: FindingBudget,
    pub(super) ratchet: Option<Ratchet<'r>>,
    rules: &'r RuleSet,
    /// For the JSON Schemas of all policies together.
    schema_budget: Budget,
}

impl<'r> ViolationReport<'r> {
    pub(super) fn within(budget: FindingBudget, rules: &'r RuleSet) -> ViolationReport<'r> {
        ViolationReport {
            violations: Vec::new(),
            left_out: BTreeMap::new(),
            reported: 0,
            last_omitted: None,
            budget,
            ratchet: None,
            rules,
            schema_budget: Budget::default(),
        }
    }

    /// True if the next violation is worth an explanation.
    pub(super) fn explains(&self) -> bool {
        self.violations.len() < MAX_EXPLAINED && !self.budget.is_full()
    }

    /// Reports that an object has more of something than is checked. Only an identical spec is excused.
    pub(super) fn report_excess(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        what: &str,
        count: usize,
        max: usize,
    ) {
        let short = format!("has {count} {what}, but policies check at most {max} in one object");
        let at = Path::ROOT.field("spec");
        self.report_lazily(policy, rule, &at, |_| format!("{short}; see {}", policy.describe()));
        self.shorten_last(policy, short);
    }

    /// Checks JSON: its keys, and everything else if there is a schema.
    pub(super) fn check_json(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        schema: Option<&Schema>,
        value: Value<'_>,
        at: &Path<'_>,
    ) {
        if !self.rules.has(rule) {
            return;
        }
        let budget = std::mem::take(&mut self.schema_budget);
        let before = self.reported;
        let mut visit = |at: &Path<'_>, fault| self.report_schema_violation(policy, rule, at, fault);
        match schema {
            Some(schema) => schema.check(value, at, &budget, &mut visit),
            None => json_schema::check_keys(value, at, &budget, &mut visit),
        }
        budget.charge((self.reported - before) as u64 * STEPS_PER_VIOLATION);
        self.schema_budget = budget;
    }

    /// Checks the keys of a value that expressions look into.
    pub(super) fn check_sought_keys(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        sought: &SoughtNames,
        value: Value<'_>,
        at: &Path<'_>,
    ) {
        if !self.rules.has(rule) {
            return;
        }
        let budget = std::mem::take(&mut self.schema_budget);
        json_schema::check_sought_keys(value, sought, at, &budget, &mut |at, fault| {
            self.report_schema_violation(policy, rule, at, fault)
        });
        self.schema_budget = budget;
    }

    /// Checks the keys that determine the type of a value.
    pub(super) fn check_type_keys(&mut self, policy: &Policy, rule: RuleId, value: Value<'_>, at: &Path<'_>) {
        let budget = std::mem::take(&mut self.schema_budget);
        json_schema::check_type_keys(value, at, &budget, &mut |at, fault| {
            self.report_schema_violation(policy, rule, at, fault)
        });
        self.schema_budget = budget;
    }

    pub(super) fn report_schema_violation(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        at: &Path<'_>,
        fault: SchemaViolation,
    ) {
        let before = self.violations.len();
        let detail = format!("{}; see {}", fault.text, policy.describe());
        let short = fault.text;
        match fault.value {
            Some(value) => {
                self.report_value(policy, rule, at, ErrorType::Invalid, BadValue::Json(value.into()), detail);
            }
            // An error type without a value: only an identical stored violation excuses it.
            None => self.report(policy, rule, at, ErrorType::Forbidden, detail),
        }
        if let Some(said) = self.violations.get_mut(before) {
            said.finding.on_key = fault.on_key;
            said.finding.short = Some(format!("{short} (policy {})", policy.name).into());
            said.finding.advice = policy.advice(None).map(Into::into);
        }
    }

    /// Reports a violation that shows no value. The text is written only if it is kept; `detail` gets whether it is worth
    /// an explanation.
    pub(super) fn report_lazily(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        at: &Path<'_>,
        detail: impl FnOnce(bool) -> String,
    ) {
        let kind = ErrorType::Forbidden;
        let location = policy.location();
        let statement = Statement {
            rule,
            at: At::Walked(at),
            kind,
            value: &BadValue::Omitted,
            detail: "",
            policy: Some(&location),
        };
        let is_known = |ratchet: Ratchet<'_>| ratchet.takes(&statement);
        if self.rules.has(rule) && self.ratchet.is_some_and(is_known) {
            self.reported += 1;
            self.last_omitted = Some(Level::Audit);
            return;
        }
        let detail = if self.budget.is_full() { String::new() } else { detail(self.explains()) };
        let ratchet = self.ratchet.take();
        self.report(policy, rule, at, kind, detail);
        self.ratchet = ratchet;
    }

    /// Reports a violation at the policy's own level.
    pub(super) fn report(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.report_value(policy, rule, at, kind, BadValue::Omitted, detail);
    }

    /// Reports a violation with the offending value.
    pub(super) fn report_value(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: BadValue,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if !self.rules.has(rule) {
            // Not kept: what is said of it next is not about the one before.
            self.last_omitted = Some(Level::Audit);
            return;
        }
        let mut finding = Finding::new(rule, at.owned(), kind, value, detail);
        self.reported += 1;
        self.last_omitted = None;
        let location = policy.location();
        if self.ratchet.is_some_and(|ratchet| ratchet.takes(&Statement::of(&finding, Some(&location)))) {
            self.last_omitted = Some(Level::Audit);
        } else if self.budget.take(&mut finding) {
            self.violations.push(Violation { finding, level: policy.action, policy: location.into() });
        } else {
            self.last_omitted = Some(policy.action);
            *self.left_out.entry(policy.action).or_default() += 1;
        }
    }

    /// Says the last violation in fewer words, for warnings of the webhook.
    pub(super) fn shorten_last(&mut self, policy: &Policy, short: impl std::fmt::Display) {
        if let (None, Some(last)) = (self.last_omitted, self.violations.last_mut()) {
            last.finding.short = Some(format!("{short} (policy {})", policy.name).into());
            last.finding.advice = policy.advice(None).map(Into::into);
        }
    }

    /// Adds the reason of the policy's entry to what a second warning says about the last violation.
    pub(super) fn explain_last(&mut self, policy: &Policy, reason: Option<&str>) {
        if let (None, Some(last)) = (self.last_omitted, self.violations.last_mut()) {
            last.finding.advice = policy.advice(reason).map(Into::into);
        }
    }

    /// Lowers the level of the last violation: `unknown: Warn` of a policy that denies.
    pub(super) fn lower_last_to(&mut self, level: Level) {
        match (self.last_omitted, self.violations.last_mut()) {
            (None, Some(last)) => last.level = last.level.min(level),
            (Some(last_omitted), _) if last_omitted > level => {
                if let Some(count) = self.left_out.get_mut(&last_omitted) {
                    *count -= 1;
                    *self.left_out.entry(level).or_default() += 1;
                }
                self.left_out.retain(|_, count| *count > 0);
                self.last_omitted = Some(level);
            }
            _ => {}
        }
    }
}
