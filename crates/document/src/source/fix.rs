//! Converts a fix, which refers to fields, to edits of the text that the fields were read from.
//!
//! Only the necessary parts are rewritten: comments, layout, quotes, indentation and line endings of the rest stay.
//! Supports YAML in block and flow style, and JSON. An edit that is not safe is declined: a value that an alias
//! shares, a value on several lines with comments inside, a key in an unusual position. The result is not checked
//! here.
//!
//! Invariant: the edits of a fix are in order, do not overlap, and lie inside the document.

mod flow;
mod lines;
mod lists;
mod members;
mod nesting;
mod scalar;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::Range;

use super::documents::Document;
use super::span::{LineIndex, SourceLocation};
use crate::doc::{Doc, Syntax, Value, ValueKind};
use crate::field::FieldPath;
use crate::finding::{Edit, Fix};

/// A fix as edits of a text: for `--fix`, reports and code actions of editors.
/// The edits are sorted and do not overlap.
pub type TextFix = Fix<TextEdit>;

/// An edit of a file's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextEdit {
    /// The replaced range of the file; empty for an insertion.
    pub location: SourceLocation,
    /// The new text.
    pub text: String,
}

/// Returns a text with edits applied, which must be in order and not overlap.
pub fn apply<'e>(text: &str, edits: impl IntoIterator<Item = &'e TextEdit>) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for edit in edits {
        out.push_str(text.get(at..edit.location.bytes.start).unwrap_or_default());
        out.push_str(&edit.text);
        at = edit.location.bytes.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Bytes of the document's own text and what replaces them.
type Replacement = (Range<usize>, String);

/// The fix as edits of the file's text; `None` if it is not sure how to write them.
pub(super) fn text_fix(document: &Document<'_>, lines: &LineIndex<'_>, fix: &Fix) -> Option<TextFix> {
    let editor = ReplacementBuilder { document, lines };
    if document.shared_values().has_odd_breaks {
        return None;
    }
    let mut all: Vec<Replacement> = Vec::new();
    for edit in &fix.edits {
        all.extend(editor.replacements(edit)?);
    }
    all.sort_by_key(|(bytes, _)| (bytes.start, bytes.end));
    let mut end = 0;
    for (bytes, _) in &all {
        if bytes.start < end || bytes.end > editor.source().len() {
            return None;
        }
        end = bytes.end;
    }
    let edits = all.into_iter().map(|(bytes, text)| TextEdit {
        location: lines.locate(document.offset + bytes.start..document.offset + bytes.end),
        text,
    });
    Some(TextFix { title: fix.title.clone(), applicability: fix.applicability, edits: edits.collect() })
}

/// The values that several places of a document share through aliases or merge keys.
#[derive(Debug, Default)]
pub(super) struct AliasSharedValues {
    spans: HashSet<(u32, u32)>,
    /// True if some line ends with a carriage return alone, about which YAML and editors disagree: then nothing is
    /// edited.
    has_odd_breaks: bool,
}

impl AliasSharedValues {
    /// Finds the shared values of a document: aliases are copies that have the span of their anchor.
    pub(super) fn find_in_doc(doc: &Doc<'_>) -> AliasSharedValues {
        let has_odd_breaks = doc.source().split('\r').skip(1).any(|rest| !rest.starts_with('\n'));
        // Without an alias nothing is shared.
        if doc.syntax() == Syntax::Json || !doc.source().contains('*') {
            return AliasSharedValues { has_odd_breaks, ..AliasSharedValues::default() };
        }
        let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
        for value in doc.root().self_and_descendants() {
            let span = value.span();
            // A mapping begins where its first key does, so kinds count too.
            if span.end > span.start && !seen.insert((span.start, span.end, value.kind() as u8)) {
                shared.insert((span.start, span.end));
            }
        }
        AliasSharedValues { spans: shared, has_odd_breaks }
    }
}

/// Turns edits of fields into replacements of bytes, for one document.
struct ReplacementBuilder<'d> {
    document: &'d Document<'d>,
    /// The lines of the whole file, for converting offsets to positions.
    lines: &'d LineIndex<'d>,
}

/// A value that a path leads to, with its key and its container.
#[derive(Clone, Copy)]
struct EditTarget<'d> {
    /// The object or list it is in; absent for the document itself.
    parent: Value<'d>,
    /// The key, if the value is a member of an object.
    key: Option<Value<'d>>,
    value: Value<'d>,
}

