//! Driver configuration of claims and classes. Its opaque part is also used in allocations.

use super::constraints::{self, RequestNames};
use super::lists;
use super::naming::{self, MAX_DRIVER_BYTES};
use crate::rules::RuleContext;
use crate::rules::table::{EMPTY_CONFIG, OPAQUE_DRIVER, OPAQUE_PARAMETERS, TOO_MANY_CONFIGS};
use tollgate_api::view::{ClaimConfig, Opaque, View as _};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, RuleId};
use tollgate_formats::names::{self, LengthUnitWord};

/// Maximum number of configurations of one claim or class.
const CONFIGS_LIMIT: usize = 32;
/// Maximum number of bytes of JSON of parameters and data.
const MAX_RAW_JSON_BYTES: usize = 10 * 1024;

/// Checks the configurations of a claim, which refer to the requests `names`, or of a DeviceClass. `stored` is true if an
/// update left them unchanged.
// upstream v1.36 validateDeviceClaim, validateDeviceClaimConfiguration, validateDeviceClassSpec
pub fn check_configs(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    list: Value<'_>,
    names: Option<&RequestNames<'_>>,
    stored: bool,
) {
    if !lists::report_too_many_and_should_continue(cx, TOO_MANY_CONFIGS, at, list.len(), CONFIGS_LIMIT) {
        return;
    }
    for (index, config) in list.items().enumerate() {
        let (at, config) = (at.index(index), ClaimConfig::of(config));
        if let Some(names) = names {
            constraints::check_references(cx, &at.field("requests"), config.requests(), names);
        }
        check_opaque(cx, &at, config.opaque(), stored);
    }
}

/// Checks the opaque part of the configuration at that path.
// upstream v1.36 validateDeviceConfiguration, validateOpaqueConfiguration
pub fn check_opaque(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, opaque: Option<Opaque<'_>>, stored: bool) {
    let at = at.field("opaque");
    match opaque {
        None => {
            cx.report(EMPTY_CONFIG, &at).required("");
        }
        Some(opaque) => {
            check_driver_name_with_declarative(cx, OPAQUE_DRIVER, &at.field("driver"), opaque.driver());
            check_raw_json(cx, OPAQUE_PARAMETERS, &at.field("parameters"), opaque.parameters(), stored);
        }
    }
}

/// Checks a driver name that declarative validation covers: of opaque configuration and of allocation results.
// upstream v1.36 validateDriverName; v1.37 validate.MaxLength, validate.LongNameCaseless
pub fn check_driver_name_with_declarative(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    name: &str,
) {
    if !cx.is_declarative {
        naming::check_driver_name(cx, rule, at, name);
        return;
    }
    if name.is_empty() {
        cx.report(rule, at).declarative_only().required("");
        return;
    }
    if name.chars().count() > MAX_DRIVER_BYTES {
        cx.report(rule, at).declarative_only().error_of_type(
            ErrorType::TooLong,
            BadValue::Omitted,
            format_args!("may not be more than {MAX_DRIVER_BYTES} characters"),
        );
    } else if name.len() > MAX_DRIVER_BYTES {
        cx.report(rule, at).too_long(MAX_DRIVER_BYTES);
    }
    let mut is_covered = false;
    names::check_subdomain_caseless(name, LengthUnitWord::Bytes, &mut |detail| {
        is_covered = true;
        cx.report(rule, at).declarative_only().invalid(name, detail);
    });
    // Hand-written validation lowers the name first and so refuses a few that the other accepts.
    if !is_covered {
        names::check_dns_subdomain(&names::go_to_lower(name), LengthUnitWord::Characters, &mut |detail| {
            cx.report(rule, at).invalid(name, detail);
        });
    }
}

/// Checks that parameters, or the data of a device's status, are present, not too large, and decodable by Go.
// upstream v1.36 validateRawExtension
pub fn check_raw_json(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    raw: Value<'_>,
    stored: bool,
) {
    if raw.is_null_or_absent() {
        cx.report(rule, at).required("");
    } else if !stored && cx.is_oversized(raw, MAX_RAW_JSON_BYTES) {
        cx.report(rule, at).too_long(MAX_RAW_JSON_BYTES);
    } else if let Some(number) = first_float64_overflow(raw) {
        let detail = format_args!(
            "error parsing data as JSON: json: cannot unmarshal number {number} into Go value of type float64"
        );
        cx.report(rule, at).invalid(BadValue::Omitted, detail);
    } else if raw.kind() != ValueKind::Object {
        let detail = if cx.profile.names_parameters {
            "parameters must be a valid JSON object"
        } else {
            "must be a valid JSON object"
        };
        cx.report(rule, at).invalid(BadValue::Omitted, detail);
    }
}

/// Returns the first number too large for a float64, which is the only thing that Go refuses in valid JSON.
fn first_float64_overflow(value: Value<'_>) -> Option<&str> {
    let is_long = |literal: &&str| literal.len() > 300 || literal.contains(['e', 'E']);
    let numbers =
        value.self_and_descendants().filter(|value| value.kind() == ValueKind::Number).map(Value::text);
    numbers.filter(is_long).find(|literal| literal.parse().is_ok_and(f64::is_infinite))
}
