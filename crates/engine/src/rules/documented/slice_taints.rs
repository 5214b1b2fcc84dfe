//! `spec.taints` of a ResourceSlice in draft r2: at most as many as the draft allows, not together with `devices`, each
//! with the name of its device, and not both nested and inlined.
//!
//! The taints themselves are checked like all other taints.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{
    DEVICES_AND_TAINTS, NESTED_AND_INLINED_TAINT, SLICE_TAINT_DEVICE, TOO_MANY_SLICE_TAINTS,
};
use crate::rules::upstream::naming;
use tollgate_api::view::{ObjectBody, SliceTaint, View};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Slice(slice) = admission.object.body else { return };
    let Some(limit) = cx.profile.documented.slice_taints.filter(|_| !admission.is_status()) else { return };
    let (spec, spec_at) = (slice.spec(), Path::ROOT.field("spec"));
    let (taints, taints_at) = (spec.taints(), spec_at.field("taints"));
    if !taints.is_empty() && !spec.devices().is_empty() {
        cx.report(DEVICES_AND_TAINTS, &spec_at)
            .invalid("", "only one of `devices` or `taints` is allowed")
            .also_at(&spec_at.field("devices"))
            .also_at(&taints_at);
    }
    let count = taints.len();
    if count > limit {
        cx.report(TOO_MANY_SLICE_TAINTS, &taints_at)
            .too_many(BadValue::Excess { count, limit }, format_args!("KEP-5055 allows at most {limit}"));
    }
    for (index, entry) in taints.iter().enumerate() {
        check_entry_except_its_taint(cx, &taints_at.index(index), entry);
    }
}

/// Checks an entry of `spec.taints` except for the taint in it: the device, and that the taint is not both nested and
/// inlined.
fn check_entry_except_its_taint(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, entry: SliceTaint<'_>) {
    let device_at = at.field("device");
    if entry.device().is_empty() {
        cx.report(SLICE_TAINT_DEVICE, &device_at).required("");
    } else {
        naming::check_dns_label(cx, SLICE_TAINT_DEVICE, &device_at, entry.device());
    }
    if entry.json().get("taint").is_null_or_absent() {
        return;
    }
    let inlined = entry
        .json()
        .members()
        .find(|(key, value)| !matches!(key.text(), "device" | "taint") && !value.is_null_or_absent());
    if let Some((key, _)) = inlined {
        cx.report(NESTED_AND_INLINED_TAINT, &at.field(key.text()))
            .forbidden("may not be specified when `taint` is set")
            .also_at(&at.field("taint"));
    }
}
