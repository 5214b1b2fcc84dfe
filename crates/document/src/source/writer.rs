//! Builds a document from the events of the YAML parser. Scalars, keys, aliases and merge keys have the meaning that
//! go-yaml v2 gives them.
//!
//! The text of a scalar is borrowed from the source if it is equal to the source text.

use std::borrow::Cow;

use granit_parser::{Event, ScalarStyle, StructureStyle, Tag};

use super::alias::Anchors;
use super::dialect::KubectlDialectChecker;
use super::documents::DocumentError;
use super::merge;
use super::quoted;
use super::scalar::{self, ScalarValue};
use crate::doc::{Builder, Doc, Span, ValueKind};

#[expect(clippy::cast_possible_truncation, reason = "documents are capped far below 4 GiB")]
pub(super) fn to_span(bytes: &std::ops::Range<usize>) -> Span {
    Span { start: bytes.start as u32, end: bytes.end as u32 }
}

/// A YAML mapping or sequence that is being read.
struct OpenYamlContainer {
    node: usize,
    /// Anchor ID; 0 if there is none.
    anchor: usize,
    kind: ValueKind,
    style: StructureStyle,
    /// True in an object if the next value is a key.
    at_key: bool,
    /// The nodes of the merge keys of an object.
    merges: Vec<usize>,
}

/// Builds one document from the events of the YAML parser.
pub(super) struct YamlDocBuilder<'a, 'p> {
    source: &'a str,
    /// The text that the parser reads: the source, or a copy with the same positions.
    parsed: &'p str,
    out: Builder<'a>,
    frames: Vec<OpenYamlContainer>,
    anchors: Anchors<'a>,
    /// Byte offset after the last value that was written, which is where a block container ends.
    end: u32,
}

impl<'a, 'p> YamlDocBuilder<'a, 'p> {
    pub(super) fn new(source: &'a str, parsed: &'p str, out: Builder<'a>) -> YamlDocBuilder<'a, 'p> {
        let frames = Vec::with_capacity(16);
        YamlDocBuilder { source, parsed, out, frames, anchors: Anchors::default(), end: 0 }
    }

    /// True if no container is open: the root was read to its end, or nothing of it yet.
    pub(super) fn has_no_open_container(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the document, after all events were written.
    pub(super) fn finish(self) -> Doc<'a> {
        self.out.finish()
    }

