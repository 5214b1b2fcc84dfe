//! Classes of characters and escapes: `[a-z]`, `[[:alpha:]]`, `\d`, `\p{Greek}`, `\x{10}`.
//!
//! Every function gets the pattern from its own first character on and returns what follows.

use std::fmt::Write as _;

use super::unicode;
use super::{PatternError, part_before, pattern_error};

const POSIX_CLASSES: &str =
    "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit";
const INVALID_RANGE: &str = "invalid character class range";

/// Checks a class in brackets at the start of a text, and returns what follows it. Its translation is added to `out`.
pub(super) fn read_bracketed<'p>(start: &'p str, out: &mut String) -> Result<&'p str, PatternError> {
    let inside = start.get(1..).unwrap_or("");
    let mut rest = inside.strip_prefix('^').unwrap_or(inside);
    out.push_str(part_before(start, rest));
    let mut is_first = true;
    loop {
        if let (false, Some(after)) = (is_first, rest.strip_prefix(']')) {
            out.push(']');
            return Ok(after);
        }
        is_first = false;
        if let Some(after) = skip_posix_class(rest)? {
            out.push_str(part_before(rest, after));
            rest = after;
        } else if let Some(after) = skip_escaped_class(rest)? {
            out.push_str(&translated_class(part_before(rest, after)));
            rest = after;
        } else {
            rest = read_class_item(rest, start, out)?;
        }
    }
}

/// Checks one character of a class, or two with a hyphen between, and returns what follows. In `[a-]` the hyphen is a
/// character. `whole` is the class, for errors.
fn read_class_item<'p>(item: &'p str, whole: &str, out: &mut String) -> Result<&'p str, PatternError> {
    let (low, rest) = read_class_character(item, whole)?;
    push_literal(out, low);
    let after = rest.strip_prefix('-').unwrap_or_default();
    if after.is_empty() || after.starts_with(']') {
        return Ok(rest);
    }
    let (high, rest) = read_class_character(after, whole)?;
    out.push('-');
    push_literal(out, high);
    if high < low { pattern_error(INVALID_RANGE, part_before(item, rest)) } else { Ok(rest) }
}

/// Writes a literal character for the `regex` crate.
pub(super) fn push_literal(out: &mut String, code: u32) {
    let _ = write!(out, "\\x{{{:x}}}", u32::from(char::from_u32(code).unwrap_or_default()));
}

/// An escape that is a class, for the `regex` crate, in which `\d`, `\w` and `\s` know more than ASCII.
pub(super) fn translated_class(escape: &str) -> String {
    let (kind, name) = escape.split_at_checked(2).unwrap_or((escape, ""));
    match kind {
        "\\d" => "[0-9]".to_owned(),
        "\\D" => "[^0-9]".to_owned(),
        "\\w" => "[0-9A-Za-z_]".to_owned(),
        "\\W" => "[^0-9A-Za-z_]".to_owned(),
        "\\s" => "[\\t\\n\\f\\r ]".to_owned(),
        "\\S" => "[^\\t\\n\\f\\r ]".to_owned(),
        _ => {
            let is_negated = (kind == "\\P") != name.contains('^');
            format!("\\{}{}", if is_negated { 'P' } else { 'p' }, name.replace('^', ""))
        }
    }
}

/// The code of the character at the start of a text, escaped or not, and what follows it.
fn read_class_character<'p>(text: &'p str, whole: &str) -> Result<(u32, &'p str), PatternError> {
    match first_character(text) {
        None => pattern_error("missing closing ]", whole),
        Some(('\\', _)) => read_escaped_character(text),
        Some((c, rest)) => Ok((u32::from(c), rest)),
    }
}

/// The first character of a text, and what follows it; `None` if it is empty.
fn first_character(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    chars.next().map(|c| (c, chars.as_str()))
}

