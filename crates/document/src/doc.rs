//! One document, flat and borrowed: what JSON and YAML are read into, and what every view points into.
//!
//! A [`Doc`] is a tape: one `Vec` of small nodes in document order, each with the bytes it came from. A [`Value`] is
//! a cursor into it, `Copy` and two words wide. Nothing is copied out of the text except strings with escapes.
//!
//! It is not a schema (that is `api::schema`) and it converts nothing: numbers keep their literal text, because Go's
//! decoder decides by the literal and prints it.
//!
//! Invariant: a container's children follow it directly and `next` is one past its last descendant, so a subtree is
//! a range, skipping is one step and no walk needs recursion.

mod build;
mod edit;
mod index;
mod json;
mod matched_run;
mod name;
mod node;
mod owned;
mod parts;
mod render;
mod repeat_template;
mod tape;

pub use build::Builder;
pub use edit::{DocChange, OwnedJsonValue, apply_changes};
pub use index::ContainerIndex;
pub use json::{KeptFields, KeptObject, ObjectWithDeferredMember, parse_kept};
pub use json::{SyntaxError, parse};
pub use json::{parse_prefix, parse_with_node_limit};
pub use name::{FieldName, NameSet};
pub use parts::{Items, Members, ObjectKey};

use node::{ConstantText, Node, TextSource};
use owned::OwnedTexts;
use tape::PooledTape;

/// Maximum nesting depth of lists and objects, as in Go's decoder. Deeper documents are rejected.
pub const MAX_DEPTH: usize = 10_000;

/// The JSON type of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// `null`, and any absent value.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number; [`Value::text`] is its literal.
    Number,
    /// A string; [`Value::text`] is its value.
    String,
    /// A list.
    Array,
    /// An object: key, value, key, value…
    Object,
}

impl ValueKind {
    /// The name of the type in the errors of Go's decoder.
    pub fn name_in_go_decode_errors(self) -> &'static str {
        match self {
            ValueKind::Null => "null",
            ValueKind::Bool => "bool",
            ValueKind::Number => "number",
            ValueKind::String => "string",
            ValueKind::Array => "array",
            ValueKind::Object => "object",
        }
    }
}

/// The bytes of the source that a node was read from; the end is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }
}

/// The syntax that the document was read from. Raw JSON can be quoted from the source only if the source is
/// JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syntax {
    /// The source is JSON text.
    Json,
    /// The source is YAML text.
    Yaml,
}

/// A parsed document. Node 0 is the root.
#[derive(Debug)]
pub struct Doc<'a> {
    source: &'a str,
    syntax: Syntax,
    nodes: PooledTape,
    /// Texts that the source contains only in another form, such as escaped strings.
    owned: OwnedTexts,
    /// True if the document was read from JSON and has not been changed, so that every value equals its span
    /// of the source.
    verbatim: bool,
}

/// The document that every absent value points into.
static EMPTY_DOC: Doc<'static> = Doc {
    source: "",
    syntax: Syntax::Json,
    nodes: PooledTape::EMPTY,
    owned: OwnedTexts::NONE,
    verbatim: false,
};

impl<'a> Doc<'a> {
    /// Returns the root value of the document.
    pub fn root(&self) -> Value<'_> {
        Value { doc: self, at: 0 }
    }

    /// The value at a position of the tape, as [`Value::index`] gave it.
    pub fn value_at_node_index(&self, index: u32) -> Value<'_> {
        Value { doc: self, at: index }
    }

    /// Releases unused memory, for a document that is kept.
    pub fn shrink(&mut self) {
        self.nodes.shrink();
    }

    /// Memory used by the document in bytes, without its source.
    pub fn memory_bytes_without_source(&self) -> usize {
        size_of::<Doc<'_>>() + self.nodes.capacity() * size_of::<Node>() + self.owned.memory_bytes()
    }

    /// Returns the text that the document was read from.
    pub fn source(&self) -> &'a str {
        self.source
    }

    /// The syntax of the source.
    pub fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// The bytes of the source at a span; empty if the span is outside of it.
    #[inline]
    fn source_bytes(&self, span: Span) -> &[u8] {
        let bytes = self.source.as_bytes().get(span.start as usize..span.end as usize);
        debug_assert!(bytes.is_some(), "a span outside of the source");
        bytes.unwrap_or_default()
    }

    /// The text of the source at a span; empty if the span is outside of it.
    #[inline]
    fn text_at(&self, span: Span) -> &str {
        let text = self.source.get(span.start as usize..span.end as usize);
        debug_assert!(text.is_some(), "a span outside of the source");
        text.unwrap_or_default()
    }

    /// The text of a span without its first and last byte, which are quotes.
    #[inline]
    fn text_between_quotes(&self, span: Span) -> &str {
        self.text_at(Span { start: span.start + 1, end: span.end.saturating_sub(1) })
    }

    /// True if the text of `key`, which is at the index `at`, is that name.
    #[inline]
    fn key_has_name(&self, at: u32, key: &Node, name: FieldName) -> bool {
        if key.name == 0 {
            self.text_of(at, key) == name.text
        } else {
            usize::from(key.name) == name.number()
        }
    }

    /// The text of `node`, which is at the index `at`: without quotes, with escapes resolved.
    #[inline]
    fn text_of(&self, at: u32, node: &Node) -> &str {
        // First what nearly all texts are: strings without escapes.
        if node.text == TextSource::Inside {
            return self.text_between_quotes(node.span);
        }
        self.text_by_text_source(at, node)
    }

    /// [`Doc::text_of`], without a short way for strings without escapes.
    fn text_by_text_source(&self, at: u32, node: &Node) -> &str {
        match node.text {
            TextSource::Span => self.text_at(node.span),
            TextSource::Inside => self.text_between_quotes(node.span),
            TextSource::Owned => self.owned.text(at),
            TextSource::ConstantText(word) => word.text(),
        }
    }
}

