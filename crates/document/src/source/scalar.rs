//! The value of a YAML scalar in Kubernetes: go-yaml v2's rules, which are YAML 1.1 with Go's number syntax.
//!
//! `on` is a boolean, `0644` is 420, `1_000` is a number, a date is a string. Keys use the same rules and are
//! converted back to text: `on:` is the key `true`. Positions and documents are handled elsewhere.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use granit_parser::{ScalarStyle, Tag};

use tollgate_formats::gofloat::parse_float;
use tollgate_formats::gofmt;

/// The resolved value of a YAML scalar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ScalarValue {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    /// A string with the text as its value.
    Text,
    /// Binary data (`!!binary`), whose text is base64.
    Binary,
}

/// The prefix of YAML's own tags, for which `!!` stands.
const CORE_NAMESPACE: &str = "tag:yaml.org,2002:";

/// Resolves a scalar by its style and tag. Fails if the text is invalid for the tag.
// upstream go-yaml v2 resolve
pub(super) fn resolve_tagged(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<ScalarValue, String> {
    let Some(tag) = tag else {
        return Ok(if style == ScalarStyle::Plain { resolve_plain(text) } else { ScalarValue::Text });
    };
    // Tags outside the namespace are dropped and leave a string, quoted or not.
    let Some(name) = tag.suffix_in_namespace(CORE_NAMESPACE) else { return Ok(ScalarValue::Text) };
    let found = resolve_plain(text);
    match (name.as_ref(), found) {
        ("null", ScalarValue::Null)
        | ("bool", ScalarValue::Bool(_))
        | ("int", ScalarValue::Int(_) | ScalarValue::Unsigned(_))
        | ("float", ScalarValue::Float(_)) => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "Go converts an int to float64 the same way")]
        ("float", ScalarValue::Int(number)) => Ok(ScalarValue::Float(number as f64)),
        ("timestamp", _) if is_timestamp(text) => Ok(ScalarValue::Text),
        ("binary", _) => Ok(ScalarValue::Binary),
        ("null" | "bool" | "int" | "float" | "timestamp", _) => {
            Err(format!("cannot decode {} `{text}` as a !!{name}", tag_name(found)))
        }
        _ => Ok(ScalarValue::Text),
    }
}

/// True for the key `<<`: plain and without a tag, or in any style with the tag `!` or `!!merge`.
pub(super) fn is_merge_key(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
    text == "<<"
        && tag.map_or(style == ScalarStyle::Plain, |tag| {
            tag.parts() == ("", "!") || tag.suffix_in_namespace(CORE_NAMESPACE).as_deref() == Some("merge")
        })
}

/// The tag that go-yaml's errors show for such a scalar.
fn tag_name(meaning: ScalarValue) -> &'static str {
    match meaning {
        ScalarValue::Null => "!!null",
        ScalarValue::Bool(_) => "!!bool",
        ScalarValue::Int(_) | ScalarValue::Unsigned(_) => "!!int",
        ScalarValue::Float(_) => "!!float",
        ScalarValue::Text | ScalarValue::Binary => "!!str",
    }
}

/// Resolves a scalar without quotes and tag; null if it is empty.
pub(super) fn resolve_plain(text: &str) -> ScalarValue {
    // The first byte says what it might be; most scalars are done here.
    match text.as_bytes().first() {
        None => ScalarValue::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            resolve_word(text)
        }
        Some(b'.') => resolve_after_leading_dot(text),
        Some(b'+' | b'-' | b'0'..=b'9') => resolve_number(text),
        Some(_) => ScalarValue::Text,
    }
}

/// Resolves a scalar that may be a word for a boolean or null; otherwise a string.
fn resolve_word(text: &str) -> ScalarValue {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            ScalarValue::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ScalarValue::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => ScalarValue::Null,
        _ => ScalarValue::Text,
    }
}

/// Resolves a scalar that begins with a dot: a float or a string.
fn resolve_after_leading_dot(text: &str) -> ScalarValue {
    match text {
        ".nan" | ".NaN" | ".NAN" => ScalarValue::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" => ScalarValue::Float(f64::INFINITY),
        // Go's ParseFloat takes `_` between digits only.
        _ => parse_float(text).map_or(ScalarValue::Text, ScalarValue::Float),
    }
}

