//! Repeat copying: what was read before is the template of what is read next. The devices of a slice repeat each other's
//! keys, and whole parts, byte for byte. While the text equals that of its template, nodes are copied instead of parsed:
//! reading a slice of 64 devices takes a third of the time.
//!
//! The template of an item is the item at the same index of the list's own template, or else the item before it; the
//! template of a member is the next member of the object's template. It is a guess: the bytes decide, and a wrong guess
//! only costs time.
//!
//! This module says what is compared with what; [`super::matched_run`] copies. [`Builder::with_repeat_copying`] is the
//! only switch. Invariant: a text and its template are at the same place of the grammar, so the same bytes are the same
//! nodes. `differential` compares reading with and without copying.

use super::matched_run::{RunStart, StartNode};
use super::{Builder, Node, Span, ValueKind};

/// The part of the tape that an open container is compared with.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RepeatTemplate {
    /// The container.
    pub(super) of: u32,
    /// What comes in it after the template of what is read now: an item, or the key of a member.
    pub(super) next: u32,
    /// One past the last of them.
    pub(super) end: u32,
    /// Up to this byte the text goes on in step with the one that is read: the end of this container, or of one around it.
    reach: u32,
    /// In a list, the item that was read last.
    before: u32,
}

/// No template: the first node of a tape is never one.
pub(super) const NONE: u32 = 0;

impl<'a> Builder<'a> {
    /// What is written becomes the template of what comes next: for readers of text.
    pub(super) fn with_repeat_copying(self) -> Builder<'a> {
        Builder { copies_repeats: true, ..self }
    }

    #[inline]
    pub(super) fn node(&self, index: u32) -> Option<&Node> {
        self.doc.nodes.get(index as usize)
    }

    /// The template of the open container, if it goes on with that node: then both are in step.
    #[inline]
    pub(super) fn template_at(&self, next: u32) -> Option<&RepeatTemplate> {
        self.open
            .last()
            .map(|open| &open.template)
            .filter(|template| template.of != NONE && template.next == next)
    }

    /// Starts a list or an object that may have a template.
    #[inline]
    pub(super) fn open_with_template(&mut self, kind: ValueKind, span: Span, template: u32) {
        let known =
            if template == NONE { None } else { self.node(template).filter(|known| known.kind == kind) };
        let found = known.map(|known| self.template_for(template, known));
        self.open(kind, span);
        if let (Some(found), Some(open)) = (found, self.open.last_mut()) {
            open.template = found;
        }
    }

    /// The template of a container that is opened.
    #[inline]
    pub(super) fn template_for(&self, of: u32, known: &Node) -> RepeatTemplate {
        let reach = self.template_at(known.next).map_or(known.span.end, |around| around.reach);
        RepeatTemplate { of, next: of + 1, end: known.next, reach, before: NONE }
    }

    /// The template of the item that is read next.
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub(super) fn item_template(&mut self) -> u32 {
        let at = self.doc.nodes.len() as u32;
        let Some(open) = self.open.last_mut().filter(|_| self.copies_repeats) else { return NONE };
        let mut template = std::mem::replace(&mut open.template.before, at);
        if open.template.next < open.template.end {
            template = open.template.next;
            open.template.next =
                self.doc.nodes.get(template as usize).map_or(open.template.end, |known| known.next);
        }
        template
    }

    /// The key of the template's next member.
    #[inline]
    pub(super) fn key_template(&self) -> u32 {
        self.open
            .last()
            .filter(|open| open.template.next < open.template.end)
            .map_or(NONE, |open| open.template.next)
    }

    /// The key after that of the template: a member may have been left out.
    pub(super) fn key_after(&self, template: u32) -> u32 {
        let after = self.node(template + 1).map_or(NONE, |value| value.next);
        if self.open.last().is_some_and(|open| after < open.template.end) { after } else { NONE }
    }

    /// Before a value that has that template.
    #[inline]
    pub(super) fn before_value(&self, template: u32) -> Option<RunStart> {
        let known = self.node(template)?;
        // A byte more than the value: a number might go on.
        let reach = self.template_at(known.next).map_or(known.span.end + 1, |around| around.reach);
        Some(self.run_start(StartNode::Value(template), known.span.start, reach))
    }

    /// After a value that has that template and is not written as it.
    #[inline]
    pub(super) fn after_value(&self, template: u32) -> Option<RunStart> {
        let known = self.node(template)?;
        let around = self.template_at(known.next)?;
        Some(self.run_start(StartNode::AfterValue(known.next), known.span.end, around.reach))
    }

    /// Before a key that has that template, in the open container.
    #[inline]
    pub(super) fn before_key(&self, template: u32) -> Option<RunStart> {
        let around = &self.open.last()?.template;
        Some(self.run_start(StartNode::AfterValue(template), self.node(template)?.span.start, around.reach))
    }

    #[inline]
    fn run_start(&self, first: StartNode, from: u32, reach: u32) -> RunStart {
        // A text that is not in the source belongs to one node only: there the templates end.
        let reach = if self.doc.owned.is_empty() { reach } else { reach.min(self.first_owned(first)) };
        RunStart { first, from, reach }
    }

    /// One past the first byte of the first such text.
    fn first_owned(&self, first: StartNode) -> u32 {
        let (StartNode::Value(node) | StartNode::AfterValue(node)) = first;
        let owner = self.doc.owned.first_from(node).and_then(|owner| self.node(owner));
        owner.map_or(u32::MAX, |owner| owner.span.start + 1)
    }
}

#[cfg(test)]
mod differential;
