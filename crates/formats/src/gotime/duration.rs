//! Durations as Go's `time.ParseDuration` reads them: `1h30m`, `1.5s`, `-2ms`.
//!
//! All durations are read here: those in selectors, policies and flags, and the timeout in the URL of a webhook. The
//! algorithm is Go's, including its floating point for fractions, so the same texts are accepted with the same results
//! to the nanosecond. The errors do not have Go's texts, because they are not shown.

use std::fmt;

/// The reason why a text is not a valid Go duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DurationError {
    /// The text is not a list of numbers with units.
    Syntax,
    /// The duration does not fit into an `int64` of nanoseconds.
    Range,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "not a duration, such as 1h30m or 1.5s",
            Self::Range => "longer than 292 years",
        })
    }
}

/// Largest magnitude of a duration: that of the most negative `int64`.
const MAX_NANOSECONDS: u64 = 1 << 63;

/// Reads a duration as Go does; returns nanoseconds.
pub fn parse_duration(text: &str) -> Result<i64, DurationError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(DurationError::Syntax);
    }
    let (mut rest, mut total) = (unsigned, 0_u64);
    while !rest.is_empty() {
        let (nanos, after) = read_component(rest)?;
        total =
            total.checked_add(nanos).filter(|&total| total <= MAX_NANOSECONDS).ok_or(DurationError::Range)?;
        rest = after;
    }
    let signed =
        if text.starts_with('-') { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
    signed.ok_or(DurationError::Range)
}

/// Reads the number with a unit at the start of a text; returns its nanoseconds, and the text after it.
fn read_component(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Syntax);
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let unit = match name {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(DurationError::Syntax),
    };
    let nanos = parse_digits(whole)?
        .checked_mul(unit)
        .and_then(|nanos| nanos.checked_add(fraction_nanos(fraction, unit)));
    nanos.filter(|&nanos| nanos <= MAX_NANOSECONDS).map(|nanos| (nanos, rest)).ok_or(DurationError::Range)
}

/// The digits at the start of a text, and what follows them.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// The number with these digits; 0 if there are none.
fn parse_digits(digits: &str) -> Result<u64, DurationError> {
    if digits.is_empty() { Ok(0) } else { digits.parse().map_err(|_too_long| DurationError::Range) }
}

/// The nanoseconds of a fraction of a unit, given by its digits after the decimal point. Digits that overflow
/// an `int64` are dropped, as in Go's `leadingFraction`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go multiplies as float64 and cuts: 0.3333333333333333333h is 20 minutes"
)]
fn fraction_nanos(digits: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1_f64);
    for digit in digits.bytes() {
        if number > (MAX_NANOSECONDS - 1) / 10 {
            break;
        }
        let longer = number * 10 + u64::from(digit - b'0');
        if longer > MAX_NANOSECONDS {
            break;
        }
        (number, scale) = (longer, scale * 10.0);
    }
    (number as f64 * (unit as f64 / scale)) as u64
}

#[cfg(test)]
mod tests {
    use super::{DurationError, parse_duration};

    #[test]
    fn durations_are_read_as_go_reads_them() {
        const HOUR: i64 = 3_600_000_000_000;
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("0s", 0),
            ("1ns", 1),
            ("1.5us", 1_500),
            ("1\u{b5}s1ns", 1_001),
            ("1\u{3bc}s", 1_000),
            ("+5m", HOUR / 12),
            ("2h45m0.5s", 9_900_500_000_000),
            ("-.5s", -500_000_000),
            ("5.s", 5_000_000_000),
            ("1s1s", 2_000_000_000),
            ("0.0000000001s", 0),
            // Of Go's own tests.
            ("0.3333333333333333333h", HOUR / 3),
            ("0.100000000000000000000h", HOUR / 10),
            ("9007199254740993ns", (1 << 53) + 1),
            ("9223372036854775807ns", i64::MAX),
            ("9223372036854775.807us", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("-2562047h47m16.854775808s", i64::MIN),
        ] {
            assert_eq!(parse_duration(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn errors_say_whether_it_is_a_duration_at_all() {
        for text in [
            "", "-", "+", "3", "s", ".", "-.", ".s", "1.2.3s", "1d", "1h ", " 1h", "--1s", "1m1", "1hour",
            "1e3s",
        ] {
            assert_eq!(parse_duration(text), Err(DurationError::Syntax), "{text}");
        }
        for text in [
            "3000000h",
            "9223372036854775808ns",
            "9223372036854775.808us",
            "-9223372036854775809ns",
            "9223372036854ms775us808ns",
            "9223372036854775808ns9223372036854775808ns",
            "99999999999999999999999999999999999999999h",
        ] {
            assert_eq!(parse_duration(text), Err(DurationError::Range), "{text}");
        }
    }
}
