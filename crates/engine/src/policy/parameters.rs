//! ParameterPolicy: JSON Schemas for the opaque parameters of a driver, by their apiVersion and kind.

mod compared;

pub(super) use compared::ParameterPoliciesToCompare;

use std::collections::HashSet;

use super::json_schema::{JsonCheck, Schema, values_of_case_variants};
use super::kind::{PolicySpec, policies_of_kind_not_exempting_user};
use super::load::SchemaSource;
use super::schema::PolicyFaults;
use super::{MatchedPolicy, Policy, ViolationReport};
use crate::rules::FindingLevel;
use crate::rules::table::POLICY_PARAMETERS;
use crate::site::{self, DriverParameters};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;

/// Maximum number of parameters of an object that are checked: an API server accepts 32. An object with more is denied.
const MAX_CHECKED_PARAMETERS: usize = 256;

/// The compiled `spec` of a ParameterPolicy, without the fields that all kinds of policies share.
#[derive(Debug)]
pub(super) struct ParameterPolicy {
    schemas: Vec<ParameterSchema>,
    /// The level for parameters with another apiVersion or kind; `None` allows them.
    unknown: Option<FindingLevel>,
}

/// The compiled JSON Schema for opaque parameters of one apiVersion and kind.
#[derive(Debug)]
struct ParameterSchema {
    api_version: Box<str>,
    kind: Box<str>,
    schema: Option<Schema>,
}

impl ParameterPolicy {
    /// Compiles the `spec` of a ParameterPolicy, and reports errors.
    pub(super) fn read(
        spec: Value<'_>,
        at: &Path<'_>,
        source: &mut SchemaSource<'_>,
        faults: &mut PolicyFaults,
    ) -> ParameterPolicy {
        let list_at = at.field("schemas");
        let mut schemas = Vec::new();
        for (index, item) in spec.get("schemas").items().enumerate() {
            if item.get("apiVersion").is_null_or_absent() != item.get("kind").is_null_or_absent() {
                let message =
                    "set both apiVersion and kind, or omit both to match parameters that have neither";
                faults.report(&list_at.index(index), message);
            }
            let schema = ParameterSchema {
                api_version: item.get("apiVersion").str().into(),
                kind: item.get("kind").str().into(),
                schema: source.compile_schema_of(item, &list_at.index(index), faults),
            };
            let is_same = |other: &ParameterSchema| {
                other.api_version == schema.api_version && other.kind == schema.kind
            };
            if let Some(first) = schemas.iter().position(is_same) {
                let message = format!(
                    "schemas[{first}] is for the same apiVersion and kind; combine both schemas with allOf"
                );
                faults.report(&list_at.index(index), message);
            }
            schemas.push(schema);
        }
        let unknown = match spec.get("unknown").str() {
            "Deny" => Some(FindingLevel::Deny),
            "Warn" => Some(FindingLevel::Warn),
            _ => None,
        };
        ParameterPolicy { schemas, unknown }
    }

