//! The admin's policies: who may tolerate what, which taints may be published, how dangerous a rule may be.
//!
//! Texts become a [`PolicySet`] once, whole or not at all ([`PolicySet::load`]); a set judges one request at a time and
//! knows no file, no clock and no cluster. What it needs to know is in [`Attributes`] and [`Context`].
//!
//! Invariants: policies add up like grants and a deny entry wins; a question that cannot be answered is a violation,
//! never "no match"; what was wrong before an update and did not change is excused, unless it could spread; an empty set
//! costs nothing.

mod cel;
mod changes;
mod compare;
mod conditions;
mod fields;
mod glob;
mod grants;
mod index;
mod json_schema;
mod kind;
mod load;
mod matching;
mod missing;
mod parameters;
mod reach;
mod schema;
mod taint;
mod taint_rule;
mod toleration;

pub use changes::PolicyChange;
pub use compare::Difference;
#[cfg(test)]
pub(crate) use conditions::evaluate;
pub use fields::{API_VERSION, TEST_FILE};
pub use glob::matches as glob_matches;
pub use kind::PolicyKind;
pub use load::{PolicyError, ReadFile, Text, errors_of_policies, faults};
pub use missing::{MissingTolerations, missing_tolerations};
pub use schema::{Field, Struct, Ty};

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::admission::{Attributes, Context, Operation};
use crate::api::view::Object;
use crate::defaults::Edit;
use crate::doc::{Doc, Value};
use crate::field::Path;
use crate::finding::{BadValue, Finding, Kind, Room, RuleId};
use crate::rules::policy::POLICY_LOOKUP;
use crate::rules::ratchet::{self, Extent, Known as Excuses, Ratchet};
use crate::rules::{Level, RuleSet};
use cel::Variables;
use conditions::{Expressions, Seen};
use index::Index;
use json_schema::{Budget, Fault, Schema};
use kind::{PolicySpec, check};
use matching::{Answer, Exempt, Scope};

/// Compiled policies.
#[derive(Debug, Default)]
pub struct PolicySet {
    policies: Vec<Policy>,
    index: Index,
    digest: Box<str>,
}

/// One policy.
#[derive(Debug)]
struct Policy {
    name: Box<str>,
    /// `file:line`
    source: Box<str>,
    scope: Scope,
    exempt: Exempt,
    action: Level,
    expressions: Expressions,
    spec: PolicySpec,
    /// The document as JSON.
    written: Box<str>,
    /// The fields that name schema files, and what is in those.
    schema_files: Vec<(String, String)>,
}

/// Something a policy refuses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// What is wrong.
    pub finding: Finding,
    /// What it does to the verdict.
    pub level: Level,
    /// `file:line name` of the policy.
    pub policy: Box<str>,
}

