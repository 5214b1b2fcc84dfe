//! Classic DRA, as KEP-3063 describes it: classes, claims and their status, and templates of claims inside of pods.
//!
//! The group `cdi.k8s.io` was never served under that name, so no server enforces any of this. Texts are those that
//! upstream uses for the same fault in today's types.

mod claim;
mod pod;
mod status;

use crate::admission::DecodedAttributes;
use crate::rules::upstream::naming;
use crate::rules::{Cx, rules};
use tollgate_api::view::{Body, ClassicClass};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Documented, Deny;
    /// The driver of a class, or of an allocated claim, is missing or malformed, or another one than before.
    DRIVER = "classic-driver",
    /// The class of a claim is missing or malformed.
    CLASS_NAME = "classic-class-name",
    /// The class of a claim is none of those that are known to exist.
    UNKNOWN_CLASS = "unknown-resource-class",
    /// The mode is neither Immediate nor Delayed.
    MODE = "classic-allocation-mode",
    /// The spec of a stored claim is changed.
    IMMUTABLE = "immutable-classic-claim",
    /// The phase is not one of the three.
    PHASE = "claim-phase",
    /// The phase does not follow the stored one.
    TRANSITION = "claim-phase-transition",
    /// The number of users is neither positive nor -1.
    USER_LIMIT = "claim-user-limit",
    /// More users than the limit allows, or users of what is not allocated.
    RESERVED = "claim-reserved-for",
    /// A node, or a selector of nodes, is malformed.
    SCHEDULING = "claim-scheduling",
    /// The name that a claim will get is not one.
    GENERATED = "generated-claim-name",
    /// A template gives its claim metadata other than labels and annotations.
    TEMPLATE_META = "claim-template-metadata",
    /// A template has a spec and fields of an inlined one.
    TEMPLATE_TWICE = "nested-and-inlined-template",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    match admission.object.body {
        Body::ClassicClass(class) => check_class(cx, class),
        Body::ClassicClaim(claim) if admission.is_status() => status::check(cx, admission, claim),
        Body::ClassicClaim(claim) => claim::check(cx, admission, claim),
        Body::Pods(_) if !admission.is_status() => pod::check(cx, admission),
        _ => {}
    }
}

fn check_class(cx: &mut Cx<'_, '_>, class: ClassicClass<'_>) {
    let at = Path::ROOT.field("driverName");
    if class.driver_name().is_empty() {
        cx.report(DRIVER, &at, ErrorType::Required, BadValue::Omitted, "");
    } else {
        naming::driver(cx, DRIVER, &at, class.driver_name());
    }
}
