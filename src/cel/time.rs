//! Literal durations and timestamps, as Go's `time` package reads them.
//!
//! Says only whether a text is one; what it cannot rule out, it lets pass.

use crate::gotime;

/// Go `time.ParseDuration`.
pub(crate) fn is_duration(text: &str) -> bool {
    gotime::parse_duration(text).is_ok()
}

/// Go `time.Parse(time.RFC3339, …)`: `2006-01-02T15:04:05Z`, with an optional fraction or offset.
pub(crate) fn is_timestamp(text: &str) -> bool {
    parse_timestamp(text).is_some()
}

fn parse_timestamp(text: &str) -> Option<()> {
    let (year, rest) = number(text, 4, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2, 2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2, 2)?;
    let (hour, rest) = number(rest.strip_prefix('T')?, 1, 2)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2, 2)?;
    let (second, rest) = number(rest.strip_prefix(':')?, 2, 2)?;
    let rest = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => {
            let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (after.len() < fraction.len()).then_some(after)?
        }
        None => rest,
    };
    let in_range = year >= 1
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    (in_range && is_zone(rest)).then_some(())
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let offset = || {
        let (_, rest) = number(text.strip_prefix(['+', '-'])?, 2, 2)?;
        let (_, rest) = number(rest.strip_prefix(':')?, 2, 2)?;
        rest.is_empty().then_some(())
    };
    offset().is_some()
}

fn number(text: &str, fewest: usize, most: usize) -> Option<(u32, &str)> {
    let len = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(len)?;
    (len >= fewest).then_some((digits.parse().ok()?, rest))
}

fn days_in(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Seconds since 1970 of the years 1 to 9999. cel-go `minUnixTime`, `maxUnixTime`
pub(crate) fn is_timestamp_seconds(seconds: i64) -> bool {
    (-62_135_596_800..=253_402_300_799).contains(&seconds)
}
