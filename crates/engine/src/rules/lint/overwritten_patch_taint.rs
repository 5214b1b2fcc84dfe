//! Two taints of one ResourceSlicePatch with the same key and effect: a device can have only one of them.

use crate::rules::table::OVERWRITTEN_PATCH_TAINT;
use crate::rules::{RuleContext, duplicates};
use crate::site::{TaintList, TaintOwner};
use tollgate_api::view::Taint;
use tollgate_document::field::Path;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, taints: TaintList<'_>) {
    if taints.owner != TaintOwner::Patch {
        return;
    }
    let identity = |entry| key_and_effect_identity(taints.device_and_taint(entry).1);
    duplicates::for_each_repeat(taints.entries(), identity, |(first, entry), (later, again)| {
        let ((_, taint), (_, again)) = (taints.device_and_taint(entry), taints.device_and_taint(again));
        if taint.value() != again.value() {
            cx.report(OVERWRITTEN_PATCH_TAINT, &at.index(later))
                .duplicate(again.key(), "overwrites an earlier taint with the same key and effect")
                .also_at(&at.index(first))
                .help("a device has only one value for each key and effect; remove one of the two taints");
        }
    });
}

/// Returns key and effect of a taint: of taints with equal identities, a device gets only one.
fn key_and_effect_identity(taint: Taint<'_>) -> [&[u8]; 4] {
    [taint.key(), taint.effect(), "", ""].map(str::as_bytes)
}
