//! Admission policies: who may tolerate what, which taints may be published, how much a DeviceTaintRule may affect.
//!
//! Policy files are compiled into a [`PolicySet`], all or none ([`PolicySet::load`]). A set checks one request at a time
//! and uses no files, no clock and no cluster: its input is [`Attributes`] and [`Context`].
//!
//! Invariants: allow entries of several policies add up, and a deny entry wins; a criterion that cannot be evaluated is a
//! violation, never "no match"; a stored violation that an update does not change is not reported, unless it could
//! spread; an empty set costs nothing.

mod cel;
mod changes;
mod compare;
mod conditions;
mod entries;
mod fields;
mod glob;
mod index;
mod json_schema;
mod kind;
mod load;
mod matching;
mod missing;
mod parameters;
mod relevance;
mod schema;
mod taint;
mod taint_rule;
mod toleration;

pub(crate) use compare::ComparedNamespace;
#[cfg(test)]
pub(crate) use conditions::evaluate;
pub(crate) use fields::TEST_FILE;
pub(crate) use glob::matches as glob_matches;
pub(crate) use kind::PolicyKind;
pub use load::{PolicyError, PolicyFile, ReadFile};
pub(crate) use load::{document_errors, policy_errors};
pub(crate) use missing::{MissingTolerations, missing_tolerations};
pub(crate) use schema::{Struct, Ty, field, near, required};

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::admission::{Context, DecodedAttributes, Operation};
use crate::api::convert;
use crate::api::view::Object;
use crate::defaults::Edit;
use crate::doc::{Doc, Value};
use crate::field::Path;
use crate::finding::{BadValue, ErrorType, Finding, FindingBudget, RuleId};
use crate::profile::Version;
use crate::rules::policy::POLICY_LOOKUP;
use crate::rules::ratchet::{self, Extent, KnownFaults, Ratchet, Statement};
use crate::rules::{Level, RuleSet};
use cel::Variables;
use conditions::{Expressions, RequestVariables};
use index::NamespaceIndex;
use json_schema::{Budget, Schema, SchemaViolation};
use kind::{PolicySpec, check};
use matching::{Exemptions, Scope, ScopeMatch};

/// Compiled policies.
#[derive(Debug, Default)]
pub struct PolicySet {
    policies: Vec<Policy>,
    index: NamespaceIndex,
    digest: Box<str>,
}

/// One policy.
#[derive(Debug)]
struct Policy {
    name: Box<str>,
    /// `file:line`
    source: Box<str>,
    scope: Scope,
    exempt: Exemptions,
    action: Level,
    /// Whom to ask about it.
    contact: Option<Box<str>>,
    /// Where it is explained.
    docs: Option<Box<str>>,
    expressions: Expressions,
    spec: PolicySpec,
    /// The document as JSON.
    json: Box<str>,
    /// The fields that name schema files, and the contents of those files.
    schema_files: Vec<(String, String)>,
}

/// A violation of a policy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Violation {
    /// What is wrong.
    pub finding: Finding,
    /// How it affects the verdict.
    pub level: Level,
    /// `file:line name` of the policy.
    pub policy: Box<str>,
}

/// A policy that matches, and whether it binds the user. Its allow entries count either way: an exemption makes nothing
/// stricter.
#[derive(Clone, Copy, Debug)]
struct MatchedPolicy<'s> {
    policy: &'s Policy,
    binds: bool,
}

impl PolicySet {
    /// No policies.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Number of policies.
    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// True if some policy needs the labels of namespaces.
    pub fn needs_labels(&self) -> bool {
        self.policies.iter().any(|policy| policy.scope.needs_labels() || policy.expressions.need_namespace())
    }

