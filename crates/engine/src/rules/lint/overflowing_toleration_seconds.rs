//! `tolerationSeconds` that overflow when the eviction controller converts them to nanoseconds.

use crate::rules::RuleContext;
use crate::rules::table::OVERFLOWING_TOLERATION_SECONDS;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

/// The most whole seconds that Go's `time.Duration` holds: 292 years.
const MAX_DURATION_SECONDS: i64 = i64::MAX / 1_000_000_000;

const HELP: &str = "the eviction controller counts in nanoseconds and may evict the pod immediately; remove the field \
                    to tolerate the taint forever";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if let Some(seconds) = toleration.toleration_seconds()
        && toleration.effect() == "NoExecute"
        && seconds > MAX_DURATION_SECONDS
    {
        cx.report(OVERFLOWING_TOLERATION_SECONDS, &at.field("tolerationSeconds"))
            .invalid(
                BadValue::Int(seconds),
                format_args!("{seconds} overflows; the maximum is {MAX_DURATION_SECONDS}"),
            )
            .help(HELP);
    }
}
