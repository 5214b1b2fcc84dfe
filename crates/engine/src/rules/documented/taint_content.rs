//! The fields that draft r2 adds to a taint: `data`, `description` and `evictionsPerSecond`, and their limits.

use crate::rules::RuleContext;
use crate::rules::table::{EVICTION_RATE, OVERSIZED_TAINT_DATA, OVERSIZED_TAINT_DESCRIPTION};
use crate::site::LocatedTaint;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    if !placed.may_have_draft_fields {
        return;
    }
    let (taint, documented) = (placed.taint, cx.profile.documented);
    if let Some(limit) = documented.taint_data
        && !taint.data().is_null_or_absent()
        && cx.is_oversized(taint.data(), limit)
    {
        cx.report(OVERSIZED_TAINT_DATA, &at.field("data")).too_long(limit);
    }
    if let Some(limit) = documented.taint_description
        && taint.description().len() > limit
    {
        cx.report(OVERSIZED_TAINT_DESCRIPTION, &at.field("description")).too_long(limit);
    }
    if documented.eviction_rate
        && let Some(rate) = taint.evictions_per_second()
        && rate <= 0
    {
        cx.report(EVICTION_RATE, &at.field("evictionsPerSecond"))
            .invalid(BadValue::Int(rate), "must be greater than 0");
    }
}