impl<'d> ReplacementBuilder<'d> {
    /// An edit as replacements of bytes; `None` if it is not sure how to write it.
    fn replacements(&self, edit: &Edit) -> Option<Vec<Replacement>> {
        match edit {
            Edit::Set { at, value } => self.set_scalar(self.unshared_edit_target(at)?, value),
            Edit::Rename { at, to } => self.rename_key(self.unshared_edit_target(at)?, to),
            Edit::Remove { at } => self.remove_item_or_member(self.unshared_edit_target(at)?),
            Edit::Insert { into, key, value } => self.insert(self.unshared_edit_target(into)?, key, value),
            Edit::Nest { into, key, members } => self.nest(self.unshared_edit_target(into)?, key, members),
            Edit::Unnest { at } => self.unwrap_object_into_parent(self.unshared_edit_target(at)?),
            Edit::Move { at, into } => {
                self.move_member(self.unshared_edit_target(at)?, self.unshared_edit_target(into)?)
            }
            Edit::WrapInObject { at, key } => self.wrap_in_object(self.unshared_edit_target(at)?, key),
            Edit::WrapInList { at } => self.wrap_in_list(self.unshared_edit_target(at)?),
            Edit::UnwrapList { at } => self.unwrap_single_item_list(self.unshared_edit_target(at)?),
        }
    }

    /// The location that a path leads to; `None` if the field does not exist, or a value on the path is
    /// shared.
    fn unshared_edit_target(&self, path: &FieldPath) -> Option<EditTarget<'d>> {
        let mut target = EditTarget { parent: Value::absent(), key: None, value: self.document.doc.root() };
        for step in path.user_steps() {
            let parent = target.value;
            let (key, value) = self.document.locator.follow(parent, step)?;
            let is_own = |value: Value<'_>| {
                let (inner, outer) = (value.span(), parent.span());
                !self.is_shared_by_aliases(value) && (inner.end <= inner.start || outer.start <= inner.start)
            };
            if !is_own(value) || key.is_some_and(|key| !is_own(key)) {
                return None;
            }
            target = EditTarget { parent, key, value };
        }
        Some(target)
    }

    /// True if several places share the value.
    fn is_shared_by_aliases(&self, value: Value<'_>) -> bool {
        let span = value.span();
        self.document.shared_values().spans.contains(&(span.start, span.end))
    }

    /// The text of the document.
    fn source(&self) -> &'d str {
        self.document.doc.source()
    }

    /// The bytes of a value in the text of the document.
    fn bytes(value: Value<'_>) -> Range<usize> {
        value.span().start as usize..value.span().end as usize
    }

    /// The document's text at these bytes; empty if they are outside of it.
    fn text(&self, bytes: Range<usize>) -> &'d str {
        self.source().get(bytes).unwrap_or_default()
    }

    /// A value as it is written in the document, quotes and brackets included.
    fn source_text(&self, value: Value<'_>) -> &'d str {
        self.text(Self::bytes(value))
    }

    /// The bytes of a value with its tag and anchor, if they are on the same line: `!!str a` and not `a`.
    fn bytes_with_tag_and_anchor(&self, value: Value<'_>) -> Range<usize> {
        let mut bytes = Self::bytes(value);
        while !bytes.is_empty() {
            let before = self.text(0..bytes.start).trim_end_matches(' ');
            let start = before.rfind([' ', '\n', '[', '{']).map_or(0, |at| at + 1);
            if !before.get(start..).unwrap_or_default().starts_with(['!', '&']) {
                break;
            }
            bytes.start = start;
        }
        bytes
    }

    /// True for `{…}` and `[…]`, of JSON too.
    fn is_flow(&self, container: Value<'_>) -> bool {
        match container.kind() {
            ValueKind::Object => self.source_text(container).starts_with('{'),
            ValueKind::Array => self.source_text(container).starts_with('['),
            _ => false,
        }
    }

    /// The end offset of a member: of its value, or of `key:` if no value is written. `None` if the value is
    /// shared.
    fn unshared_member_end(&self, key: Value<'d>, value: Value<'d>) -> Option<usize> {
        let bytes = Self::bytes(value);
        if self.is_shared_by_aliases(value) {
            return None;
        }
        if !bytes.is_empty() {
            return (bytes.start >= Self::bytes(key).end).then_some(bytes.end);
        }
        let after = self.source().get(Self::bytes(key).end..)?;
        let colon = after.len() - after.trim_start_matches([' ', '\t']).len();
        after.get(colon..)?.starts_with(':').then(|| Self::bytes(key).end + colon + 1)
    }
}
