//! Admission policies: who may tolerate what, which taints may be published, how much a DeviceTaintRule may affect.
//!
//! Policy files are compiled into a [`PolicySet`], all or none ([`PolicySet::load`]). A set checks one request at a
//! time and uses no files, no clock and no cluster: its input is `Attributes` and `Context`.
//!
//! Invariants: allow entries of several policies add up, and a deny entry wins; a criterion that cannot be evaluated
//! is a violation, never "no match"; a stored violation that an update does not change is not reported, unless it
//! could spread; an empty set costs nothing.

mod broken;
mod cel;
mod conditions;
mod deadlines;
mod diff;
mod entries;
mod export;
mod expression_fields;
mod fields;
mod glob;
mod import;
mod index;
mod json_schema;
mod kind;
mod load;
mod location;
mod matching;
mod missing;
mod parameters;
mod relevance;
mod report;
mod resource;
mod schema;
mod taint;
mod taint_rule;
mod toleration;

pub use conditions::{ObjectDependency, evaluate_expression};
pub use deadlines::{EnforcementStart, EntryExpiry, ExpiringTolerationAllowEntry};
pub use diff::{
    ChangeEffect, ChangeKind, FieldChange, PolicyChange, PolicyDiff, VerdictDifference, verdict_word,
};
pub use export::{
    AdmissionPolicy, AdmissionPolicyExport, ExportedValidation, NamedExpression, Omission, OmissionReason,
};
pub use fields::TEST_FILE;
pub use glob::matches as glob_matches;
pub use import::PolicyAsResource;
pub use kind::PolicyKind;
pub use load::{
    PolicyFile, ReadSchemaFile, document_errors, is_test_file, is_test_of_another_tool, normalized_path,
    policy_errors_with_document_index,
};
pub use location::PolicyLocation;
pub use missing::{TolerationsMissingInUpdate, tolerations_missing_in_update};
pub use relevance::PolicySubset;
pub(crate) use resource::resource_findings;
pub use resource::{
    Acceptance, FieldError, PolicyResource, PolicyResourceState, SCHEMA_FILE, is_list_map_key, max_items,
    resource_errors,
};
pub use schema::{FieldSchema, FieldType, ObjectSchema, nearest_name, optional_field, required_field};
pub use toleration::{ListedEntry, ListedTolerationEntries};

use std::cell::RefCell;
use std::sync::Arc;

use crate::admission::{Context, DecodedAttributes, Operation};
use crate::defaults::Edit;
use crate::rules::ratchet::{self, RatchetMode, ReachChange, StoredObjectFindings};
use crate::rules::table::POLICY_LOOKUP;
use crate::rules::{FindingLevel, RuleSet};
use broken::PolicyDefect;
use cel::Variables;
use conditions::{PolicyExpressions, RequestAndNamespaceJson};
use index::NamespaceIndex;
use kind::{PolicySpec, check_matched_policies};
use matching::{Exemptions, PolicyScope, ScopeMatch};
pub use report::Violations;
use report::{MAX_DENYING_POLICIES, ViolationReport};
use tollgate_api::convert;
use tollgate_api::omit::without_left_out_fields;
use tollgate_api::profile::Version;
use tollgate_api::view::Object;
use tollgate_document::doc::{Doc, Value};
use tollgate_document::field::Path;
use tollgate_document::finding::{ErrorType, Finding, FindingBudget};
use tollgate_document::source::InputError;
use tollgate_formats::gotime::Timestamp;

/// A set of compiled policies, against which requests are checked one at a time.
#[derive(Debug, Default)]
pub struct PolicySet {
    policies: Vec<Arc<Policy>>,
    index: NamespaceIndex,
    digest: Box<str>,
    warnings: Vec<InputError>,
    resources: Vec<PolicyResourceState>,
}

