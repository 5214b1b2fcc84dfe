//! A classic claim that is allocated without a finalizer: if it is deleted now, nobody frees the resource.

use crate::admission::DecodedAttributes;
use crate::api::view::{Body, ClassicClaimStatus};
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::{Cx, rules};

rules! { Lint, Warn;
    /// Allocated, and no finalizer.
    MISSING = "allocated-without-finalizer",
}

pub(crate) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    let Body::ClassicClaim(claim) = admission.object.body else { return };
    let is_held = |status: ClassicClaimStatus<'_>| matches!(status.phase(), "Allocated" | "Reallocate");
    if admission.is_status() && is_held(claim.status()) && claim.metadata().finalizers().is_empty() {
        let metadata_at = Path::ROOT.field("metadata");
        let detail = "the driver must set one before it allocates, or the resource may leak";
        cx.report(MISSING, &metadata_at.field("finalizers"), ErrorType::Required, BadValue::Omitted, detail);
    }
}
