//! Draft r2's `spec.taints` of a ResourceSlice: how many, beside what, on which device, and written once.
//!
//! The taints themselves are judged where every taint is.

use crate::admission::DecodedAttributes;
use crate::rules::upstream::naming;
use crate::rules::{Cx, rules};
use tollgate_api::view::{Body, SliceTaint, View};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Documented, Deny;
    /// More entries than the draft allows.
    TOO_MANY = "too-many-slice-taints",
    /// A slice publishes devices or taints, never both.
    BOTH = "devices-and-taints",
    /// The entry's device is missing or malformed.
    DEVICE = "slice-taint-device",
    /// The entry has a nested taint and fields of an inlined one.
    TWICE = "nested-and-inlined-taint",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    let Body::Slice(slice) = admission.object.body else { return };
    let Some(limit) = cx.profile.documented.slice_taints.filter(|_| !admission.is_status()) else { return };
    let (spec, spec_at) = (slice.spec(), Path::ROOT.field("spec"));
    let (taints, taints_at) = (spec.taints(), spec_at.field("taints"));
    if !taints.is_empty() && !spec.devices().is_empty() {
        let detail = "only one of `devices` or `taints` is allowed";
        cx.report(BOTH, &spec_at, ErrorType::Invalid, BadValue::str(""), detail);
        cx.also(BOTH, &spec_at.field("devices"));
        cx.also(BOTH, &taints_at);
    }
    let count = taints.len();
    if count > limit {
        let detail = format!("KEP-5055 allows at most {limit}");
        cx.report(TOO_MANY, &taints_at, ErrorType::TooMany, BadValue::Excess { count, limit }, detail);
    }
    for (index, entry) in taints.iter().enumerate() {
        check_entry(cx, &taints_at.index(index), entry);
    }
}

fn check_entry(cx: &mut Cx<'_, '_>, at: &Path<'_>, entry: SliceTaint<'_>) {
    let device_at = at.field("device");
    if entry.device().is_empty() {
        cx.report(DEVICE, &device_at, ErrorType::Required, BadValue::Omitted, "");
    } else {
        naming::label(cx, DEVICE, &device_at, entry.device());
    }
    if entry.json().get("taint").is_null() {
        return;
    }
    let inlined = entry
        .json()
        .members()
        .find(|(key, value)| !matches!(key.text(), "device" | "taint") && !value.is_null());
    if let Some((key, _)) = inlined {
        let detail = "may not be specified when `taint` is set";
        cx.report(TWICE, &at.field(key.text()), ErrorType::Forbidden, BadValue::Omitted, detail);
        cx.also(TWICE, &at.field("taint"));
    }
}