/// A compiled policy of any kind, with the fields that all kinds share.
#[derive(Debug)]
struct Policy {
    name: Box<str>,
    /// Location of the policy: `file:line`, or `TolerationPolicy/research` for a resource.
    source: Box<str>,
    /// The generation of a resource; `None` for a file.
    generation: Option<i64>,
    /// The reason why the policy cannot be evaluated. Set only for custom resources, because policy files
    /// with errors are not loaded.
    broken: Option<PolicyDefect>,
    scope: PolicyScope,
    exempt: Exemptions,
    action: FindingLevel,
    /// `enforceFrom`: the time from which `action: Deny` applies; `None` if it applies immediately.
    enforce_from: Option<Timestamp>,
    /// True for `onUnavailable: Deny`.
    fails_closed: bool,
    /// Contact for questions about the policy.
    contact: Option<Box<str>>,
    /// URL of the policy's documentation.
    docs: Option<Box<str>>,
    expressions: PolicyExpressions,
    spec: PolicySpec,
    /// The policy document as JSON.
    json: Box<str>,
    /// The fields that reference schema files, with the contents of these files.
    schema_files: Vec<(String, String)>,
}

/// A violation of a policy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// The rule, path and message of the violation.
    pub finding: Finding,
    /// Level: deny, warn or audit.
    pub level: FindingLevel,
    /// The violated policy.
    pub policy: PolicyLocation,
}

/// A policy that matches a request, and whether it restricts the user. Its allow entries count even if the user is
/// exempt, because an exemption must not make anything stricter.
#[derive(Clone, Copy, Debug)]
struct MatchedPolicy<'s> {
    policy: &'s Policy,
    /// False if the user is exempt from the policy.
    binds: bool,
}

impl PolicySet {
    /// True if there are no policies.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Returns the number of policies.
    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// True if a policy depends on the labels of namespaces.
    pub fn needs_namespace_labels(&self) -> bool {
        self.policies
            .iter()
            .any(|policy| policy.scope.needs_namespace_labels() || policy.expressions.need_namespace_object())
    }

    /// Probable mistakes in the files, which do not prevent the policies from being used.
    pub fn load_warnings(&self) -> &[InputError] {
        &self.warnings
    }

    /// Returns a hash of everything that the set was compiled from: sets with equal digests give equal results.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the violations of a request, limited by `budget`. For an update, only violations that it
    /// introduces. Returns none for status requests.
    pub fn find_new_violations(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
        rules: &RuleSet,
        budget: FindingBudget,
    ) -> Violations {
        if self.is_empty() || admission.is_status() {
            return Violations::default();
        }
        let extent = ratchet::taint_reach_change(admission);
        // An update that only narrows, weakens or slows a taint is always allowed.
        if extent == ReachChange::Within {
            return Violations::default();
        }
        let known = RefCell::new(StoredObjectFindings::new(extent));
        let mut report = ViolationReport::with_budget(budget, rules, admission, context);
        let matched = self.match_policies_and_check_validations(&mut report);
        // Violations of the request as a whole are always reported.
        let before = report.clone();
        let first = before.violations.len();
        check_matched_policies(&matched, &mut report);
        if let Some(stored) = admission.with_old_as_object()
            && extent != ReachChange::Wider
            && (report.violations.len() > first || !report.left_out.is_empty())
        {
            let endless = FindingBudget::with_unlimited_findings(ratchet::MAX_COMPARED_TEXT_BYTES);
            let mut learned = ViolationReport::with_budget(endless, rules, &stored, context);
            learned.ratchet = Some(RatchetMode::Learn(&known, stored.object));
            check_matched_policies(&matched, &mut learned);
            // Again, so that only new violations count against the budget and are explained.
            report = before;
            report.ratchet = Some(RatchetMode::Ask(&known, admission.object));
            check_matched_policies(&matched, &mut report);
        }
        let mut violations = Violations { list: report.violations, left_out: report.left_out };
        // After the comparison with stored violations, because the counts change on their own.
        taint_rule::append_impact_to_violations(&mut violations.list, admission, context);
        violations
    }

