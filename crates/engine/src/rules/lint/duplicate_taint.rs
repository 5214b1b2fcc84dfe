//! A taint that occurs twice on one device, or in one patch.

use crate::rules::table::DUPLICATE_TAINT;
use crate::rules::{RuleContext, duplicates};
use crate::site::TaintList;
use tollgate_api::view::Taint;
use tollgate_document::field::Path;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, taints: TaintList<'_>) {
    let identity = |entry| taint_identity(taints.device_and_taint(entry));
    duplicates::for_each_repeat(taints.entries(), identity, |(first, _), (later, entry)| {
        let (_, taint) = taints.device_and_taint(entry);
        let detail = "an earlier taint on the same device has the same key, value and effect";
        cx.report(DUPLICATE_TAINT, &at.index(later))
            .duplicate(taint.key(), detail)
            .also_at(&at.index(first))
            .help("remove one of the two taints");
    });
}

/// Returns key, value, effect and device of a taint: taints with equal identities are duplicates.
#[inline]
fn taint_identity<'d>((device, taint): (&'d str, Taint<'d>)) -> [&'d [u8]; 4] {
    let [key, value, effect] = taint.key_value_effect();
    [key, value, effect, device].map(str::as_bytes)
}
