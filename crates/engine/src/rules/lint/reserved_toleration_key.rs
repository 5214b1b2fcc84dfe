//! A toleration of a key that belongs to Kubernetes: most likely a node taint, in the wrong place.

use super::reserved::is_reserved;
use crate::rules::{Cx, rules};
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// The key lies in a domain of Kubernetes.
    RESERVED = "reserved-toleration-key",
}

const SHORT: &str = "Kubernetes defines no device taints in this domain";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    let key = toleration.key();
    if is_reserved(key) {
        let detail = format!("Kubernetes defines no device taints in the domain of {key}");
        cx.report(RESERVED, &at.field("key"), ErrorType::Invalid, BadValue::str(key), detail);
        cx.short(RESERVED, SHORT);
        cx.help(
            RESERVED,
            "to tolerate a node taint, add the toleration to `spec.tolerations` of the pod, not to the claim",
        );
    }
}
