//! One node of a tape: what it is, where it came from, where its text lies.
//!
//! Sixteen bytes: a slice has twenty thousand nodes, and each of them is read several times.

use super::{Span, ValueKind};

/// Where a node's text lies, in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Text {
    /// The bytes of the span.
    Span,
    /// The bytes between the quotes at both ends of the span.
    Inside,
    /// In the document's own store (escapes, YAML folding).
    Owned,
    /// A text that readers make up.
    Word(Word),
}

/// Texts that readers make up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Nothing,
    Null,
    True,
    False,
}

impl Word {
    pub(super) fn text(self) -> &'static str {
        match self {
            Word::Nothing => "",
            Word::Null => "null",
            Word::True => "true",
            Word::False => "false",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    /// One past the last descendant.
    pub(super) next: u32,
    pub(super) kind: ValueKind,
    pub(super) text: Text,
    /// The number of the [`Name`] that a key is, if it was recognised.
    pub(super) name: u8,
    pub(super) marks: Marks,
}

/// What is known of a node besides what it is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Marks(u8);

impl Marks {
    /// Written as its [template](super::repeat_template), with all in it.
    pub(super) const COPIED: Marks = Marks(1);

    #[inline]
    pub(super) fn add(&mut self, mark: Marks) {
        self.0 |= mark.0;
    }

    pub(super) fn remove(&mut self, mark: Marks) {
        self.0 &= !mark.0;
    }

    #[inline]
    pub(super) fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }
}

const _: () = assert!(size_of::<Node>() == 16, "a node grew");