/// A cursor: one value of a document. A value that is absent reads as [`ValueKind::Null`] everywhere.
#[derive(Clone, Copy)]
pub struct Value<'d> {
    doc: &'d Doc<'d>,
    at: u32,
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl<'d> Value<'d> {
    /// The value of a field that is not there.
    pub const fn absent() -> Value<'d> {
        Value { doc: &EMPTY_DOC, at: 0 }
    }

    /// The node on the tape; `None` for an absent value.
    #[inline]
    fn node(self) -> Option<&'d Node> {
        self.doc.nodes.get(self.at as usize)
    }

    /// True if the document has this value, `null` included; false if it is absent.
    pub fn exists(self) -> bool {
        self.node().is_some()
    }

    /// The document this is part of.
    pub fn doc(self) -> &'d Doc<'d> {
        self.doc
    }

    /// Position of the node on the tape; equal for the same node of one document.
    pub fn index(self) -> u32 {
        self.at
    }

    /// The JSON type of the value; [`ValueKind::Null`] if it is absent.
    pub fn kind(self) -> ValueKind {
        self.node().map_or(ValueKind::Null, |node| node.kind)
    }

    /// True if the value is `null` or absent.
    pub fn is_null_or_absent(self) -> bool {
        self.kind() == ValueKind::Null
    }

    /// The bytes of the source that the value was read from; empty for an absent value and for one that was not read.
    pub fn span(self) -> Span {
        self.node().map_or(Span::default(), |node| node.span)
    }

    /// A string's value, a number's literal, `true`, `false` or `null`; empty for containers and absent values.
    #[inline]
    pub fn text(self) -> &'d str {
        self.node().map_or("", |node| self.doc.text_of(self.at, node))
    }

    /// The bytes of [`Value::text`].
    #[inline]
    pub fn text_bytes(self) -> &'d [u8] {
        self.text().as_bytes()
    }

    /// True if [`Value::text`] equals `expected`. False if the value is absent.
    #[inline]
    pub fn text_is(self, expected: &str) -> bool {
        self.node().is_some_and(|node| self.doc.text_of(self.at, node) == expected)
    }

    /// True if both values are in the same JSON text and have the same bytes there, so that they are surely equal.
    /// False does not mean that they differ: equal values can be written differently, and changed copies always give
    /// false.
    #[inline]
    pub fn has_equal_bytes_in_same_json_source(self, other: Value<'_>) -> bool {
        let written = self.unchanged_source_json_or_empty();
        let is_same_text = std::ptr::eq(self.doc.source, other.doc.source);
        is_same_text && !written.is_empty() && written == other.unchanged_source_json_or_empty()
    }

    /// The bytes that the value was read from, quotes included; empty unless the document was read from JSON and has
    /// not been changed since.
    pub fn unchanged_source_json_or_empty(self) -> &'d [u8] {
        self.node().filter(|_| self.doc.verbatim).map_or(&[], |node| self.doc.source_bytes(node.span))
    }

    /// The string's value; anything else reads as empty, as Go leaves a string field it could not fill.
    pub fn str(self) -> &'d str {
        if self.kind() == ValueKind::String { self.text() } else { "" }
    }

    /// The bool; `None` for any other type.
    pub fn bool(self) -> Option<bool> {
        (self.kind() == ValueKind::Bool).then(|| self.text() == "true")
    }

    /// The number as an `i64`; `None` for other types, fractions, exponents and numbers out of range.
    pub fn int(self) -> Option<i64> {
        (self.kind() == ValueKind::Number).then(|| self.text().parse().ok()).flatten()
    }

    /// The number of items or members, duplicate keys included; 0 for anything but a list or an object.
    pub fn len(self) -> usize {
        match self.kind() {
            ValueKind::Array => self.items().count(),
            ValueKind::Object => self.members().count(),
            _ => 0,
        }
    }

    /// True for an empty list or object, and for anything that is neither.
    pub fn is_empty(self) -> bool {
        self.node().is_none_or(|node| node.next <= self.at + 1)
    }

    /// The items of a list; none for anything else.
    pub fn items(self) -> Items<'d> {
        let end = match self.node() {
            Some(node) if node.kind == ValueKind::Array => node.next,
            _ => self.at + 1,
        };
        Items { doc: self.doc, at: self.at + 1, end }
    }

    /// The members of an object, in document order, duplicates included; none for anything else.
    pub fn members(self) -> Members<'d> {
        let end = match self.node() {
            Some(node) if node.kind == ValueKind::Object => node.next as usize,
            _ => 0,
        };
        let nodes = self.doc.nodes.get(..end).unwrap_or_default();
        Members { doc: self.doc, at: self.at + 1, nodes }
    }

    /// The key and the value of the member `key`, the last one if it is there more than once; `None` if there is none.
    pub fn last_key_and_value(self, key: &str) -> Option<(Value<'d>, Value<'d>)> {
        self.members().filter(|(name, _)| name.text_is(key)).last()
    }

    /// The value of the first member `key`; absent if there is none. [`Value::last_key_and_value`] gives the last one.
    pub fn get(self, key: &str) -> Value<'d> {
        let mut members = self.members();
        members.find(|(name, _)| name.text_is(key)).map_or(Value::absent(), |(_, value)| value)
    }

    /// The value of the first member with that name; absent if there is none. [`Value::get`] for constant names, and
    /// faster. Not inlined: a check of a claim finds some two hundred fields, each once, and this code stays in the
    /// processor's cache only if there is one copy of it.
    #[inline(never)]
    pub fn field(self, name: FieldName) -> Value<'d> {
        let mut members = self.members();
        while let Some((at, key)) = members.next_key() {
            if key.name == 0 {
                return self.field_by_text(name);
            }
            if usize::from(key.name) == name.number() {
                return Value { doc: self.doc, at: at + 1 };
            }
        }
        Value::absent()
    }

    /// [`Value::field`] for an object with a key that has no number. A function of its own, so that the usual search
    /// needs no registers for comparing texts.
    #[cold]
    fn field_by_text(self, name: FieldName) -> Value<'d> {
        let mut members = self.members();
        while let Some((at, key)) = members.next_key() {
            if self.doc.key_has_name(at, key, name) {
                return Value { doc: self.doc, at: at + 1 };
            }
        }
        Value::absent()
    }

    /// The values of the members with these names, the last one if a name is there more than once; absent for those
    /// that are not there. One pass over the members, for several fields of one object; fastest if they are in the order
    /// in which API servers write them.
    #[inline]
    pub fn fields_last_duplicate_wins<const N: usize>(self, names: [FieldName; N]) -> [Value<'d>; N] {
        let mut found = [Value::absent(); N];
        let (mut members, mut next) = (self.members(), 0);
        while let Some((at, key)) = members.next_key() {
            let has_name = |name: &FieldName| self.doc.key_has_name(at, key, *name);
            let is_next = names.get(next).is_some_and(has_name);
            let index = if is_next { Some(next) } else { names.iter().position(has_name) };
            if let Some((index, slot)) = index.and_then(|index| Some((index, found.get_mut(index)?))) {
                *slot = Value { doc: self.doc, at: at + 1 };
                next = index + 1;
            }
        }
        found
    }

    /// True if this value is a key and its text is that name.
    #[inline]
    pub fn is_key_named(self, name: FieldName) -> bool {
        self.as_key().has_name(name)
    }

    /// Converts a key to [`ObjectKey`], which can be compared quickly with many names.
    #[inline]
    pub fn as_key(self) -> ObjectKey<'d> {
        ObjectKey { value: self, number: self.node().map_or(0, |node| node.name) }
    }

    /// The number of nodes of this value and of everything in it, keys included; 0 if it is absent.
    pub fn node_count(self) -> usize {
        self.node().map_or(0, |node| (node.next - self.at) as usize)
    }

    /// Iterates over this value and everything in it, including keys, in document order.
    pub fn self_and_descendants(self) -> impl Iterator<Item = Value<'d>> {
        let end = self.node().map_or(self.at, |node| node.next);
        (self.at..end).map(move |at| Value { doc: self.doc, at })
    }

    /// The item with that index, from 0; absent if there is none, or if this is not a list.
    pub fn item(self, index: usize) -> Value<'d> {
        self.items().nth(index).unwrap_or(Value::absent())
    }
}
