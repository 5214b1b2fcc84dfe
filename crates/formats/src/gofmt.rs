//! Formats values as Go does: `%q`, `encoding/json` strings, raw JSON and numbers.
//!
//! Upstream's messages quote invalid values in Go's notation, so Tollgate's messages must do so too, byte for byte.
//! This is not a general JSON writer, and parses nothing. Every function accepts any text.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

mod printable;

pub use printable::is_printable;

/// The beginning of a text: at most `limit` bytes, whole characters.
pub fn byte_prefix(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
}

/// Truncates a text to at most `max_chars` characters, and appends an ellipsis if it was longer.
pub fn shorten(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => Cow::Owned([text.get(..end).unwrap_or_default(), "…"].concat()),
        None => Cow::Borrowed(text),
    }
}

/// The text in double quotes, as Go's `%q` prints it.
pub fn quote(value: &str) -> String {
    quote_bytes(value.as_bytes())
}

/// Go's `%q` of bytes that need not be UTF-8, such as a text cut in the middle of a character.
pub fn quote_bytes(value: &[u8]) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for chunk in value.utf8_chunks() {
        push_go_escaped(&mut out, chunk.valid());
        for &byte in chunk.invalid() {
            push_hex(&mut out, "\\x", u32::from(byte), 2);
        }
    }
    out.push('"');
    out
}

/// The values, each quoted, sorted and separated by commas: the list after `supported values: `.
pub fn quote_sorted_list(values: &[&str]) -> String {
    quote_sorted_list_stopping_after(values, usize::MAX)
}

/// [`quote_sorted_list`] for a caller that reads at most `max_bytes` bytes: the result may end anywhere after them.
pub fn quote_sorted_list_stopping_after(values: &[&str], max_bytes: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let mut out = String::new();
    for (value_idx, value) in sorted.iter().enumerate() {
        if value_idx > 0 {
            out.push_str(", ");
        }
        if out.len() > max_bytes {
            break;
        }
        out.push_str(&quote(byte_prefix(value, max_bytes)));
    }
    out
}

/// Returns the string in JSON, as [`push_json_string`] writes it.
pub fn json_string(value: &str) -> String {
    let mut out = String::new();
    push_json_string(&mut out, value);
    out
}

/// Appends `value` as `encoding/json` writes a string, quotes and HTML escapes included.
pub fn push_json_string(out: &mut String, value: &str) {
    out.push('"');
    for letter in value.chars() {
        match letter {
            // Go has letters for these two, JSON has not.
            '\u{7}' | '\u{b}' => push_hex(out, "\\u", u32::from(letter), 4),
            _ if let Some(escape) = short_escape(letter) => out.push_str(escape),
            '\0'..='\x1f' => push_hex(out, "\\u", u32::from(letter), 4),
            _ => push_html_safe(out, letter),
        }
    }
    out.push('"');
}

/// Appends raw JSON as `encoding/json` copies what a marshaller returned: blanks outside strings dropped, `<`, `>`,
/// `&`, U+2028 and U+2029 escaped, everything else (key order, escapes, number spelling) as written.
pub fn push_compact_json(out: &mut String, raw: &str) {
    let mut in_string = false;
    let mut escaped = false;
    for letter in raw.chars() {
        if in_string {
            push_html_safe(out, letter);
            in_string = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
        } else if !matches!(letter, ' ' | '\t' | '\n' | '\r') {
            push_html_safe(out, letter);
            in_string = letter == '"';
        }
    }
}

/// A finite `float64` as `encoding/json` writes it: shortest digits, exponent only below 1e-6 and from 1e21.
pub fn json_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// A float as Go's `%g` prints it, as [`shortest_float`] does if it is finite.
pub fn float_text(value: f64) -> String {
    match value {
        _ if value.is_finite() => shortest_float(&value),
        _ if value.is_nan() => "NaN".to_owned(),
        _ => if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
    }
}

/// A finite float as Go's `%g` prints it: the shortest digits, with an exponent where it is below -4 or above 5.
pub fn shortest_float(value: &(impl fmt::LowerExp + ToString)) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent @ (..-4 | 6..)) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}

