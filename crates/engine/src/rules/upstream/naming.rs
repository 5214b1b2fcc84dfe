//! Names of drivers, pools, devices and attributes: checks that several types share.
//!
//! It has no rules of its own: each caller passes the rule to report, because the same name has different meanings in
//! different fields. The order of the checks is upstream's.

use crate::rules::RuleContext;
use tollgate_api::profile::Profile;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::names::{self, LengthUnitWord};

/// Maximum length in bytes of a driver name or attribute domain.
pub const MAX_DRIVER_BYTES: usize = 63;
/// Maximum length in bytes of a pool name.
pub const MAX_POOL_BYTES: usize = 253;
/// Maximum length in bytes of an attribute or capacity id.
pub const MAX_ATTRIBUTE_ID_BYTES: usize = 32;
/// Maximum length in bytes of an attribute or capacity name; longer ones are shortened to this in paths.
pub const MAX_ATTRIBUTE_NAME_BYTES: usize = MAX_DRIVER_BYTES + 1 + MAX_ATTRIBUTE_ID_BYTES;

/// Returns the path of a malformed key of a map. Only older releases print the key, shortened to `limit` bytes; the
/// user's path always contains it.
pub fn path_of_bad_key<'p>(profile: &Profile, map_at: &'p Path<'p>, key: &'p str, limit: usize) -> Path<'p> {
    if profile.bad_map_key_in_path {
        map_at.key_shortened_by_server(key, limit)
    } else {
        map_at.user_only_key(key)
    }
}

/// Checks that a driver name is a DNS subdomain of at most 63 characters.
// upstream v1.36 validateDriverName
pub fn check_driver_name(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if name.is_empty() {
        cx.report(rule, at).required("");
        if !cx.profile.empty_driver_is_malformed {
            return;
        }
    }
    if name.len() > MAX_DRIVER_BYTES {
        cx.report(rule, at).too_long(MAX_DRIVER_BYTES);
    }
    names::check_dns_subdomain(&names::go_to_lower(name), LengthUnitWord::Characters, &mut |detail| {
        cx.report(rule, at).invalid(name, detail);
    });
}

/// Checks a pool name: DNS subdomains separated by slashes.
// upstream v1.36 validatePoolName
pub fn check_pool_name(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if name.is_empty() {
        cx.report(rule, at).required("");
        return;
    }
    if name.len() > MAX_POOL_BYTES {
        cx.report(rule, at).too_long(MAX_POOL_BYTES);
    }
    for segment in name.split('/') {
        check_dns_subdomain(cx, rule, at, segment);
    }
}

/// Checks a DNS subdomain, such as the name of a node or class, or a segment of a pool name.
pub fn check_dns_subdomain(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    names::check_dns_subdomain(name, LengthUnitWord::Characters, &mut |detail| {
        cx.report(rule, at).invalid(name, detail);
    });
}

/// Checks a DNS label, such as the name of a device or request.
// upstream v1.36 validateDeviceName, validateRequestName
pub fn check_dns_label(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    names::check_dns_label(name, LengthUnitWord::Characters, &mut |detail| {
        cx.report(rule, at).invalid(name, detail);
    });
}

/// Reports a field that is `false`, although it may only be unset or `true`.
pub fn report_explicit_false(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>) {
    cx.report(rule, at).invalid(BadValue::Bool(false), "must be either unset or set to true");
}

/// Reports a node selection unless exactly one of the fields is set: `none` is the detail if none is, and `several` if
/// several are, which the server prints as ``{`nodeName`, `allNodes`}``.
pub fn check_exactly_one_field_set(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    fields: &[(&str, bool)],
    [none, several]: [&'static str; 2],
) {
    let set = fields.iter().filter(|(_, set)| *set).map(|(name, _)| *name);
    match set.clone().count() {
        0 => {
            cx.report(rule, at).required(none);
        }
        1 => {}
        _ => {
            let set: Vec<&str> = set.collect();
            let value = BadValue::str(&format!("{{{}}}", set.join(", ")));
            cx.report(rule, at).invalid(value, several);
        }
    }
}
