//! The clock of the command line: read once per run, and passed on as text.

use chrono::format::ParseErrorKind;
use chrono::{DateTime, SecondsFormat, Utc};

#[cfg(feature = "cluster")]
use tollgate_formats::gotime::Timestamp;

/// The flag `--now`, for commands whose result depends on the time.
#[derive(Debug, clap::Args)]
pub(super) struct ClockArgs {
    /// Use this time as the current time (RFC 3339; default: now)
    #[arg(long, alias = "at", value_name = "TIME", value_parser = parse_now)]
    #[arg(hide_short_help = true)]
    now: Option<String>,
}

impl ClockArgs {
    /// Returns the time of `--now`, or the current time; RFC 3339, UTC, whole seconds.
    pub(super) fn now(&self) -> String {
        self.now.clone().unwrap_or_else(now_rfc3339)
    }

    /// True if `--now` is given.
    #[cfg(feature = "cluster")]
    pub(super) fn is_now_given(&self) -> bool {
        self.now.is_some()
    }
}

/// The current time; RFC 3339, UTC, whole seconds.
#[expect(clippy::disallowed_methods, reason = "the one door to the clock")]
pub(super) fn now_rfc3339() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The current time in seconds since 1970.
#[cfg(feature = "serve")]
#[expect(clippy::disallowed_methods, reason = "the one door to the clock")]
pub(super) fn unix_seconds() -> i64 {
    Utc::now().timestamp()
}

/// The current time, with fractions of a second.
#[cfg(feature = "cluster")]
#[expect(clippy::disallowed_methods, reason = "the one door to the clock")]
pub(super) fn timestamp() -> Timestamp {
    let now = Utc::now();
    Timestamp { seconds: now.timestamp(), nanos: now.timestamp_subsec_nanos().min(999_999_999) }
}

/// The current instant of the monotonic clock, to measure how long something takes.
#[cfg(feature = "ui")]
#[expect(clippy::disallowed_methods, reason = "the one door to the clock")]
pub(super) fn monotonic() -> std::time::Instant {
    std::time::Instant::now()
}

/// Parses the value of `--now` (RFC 3339) and returns it in UTC.
fn parse_now(text: &str) -> Result<String, String> {
    let expected = "expected an RFC 3339 time, such as 2026-11-16T09:00:00Z";
    let no_such_time = || format!("there is no such time; {expected}");
    let time = DateTime::parse_from_rfc3339(text).map_err(|error| match error.kind() {
        ParseErrorKind::OutOfRange => no_such_time(),
        _ => expected.to_owned(),
    })?;
    // Chrono accepts second 60, and counts it as nanoseconds of second 59.
    if time.timestamp_subsec_nanos() >= 1_000_000_000 {
        return Err(no_such_time());
    }
    Ok(time.with_timezone(&Utc).to_rfc3339_opts(SecondsFormat::Secs, true))
}
