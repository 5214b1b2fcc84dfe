//! A DeviceTaintRule or a ResourceSlicePatch that selects a driver and nothing else: all of its devices in the cluster.

use crate::rules::RuleContext;
use crate::rules::table::DRIVER_WIDE_TAINT;
use crate::site::DeviceSelection;
use tollgate_document::field::Path;
use tollgate_formats::names;

const SHORT: &str = "selects every device of the driver; set `pool` or `device`";
const HELP: &str = "set `pool` or `device`; if you mean all devices, create the rule with `effect: None` first and check its \
                    status, or run `tollgate impact`";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let Some(selector) = selection.selector.filter(|_| selection.affects_pods()) else { return };
    let narrower = selector.pool().or(selector.device()).or(selector.device_class_name());
    if narrower.is_some() || !selector.selectors().is_empty() {
        return;
    }
    // A name that no driver can have is refused by the server, and uppercase letters match nothing.
    let Some(driver) = selector.driver().filter(|driver| names::has_subdomain_shape(driver)) else { return };
    let consequence = match selection.taint.effect() {
        "NoExecute" => "all pods that use one are evicted",
        _ => "pods that need one stay pending",
    };
    let detail =
        format_args!("without `pool` or `device`, this selects every device of {driver}, so {consequence}");
    cx.report(DRIVER_WIDE_TAINT, &at.field("driver")).invalid(driver, detail).short_detail(SHORT).help(HELP);
}
