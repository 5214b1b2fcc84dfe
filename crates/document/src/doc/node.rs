//! One node of a tape: what it is, where it came from, where its text lies.
//!
//! A node has only 16 bytes, because a large ResourceSlice has 20,000 nodes and each of them is read several times.

use super::{Span, ValueKind};

/// Where the text of a node is: in the source, in the document, or a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextSource {
    /// The text is all bytes of the span.
    Span,
    /// The text is the span without the quotes at both ends.
    Inside,
    /// The text is in the document's own buffer, because it differs from the source (escapes, YAML folding).
    Owned,
    /// The text is a constant that a reader inserts.
    ConstantText(ConstantText),
}

/// Texts that readers insert, such as `null`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConstantText {
    Nothing,
    Null,
    True,
    False,
}

impl ConstantText {
    /// The word as it is written in JSON.
    pub(super) fn text(self) -> &'static str {
        match self {
            ConstantText::Nothing => "",
            ConstantText::Null => "null",
            ConstantText::True => "true",
            ConstantText::False => "false",
        }
    }
}

/// A node of the tape: a value or a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    /// The index of the node after this one and everything in it.
    pub(super) next: u32,
    pub(super) kind: ValueKind,
    pub(super) text: TextSource,
    /// Number of the key's `FieldName`; 0 for values and for keys without a number.
    pub(super) name: u8,
}

const _: () = assert!(size_of::<Node>() == 16, "a node grew");
