//! What draft r2 adds to a taint: `data`, `description` and `evictionsPerSecond`, each within its limit.

use crate::rules::upstream::naming::too_long;
use crate::rules::{Cx, rules};
use crate::site::LocatedTaint;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Documented, Deny;
    /// The raw JSON of `data` is larger than the draft allows.
    DATA = "oversized-taint-data",
    /// The description is longer than the draft allows.
    DESCRIPTION = "oversized-taint-description",
    /// A rate of zero or less never evicts anything.
    RATE = "eviction-rate",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    let (taint, documented) = (placed.taint, cx.profile.documented);
    // Hardly any taint has one of them.
    if !taint.has_more() {
        return;
    }
    if let Some(limit) = documented.taint_data
        && !taint.data().is_null()
        && cx.is_oversized(taint.data(), limit)
    {
        cx.report(DATA, &at.field("data"), ErrorType::TooLong, BadValue::Omitted, too_long(limit));
    }
    if let Some(limit) = documented.taint_description
        && taint.description().len() > limit
    {
        cx.report(
            DESCRIPTION,
            &at.field("description"),
            ErrorType::TooLong,
            BadValue::Omitted,
            too_long(limit),
        );
    }
    if let Some(rate) = taint.evictions_per_second()
        && documented.eviction_rate
        && rate <= 0
    {
        let at = at.field("evictionsPerSecond");
        cx.report(RATE, &at, ErrorType::Invalid, BadValue::Int(rate), "must be greater than 0");
    }
}
