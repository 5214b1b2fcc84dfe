//! Reads JSON text onto a tape, by Go's grammar and with Go's error texts.
//!
//! Not serde: the literal of a number, the raw bytes of a quantity, duplicate keys and lone surrogates must survive,
//! because the API server decides by them. One loop and an explicit stack; depth is a limit, not a crash.

mod strings;

use super::{Builder, Doc, Kind, MAX_DEPTH, Span, Syntax, Text, model, name, same};

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
    let mut reader = Reader::of(source, has_controls(source.as_bytes().trim_ascii_end()));
    let mut out = Builder::new(source, Syntax::Json).learning();
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
    let mut out = Builder::with_room(source, Syntax::Json, (source.len() / 8).clamp(4, 256)).learning();
    reader.document(&mut out).map_err(|fault| *fault)?;
    Ok((out.finish_verbatim(), reader.at))
}

/// Boxed: what nearly never happens must not widen every answer.
type Fault = Box<SyntaxError>;

/// What is read after a value.
enum Next {
    /// The first key of the object that it opened.
    Key,
    /// The first item of the list that it opened.
    Item,
    /// What follows a value that is whole.
    After,
}

pub(super) struct Reader<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// There may be control characters, which no string may have: strings are searched for them.
    controls: bool,
    /// What the value that is read next is held against.
    model: u32,
    /// The value of the string read last, when it has escapes.
    escaped: String,
    /// How many bytes may still be compared in vain with a model: a hostile text has parts in parts that all but
    /// repeat each other.
    credit: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn of(source: &'a str, controls: bool) -> Reader<'a> {
        Reader {
            source,
            bytes: source.as_bytes(),
            at: 0,
            controls,
            model: model::NONE,
            escaped: String::new(),
            credit: source.len().saturating_mul(8),
        }
    }

    #[cfg(test)]
    pub(super) fn credit(&self) -> usize {
        self.credit
    }

    pub(super) fn document(&mut self, out: &mut Builder<'_>) -> Result<(), Fault> {
        let mut at_key = false;
        loop {
            if at_key {
                self.skip_space();
                self.key(out)?;
            }
            self.skip_space();
            match self.value(out)? {
                Next::Key => {
                    at_key = true;
                    continue;
                }
                Next::Item => {
                    at_key = false;
                    self.model = out.model_of_item();
                    continue;
                }
                Next::After => {}
            }
            // After a value: the next one, or the end of what it is in.
            loop {
                let Some(inside) = out.inside() else { return Ok(()) };
                self.skip_space();
                match (inside, self.peek()) {
                    (Kind::Object, Some(b',')) => {
                        self.at += 1;
                        at_key = true;
                        break;
                    }
                    (Kind::Array, Some(b',')) => {
                        self.at += 1;
                        at_key = false;
                        self.model = out.model_of_item();
                        break;
                    }
                    (Kind::Array, Some(b']')) | (Kind::Object, Some(b'}')) => self.close(out),
                    (Kind::Array, _) => return Err(self.unexpected("after array element")),
                    _ => return Err(self.unexpected("after object key:value pair")),
                }
            }
        }
    }

    /// One scalar, a container that is empty or written as its model, or the opening of another container.
    #[expect(clippy::inline_always, reason = "called in one place, for every value")]
    #[inline(always)]
    fn value(&mut self, out: &mut Builder<'_>) -> Result<Next, Fault> {
        if self.model != model::NONE && self.repeats(out, self.model) {
            return Ok(Next::After);
        }
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string(out)?,
            Some(byte @ (b'{' | b'[')) => {
                let (kind, end, inside) = if byte == b'{' {
                    (Kind::Object, b'}', Next::Key)
                } else {
                    (Kind::Array, b']', Next::Item)
                };
                self.open(out, kind)?;
                if self.peek() != Some(end) {
                    return Ok(inside);
                }
                self.close(out);
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                let span = span(start, self.at);
                out.slice(Kind::Number, span, span);
            }
            Some(b't') => self.literal(out, Kind::Bool, "true")?,
            Some(b'f') => self.literal(out, Kind::Bool, "false")?,
            Some(b'n') => self.literal(out, Kind::Null, "null")?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        }
        Ok(Next::After)
    }

    /// True if what comes next is written as the model, which then was copied.
    fn repeats(&mut self, out: &mut Builder<'_>, model: u32) -> bool {
        let Some(known) = out.model(model) else { return false };
        let (kind, length) = (known.kind, (known.span.end - known.span.start) as usize);
        let is_container = matches!(kind, Kind::Array | Kind::Object);
        if is_container && self.credit < length {
            self.credit = 0;
            return false;
        }
        let written = self.bytes.get(known.span.start as usize..known.span.end as usize);
        let here = self.bytes.get(self.at..self.at + length);
        let is_same = written.zip(here).is_some_and(|(written, here)| same(written, here));
        if !is_same {
            self.credit -= if is_container { length } else { 0 };
            return false;
        }
        // A number or a word might go on.
        let is_whole = is_container
            || kind == Kind::String
            || matches!(self.bytes.get(self.at + length), Some(b',' | b'}' | b']'));
        let is_repeated = is_whole && out.repeat(model, span(self.at, 0).start);
        self.at += if is_repeated { length } else { 0 };
        is_repeated
    }

    fn open(&mut self, out: &mut Builder<'_>, kind: Kind) -> Result<(), Fault> {
        if out.depth() >= MAX_DEPTH {
            return Err(Box::new(SyntaxError { at: self.at, detail: "exceeded max depth".to_owned() }));
        }
        out.open_like(kind, span(self.at, self.at + 1), self.model);
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn close(&mut self, out: &mut Builder<'_>) {
        self.at += 1;
        out.close(span(0, self.at).end);
    }

    /// A key and the colon after it; the model of its value is kept.
    #[expect(clippy::inline_always, reason = "called in one place, for every value")]
    #[inline(always)]
    fn key(&mut self, out: &mut Builder<'_>) -> Result<(), Fault> {
        let model = out.model_of_key();
        if model != model::NONE {
            let value = self.known_key(out, model).or_else(|| self.known_key(out, out.key_after(model)));
            if let Some(value) = value {
                self.model = value;
                return Ok(());
            }
        }
        self.model = model::NONE;
        if self.short_key(out) || self.long_key(out) { Ok(()) } else { self.other_key(out) }
    }

    /// The same, if it is that of the model.
    #[inline]
    fn known_key(&mut self, out: &mut Builder<'_>, model: u32) -> Option<u32> {
        let known = out.model(model).filter(|known| known.text == Text::Inside)?;
        let length = (known.span.end - known.span.start) as usize;
        let written = self.bytes.get(known.span.start as usize..known.span.end as usize)?;
        let (here, after) = self.bytes.get(self.at..=self.at + length)?.split_at_checked(length)?;
        if after != b":" || !same(written, here) {
            return None;
        }
        let value = out.repeat_key(model, span(self.at, 0).start);
        self.at += length + 1;
        Some(value)
    }

    /// A key that may have a number and the colon right after it: what nearly all keys are. False if it is another,
    /// or too close to the end of the text for the look ahead; then nothing was read.
    #[inline]
    fn short_key(&mut self, out: &mut Builder<'_>) -> bool {
        let ahead = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<{ name::LONGEST + 3 }>());
        let Some([b'"', ahead @ ..]) = ahead else { return false };
        let Some((length, letters)) = strings::short_plain(ahead) else { return false };
        if ahead.get(length) != Some(&b'"') || ahead.get(length + 1) != Some(&b':') {
            return false;
        }
        let end = self.at + length + 2;
        out.key(span(self.at, end), name::recognise(letters));
        self.at = end + 1;
        true
    }

    /// The same for longer keys.
    #[inline(never)]
    fn long_key(&mut self, out: &mut Builder<'_>) -> bool {
        let (start, end) = (self.at, self.plain_end());
        let is_plain = self.peek() == Some(b'"') && self.bytes.get(end..end + 2) == Some(b"\":");
        let Some(key) = self.bytes.get(start + 1..end).filter(|_| is_plain) else { return false };
        out.key(span(start, end + 1), if key.len() > name::LONGEST { name::recognise_long(key) } else { 0 });
        self.at = end + 2;
        true
    }

    #[cold]
    fn other_key(&mut self, out: &mut Builder<'_>) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.string(out)?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, out: &mut Builder<'_>, kind: Kind, word: &'static str) -> Result<(), Fault> {
        let start = self.at;
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(self.unexpected(&context));
            }
            self.at += 1;
        }
        out.fixed(kind, span(start, self.at), word);
        Ok(())
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
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
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

/// True if there is a control character anywhere. What the API server sends has none before the end of its one line.
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
            ("{\"a\":\"\\txxx\n", 11, "invalid character '\\n' in string literal"),
            ("{\"a\":\"\\txxxxxxxxxxxxxxxxxxxx \n\n", 29, "invalid character '\\n' in string literal"),
            ("{\"abcdefgh\n", 10, "invalid character '\\n' in string literal"),
            ("{\"a-key-of-more-than-sixteen-bytes \r\n", 35, "invalid character '\\r' in string literal"),
            ("\"a\\nb ", 6, "unexpected end of JSON input"),
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