    /// Checks an event with `dialect`, and writes its value.
    pub(super) fn write_event(
        &mut self,
        event: Event<'p>,
        span: Span,
        dialect: &mut KubectlDialectChecker<'a>,
    ) -> Result<(), DocumentError> {
        let in_flow = self.frames.last().is_some_and(|frame| frame.style == StructureStyle::Flow);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let (text, span) = if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    dialect.check_block_scalar(span)?;
                    (text, self.trim_span_end(span))
                } else {
                    let is_key = self.expects_key();
                    let is_unusual =
                        dialect.check_scalar_and_whether_to_redecode(span, style, is_key, in_flow)?;
                    (self.scalar_text_as_kubectl_reads(text, style, is_unusual, span)?, span)
                };
                return self.write_scalar_as_key_or_value(&text, style, anchor, tag.as_deref(), span);
            }
            _ => dialect.check_gap_before_token(span, in_flow)?,
        }
        match event {
            Event::SequenceStart(style, anchor, _) => {
                self.open_container_unless_key_expected(ValueKind::Array, style, anchor, span)
            }
            Event::MappingStart(style, anchor, _) => {
                self.open_container_unless_key_expected(ValueKind::Object, style, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_container_and_expand_merges(span),
            Event::Alias(anchor) => {
                dialect.check_alias_name(span)?;
                self.write_copy_of_anchor_value(anchor, span)
            }
            _ => Ok(()),
        }
    }

    /// The text of a scalar: the parser's if it is borrowed from the source. Escapes and line breaks in quotes are read
    /// again, as kubectl reads them.
    fn scalar_text_as_kubectl_reads(
        &self,
        text: Cow<'p, str>,
        style: ScalarStyle,
        is_unusual: bool,
        span: Span,
    ) -> Result<Cow<'p, str>, DocumentError> {
        match style {
            // The parser writes `~` for a value that is not there.
            ScalarStyle::Plain if span.end == span.start => Ok(Cow::Borrowed("")),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted
                if is_unusual || matches!(text, Cow::Owned(_)) || !std::ptr::eq(self.source, self.parsed) =>
            {
                let quoted = self.source.get(span.start as usize..).unwrap_or_default();
                match quoted::decode_quoted(quoted) {
                    Ok((value, _)) => Ok(Cow::Owned(value)),
                    Err((at, detail)) => {
                        Err(DocumentError::new(span.start as usize + at, format!("yaml: {detail}")))
                    }
                }
            }
            _ => Ok(text),
        }
    }

    /// True if the next value is a key.
    fn expects_key(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.at_key)
    }

    /// Marks the value or key that starts at `node` as complete, and stores it if it has an anchor.
    fn finish_node(&mut self, anchor: usize, node: usize, span: Span) -> Result<(), DocumentError> {
        self.anchors.count_node();
        self.end = self.end.max(span.end);
        if let Some(frame) = self.frames.last_mut() {
            frame.at_key = frame.kind == ValueKind::Object && !frame.at_key;
        }
        if anchor > 0 {
            let kept = self.anchors.store(anchor, &self.out, node, self.source);
            kept.map_err(|detail| {
                DocumentError::rejected_by_tollgate(span.start as usize, format!("yaml: {detail}"))
            })?;
        }
        Ok(())
    }

    /// Begins a list or an object. Returns an error if it is the key of a mapping.
    pub(super) fn open_container_unless_key_expected(
        &mut self,
        kind: ValueKind,
        style: StructureStyle,
        anchor: usize,
        span: Span,
    ) -> Result<(), DocumentError> {
        if self.expects_key() {
            return Err(self.container_as_key_error(kind, span));
        }
        let node = self.out.len();
        self.out.open(kind, span);
        self.frames.push(OpenYamlContainer {
            node,
            anchor,
            kind,
            style,
            at_key: kind == ValueKind::Object,
            merges: Vec::new(),
        });
        Ok(())
    }

    /// Ends the innermost container, and replaces its merge keys.
    pub(super) fn close_container_and_expand_merges(&mut self, span: Span) -> Result<(), DocumentError> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        // A flow container ends with its bracket, a block container with its last value.
        if span.end > span.start {
            self.end = self.end.max(span.end);
        }
        self.out.close(self.end);
        if !frame.merges.is_empty() {
            merge::expand_merge_keys(&mut self.out, frame.node, &frame.merges, self.source).map_err(
                |merge::NotAMapping(span)| {
                    error_at(span, "yaml: map merge requires map or sequence of maps as the value")
                },
            )?;
        }
        let whole = self.out.value(frame.node).span();
        self.finish_node(frame.anchor, frame.node, whole)
    }

    /// Writes a copy of the anchor's value; as a key, its text.
    fn write_copy_of_anchor_value(&mut self, anchor: usize, span: Span) -> Result<(), DocumentError> {
        let node = self.out.len();
        let fault = |detail: String| error_at(span, format!("yaml: {detail}"));
        if self.expects_key() {
            let Some(value) = self.anchors.value(anchor) else {
                return Err(fault("the anchor's value contains itself".to_owned()));
            };
            match value.kind() {
                ValueKind::Null => return Err(null_key_error(span)),
                kind @ (ValueKind::Array | ValueKind::Object) => {
                    return Err(self.container_as_key_error(kind, span));
                }
                ValueKind::Bool | ValueKind::Number | ValueKind::String => {
                    let text = value.text().to_owned();
                    self.out.write_owned(ValueKind::String, span, text);
                }
            }
        } else {
            self.anchors.write_alias_copy(anchor, &mut self.out).map_err(fault)?;
        }
        self.finish_node(0, node, span)
    }

    /// Writes a scalar as a key, a merge key or a value.
    pub(super) fn write_scalar_as_key_or_value(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<(), DocumentError> {
        let node = self.out.len();
        if self.expects_key() && scalar::is_merge_key(text, style, tag) {
            if let Some(frame) = self.frames.last_mut() {
                frame.merges.push(node);
            }
            self.out.write_constant(ValueKind::String, span, "<<");
            return self.finish_node(anchor, node, span);
        }
        let fault = |detail: String| error_at(span, format!("yaml: {detail}"));
        let meaning = scalar::resolve_tagged(text, style, tag).map_err(fault)?;
        if self.expects_key() {
            self.write_key_as_string(text, meaning, span)?;
        } else {
            self.write_value(text, meaning, span)?;
        }
        self.finish_node(anchor, node, span)
    }

    /// Writes a scalar that is not a key.
    fn write_value(&mut self, text: &str, meaning: ScalarValue, span: Span) -> Result<(), DocumentError> {
        match meaning {
            ScalarValue::Null => self.out.write_constant(ValueKind::Null, span, "null"),
            ScalarValue::Bool(value) => {
                self.out.write_constant(ValueKind::Bool, span, if value { "true" } else { "false" })
            }
            ScalarValue::Text => self.write_borrowed_or_owned_text(ValueKind::String, text, span),
            ScalarValue::Int(number) => self.write_integer(text, &number, span),
            ScalarValue::Unsigned(number) => self.write_integer(text, &number, span),
            ScalarValue::Float(number) => {
                let literal = scalar::json_float(number).map_err(|error| error_at(span, error))?;
                self.out.write_owned(ValueKind::Number, span, literal);
            }
            ScalarValue::Binary => self.write_decoded_base64(text, span)?,
        }
        Ok(())
    }

    /// Writes a scalar as a key, which is always a string.
    fn write_key_as_string(
        &mut self,
        text: &str,
        meaning: ScalarValue,
        span: Span,
    ) -> Result<(), DocumentError> {
        match meaning {
            ScalarValue::Text => match self.span_of_borrowed_text(text) {
                Some(within) => self.out.write_key_slice(span, within),
                None => self.out.write_owned(ValueKind::String, span, text),
            },
            ScalarValue::Bool(value) => {
                self.out.write_constant(ValueKind::String, span, if value { "true" } else { "false" })
            }
            ScalarValue::Int(number) => self.out.write_owned(ValueKind::String, span, number.to_string()),
            ScalarValue::Float(number) => {
                self.out.write_owned(ValueKind::String, span, scalar::float_key(number))
            }
            ScalarValue::Binary => self.write_decoded_base64(text, span)?,
            ScalarValue::Null => return Err(null_key_error(span)),
            ScalarValue::Unsigned(number) => {
                let detail = format!("unsupported map key of type: uint64, key: {number}");
                return Err(error_at(span, detail));
            }
        }
        Ok(())
    }

    /// Writes an integer; its text is borrowed from the source if JSON writes it that way.
    fn write_integer(&mut self, text: &str, number: &dyn std::fmt::Display, span: Span) {
        let plain =
            text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
        if plain {
            self.write_borrowed_or_owned_text(ValueKind::Number, text, span);
        } else {
            self.out.write_owned(ValueKind::Number, span, number.to_string());
        }
    }

    /// Writes the decoded text of a `!!binary` scalar.
    fn write_decoded_base64(&mut self, text: &str, span: Span) -> Result<(), DocumentError> {
        let Some(decoded) = scalar::decode_binary_lossy(text) else {
            return Err(error_at(span, "yaml: !!binary value contains invalid base64 data"));
        };
        self.out.write_owned(ValueKind::String, span, decoded);
        Ok(())
    }

    /// Writes a scalar with that text, borrowed from the source if possible.
    fn write_borrowed_or_owned_text(&mut self, kind: ValueKind, text: &str, span: Span) {
        match self.span_of_borrowed_text(text) {
            Some(within) => self.out.write_slice(kind, span, within),
            None => self.out.write_owned(kind, span, text),
        }
    }

    /// The span of a text in the source; `None` if the parser did not borrow it from there.
    fn span_of_borrowed_text(&self, text: &str) -> Option<Span> {
        let start = (text.as_ptr() as usize).checked_sub(self.parsed.as_ptr() as usize)?;
        let end = start + text.len();
        (end <= self.parsed.len()).then(|| to_span(&(start..end)))
    }

    /// The span of a block scalar without the white space after its last line, which the parser's span has up to the
    /// next token.
    fn trim_span_end(&self, span: Span) -> Span {
        let whole = self.source.get(span.start as usize..span.end as usize).unwrap_or_default();
        to_span(&(span.start as usize..span.start as usize + whole.trim_end().len()))
    }

    /// The error for a list or a map that is used as a key.
    fn container_as_key_error(&self, kind: ValueKind, span: Span) -> DocumentError {
        let what = if kind == ValueKind::Array { "list" } else { "map" };
        let template = self.source.get(..=span.start as usize).is_some_and(|before| before.ends_with("{{"));
        let hint = if template { "; this looks like a template: render it first" } else { "" };
        error_at(span, format!("yaml: invalid map key: a {what} cannot be a key{hint}"))
    }
}

/// The error for a key that is null.
fn null_key_error(span: Span) -> DocumentError {
    error_at(span, "unsupported map key of type: null; quote it if you mean a string")
}

/// An error about a value that kubectl rejects too.
fn error_at(span: Span, message: impl Into<String>) -> DocumentError {
    DocumentError::new(span.start as usize, message)
}