    /// A hash of everything the set was compiled from: equal digests give equal results.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The violations of a request, within a budget. For an update, only those that it introduces.
    pub(crate) fn judge(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
        rules: &RuleSet,
        budget: FindingBudget,
    ) -> Violations {
        if self.is_empty() || admission.is_status() {
            return Violations::default();
        }
        let extent = ratchet::extent(admission);
        // An update that only narrows, weakens or slows a taint is always allowed.
        if extent == Extent::Within {
            return Violations::default();
        }
        let known = RefCell::new(KnownFaults::new(extent));
        let mut report = ViolationReport::within(budget, rules);
        let matched = self.matching(admission, context, &mut report);
        // Violations of the request as a whole are always reported.
        let before = report.clone();
        let first = before.violations.len();
        check(&matched, admission, context, &mut report);
        if let Some(stored) = admission.for_stored_object()
            && extent != Extent::Wider
            && (report.violations.len() > first || !report.left_out.is_empty())
        {
            let mut learned = ViolationReport::within(FindingBudget::endless(ratchet::TEXT), rules);
            learned.ratchet = Some(Ratchet::Learn(&known, stored.object));
            check(&matched, &stored, context, &mut learned);
            if report.left_out.is_empty() {
                let mut known = known.borrow_mut();
                let mut index = 0;
                report.violations.retain(|violation| {
                    index += 1;
                    index <= first
                        || !known.excuses(
                            &Statement::of(&violation.finding, Some(&violation.policy)),
                            admission.object,
                        )
                });
            } else {
                // The omitted violations may be the new ones: check again, and only the new ones count against the budget.
                let mut again =
                    ViolationReport { ratchet: Some(Ratchet::Ask(&known, admission.object)), ..before };
                check(&matched, admission, context, &mut again);
                report = ViolationReport { ratchet: None, ..again };
            }
        }
        let mut violations = Violations { list: report.violations, left_out: report.left_out };
        // After the comparison with stored violations, because the counts change on their own.
        taint_rule::append_counts(&mut violations.list, admission, context);
        violations
    }

    /// The default tolerations of a new claim or template.
    pub(crate) fn defaults(&self, admission: &DecodedAttributes<'_>, context: &Context<'_>) -> Vec<Edit> {
        if self.is_empty() || admission.operation != Operation::Create || !admission.subresource.is_empty() {
            return Vec::new();
        }
        let nothing = RuleSet::compile(|_| false);
        let mut report = ViolationReport::within(FindingBudget::default(), &nothing);
        let matched = self.matching(admission, context, &mut report);
        toleration::defaults(&matched, admission, context.profile)
    }

    /// Why the default tolerations of a new claim or template cannot be determined: one reason for each such policy.
    pub(crate) fn undecided_defaults(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
    ) -> Vec<Finding> {
        if self.is_empty() || admission.operation != Operation::Create || !admission.subresource.is_empty() {
            return Vec::new();
        }
        let every = RuleSet::compile(|_| true);
        let mut report = ViolationReport::within(FindingBudget::default(), &every);
        self.matching(admission, context, &mut report);
        let locations: Vec<String> =
            self.policies.iter().filter(|policy| policy.adds_defaults()).map(Policy::location).collect();
        let is_undecided = |violation: &Violation| {
            violation.finding.kind == ErrorType::Internal
                && locations.iter().any(|location| **location == *violation.policy)
        };
        report.violations.into_iter().filter(is_undecided).map(|violation| violation.finding).collect()
    }

    /// The policies that match a request. Violations of the request as a whole are reported.
    fn matching(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
        report: &mut ViolationReport<'_>,
    ) -> Vec<MatchedPolicy<'_>> {
        let ours: Vec<&Policy> = match admission.object_namespace() {
            None => self.policies.iter().collect(),
            Some(namespace) => {
                let candidates = self.index.candidates(namespace).into_iter();
                candidates.filter_map(|number| self.policies.get(number as usize)).collect()
            }
        };
        let ours =
            || ours.iter().copied().filter(|policy| policy.scope.includes_kind(admission.object.kind()));
        let seen = ours()
            .any(|policy| !policy.expressions.is_empty())
            .then(|| RequestVariables::of(admission, context));
        let (request, namespace) = seen.as_ref().map(RequestVariables::parse).unwrap_or_default();
        // Whoever sends a request chooses its version, and must not thereby choose what a policy sees.
        let reshaped = [Some(admission.object), admission.old_object].map(|object| {
            let object = object.filter(|_| seen.is_some())?;
            convert::reshaped(object.value(), object.kind(), object.version, Version::V1)
        });
        let [object, old] = &reshaped;
        let object = object.as_ref().map_or(admission.object.value(), Doc::root);
        let sent = admission.old_object.map_or(Value::absent(), Object::value);
        let old = old.as_ref().map_or(sent, Doc::root);
        let variables = Variables::new(object, old, root(request.as_ref()), root(namespace.as_ref()));
        let mut matched = Vec::new();
        for policy in ours() {
            match policy.scope.applies(admission.operation, admission.object_namespace(), context.labels) {
                ScopeMatch::No => continue,
                ScopeMatch::Yes => {}
                ScopeMatch::Unknown
                    if policy.limits_tolerations_only() && !toleration::has_tolerations(admission) =>
                {
                    continue;
                }
                ScopeMatch::Unknown => {
                    let namespace = admission.object_namespace();
                    debug_assert!(namespace.is_some(), "only labels of a namespace can be unknown");
                    let namespace = namespace.unwrap_or_default();
                    let detail = format!(
                        "{} selects namespaces by label, but the labels of namespace {namespace:?} are not available",
                        policy.describe()
                    );
                    let metadata = Path::ROOT.field("metadata");
                    report.report(
                        policy,
                        POLICY_LOOKUP,
                        &metadata.field("namespace"),
                        ErrorType::Internal,
                        detail,
                    );
                    continue;
                }
            }
            if !policy.conditions_hold(&variables, admission, context, report) {
                continue;
            }
            let binds = !policy.exempt.cover(admission.user);
            if binds {
                policy.check_validations(&variables, admission, context, report);
            }
            matched.push(MatchedPolicy { policy, binds });
        }
        matched
    }
}

