//! YAML text onto a tape, as kubectl reads it: go-yaml v2's meaning of scalars and keys, aliases, merge keys.
//!
//! The parser gives events with byte spans; this turns them into a document and nothing else. Scalars are borrowed
//! from the text wherever they stand there as they mean.
//!
//! Invariant: one loop and an explicit stack, so depth and size are limits with a position and never a crash.

use granit_parser::{
    ErrorKind, Event, ParseResult, Parser, ScalarStyle, ScanError, StrInput, StructureStyle, Tag,
};

use super::alias::Anchors;
use super::documents::DocumentError;
use super::merge;
use super::scalar::{self, ScalarValue};
use crate::doc::{Builder, Doc, Span, Syntax, ValueKind};

/// Containers inside containers at most.
const MAX_NESTING: usize = 1_000;

/// Reads the documents of a text that is one piece between `---` lines: one, or several if `...` ends them.
pub(super) struct Reader<'a> {
    source: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    has_tabs: bool,
    /// Nodes to make capacity for: the first document is usually the only one.
    capacity: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a str) -> Reader<'a> {
        let options = granit_parser::options! {
            emit_comments: false,
            flow_nesting_limit: MAX_NESTING,
            block_nesting_limit: MAX_NESTING,
        };
        let parser = Parser::new_from_str_with_options(source, options);
        Reader {
            source,
            parser,
            has_tabs: source.contains('\t'),
            capacity: (source.len() / 8).clamp(4, 1 << 20),
        }
    }

    /// The next document; none at the end of the text or after a fault.
    pub(super) fn next_document(&mut self) -> Option<Result<Doc<'a>, DocumentError>> {
        let mut writer: Option<Writer<'a>> = None;
        loop {
            let (event, span) = match next_event(&mut self.parser)? {
                Ok(event) => event,
                Err(error) => return Some(Err(self.fault(&error))),
            };
            let bytes = span.byte_range();
            debug_assert!(bytes.is_some(), "without bytes every field would be at the start of the file");
            let bytes = bytes.unwrap_or_default();
            match event {
                Event::DocumentStart(..) => {
                    let out = Builder::with_capacity(self.source, Syntax::Yaml, self.capacity);
                    writer = Some(Writer::new(self.source, out, self.has_tabs));
                    self.capacity = self.capacity.min(64);
                }
                Event::DocumentEnd => return writer.map(|writer| Ok(writer.out.finish())),
                event => {
                    if let Some(writer) = &mut writer
                        && let Err(fault) = writer.event(event, to_span(&bytes))
                    {
                        return Some(Err(fault));
                    }
                }
            }
        }
    }

    /// True if there is a tab before the first letter of the line that a byte is in.
    fn is_indented_by_tab(&self, at: usize) -> bool {
        let before = self.source.get(..at).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |line_break| line_break + 1);
        let line = self.source.get(start..).unwrap_or_default();
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..indent).unwrap_or_default().contains('\t')
    }

    /// The start of the line after the one that a byte is in.
    fn next_line(&self, at: usize) -> Option<usize> {
        let end = self.source.get(at..)?.find('\n')?;
        Some(at + end + 1)
    }

    fn fault(&self, error: &ScanError) -> DocumentError {
        let at = error.marker().byte_offset();
        debug_assert!(at.is_some(), "without a byte every error would be at the start of the file");
        let at = at.unwrap_or_default();
        match error.kind() {
            ErrorKind::UnknownAnchor => {
                let name = self.source.get(at..).unwrap_or_default().trim_start_matches('*');
                let name = name.split([' ', '\t', '\r', '\n', ',', ']', '}']).next().unwrap_or_default();
                DocumentError::new(at, format!("yaml: unknown anchor '{name}' referenced"))
            }
            // The text was cut at `---`, so a directive has lost its document; kubectl refuses it for that.
            ErrorKind::ExpectedDocumentStart if self.source.trim_start().starts_with('%') => {
                let at = self.source.len() - self.source.trim_start().len();
                DocumentError::new(
                    at,
                    "yaml: did not find expected <document start>; kubectl does not support % directives",
                )
            }
            _ if self.is_indented_by_tab(at) => {
                DocumentError::new(at, "yaml: tabs cannot be used for indentation; use spaces")
            }
            // A value that could go on in the next line: the tab is there.
            _ if error.info().contains("tab")
                && let Some(next) = self.next_line(at)
                && self.is_indented_by_tab(next) =>
            {
                DocumentError::new(next, "yaml: tabs cannot be used for indentation; use spaces")
            }
            _ => DocumentError::new(at, format!("yaml: {}", error.info())),
        }
    }
}

