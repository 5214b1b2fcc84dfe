//! Policies that cannot be evaluated: the requests that they match, and the result for these requests.
//!
//! As for a ValidatingAdmissionPolicy, the `failurePolicy` applies to requests that a broken policy matches. An
//! invalid field of `match` does not narrow the policy, and an invalid `exempt` exempts nobody.
//!
//! Invariant: the `failurePolicy` applies to every request that the policy could deny if it were repaired.

use super::conditions::PolicyExpressions;
use super::kind::PolicyKind;
use super::load::{SchemaSource, action_level, text_if_not_empty};
use super::matching::{Exemptions, PolicyScope};
use super::report::ViolationReport;
use super::resource::field_error;
use super::schema::{PolicyFault, PolicyFaults};
use super::{Policy, taint};
use crate::admission::{Context, DecodedAttributes};
use crate::rules::FindingLevel;
use crate::site;
use tollgate_document::doc::Value;
use tollgate_document::field::{Path, PathAudience};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime;

/// The reason why a policy cannot be evaluated.
#[derive(Debug)]
pub(super) struct PolicyDefect {
    /// The first error in the policy.
    error: Box<str>,
    /// True if the policy has `validations`, which `match.drivers` does not narrow.
    applies_to_every_driver: bool,
}

/// Returns a policy that cannot be evaluated. It matches the requests that the valid fields of its `spec.match`
/// select.
pub(super) fn broken_policy(kind: PolicyKind, spec: Value<'_>, errors: &[PolicyFault]) -> Policy {
    let printed: Vec<String> = errors.iter().map(|error| error.at.print(PathAudience::User)).collect();
    let is_faulty = |field: &str| {
        let is_inside = |at: &String| {
            at.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        printed.iter().any(is_inside)
    };
    let at = Path::ROOT.field("spec");
    let scope = PolicyScope::read_leniently(spec.get("match"), kind.applicable_kinds(), &|field| {
        is_faulty(&format!("spec.match.{field}"))
    });
    // Faults of expressions are already among the errors.
    let mut ignored = PolicyFaults::default();
    let expressions = PolicyExpressions::read(spec, &at, &scope.kinds, &mut ignored);
    let action = action_level(spec);
    let more = match errors.len() {
        0 | 1 => String::new(),
        count => format!(" (and {})", count_with_noun(count - 1, "more error")),
    };
    let first = errors.first().map(field_error);
    Policy {
        name: "".into(),
        source: "".into(),
        generation: None,
        broken: first.map(|error| PolicyDefect {
            error: format!("{error}{more}").into(),
            applies_to_every_driver: spec.get("validations").exists(),
        }),
        exempt: if is_faulty("spec.exempt") {
            Exemptions::default()
        } else {
            Exemptions::read(spec.get("exempt"))
        },
        action,
        enforce_from: gotime::parse_rfc3339(spec.get("enforceFrom").str()).ok(),
        fails_closed: action == FindingLevel::Deny && spec.get("onUnavailable").str() == "Deny",
        contact: text_if_not_empty(spec.get("contact")),
        docs: text_if_not_empty(spec.get("docs")),
        expressions: expressions.conditions_of_broken_policy(!is_faulty("spec.matchConditions")),
        scope,
        spec: kind.read_spec(Value::absent(), &at, &mut SchemaSource::without_files(), &mut ignored),
        json: "".into(),
        schema_files: Vec::new(),
    }
}

impl Policy {
    /// Reports a request that matches a policy that cannot be evaluated: a violation, or a warning with
    /// `failurePolicy: Ignore`.
    pub(super) fn report_broken(&self, defect: &PolicyDefect, report: &mut ViolationReport<'_>) {
        if !defect.applies_to_every_driver && !self.covers_driver(report.admission, report.context) {
            return;
        }
        let error = &defect.error;
        let level = if self.expressions.ignores_failures { FindingLevel::Warn } else { FindingLevel::Deny };
        let detail = format!("cannot evaluate {}: {error}", self.describe());
        let short = "cannot be checked, because the policy is invalid";
        let rule = self.spec.kind().violation_rule();
        report
            .report(self, rule, &Path::ROOT)
            .lower_level_to(level)
            .internal_error(detail)
            .with_warning_texts(self, short, None);
    }

    /// True if the object is about a driver in `match.drivers` of the policy, or if its driver is not known.
    fn covers_driver(&self, admission: &DecodedAttributes<'_>, context: &Context<'_>) -> bool {
        if !self.scope.is_limited_to_certain_drivers() {
            return true;
        }
        if self.spec.parameters().is_none() {
            return self.scope.matches_named_or_unknown_driver(taint::driver_of_slice_or_selector(admission));
        }
        let mut is_covered = false;
        site::visit_parameters(admission, context.classes, &mut |_, given| {
            is_covered |= self.scope.matches_named_or_unknown_driver(given.driver.unwrap_or_default());
        });
        is_covered
    }
}
