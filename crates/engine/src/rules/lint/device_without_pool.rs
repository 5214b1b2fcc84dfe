//! A rule that names a device and no pool: names are unique within a pool only.

use crate::rules::RuleContext;
use crate::rules::table::DEVICE_WITHOUT_POOL;
use crate::site::DeviceSelection;
use tollgate_document::field::Path;

const DETAIL: &str = "without `pool`, the selector matches this device name in every pool";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let Some(selector) = selection.selector.filter(|_| selection.affects_pods()) else { return };
    if let (Some(device), None) = (selector.device(), selector.pool()) {
        cx.report(DEVICE_WITHOUT_POOL, &at.field("device"))
            .invalid(device, DETAIL)
            .help("drivers for node-local devices usually publish one pool per node; set `pool` to select a single device");
    }
}
