//! The clock of the server: the only place where it reads the current time.
#![expect(clippy::disallowed_methods, reason = "the shell's clock; the engine is told what time it is")]

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::rc::Rc;
use std::time::Instant;

use chrono::{Datelike as _, SecondsFormat, Timelike as _, Utc};

/// Writes the current time, RFC 3339 with microseconds. By hand, because log lines are frequent and chrono interprets a
/// format each time.
pub(super) fn write_now(out: &mut impl Write) -> fmt::Result {
    let now = Utc::now();
    let parts = [
        (now.year().unsigned_abs(), 4, "-"),
        (now.month(), 2, "-"),
        (now.day(), 2, "T"),
        (now.hour(), 2, ":"),
        (now.minute(), 2, ":"),
        (now.second(), 2, "."),
        (now.timestamp_subsec_micros(), 6, "Z"),
    ];
    for (number, digits, after) in parts {
        for place in (0..digits).rev() {
            let digit = number / 10_u32.pow(place) % 10;
            out.write_char(char::from_digit(digit, 10).unwrap_or('0'))?;
        }
        out.write_str(after)?;
    }
    Ok(())
}

/// The current time in seconds since 1970.
pub(super) fn unix_seconds() -> i64 {
    Utc::now().timestamp()
}

/// The current time of the monotonic clock.
pub(super) fn monotonic_now() -> Instant {
    Instant::now()
}

/// The current time in whole seconds, which the engine gets with each request. It is formatted once per second and
/// worker.
#[derive(Debug)]
pub(super) struct SecondClock(RefCell<(i64, Rc<str>)>);

impl Default for SecondClock {
    fn default() -> SecondClock {
        SecondClock(RefCell::new((i64::MIN, Rc::from(""))))
    }
}

impl SecondClock {
    /// The current time, RFC 3339 in whole seconds.
    pub(super) fn now(&self) -> Rc<str> {
        let now = Utc::now();
        let mut held = self.0.borrow_mut();
        if held.0 != now.timestamp() {
            *held = (now.timestamp(), now.to_rfc3339_opts(SecondsFormat::Secs, true).into());
        }
        Rc::clone(&held.1)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn log_times_are_what_chrono_writes() {
        let mut text = String::new();
        super::write_now(&mut text).expect("a string");
        let time = chrono::DateTime::parse_from_rfc3339(&text).expect("RFC 3339");
        let written = time.to_utc().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        assert_eq!(text, written);
        assert_eq!(super::SecondClock::default().now().len(), "2026-01-02T03:04:05Z".len());
    }
}
