//! Splits an expression into tokens the way the server's lexer does: the longest match wins, and where nothing matches,
//! the error quotes everything up to and with the character that fitted nowhere.
//!
//! Invariant: every step moves forward, and tokens and errors begin and end between characters.

use super::token::{Token, TokenKind};

/// Whether a backslash in a string starts an escape sequence.
#[derive(Clone, Copy, PartialEq)]
enum EscapeHandling {
    Read,
    Ignore,
}

/// Splits a text into tokens, from the byte `at` on.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

/// The kind and length of a token; if there is none, the number of bytes that match the beginning of one.
type TokenMatch = Result<(TokenKind, usize), usize>;

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, at: usize) -> Self {
        Lexer { text, at }
    }

    /// Reads the next token, including white space, bytes that no token begins with, and the end of the text.
    pub(crate) fn next_token(&mut self) -> Token {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or("");
        let (kind, length) = longest_token(rest.as_bytes()).unwrap_or_else(|fitting| {
            let failing = rest.get(fitting..).and_then(|tail| tail.chars().next());
            (TokenKind::Unknown, fitting + failing.map_or(0, char::len_utf8))
        });
        self.at = start + length;
        Token { kind, start, end: self.at }
    }
}

/// The longest token at the start of a text.
fn longest_token(rest: &[u8]) -> TokenMatch {
    let Some((&first, tail)) = rest.split_first() else { return Ok((TokenKind::Eof, 0)) };
    let second = tail.first().copied();
    let pair = |wanted: u8, long: TokenKind, short: TokenKind| {
        Ok(if second == Some(wanted) { (long, 2) } else { (short, 1) })
    };
    match first {
        b'\t' | b' ' | b'\r' | b'\n' | 0x0c => Ok((
            TokenKind::Hidden,
            matching_prefix_length(rest, |byte| matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c)),
        )),
        b'/' if second == Some(b'/') => {
            Ok((TokenKind::Hidden, matching_prefix_length(rest, |byte| byte != b'\n')))
        }
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(keyword_name_or_prefixed_string(rest)),
        b'0'..=b'9' => Ok(number_token(rest)),
        b'.' if second.is_some_and(|byte| byte.is_ascii_digit()) => {
            Ok((TokenKind::Float, float_literal_length(rest, 0)))
        }
        b'"' | b'\'' => string_length(rest, EscapeHandling::Read).map(|length| (TokenKind::String, length)),
        b'`' => escaped_identifier(rest),
        b'=' if second == Some(b'=') => Ok((TokenKind::Equals, 2)),
        b'&' if second == Some(b'&') => Ok((TokenKind::And, 2)),
        b'|' if second == Some(b'|') => Ok((TokenKind::Or, 2)),
        b'=' | b'&' | b'|' => Err(1),
        b'!' => pair(b'=', TokenKind::NotEquals, TokenKind::Not),
        b'<' => pair(b'=', TokenKind::LessEquals, TokenKind::Less),
        b'>' => pair(b'=', TokenKind::GreaterEquals, TokenKind::Greater),
        b'[' => Ok((TokenKind::LeftBracket, 1)),
        b']' => Ok((TokenKind::RightBracket, 1)),
        b'{' => Ok((TokenKind::LeftBrace, 1)),
        b'}' => Ok((TokenKind::RightBrace, 1)),
        b'(' => Ok((TokenKind::LeftParen, 1)),
        b')' => Ok((TokenKind::RightParen, 1)),
        b'.' => Ok((TokenKind::Dot, 1)),
        b',' => Ok((TokenKind::Comma, 1)),
        b'-' => Ok((TokenKind::Minus, 1)),
        b'?' => Ok((TokenKind::Question, 1)),
        b':' => Ok((TokenKind::Colon, 1)),
        b'+' => Ok((TokenKind::Plus, 1)),
        b'*' => Ok((TokenKind::Star, 1)),
        b'/' => Ok((TokenKind::Slash, 1)),
        b'%' => Ok((TokenKind::Percent, 1)),
        _ => Err(0),
    }
}

/// The number of bytes at the start of a text that `accept` accepts.
fn matching_prefix_length(text: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|byte| !accept(*byte)).unwrap_or(text.len())
}

/// The text from a byte on; empty past its end.
fn text_from(text: &[u8], at: usize) -> &[u8] {
    text.get(at..).unwrap_or(&[])
}

