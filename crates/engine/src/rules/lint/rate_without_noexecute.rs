//! `evictionsPerSecond` (draft r2) of a taint that evicts nothing.

use crate::rules::RuleContext;
use crate::rules::table::RATE_WITHOUT_NOEXECUTE;
use crate::site::LocatedTaint;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    let taint = placed.taint;
    // An effect that is missing or unknown is reported by itself.
    if placed.may_have_draft_fields
        && let Some(rate) = taint.evictions_per_second()
        && taint.effect() != "NoExecute"
        && cx.profile.effects.contains(&taint.effect())
    {
        let detail =
            format_args!("ignored with `effect: {}`, because only NoExecute evicts pods", taint.effect());
        cx.report(RATE_WITHOUT_NOEXECUTE, &at.field("evictionsPerSecond"))
            .invalid(BadValue::Int(rate), detail)
            .help("remove the field, or set `effect: NoExecute`");
    }
}
