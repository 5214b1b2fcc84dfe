//! An update that sends a stored taint with a fresh `timeAdded`: every tolerated period starts again.
//!
//! An update without `timeAdded` has this effect, because the server sets the current time before a webhook sees the
//! object. A time that is only seconds old is therefore treated as set by the server.

use crate::admission::Operation;
use crate::rules::RuleContext;
use crate::rules::table::RESTARTED_TIME;
use crate::site::LocatedTaint;
use tollgate_api::view::Taint;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::gotime;

/// Maximum age of a `timeAdded` that counts as set by the server for this request: the time from there to this check.
const MAX_SERVER_SET_AGE_SECONDS: i64 = 10;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, placed: &LocatedTaint<'_>) {
    // Only evictions are counted from it.
    if cx.operation != Operation::Update || placed.taint.effect() != "NoExecute" {
        return;
    }
    let (Some(time), Some(now)) = (placed.taint.time_added(), cx.now) else { return };
    let age = now.seconds.saturating_sub(time.seconds);
    if !(0..=MAX_SERVER_SET_AGE_SECONDS).contains(&age) {
        return;
    }
    let Some(stored) = placed.stored_counterpart().and_then(Taint::time_added) else { return };
    if stored.seconds < time.seconds {
        let value = BadValue::str(&gotime::rfc3339(time));
        let detail =
            format_args!("restarts all toleration periods: the stored time is {}", gotime::rfc3339(stored));
        cx.report(RESTARTED_TIME, &at.field("timeAdded"))
            .invalid(value, detail)
            .help("send the stored `timeAdded`, or use a patch; if an update omits `timeAdded`, the API server sets it to \
             the current time");
    }
}
