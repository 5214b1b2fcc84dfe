//! Data that the scheduler and the driver exchange while they search for a node, left in a claim that is already
//! allocated.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::STALE_SCHEDULING;
use tollgate_api::view::ObjectBody;
use tollgate_document::field::Path;

const DETAIL: &str = "the claim is allocated, so the driver should have removed this field";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::ClassicClaim(claim) = admission.object.body else { return };
    let status = claim.status();
    let Some(scheduling) =
        status.scheduling().filter(|_| admission.is_status() && status.phase() == "Allocated")
    else {
        return;
    };
    // Where an allocated resource can be used is told in `driver.availableOnNodes`: that one stays.
    let (scheduler, driver) = (scheduling.scheduler(), scheduling.driver());
    let status_at = Path::ROOT.field("status");
    let at = status_at.field("scheduling");
    let (scheduler_at, driver_at) = (at.field("scheduler"), at.field("driver"));
    for (field_at, is_left) in [
        (scheduler_at.field("selectedNode"), !scheduler.selected_node().is_empty()),
        (scheduler_at.field("potentialNodes"), !scheduler.potential_nodes().is_empty()),
        (driver_at.field("unsuitableNodes"), !driver.unsuitable_nodes().is_empty()),
    ] {
        if is_left {
            cx.report(STALE_SCHEDULING, &field_at).forbidden(DETAIL);
        }
    }
}
