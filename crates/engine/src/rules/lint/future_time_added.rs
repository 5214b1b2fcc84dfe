//! A taint whose `timeAdded` is in the future.

use crate::rules::RuleContext;
use crate::rules::table::FUTURE_TIME_ADDED;
use crate::site::LocatedTaint;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::gotime;

/// Seconds by which a time may be in the future, because clocks differ.
const MAX_CLOCK_SKEW_SECONDS: i64 = 60;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    if gotime::is_surely_not_after(placed.written_time, cx.now_text) {
        return;
    }
    let (Some(time), Some(now)) = (placed.taint.time_added(), cx.now) else { return };
    if time.seconds.saturating_sub(now.seconds) > MAX_CLOCK_SKEW_SECONDS {
        let written = gotime::rfc3339(time);
        let detail = format!("{written} is in the future, so no pods are evicted before then");
        let value = BadValue::str(&written);
        cx.report(FUTURE_TIME_ADDED, &at.field("timeAdded"))
            .invalid(value, detail)
            .help("remove `timeAdded`, so that the API server sets it to the current time");
    }
}
