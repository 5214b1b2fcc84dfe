//! The values of literals: numbers that may be out of range, strings with escapes that name no character.
//!
//! The lexer has read them, so their form is right: escapes are complete and quotes are closed.

use super::token::TokenKind;
use crate::tree::Literal;

/// The value of a literal, or the server's message if it is invalid. `negative` is true if a minus sign
/// precedes the text.
pub(super) fn read_literal(kind: TokenKind, text: &str, negative: bool) -> Result<Literal, &'static str> {
    match kind {
        TokenKind::Int => parse_int(text, negative).map(Literal::Int).ok_or("invalid int literal"),
        TokenKind::Uint => {
            let digits = text.get(..text.len().saturating_sub(1)).unwrap_or("");
            let value = match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            };
            value.map(Literal::Uint).ok_or("invalid uint literal")
        }
        TokenKind::Float => {
            let value = text.parse().ok().filter(|value: &f64| value.is_finite());
            let value = value.map(|value| if negative { -value } else { value });
            value.map(Literal::Double).ok_or("invalid double literal")
        }
        TokenKind::String => {
            let bytes = unquote_and_unescape(text, false)?;
            // Escapes of a string are characters, so this is one.
            String::from_utf8(bytes).ok().map(Literal::String).ok_or("unable to unescape string")
        }
        TokenKind::Bytes => unquote_and_unescape(text.get(1..).unwrap_or(""), true).map(Literal::Bytes),
        TokenKind::True => Ok(Literal::Bool(true)),
        TokenKind::False => Ok(Literal::Bool(false)),
        _ => Ok(Literal::Null),
    }
}

/// The value of a decimal or hexadecimal integer; `None` if it is out of range.
fn parse_int(text: &str, negative: bool) -> Option<i64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    if !negative {
        return i64::from_str_radix(digits, radix).ok();
    }
    // The smallest number has no positive counterpart.
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    0i64.checked_sub_unsigned(magnitude)
}

/// Decodes a quoted string without a `b` prefix. cel-go `unescape`
fn unquote_and_unescape(literal: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let (is_raw, quoted) = match literal.strip_prefix(['r', 'R']) {
        Some(quoted) => (true, quoted),
        None => (false, literal),
    };
    let quotes = if quoted.starts_with("\"\"\"") || quoted.starts_with("'''") { 3 } else { 1 };
    let inner = quoted.get(quotes..quoted.len().saturating_sub(quotes)).unwrap_or("");
    // All line ends count as one character.
    let inner = inner.replace("\r\n", "\n").replace('\r', "\n");
    if is_raw {
        return Ok(inner.into_bytes());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.as_str();
    while let Some((before, escape)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        rest = append_decoded_escape(&mut out, escape, is_bytes)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Appends the character of an escape sequence, given without its backslash, and returns the rest. A number
/// is a byte if `is_bytes`, otherwise a character.
fn append_decoded_escape<'t>(
    out: &mut Vec<u8>,
    escape: &'t str,
    is_bytes: bool,
) -> Result<&'t str, &'static str> {
    let mut chars = escape.chars();
    let letter = chars.next().unwrap_or('\\');
    let (digits, radix) = match letter {
        'u' | 'U' if is_bytes => return Err("unable to unescape string"),
        'x' | 'X' => (1..3, 16),
        'u' => (1..5, 16),
        'U' => (1..9, 16),
        '0'..='3' => (0..3, 8),
        plain => {
            out.push(match plain {
                'a' => 0x07,
                'b' => 0x08,
                'f' => 0x0c,
                'n' => b'\n',
                'r' => b'\r',
                't' => b'\t',
                'v' => 0x0b,
                // A quote, a backslash, a question mark: itself.
                plain => u8::try_from(plain).unwrap_or(b'?'),
            });
            return Ok(chars.as_str());
        }
    };
    let rest = escape.get(digits.end..).unwrap_or("");
    let code = u32::from_str_radix(escape.get(digits).unwrap_or(""), radix).ok();
    if is_bytes {
        out.push(code.and_then(|code| u8::try_from(code).ok()).ok_or("unable to unescape string")?);
    } else {
        let letter = code.and_then(char::from_u32).ok_or("invalid unicode code point")?;
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(rest)
}
