//! Selection by class and by CEL, which 1.35 removed: a rule that has nothing else selects every device there.
//!
//! Releases without these fields drop them before the rules run, so this lint checks the selector as written.

use crate::rules::RuleContext;
use crate::rules::table::REMOVED_SELECTOR_FIELD;
use crate::site::DeviceSelection;
use tollgate_document::field::Path;

const SELECTS_ALL_DETAIL: &str =
    "Kubernetes 1.35 and later ignore this field, so the rule selects every device";
const SELECTS_MORE_DETAIL: &str =
    "Kubernetes 1.35 and later ignore this field, so the rule selects more devices";
const SHORT_ALL_DETAIL: &str = "ignored since Kubernetes 1.35, so the rule selects every device";
const SHORT_MORE_DETAIL: &str = "ignored since Kubernetes 1.35, so the rule selects more devices";
const HELP: &str = "select by `driver`, `pool` or `device` instead";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let written = selection.written;
    let kept = written.driver().or(written.pool()).or(written.device());
    let (detail, short) = if kept.is_none() {
        (SELECTS_ALL_DETAIL, SHORT_ALL_DETAIL)
    } else {
        (SELECTS_MORE_DETAIL, SHORT_MORE_DETAIL)
    };
    for (field, is_set) in [
        ("deviceClassName", written.device_class_name().is_some()),
        ("selectors", !written.selectors().is_empty()),
    ] {
        if is_set {
            cx.report(REMOVED_SELECTOR_FIELD, &at.field(field))
                .forbidden(detail)
                .short_detail(short)
                .help(HELP);
        }
    }
}
