//! `tolerationSeconds` that do not fit the eviction controller's nanoseconds.

use crate::rules::{Cx, rules};
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// More seconds than 63 bits of nanoseconds hold.
    OVERFLOW = "overflowing-toleration-seconds",
}

/// The last whole second that Go's `time.Duration` holds: 292 years.
const LONGEST: i64 = i64::MAX / 1_000_000_000;

const HELP: &str = "the eviction controller counts in nanoseconds and may evict the pod immediately; remove the field \
                    to tolerate the taint forever";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if let Some(seconds) = toleration.toleration_seconds()
        && toleration.effect() == "NoExecute"
        && seconds > LONGEST
    {
        let detail = format!("{seconds} overflows; the maximum is {LONGEST}");
        cx.report(
            OVERFLOW,
            &at.field("tolerationSeconds"),
            ErrorType::Invalid,
            BadValue::Int(seconds),
            detail,
        );
        cx.help(OVERFLOW, HELP);
    }
}
