//! A taint whose key is in a domain that is reserved for Kubernetes.

use super::reserved::has_reserved_domain;
use crate::rules::RuleContext;
use crate::rules::table::RESERVED_TAINT_KEY;
use crate::site::LocatedTaint;
use tollgate_document::field::Path;

const SHORT: &str = "the domain of this key is reserved for Kubernetes";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    let key = placed.key;
    if has_reserved_domain(key) {
        cx.report(RESERVED_TAINT_KEY, &at.field("key"))
            .invalid(key, format_args!("{key} is in a domain that is reserved for Kubernetes"))
            .short_detail(SHORT)
            .help("use a domain that you own, such as the driver name");
    }
}
