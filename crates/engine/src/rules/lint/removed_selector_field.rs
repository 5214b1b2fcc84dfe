//! Selection by class and by CEL, which 1.35 removed: a rule that has nothing else selects every device there.
//!
//! Where the field is not known any more it was dropped before the rules run, so this looks at what was written.

use crate::rules::Cx;
use crate::rules::table::REMOVED_SELECTOR_FIELD;
use crate::site::DeviceSelection;
use tollgate_document::field::Path;

const TO_ALL: &str = "Kubernetes 1.35 and later ignore this field, so the rule selects every device";
const SELECTS_MORE: &str = "Kubernetes 1.35 and later ignore this field, so the rule selects more devices";
const SHORT_ALL: &str = "ignored since Kubernetes 1.35, so the rule selects every device";
const SHORT_MORE: &str = "ignored since Kubernetes 1.35, so the rule selects more devices";
const HELP: &str = "select by `driver`, `pool` or `device` instead";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let written = selection.written;
    let kept = written.driver().or(written.pool()).or(written.device());
    let (detail, short) = if kept.is_none() { (TO_ALL, SHORT_ALL) } else { (SELECTS_MORE, SHORT_MORE) };
    if written.device_class_name().is_some() {
        cx.report(REMOVED_SELECTOR_FIELD, &at.field("deviceClassName"))
            .forbidden(detail)
            .short(short)
            .help(HELP);
    }
    if !written.selectors().is_empty() {
        cx.report(REMOVED_SELECTOR_FIELD, &at.field("selectors")).forbidden(detail).short(short).help(HELP);
    }
}
