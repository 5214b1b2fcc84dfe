//! A toleration of effect None: there is nothing to tolerate.

use crate::rules::RuleContext;
use crate::rules::table::TOLERATION_OF_NONE;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    // Where None is no effect at all, the server refuses it.
    if toleration.effect() == "None" && cx.profile.effects.contains(&"None") {
        let detail = "has no effect: taints with `effect: None` neither block nor evict pods";
        cx.report(TOLERATION_OF_NONE, &at.field("effect"))
            .invalid(BadValue::json_quoted_string("None"), detail)
            .help("remove the toleration, or set `effect` to NoSchedule or NoExecute");
    }
}
