//! Times of Kubernetes objects: RFC 3339 as Go's `time.Parse` reads it and `metav1.Time` writes it; durations are in
//! `duration.rs`.
//!
//! The errors are Go's texts, byte for byte, so the order of the checks is Go's too. Go is laxer than the RFC: an
//! hour may have one digit, a fraction may follow a comma, offsets reach 24:60. No clock, no zones but offsets, and
//! no leap seconds.

mod duration;

use std::fmt::Write as _;
use std::ops::RangeInclusive;

pub use duration::{DurationError, parse_duration};

/// A point in time, as in Go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp {
    /// Whole seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds after the whole second, 0 to 999,999,999.
    pub nanos: u32,
}

impl Timestamp {
    /// Go's zero time, the first second of year 1. `metav1.Time` takes it for "not set" and writes `null`.
    pub const ZERO: Timestamp = Timestamp { seconds: -62_135_596_800, nanos: 0 };

    /// Reads an RFC 3339 time as Go does; the error is Go's message.
    pub fn parse(text: &str) -> Result<Timestamp, String> {
        parse_rfc3339(text)
    }

    /// True for Go's zero time.
    pub fn is_go_zero_time(self) -> bool {
        self == Self::ZERO
    }
}

/// Reads an RFC 3339 time as Go does; the error is Go's message.
pub fn parse_rfc3339(text: &str) -> Result<Timestamp, String> {
    parse_rfc3339_with_offset(text).map(|(time, _)| time)
}

/// [`parse_rfc3339`], and the offset of the time zone in which the time is written, in seconds.
pub fn parse_rfc3339_with_offset(text: &str) -> Result<(Timestamp, i64), String> {
    match parse_api_server_form(text.as_bytes()) {
        Some(time) => Ok((time, 0)),
        None => parse_go_layout(text.as_bytes()).map_err(|error| error.message(text)),
    }
}

/// The time in UTC as `metav1.Time` is written: `2026-01-02T03:04:05Z`, without fractions of a second.
pub fn rfc3339(time: Timestamp) -> String {
    let (days, second) = (time.seconds.div_euclid(86_400), time.seconds.rem_euclid(86_400));
    let (year, month, day) = date_from_days(days);
    let sign = if year < 0 { "-" } else { "" };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{sign}{:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", year.unsigned_abs())
}

/// The time in UTC as `metav1.MicroTime` is written: `2026-01-02T03:04:05.000006Z`.
pub fn micro_time(time: Timestamp) -> String {
    format!("{}.{:06}Z", rfc3339(time).trim_end_matches('Z'), time.nanos / 1000)
}

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
/// Bytes of a text that messages show.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// The reason why a text is not a valid RFC 3339 time.
enum TimeError<'a> {
    /// The rest of the text does not match an element of the layout.
    Shape { rest: &'a [u8], element: &'static str },
    /// A number, such as the month, is out of range.
    Range(&'static str),
    /// There is extra text after the time.
    Extra(&'a [u8]),
}

impl TimeError<'_> {
    /// Go's message about the text `whole`.
    #[cold]
    fn message(&self, whole: &str) -> String {
        // Both may be megabytes long.
        let quote = |text: &[u8]| quote_for_time_error(text.get(..MAX_SHOWN_BYTES).unwrap_or(text));
        let whole = quote(whole.as_bytes());
        match self {
            Self::Shape { rest, element } => {
                format!("parsing time {whole} as \"{LAYOUT}\": cannot parse {} as \"{element}\"", quote(rest))
            }
            Self::Range(what) => format!("parsing time {whole}: {what} out of range"),
            Self::Extra(rest) => format!("parsing time {whole}: extra text: {}", quote(rest)),
        }
    }
}

/// Checks an RFC 3339 time as Go reads it; the error is Go's message.
pub fn check_rfc3339(text: &str) -> Result<(), String> {
    match api_server_form_parts(text.as_bytes()) {
        Some(_) => Ok(()),
        None => parse_rfc3339(text).map(drop),
    }
}

/// True if both texts have the form that API servers write, `2026-01-02T03:04:05Z`, and the first time is not after the
/// second. False does not mean that it is after: texts of other forms are not compared. Both must be valid times.
pub fn is_surely_not_after(time: &str, other: &str) -> bool {
    let has_usual_form = |text: &str| text.len() == USUAL_BYTES && text.ends_with('Z');
    has_usual_form(time) && has_usual_form(other) && time <= other
}

/// Reads a time of the form that API servers write, `2026-01-02T03:04:05Z`; `None` for any other text.
fn parse_api_server_form(text: &[u8]) -> Option<Timestamp> {
    let [year, month, day, hour, minute, second] = api_server_form_parts(text)?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(Timestamp { seconds, nanos: 0 })
}

/// Bytes of a time of the form that API servers write, `2026-01-02T03:04:05Z`.
const USUAL_BYTES: usize = 20;

/// The year, month, day, hour, minute and second of a valid time of the form `2026-01-02T03:04:05Z`; `None` for any
/// other text. It is fast, because a ResourceSlice can have a thousand times.
fn api_server_form_parts(text: &[u8]) -> Option<[i64; 6]> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'Z'] = text
    else {
        return None;
    };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, n1, n2, s1, s2].map(|byte| byte.wrapping_sub(b'0'));
    // Without a branch for each digit, so that compilers look at all of them at once.
    if digits.iter().fold(0, |largest: u8, digit| largest.max(*digit)) > 9 {
        return None;
    }
    let [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, n1, n2, s1, s2] = digits.map(i64::from);
    let (year, month, day) = (y1 * 1000 + y2 * 100 + y3 * 10 + y4, m1 * 10 + m2, d1 * 10 + d2);
    let (hour, minute, second) = (h1 * 10 + h2, n1 * 10 + n2, s1 * 10 + s2);
    let is_date = (1..=12).contains(&month) && 1 <= day && (day <= 28 || day <= days_in(month, year));
    let is_valid = is_date && hour <= 23 && minute <= 59 && second <= 59;
    is_valid.then_some([year, month, day, hour, minute, second])
}

