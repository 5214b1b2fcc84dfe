//! A taint whose key belongs to Kubernetes.

use super::reserved::is_reserved;
use crate::rules::Cx;
use crate::rules::table::RESERVED_TAINT_KEY;
use crate::site::LocatedTaint;
use tollgate_document::field::Path;

const SHORT: &str = "the domain of this key is reserved for Kubernetes";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    let key = placed.taint.key();
    if is_reserved(key) {
        cx.report(RESERVED_TAINT_KEY, &at.field("key"))
            .invalid(key, format_args!("{key} is in a domain that is reserved for Kubernetes"))
            .short(SHORT)
            .help("use a domain that you own, such as the driver name");
    }
}