    /// Returns the edits that add the default tolerations of policies to a new claim or template; empty for any other
    /// request.
    pub fn default_toleration_edits(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
    ) -> Vec<Edit> {
        if self.is_empty() || admission.operation != Operation::Create || !admission.subresource.is_empty() {
            return Vec::new();
        }
        let nothing = RuleSet::compile(|_| false);
        let mut report = ViolationReport::with_budget(FindingBudget::default(), &nothing, admission, context);
        let matched = self.match_policies_and_check_validations(&mut report);
        toleration::default_toleration_edits(&matched, admission, context.profile)
    }

    /// Returns a finding for each policy that might add default tolerations to a new claim or template, but for which
    /// it cannot be determined whether it applies.
    pub fn undecided_toleration_defaults(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
    ) -> Vec<Finding> {
        if self.is_empty() || admission.operation != Operation::Create || !admission.subresource.is_empty() {
            return Vec::new();
        }
        let every = RuleSet::compile(|_| true);
        let mut report = ViolationReport::with_budget(FindingBudget::default(), &every, admission, context);
        self.match_policies_and_check_validations(&mut report);
        let locations: Vec<PolicyLocation> = self
            .policies
            .iter()
            .filter(|policy| policy.adds_tolerations())
            .map(|policy| policy.location())
            .collect();
        let is_undecided = |violation: &Violation| {
            violation.finding.kind == ErrorType::Internal && locations.contains(&violation.policy)
        };
        report.violations.into_iter().filter(is_undecided).map(|violation| violation.finding).collect()
    }

    /// Returns the policies that match a request. Evaluates their expressions, and reports failed validations, policies
    /// that cannot be evaluated, and policies for which it is not known whether they match.
    fn match_policies_and_check_validations(
        &self,
        report: &mut ViolationReport<'_>,
    ) -> Vec<MatchedPolicy<'_>> {
        let (admission, context) = (report.admission, report.context);
        let mut ours: Vec<&Policy> = match admission.effective_namespace_if_namespaced() {
            None => self.policies.iter().map(Arc::as_ref).collect(),
            Some(namespace) => {
                let candidates = self.index.candidates(namespace).into_iter();
                candidates.filter_map(|number| self.policies.get(number as usize)).map(Arc::as_ref).collect()
            }
        };
        ours.retain(|policy| policy.scope.includes_kind(admission.object.kind()));
        let seen = ours
            .iter()
            .any(|policy| !policy.expressions.is_empty())
            .then(|| RequestAndNamespaceJson::from_request(admission, context));
        let (request, namespace) =
            seen.as_ref().map(RequestAndNamespaceJson::parse_request_and_namespace).unwrap_or_default();
        // Expressions see an object as an API server sends it: a file can have empty fields, which a review has not.
        // Whoever sends a request chooses its version, and must not thereby choose what a policy sees.
        let encoded = [Some(admission.object), admission.old_object].map(|object| {
            let object = object.filter(|_| seen.is_some() && !context.from_review)?;
            let (kind, version) = (object.kind(), object.version);
            without_left_out_fields(object.value(), kind, version, context.profile.fields)
        });
        let [object, old] = &encoded;
        let object = root_or(object.as_ref(), admission.object.value());
        let old = root_or(old.as_ref(), admission.old_object.map_or(Value::absent(), Object::value));
        let [reshaped, reshaped_old] =
            [(Some(admission.object), object), (admission.old_object, old)].map(|(sent, value)| {
                let sent = sent.filter(|_| seen.is_some())?;
                convert::convert_if_shape_differs(value, sent.kind(), sent.version, Version::V1)
            });
        let (object, old) = (root_or(reshaped.as_ref(), object), root_or(reshaped_old.as_ref(), old));
        let variables = Variables::new(
            object,
            old,
            root_or(request.as_ref(), Value::absent()),
            root_or(namespace.as_ref(), Value::absent()),
        );
        let mut matched = Vec::new();
        for policy in ours {
            match policy.scope.match_request(
                admission.operation,
                admission.effective_namespace_if_namespaced(),
                context.labels,
            ) {
                ScopeMatch::No => continue,
                ScopeMatch::Yes => {}
                ScopeMatch::Unknown
                    if policy.ignores_objects_without_tolerations()
                        && !toleration::has_tolerations(admission) =>
                {
                    continue;
                }
                ScopeMatch::Unknown => {
                    let namespace = admission.effective_namespace_if_namespaced();
                    debug_assert!(namespace.is_some(), "only labels of a namespace can be unknown");
                    let namespace = namespace.unwrap_or_default();
                    let detail = format!(
                        "{} selects namespaces by label, but the labels of namespace {namespace:?} are not available",
                        policy.describe()
                    );
                    let metadata = Path::ROOT.field("metadata");
                    report.report(policy, POLICY_LOOKUP, &metadata.field("namespace")).internal_error(detail);
                    continue;
                }
            }
            let binds = !policy.exempt.exempts_user(admission.user);
            variables.set_level(report.level_of(policy));
            if binds && policy.report_ambiguous_keys(report)
                || !policy.match_conditions_hold(&variables, report)
            {
                continue;
            }
            if let Some(defect) = &policy.broken {
                if binds {
                    policy.report_broken(defect, report);
                }
                continue;
            }
            if binds {
                policy.check_validations(&variables, report);
            }
            matched.push(MatchedPolicy { policy, binds });
        }
        matched
    }
}

