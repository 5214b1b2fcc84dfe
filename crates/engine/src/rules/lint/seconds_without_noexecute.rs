//! `tolerationSeconds` of a toleration whose effect is not NoExecute, so that nothing reads it.

use crate::rules::RuleContext;
use crate::rules::table::SECONDS_WITHOUT_NOEXECUTE;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if let Some(seconds) = toleration.toleration_seconds()
        && toleration.effect() != "NoExecute"
    {
        let is_forever = toleration.effect().is_empty() && cx.profile.empty_effect_stops_eviction;
        let why = if is_forever {
            "without an effect, taints are tolerated forever"
        } else {
            "it applies only to `effect: NoExecute`"
        };
        cx.report(SECONDS_WITHOUT_NOEXECUTE, &at.field("tolerationSeconds"))
            .invalid(BadValue::Int(seconds), format_args!("{seconds} is ignored: {why}"))
            .help("remove the field, or set `effect: NoExecute`");
    }
}
