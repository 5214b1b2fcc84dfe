//! A toleration of a key that belongs to Kubernetes: most likely a node taint, in the wrong place.

use super::reserved::is_reserved;
use crate::api::view::Toleration;
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::{Cx, rules};

rules! { Lint, Warn;
    /// The key lies in a domain of Kubernetes.
    RESERVED = "reserved-toleration-key",
}

const DETAIL: &str = "Kubernetes defines no device taint in this domain";

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    let key = toleration.key();
    if is_reserved(key) {
        cx.report(RESERVED, &at.field("key"), ErrorType::Invalid, BadValue::str(key), DETAIL);
        cx.help(RESERVED, "taints of nodes are tolerated in the pod, not in the claim");
    }
}
