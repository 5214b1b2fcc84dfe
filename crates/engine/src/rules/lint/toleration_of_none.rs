//! A toleration of effect None: there is nothing to tolerate.

use crate::rules::{Cx, rules};
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// The effect is None.
    OF_NONE = "toleration-of-none",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    // Where None is no effect at all, the server refuses it.
    if toleration.effect() == "None" && cx.profile.effects.contains(&"None") {
        let detail = "has no effect: taints with `effect: None` neither block nor evict pods";
        cx.report(OF_NONE, &at.field("effect"), ErrorType::Invalid, BadValue::named("None"), detail);
        cx.help(OF_NONE, "remove the toleration, or set `effect` to NoSchedule or NoExecute");
    }
}