/// Resolves a scalar that begins with a digit or a sign: a number or a string.
fn resolve_number(text: &str) -> ScalarValue {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return ScalarValue::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return ScalarValue::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let plain = if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) };
    parse_integer(&plain).unwrap_or_else(|| parse_float_or_text(&plain))
}

/// The integer that Go's `ParseInt(text, 0, 64)` or else `ParseUint` reads; `None` if neither does. The text must not
/// contain `_`, which go-yaml removes first.
fn parse_integer(text: &str) -> Option<ScalarValue> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)?),
        Some(b'+') => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // Rust would take a second sign.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(ScalarValue::Int);
    }
    match i64::try_from(magnitude) {
        Ok(number) => Some(ScalarValue::Int(number)),
        // Only ParseUint takes these, and it takes no sign.
        Err(_) => (!text.starts_with('+')).then_some(ScalarValue::Unsigned(magnitude)),
    }
}

/// Parses a float of the form `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`. Returns a string if it
/// has another form or is out of range.
fn parse_float_or_text(text: &str) -> ScalarValue {
    // Rust's parser takes the same shapes, and words such as `inf`, which have letters.
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    if !text.bytes().all(numeric) {
        return ScalarValue::Text;
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => ScalarValue::Float(number),
        _ => ScalarValue::Text,
    }
}

/// True for `YYYY-M-D` with or without a time, as in go-yaml's four layouts.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let digits = |part: Option<&str>, lengths: std::ops::RangeInclusive<usize>| {
        part.is_some_and(|part| {
            lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    digits(parts.next(), 4..=4)
        && digits(parts.next(), 1..=2)
        && digits(parts.next(), 1..=2)
        && parts.next().is_none()
        && time.is_none_or(|time| time.split(':').count() >= 3)
}

/// The JSON literal of a number; an error for infinities and NaN, which JSON does not have.
pub(super) fn json_float(number: f64) -> Result<String, String> {
    if number.is_finite() {
        return Ok(gofmt::json_float(number));
    }
    Err(format!("json: unsupported value: {}", gofmt::float_text(number)))
}

/// The text of a float that is a map key: Go's `FormatFloat(number, 'g', -1, 32)`.
// upstream sigs.k8s.io/yaml convertToJSONableObject
pub(super) fn float_key(number: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the key is printed as a float32, digits lost and all"
    )]
    let single = number as f32;
    if single.is_nan() {
        return ".nan".to_owned();
    }
    if single.is_infinite() {
        return if single > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    gofmt::shortest_float(&single)
}

