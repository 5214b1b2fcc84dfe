//! A DeviceTaintRule or a ResourceSlicePatch that selects every device of the cluster.

use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::{Cx, rules};
use crate::site::{DeviceSelection, SelectorOwner};

rules! { Lint, Warn;
    /// A selector without criteria, and an effect that affects pods.
    EMPTY = "empty-taint-selector",
}

const NO_EXECUTE: &str = "selects every device: each pod that uses one is deleted";
const NO_SCHEDULE: &str = "selects every device: no pod that needs one is scheduled";

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let Some(selector) = selection.selector else { return };
    let any = selector.device_class_name().or(selector.driver()).or(selector.pool()).or(selector.device());
    // With effect None it is a question, not a deed: the status tells whom the rule would hit.
    if any.is_some() || !selector.selectors().is_empty() || !selection.affects_pods() {
        return;
    }
    let detail = if selection.taint.effect() == "NoExecute" { NO_EXECUTE } else { NO_SCHEDULE };
    cx.report(EMPTY, at, ErrorType::Invalid, BadValue::Json("{}".into()), detail);
    let help = match selection.by {
        SelectorOwner::Rule => {
            "name a driver, pool or device; or try the rule with effect None first and read its status"
        }
        SelectorOwner::Patch => {
            "name a driver, pool or device in `filter`; a patch without criteria is for all of them"
        }
    };
    cx.help(EMPTY, help);
}
