//! The items and members of containers, in document order, including duplicates.
//!
//! Invariant: a step reads one node of the tape, independent of the size of the values that are skipped.

use super::{Doc, FieldName, Value};

/// A key of an object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectKey<'d> {
    pub(super) value: Value<'d>,
    /// The number of the key's [`FieldName`]; 0 if the key is not in the table of known names.
    pub(super) number: u8,
}

impl ObjectKey<'_> {
    /// The number of the key's [`FieldName`]; `None` if the key is not in the table of known names, so that its text
    /// must be compared.
    #[inline]
    pub fn number(self) -> Option<usize> {
        (self.number != 0).then_some(usize::from(self.number))
    }

    /// True if the key has that name.
    #[inline]
    pub fn has_name(self, name: FieldName) -> bool {
        if self.number == 0 { self.value.text_is(name.text) } else { self.number == name.number }
    }
}

/// Iterator over the items of a list.
#[derive(Clone)]
pub struct Items<'d> {
    pub(super) doc: &'d Doc<'d>,
    pub(super) at: u32,
    pub(super) end: u32,
}

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        if self.at >= self.end {
            return None;
        }
        let item = Value { doc: self.doc, at: self.at };
        self.at = item.node().map_or(self.end, |node| node.next);
        Some(item)
    }
}

/// Iterator over the members of an object.
#[derive(Clone)]
pub struct Members<'d> {
    pub(super) doc: &'d Doc<'d>,
    pub(super) at: u32,
    pub(super) end: u32,
}

impl<'d> Iterator for Members<'d> {
    type Item = (Value<'d>, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<(Value<'d>, Value<'d>)> {
        let at = self.at;
        if at >= self.end {
            return None;
        }
        // A key is one node, its value the next.
        let [_, value] = self.doc.nodes.get(at as usize..at as usize + 2)? else { return None };
        self.at = value.next;
        Some((Value { doc: self.doc, at }, Value { doc: self.doc, at: at + 1 }))
    }
}
