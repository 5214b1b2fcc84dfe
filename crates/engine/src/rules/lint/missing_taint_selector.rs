//! A DeviceTaintRule without a selector: according to the documentation it selects no device, but the scheduler applied
//! it to every device until that was fixed.

use crate::rules::RuleContext;
use crate::rules::table::MISSING_TAINT_SELECTOR;
use crate::site::DeviceSelection;
use tollgate_document::field::Path;

const ALL_DEVICES_DETAIL: &str = "if the selector is missing, the scheduler treats every device as tainted";
const HELP: &str = "the API documentation says that a rule without a selector selects no devices; set `driver`, `pool` or \
                    `device`";
const NO_DEVICES_DETAIL: &str = "if the selector is missing, the rule selects no devices";
const HELP_NO_DEVICES: &str = "in Kubernetes 1.37.0 and earlier, the scheduler treats every device as tainted (fixed after \
                               1.37.0); set `driver`, `pool` or `device`";

/// Reports an absent selector, but not an empty one, of rules whose effect is `NoSchedule` or `NoExecute`.
pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    if selection.selector.is_some() || !selection.affects_pods() {
        return;
    }
    let (detail, help) = if cx.profile.allocation.rule_without_selector_taints_all {
        (ALL_DEVICES_DETAIL, HELP)
    } else {
        (NO_DEVICES_DETAIL, HELP_NO_DEVICES)
    };
    cx.report(MISSING_TAINT_SELECTOR, at).required(detail).help(help);
}
