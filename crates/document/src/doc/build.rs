//! Writes a tape: used by both readers and by everything that makes a changed copy of a document.
//!
//! Invariant: every `open` is closed before `finish`; inside an object, keys and values alternate. The readers keep
//! it by construction; [`Builder::finish`] closes what is left so that a half-built tape is still well formed.

use super::name;
use super::repeat_template::RepeatTemplate;
use super::tape::PooledTape;
use super::{ConstantText, Doc, Node, OwnedTexts, Span, Syntax, TextSource, Value, ValueKind};

/// Writes the nodes of a document one after the other.
#[derive(Debug)]
pub struct Builder<'a> {
    pub(super) doc: Doc<'a>,
    pub(super) open: Vec<OpenContainer>,
    /// True if parts that repeat an earlier part of the source are copied from it: see
    /// [`super::repeat_template`].
    pub(super) copies_repeats: bool,
}

/// A container that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenContainer {
    pub(super) node: u32,
    pub(super) kind: ValueKind,
    /// The earlier container that this one probably repeats.
    pub(super) template: RepeatTemplate,
}

impl<'a> Builder<'a> {
    /// An empty document over `source`.
    pub fn new(source: &'a str, syntax: Syntax) -> Builder<'a> {
        // One node per eight bytes is what API objects have; a tape that fits at once is one allocation.
        Builder::with_capacity(source, syntax, (source.len() / 8).clamp(4, 1 << 20))
    }

    /// Creates an empty document over `source` with capacity for `nodes` nodes, for a part of a document.
    pub fn with_capacity(source: &'a str, syntax: Syntax, nodes: usize) -> Builder<'a> {
        Builder::on_tape(PooledTape::with_pooled_capacity(nodes), source, syntax)
    }

    /// Like [`Builder::with_capacity`], but allocates exactly `nodes` nodes, for a document that is kept.
    pub fn with_exact_capacity(source: &'a str, syntax: Syntax, nodes: usize) -> Builder<'a> {
        Builder::on_tape(PooledTape::with_exact_capacity(nodes), source, syntax)
    }

    /// An empty document over `source` whose nodes are written to that tape.
    fn on_tape(nodes: PooledTape, source: &'a str, syntax: Syntax) -> Builder<'a> {
        Builder {
            doc: Doc { source, syntax, nodes, owned: OwnedTexts::NONE, verbatim: false },
            open: Vec::with_capacity(16),
            copies_repeats: false,
        }
    }

    /// Number of nodes so far.
    pub fn len(&self) -> usize {
        self.doc.nodes.len()
    }

    /// The number of containers that are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The kind of the innermost open container; `None` outside of all containers.
    pub fn innermost_kind(&self) -> Option<ValueKind> {
        self.open.last().map(|open| open.kind)
    }

    /// Appends a node that is not a known key, and returns its index.
    #[inline]
    fn push(&mut self, kind: ValueKind, span: Span, text: TextSource) -> u32 {
        self.push_named(kind, span, text, 0)
    }

    /// Appends a node and returns its index; `name` is the number of a key's [`name::FieldName`], or 0.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "sources are capped far below 4 GiB")]
    fn push_named(&mut self, kind: ValueKind, span: Span, text: TextSource, name: u8) -> u32 {
        let at = self.doc.nodes.len() as u32;
        self.doc.nodes.push(Node { span, next: at + 1, kind, text, name });
        at
    }

    /// Starts a list or an object.
    #[inline]
    pub fn open(&mut self, kind: ValueKind, span: Span) {
        let at = self.push(kind, span, TextSource::ConstantText(ConstantText::Nothing));
        self.open.push(OpenContainer { node: at, kind, template: RepeatTemplate::default() });
    }

    /// Ends the innermost container; `end` is one past its last byte in the source.
    #[expect(clippy::cast_possible_truncation, reason = "sources are capped far below 4 GiB")]
    pub fn close(&mut self, end: u32) {
        self.close_with_next_node(self.doc.nodes.len() as u32, end);
    }

    /// [`Builder::close`], where `next` is the index of the node that will be written next.
    #[inline]
    pub(super) fn close_with_next_node(&mut self, next: u32, end: u32) {
        if let Some(open) = self.open.pop()
            && let Some(node) = self.doc.nodes.get_mut(open.node as usize)
        {
            node.next = next;
            node.span.end = end.max(node.span.start);
        }
    }

    /// Writes a scalar whose text is the part `text` of the source: usually the whole span, or the span without its
    /// quotes.
    pub fn write_slice(&mut self, kind: ValueKind, span: Span, text: Span) {
        if text == span {
            self.push(kind, span, TextSource::Span);
        } else if text.start == span.start + 1 && text.end + 1 == span.end {
            self.write_quoted(kind, span);
        } else {
            let source = self.doc.source;
            let text = source.get(text.start as usize..text.end as usize);
            debug_assert!(text.is_some(), "a span outside of the source");
            self.write_owned(kind, span, text.unwrap_or_default());
        }
    }

    /// Writes a key whose text is the part `text` of the source, as in [`Builder::write_slice`].
    pub fn write_key_slice(&mut self, span: Span, text: Span) {
        let at = self.len();
        self.write_slice(ValueKind::String, span, text);
        let source = self.doc.source;
        let key = source.get(text.start as usize..text.end as usize).unwrap_or_default();
        if let Some(node) = self.doc.nodes.get_mut(at) {
            node.name = name::known_name_number(key.as_bytes());
        }
    }

    /// Writes a scalar whose text is the span without its first and last byte, the quotes; the span has at least two
    /// bytes.
    #[inline]
    pub(super) fn write_quoted(&mut self, kind: ValueKind, span: Span) {
        self.push(kind, span, TextSource::Inside);
    }

    /// Writes a quoted key; `name` is the number of its [`name::FieldName`], or 0.
    #[inline]
    pub(super) fn write_quoted_key(&mut self, span: Span, name: u8) {
        self.push_named(ValueKind::String, span, TextSource::Inside, name);
    }

    /// Writes a scalar whose text is copied into the document, because the source contains it in another form, such
    /// as with escapes.
    pub fn write_owned(&mut self, kind: ValueKind, span: Span, text: impl AsRef<str>) {
        self.write_owned_named(kind, span, text.as_ref(), 0);
    }

    fn write_owned_named(&mut self, kind: ValueKind, span: Span, text: &str, name: u8) {
        let at = self.push_named(kind, span, TextSource::Owned, name);
        self.doc.owned.push(at, text);
    }

    /// Writes a scalar with a constant text; `""`, `null`, `true` and `false` take no memory.
    pub fn write_constant(&mut self, kind: ValueKind, span: Span, text: &'static str) {
        let word = match text {
            "" => ConstantText::Nothing,
            "null" => ConstantText::Null,
            "true" => ConstantText::True,
            "false" => ConstantText::False,
            _ => return self.write_owned(kind, span, text),
        };
        self.push(kind, span, TextSource::ConstantText(word));
    }

    /// Writes a copy of a value and everything in it, including spans. If the value belongs to another source, its
    /// texts are copied as well.
    pub fn copy(&mut self, value: Value<'_>) {
        // A value and its descendants are one range of the tape.
        let end = value.node().map_or(value.at + 1, |node| node.next);
        let mut ends: Vec<u32> = Vec::new();
        let mut at = value.at;
        while at < end {
            while ends.last().is_some_and(|&close| close <= at) {
                ends.pop();
                self.close_keeping_span();
            }
            let child = Value { doc: value.doc, at };
            match child.node() {
                Some(node) if matches!(node.kind, ValueKind::Array | ValueKind::Object) => {
                    self.open(node.kind, node.span);
                    ends.push(node.next);
                }
                _ => self.copy_scalar(child),
            }
            at += 1;
        }
        for _ in ends {
            self.close_keeping_span();
        }
    }

    /// Ends the innermost container without changing its span, which was complete when it was opened.
    pub(super) fn close_keeping_span(&mut self) {
        let end = self
            .open
            .last()
            .and_then(|open| self.doc.nodes.get(open.node as usize))
            .map_or(0, |n| n.span.end);
        self.close(end);
    }

    /// Writes a copy of a scalar; `null` for an absent one.
    fn copy_scalar(&mut self, value: Value<'_>) {
        let same_source = std::ptr::eq(self.doc.source, value.doc.source);
        let Some(node) = value.node() else {
            return self.write_constant(ValueKind::Null, Span::default(), "null");
        };
        match node.text {
            TextSource::Span | TextSource::Inside if !same_source => {
                self.write_owned_named(node.kind, node.span, value.text(), node.name);
            }
            TextSource::Owned => self.write_owned_named(node.kind, node.span, value.text(), node.name),
            TextSource::Span | TextSource::Inside | TextSource::ConstantText(_) => {
                self.push_named(node.kind, node.span, node.text, node.name);
            }
        }
    }

    /// Removes all nodes after the first `len`: for readers that must take back a value.
    pub fn truncate(&mut self, len: usize) {
        self.doc.nodes.truncate(len);
        self.doc.owned.truncate(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// The value at the node index `at`, which must already be written.
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub fn value(&self, at: usize) -> Value<'_> {
        Value { doc: &self.doc, at: at as u32 }
    }

    /// Ends the document of a JSON reader that left nothing out and added nothing, so that values equal their source
    /// text.
    pub(super) fn finish_verbatim(self) -> Doc<'a> {
        Doc { verbatim: true, ..self.finish() }
    }

    /// Ends the document; closes containers that are still open.
    pub fn finish(mut self) -> Doc<'a> {
        while !self.open.is_empty() {
            self.close_keeping_span();
        }
        self.doc
    }
}