/// Reads a time of any form that Go accepts, element by element in Go's order.
fn parse_go_layout(text: &[u8]) -> Result<(Timestamp, i64), TimeError<'_>> {
    let mut rest = text;
    let year = take_digits(&mut rest, 4).ok_or(TimeError::Shape { rest, element: "2006" })?;
    skip_literal(&mut rest, "-")?;
    let month = read_number(&mut rest, "01", 1..=12, "month")?;
    skip_literal(&mut rest, "-")?;
    let day = read_number(&mut rest, "02", 0..=99, "day")?;
    skip_literal(&mut rest, "T")?;
    let hour = read_hour(&mut rest)?;
    skip_literal(&mut rest, ":")?;
    let minute = read_number(&mut rest, "04", 0..=59, "minute")?;
    skip_literal(&mut rest, ":")?;
    let second = read_number(&mut rest, "05", 0..=59, "second")?;
    let nanos = read_fraction(&mut rest);
    let offset = read_offset(&mut rest)?;
    if !rest.is_empty() {
        return Err(TimeError::Extra(rest));
    }
    // Go checks the day last, when it knows the month and the year.
    if day < 1 || day > days_in(month, year) {
        return Err(TimeError::Range("day"));
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Ok((Timestamp { seconds, nanos }, offset))
}

/// Moves `rest` past the text `element`; an error if it does not begin with it.
fn skip_literal<'a>(rest: &mut &'a [u8], element: &'static str) -> Result<(), TimeError<'a>> {
    *rest = rest.strip_prefix(element.as_bytes()).ok_or(TimeError::Shape { rest, element })?;
    Ok(())
}

/// Reads `count` digits and moves `rest` past them; `None` if there are fewer.
fn take_digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (digits, after) = rest.split_at_checked(count)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    *rest = after;
    Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Reads two digits and moves `rest` past them; `element` and `name` name them in the errors.
fn read_number<'a>(
    rest: &mut &'a [u8],
    element: &'static str,
    range: RangeInclusive<i64>,
    name: &'static str,
) -> Result<i64, TimeError<'a>> {
    let number = take_digits(rest, 2).ok_or(TimeError::Shape { rest, element })?;
    if range.contains(&number) { Ok(number) } else { Err(TimeError::Range(name)) }
}

