//! Reads JSON text onto a tape, by Go's grammar and with Go's error texts.
//!
//! Not serde: the literal of a number, the raw bytes of a quantity, duplicate keys and lone surrogates must survive,
//! because the API server decides by them. One loop and an explicit stack; depth is a limit, not a crash.

use super::{Builder, Doc, Kind, MAX_DEPTH, Span, Syntax, name};

/// Text that is not JSON: where, and what Go's decoder says about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// Byte at which reading stopped.
    pub at: usize,
    /// Go's words.
    pub detail: String,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Reads one JSON document; anything but white space after it is an error.
pub fn parse(source: &str) -> Result<Doc<'_>, SyntaxError> {
    let mut reader = Reader::of(source, has_controls(source.as_bytes()));
    let mut out = Builder::new(source, Syntax::Json);
    reader.document(&mut out).map_err(|fault| *fault)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(out.finish_verbatim()),
        Some(_) => Err(*reader.unexpected("after top-level value")),
    }
}

/// Reads the JSON value at the start of a text that may go on after it; returns it and the byte after it.
pub fn parse_prefix(source: &str) -> Result<(Doc<'_>, usize), SyntaxError> {
    // How much of the text the value takes is not known, and a stream has a million small ones.
    let mut reader = Reader::of(source, true);
    let mut out = Builder::with_room(source, Syntax::Json, (source.len() / 8).clamp(4, 256));
    reader.document(&mut out).map_err(|fault| *fault)?;
    Ok((out.finish_verbatim(), reader.at))
}

/// Boxed: what nearly never happens must not widen every answer.
type Fault = Box<SyntaxError>;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// There may be control characters, which no string may have: strings are searched for them.
    controls: bool,
    /// The value of the string read last, when it has escapes.
    escaped: String,
}

