//! Names that occur again and again, kept once: drivers, pools, devices, namespaces, keys; and lists that do: the
//! tolerations of claims that one template made, the labels of pods of one controller.
//!
//! A cluster makes new pod names all day, so what nobody uses any more is thrown out whenever the store has doubled:
//! memory follows the cluster, not its history, but for a few thousand small lists.

use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::record::Toleration;

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
    /// Room for names that are put together.
    scratch: String,
    pub(super) tolerations: Lists<Toleration>,
    pub(super) labels: Lists<(Name, Name)>,
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

    /// The shared name of texts one after another.
    pub(super) fn joined(&mut self, texts: [&str; 3]) -> Name {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend(texts);
        let name = self.name(&scratch);
        self.scratch = scratch;
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
        (self.tolerations, self.labels) = (Lists::default(), Lists::default());
        self.known.retain(|name| Arc::strong_count(name) > 1);
        self.full = self.known.len() * 2;
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }
}

/// Lists that were made lately, by the bytes they were made from, each in the one place it may be in.
#[derive(Debug)]
pub(super) struct Lists<T>(Vec<Option<Made<T>>>);

/// A list and the bytes it was made from.
type Made<T> = (Box<[u8]>, Arc<[T]>);

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists(Vec::new())
    }
}

/// Places of recent lists.
const LISTS: usize = 2_048;

/// What is longer, or has more items, is no usual list: nobody's lists fill the memory.
const LONGEST: usize = 1_024;
const MOST: usize = 32;

impl<T> Lists<T> {
    /// The list that was made from those bytes.
    pub(super) fn made_from(&self, written: &[u8]) -> Option<Arc<[T]>> {
        let (bytes, list) = self.0.get(list_place(written))?.as_ref()?;
        (**bytes == *written).then(|| Arc::clone(list))
    }

    /// Keeps a list for those bytes, if they are all it was made from: nothing is known of a list without bytes.
    pub(super) fn keep(&mut self, written: &[u8], list: &Arc<[T]>) {
        if written.is_empty() || written.len() > LONGEST || list.len() > MOST {
            return;
        }
        self.0.resize_with(LISTS, || None);
        if let Some(place) = self.0.get_mut(list_place(written)) {
            *place = Some((written.into(), Arc::clone(list)));
        }
    }
}

fn list_place(written: &[u8]) -> usize {
    let hash = foldhash::fast::FixedState::default().hash_one(written);
    (hash >> 32) as usize % LISTS
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

    #[test]
    fn lists_are_shared_by_their_bytes() {
        let mut lists = super::Lists::default();
        let made = std::sync::Arc::from([1, 2]);
        lists.keep(b"[1,2]", &made);
        lists.keep(b"", &made);
        assert!(lists.made_from(b"[1,2]").is_some_and(|list| std::sync::Arc::ptr_eq(&list, &made)));
        assert!(lists.made_from(b"[1,3]").is_none() && lists.made_from(b"").is_none());
        lists.keep(&[b'x'; super::LONGEST + 1], &made);
        assert!(lists.made_from(&[b'x'; super::LONGEST + 1]).is_none(), "too long to be kept");
        lists.keep(b"many", &std::sync::Arc::from([0; super::MOST + 1]));
        assert!(lists.made_from(b"many").is_none(), "too many to be kept");
    }
}