/// Reads an hour of one or two digits. Go accepts a single digit only for hours, because its layout `15` also
/// reads `3PM`-style hours.
fn read_hour<'a>(rest: &mut &'a [u8]) -> Result<i64, TimeError<'a>> {
    let hour = take_digits(rest, 2).or_else(|| take_digits(rest, 1));
    let hour = hour.ok_or(TimeError::Shape { rest, element: "15" })?;
    if hour > 23 { Err(TimeError::Range("hour")) } else { Ok(hour) }
}

/// Reads a fraction of a second in nanoseconds; 0 if there is none. Go reads it although the layout has none. Digits
/// after the ninth are dropped.
fn read_fraction(rest: &mut &[u8]) -> u32 {
    let [b'.' | b',', digits @ ..] = *rest else { return 0 };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (Some(number), Some(after)) = (digits.get(..length), digits.get(length..)) else { return 0 };
    if number.is_empty() {
        return 0;
    }
    *rest = after;
    number
        .iter()
        .chain(std::iter::repeat(&b'0'))
        .take(9)
        .fold(0, |nanos, &digit| nanos * 10 + u32::from(digit - b'0'))
}

/// Reads `Z` or an offset such as `+02:00`, in seconds.
fn read_offset<'a>(rest: &mut &'a [u8]) -> Result<i64, TimeError<'a>> {
    let bad = TimeError::Shape { rest, element: "Z07:00" };
    if let [b'Z', after @ ..] = *rest {
        *rest = after;
        return Ok(0);
    }
    let Some((&[sign, h1, h2, b':', m1, m2], after)) = rest.split_first_chunk() else { return Err(bad) };
    // Go reads the minute only behind a good hour, and its range errors win over a bad sign or minute.
    let hour = two_digit_number(h1, h2);
    let minute = hour.and_then(|_| two_digit_number(m1, m2));
    if hour.is_some_and(|hour| hour > 24) && minute.is_none_or(|minute| minute <= 60) {
        return Err(TimeError::Range("time zone offset hour"));
    }
    if minute.is_some_and(|minute| minute > 60) {
        return Err(TimeError::Range("time zone offset minute"));
    }
    let (Some(hour), Some(minute)) = (hour, minute) else { return Err(bad) };
    let seconds = (hour * 60 + minute) * 60;
    *rest = after;
    match sign {
        b'+' => Ok(seconds),
        b'-' => Ok(-seconds),
        _ => Err(bad),
    }
}

/// The number with these two digits; `None` if one of them is not a digit.
fn two_digit_number(a: u8, b: u8) -> Option<i64> {
    (a.is_ascii_digit() && b.is_ascii_digit()).then(|| i64::from(a - b'0') * 10 + i64::from(b - b'0'))
}