/// The kind and length of the keyword, name, or string with a prefix at the start of a text. If a string is
/// unterminated, its prefix is a name.
fn keyword_name_or_prefixed_string(rest: &[u8]) -> (TokenKind, usize) {
    let length = matching_prefix_length(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let name = rest.get(..length).unwrap_or(rest);
    let prefixed = match name {
        b"r" | b"R" => Some((TokenKind::String, EscapeHandling::Ignore)),
        b"b" | b"B" => Some((TokenKind::Bytes, EscapeHandling::Read)),
        b"br" | b"bR" | b"Br" | b"BR" => Some((TokenKind::Bytes, EscapeHandling::Ignore)),
        _ => None,
    };
    if let Some((kind, escapes)) = prefixed
        && matches!(rest.get(length), Some(b'"' | b'\''))
        && let Ok(string) = string_length(text_from(rest, length), escapes)
    {
        return (kind, length + string);
    }
    let kind = match name {
        b"in" => TokenKind::In,
        b"true" => TokenKind::True,
        b"false" => TokenKind::False,
        b"null" => TokenKind::Null,
        _ => TokenKind::Identifier,
    };
    (kind, length)
}

/// The kind and length of the number at the start of a text.
fn number_token(rest: &[u8]) -> (TokenKind, usize) {
    let is_unsigned = |at: usize| matches!(rest.get(at), Some(b'u' | b'U'));
    if let Some(digits) = rest.strip_prefix(b"0x") {
        let length = matching_prefix_length(digits, |byte| byte.is_ascii_hexdigit());
        if length > 0 {
            let end = 2 + length;
            return if is_unsigned(end) { (TokenKind::Uint, end + 1) } else { (TokenKind::Int, end) };
        }
    }
    let digits = matching_prefix_length(rest, |byte| byte.is_ascii_digit());
    if rest.get(digits) == Some(&b'.') && rest.get(digits + 1).is_some_and(u8::is_ascii_digit) {
        return (TokenKind::Float, float_literal_length(rest, digits));
    }
    if let Some(length) = exponent_length(text_from(rest, digits)) {
        return (TokenKind::Float, digits + length);
    }
    if is_unsigned(digits) { (TokenKind::Uint, digits + 1) } else { (TokenKind::Int, digits) }
}

/// The length of a number whose decimal point is at `point`, with a digit after it.
fn float_literal_length(rest: &[u8], point: usize) -> usize {
    let end = point + 1 + matching_prefix_length(text_from(rest, point + 1), |byte| byte.is_ascii_digit());
    end + exponent_length(text_from(rest, end)).unwrap_or(0)
}

/// The length of the exponent at the start of a text; `None` if there is none.
fn exponent_length(rest: &[u8]) -> Option<usize> {
    let sign = match rest {
        [b'e' | b'E', b'+' | b'-', ..] => 2,
        [b'e' | b'E', ..] => 1,
        _ => return None,
    };
    match matching_prefix_length(text_from(rest, sign), |byte| byte.is_ascii_digit()) {
        0 => None,
        digits => Some(sign + digits),
    }
}

/// The length of the string literal at the start of the text, or the number of valid bytes if it is
/// malformed.
fn string_length(text: &[u8], escapes: EscapeHandling) -> Result<usize, usize> {
    let quote = text.first().copied().unwrap_or(b'"');
    if text.get(1) != Some(&quote) {
        return quoted_length(text, &[quote], escapes);
    }
    // Two quotes are a string already, if a third does not open a longer one.
    Ok(if text.get(2) == Some(&quote) { quoted_length(text, &[quote; 3], escapes).unwrap_or(2) } else { 2 })
}

/// The length of a string literal in one or three quotes, or the number of valid bytes if it is malformed. Only one in
/// three quotes can have several lines.
fn quoted_length(text: &[u8], quotes: &[u8], escapes: EscapeHandling) -> Result<usize, usize> {
    let mut at = quotes.len();
    loop {
        let rest = text_from(text, at);
        match rest.first() {
            Some(_) if rest.starts_with(quotes) => return Ok(at + quotes.len()),
            None => return Err(at),
            Some(b'\n' | b'\r') if quotes.len() == 1 => return Err(at),
            Some(b'\\') if escapes == EscapeHandling::Read => at = escape_end(text, at)?,
            Some(_) => at += 1,
        }
    }
}

/// The end of the escape sequence whose backslash is at `at`, or the position at which it is invalid.
fn escape_end(text: &[u8], at: usize) -> Result<usize, usize> {
    let digits = |from: usize, count: usize, accept: fn(&u8) -> bool| match (from..from + count)
        .find(|at| !text.get(*at).is_some_and(accept))
    {
        None => Ok(from + count),
        Some(wrong) => Err(wrong),
    };
    match text.get(at + 1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => {
            Ok(at + 2)
        }
        Some(b'0'..=b'3') => digits(at + 2, 2, |byte| matches!(byte, b'0'..=b'7')),
        Some(b'x' | b'X') => digits(at + 2, 2, u8::is_ascii_hexdigit),
        Some(b'u') => digits(at + 2, 4, u8::is_ascii_hexdigit),
        Some(b'U') => digits(at + 2, 8, u8::is_ascii_hexdigit),
        _ => Err(at + 1),
    }
}

/// The length of a name in backticks.
fn escaped_identifier(text: &[u8]) -> TokenMatch {
    let inside = text_from(text, 1);
    let length =
        matching_prefix_length(inside, |byte| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(&byte));
    match inside.get(length) {
        Some(b'`') if length > 0 => Ok((TokenKind::EscapedIdentifier, length + 2)),
        _ => Err(length + 1),
    }
}
