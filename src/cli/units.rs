//! Durations and sizes on the command line.

use std::time::Duration;

use tollgate_formats::gotime::{self, DurationError};

/// Longer durations are reduced to this, because clocks cannot add much more.
const MAX_DURATION: Duration = Duration::from_hours(365 * 24);

/// Parses `10s`, `500ms`, `5m`, `1h` or `1h30m`; a number without a unit is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    // Of Go's syntax, flags accept whole numbers with these units.
    let is_plain = |part: &str| ["ms", "s", "m", "h"].contains(&part);
    let mut units = text.split(|letter: char| letter.is_ascii_digit()).filter(|part| !part.is_empty());
    let duration = match split_unit(text) {
        (_, "") => gotime::parse_duration(&format!("{text}s")),
        _ if units.all(is_plain) => gotime::parse_duration(text),
        _ => Err(DurationError::Syntax),
    };
    let nanos = duration.map_err(|error| match error {
        DurationError::Syntax => "expected a number with the unit ms, s, m or h, such as 10s".to_owned(),
        DurationError::Range => format!("{error}; expected a duration such as 10s"),
    })?;
    Ok(Duration::from_nanos(nanos.unsigned_abs()).min(MAX_DURATION))
}

/// Parses a duration of at least 10 ms; a shorter interval would keep a processor busy.
pub(super) fn parse_duration_at_least_10ms(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        duration if duration < Duration::from_millis(10) => Err("expected at least 10ms".to_owned()),
        duration => Ok(duration),
    }
}

/// Parses a count; 0 is an error, because a server that accepts nothing would block the cluster.
pub(super) fn parse_nonzero_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("{error}; expected a number such as 512")),
    }
}

/// Parses a size of at least 4 KiB; a smaller limit would refuse nearly every AdmissionReview.
pub(super) fn parse_size_at_least_4kib(text: &str) -> Result<usize, String> {
    match parse_bytes(text)? {
        bytes if bytes < 4 << 10 => Err("expected at least 4KiB".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Parses `8MiB`, `64KiB`, or a number of bytes.
pub(super) fn parse_bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "" | "B" => 1,
        "KiB" | "Ki" => 1 << 10,
        "MiB" | "Mi" => 1 << 20,
        _ => return Err("expected a number of bytes, KiB or MiB, such as 8MiB".to_owned()),
    };
    let number: usize = number.parse().map_err(|error| format!("{error}; expected a size such as 8MiB"))?;
    Ok(number.saturating_mul(factor))
}

/// Parses the maximum size of a file, as [`parse_bytes`] does.
pub(super) fn parse_file_size(text: &str) -> Result<u64, String> {
    Ok(u64::try_from(parse_bytes(text)?).unwrap_or(u64::MAX))
}

/// Splits a number from the unit that follows it.
fn split_unit(text: &str) -> (&str, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(digits).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::{parse_bytes, parse_duration};
    use std::time::Duration;

    #[test]
    fn times_and_sizes_have_units() {
        for (text, millis) in [
            ("10", 10_000),
            ("10s", 10_000),
            ("500ms", 500),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("2m30s", 150_000),
            ("9999999m", 31_536_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (text, bytes) in [("10", 10), ("8MiB", 8 << 20), ("64KiB", 64 << 10), ("1Mi", 1 << 20)] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "s", "1d", "-1s", "1.5s", "10 s", "1h 30m", "1h30", "1h-3m", "99999999999999999999s", "ten"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