/// The number of days of a month, from 1, in a year.
fn days_in(month: i64, year: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The number of days from 1970-01-01 to a date of the proleptic Gregorian calendar; negative before. Years are counted
/// from March, so that the leap day is a year's last; 400 years are always 146,097 days.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

/// The year, month and day that is `days` after 1970-01-01; the inverse of [`days_since_1970`].
pub fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// The text in double quotes as Go's `time` package prints it, which is not `%q`: every byte outside ASCII and every
/// control byte below a space is `\xNN`.
fn quote_for_time_error(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_times() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("2025-08-13T10:11:12.999999999999Z", "2025-08-13T10:11:12Z"),
            ("2025-08-13T10:11:12,5Z", "2025-08-13T10:11:12Z"),
            ("2025-08-13T10:11:12+02:00", "2025-08-13T08:11:12Z"),
            ("2025-08-13T10:11:12-24:60", "2025-08-14T11:11:12Z"),
            ("2025-08-13T1:11:12Z", "2025-08-13T01:11:12Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
            ("2000-02-29T23:59:59Z", "2000-02-29T23:59:59Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z"),
            ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            let time = parse_rfc3339(text).unwrap();
            assert_eq!(rfc3339(time), expected, "{text}");
            assert_eq!(check_rfc3339(text), Ok(()));
            assert_eq!(
                is_surely_not_after(text, "2025-08-13T10:11:12Z"),
                text.len() == 20 && expected < "2025-08-13T10:11:13",
                "{text}"
            );
            assert_eq!(time.is_go_zero_time(), text.starts_with("0001"), "{text}");
        }
        let halves = [("2025-08-13T10:11:12.5Z", 500_000_000), ("2025-08-13T10:11:12.0000000019Z", 1)];
        for (text, nanos) in halves {
            assert_eq!(parse_rfc3339(text), Ok(Timestamp { seconds: 1_755_079_872, nanos }));
        }
    }

    #[test]
    fn every_day_of_the_calendar() {
        for days in -1_000_000..3_000_000 {
            let (year, month, day) = date_from_days(days);
            assert_eq!(days_since_1970(year, month, day), days);
            assert!((1..=12).contains(&month) && (1..=days_in(month, year)).contains(&day));
        }
    }

    #[test]
    fn wrong_shapes() {
        for (text, rest, element) in [
            ("", "", "2006"),
            ("x", "x", "2006"),
            (" 2025-08-13T10:11:12Z", " 2025-08-13T10:11:12Z", "2006"),
            ("-2025-08-13T00:00:00Z", "-2025-08-13T00:00:00Z", "2006"),
            ("10000-01-01T00:00:00Z", "0-01-01T00:00:00Z", "-"),
            ("1700000000", "000000", "-"),
            ("2025-1-1T00:00:00Z", "1-1T00:00:00Z", "01"),
            ("2025-01-1T00:00:00Z", "1T00:00:00Z", "02"),
            ("2025-08-13", "", "T"),
            ("2025-08-13 10:11:12Z", " 10:11:12Z", "T"),
            ("2025-08-13t10:11:12Z", "t10:11:12Z", "T"),
            ("2025-08-13T", "", "15"),
            ("2025-08-13Tx", "x", "15"),
            ("2025-08-13T10", "", ":"),
            ("2025-08-13T10:1:12Z", "1:12Z", "04"),
            ("2025-08-13T10:11Z", "Z", ":"),
            ("2025-08-13T10:11:1Z", "1Z", "05"),
            ("2025-08-13T10:11:12", "", "Z07:00"),
            ("2025-08-13T10:11:12z", "z", "Z07:00"),
            ("2025-08-13T10:11:12.Z", ".Z", "Z07:00"),
            ("2025-08-13T10:11:12+0200", "+0200", "Z07:00"),
            ("2025-08-13T10:11:12*02:00", "*02:00", "Z07:00"),
            ("2025-08-13T10:11:12+0x:99", "+0x:99", "Z07:00"),
        ] {
            let expected = format!(
                r#"parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{rest}" as "{element}""#
            );
            assert_eq!(check_rfc3339(text), Err(expected.clone()));
            assert_eq!(parse_rfc3339(text), Err(expected));
        }
        assert_eq!(
            parse_rfc3339("é\"\n\u{7f}").unwrap_err(),
            "parsing time \"\\xc3\\xa9\\\"\\x0a\u{7f}\" as \"2006-01-02T15:04:05Z07:00\": \
             cannot parse \"\\xc3\\xa9\\\"\\x0a\u{7f}\" as \"2006\""
        );
    }

    #[test]
    fn out_of_range() {
        for (text, error) in [
            ("2025-13-01T00:00:00Z", "month out of range"),
            ("2025-00-01T00:00:00Z", "month out of range"),
            ("2025-02-30T00:00:00Z", "day out of range"),
            ("1900-02-29T00:00:00Z", "day out of range"),
            ("2025-02-00T00:00:00Z", "day out of range"),
            ("2025-08-13T24:00:00Z", "hour out of range"),
            ("2025-08-13T10:61:00Z", "minute out of range"),
            ("2025-08-13T10:11:60Z", "second out of range"),
            ("2025-08-13T10:11:12+25:00", "time zone offset hour out of range"),
            ("2025-08-13T10:11:12+25:xx", "time zone offset hour out of range"),
            ("2025-08-13T10:11:12x25:00", "time zone offset hour out of range"),
            ("2025-08-13T10:11:12+24:61", "time zone offset minute out of range"),
            ("2025-08-13T10:11:12+25:61", "time zone offset minute out of range"),
            ("2025-08-13T10:11:12Z ", "extra text: \" \""),
            ("2025-02-30T10:11:12Zé", "extra text: \"\\xc3\\xa9\""),
        ] {
            let whole = quote_for_time_error(text.as_bytes());
            assert_eq!(parse_rfc3339(text), Err(format!("parsing time {whole}: {error}")));
        }
    }
}
