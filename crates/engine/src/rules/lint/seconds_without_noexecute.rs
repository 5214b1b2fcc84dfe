//! `tolerationSeconds` where nothing reads it.

use crate::rules::{Cx, rules};
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// Seconds with another effect than NoExecute, or with none.
    IGNORED = "seconds-without-noexecute",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if let Some(seconds) = toleration.toleration_seconds()
        && toleration.effect() != "NoExecute"
    {
        let is_forever = toleration.effect().is_empty() && cx.profile.empty_effect_stops_eviction;
        let why = if is_forever {
            "without an effect, taints are tolerated forever"
        } else {
            "it applies only to `effect: NoExecute`"
        };
        let detail = format!("{seconds} is ignored: {why}");
        cx.report(
            IGNORED,
            &at.field("tolerationSeconds"),
            ErrorType::Invalid,
            BadValue::Int(seconds),
            detail,
        );
        cx.help(IGNORED, "remove the field, or set `effect: NoExecute`");
    }
}
