//! Two taints of one ResourceSlicePatch with the same key and effect: a device can have only one of them.

use crate::api::view::Taint;
use crate::field::Path;
use crate::finding::{BadValue, Kind};
use crate::rules::{Cx, repeats, rules};
use crate::site::{Owner, Taints};

rules! { Lint, Warn;
    /// Key and effect occurred before, with another value.
    OVERWRITTEN = "overwritten-patch-taint",
}

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, taints: Taints<'_>) {
    if taints.owner != Owner::Patch {
        return;
    }
    repeats::each(taints.iter(), identity, |(first, (_, taint)), (later, (_, again))| {
        if taint.value() != again.value() {
            let detail = "overwrites an earlier taint of the same key and effect";
            cx.report(OVERWRITTEN, &at.index(later), Kind::Duplicate, BadValue::str(again.key()), detail);
            cx.also(OVERWRITTEN, &at.index(first));
        }
    });
}

fn identity<'d>((_, taint): (&'d str, Taint<'d>)) -> [&'d [u8]; 4] {
    [taint.key(), taint.effect(), "", ""].map(str::as_bytes)
}
