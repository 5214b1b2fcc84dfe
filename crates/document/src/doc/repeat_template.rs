//! Repeat copying: what was read before is the template of what is read next. The devices of a slice repeat each
//! other's keys, and whole parts, byte for byte. While the text equals that of its template, nodes are copied instead
//! of parsed: reading a slice of 64 devices takes a third of the time.
//!
//! The template of an item is the item at the same index of the list's own template, or else the item before it; the
//! template of a member is the next member of the object's template. It is a guess: the bytes decide, and a wrong
//! guess only costs time.
//!
//! This module says what is compared with what; [`super::matched_run`] copies. [`Builder::with_repeat_copying`] is
//! the only switch. Invariant: a text and its template are at the same place of the grammar, so the same bytes are
//! the same nodes. `tests` compares reading with and without copying.

use super::matched_run::{RunStartNode, TemplateRunStart};
use super::{Builder, Node, Span, ValueKind};

/// The container that an open container is compared with, and how far the comparison has come.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RepeatTemplate {
    /// The node of the container; [`NO_TEMPLATE`] if there is no template.
    pub(super) of: u32,
    /// The next item, or the key of the next member, of the template.
    pub(super) next: u32,
    /// Index after the last node of the template.
    pub(super) end: u32,
    /// Offset up to which texts may be compared: the end of this template, or of an enclosing one that still
    /// matches.
    reach: u32,
    /// In a list, the node of the previous item.
    before: u32,
}

/// Stands for "no template": the first node of a tape is never one.
pub(super) const NO_TEMPLATE: u32 = 0;

impl<'a> Builder<'a> {
    /// Turns on repeat copying, which is for readers of text.
    pub(super) fn with_repeat_copying(self) -> Builder<'a> {
        Builder { copies_repeats: true, ..self }
    }

    /// The node at that index; `None` past the last one.
    #[inline]
    pub(super) fn node(&self, index: u32) -> Option<&Node> {
        self.doc.nodes.get(index as usize)
    }

    /// The template of the open container if its next part is the node `next`; `None` if there is no template
    /// or it is at another position.
    #[inline]
    pub(super) fn template_if_next_is(&self, next: u32) -> Option<&RepeatTemplate> {
        self.open
            .last()
            .map(|open| &open.template)
            .filter(|template| template.of != NO_TEMPLATE && template.next == next)
    }

    /// Starts a list or an object that may have a template.
    #[inline]
    pub(super) fn open_with_template(&mut self, kind: ValueKind, span: Span, template: u32) {
        let known = if template == NO_TEMPLATE {
            None
        } else {
            self.node(template).filter(|known| known.kind == kind)
        };
        let found = known.map(|known| self.template_from_node(template, known));
        self.open(kind, span);
        if let (Some(found), Some(open)) = (found, self.open.last_mut()) {
            open.template = found;
        }
    }

    /// Creates the template for a container that is opened: it is to be compared with the earlier container `known`,
    /// which is the node `of`.
    #[inline]
    pub(super) fn template_from_node(&self, of: u32, known: &Node) -> RepeatTemplate {
        let reach = self.template_if_next_is(known.next).map_or(known.span.end, |around| around.reach);
        RepeatTemplate { of, next: of + 1, end: known.next, reach, before: NO_TEMPLATE }
    }

    /// Returns the template of the item that is read next, and moves the template of the open list on to the item after
    /// it. [`NO_TEMPLATE`] if there is none.
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub(super) fn advance_item_template(&mut self) -> u32 {
        let at = self.doc.nodes.len() as u32;
        let Some(open) = self.open.last_mut().filter(|_| self.copies_repeats) else { return NO_TEMPLATE };
        let mut template = std::mem::replace(&mut open.template.before, at);
        if open.template.next < open.template.end {
            template = open.template.next;
            open.template.next =
                self.doc.nodes.get(template as usize).map_or(open.template.end, |known| known.next);
        }
        template
    }

    /// The key with which the next key is compared: that of the next member of the earlier object that is the template
    /// of the open object; [`NO_TEMPLATE`] if there is none.
    #[inline]
    pub(super) fn template_of_next_key(&self) -> u32 {
        self.open
            .last()
            .filter(|open| open.template.next < open.template.end)
            .map_or(NO_TEMPLATE, |open| open.template.next)
    }

    /// The key of the member after the one with the key `template`; [`NO_TEMPLATE`] if there is none. Tried where a
    /// member was left out.
    pub(super) fn template_key_after(&self, template: u32) -> u32 {
        let after = self.node(template + 1).map_or(NO_TEMPLATE, |value| value.next);
        if self.open.last().is_some_and(|open| after < open.template.end) { after } else { NO_TEMPLATE }
    }

    /// The start of a run before a value with that template.
    #[inline]
    pub(super) fn run_start_at_value(&self, template: u32) -> Option<TemplateRunStart> {
        let known = self.node(template)?;
        // A byte more than the value: a number might go on.
        let reach = self.template_if_next_is(known.next).map_or(known.span.end + 1, |around| around.reach);
        Some(self.run_start(RunStartNode::Value(template), known.span.start, reach))
    }

    /// The start of a run after a value that differs from its template.
    #[inline]
    pub(super) fn run_start_after_value(&self, template: u32) -> Option<TemplateRunStart> {
        let known = self.node(template)?;
        let around = self.template_if_next_is(known.next)?;
        Some(self.run_start(RunStartNode::AfterValue(known.next), known.span.end, around.reach))
    }

    /// The start of a run before a key with that template, in the open container.
    #[inline]
    pub(super) fn run_start_at_key(&self, template: u32) -> Option<TemplateRunStart> {
        let around = &self.open.last()?.template;
        Some(self.run_start(
            RunStartNode::AfterValue(template),
            self.node(template)?.span.start,
            around.reach,
        ))
    }

    /// A start of a run from the byte `from` on; it ends before the first text that the document stores itself.
    #[inline]
    fn run_start(&self, first: RunStartNode, from: u32, reach: u32) -> TemplateRunStart {
        // A text that is not in the source belongs to one node only: there the templates end.
        let reach =
            if self.doc.owned.is_empty() { reach } else { reach.min(self.first_owned_text_offset(first)) };
        TemplateRunStart { first, from, reach }
    }

    /// Offset after the first byte of the first node, from `first` on, whose text is stored in the document;
    /// `u32::MAX` if there is none.
    fn first_owned_text_offset(&self, first: RunStartNode) -> u32 {
        let (RunStartNode::Value(node) | RunStartNode::AfterValue(node)) = first;
        let owner = self.doc.owned.first_node_with_text_from(node).and_then(|owner| self.node(owner));
        owner.map_or(u32::MAX, |owner| owner.span.start + 1)
    }
}

#[cfg(test)]
mod tests;
