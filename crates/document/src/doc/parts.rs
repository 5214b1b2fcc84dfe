//! The items and members of containers, in document order, including duplicates.
//!
//! Invariant: a step reads one node of the tape, independent of the size of the values that are skipped.

use super::{Doc, Name, NameSet, Value};

/// A key of an object.
#[derive(Clone, Copy, Debug)]
pub struct Key<'d> {
    value: Value<'d>,
    /// The number of its [`Name`]; 0 if it was not recognised.
    number: u8,
}

impl<'d> Key<'d> {
    #[inline]
    pub(super) fn new(value: Value<'d>, number: u8) -> Key<'d> {
        Key { value, number }
    }

    /// The number of its [`Name`]; `None` if it was not recognised, in which case its text decides.
    #[inline]
    pub fn number(self) -> Option<usize> {
        (self.number != 0).then_some(usize::from(self.number))
    }

    /// True if it has that name.
    #[inline]
    pub fn is(self, name: Name) -> bool {
        if self.number == 0 { self.value.text_is(name.text) } else { self.number == name.number }
    }
}

/// The positions of certain members in an object, as found by [`Value::find_fields`].
#[derive(Clone, Copy, Debug)]
pub struct FieldSlots<const N: usize> {
    found: [u32; N],
    /// True if the object has members with other names.
    pub others: bool,
}

impl<'d> Value<'d> {
    /// Finds the members with these names in one pass, for [`Value::field_at`]. For duplicate keys, finds the
    /// first.
    #[expect(clippy::inline_always, reason = "the names are constants where they are asked for")]
    #[inline(always)]
    pub fn find_fields<const N: usize>(self, names: [Name; N]) -> FieldSlots<N> {
        let mut slots = FieldSlots { found: [u32::MAX; N], others: false };
        for (key, value) in self.members() {
            let number = key.as_key().number;
            if number == 0 {
                return self.find_fields_by_text(names);
            }
            // No branches: a few comparisons are done faster than one guess is wrong.
            let mut is_other = true;
            for (slot, name) in slots.found.iter_mut().zip(names) {
                let is_it = number == name.number;
                *slot = if is_it { value.at.min(*slot) } else { *slot };
                is_other &= !is_it;
            }
            slots.others |= is_other;
        }
        slots
    }

    /// Like [`Value::find_fields`], but compares texts, because a key without a number can still have one of
    /// these names.
    #[cold]
    #[inline(never)]
    fn find_fields_by_text<const N: usize>(self, names: [Name; N]) -> FieldSlots<N> {
        let is_other = |key: Value<'_>| !names.iter().any(|name| key.is_named(*name));
        FieldSlots {
            found: names
                .map(|name| self.get(name.text))
                .map(|value| if value.exists() { value.at } else { u32::MAX }),
            others: self.members().any(|(key, _)| is_other(key)),
        }
    }

    /// False if no member has one of these names. True can be wrong, because keys without a number are not
    /// compared.
    #[inline]
    pub fn may_have(self, names: &NameSet) -> bool {
        self.members().any(|(key, _)| names.may_contain(key.as_key().number))
    }

    /// The value of the member whose name has that index in the list given to [`Value::find_fields`]; absent if there
    /// is none.
    #[inline]
    pub fn field_at<const N: usize>(self, slots: FieldSlots<N>, index: usize) -> Value<'d> {
        match slots.found.get(index) {
            Some(&at) if at != u32::MAX => Value { doc: self.doc, at },
            _ => Value::absent(),
        }
    }
}

/// Iterator over the items of a list.
#[derive(Clone)]
pub struct Items<'d> {
    doc: &'d Doc<'d>,
    at: u32,
    end: u32,
}

impl<'d> Items<'d> {
    #[inline]
    pub(super) fn new(doc: &'d Doc<'d>, at: u32, end: u32) -> Items<'d> {
        Items { doc, at, end }
    }
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
    doc: &'d Doc<'d>,
    at: u32,
    end: u32,
}

impl<'d> Members<'d> {
    #[inline]
    pub(super) fn new(doc: &'d Doc<'d>, at: u32, end: u32) -> Members<'d> {
        Members { doc, at, end }
    }
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