impl<'a> Reader<'a> {
    fn of(source: &'a str, controls: bool) -> Reader<'a> {
        Reader { bytes: source.as_bytes(), at: 0, controls, escaped: String::new() }
    }

    fn document(&mut self, out: &mut Builder<'_>) -> Result<(), Fault> {
        loop {
            self.skip_space();
            if self.value(out)? {
                continue;
            }
            // After a value: the next one, or the end of what it is in.
            loop {
                let Some(inside) = out.inside() else { return Ok(()) };
                self.skip_space();
                match (inside, self.peek()) {
                    (Kind::Array, Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (Kind::Object, Some(b',')) => {
                        self.at += 1;
                        self.skip_space();
                        self.key(out)?;
                        break;
                    }
                    (Kind::Array, Some(b']')) | (Kind::Object, Some(b'}')) => self.close(out),
                    (Kind::Array, _) => return Err(self.unexpected("after array element")),
                    _ => return Err(self.unexpected("after object key:value pair")),
                }
            }
        }
    }

    /// One scalar, an empty container, or the opening of a container: then true, and its first value comes next.
    fn value(&mut self, out: &mut Builder<'_>) -> Result<bool, Fault> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string(out).map(|()| false),
            Some(b'{') => {
                self.open(out, Kind::Object)?;
                if self.peek() == Some(b'}') {
                    self.close(out);
                    return Ok(false);
                }
                self.key(out).map(|()| true)
            }
            Some(b'[') => {
                self.open(out, Kind::Array)?;
                let is_empty = self.peek() == Some(b']');
                if is_empty {
                    self.close(out);
                }
                Ok(!is_empty)
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                let span = span(start, self.at);
                out.slice(Kind::Number, span, span);
                Ok(false)
            }
            Some(b't') => self.literal(out, Kind::Bool, "true"),
            Some(b'f') => self.literal(out, Kind::Bool, "false"),
            Some(b'n') => self.literal(out, Kind::Null, "null"),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn open(&mut self, out: &mut Builder<'_>, kind: Kind) -> Result<(), Fault> {
        if out.depth() >= MAX_DEPTH {
            return Err(Box::new(SyntaxError { at: self.at, detail: "exceeded max depth".to_owned() }));
        }
        out.open(kind, span(self.at, self.at + 1));
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn close(&mut self, out: &mut Builder<'_>) {
        self.at += 1;
        out.close(span(0, self.at).end);
    }

    fn key(&mut self, out: &mut Builder<'_>) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let start = self.at;
        let end = self.plain_end();
        if self.bytes.get(end) == Some(&b'"') {
            let rest = self.bytes.get(start + 1..).unwrap_or_default();
            out.key(span(start, end + 1), name::recognise(rest, end - start - 1));
            self.at = end + 1;
        } else {
            self.long_string(out, end)?;
        }
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, out: &mut Builder<'_>, kind: Kind, word: &'static str) -> Result<bool, Fault> {
        let start = self.at;
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(self.unexpected(&context));
            }
            self.at += 1;
        }
        out.fixed(kind, span(start, self.at), word);
        Ok(false)
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    #[inline]
    fn string(&mut self, out: &mut Builder<'_>) -> Result<(), Fault> {
        let (start, end) = (self.at, self.plain_end());
        if self.bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            out.quoted(Kind::String, span(start, end + 1));
            return Ok(());
        }
        self.long_string(out, end)
    }

    /// Where the string that begins here ends, or stops being plain.
    #[inline]
    fn plain_end(&self) -> usize {
        let inner = self.at + 1;
        inner + plain_length(self.bytes.get(inner..).unwrap_or_default(), self.controls)
    }

    /// A string with escapes, or with a fault: it is plain up to `end`.
    #[cold]
    fn long_string(&mut self, out: &mut Builder<'_>, end: usize) -> Result<(), Fault> {
        let start = self.at;
        self.at = end;
        self.escaped.clear();
        self.push_plain(start + 1);
        self.escapes()?;
        out.owned(Kind::String, span(start, self.at), self.escaped.as_str());
        Ok(())
    }

    /// The rest of a string from its first escape (or fault) to the closing quote.
    fn escapes(&mut self) -> Result<(), Fault> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..=0x1f) | None => return Err(self.unexpected("in string literal")),
                Some(_) => {
                    let from = self.at;
                    while !matches!(self.peek(), Some(b'"' | b'\\' | 0..=0x1f) | None) {
                        self.at += 1;
                    }
                    self.push_plain(from);
                }
            }
        }
    }

    fn push_plain(&mut self, from: usize) {
        // The source is a `str` and both ends are ASCII bytes, so this is never lossy.
        let text = self.bytes.get(from..self.at).unwrap_or_default();
        self.escaped.push_str(&String::from_utf8_lossy(text));
    }

    fn escape(&mut self) -> Result<(), Fault> {
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
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        self.escaped.push(character);
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<(), Fault> {
        let unit = self.hex4()?;
        if (0xd800..0xdc00).contains(&unit) && self.bytes.get(self.at..self.at + 2) == Some(b"\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.hex4()?;
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

    fn hex4(&mut self) -> Result<u32, Fault> {
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

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "every caller passes it on as it is")]
    fn unexpected(&self, context: &str) -> Fault {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let character = std::str::from_utf8(rest).ok().and_then(|text| text.chars().next());
        let detail = match character {
            None => "unexpected end of JSON input".to_owned(),
            Some('\'') => format!("invalid character '\\'' {context}"),
            Some('"') => format!("invalid character '\"' {context}"),
            Some(other) => {
                let quoted = crate::gofmt::quote(other.encode_utf8(&mut [0; 4]));
                format!("invalid character '{}' {context}", quoted.trim_matches('"'))
            }
        };
        Box::new(SyntaxError { at: self.at, detail })
    }
}

/// True if there is a control character anywhere. What the API server sends has none, not even a line's end.
fn has_controls(bytes: &[u8]) -> bool {
    // The smallest byte of a block: compilers find the machine's instruction for it.
    let smallest = |block: &[u8]| block.iter().fold(u8::MAX, |smallest, byte| smallest.min(*byte));
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().any(|block| smallest(block) < 0x20) || smallest(rest) < 0x20
}

/// How many bytes come before the first quote, backslash or, if there are any, control character.
#[inline]
fn plain_length(bytes: &[u8], controls: bool) -> usize {
    // Most strings are short: two times eight bytes are looked at together before a longer search is worth its
    // preparation.
    let Some((first, rest)) = bytes.split_first_chunk::<8>() else {
        return long_plain_length(bytes, controls);
    };
    let found = ends_string(*first);
    if found != 0 {
        return found.trailing_zeros() as usize / 8;
    }
    let Some(second) = rest.first_chunk::<8>() else { return long_plain_length(bytes, controls) };
    let found = ends_string(*second);
    if found != 0 {
        return 8 + found.trailing_zeros() as usize / 8;
    }
    long_plain_length(bytes, controls)
}

/// The high bits of the bytes that are a quote, a backslash or a control character; the lowest one is exact.
#[inline]
fn ends_string(bytes: [u8; 8]) -> u64 {
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

#[inline(never)]
fn long_plain_length(bytes: &[u8], controls: bool) -> usize {
    let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    if !controls {
        return end;
    }
    let plain = bytes.get(..end).unwrap_or_default();
    plain.iter().position(|byte| *byte < 0x20).unwrap_or(end)
}

#[expect(clippy::cast_possible_truncation, reason = "sources are capped far below 4 GiB")]
fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn values_survive_as_written() {
        let table = [
            (
                r#"{"a":[1,-0,1e2,1.50],"b":{"c":null,"d":true}}"#,
                r#"{"a":[1,-0,1e2,1.50],"b":{"c":null,"d":true}}"#,
            ),
            (r#" [ "a\u0041\ud83d\ude00\ud800x" ] "#, "[\"aA😀\u{fffd}x\"]"),
            (r#"{"k":1,"k":2}"#, r#"{"k":2}"#),
            (r#""\ud800A""#, "\"\u{fffd}A\""),
        ];
        for (input, expected) in table {
            let doc = parse(input).unwrap();
            assert_eq!(doc.root().to_json(), expected, "{input}");
        }
    }

    #[test]
    fn faults_have_gos_words_and_the_place() {
        let table = [
            ("", 0, "unexpected end of JSON input"),
            ("x", 0, "invalid character 'x' looking for beginning of value"),
            (r#"{"a":1,}"#, 7, "invalid character '}' looking for beginning of object key string"),
            (r#"{"a" 1}"#, 5, "invalid character '1' after object key"),
            ("[1 2]", 3, "invalid character '2' after array element"),
            ("{} x", 3, "invalid character 'x' after top-level value"),
            ("\"a\nb\"", 2, "invalid character '\\n' in string literal"),
            ("tru", 3, "unexpected end of JSON input"),
            ("trux", 3, "invalid character 'x' in literal true (expecting 'e')"),
            ("01", 1, "invalid character '1' after top-level value"),
        ];
        for (input, at, detail) in table {
            let error = parse(input).unwrap_err();
            assert_eq!((error.at, error.detail.as_str()), (at, detail), "{input}");
        }
    }

    #[test]
    fn depth_is_a_limit_and_not_a_crash() {
        let deep = "[".repeat(200_000);
        assert_eq!(parse(&deep).unwrap_err().detail, "exceeded max depth");
        let fine = format!("{}{}", "[".repeat(9_999), "]".repeat(9_999));
        assert_eq!(parse(&fine).unwrap().root().to_json(), fine);
    }
}
