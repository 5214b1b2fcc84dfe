//! A classic claim that is allocated without a finalizer, or loses its last one: once it is deleted, nobody frees the
//! resource.
//!
//! Only the driver knows whether the resource is freed. A driver that has freed it updates the status before it removes
//! its finalizer, so the stored phase is checked.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::ALLOCATED_WITHOUT_FINALIZER;
use tollgate_api::view::{ClassicClaim, ObjectBody};
use tollgate_document::field::Path;

const DETAIL: &str = "if an allocated claim without finalizers is deleted, its resource leaks";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::ClassicClaim(claim) = admission.object.body else { return };
    let metadata_at = Path::ROOT.field("metadata");
    let at = metadata_at.field("finalizers");
    if allocated_claim_loses_last_finalizer(admission) {
        cx.report(ALLOCATED_WITHOUT_FINALIZER, &at).required(DETAIL).help(
            "the driver must free the resource and reset `status.phase` before it removes its finalizer",
        );
    } else if admission.is_status()
        && has_allocated_resource(claim)
        && claim.metadata().finalizers().is_empty()
    {
        cx.report(ALLOCATED_WITHOUT_FINALIZER, &at)
            .required(DETAIL)
            .help("the driver must add its finalizer before it allocates the resource");
    }
}

/// True if a driver holds a resource for the claim.
fn has_allocated_resource(claim: ClassicClaim<'_>) -> bool {
    matches!(claim.status().phase(), "Allocated" | "Reallocate")
}

/// True if an update removes the last finalizer from a claim that is stored as allocated. Lints must run on such an
/// update although its spec is unchanged.
pub fn allocated_claim_loses_last_finalizer(admission: &DecodedAttributes<'_>) -> bool {
    let (ObjectBody::ClassicClaim(claim), Some(ObjectBody::ClassicClaim(stored))) =
        (admission.object.body, admission.old_object.map(|old| old.body))
    else {
        return false;
    };
    !admission.is_status()
        && has_allocated_resource(stored)
        && !stored.metadata().finalizers().is_empty()
        && claim.metadata().finalizers().is_empty()
}
