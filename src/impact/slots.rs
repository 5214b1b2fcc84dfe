//! Records by number, and numbers by namespace and name: a number is four bytes where a name is sixteen.
//!
//! A number is used again after its record is removed, so nobody may keep one across a change of the snapshot.

use std::collections::HashMap;

use super::names::Name;

/// The number of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Slot(u32);

impl Slot {
    /// For tables beside the records.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Records by number and by name.
#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    entries: Vec<Entry<T>>,
    by_name: HashMap<Name, HashMap<Name, Slot>>,
    free: Vec<Slot>,
}

/// A record and its name; both empty while the number is free.
#[derive(Clone, Debug)]
struct Entry<T> {
    key: Option<(Name, Name)>,
    value: T,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { entries: Vec::new(), by_name: HashMap::new(), free: Vec::new() }
    }
}

impl<T: Default> Slots<T> {
    /// One past the largest number.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The record of a number.
    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        self.entries.get(slot.index()).map(|entry| &entry.value)
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.entries.get_mut(slot.index()).map(|entry| &mut entry.value)
    }

    /// Namespace and name of a number in use.
    pub(super) fn key(&self, slot: Slot) -> Option<(&Name, &Name)> {
        self.entries.get(slot.index())?.key.as_ref().map(|(namespace, name)| (namespace, name))
    }

    /// The number of a name.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Slot> {
        self.by_name.get(namespace)?.get(name).copied()
    }

    /// The number of a name, with an empty record if it is new.
    #[expect(clippy::cast_possible_truncation, reason = "four billion objects are in no cluster")]
    pub(super) fn slot(&mut self, namespace: &Name, name: &Name) -> Slot {
        if let Some(slot) = self.find(namespace, name) {
            return slot;
        }
        let key = Some((Name::clone(namespace), Name::clone(name)));
        let slot = self.free.pop().unwrap_or(Slot(self.entries.len() as u32));
        match self.entries.get_mut(slot.index()) {
            Some(entry) => entry.key = key,
            None => self.entries.push(Entry { key, value: T::default() }),
        }
        let names = self.by_name.entry(Name::clone(namespace)).or_default();
        names.insert(Name::clone(name), slot);
        slot
    }

    /// Forgets a name; its number is free.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let Some(names) = self.by_name.get_mut(namespace) else { return };
        let Some(slot) = names.remove(name) else { return };
        if names.is_empty() {
            self.by_name.remove(namespace);
        }
        if let Some(entry) = self.entries.get_mut(slot.index()) {
            *entry = Entry { key: None, value: T::default() };
            self.free.push(slot);
        }
    }

    /// Every record in use: namespace, name, number, record.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Name, Slot, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let (namespace, name) = entry.key.as_ref()?;
            let slot = Slot(u32::try_from(index).ok()?);
            Some((namespace, name, slot, &entry.value))
        })
    }
}
