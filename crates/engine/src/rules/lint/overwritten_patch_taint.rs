//! Two taints of one ResourceSlicePatch with the same key and effect: a device can have only one of them.

use crate::rules::{Cx, duplicates, rules};
use crate::site::{TaintList, TaintOwner};
use tollgate_api::view::Taint;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// Key and effect occurred before, with another value.
    OVERWRITTEN = "overwritten-patch-taint",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, taints: TaintList<'_>) {
    if taints.owner != TaintOwner::Patch {
        return;
    }
    let identity = |entry| identity(taints.read(entry).1);
    duplicates::each(taints.entries(), identity, |(first, entry), (later, again)| {
        let ((_, taint), (_, again)) = (taints.read(entry), taints.read(again));
        if taint.value() != again.value() {
            let detail = "overwrites an earlier taint with the same key and effect";
            cx.report(
                OVERWRITTEN,
                &at.index(later),
                ErrorType::Duplicate,
                BadValue::str(again.key()),
                detail,
            );
            cx.also(OVERWRITTEN, &at.index(first));
            cx.help(
                OVERWRITTEN,
                "a device has only one value for each key and effect; remove one of the two taints",
            );
        }
    });
}

fn identity(taint: Taint<'_>) -> [&[u8]; 4] {
    [taint.key(), taint.effect(), "", ""].map(str::as_bytes)
}