/// Returns the root of a document; `otherwise` if there is none.
fn root_or<'d>(document: Option<&'d Doc<'_>>, otherwise: Value<'d>) -> Value<'d> {
    document.map_or(otherwise, Doc::root)
}

impl Policy {
    /// Returns `policy research at policies/research.yaml:1 (contact: gpu-team, docs: https://…)`, or
    /// `policy TolerationPolicy/research` for a resource.
    fn describe(&self) -> String {
        let help: Vec<String> = [("contact", &self.contact), ("docs", &self.docs)]
            .into_iter()
            .filter_map(|(name, text)| Some(format!("{name}: {}", text.as_deref()?)))
            .collect();
        let help = if help.is_empty() { String::new() } else { format!(" ({})", help.join(", ")) };
        match self.generation {
            None => format!("policy {} at {}{help}", self.name, self.source),
            Some(_) => format!("policy {}{help}", self.source),
        }
    }

    /// Returns `policy research: the reason; contact: gpu-team; docs: https://…`; `None` if there is neither reason,
    /// contact nor docs.
    fn reason_contact_and_docs(&self, reason: Option<&str>) -> Option<String> {
        let contact = self.contact.as_deref().map(|contact| format!("contact: {contact}"));
        let docs = self.docs.as_deref().map(|docs| format!("docs: {docs}"));
        let parts: Vec<String> = [reason.map(str::to_owned), contact, docs].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("policy {}: {}", self.name, parts.join("; ")))
    }

    /// Returns when the policy starts to deny; `None` if it does so now, or if it never denies. Without a
    /// clock, it does so now.
    fn future_deny_time(&self, now: Option<Timestamp>) -> Option<Timestamp> {
        let is_later = |from: &Timestamp| now.is_some_and(|now| now < *from);
        self.enforce_from.filter(|from| self.action == FindingLevel::Deny && is_later(from))
    }

    /// Returns the level at which the policy reports at a time: `Warn` before its `enforceFrom`, then its action.
    fn level_at(&self, now: Option<Timestamp>) -> FindingLevel {
        if self.future_deny_time(now).is_some() { FindingLevel::Warn } else { self.action }
    }

    /// True if the policy cannot report anything about an object without tolerations, so that unknown namespace labels
    /// do not matter for it.
    fn ignores_objects_without_tolerations(&self) -> bool {
        self.expressions.is_empty()
            && self.spec.toleration().is_some_and(|spec| !spec.has_default_tolerations())
    }

    /// True if the policy adds tolerations to claims. A policy that only audits adds none.
    fn adds_tolerations(&self) -> bool {
        self.spec.toleration().is_some_and(toleration::TolerationPolicy::has_default_tolerations)
            && self.action != FindingLevel::Audit
    }
}
