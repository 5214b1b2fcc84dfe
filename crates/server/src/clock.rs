//! The clock of the server: the only place where it reads the current time.
#![expect(clippy::disallowed_methods, reason = "the shell's clock; the engine is told what time it is")]

use std::time::Instant;

use chrono::{SecondsFormat, Utc};

/// The current time for log lines, RFC 3339 with microseconds.
pub(super) fn rfc3339_micros() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// The current time for the engine, RFC 3339 in whole seconds.
pub(super) fn rfc3339_seconds() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The current time in seconds since 1970.
pub(super) fn unix() -> i64 {
    Utc::now().timestamp()
}

/// The current time of the monotonic clock.
pub(super) fn instant() -> Instant {
    Instant::now()
}
