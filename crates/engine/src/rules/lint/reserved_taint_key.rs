//! A taint whose key belongs to Kubernetes.

use super::reserved::is_reserved;
use crate::rules::{Cx, rules};
use crate::site::LocatedTaint;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// The key lies in a domain of Kubernetes.
    RESERVED = "reserved-taint-key",
}

const SHORT: &str = "the domain of this key is reserved for Kubernetes";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    let key = placed.taint.key();
    if is_reserved(key) {
        let detail = format!("{key} is in a domain that is reserved for Kubernetes");
        cx.report(RESERVED, &at.field("key"), ErrorType::Invalid, BadValue::str(key), detail);
        cx.short(RESERVED, SHORT);
        cx.help(RESERVED, "use a domain that you own, such as the driver name");
    }
}
