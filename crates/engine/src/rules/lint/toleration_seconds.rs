//! `tolerationSeconds` that nothing reads, that are negative, or that overflow when the eviction controller converts them
//! to nanoseconds.

use crate::rules::RuleContext;
use crate::rules::table::{
    NEGATIVE_TOLERATION_SECONDS, OVERFLOWING_TOLERATION_SECONDS, SECONDS_WITHOUT_NOEXECUTE,
};
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, Edit, Fix, NewValue};

/// The most whole seconds that Go's `time.Duration` holds: 292 years.
const MAX_DURATION_SECONDS: i64 = i64::MAX / 1_000_000_000;

const OVERFLOW_HELP: &str = "the eviction controller counts in nanoseconds and may evict the pod immediately; remove the field \
                             to tolerate the taint forever";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    let Some(seconds) = toleration.toleration_seconds() else { return };
    let (at, value) = (at.field("tolerationSeconds"), BadValue::Int(seconds));
    if toleration.effect() != "NoExecute" {
        let is_forever = toleration.effect().is_empty() && cx.profile.empty_effect_stops_eviction;
        let why = if is_forever {
            "without an effect, taints are tolerated forever"
        } else {
            "it applies only to `effect: NoExecute`"
        };
        cx.report(SECONDS_WITHOUT_NOEXECUTE, &at)
            .invalid(value, format_args!("{seconds} is ignored: {why}"))
            .help("remove the field, or set `effect: NoExecute`");
    } else if seconds < 0 {
        // Kubernetes treats it as zero.
        let detail = format_args!("{seconds} is treated as 0: pods are evicted immediately");
        cx.report(NEGATIVE_TOLERATION_SECONDS, &at)
            .invalid(value, detail)
            .help("set the field to 0, or remove it to tolerate the taint forever")
            .fix_if_fixable(|| {
                let (at, value) = (at.owned(), NewValue::Literal("0".into()));
                Fix::safe(format!("Replace `{seconds}` with `0`"), Edit::Set { at, value }).marked_unsafe()
            });
    } else if seconds > MAX_DURATION_SECONDS {
        let detail = format_args!("{seconds} overflows; the maximum is {MAX_DURATION_SECONDS}");
        cx.report(OVERFLOWING_TOLERATION_SECONDS, &at).invalid(value, detail).help(OVERFLOW_HELP);
    }
}
