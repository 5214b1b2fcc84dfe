//! ParameterPolicy: JSON Schemas for the opaque parameters of a driver, by their apiVersion and kind.

use super::json_schema::{Schema, values_of};
use super::kind::PolicySpec;
use super::load::SchemaSource;
use super::schema::Faults;
use super::{Matched, Report};
use crate::admission::{Attributes, Context};
use crate::doc::Value;
use crate::field::Path;
use crate::finding::{BadValue, Kind};
use crate::rules::Level;
use crate::rules::policy::POLICY_PARAMETERS;
use crate::site::{self, Parameters};

/// What a ParameterPolicy says.
#[derive(Debug)]
pub(super) struct ParameterPolicy {
    schemas: Vec<Known>,
    /// What parameters of another apiVersion or kind do; `None` lets them pass.
    unknown: Option<Level>,
}

/// Parameters that are known.
#[derive(Debug)]
struct Known {
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
        faults: &mut Faults,
    ) -> ParameterPolicy {
        let list_at = at.field("schemas");
        let mut schemas = Vec::new();
        for (index, item) in spec.get("schemas").items().enumerate() {
            if item.get("apiVersion").is_null() != item.get("kind").is_null() {
                let message =
                    "apiVersion and kind go together: both, or neither for parameters that name none";
                faults.say(&list_at.index(index), message);
            }
            schemas.push(Known {
                api_version: item.get("apiVersion").str().into(),
                kind: item.get("kind").str().into(),
                schema: source.read(item, &list_at.index(index), faults),
            });
        }
        let unknown = match spec.get("unknown").str() {
            "Deny" => Some(Level::Deny),
            "Warn" => Some(Level::Warn),
            _ => None,
        };
        ParameterPolicy { schemas, unknown }
    }

    fn check(&self, one: Matched<'_>, given: Parameters<'_>, at: &Path<'_>, report: &mut Report<'_>) {
        let parameters = given.value;
        let (api_version, kind) = (parameters.get("apiVersion").str(), parameters.get("kind").str());
        let known =
            self.schemas.iter().find(|known| &*known.api_version == api_version && &*known.kind == kind);
        // Of a driver that is not known, the parameters may well be another's: then only what is known is judged.
        let is_ours = given.driver.is_some() || !one.policy.scope.names_drivers();
        match (known, self.unknown.filter(|_| is_ours)) {
            (Some(known), _) => {
                let schema = known.schema.as_ref();
                report.check_json(one.policy, POLICY_PARAMETERS, schema, parameters, at);
            }
            (None, unknown) => {
                // What the driver takes for the apiVersion and kind may be another key than what chose here.
                if is_ours || self.schemas.iter().any(|known| known.may_be_of(parameters)) {
                    report.check_type_keys(one.policy, POLICY_PARAMETERS, parameters, at);
                }
                if let Some(level) = unknown {
                    self.refuse_unknown(one, parameters, level, at, report);
                }
            }
        }
    }

    fn refuse_unknown(
        &self,
        one: Matched<'_>,
        parameters: Value<'_>,
        level: Level,
        at: &Path<'_>,
        report: &mut Report<'_>,
    ) {
        let names: Vec<String> =
            self.schemas.iter().map(|known| format!("\"{} {}\"", known.api_version, known.kind)).collect();
        let (api_version, kind) = (parameters.get("apiVersion").str(), parameters.get("kind").str());
        let value = BadValue::str(format!("{api_version} {kind}").trim());
        let before = report.said;
        let detail = format!("supported values: {}, {}", names.join(", "), one.policy.told());
        report.say_value(one.policy, POLICY_PARAMETERS, at, Kind::NotSupported, value, detail);
        if report.said > before {
            report.at_most(level);
        }
    }
}

impl Known {
    /// True if a decoder that ignores case, or takes another of equal keys, may take the parameters for these.
    fn may_be_of(&self, parameters: Value<'_>) -> bool {
        values_of(parameters, "apiVersion").any(|it| it == &*self.api_version)
            && values_of(parameters, "kind").any(|it| it == &*self.kind)
    }
}

/// Checks all parameters of an object.
pub(super) fn check(
    matched: &[Matched<'_>],
    admission: &Attributes<'_>,
    context: &Context<'_>,
    report: &mut Report<'_>,
) {
    if !matched.iter().any(|one| matches!(one.policy.spec, PolicySpec::Parameter(_))) {
        return;
    }
    site::parameters(admission, context.classes, &mut |at, parameters| {
        for one in matched.iter().filter(|one| one.binds) {
            if let PolicySpec::Parameter(policy) = &one.policy.spec
                && one.policy.scope.has_driver(parameters.driver.unwrap_or_default())
            {
                policy.check(*one, parameters, at, report);
            }
        }
    });
}
