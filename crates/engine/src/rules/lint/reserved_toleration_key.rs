//! A toleration of a key in a domain that is reserved for Kubernetes: most likely meant for a node taint.

use super::reserved::has_reserved_domain;
use crate::rules::RuleContext;
use crate::rules::table::RESERVED_TOLERATION_KEY;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;

const SHORT: &str = "Kubernetes defines no device taints in this domain";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    let key = toleration.key();
    if has_reserved_domain(key) {
        cx.report(RESERVED_TOLERATION_KEY, &at.field("key"))
            .invalid(key, format_args!("Kubernetes defines no device taints in the domain of {key}"))
            .short_detail(SHORT)
            .help("to tolerate a node taint, add the toleration to `spec.tolerations` of the pod, not to the claim");
    }
}
