//! A DeviceTaintRule without a selector: no device by the documentation, every device by the scheduler.

use crate::rules::Cx;
use crate::rules::table::MISSING_TAINT_SELECTOR;
use crate::site::DeviceSelection;
use tollgate_document::field::Path;

const DETAIL: &str = "if the selector is missing, the scheduler treats every device as tainted";
const HELP: &str = "the API documentation says that a rule without a selector selects no devices; set `driver`, `pool` or \
                    `device`";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    if selection.selector.is_none() && selection.affects_pods() {
        cx.report(MISSING_TAINT_SELECTOR, at).required(DETAIL).help(HELP);
    }
}