/// A policy that matches, and whether it binds the user. Grants count either way: an exemption makes nothing stricter.
#[derive(Clone, Copy, Debug)]
struct Matched<'s> {
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

    /// Some policy asks for the labels of namespaces.
    pub fn needs_labels(&self) -> bool {
        self.policies.iter().any(|policy| policy.scope.needs_labels() || policy.expressions.need_namespace())
    }

    /// A hash of everything the set was made of: equal digests, equal answers.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What the policies say about a request, in that room. Of an update, only what it makes wrong.
    pub fn judge(
        &self,
        admission: &Attributes<'_>,
        context: &Context<'_>,
        rules: &RuleSet,
        room: Room,
    ) -> Violations {
        if self.is_empty() || admission.is_status() {
            return Violations::default();
        }
        let extent = ratchet::extent(admission);
        // Whoever only narrows, weakens or slows a taint is never stopped, whatever the policies say.
        if extent == Extent::Within {
            return Violations::default();
        }
        let known = RefCell::new(Excuses::new(extent));
        let mut report = Report::within(room, rules);
        let matched = self.matching(admission, context, &mut report);
        // Nothing excuses what is about the request as a whole.
        let before = report.clone();
        let first = before.violations.len();
        check(&matched, admission, context, &mut report);
        if let Some(stored) = admission.of_stored()
            && extent != Extent::Wider
            && (report.violations.len() > first || !report.left_out.is_empty())
        {
            let mut learned = Report::within(Room::endless(ratchet::TEXT), rules);
            learned.ratchet = Some(Ratchet::Learn(&known, stored.object));
            check(&matched, &stored, context, &mut learned);
            if report.left_out.is_empty() {
                let mut known = known.borrow_mut();
                let mut index = 0;
                report.violations.retain(|violation| {
                    index += 1;
                    index <= first
                        || !known.excuses(&violation.finding, Some(&violation.policy), admission.object)
                });
            } else {
                // What was left out may be all that is new: it is judged again, and only that takes room.
                let mut again = Report { ratchet: Some(Ratchet::Ask(&known, admission.object)), ..before };
                check(&matched, admission, context, &mut again);
                report = Report { ratchet: None, ..again };
            }
        }
        let mut violations = Violations { list: report.violations, left_out: report.left_out };
        // After the comparison with what was wrong before: numbers change by themselves.
        taint_rule::tell_numbers(&mut violations.list, admission, context);
        violations
    }

    /// The default tolerations of a new claim or template.
    pub fn defaults(&self, admission: &Attributes<'_>, context: &Context<'_>) -> Vec<Edit> {
        if self.is_empty() || admission.operation != Operation::Create || !admission.subresource.is_empty() {
            return Vec::new();
        }
        let nothing = RuleSet::compile(|_| false);
        let mut report = Report::within(Room::default(), &nothing);
        let matched = self.matching(admission, context, &mut report);
        toleration::defaults(&matched, admission, context.profile)
    }

    /// Why default tolerations of a new claim or template cannot be told: one reason for each policy that may have some.
    pub fn undecided_defaults(&self, admission: &Attributes<'_>, context: &Context<'_>) -> Vec<Finding> {
        if self.is_empty() || admission.operation != Operation::Create || !admission.subresource.is_empty() {
            return Vec::new();
        }
        let every = RuleSet::compile(|_| true);
        let mut report = Report::within(Room::default(), &every);
        self.matching(admission, context, &mut report);
        let places: Vec<String> =
            self.policies.iter().filter(|policy| policy.spec.has_defaults()).map(Policy::place).collect();
        let is_undecided = |violation: &Violation| {
            violation.finding.kind == Kind::Internal
                && places.iter().any(|place| **place == *violation.policy)
        };
        report.violations.into_iter().filter(is_undecided).map(|violation| violation.finding).collect()
    }

    /// The policies that apply to a request, and what they say about the request as a whole.
    fn matching(
        &self,
        admission: &Attributes<'_>,
        context: &Context<'_>,
        report: &mut Report<'_>,
    ) -> Vec<Matched<'_>> {
        let ours: Vec<&Policy> = match admission.object_namespace() {
            None => self.policies.iter().collect(),
            Some(namespace) => {
                let candidates = self.index.candidates(namespace).into_iter();
                candidates.filter_map(|number| self.policies.get(number as usize)).collect()
            }
        };
        let ours = || ours.iter().copied().filter(|policy| policy.scope.is_about(admission.object.kind()));
        let seen = ours().any(|policy| !policy.expressions.is_empty()).then(|| Seen::of(admission, context));
        let (request, namespace) = seen.as_ref().map(Seen::documents).unwrap_or_default();
        let old = admission.old_object.map_or(Value::absent(), Object::value);
        let variables =
            Variables::new(admission.object.value(), old, root(request.as_ref()), root(namespace.as_ref()));
        let mut matched = Vec::new();
        for policy in ours() {
            match policy.scope.applies(admission.operation, admission.object_namespace(), context.labels) {
                Answer::No => continue,
                Answer::Yes => {}
                Answer::Unknown => {
                    let namespace = admission.object_namespace().unwrap_or_default();
                    let detail = format!(
                        "{} selects namespaces by label, and the labels of namespace {namespace:?} are not known",
                        policy.told()
                    );
                    let metadata = Path::ROOT.field("metadata");
                    report.say(policy, POLICY_LOOKUP, &metadata.field("namespace"), Kind::Internal, detail);
                    continue;
                }
            }
            if !policy.conditions_hold(&variables, admission, context, report) {
                continue;
            }
            let binds = !policy.exempt.has(admission.user);
            if binds {
                policy.check_validations(&variables, admission, context, report);
            }
            matched.push(Matched { policy, binds });
        }
        matched
    }
}

fn root<'d>(document: Option<&'d Doc<'_>>) -> Value<'d> {
    document.map_or(Value::absent(), Doc::root)
}

