//! The same taint twice on one device, or in one patch.

use crate::api::view::Taint;
use crate::field::Path;
use crate::finding::{BadValue, Kind};
use crate::rules::{Cx, repeats, rules};
use crate::site::Taints;

rules! { Lint, Warn;
    /// Key, value and effect occurred before.
    DUPLICATE = "duplicate-taint",
}

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, taints: Taints<'_>) {
    repeats::each(taints.iter(), identity, |(first, _), (later, (_, taint))| {
        let detail = "repeats an earlier taint of the same device";
        cx.report(DUPLICATE, &at.index(later), Kind::Duplicate, BadValue::str(taint.key()), detail);
        cx.also(DUPLICATE, &at.index(first));
    });
}

fn identity<'d>((device, taint): (&'d str, Taint<'d>)) -> [&'d [u8]; 4] {
    let [key, value, effect] = taint.identity();
    [key, value, effect, device.as_bytes()]
}
