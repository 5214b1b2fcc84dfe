//! ParameterPolicy: JSON Schemas for the opaque parameters of a driver, by their apiVersion and kind.

use super::json_schema::{Schema, values_of};
use super::kind::PolicySpec;
use super::load::SchemaSource;
use super::schema::PolicyFaults;
use super::{MatchedPolicy, ViolationReport};
use crate::admission::{Context, DecodedAttributes};
use crate::doc::Value;
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::Level;
use crate::rules::policy::POLICY_PARAMETERS;
use crate::site::{self, DriverParameters};

/// What a ParameterPolicy says.
#[derive(Debug)]
pub(super) struct ParameterPolicy {
    schemas: Vec<ParameterSchema>,
    /// The level for parameters of another apiVersion or kind; `None` allows them.
    unknown: Option<Level>,
}

/// The schema for one apiVersion and kind.
#[derive(Debug)]
struct ParameterSchema {
    api_version: Box<str>,
    kind: Box<str>,
    schema: Option<Schema>,
}

impl ParameterPolicy {
    /// Reads `spec`.
    pub(super) fn read(
        spec: Value<'_>,
        at: &Path<'_>,
        source: &SchemaSource<'_>,
        faults: &mut PolicyFaults,
    ) -> ParameterPolicy {
        let list_at = at.field("schemas");
        let mut schemas = Vec::new();
        for (index, item) in spec.get("schemas").items().enumerate() {
            if item.get("apiVersion").is_null() != item.get("kind").is_null() {
                let message =
                    "set both apiVersion and kind, or omit both to match parameters that have neither";
                faults.report(&list_at.index(index), message);
            }
            let schema = ParameterSchema {
                api_version: item.get("apiVersion").str().into(),
                kind: item.get("kind").str().into(),
                schema: source.read(item, &list_at.index(index), faults),
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
            "Deny" => Some(Level::Deny),
            "Warn" => Some(Level::Warn),
            _ => None,
        };
        ParameterPolicy { schemas, unknown }
    }

    fn check(
        &self,
        matched: MatchedPolicy<'_>,
        given: DriverParameters<'_>,
        at: &Path<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let parameters = given.value;
        let (api_version, kind) = (parameters.get("apiVersion").str(), parameters.get("kind").str());
        let known =
            self.schemas.iter().find(|known| &*known.api_version == api_version && &*known.kind == kind);
        // If the driver is not known, the parameters may belong to another one: only known types are checked then.
        let is_ours = given.driver.is_some() || !matched.policy.scope.limits_drivers();
        match (known, self.unknown.filter(|_| is_ours)) {
            (Some(known), _) => {
                let schema = known.schema.as_ref();
                report.check_json(matched.policy, POLICY_PARAMETERS, schema, parameters, at);
            }
            (None, unknown) => {
                // The driver may read apiVersion and kind from other keys than those that were compared here.
                if is_ours || self.schemas.iter().any(|known| known.could_match(parameters)) {
                    report.check_type_keys(matched.policy, POLICY_PARAMETERS, parameters, at);
                }
                if let Some(level) = unknown {
                    self.refuse_unknown(matched, parameters, level, at, report);
                }
            }
        }
    }

    fn refuse_unknown(
        &self,
        matched: MatchedPolicy<'_>,
        parameters: Value<'_>,
        level: Level,
        at: &Path<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let names: Vec<String> = self
            .schemas
            .iter()
            .map(|known| format!("{:?}", type_name(&known.api_version, &known.kind)))
            .collect();
        let (api_version, kind) = (parameters.get("apiVersion").str(), parameters.get("kind").str());
        let name = type_name(api_version, kind);
        let before = report.reported;
        let supported = match names.len() {
            0 => String::new(),
            _ => format!("; supported types: {}", names.join(", ")),
        };
        let what =
            if name.is_empty() { "parameters without apiVersion and kind" } else { "parameters of type " };
        let named = if name.is_empty() { String::new() } else { format!("{name:?}") };
        let (policy, value) = (matched.policy.describe(), BadValue::str(&name));
        let detail = format!("{what}{named} are not allowed by {policy}{supported}");
        report.report_value(matched.policy, POLICY_PARAMETERS, at, ErrorType::NotSupported, value, detail);
        if report.reported > before {
            report.shorten_last(matched.policy, format_args!("{what}{named} are not allowed"));
            report.lower_last_to(level);
        }
    }
}

/// `gpu.example.com/v1 GpuConfig`
fn type_name(api_version: &str, kind: &str) -> String {
    format!("{api_version} {kind}").trim().to_owned()
}

impl ParameterSchema {
    /// True if a decoder that ignores case, or uses another duplicate key, could read this apiVersion and kind.
    fn could_match(&self, parameters: Value<'_>) -> bool {
        values_of(parameters, "apiVersion").any(|it| it == &*self.api_version)
            && values_of(parameters, "kind").any(|it| it == &*self.kind)
    }
}

/// Checks all parameters of an object.
pub(super) fn check(
    policies: &[MatchedPolicy<'_>],
    admission: &DecodedAttributes<'_>,
    context: &Context<'_>,
    report: &mut ViolationReport<'_>,
) {
    if !policies.iter().any(|matched| matches!(matched.policy.spec, PolicySpec::Parameter(_))) {
        return;
    }
    site::visit_parameters(admission, context.classes, &mut |at, parameters| {
        for matched in policies.iter().filter(|matched| matched.binds) {
            if let PolicySpec::Parameter(policy) = &matched.policy.spec
                && matched.policy.scope.matches_driver(parameters.driver.unwrap_or_default())
            {
                policy.check(*matched, parameters, at, report);
            }
        }
    });
}