/// The number literal that a Go client sends for `literal`, having decoded it without a type: that of an `int64` if it
/// is one, otherwise that of a `float64`. A literal too large for both stays as it is; Go refuses it.
pub fn normalize_json_number(literal: &str) -> Cow<'_, str> {
    let is_canonical = |text: &str| {
        text.len() < 19 && text != "-0" && text.bytes().skip(1).all(|byte| byte.is_ascii_digit())
    };
    if is_canonical(literal) {
        return Cow::Borrowed(literal);
    }
    if let Ok(whole) = literal.parse::<i64>() {
        return Cow::Owned(whole.to_string());
    }
    match literal.parse::<f64>() {
        Ok(number) if number.is_finite() => Cow::Owned(json_float(number)),
        _ => Cow::Borrowed(literal),
    }
}

/// The escape of a quote, a backslash, or a control character that has a letter in Go; `None` for any other character.
pub fn short_escape(letter: char) -> Option<&'static str> {
    Some(match letter {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ => return None,
    })
}

/// Appends the text as `%q` prints it, without the quotes.
fn push_go_escaped(out: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            _ if let Some(escape) = short_escape(letter) => out.push_str(escape),
            _ if is_printable(letter) => out.push(letter),
            '\0'..='\x1f' | '\x7f' => push_hex(out, "\\x", u32::from(letter), 2),
            '\0'..='\u{ffff}' => push_hex(out, "\\u", u32::from(letter), 4),
            _ => push_hex(out, "\\U", u32::from(letter), 8),
        }
    }
}

/// Appends the character, or its `\u` escape if `encoding/json` escapes it for HTML.
fn push_html_safe(out: &mut String, letter: char) {
    match letter {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => push_hex(out, "\\u", u32::from(letter), 4),
        _ => out.push(letter),
    }
}

/// Appends `escape` and the number in hexadecimal, with zeros up to `width` digits.
fn push_hex(out: &mut String, escape: &str, number: u32, width: usize) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{escape}{number:0width$x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted() {
        for (value, expected) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a\"\\'<&", r#""a\"\\'<&""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{1f}\u{7f}", r#""\x00\x1f\x7f""#),
            ("\u{85}\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}", r#""\u0085\u00a0\u00ad\u200b\u2028\ufeff""#),
            ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
            ("é设备🔥\u{fffd}", "\"é设备🔥\u{fffd}\""),
        ] {
            assert_eq!(quote(value), expected);
            assert_eq!(quote_bytes(value.as_bytes()), expected);
        }
        assert_eq!(quote_bytes(b"a\xc3"), r#""a\xc3""#);
        assert_eq!(quote_bytes(b"\xf0\x9f\x94z"), r#""\xf0\x9f\x94z""#);
        assert_eq!(
            quote_sorted_list(&["NoSchedule", "None", "NoExecute"]),
            r#""NoExecute", "NoSchedule", "None""#
        );
        assert_eq!(quote_sorted_list(&[]), "");
    }

    #[test]
    fn json_strings() {
        for (value, expected) in [
            ("", r#""""#),
            ("a\"\\/'", r#""a\"\\/'""#),
            ("<x>&\u{2028}\u{2029}", r#""\u003cx\u003e\u0026\u2028\u2029""#),
            ("\u{8}\u{c}\n\r\t\u{b}\u{7}\0", r#""\b\f\n\r\t\u000b\u0007\u0000""#),
            ("\u{7f}\u{ad}\u{200b}é", "\"\u{7f}\u{ad}\u{200b}é\""),
        ] {
            assert_eq!(json_string(value), expected);
        }
    }

    #[test]
    fn raw_json() {
        for (raw, expected) in [
            ("{ \"b\" : 1,\n\t\"a\":\"<\" }", r#"{"b":1,"a":"\u003c"}"#),
            (r#" "a \" b\\" "#, r#""a \" b\\""#),
            (r#"["\u003c" , 1.0e2 ]"#, r#"["\u003c",1.0e2]"#),
            ("\"\u{2028}&\"", r#""\u2028\u0026""#),
            ("null", "null"),
        ] {
            let mut out = String::new();
            push_compact_json(&mut out, raw);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn numbers() {
        for (literal, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "-0"),
            ("42", "42"),
            ("-7", "-7"),
            ("1.0", "1"),
            ("1.10", "1.1"),
            ("1e3", "1000"),
            ("1E+2", "100"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("0.0000001", "1e-7"),
            ("1e-400", "0"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("3.141592653589793238462643", "3.141592653589793"),
            ("1e400", "1e400"),
        ] {
            assert_eq!(normalize_json_number(literal), expected);
        }
    }

    #[test]
    fn floats() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (1e-10, "1e-10"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.25e300, "-1.25e+300"),
        ] {
            assert_eq!(json_float(value), expected);
        }
    }
}