/// Base64 as in Go, which ignores surplus bits at the end.
const GO_BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes a `!!binary` scalar by Go's standard base64, ignoring line breaks; bytes that are not UTF-8 become U+FFFD.
/// `None` if it is not base64.
pub(super) fn decode_binary_lossy(text: &str) -> Option<String> {
    let symbols: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let out = GO_BASE64.decode(symbols).ok()?;
    let mut text = String::with_capacity(out.len());
    for chunk in out.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{ScalarValue, decode_binary_lossy, float_key, is_timestamp, json_float, resolve_plain};

    #[test]
    fn plain_scalars_mean_what_go_says() {
        use ScalarValue::{Bool, Float, Int, Null, Text, Unsigned};
        let table = [
            ("", Null),
            ("~", Null),
            ("null", Null),
            ("Null", Null),
            ("NULL", Null),
            ("nULL", Text),
            ("y", Bool(true)),
            ("Y", Bool(true)),
            ("yes", Bool(true)),
            ("YES", Bool(true)),
            ("yEs", Text),
            ("on", Bool(true)),
            ("ON", Bool(true)),
            ("oN", Text),
            ("True", Bool(true)),
            ("n", Bool(false)),
            ("No", Bool(false)),
            ("off", Bool(false)),
            ("FALSE", Bool(false)),
            ("None", Text),
            ("0", Int(0)),
            ("-0", Int(0)),
            ("+1", Int(1)),
            ("1_000", Int(1000)),
            ("0644", Int(420)),
            ("0o644", Int(420)),
            ("-0o10", Int(-8)),
            ("0O17", Int(15)),
            ("00", Int(0)),
            ("08", Float(8.0)),
            ("0x1F", Int(31)),
            ("-0X1f", Int(-31)),
            ("0x_1F", Int(31)),
            ("0b11", Int(3)),
            ("-0b11", Int(-3)),
            ("0b12", Text),
            ("0x", Text),
            ("0xG", Text),
            ("0x-1", Text),
            ("--1", Text),
            ("+-1", Text),
            ("-", Text),
            ("+", Text),
            ("_1", Text),
            ("1_", Int(1)),
            ("9223372036854775807", Int(i64::MAX)),
            ("-9223372036854775808", Int(i64::MIN)),
            ("9223372036854775808", Unsigned(1 << 63)),
            ("18446744073709551615", Unsigned(u64::MAX)),
            ("+9223372036854775808", Float(9_223_372_036_854_775_808.0)),
            ("18446744073709551616", Float(18_446_744_073_709_551_616.0)),
            ("-9223372036854775809", Float(-9_223_372_036_854_775_808.0)),
            ("0xFFFFFFFFFFFFFFFFFF", Text),
            ("1.5", Float(1.5)),
            ("1.", Float(1.0)),
            (".5", Float(0.5)),
            (".5_0", Float(0.5)),
            ("._5", Text),
            (".5_e1", Text),
            (".", Text),
            ("..5", Text),
            ("-.5", Float(-0.5)),
            ("3e2", Float(300.0)),
            ("1E+2", Float(100.0)),
            ("1e", Text),
            ("1e400", Text),
            ("1e-400", Float(0.0)),
            ("1.5.2", Text),
            ("12:30:45", Text),
            ("2024-01-01", Text),
            ("2024-01-01T00:00:00Z", Text),
            ("1Gi", Text),
            ("100m", Text),
            ("+.inf", Float(f64::INFINITY)),
            ("-.INF", Float(f64::NEG_INFINITY)),
            (".iNF", Text),
            ("inf", Text),
            ("nan", Text),
            ("-inf", Text),
            ("=", Text),
            ("<<", Text),
        ];
        for (text, expected) in table {
            assert_eq!(resolve_plain(text), expected, "{text}");
        }
        assert!(matches!(resolve_plain(".NaN"), Float(number) if number.is_nan()));
    }

    #[test]
    fn floats_print_as_go_prints_them() {
        let values = [
            (300.0, "300"),
            (1.5, "1.5"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
            (1e21, "1e+21"),
        ];
        for (number, expected) in values {
            assert_eq!(json_float(number).unwrap(), expected);
        }
        assert_eq!(json_float(f64::NEG_INFINITY).unwrap_err(), "json: unsupported value: -Inf");
        assert_eq!(json_float(f64::NAN).unwrap_err(), "json: unsupported value: NaN");
        let keys = [
            (1.1, "1.1"),
            (300.0, "300"),
            (1e6, "1e+06"),
            (123_456.0, "123456"),
            (123_456_789.5, "1.2345679e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e40, ".inf"),
            (-1e40, "-.inf"),
            (0.0, "0"),
            (f64::NAN, ".nan"),
        ];
        for (number, expected) in keys {
            assert_eq!(float_key(number), expected, "{number}");
        }
    }

    #[test]
    fn base64_is_gos_standard_encoding() {
        let table = [
            ("aGk=", Some("hi")),
            ("aGk", None),
            ("aG\nk=\n", Some("hi")),
            ("aA==", Some("h")),
            ("aGkh", Some("hi!")),
            ("", Some("")),
            ("a===", None),
            ("aGk=aGk=", None),
            ("aG k=", None),
            ("6Q==", Some("\u{fffd}")),
            ("8J+YYQ==", Some("\u{fffd}\u{fffd}\u{fffd}a")),
        ];
        for (text, expected) in table {
            assert_eq!(decode_binary_lossy(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn timestamps_have_a_date() {
        let table = [
            ("2024-01-01", true),
            ("2024-1-1", true),
            ("2024-01-01 00:00:00", true),
            ("2024-01-01t00:00:00Z", true),
            ("2024-01", false),
            ("24-01-01", false),
            ("now", false),
        ];
        for (text, expected) in table {
            assert_eq!(is_timestamp(text), expected, "{text}");
        }
    }
}
