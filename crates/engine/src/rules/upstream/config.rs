//! Configuration for drivers, of claims and classes; the opaque part is that of allocations too.

use super::constraints::{self, Requests};
use super::lists;
use super::naming::{self, DRIVER_LIMIT, too_long};
use crate::rules::Cx;
use crate::rules::table::{EMPTY_CONFIG, OPAQUE_DRIVER, OPAQUE_PARAMETERS, TOO_MANY_CONFIGS};
use tollgate_api::view::{ClaimConfig, ClassConfig, List, Opaque};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::names::{self, Unit};

/// Maximum number of configurations of one claim or class.
const CONFIGS_LIMIT: usize = 32;
/// Maximum number of bytes of JSON of parameters and data.
const RAW_LIMIT: usize = 10 * 1024;

/// Checks the configurations of a claim.
// upstream v1.36 validateDeviceClaim, validateDeviceClaimConfiguration
pub fn check_claim_configs(
    cx: &mut Cx<'_, '_>,
    at: &Path<'_>,
    list: List<'_, ClaimConfig<'_>>,
    names: &Requests<'_>,
) {
    if !lists::check_max_items(cx, TOO_MANY_CONFIGS, at, list.len(), CONFIGS_LIMIT) {
        return;
    }
    for (index, config) in list.iter().enumerate() {
        let at = at.index(index);
        constraints::check_references(cx, &at.field("requests"), config.requests(), names);
        check_opaque(cx, &at, config.opaque(), false);
    }
}

/// Checks the configurations of a DeviceClass. `stored` is true if an update left them unchanged.
// upstream v1.36 validateDeviceClassSpec
pub fn check_class_configs(
    cx: &mut Cx<'_, '_>,
    at: &Path<'_>,
    list: List<'_, ClassConfig<'_>>,
    stored: bool,
) {
    if !lists::check_max_items(cx, TOO_MANY_CONFIGS, at, list.len(), CONFIGS_LIMIT) {
        return;
    }
    for (index, config) in list.iter().enumerate() {
        check_opaque(cx, &at.index(index), config.opaque(), stored);
    }
}

/// Checks the opaque part of the configuration at that path.
// upstream v1.36 validateDeviceConfiguration, validateOpaqueConfiguration
pub fn check_opaque(cx: &mut Cx<'_, '_>, at: &Path<'_>, opaque: Option<Opaque<'_>>, stored: bool) {
    let at = at.field("opaque");
    match opaque {
        None => {
            cx.report(EMPTY_CONFIG, &at).required("");
        }
        Some(opaque) => {
            check_covered_driver(cx, OPAQUE_DRIVER, &at.field("driver"), opaque.driver());
            check_raw_json(cx, OPAQUE_PARAMETERS, &at.field("parameters"), opaque.parameters(), stored);
        }
    }
}

/// Checks a driver name that declarative validation covers: of opaque configuration and of allocation results.
// upstream v1.36 validateDriverName; v1.37 validate.MaxLength, validate.LongNameCaseless
pub fn check_covered_driver(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if !cx.is_declarative {
        naming::check_driver(cx, rule, at, name);
        return;
    }
    if name.is_empty() {
        cx.report(rule, at).declarative_native().required("");
        return;
    }
    if name.chars().count() > DRIVER_LIMIT {
        cx.report(rule, at)
            .declarative_native()
            .too_long(format_args!("may not be more than {DRIVER_LIMIT} characters"));
    } else if name.len() > DRIVER_LIMIT {
        cx.report(rule, at).too_long(too_long(DRIVER_LIMIT));
    }
    let mut is_covered = false;
    names::dns_subdomain_caseless(name, Unit::Bytes, &mut |detail| {
        is_covered = true;
        cx.report(rule, at).declarative_native().invalid(name, detail);
    });
    // Hand-written validation lowers the name first and so refuses a few that the other accepts.
    if !is_covered {
        names::dns_subdomain(&names::lower(name), Unit::Characters, &mut |detail| {
            cx.report(rule, at).invalid(name, detail);
        });
    }
}

/// Checks that parameters, or the data of a device's status, are present, not too large, and decodable by Go.
// upstream v1.36 validateRawExtension
pub fn check_raw_json(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, raw: Value<'_>, stored: bool) {
    if raw.is_null() {
        cx.report(rule, at).required("");
    } else if !stored && cx.is_oversized(raw, RAW_LIMIT) {
        cx.report(rule, at).too_long(too_long(RAW_LIMIT));
    } else if let Some(number) = first_overflow(raw) {
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
fn first_overflow(value: Value<'_>) -> Option<&str> {
    let is_long = |literal: &&str| literal.len() > 300 || literal.contains(['e', 'E']);
    let numbers = value.descendants().filter(|value| value.kind() == ValueKind::Number).map(Value::text);
    numbers.filter(is_long).find(|literal| literal.parse().is_ok_and(f64::is_infinite))
}
