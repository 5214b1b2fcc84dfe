//! Strings of JSON text: where they end, and what they say when they have escapes.
//!
//! Nearly all strings are plain and stay in the source; the others are put together as Go does it, lone surrogates
//! and all.

use super::{Fault, Reader, span};
use crate::doc::{Builder, ValueKind, name};

impl Reader<'_> {
    /// Reads the string whose opening quote is at the current position.
    #[expect(clippy::inline_always, reason = "half of a document; its other caller is cold")]
    #[inline(always)]
    pub(super) fn read_string(&mut self, out: &mut Builder<'_>) -> Result<(), Fault> {
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
    pub(super) fn read_escaped_string(&mut self, out: &mut Builder<'_>, end: usize) -> Result<(), Fault> {
        let start = self.at;
        self.at = end;
        self.escaped.clear();
        // Capacity for an expression, as far as the text goes: growing costs more than reading.
        self.escaped.reserve((end - start + 256).min(self.bytes.len() - start));
        self.push_plain(start + 1);
        self.read_escapes()?;
        out.owned(ValueKind::String, span(start, self.at), self.escaped.as_str());
        Ok(())
    }

    /// Reads a string from its first escape or error to the closing quote, and appends it to `escaped`.
    fn read_escapes(&mut self) -> Result<(), Fault> {
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
                    self.push_plain(from);
                }
            }
        }
    }

    /// Appends the source text between `from` and the current position to `escaped`.
    fn push_plain(&mut self, from: usize) {
        // Both ends are ASCII bytes, so this is always there.
        self.escaped.push_str(self.source.get(from..self.at).unwrap_or_default());
    }

    /// Reads one escape, such as `\n` or `\u0041`, and appends its character to `escaped`.
    fn read_escape(&mut self) -> Result<(), Fault> {
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
    fn read_unicode_escape(&mut self) -> Result<(), Fault> {
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
    fn read_hex4(&mut self) -> Result<u32, Fault> {
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
    // Most strings are short: sixteen bytes are looked at together before a longer search is worth its preparation.
    let (blocks, _) = bytes.as_chunks::<16>();
    for (index, block) in blocks.iter().take(4).enumerate() {
        let (first, second) = block.split_at(8);
        let found = [first, second].map(|word| word.first_chunk().map_or(0, |word| string_end_bits(*word)));
        if found != [0, 0] {
            // Chosen without a branch: how long a string is nobody can guess.
            let (skipped, found) = if found[0] == 0 { (8, found[1]) } else { (0, found[0]) };
            return index * 16 + skipped + found.trailing_zeros() as usize / 8;
        }
    }
    long_plain_length(bytes)
}

/// The number of bytes before the first quote, backslash or control character, and these bytes as
/// [`name::Letters`]. `None` if there are more than [`name::LONGEST`] of them, or as many and no quote follows.
#[inline]
pub(super) fn short_plain(ahead: &[u8; name::LONGEST + 2]) -> Option<(usize, name::Letters)> {
    let (first, rest) = ahead.split_first_chunk::<8>()?;
    let (second, after) = rest.split_first_chunk::<8>()?;
    let (low, high) = (u64::from_le_bytes(*first), u64::from_le_bytes(*second));
    // The bytes below the lowest high bit that is set.
    let before = |found: u64| (found & found.wrapping_neg()).wrapping_sub(1) >> 7;
    let found = [string_end_bits(*first), string_end_bits(*second)];
    if found == [0, 0] {
        return (after.first() == Some(&b'"')).then_some((name::LONGEST, [low, high]));
    }
    // Chosen without a branch: how long a key is nobody can guess.
    let is_short = found[0] != 0;
    let (skipped, word, found) = if is_short { (0, low, found[0]) } else { (8, high, found[1]) };
    let word = word & before(found);
    let letters = if is_short { [word, 0] } else { [low, word] };
    Some((skipped + found.trailing_zeros() as usize / 8, letters))
}

/// Sets the high bit of each byte that is a quote, a backslash or a control character. Only the lowest set
/// bit is reliable.
#[inline]
fn string_end_bits(bytes: [u8; 8]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    // A byte of the word is zero if and only if its high bit is set in the result, but for borrows from below.
    let zero_byte = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero_byte(word ^ (ONES * u64::from(b'"')));
    let backslash = zero_byte(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

/// Does the same as [`plain_length`], for strings that are longer than its first blocks.
#[inline(never)]
fn long_plain_length(bytes: &[u8]) -> usize {
    let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    let plain = bytes.get(..end).unwrap_or_default();
    if has_controls(plain) { plain.iter().position(|byte| *byte < 0x20).unwrap_or(end) } else { end }
}

/// True if one of the bytes is a control character.
fn has_controls(bytes: &[u8]) -> bool {
    // The smallest byte in each of sixteen columns: compilers find the machine's instruction for it.
    let (rows, rest) = bytes.as_chunks::<16>();
    let mut smallest = [u8::MAX; 16];
    for row in rows {
        for (smallest, byte) in smallest.iter_mut().zip(row) {
            *smallest = (*smallest).min(*byte);
        }
    }
    smallest.iter().chain(rest).any(|byte| *byte < 0x20)
}
