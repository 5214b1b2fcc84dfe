//! A classic claim with delayed allocation that is allocated before a node was selected: the driver did not wait.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::ALLOCATED_WITHOUT_NODE;
use tollgate_api::view::{ClassicClaim, ObjectBody};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

const DETAIL: &str = "the claim uses delayed allocation, but the scheduler has not selected a node";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let (ObjectBody::ClassicClaim(claim), Some(ObjectBody::ClassicClaim(old))) =
        (admission.object.body, admission.old_object.map(|old| old.body))
    else {
        return;
    };
    let is_allocated = |claim: ClassicClaim<'_>| claim.status().phase() == "Allocated";
    // The driver may unset the selection with the same update.
    let is_selected = |claim: ClassicClaim<'_>| {
        let scheduling = claim.status().scheduling();
        scheduling.is_some_and(|scheduling| !scheduling.scheduler().selected_node().is_empty())
    };
    let delayed = claim.spec().allocation_mode() != "Immediate";
    if admission.is_status()
        && delayed
        && is_allocated(claim)
        && !is_allocated(old)
        && ![claim, old].map(is_selected).contains(&true)
    {
        cx.report(ALLOCATED_WITHOUT_NODE, &Path::ROOT.field("status").field("phase"))
            .invalid(BadValue::json_quoted_string("Allocated"), DETAIL)
            .help("the driver must wait for `status.scheduling.scheduler.selectedNode` before it sets `phase: Allocated`");
    }
}
