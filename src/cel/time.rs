//! Literal durations and timestamps, as Go's `time` package reads them.
//!
//! Says only whether a text is one; what it cannot rule out, it lets pass.

/// Go `time.ParseDuration`: an optional sign, then `0` or numbers with units.
pub(super) fn is_duration(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return true;
    }
    let mut rest = unsigned;
    let mut nanoseconds = 0_f64;
    while !rest.is_empty() {
        let number_len = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_len);
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        if digits == 0 || number.len() > digits + 1 {
            return false;
        }
        let Some((unit, after)) = split_unit(tail) else { return false };
        nanoseconds += number.parse::<f64>().unwrap_or(f64::INFINITY) * unit;
        rest = after;
    }
    // A little over what an int64 of nanoseconds holds: the edge itself is left to the server.
    !unsigned.is_empty() && nanoseconds < 9.3e18
}

fn split_unit(text: &str) -> Option<(f64, &str)> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("\u{b5}s", 1e3),
        ("\u{3bc}s", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
    ];
    UNITS.iter().find_map(|(name, factor)| {
        let after = text.strip_prefix(name)?;
        // `m` must not eat the start of a longer, unknown unit.
        after.chars().next().is_none_or(|c| c.is_ascii_digit() || c == '.').then_some((*factor, after))
    })
}

/// Go `time.Parse(time.RFC3339, …)`: `2006-01-02T15:04:05Z`, with an optional fraction or offset.
pub(super) fn is_timestamp(text: &str) -> bool {
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
pub(super) fn is_timestamp_seconds(seconds: i64) -> bool {
    (-62_135_596_800..=253_402_300_799).contains(&seconds)
}
