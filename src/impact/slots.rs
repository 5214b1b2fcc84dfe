//! Records by number, and numbers by namespace and name: a number is four bytes where a name is sixteen.
//!
//! A number is used again after its record is removed, so nobody may keep one across a change of the snapshot.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use foldhash::fast::RandomState;

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
    by_name: HashMap<Key, Slot, RandomState>,
    free: Vec<Slot>,
}

/// A record and its name; both empty while the number is free.
#[derive(Clone, Debug)]
struct Entry<T> {
    key: Option<Key>,
    value: T,
}

/// Namespace and name, or driver and pool.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Key(Name, Name);

/// A key that need not be owned to be looked for: one hash over both parts, and no copy.
trait Pair {
    fn parts(&self) -> (&str, &str);
}

impl Pair for Key {
    fn parts(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

impl Pair for (&str, &str) {
    fn parts(&self) -> (&str, &str) {
        *self
    }
}

impl<'a> Borrow<dyn Pair + 'a> for Key {
    fn borrow(&self) -> &(dyn Pair + 'a) {
        self
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl Hash for dyn Pair + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl PartialEq for dyn Pair + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Pair + '_ {}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { entries: Vec::new(), by_name: HashMap::default(), free: Vec::new() }
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
        self.entries.get(slot.index())?.key.as_ref().map(|Key(namespace, name)| (namespace, name))
    }

    /// The number of a name.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Slot> {
        self.by_name.get(&(namespace, name) as &dyn Pair).copied()
    }

    /// The number of a name, with an empty record if it is new.
    #[expect(clippy::cast_possible_truncation, reason = "four billion objects are in no cluster")]
    pub(super) fn slot(&mut self, namespace: &Name, name: &str) -> Slot {
        if let Some(slot) = self.find(namespace, name) {
            return slot;
        }
        let key = Key(Name::clone(namespace), name.into());
        let slot = self.free.pop().unwrap_or(Slot(self.entries.len() as u32));
        self.by_name.insert(key.clone(), slot);
        match self.entries.get_mut(slot.index()) {
            Some(entry) => entry.key = Some(key),
            None => self.entries.push(Entry { key: Some(key), value: T::default() }),
        }
        slot
    }

    /// Forgets a record and its name; the number is free.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(entry) = self.entries.get_mut(slot.index()) else { return };
        let Some(key) = entry.key.take() else { return };
        entry.value = T::default();
        self.by_name.remove(&key);
        self.free.push(slot);
    }

    /// Every record in use: namespace, name, number, record.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Name, Slot, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let Key(namespace, name) = entry.key.as_ref()?;
            let slot = Slot(u32::try_from(index).ok()?);
            Some((namespace, name, slot, &entry.value))
        })
    }
}
