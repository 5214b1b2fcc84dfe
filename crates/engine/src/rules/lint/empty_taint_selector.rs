//! A DeviceTaintRule or a ResourceSlicePatch that selects every device of the cluster.

use crate::rules::RuleContext;
use crate::rules::table::EMPTY_TAINT_SELECTOR;
use crate::site::{DeviceSelection, SelectorOwner};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

const NO_EXECUTE_DETAIL: &str = "an empty selector matches all devices, so pods that use devices are evicted";
const NO_SCHEDULE_DETAIL: &str =
    "an empty selector matches all devices, so pods that need devices stay pending";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let Some(selector) = selection.selector else { return };
    let any = selector.device_class_name().or(selector.driver()).or(selector.pool()).or(selector.device());
    // With effect None nothing is evicted: the status reports what the rule would evict.
    if any.is_some() || !selector.selectors().is_empty() || !selection.affects_pods() {
        return;
    }
    let detail = if selection.taint.effect() == "NoExecute" { NO_EXECUTE_DETAIL } else { NO_SCHEDULE_DETAIL };
    let help = match selection.by {
        SelectorOwner::Rule => {
            "set `driver`, `pool` or `device`; to preview the impact, create the rule with `effect: None` first"
        }
        SelectorOwner::Patch => {
            "set `driver`, `pool` or `device` in `filter`; a patch without criteria applies to every device"
        }
    };
    cx.report(EMPTY_TAINT_SELECTOR, at).invalid(BadValue::Json("{}".into()), detail).help(help);
}