fn root<'d>(document: Option<&'d Doc<'_>>) -> Value<'d> {
    document.map_or(Value::absent(), Doc::root)
}

impl Policy {
    /// `policy research at policies/research.yaml:1 (contact: gpu-team, docs: https://…)`
    fn describe(&self) -> String {
        let help: Vec<String> = [("contact", &self.contact), ("docs", &self.docs)]
            .into_iter()
            .filter_map(|(name, text)| Some(format!("{name}: {}", text.as_deref()?)))
            .collect();
        let help = if help.is_empty() { String::new() } else { format!(" ({})", help.join(", ")) };
        format!("policy {} at {}{help}", self.name, self.source)
    }

    /// True if it can say nothing about an object without tolerations.
    fn limits_tolerations_only(&self) -> bool {
        self.expressions.is_empty() && self.spec.limits_tolerations_only()
    }

    /// `policies/research.yaml:1 research`
    /// True if it adds tolerations to claims. A policy that only audits changes nothing.
    fn adds_defaults(&self) -> bool {
        self.spec.has_defaults() && self.action != Level::Audit
    }

    fn location(&self) -> String {
        format!("{} {}", self.source, self.name)
    }
}

/// The violations of a request.
#[derive(Clone, Default, Debug)]
pub(crate) struct Violations {
    /// Those that are kept.
    pub list: Vec<Violation>,
    /// The number of omitted ones, by level.
    pub left_out: BTreeMap<Level, usize>,
}

/// Collects violations.
#[derive(Clone)]
struct ViolationReport<'r> {
    violations: Vec<Violation>,
    left_out: BTreeMap<Level, usize>,
    /// How many were reported, kept or not.
    reported: usize,
    /// The level of the last one, if it was not kept.
    last_omitted: Option<Level>,
    budget: FindingBudget,
    ratchet: Option<Ratchet<'r>>,
    rules: &'r RuleSet,
    /// For the JSON Schemas of all policies together.
    schema_budget: Budget,
}

impl<'r> ViolationReport<'r> {
    fn within(budget: FindingBudget, rules: &'r RuleSet) -> ViolationReport<'r> {
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

    /// Checks JSON: its keys, and everything else if there is a schema.
    fn check_json(
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
        let mut budget = std::mem::take(&mut self.schema_budget);
        let mut visit = |at: &Path<'_>, fault| self.report_schema_violation(policy, rule, at, fault);
        match schema {
            Some(schema) => schema.check(value, at, &mut budget, &mut visit),
            None => json_schema::check_keys(value, at, &mut budget, &mut visit),
        }
        self.schema_budget = budget;
    }

    /// Checks the keys that determine the type of a value.
    fn check_type_keys(&mut self, policy: &Policy, rule: RuleId, value: Value<'_>, at: &Path<'_>) {
        json_schema::check_type_keys(value, at, &mut |at, fault| {
            self.report_schema_violation(policy, rule, at, fault)
        });
    }

    fn report_schema_violation(
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
            said.finding.short = Some(short.into());
        }
    }

    /// Reports a violation at the policy's own level.
    fn report(
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
    fn report_value(
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
    fn shorten_last(&mut self, policy: &Policy, short: impl std::fmt::Display) {
        if let (None, Some(last)) = (self.last_omitted, self.violations.last_mut()) {
            last.finding.short = Some(format!("{short} (policy {})", policy.name).into());
        }
    }

    /// Lowers the level of the last violation: `unknown: Warn` of a policy that denies.
    fn lower_last_to(&mut self, level: Level) {
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