    /// Checks one set of parameters against the schema for its type. Reports ambiguous type keys, and types for which
    /// the policy has no schema if `unknown` says so.
    fn check_driver_parameters(
        &self,
        policy: &Policy,
        given: &OpaqueParameters<'_>,
        at: &Path<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let OpaqueParameters { value: parameters, api_version, kind, .. } = *given;
        let known =
            self.schemas.iter().find(|known| &*known.api_version == api_version && &*known.kind == kind);
        // If the driver is not known, the parameters may belong to another one: only known types are checked then.
        let is_ours = given.driver.is_some() || !policy.scope.is_limited_to_certain_drivers();
        if let Some(known) = known {
            let check = JsonCheck::Contents(known.schema.as_ref());
            return report.check_json(policy, POLICY_PARAMETERS, check, parameters, at);
        }
        // The driver may read apiVersion and kind from other keys than those that were compared here.
        if is_ours || self.schemas.iter().any(|known| given.may_have_type(known)) {
            report.check_json(policy, POLICY_PARAMETERS, JsonCheck::TypeKeys, parameters, at);
        }
        let Some(level) = self.unknown.filter(|_| is_ours) else { return };
        let name = type_name(given.api_version, given.kind);
        let supported = if self.schemas.is_empty() || !report.should_explain_next() {
            String::new()
        } else {
            let name = |known: &ParameterSchema| format!("{:?}", type_name(&known.api_version, &known.kind));
            format!("; supported types: {}", self.schemas.iter().map(name).collect::<Vec<_>>().join(", "))
        };
        let what =
            if name.is_empty() { "parameters without apiVersion and kind" } else { "parameters of type " };
        let named = if name.is_empty() { String::new() } else { format!("{name:?}") };
        let detail = || format!("{what}{named} are not allowed by {}{supported}", policy.describe());
        report
            .report(policy, POLICY_PARAMETERS, at)
            .lower_level_to(level)
            .not_supported(&*name, detail)
            .with_warning_texts(policy, format_args!("{what}{named} are not allowed"), None);
    }
}

/// Opaque parameters with all types that a decoder could read from them, computed once for all policies.
struct OpaqueParameters<'d> {
    driver: Option<&'d str>,
    value: Value<'d>,
    api_version: &'d str,
    kind: &'d str,
    /// Values that some decoder could read as `apiVersion`, by ignoring case or choosing another duplicate
    /// key.
    versions: HashSet<&'d str>,
    /// Values that some decoder could read as `kind`, by ignoring case or choosing another duplicate key.
    kinds: HashSet<&'d str>,
}

impl<'d> OpaqueParameters<'d> {
    /// Collects every `apiVersion` and `kind` that a decoder could read from the parameters.
    fn from_driver_parameters(given: DriverParameters<'d>) -> OpaqueParameters<'d> {
        let value = given.value;
        OpaqueParameters {
            driver: given.driver,
            value,
            api_version: value.get("apiVersion").str(),
            kind: value.get("kind").str(),
            versions: values_of_case_variants(value, "apiVersion").collect(),
            kinds: values_of_case_variants(value, "kind").collect(),
        }
    }

    /// True if some decoder could read the parameters as that type.
    fn may_have_type(&self, known: &ParameterSchema) -> bool {
        self.versions.contains(&*known.api_version) && self.kinds.contains(&*known.kind)
    }
}

/// Returns apiVersion and kind for a message, such as `gpu.example.com/v1 GpuConfig`; empty if both are.
fn type_name(api_version: &str, kind: &str) -> String {
    format!("{api_version} {kind}").trim().to_owned()
}

/// Checks the parameters of an object against the ParameterPolicies that match.
pub(super) fn check_parameters(policies: &[MatchedPolicy<'_>], report: &mut ViolationReport<'_>) {
    let (admission, context) = (report.admission, report.context);
    let ours = policies_of_kind_not_exempting_user(policies, PolicySpec::parameters);
    if ours.is_empty() {
        return;
    }
    let mut count = 0;
    site::visit_parameters(admission, context.classes, &mut |at, parameters| {
        count += 1;
        if count > MAX_CHECKED_PARAMETERS {
            return;
        }
        let given = OpaqueParameters::from_driver_parameters(parameters);
        for (policy, spec) in &ours {
            if policy.scope.matches_named_or_unknown_driver(given.driver.unwrap_or_default()) {
                spec.check_driver_parameters(policy, &given, at, report);
            }
        }
    });
    if count <= MAX_CHECKED_PARAMETERS {
        return;
    }
    for level in FindingLevel::ALL.into_iter().rev() {
        let speakers = ours.iter().map(|(policy, _)| *policy).filter(|policy| policy.action == level);
        let speaker = speakers.min_by_key(|policy| policy.future_deny_time(admission.now.time));
        if let Some(policy) = speaker {
            report.report_excess(policy, POLICY_PARAMETERS, "configurations", count, MAX_CHECKED_PARAMETERS);
        }
    }
}
