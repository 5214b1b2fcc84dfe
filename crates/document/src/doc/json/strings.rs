//! Reads JSON strings: finds their ends and decodes their escapes.
//!
//! Nearly all strings have no escapes and are borrowed from the source. The others are decoded as Go does it, which
//! replaces lone surrogates by U+FFFD.

use wide::u8x16;

use super::{BoxedSyntaxError, Reader, span};
use crate::doc::{Builder, ValueKind};

impl Reader<'_> {
    /// Reads the string whose opening quote is at the current position.
    #[expect(clippy::inline_always, reason = "half of a document; its other caller is cold")]
    #[inline(always)]
    pub(super) fn read_string(&mut self, out: &mut Builder<'_>) -> Result<(), BoxedSyntaxError> {
        let (start, end) = (self.at, self.plain_end());
        if self.bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            out.write_quoted(ValueKind::String, span(start, end + 1));
            return Ok(());
        }
        self.read_escaped_string(out, end)
    }

    /// The offset of the first quote, backslash or control character in the string whose opening quote is here: the
    /// closing quote of a plain string. The end of the text if there is none.
    #[inline]
    pub(super) fn plain_end(&self) -> usize {
        let inner = self.at + 1;
        inner + plain_length(self.bytes.get(inner..).unwrap_or_default())
    }

    /// Reads a string that has no escapes up to the byte `end`, where an escape or an error begins.
    #[cold]
    pub(super) fn read_escaped_string(
        &mut self,
        out: &mut Builder<'_>,
        end: usize,
    ) -> Result<(), BoxedSyntaxError> {
        let start = self.at;
        self.at = end;
        self.escaped.clear();
        // Capacity for an expression, as far as the text goes: growing costs more than reading.
        self.escaped.reserve((end - start + 256).min(self.bytes.len() - start));
        self.append_plain_text_since(start + 1);
        self.read_string_remainder()?;
        out.write_owned(ValueKind::String, span(start, self.at), self.escaped.as_str());
        Ok(())
    }

    /// Reads the rest of a string, from its first escape or error to the closing quote, and appends the decoded text to
    /// `escaped`.
    fn read_string_remainder(&mut self) -> Result<(), BoxedSyntaxError> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.read_escape()?,
                Some(0..=0x1f) | None => {
                    return Err(self.unexpected("in string literal"));
                }
                Some(_) => {
                    let from = self.at;
                    self.at += plain_length(self.bytes.get(from..).unwrap_or_default());
                    self.append_plain_text_since(from);
                }
            }
        }
    }

    /// Appends the source text between `from` and the current position to `escaped`.
    fn append_plain_text_since(&mut self, from: usize) {
        // Both ends are ASCII bytes, so this is always there.
        self.escaped.push_str(self.source.get(from..self.at).unwrap_or_default());
    }

    /// Reads one escape, such as `\n` or `\u0041`, and appends its character to `escaped`.
    fn read_escape(&mut self) -> Result<(), BoxedSyntaxError> {
        self.at += 1;
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.read_unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        self.escaped.push(character);
        Ok(())
    }

    /// Reads the digits after `\u`, and a second escape if both are a surrogate pair. Half a pair becomes U+FFFD.
    fn read_unicode_escape(&mut self) -> Result<(), BoxedSyntaxError> {
        let unit = self.read_hex4()?;
        if (0xd800..0xdc00).contains(&unit) && self.bytes.get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.read_hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                self.escaped.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(());
            }
            // Not a pair: the first half alone is replaced, the second is read again by itself.
            self.at = back;
        }
        self.escaped.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    /// Reads the four hexadecimal digits of a `\u` escape.
    fn read_hex4(&mut self) -> Result<u32, BoxedSyntaxError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }
}

/// Number of bytes before the first quote, backslash or control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        if let Some(length) = plain_length_of_block(block) {
            return at + length;
        }
        at += block.len();
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let is_special = |byte: &u8| matches!(byte, 0..=LAST_CONTROL | b'"' | b'\\');
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// The control characters begin with 0 and end with this one.
const LAST_CONTROL: u8 = 0x1f;

/// Number of bytes before the first quote, backslash or control character of a block; `None` if there is none.
#[inline]
pub(super) fn plain_length_of_block(block: &[u8; 16]) -> Option<usize> {
    let bytes = u8x16::new(*block);
    let has = |byte| bytes.simd_eq(u8x16::splat(byte));
    let is_control = bytes.min(u8x16::splat(LAST_CONTROL)).simd_eq(bytes);
    let special = (has(b'"') | has(b'\\') | is_control).to_bitmask();
    (special != 0).then_some(special.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::plain_length;

    #[test]
    fn the_first_special_byte_is_found_at_each_place_and_beside_every_byte() {
        let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        for byte in 0..=u8::MAX {
            for place in 0..36 {
                for after in [b'a', byte, byte.wrapping_add(1), byte.wrapping_sub(1), 0x80, 0xff] {
                    let mut text = [b'a'; 37];
                    (text[place], text[place + 1]) = (byte, after);
                    let expected = text.iter().position(|byte| is_special(*byte)).unwrap_or(text.len());
                    assert_eq!(plain_length(&text), expected, "{text:?}");
                }
            }
        }
    }
}
