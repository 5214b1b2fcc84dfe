//! A taint that occurs twice on one device, or in one patch.

use crate::rules::table::DUPLICATE_TAINT;
use crate::rules::{Cx, duplicates};
use crate::site::TaintList;
use tollgate_api::view::{Taint, View as _};
use tollgate_document::doc::Name;
use tollgate_document::field::Path;

const IDENTITY: [Name; 3] = [Name::of("key"), Name::of("value"), Name::of("effect")];

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, taints: TaintList<'_>) {
    let identity = |entry| taint_identity(taints.device_and_taint(entry));
    duplicates::for_each_repeat(taints.entries(), identity, |(first, _), (later, entry)| {
        let (_, taint) = taints.device_and_taint(entry);
        let detail = "an earlier taint on the same device has the same key, value and effect";
        cx.report(DUPLICATE_TAINT, &at.index(later))
            .duplicate(taint.key(), detail)
            .also(&at.index(first))
            .help("remove one of the two taints");
    });
}

/// Returns key, value, effect and device of a taint: taints with equal identities are duplicates.
#[inline]
fn taint_identity<'d>((device, taint): (&'d str, Taint<'d>)) -> [&'d [u8]; 4] {
    let [key, value, effect] = IDENTITY.map(|name| taint.json().field(name).bytes());
    [key, value, effect, device.as_bytes()]
}
