//! A taint that occurs twice on one device, or in one patch.

use crate::rules::{Cx, duplicates, rules};
use crate::site::TaintList;
use tollgate_api::view::Taint;
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// Key, value and effect occurred before.
    DUPLICATE = "duplicate-taint",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, taints: TaintList<'_>) {
    let identity = |entry| identity(taints.read(entry));
    duplicates::each(taints.entries(), identity, |(first, _), (later, entry)| {
        let (_, taint) = taints.read(entry);
        let detail = "an earlier taint on the same device has the same key, value and effect";
        cx.report(DUPLICATE, &at.index(later), ErrorType::Duplicate, BadValue::str(taint.key()), detail);
        cx.also(DUPLICATE, &at.index(first));
        cx.help(DUPLICATE, "remove one of the two taints");
    });
}

#[inline]
fn identity<'d>((device, taint): (&'d str, Taint<'d>)) -> [&'d [u8]; 4] {
    let [key, value, effect] = taint.written().map(Value::bytes);
    [key, value, effect, device.as_bytes()]
}
