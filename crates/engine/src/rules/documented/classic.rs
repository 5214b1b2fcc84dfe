//! Classic DRA, as KEP-3063 describes it: classes, claims and their status, and templates of claims inside of pods.
//!
//! The group `cdi.k8s.io` was never served under that name, so no server enforces any of this. Texts are those that
//! upstream uses for the same fault in today's types.

mod claim;
mod pod;
mod status;

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::CLASSIC_DRIVER;
use crate::rules::upstream::naming;
use tollgate_api::view::{ClassicClass, ObjectBody};
use tollgate_document::field::Path;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    match admission.object.body {
        ObjectBody::ClassicClass(class) => check_classic_class(cx, class),
        ObjectBody::ClassicClaim(claim) if admission.is_status() => {
            status::check_classic_status(cx, admission, claim)
        }
        ObjectBody::ClassicClaim(claim) => claim::check_classic_claim(cx, admission, claim),
        ObjectBody::Pods(_) if !admission.is_status() => {
            pod::check_claim_templates_inside_classic_pod(cx, admission)
        }
        _ => {}
    }
}

fn check_classic_class(cx: &mut RuleContext<'_, '_>, class: ClassicClass<'_>) {
    let at = Path::ROOT.field("driverName");
    if class.driver_name().is_empty() {
        cx.report(CLASSIC_DRIVER, &at).required("");
    } else {
        naming::check_driver_name(cx, CLASSIC_DRIVER, &at, class.driver_name());
    }
}
