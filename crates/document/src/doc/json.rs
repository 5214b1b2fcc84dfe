//! Reads JSON text onto a tape, by Go's grammar and with Go's error texts.
//!
//! Not serde: the literal of a number, the raw bytes of a quantity, duplicate keys and lone surrogates must survive,
//! because the API server decides by them. One loop and an explicit stack; depth is a limit, not a crash.

mod kept;
mod keys;
mod strings;

pub use kept::{KeptFields, KeptObject, ObjectWithDeferredMember, parse_kept};

use super::matched_run::{self, MatchedByteRun, NextToken, TemplateRunStart};
use super::{Builder, Doc, MAX_DEPTH, Span, Syntax, ValueKind, repeat_template};

/// A JSON syntax error, with Go's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// Byte at which reading stopped.
    pub at: usize,
    /// Go's error message.
    pub detail: String,
    /// True if the text may be JSON, but has more keys and values than are read.
    pub is_too_dense: bool,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Reads a text that is one JSON value; anything but white space after it is an error.
pub fn parse(source: &str) -> Result<Doc<'_>, SyntaxError> {
    parse_with_node_limit(source, usize::MAX)
}

/// [`parse`] with at most `nodes` keys and values; more of them are an error. API objects have about one for eight
/// bytes of text, a hostile text one for two.
pub fn parse_with_node_limit(source: &str, nodes: usize) -> Result<Doc<'_>, SyntaxError> {
    let mut reader = Reader { most: nodes, ..Reader::from_source(source) };
    let mut out = Builder::new(source, Syntax::Json);
    if source.len() >= MIN_COPIED_SOURCE_BYTES {
        out = out.with_repeat_copying();
    }
    reader.read_document(&mut out).map_err(|fault| *fault)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(out.finish_verbatim()),
        Some(_) => Err(*reader.unexpected("after top-level value")),
    }
}

/// Reads the JSON value at the start of a text. Returns the value and the offset of the byte after it;
/// further text is ignored.
pub fn parse_prefix(source: &str) -> Result<(Doc<'_>, usize), SyntaxError> {
    let mut reader = Reader::from_source(source);
    // How much of the text the value takes is not known, and a stream has a million small ones.
    let mut out =
        Builder::with_capacity(source, Syntax::Json, (source.len() / 8).clamp(4, 256)).with_repeat_copying();
    reader.read_document(&mut out).map_err(|fault| *fault)?;
    Ok((out.finish_verbatim(), reader.at))
}

/// Length of the shortest text in which repeated parts are copied. In a shorter one, such as a claim, looking for them
/// takes longer than reading them.
const MIN_COPIED_SOURCE_BYTES: usize = 16 << 10;

/// The error of the reader, boxed to keep `Result` small.
type BoxedSyntaxError = Box<SyntaxError>;

/// The token that the reader expects next.
enum ExpectedToken {
    /// A key of an object.
    Key,
    /// A value that may be copied from its template: see [`super::repeat_template`].
    Value,
    /// A value without a template, or one that differs from its template.
    UnlikeTemplate,
    /// A comma, the end of a container, or the end of the text.
    After,
}

