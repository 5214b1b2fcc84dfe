//! Quoted scalars as kubectl's YAML reads them: YAML 1.1's escapes and line breaks.
//!
//! The parser knows YAML 1.2, in which `\/` is an escape, `\'` is none, and U+0085, U+2028 and U+2029 end no line.
//! What a quoted scalar means is decided here, from its source; the parser only finds where it is.
//!
//! Invariant: decoding a scalar takes time linear in its length, however long the text after it is.

use std::borrow::Cow;

/// The error for a quoted scalar that kubectl rejects: the byte offset from the quote, and the reason.
type QuotedError = (usize, String);

/// The value of the quoted scalar at the start of a text, and its length in bytes, quotes included.
// upstream go-yaml v2 yaml_parser_scan_flow_scalar
pub(super) fn decode_quoted(text: &str) -> Result<(String, usize), QuotedError> {
    let mut scalar = Scanner { text, at: 1, value: String::new() };
    let quote = if text.starts_with('\'') { '\'' } else { '"' };
    loop {
        let rest = scalar.unread_text();
        match rest.chars().next() {
            None => return Err((0, "unclosed quote".to_owned())),
            Some('\'') if quote == '\'' && rest.starts_with("''") => scalar.push('\'', 2),
            Some(letter) if letter == quote => return Ok((scalar.value, scalar.at + 1)),
            Some('\\') if quote == '"' => scalar.read_escape_sequence()?,
            Some(letter) if is_blank(letter) || leading_line_break(rest).is_some() => {
                scalar.fold_line_break("")?
            }
            Some(letter) => scalar.push(letter, letter.len_utf8()),
        }
    }
}

/// Returns the text with the contents of quoted scalars replaced by `x` where the parser rejects them but
/// kubectl accepts them; `None` if there are none. `refused` finds the start of the first such scalar. Each
/// one costs another parse, which is deducted from `budget` in bytes.
pub(super) fn mask_rejected_scalars(
    text: &str,
    budget: &mut usize,
    refused: impl Fn(&str) -> Option<usize>,
) -> Option<String> {
    let mut known = Cow::Borrowed(text);
    while *budget > 0
        && let Some(start) = refused(&known)
        && let Some(Ok((_, length))) = text.get(start..).map(decode_quoted)
    {
        let (inside, end) = (start + 1, start + length - 1);
        let letters = "x".repeat(end - inside);
        if known.get(inside..end) == Some(&letters) {
            break;
        }
        known.to_mut().replace_range(inside..end, &letters);
        *budget = budget.saturating_sub(text.len());
    }
    match known {
        Cow::Borrowed(_) => None,
        Cow::Owned(known) => Some(known),
    }
}

/// The length of the line break at the start of a text, and the character it represents; `None` if there is
/// none. kubectl removes the `\r` of each `\r\n` before it parses YAML, so `\r\r\n` is one line
/// break.
pub(super) fn leading_line_break(text: &str) -> Option<(usize, char)> {
    match text.chars().next()? {
        '\r' if text.starts_with("\r\r\n") => Some((3, '\n')),
        '\r' if text.starts_with("\r\n") => Some((2, '\n')),
        '\n' | '\r' => Some((1, '\n')),
        '\u{85}' => Some((2, '\n')),
        letter @ ('\u{2028}' | '\u{2029}') => Some((3, letter)),
        _ => None,
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t')
}

/// A quoted scalar being read.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    value: String,
}

impl<'t> Scanner<'t> {
    /// The text that is not read yet.
    fn unread_text(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Adds a character to the value, and moves past the `length` bytes that it was written in.
    fn push(&mut self, letter: char, length: usize) {
        self.value.push(letter);
        self.at += length;
    }

    /// An error at the present byte.
    fn error_here<T>(&self, detail: &str) -> Result<T, QuotedError> {
        Err((self.at, detail.to_owned()))
    }

    /// Reads the escape sequence whose backslash is at the current position.
    fn read_escape_sequence(&mut self) -> Result<(), QuotedError> {
        let escaped = self.unread_text().get(1..).unwrap_or_default();
        if let Some((length, _)) = leading_line_break(escaped) {
            self.at += 1 + length;
            return self.fold_line_break("\\");
        }
        let letter = match escaped.chars().next().unwrap_or_default() {
            '0' => '\0',
            'a' => '\u{7}',
            'b' => '\u{8}',
            't' | '\t' => '\t',
            'n' => '\n',
            'v' => '\u{b}',
            'f' => '\u{c}',
            'r' => '\r',
            'e' => '\u{1b}',
            same @ (' ' | '"' | '\'' | '\\') => same,
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            'x' => return self.read_code_point(2),
            'u' => return self.read_code_point(4),
            'U' => return self.read_code_point(8),
            '/' => return self.error_here("kubectl does not support the escape \\/; write / instead"),
            _ => return self.error_here("found unknown escape character"),
        };
        self.push(letter, 2);
        Ok(())
    }

    /// Reads an escape with `digits` hexadecimal digits. An unpaired UTF-16 surrogate is an error, although
    /// JSON allows it.
    fn read_code_point(&mut self, digits: usize) -> Result<(), QuotedError> {
        let digits = self.unread_text().get(2..2 + digits).unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return self.error_here("did not find expected hexadecimal number");
        }
        match u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) {
            Some(letter) => {
                self.push(letter, 2 + digits.len());
                Ok(())
            }
            None => self.error_here("found invalid Unicode character escape code"),
        }
    }

    /// Reads white space and line breaks: one break becomes a blank; of several, the first is dropped. After an escaped
    /// break (`escaped` is not empty), all of them are kept.
    fn fold_line_break(&mut self, escaped: &str) -> Result<(), QuotedError> {
        let start = self.at;
        let (mut first, mut breaks) = (None, String::new());
        let mut is_line_start = !escaped.is_empty();
        loop {
            let rest = self.unread_text();
            if let Some((length, letter)) = leading_line_break(rest) {
                if first.is_none() && escaped.is_empty() {
                    first = Some(letter);
                } else {
                    breaks.push(letter);
                }
                is_line_start = true;
                self.at += length;
            } else if rest.starts_with(is_blank) {
                is_line_start = false;
                self.at += 1;
            } else {
                break;
            }
        }
        match first {
            None if escaped.is_empty() => {
                self.value.push_str(self.text.get(start..self.at).unwrap_or_default())
            }
            Some('\n') if breaks.is_empty() => self.value.push(' '),
            None | Some('\n') => {}
            Some(letter) => self.value.push(letter),
        }
        self.value.push_str(&breaks);
        let rest = self.unread_text();
        let marker = rest.strip_prefix("---").or_else(|| rest.strip_prefix("..."));
        let is_marker = marker.is_some_and(|after| {
            after.is_empty() || after.starts_with(is_blank) || leading_line_break(after).is_some()
        });
        if is_line_start && is_marker {
            return self.error_here("found unexpected document indicator");
        }
        Ok(())
    }
}
