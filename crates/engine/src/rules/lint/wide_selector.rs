//! Selectors that select every device of a driver or of the cluster, of a DeviceTaintRule or a ResourceSlicePatch whose
//! taint affects pods.
//!
//! A rule without a selector selects no device according to the documentation, but the scheduler applied it to every
//! device until that was fixed.

use crate::rules::RuleContext;
use crate::rules::table::{DRIVER_WIDE_TAINT, EMPTY_TAINT_SELECTOR, MISSING_TAINT_SELECTOR};
use crate::site::{DeviceSelection, SelectorOwner};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::names;

const MISSING_ALL_DEVICES_DETAIL: &str =
    "if the selector is missing, the scheduler treats every device as tainted";
const MISSING_ALL_DEVICES_HELP: &str = "the API documentation says that a rule without a selector selects no devices; set `driver`, `pool` or \
                                        `device`";
const MISSING_NO_DEVICES_DETAIL: &str = "if the selector is missing, the rule selects no devices";
const MISSING_NO_DEVICES_HELP: &str = "in Kubernetes 1.37.0 and earlier, the scheduler treats every device as tainted (fixed after \
                                       1.37.0); set `driver`, `pool` or `device`";
const EMPTY_NO_EXECUTE_DETAIL: &str =
    "an empty selector matches all devices, so pods that use devices are evicted";
const EMPTY_NO_SCHEDULE_DETAIL: &str =
    "an empty selector matches all devices, so pods that need devices stay pending";
const DRIVER_SHORT: &str = "selects every device of the driver; set `pool` or `device`";
const DRIVER_HELP: &str = "set `pool` or `device`; if you mean all devices, create the rule with `effect: None` first and check its \
                           status, or run `tollgate impact`";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    // With effect None nothing is evicted: the status reports what the rule would evict.
    if !selection.affects_pods() {
        return;
    }
    let evicts = selection.taint.effect() == "NoExecute";
    let Some(selector) = selection.selector else {
        let (detail, help) = if cx.profile.allocation.rule_without_selector_taints_all {
            (MISSING_ALL_DEVICES_DETAIL, MISSING_ALL_DEVICES_HELP)
        } else {
            (MISSING_NO_DEVICES_DETAIL, MISSING_NO_DEVICES_HELP)
        };
        cx.report(MISSING_TAINT_SELECTOR, at).required(detail).help(help);
        return;
    };
    let narrower = selector.pool().or(selector.device()).or(selector.device_class_name());
    if narrower.is_some() || !selector.selectors().is_empty() {
        return;
    }
    match selector.driver() {
        None => {
            let detail = if evicts { EMPTY_NO_EXECUTE_DETAIL } else { EMPTY_NO_SCHEDULE_DETAIL };
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
        // A name that no driver can have is refused by the server, and uppercase letters match nothing.
        Some(driver) if names::has_subdomain_shape(driver) => {
            let consequence =
                if evicts { "all pods that use one are evicted" } else { "pods that need one stay pending" };
            let detail = format_args!(
                "without `pool` or `device`, this selects every device of {driver}, so {consequence}"
            );
            cx.report(DRIVER_WIDE_TAINT, &at.field("driver"))
                .invalid(driver, detail)
                .short_detail(DRIVER_SHORT)
                .help(DRIVER_HELP);
        }
        Some(_) => {}
    }
}