/// The next event. The only call of the parser, so that the compiler can make one function of it: a second one cost
/// every file a few percent.
#[inline(never)]
pub(super) fn next_event<'a>(parser: &mut Parser<'a, StrInput<'a>>) -> Option<ParseResult<'a>> {
    parser.next_event()
}

#[expect(clippy::cast_possible_truncation, reason = "documents are capped far below 4 GiB")]
fn to_span(bytes: &std::ops::Range<usize>) -> Span {
    Span { start: bytes.start as u32, end: bytes.end as u32 }
}

/// A container being read.
struct Frame {
    node: usize,
    /// Its anchor, 0 if none.
    anchor: usize,
    kind: ValueKind,
    style: StructureStyle,
    /// In an object: the next value is a key.
    at_key: bool,
    /// In an object: the nodes of its merge keys.
    merges: Vec<usize>,
}

/// One document being read.
struct Writer<'a> {
    source: &'a str,
    out: Builder<'a>,
    frames: Vec<Frame>,
    anchors: Anchors<'a>,
    /// End of the last thing written: where a block container ends.
    end: u32,
    has_tabs: bool,
}

impl<'a> Writer<'a> {
    fn new(source: &'a str, out: Builder<'a>, has_tabs: bool) -> Writer<'a> {
        Writer { source, out, frames: Vec::with_capacity(16), anchors: Anchors::default(), end: 0, has_tabs }
    }

    fn event(&mut self, event: Event<'a>, span: Span) -> Result<(), DocumentError> {
        if self.has_tabs && event.is_node() {
            self.check_tabs(span)?;
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), span)
            }
            Event::SequenceStart(style, anchor, _) => self.open(ValueKind::Array, style, anchor, span),
            Event::MappingStart(style, anchor, _) => self.open(ValueKind::Object, style, anchor, span),
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    /// Tabs cannot indent: not at the start of a line, nor after `-` or `?`. YAML 1.2 is laxer than go-yaml here.
    // upstream go-yaml v2 yaml_parser_scan_to_next_token
    fn check_tabs(&self, span: Span) -> Result<(), DocumentError> {
        if self.frames.last().is_some_and(|frame| frame.style == StructureStyle::Flow) {
            return Ok(());
        }
        let before = self.source.get(..span.start as usize).unwrap_or_default();
        let indicator = before.trim_end_matches([' ', '\t']);
        let blanks = before.get(indicator.len()..).unwrap_or_default();
        let indents = match indicator.strip_suffix(['-', '?']) {
            Some(rest) => rest.is_empty() || rest.ends_with([' ', '\t', '\n', '\r']),
            None => indicator.is_empty() || indicator.ends_with(['\n', '\r']),
        };
        match blanks.find('\t') {
            Some(tab) if indents => Err(DocumentError::new(
                indicator.len() + tab,
                "yaml: tabs cannot be used for indentation; use spaces",
            )),
            _ => Ok(()),
        }
    }

    fn at_key(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.at_key)
    }

    /// A value, or a key, is complete: it starts at `node`.
    fn finish_node(&mut self, anchor: usize, node: usize, span: Span) -> Result<(), DocumentError> {
        self.anchors.count_node();
        self.end = self.end.max(span.end);
        if let Some(frame) = self.frames.last_mut() {
            frame.at_key = frame.kind == ValueKind::Object && !frame.at_key;
        }
        if anchor > 0 {
            let kept = self.anchors.store(anchor, &self.out, node, self.source);
            kept.map_err(|detail| DocumentError::new(span.start as usize, format!("yaml: {detail}")))?;
        }
        Ok(())
    }

    fn open(
        &mut self,
        kind: ValueKind,
        style: StructureStyle,
        anchor: usize,
        span: Span,
    ) -> Result<(), DocumentError> {
        if self.at_key() {
            return Err(self.container_as_key(kind, span));
        }
        let node = self.out.len();
        self.out.open(kind, span);
        self.frames.push(Frame {
            node,
            anchor,
            kind,
            style,
            at_key: kind == ValueKind::Object,
            merges: Vec::new(),
        });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), DocumentError> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        // A flow container ends with its bracket, a block container with its last value.
        if span.end > span.start {
            self.end = self.end.max(span.end);
        }
        self.out.close(self.end);
        if !frame.merges.is_empty() {
            merge::expand(&mut self.out, frame.node, &frame.merges, self.source).map_err(
                |merge::NotAMapping(span)| {
                    let detail = "yaml: map merge requires map or sequence of maps as the value";
                    DocumentError::new(span.start as usize, detail)
                },
            )?;
        }
        let whole = self.out.value(frame.node).span();
        self.finish_node(frame.anchor, frame.node, whole)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), DocumentError> {
        let node = self.out.len();
        let fault = |detail: String| DocumentError::new(span.start as usize, format!("yaml: {detail}"));
        if self.at_key() {
            let Some(value) = self.anchors.value(anchor) else {
                return Err(fault("the anchor's value contains itself".to_owned()));
            };
            match value.kind() {
                ValueKind::Null => return Err(null_key(span)),
                kind @ (ValueKind::Array | ValueKind::Object) => {
                    return Err(self.container_as_key(kind, span));
                }
                ValueKind::Bool | ValueKind::Number | ValueKind::String => {
                    let text = value.text().to_owned();
                    self.out.owned(ValueKind::String, span, text);
                }
            }
        } else {
            self.anchors.expand(anchor, &mut self.out).map_err(fault)?;
        }
        self.finish_node(0, node, span)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<(), DocumentError> {
        let node = self.out.len();
        let span = self.trim_span(span, style);
        // The parser writes `~` for a value that is not there.
        let text = if span.end == span.start && style == ScalarStyle::Plain { "" } else { text };
        if self.at_key() && scalar::is_merge(text, style, tag) {
            if let Some(frame) = self.frames.last_mut() {
                frame.merges.push(node);
            }
            self.out.fixed(ValueKind::String, span, "<<");
            return self.finish_node(anchor, node, span);
        }
        if style == ScalarStyle::DoubleQuoted
            && let Some(at) = self.lone_surrogate(span)
        {
            return Err(DocumentError::new(at, "yaml: found invalid Unicode character escape code"));
        }
        let fault = |detail: String| DocumentError::new(span.start as usize, format!("yaml: {detail}"));
        let meaning = scalar::resolve_tagged(text, style, tag).map_err(fault)?;
        if self.at_key() {
            self.key(text, meaning, span)?;
        } else {
            self.value(text, meaning, span)?;
        }
        self.finish_node(anchor, node, span)
    }

    fn value(&mut self, text: &str, meaning: ScalarValue, span: Span) -> Result<(), DocumentError> {
        match meaning {
            ScalarValue::Null => self.out.fixed(ValueKind::Null, span, "null"),
            ScalarValue::Bool(value) => {
                self.out.fixed(ValueKind::Bool, span, if value { "true" } else { "false" })
            }
            ScalarValue::Text => self.text(ValueKind::String, text, span),
            ScalarValue::Int(number) => self.number(text, &number, span),
            ScalarValue::Unsigned(number) => self.number(text, &number, span),
            ScalarValue::Float(number) => {
                let literal = scalar::json_float(number);
                self.out.owned(
                    ValueKind::Number,
                    span,
                    literal.map_err(|error| DocumentError::new(span.start as usize, error))?,
                );
            }
            ScalarValue::Binary => self.binary(text, span)?,
        }
        Ok(())
    }

    fn key(&mut self, text: &str, meaning: ScalarValue, span: Span) -> Result<(), DocumentError> {
        match meaning {
            ScalarValue::Text => match self.offset(text) {
                Some(within) => self.out.key_slice(span, within),
                None => self.out.owned(ValueKind::String, span, text),
            },
            ScalarValue::Bool(value) => {
                self.out.fixed(ValueKind::String, span, if value { "true" } else { "false" })
            }
            ScalarValue::Int(number) => self.out.owned(ValueKind::String, span, number.to_string()),
            ScalarValue::Float(number) => self.out.owned(ValueKind::String, span, scalar::float_key(number)),
            ScalarValue::Binary => self.binary(text, span)?,
            ScalarValue::Null => return Err(null_key(span)),
            ScalarValue::Unsigned(number) => {
                let detail = format!("unsupported map key of type: uint64, key: {number}");
                return Err(DocumentError::new(span.start as usize, detail));
            }
        }
        Ok(())
    }

    /// An integer: borrowed if it is written as JSON writes it.
    fn number(&mut self, text: &str, number: &dyn std::fmt::Display, span: Span) {
        let plain =
            text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
        if plain {
            self.text(ValueKind::Number, text, span);
        } else {
            self.out.owned(ValueKind::Number, span, number.to_string());
        }
    }

    fn binary(&mut self, text: &str, span: Span) -> Result<(), DocumentError> {
        let Some(decoded) = scalar::base64(text) else {
            return Err(DocumentError::new(
                span.start as usize,
                "yaml: !!binary value contains invalid base64 data",
            ));
        };
        self.out.owned(ValueKind::String, span, decoded);
        Ok(())
    }

    fn text(&mut self, kind: ValueKind, text: &str, span: Span) {
        match self.offset(text) {
            Some(within) => self.out.slice(kind, span, within),
            None => self.out.owned(kind, span, text),
        }
    }

    /// Where in the source a text lies, if the parser borrowed it from there.
    fn offset(&self, text: &str) -> Option<Span> {
        let start = (text.as_ptr() as usize).checked_sub(self.source.as_ptr() as usize)?;
        let end = start + text.len();
        (end <= self.source.len()).then(|| to_span(&(start..end)))
    }

    /// The first escape of half a UTF-16 pair; JSON has them, go-yaml refuses them.
    fn lone_surrogate(&self, span: Span) -> Option<usize> {
        let quoted = self.source.get(span.start as usize..span.end as usize)?;
        let mut at = 0;
        while let Some(found) = quoted.get(at..)?.find('\\') {
            at += found;
            if let [b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..] =
                quoted.as_bytes().get(at + 1..)?
            {
                return Some(span.start as usize + at);
            }
            at += 2;
        }
        None
    }

    /// A block scalar's span reaches to the next token; what people see ends with its last line.
    fn trim_span(&self, span: Span, style: ScalarStyle) -> Span {
        if !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            return span;
        }
        let whole = self.source.get(span.start as usize..span.end as usize).unwrap_or_default();
        to_span(&(span.start as usize..span.start as usize + whole.trim_end().len()))
    }

    fn container_as_key(&self, kind: ValueKind, span: Span) -> DocumentError {
        let what = if kind == ValueKind::Array { "list" } else { "map" };
        let template = self.source.get(..=span.start as usize).is_some_and(|before| before.ends_with("{{"));
        let hint = if template { "; this looks like a template: render it first" } else { "" };
        DocumentError::new(
            span.start as usize,
            format!("yaml: invalid map key: a {what} cannot be a key{hint}"),
        )
    }
}

fn null_key(span: Span) -> DocumentError {
    DocumentError::new(
        span.start as usize,
        "unsupported map key of type: null; quote it if you mean a string",
    )
}
