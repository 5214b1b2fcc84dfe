//! A rule that names a device and no pool: names are unique within a pool only.

use crate::rules::{Cx, rules};
use crate::site::DeviceSelection;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// A device without its pool, and an effect that affects pods.
    AMBIGUOUS = "device-without-pool",
}

const DETAIL: &str = "without `pool`, the selector matches this device name in every pool";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let Some(selector) = selection.selector.filter(|_| selection.affects_pods()) else { return };
    if let (Some(device), None) = (selector.device(), selector.pool()) {
        cx.report(AMBIGUOUS, &at.field("device"), ErrorType::Invalid, BadValue::str(device), DETAIL);
        cx.help(AMBIGUOUS, "drivers for node-local devices usually publish one pool per node; set `pool` to select a single device");
    }
}