impl Policy {
    /// `policy research at policies/research.yaml:1`
    fn told(&self) -> String {
        format!("policy {} at {}", self.name, self.source)
    }

    /// `policies/research.yaml:1 research`
    fn place(&self) -> String {
        format!("{} {}", self.source, self.name)
    }
}

/// What policies refuse.
#[derive(Clone, Default, Debug)]
pub struct Violations {
    /// Those there is room for.
    pub list: Vec<Violation>,
    /// How many more, by what they do.
    pub left_out: BTreeMap<Level, usize>,
}

/// Where violations go.
#[derive(Clone)]
struct Report<'r> {
    violations: Vec<Violation>,
    left_out: BTreeMap<Level, usize>,
    /// How many were said, kept or not.
    said: usize,
    /// The one said last is not kept, and has this level.
    lost: Option<Level>,
    room: Room,
    ratchet: Option<Ratchet<'r>>,
    rules: &'r RuleSet,
    /// For the JSON Schemas of all policies together.
    budget: Budget,
}

impl<'r> Report<'r> {
    fn within(room: Room, rules: &'r RuleSet) -> Report<'r> {
        Report {
            violations: Vec::new(),
            left_out: BTreeMap::new(),
            said: 0,
            lost: None,
            room,
            ratchet: None,
            rules,
            budget: Budget::default(),
        }
    }

    /// Checks JSON that a policy speaks about: its keys, and all of it if there is a schema.
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
        let mut budget = std::mem::take(&mut self.budget);
        let mut visit = |at: &Path<'_>, fault| self.say_fault(policy, rule, at, fault);
        match schema {
            Some(schema) => schema.check(value, at, &mut budget, &mut visit),
            None => json_schema::check_keys(value, at, &mut budget, &mut visit),
        }
        self.budget = budget;
    }

    /// Checks the keys that say which type a value is.
    fn check_type_keys(&mut self, policy: &Policy, rule: RuleId, value: Value<'_>, at: &Path<'_>) {
        json_schema::check_type_keys(value, at, &mut |at, fault| self.say_fault(policy, rule, at, fault));
    }

    fn say_fault(&mut self, policy: &Policy, rule: RuleId, at: &Path<'_>, fault: Fault) {
        let before = self.violations.len();
        let detail = format!("{}, {}", fault.text, policy.told());
        match fault.value {
            Some(value) => {
                self.say_value(policy, rule, at, Kind::Invalid, BadValue::Json(value.into()), detail);
            }
            // A kind that shows no value: an update is excused only by the very same one.
            None => self.say(policy, rule, at, Kind::Forbidden, detail),
        }
        if let Some(said) = self.violations.get_mut(before) {
            said.finding.on_key = fault.on_key;
        }
    }

    /// A policy refuses something, in its own level.
    fn say(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        at: &Path<'_>,
        kind: Kind,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.say_value(policy, rule, at, kind, BadValue::Omitted, detail);
    }

    /// The same with a value.
    fn say_value(
        &mut self,
        policy: &Policy,
        rule: RuleId,
        at: &Path<'_>,
        kind: Kind,
        value: BadValue,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if !self.rules.has(rule) {
            return;
        }
        let mut finding = Finding {
            at: at.owned(),
            rule,
            kind,
            server_at: None,
            value,
            detail: detail.into(),
            also: Vec::new(),
            on_key: false,
            help: None,
        };
        self.said += 1;
        self.lost = None;
        let place = policy.place();
        if self.ratchet.is_some_and(|ratchet| ratchet.takes(&finding, Some(&place))) {
            self.lost = Some(Level::Audit);
        } else if self.room.take(&mut finding) {
            self.violations.push(Violation { finding, level: policy.action, policy: place.into() });
        } else {
            self.lost = Some(policy.action);
            *self.left_out.entry(policy.action).or_default() += 1;
        }
    }

    /// Lowers the violation said last: `unknown: Warn` of a policy that denies.
    fn at_most(&mut self, level: Level) {
        match (self.lost, self.violations.last_mut()) {
            (None, Some(last)) => last.level = last.level.min(level),
            (Some(lost), _) if lost > level => {
                if let Some(count) = self.left_out.get_mut(&lost) {
                    *count -= 1;
                    *self.left_out.entry(level).or_default() += 1;
                }
                self.left_out.retain(|_, count| *count > 0);
                self.lost = Some(level);
            }
            _ => {}
        }
    }
}
