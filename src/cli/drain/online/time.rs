//! Times and durations, as a drain compares and writes them.

use std::time::Duration;

pub(super) use tollgate_formats::gotime::micro_time;

use tollgate_formats::gotime::Timestamp;

/// Whole seconds from one time to a later one; negative if it is not later.
pub(super) fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    let whole = to.seconds.saturating_sub(from.seconds);
    whole - i64::from(to.nanos < from.nanos)
}

/// Returns the time that is `duration` after `time`.
pub(super) fn add_duration(time: Timestamp, duration: Duration) -> Timestamp {
    let nanos = time.nanos + duration.subsec_nanos();
    let carry = i64::from(nanos / 1_000_000_000);
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timestamp {
        seconds: time.seconds.saturating_add(seconds).saturating_add(carry),
        nanos: nanos % 1_000_000_000,
    }
}

/// Returns a duration as text: `1 h 5 min`, `90 s`.
pub(super) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0 | 1, _) if seconds < 120 => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::{add_duration, duration_text, micro_time, seconds_between};
    use std::time::Duration;
    use tollgate_formats::gotime::Timestamp;

    #[test]
    fn times_are_compared_and_written() {
        let time = Timestamp { seconds: 1_700_000_000, nanos: 900_000_000 };
        let after = add_duration(time, Duration::from_millis(10_200));
        assert_eq!(after, Timestamp { seconds: 1_700_000_011, nanos: 100_000_000 });
        assert_eq!(seconds_between(time, after), 10);
        assert_eq!(seconds_between(after, time), -11);
        assert_eq!(micro_time(time), "2023-11-14T22:13:20.900000Z");
    }

    #[test]
    fn durations_are_said() {
        for (seconds, expected) in
            [(5, "5 s"), (90, "90 s"), (120, "2 min"), (630, "10 min 30 s"), (3900, "1 h 5 min")]
        {
            assert_eq!(duration_text(Duration::from_secs(seconds)), expected);
        }
    }
}