/// Reads JSON text from the byte `at` on and writes it to a [`Builder`].
pub(super) struct Reader<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The largest number of nodes that may be written.
    most: usize,
    /// Number of containers that were open before the value that is read, and that are not closed with it.
    base: usize,
    /// The node that the next value is compared with; [`repeat_template::NO_TEMPLATE`] if there is none.
    template: u32,
    /// The value of the string read last, when it has escapes.
    escaped: String,
    /// Bytes that were compared with a template.
    #[cfg(test)]
    pub(super) compared: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a text, without a limit of nodes.
    pub(super) fn from_source(source: &'a str) -> Reader<'a> {
        Reader {
            source,
            bytes: source.as_bytes(),
            at: 0,
            most: usize::MAX,
            base: 0,
            template: repeat_template::NO_TEMPLATE,
            escaped: String::new(),
            #[cfg(test)]
            compared: 0,
        }
    }

    /// Reads the value at the current position, with everything in it.
    pub(super) fn read_document(&mut self, out: &mut Builder<'_>) -> Result<(), BoxedSyntaxError> {
        if out.copies_repeats {
            self.read_complete_value::<true>(out)
        } else {
            self.read_complete_value::<false>(out)
        }
    }

    /// Reads the value at the current position; looks for templates if `COPIES` is true.
    fn read_complete_value<const COPIES: bool>(
        &mut self,
        out: &mut Builder<'_>,
    ) -> Result<(), BoxedSyntaxError> {
        let mut next = ExpectedToken::Value;
        // In the order in which one comes after the other: most steps fall through to the next.
        loop {
            if matches!(next, ExpectedToken::Key) {
                next = self.read_key_or_copy_from_template::<COPIES>(out)?;
            }
            if matches!(next, ExpectedToken::Value) {
                next = if COPIES {
                    self.try_copy_from_matching_template(out)
                } else {
                    ExpectedToken::UnlikeTemplate
                };
            }
            if matches!(next, ExpectedToken::UnlikeTemplate) {
                next = self.parse_scalar_or_open_container::<COPIES>(out)?;
            }
            if matches!(next, ExpectedToken::After) {
                let Some(after) = self.read_comma_or_closing_brackets::<COPIES>(out)? else { return Ok(()) };
                next = after;
            }
        }
    }

    /// Reads what stands after a value: a comma, or the ends of containers. Returns what comes next; `None` after the
    /// last value.
    #[expect(clippy::inline_always, reason = "called in one place, for every value")]
    #[inline(always)]
    fn read_comma_or_closing_brackets<const COPIES: bool>(
        &mut self,
        out: &mut Builder<'_>,
    ) -> Result<Option<ExpectedToken>, BoxedSyntaxError> {
        loop {
            let Some(inside) = out.innermost_kind().filter(|_| out.depth() > self.base) else {
                return Ok(None);
            };
            if out.len() > self.most {
                return Err(Box::new(self.too_many_nodes_error()));
            }
            match (inside, self.peek_token()) {
                (ValueKind::Object, Some(b',')) => {
                    self.at += 1;
                    return Ok(Some(ExpectedToken::Key));
                }
                (ValueKind::Array, Some(b',')) => {
                    self.at += 1;
                    if COPIES {
                        self.template = out.advance_item_template();
                    }
                    return Ok(Some(ExpectedToken::Value));
                }
                (ValueKind::Array, Some(b']')) | (ValueKind::Object, Some(b'}')) => self.close(out),
                (ValueKind::Array, _) => return Err(self.unexpected("after array element")),
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    /// The error for a text with more keys and values than are read.
    #[cold]
    fn too_many_nodes_error(&self) -> SyntaxError {
        let detail = format!("it has more than {} keys and values, too many for its length", self.most);
        SyntaxError { at: self.at, detail, is_too_dense: true }
    }

    /// Copies the value, and what comes after it, as far as the text equals that of its template. Returns what comes
    /// next.
    #[expect(clippy::inline_always, reason = "called in one place, for every value")]
    #[inline(always)]
    fn try_copy_from_matching_template(&mut self, out: &mut Builder<'_>) -> ExpectedToken {
        self.skip_space();
        if self.template == repeat_template::NO_TEMPLATE {
            return ExpectedToken::UnlikeTemplate;
        }
        self.copy_nodes_of_matching_text(out, out.run_start_at_value(self.template))
            .unwrap_or(ExpectedToken::UnlikeTemplate)
    }

    /// Reads a scalar, an empty container, or the opening bracket of another container. Returns what comes next.
    #[expect(clippy::inline_always, reason = "called in one place, for every value")]
    #[inline(always)]
    fn parse_scalar_or_open_container<const COPIES: bool>(
        &mut self,
        out: &mut Builder<'_>,
    ) -> Result<ExpectedToken, BoxedSyntaxError> {
        let first = self.peek_token();
        let start = self.at;
        match first {
            Some(b'"') => self.read_string(out)?,
            Some(byte @ (b'{' | b'[')) => {
                let kind = if byte == b'{' { ValueKind::Object } else { ValueKind::Array };
                self.open_within_depth::<COPIES>(out, kind)?;
                return Ok(self.enter_container_or_close_empty::<COPIES>(out, kind));
            }
            Some(b'-' | b'0'..=b'9') => {
                self.skip_number()?;
                let span = span(start, self.at);
                out.write_slice(ValueKind::Number, span, span);
            }
            Some(b't') => self.read_literal(out, ValueKind::Bool, "true")?,
            Some(b'f') => self.read_literal(out, ValueKind::Bool, "false")?,
            Some(b'n') => self.read_literal(out, ValueKind::Null, "null")?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        }
        if !COPIES || self.template == repeat_template::NO_TEMPLATE {
            return Ok(ExpectedToken::After);
        }
        Ok(self
            .copy_nodes_of_matching_text(out, out.run_start_after_value(self.template))
            .unwrap_or(ExpectedToken::After))
    }

    /// Copies nodes as long as the text from here on equals the text from `start` on. Returns what comes next; `None`
    /// if nothing was copied.
    #[inline(never)]
    fn copy_nodes_of_matching_text(
        &mut self,
        out: &mut Builder<'_>,
        start: Option<TemplateRunStart>,
    ) -> Option<ExpectedToken> {
        let start = start?;
        let known = self.bytes.get(start.from as usize..start.reach as usize)?;
        let equal = matched_run::common_prefix(known, self.bytes.get(self.at..)?);
        #[cfg(test)]
        {
            self.compared += equal + 1;
        }
        if equal == 0 {
            return None;
        }
        let from = start.from as usize;
        let (end, offset) = (span(0, from + equal).end, span(0, self.at - from).end);
        let resume = out.copy_nodes_in_matched_run(start.first, MatchedByteRun { end, offset })?;
        self.at = (resume.at + offset) as usize;
        Some(match resume.next {
            NextToken::After => ExpectedToken::After,
            NextToken::Inside(kind) => self.enter_container_or_close_empty::<true>(out, kind),
            NextToken::Value(template) => {
                self.template = template;
                ExpectedToken::UnlikeTemplate
            }
        })
    }

    /// Reads an opening bracket; an error if the containers are nested too deeply.
    #[inline]
    fn open_within_depth<const COPIES: bool>(
        &mut self,
        out: &mut Builder<'_>,
        kind: ValueKind,
    ) -> Result<(), BoxedSyntaxError> {
        if out.depth() >= MAX_DEPTH {
            return Err(Box::new(self.too_deep_error()));
        }
        let span = span(self.at, self.at + 1);
        if COPIES {
            out.open_with_template(kind, span, self.template);
        } else {
            out.open(kind, span);
        }
        self.at += 1;
        Ok(())
    }

    /// The error for a text whose containers are nested too deeply.
    #[cold]
    fn too_deep_error(&self) -> SyntaxError {
        SyntaxError { at: self.at, detail: "exceeded max depth".to_owned(), is_too_dense: false }
    }

    /// Returns which token is expected first in the container that was just opened; closes the container if it is
    /// empty.
    #[inline]
    fn enter_container_or_close_empty<const COPIES: bool>(
        &mut self,
        out: &mut Builder<'_>,
        kind: ValueKind,
    ) -> ExpectedToken {
        match (kind, self.peek_token()) {
            (ValueKind::Object, Some(b'}')) | (ValueKind::Array, Some(b']')) => {
                self.close(out);
                ExpectedToken::After
            }
            (ValueKind::Object, _) => ExpectedToken::Key,
            _ => {
                if COPIES {
                    self.template = out.advance_item_template();
                }
                ExpectedToken::Value
            }
        }
    }

    /// Reads the closing bracket at the current position.
    fn close(&mut self, out: &mut Builder<'_>) {
        self.at += 1;
        out.close(span(0, self.at).end);
    }

    /// Reads the word `true`, `false` or `null`.
    fn read_literal(
        &mut self,
        out: &mut Builder<'_>,
        kind: ValueKind,
        word: &'static str,
    ) -> Result<(), BoxedSyntaxError> {
        let start = self.at;
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(self.unexpected(&context));
            }
            self.at += 1;
        }
        out.write_constant(kind, span(start, self.at), word);
        Ok(())
    }

    /// Moves past a number by JSON's grammar, without writing it.
    fn skip_number(&mut self) -> Result<(), BoxedSyntaxError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected("after decimal point in numeric literal"));
            }
            self.skip_digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
            self.skip_digits();
        }
        Ok(())
    }

    fn skip_digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// Returns the byte at the current position; `None` at the end of the text.
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Moves past JSON's white space, and returns the byte after it.
    #[inline]
    fn peek_token(&mut self) -> Option<u8> {
        match self.peek() {
            Some(byte) if byte > b' ' => Some(byte),
            _ => {
                self.skip_space();
                self.peek()
            }
        }
    }

    /// Moves past JSON's white space.
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns Go's error about the character at the current position, or about the end of the text.
    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "every caller passes it on as it is")]
    fn unexpected(&self, context: &str) -> BoxedSyntaxError {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let character = std::str::from_utf8(rest).ok().and_then(|text| text.chars().next());
        let detail = match character {
            None => "unexpected end of JSON input".to_owned(),
            Some('\'') => format!("invalid character '\\'' {context}"),
            Some('"') => format!("invalid character '\"' {context}"),
            Some(other) => {
                let quoted = tollgate_formats::gofmt::quote(other.encode_utf8(&mut [0; 4]));
                format!("invalid character '{}' {context}", quoted.trim_matches('"'))
            }
        };
        Box::new(SyntaxError { at: self.at, detail, is_too_dense: false })
    }
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
