//! Names of drivers, pools, devices and attributes: checks that several types share.
//!
//! No rules of its own: each caller passes the rule that speaks, because the same name means different things in
//! different places. Order and short-circuits are upstream's.

use crate::rules::Cx;
use tollgate_api::profile::Profile;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::names::{self, Unit};

/// Longest driver name and attribute domain, in bytes.
pub const DRIVER_LIMIT: usize = 63;
/// Longest pool name, in bytes.
pub const POOL_LIMIT: usize = 253;
/// Longest attribute and capacity id, in bytes.
pub const ID_LIMIT: usize = 32;
/// Longer attribute and capacity names are shortened in paths.
pub const NAME_LIMIT: usize = DRIVER_LIMIT + 1 + ID_LIMIT;

/// `may not be more than N bytes`
pub fn too_long(limit: usize) -> String {
    format!("may not be more than {limit} byte{}", if limit == 1 { "" } else { "s" })
}

/// Where a malformed key of a map is: older releases name the key, shortened to `limit`; the user always sees it.
pub fn bad_key_at<'p>(profile: &Profile, map_at: &'p Path<'p>, key: &'p str, limit: usize) -> Path<'p> {
    if profile.bad_map_key_in_path { map_at.short_key(key, limit) } else { map_at.own_key(key) }
}

// upstream v1.36 validateDriverName
pub fn check_driver(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if name.is_empty() {
        cx.report(rule, at).required("");
        if !cx.profile.empty_driver_is_malformed {
            return;
        }
    }
    if name.len() > DRIVER_LIMIT {
        cx.report(rule, at).too_long(too_long(DRIVER_LIMIT));
    }
    names::dns_subdomain(&names::lower(name), Unit::Characters, &mut |detail| {
        cx.report(rule, at).invalid(name, detail);
    });
}

// upstream v1.36 validatePoolName
pub fn check_pool(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if name.is_empty() {
        cx.report(rule, at).required("");
        return;
    }
    if name.len() > POOL_LIMIT {
        cx.report(rule, at).too_long(too_long(POOL_LIMIT));
    }
    for segment in name.split('/') {
        check_subdomain(cx, rule, at, segment);
    }
}

/// A DNS subdomain: node names, class names, pool segments.
pub fn check_subdomain(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    names::dns_subdomain(name, Unit::Characters, &mut |detail| {
        cx.report(rule, at).invalid(name, detail);
    });
}

/// A DNS label: devices, requests.
// upstream v1.36 validateDeviceName, validateRequestName
pub fn check_label(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    names::dns_label(name, Unit::Characters, &mut |detail| {
        cx.report(rule, at).invalid(name, detail);
    });
}

/// A bool that is either not there or true.
pub fn report_false(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>) {
    cx.report(rule, at).invalid(BadValue::Bool(false), "must be either unset or set to true");
}

/// ``{`nodeName`, `allNodes`}``: which of several fields are set.
pub fn fields_set(fields: &[(&str, bool)]) -> BadValue {
    let set: Vec<&str> = fields.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
    BadValue::str(&format!("{{{}}}", set.join(", ")))
}
