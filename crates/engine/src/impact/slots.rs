//! A slot map with names: records by slot, slots by namespace and name. A slot takes 4 bytes, a name 16.
//!
//! Slots are reused after a record is removed, so none may be kept across a change of the snapshot.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::interner::InternedStr;

/// The index of a record in a [`SlotMap`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Slot(u32);

impl Slot {
    /// A slot that refers to no record.
    pub(super) const NONE: Slot = Slot(u32::MAX);

    /// Returns the slot as an index, for arrays parallel to the records.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Stores records in slots, which are found by namespace and name and reused after a removal.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotMap<T> {
    entries: Vec<SlotEntry<T>>,
    by_name: HashMap<InternedStr, HashMap<InternedStr, Slot, RandomState>, RandomState>,
    free: Vec<Slot>,
}

/// A record and its name; both empty while the slot is free.
#[derive(Clone, Debug)]
struct SlotEntry<T> {
    key: Option<(InternedStr, InternedStr)>,
    value: T,
}

impl<T: Default> SlotMap<T> {
    /// Returns one more than the largest slot, free slots included.
    pub(super) fn slot_count_including_free(&self) -> usize {
        self.entries.len()
    }

    /// Returns the record in a slot; the default record if the slot is free.
    pub(super) fn get_even_if_free(&self, slot: Slot) -> Option<&T> {
        self.entries.get(slot.index()).map(|entry| &entry.value)
    }

    pub(super) fn get_mut_even_if_free(&mut self, slot: Slot) -> Option<&mut T> {
        self.entries.get_mut(slot.index()).map(|entry| &mut entry.value)
    }

    /// Returns namespace and name of the record in a slot; `None` if the slot is free.
    pub(super) fn key(&self, slot: Slot) -> Option<(&InternedStr, &InternedStr)> {
        self.entries.get(slot.index())?.key.as_ref().map(|(namespace, name)| (namespace, name))
    }

    /// Returns the slot of a namespace and name; `None` if there is none.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Slot> {
        self.by_name.get(namespace)?.get(name).copied()
    }

    /// Returns the slot of a namespace and name; if there is none, a new one with an empty record.
    #[expect(clippy::cast_possible_truncation, reason = "four billion objects are in no cluster")]
    pub(super) fn find_or_insert(&mut self, namespace: &InternedStr, name: &str) -> Slot {
        if let Some(slot) = self.find(namespace, name) {
            return slot;
        }
        let (namespace, name) = (InternedStr::clone(namespace), InternedStr::from(name));
        let slot = self.free.pop().unwrap_or(Slot(self.entries.len() as u32));
        let names = self.by_name.entry(InternedStr::clone(&namespace)).or_default();
        names.insert(InternedStr::clone(&name), slot);
        let key = Some((namespace, name));
        match self.entries.get_mut(slot.index()) {
            Some(entry) => entry.key = key,
            None => self.entries.push(SlotEntry { key, value: T::default() }),
        }
        slot
    }

    /// Removes a record and its name, so that the slot is free. Does nothing if it is free already.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(entry) = self.entries.get_mut(slot.index()) else { return };
        let Some((namespace, name)) = entry.key.take() else { return };
        entry.value = T::default();
        if let Some(names) = self.by_name.get_mut(&namespace) {
            names.remove(&name);
            if names.is_empty() {
                self.by_name.remove(&namespace);
            }
        }
        self.free.push(slot);
    }

    /// Returns every record in use: namespace, name, slot, record.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&InternedStr, &InternedStr, Slot, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let (namespace, name) = entry.key.as_ref()?;
            let slot = Slot(u32::try_from(index).ok()?);
            Some((namespace, name, slot, &entry.value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{InternedStr, SlotMap};

    #[test]
    fn a_slot_is_found_by_name_and_reused_after_its_record_is_removed() {
        let mut map: SlotMap<u32> = SlotMap::default();
        let namespace = InternedStr::from("a");
        let first = map.find_or_insert(&namespace, "x");
        *map.get_mut_even_if_free(first).unwrap() = 1;
        assert_eq!(map.find_or_insert(&namespace, "x"), first);
        assert_eq!((map.find("a", "x"), map.find("b", "x"), map.find("a", "y")), (Some(first), None, None));
        map.remove(first);
        map.remove(first);
        assert_eq!((map.find("a", "x"), map.key(first), map.iter().count()), (None, None, 0));
        let again = map.find_or_insert(&namespace, "y");
        assert_eq!(
            (again, map.get_even_if_free(again), map.slot_count_including_free()),
            (first, Some(&0), 1)
        );
        assert_ne!(map.find_or_insert(&namespace, "z"), again, "a slot is free once");
    }
}
