//! What containers are made of: items one after another, members with their keys.
//!
//! In document order, duplicates and all. Invariant: a step is one look at the tape, however large what is passed over.

use super::{Doc, Name, Value};

/// A key of an object.
#[derive(Clone, Copy, Debug)]
pub struct Key<'d> {
    value: Value<'d>,
    /// That of its name, if it was recognised: then it has no other.
    number: u8,
}

impl<'d> Key<'d> {
    #[inline]
    pub(super) fn new(value: Value<'d>, number: u8) -> Key<'d> {
        Key { value, number }
    }

    /// That of its [`Name`], if it was recognised, which is then the only one it has.
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

/// Names of members that are looked for together: `N - 1` of them, and all others.
#[derive(Debug)]
pub struct Wanted<const N: usize> {
    names: [Name; N],
    /// The index of each name, by its number.
    indexes: [u8; Name::NUMBERS],
}

impl<const N: usize> Wanted<N> {
    /// Those names; what is last stands for all others, whatever it is.
    ///
    /// # Panics
    /// If one has no number: for tables that are made while compiling.
    #[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "while compiling")]
    pub const fn of(names: [Name; N]) -> Wanted<N> {
        let mut indexes = [N as u8 - 1; Name::NUMBERS];
        let mut index = 0;
        while index + 1 < N {
            assert!(names[index].number != 0, "a name without a number");
            indexes[names[index].number as usize] = index as u8;
            index += 1;
        }
        Wanted { names, indexes }
    }

    #[cold]
    fn search(&self, key: Value<'_>) -> usize {
        self.names.iter().take(N - 1).position(|name| key.text_is(name.text)).unwrap_or(N - 1)
    }
}

/// Where members of an object are.
#[derive(Clone, Copy, Debug)]
pub struct Places<const N: usize>([u32; N]);

impl<'d> Value<'d> {
    /// Where the members of those names are, in one pass; of those that are there twice, the first.
    #[inline]
    pub fn places<const N: usize>(self, wanted: &'static Wanted<N>) -> Places<N> {
        let mut places = [u32::MAX; N];
        for (key, value) in self.members() {
            let number = key.as_key().number;
            let index = match wanted.indexes.get(usize::from(number)) {
                Some(index) if number != 0 => usize::from(*index),
                _ => wanted.search(key),
            };
            if let Some(place) = places.get_mut(index) {
                *place = value.at.min(*place);
            }
        }
        Places(places)
    }

    /// The member of the name at that index of what was wanted; at the last, one of another name.
    #[inline]
    pub fn placed<const N: usize>(self, places: Places<N>, index: usize) -> Value<'d> {
        Value { doc: self.doc, at: places.0.get(index).copied().unwrap_or(u32::MAX) }
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
