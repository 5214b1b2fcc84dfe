//! Names of drivers, pools, devices and attributes: checks that several types share.
//!
//! No rules of its own: each caller passes the rule that speaks, because the same name means different things in
//! different places. Order and short-circuits are upstream's.

use crate::field::Path;
use crate::finding::{BadValue, Kind, RuleId};
use crate::names::{self, Unit};
use crate::rules::Cx;

/// Longest driver name and attribute domain, in bytes.
pub(crate) const DRIVER_LIMIT: usize = 63;
/// Longest pool name, in bytes.
pub(crate) const POOL_LIMIT: usize = 253;
/// Longest attribute and capacity id, in bytes.
pub(crate) const ID_LIMIT: usize = 32;

/// `may not be more than N bytes`
pub(crate) fn too_long(limit: usize) -> String {
    format!("may not be more than {limit} byte{}", if limit == 1 { "" } else { "s" })
}

// upstream v1.36 validateDriverName
pub(crate) fn driver(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if name.is_empty() {
        cx.report(rule, at, Kind::Required, BadValue::Omitted, "");
        if !cx.profile.empty_driver_is_malformed {
            return;
        }
    }
    if name.len() > DRIVER_LIMIT {
        cx.report(rule, at, Kind::TooLong, BadValue::Omitted, too_long(DRIVER_LIMIT));
    }
    names::dns_subdomain(&names::lower(name), Unit::Characters, &mut |detail| {
        cx.report(rule, at, Kind::Invalid, BadValue::str(name), detail);
    });
}

// upstream v1.36 validatePoolName
pub(crate) fn pool(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if name.is_empty() {
        cx.report(rule, at, Kind::Required, BadValue::Omitted, "");
        return;
    }
    if name.len() > POOL_LIMIT {
        cx.report(rule, at, Kind::TooLong, BadValue::Omitted, too_long(POOL_LIMIT));
    }
    for segment in name.split('/') {
        subdomain(cx, rule, at, segment);
    }
}

/// A DNS subdomain: node names, class names, pool segments.
pub(crate) fn subdomain(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    names::dns_subdomain(name, Unit::Characters, &mut |detail| {
        cx.report(rule, at, Kind::Invalid, BadValue::str(name), detail);
    });
}

/// A DNS label: devices, requests.
// upstream v1.36 validateDeviceName, validateRequestName
pub(crate) fn label(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    names::dns_label(name, Unit::Characters, &mut |detail| {
        cx.report(rule, at, Kind::Invalid, BadValue::str(name), detail);
    });
}