/// Checks a class such as `[:alpha:]` at the start of a text, and returns what follows it; `None` if there is none, an
/// error if it is unknown.
fn skip_posix_class(text: &str) -> Result<Option<&str>, PatternError> {
    let Some((inside, rest)) = text.strip_prefix("[:").and_then(|text| text.split_once(":]")) else {
        return Ok(None);
    };
    let name = inside.strip_prefix('^').unwrap_or(inside);
    let is_known = POSIX_CLASSES.split(' ').any(|known| known == name);
    if is_known { Ok(Some(rest)) } else { pattern_error(INVALID_RANGE, part_before(text, rest)) }
}

/// False if a class in brackets contains only letters of ASCII, for sure.
pub(super) fn can_be_large(bracketed: &str) -> bool {
    let is_large = |escaped: &str| escaped.starts_with(|c: char| "xpPDSW01234567".contains(c));
    !bracketed.is_ascii() || bracketed.contains("[:^") || bracketed.split('\\').skip(1).any(is_large)
}

/// Checks an escape that is a class, such as `\d` or `\pL`, at the start of a text, and returns what follows it; `None`
/// if there is none.
pub(super) fn skip_escaped_class(text: &str) -> Result<Option<&str>, PatternError> {
    match (text.strip_prefix('\\'), text.as_bytes().get(1)) {
        (Some(_), Some(b'd' | b'D' | b's' | b'S' | b'w' | b'W')) => Ok(text.get(2..)),
        (Some(_), Some(b'p' | b'P')) => skip_unicode_class(text).map(Some),
        _ => Ok(None),
    }
}

/// Checks `\pL`, `\p{Greek}` or `\p{^Greek}` at the start of a text, and returns what follows it; an error if there is
/// no such class.
fn skip_unicode_class(text: &str) -> Result<&str, PatternError> {
    let inside = text.get(2..).unwrap_or("");
    let (name, rest) = match first_character(inside) {
        Some(('{', after)) => match after.split_once('}') {
            Some(found) => found,
            None => return pattern_error(INVALID_RANGE, text),
        },
        Some((_, rest)) => (part_before(inside, rest), rest),
        None => ("", ""),
    };
    if unicode::is_unicode_class(name.strip_prefix('^').unwrap_or(name)) {
        Ok(rest)
    } else {
        pattern_error(INVALID_RANGE, part_before(text, rest))
    }
}

/// The code of the character that the escape sequence at the start of a text represents, and the rest of the
/// text.
pub(super) fn read_escaped_character(text: &str) -> Result<(u32, &str), PatternError> {
    let Some((escape, mut rest)) = text.get(1..).and_then(first_character) else {
        return pattern_error("trailing backslash at end of expression", "");
    };
    let octal = |text: &str| text.bytes().next().filter(|byte| (b'0'..=b'7').contains(byte));
    let code = match escape {
        // One digit alone would be a backreference, which RE2 has not.
        '1'..='7' if octal(rest).is_none() => None,
        '0'..='7' => {
            let mut code = u32::from(escape) - u32::from('0');
            for _ in 0..2 {
                let Some(digit) = octal(rest) else { break };
                code = code * 8 + u32::from(digit - b'0');
                rest = rest.get(1..).unwrap_or("");
            }
            Some(code)
        }
        'x' => read_hexadecimal(&mut rest),
        'a' => Some(7),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    match code {
        Some(code) => Ok((code, rest)),
        None => pattern_error("invalid escape sequence", part_before(text, rest)),
    }
}

/// The code in two hexadecimal digits, or in any number of them in braces; `None` if they are wrong. Moves `rest` past
/// what was read in any case.
fn read_hexadecimal(rest: &mut &str) -> Option<u32> {
    let mut take = || {
        let (c, after) = first_character(rest)?;
        *rest = after;
        Some(c)
    };
    let first = take()?;
    if first != '{' {
        let second = take();
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut code: Option<u32> = None;
    loop {
        match take()? {
            '}' => return code,
            digit => {
                let value = code.unwrap_or(0) * 16 + digit.to_digit(16)?;
                code = Some(value).filter(|value| *value <= u32::from(char::MAX));
                code?;
            }
        }
    }
}
