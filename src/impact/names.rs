//! Names that occur again and again, kept once: drivers, pools, devices, namespaces, keys, labels.
//!
//! A cluster makes new pod names all day, so what nobody uses any more is thrown out whenever the store has doubled:
//! memory follows the cluster, not its history.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;

/// A text that many records share.
pub(super) type Name = Arc<str>;

/// The store of names. A copy of a snapshot starts with an empty one: two stores would keep each other's names alive.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashSet<Name, RandomState>,
    /// Names at which the store is swept.
    full: usize,
    /// Names asked for lately, each in the one place it may be in: effects, drivers and keys come again and again, and
    /// are found here without a hash.
    recent: Vec<Name>,
}

impl Clone for Names {
    fn clone(&self) -> Names {
        Names::default()
    }
}

/// No sweep below this many names.
const SMALL: usize = 4_096;

/// Places of recent names; a power of two.
const RECENT: usize = 256;

impl Names {
    /// The shared name of that text.
    pub(super) fn name(&mut self, text: &str) -> Name {
        if self.recent.is_empty() {
            self.recent.resize(RECENT, Name::from(""));
        }
        let place = place(text);
        match self.recent.get(place) {
            Some(name) if **name == *text => return Name::clone(name),
            _ => {}
        }
        let name = self.look_up(text);
        if let Some(recent) = self.recent.get_mut(place) {
            *recent = Name::clone(&name);
        }
        name
    }

    fn look_up(&mut self, text: &str) -> Name {
        if let Some(name) = self.known.get(text) {
            return Name::clone(name);
        }
        if self.known.len() >= self.full.max(SMALL) {
            self.sweep();
        }
        let name = Name::from(text);
        self.known.insert(Name::clone(&name));
        name
    }

    /// Throws out what only the store itself holds.
    fn sweep(&mut self) {
        self.recent.clear();
        self.known.retain(|name| Arc::strong_count(name) > 1);
        self.full = self.known.len() * 2;
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }
}

/// The place of a name among the recent ones: by its length and its last letters, in which names differ most.
fn place(text: &str) -> usize {
    let tail = match text.as_bytes().last_chunk::<8>() {
        Some(tail) => u64::from_le_bytes(*tail),
        None => text.bytes().fold(0, |tail, byte| tail << 8 | u64::from(byte)),
    };
    let mixed = (tail ^ text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % RECENT
}

#[cfg(test)]
mod tests {
    use super::{Names, SMALL};

    #[test]
    fn names_are_shared_and_forgotten() {
        let mut names = Names::default();
        let kept = names.name("kept");
        assert!(std::sync::Arc::ptr_eq(&kept, &names.name("kept")));
        for number in 0..SMALL * 4 {
            drop(names.name(&format!("pod-{number}")));
        }
        assert!(names.len() <= SMALL + 1, "{}", names.len());
        assert!(std::sync::Arc::ptr_eq(&kept, &names.name("kept")), "a name in use is not forgotten");
    }
}
