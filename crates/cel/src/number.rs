//! Numbers and truth values as Go's `strconv` and `fmt` read and write them.

/// The bool that Go's `strconv.ParseBool` reads.
pub(crate) fn parse_bool_like_go(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// The number that Go's `strconv.ParseUint` reads, which takes no sign.
pub(crate) fn parse_uint_like_go(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// The integer as the nearest double.
#[allow(clippy::cast_precision_loss, reason = "what the conversion does on the server")]
pub(crate) fn double_of_int(value: i64) -> f64 {
    value as f64
}

/// The unsigned integer as the nearest double.
#[allow(clippy::cast_precision_loss, reason = "what the conversion does on the server")]
pub(crate) fn double_of_uint(value: u64) -> f64 {
    value as f64
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// The double without its fraction; `None` outside of the range of `i64`, whose ends count as outside, as on the
/// server.
#[allow(clippy::cast_possible_truncation, reason = "the fraction is dropped; the range was compared")]
pub(crate) fn truncate_double_to_int(value: f64) -> Option<i64> {
    (value > -TWO_TO_63 && value < TWO_TO_63).then_some(value as i64)
}

/// The double without its fraction; `None` if it is negative or too large.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the fraction is dropped; the range was compared"
)]
pub(crate) fn truncate_double_to_uint(value: f64) -> Option<u64> {
    (0.0..2.0 * TWO_TO_63).contains(&value).then_some(value as u64)
}

/// The duration in decimal seconds: `1.5s`.
pub(crate) fn duration_text_in_seconds(nanos: i64) -> String {
    let seconds = double_of_int(nanos / 1_000_000_000) + double_of_int(nanos % 1_000_000_000) / 1e9;
    format!("{seconds}s")
}
