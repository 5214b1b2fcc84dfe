//! Names that occur again and again, kept once: drivers, pools, devices, namespaces, keys, labels.
//!
//! A cluster makes new pod names all day, so what nobody uses any more is thrown out whenever the store has doubled:
//! memory follows the cluster, not its history.

use std::collections::HashSet;
use std::sync::Arc;

/// A text that many records share.
pub(super) type Name = Arc<str>;

/// The store of names. A copy of a snapshot starts with an empty one: two stores would keep each other's names alive.
#[derive(Debug)]
pub(super) struct Names {
    known: HashSet<Name>,
    /// Names at which the store is swept.
    full: usize,
    /// The names that are asked for most: found without a hash.
    words: [Name; 6],
}

impl Default for Names {
    fn default() -> Names {
        let words = ["", "Exists", "NoExecute", "Equal", "NoSchedule", "None"].map(Name::from);
        Names { known: HashSet::new(), full: 0, words }
    }
}

impl Clone for Names {
    fn clone(&self) -> Names {
        Names::default()
    }
}

/// No sweep below this many names.
const SMALL: usize = 4_096;

impl Names {
    /// The shared name of that text.
    pub(super) fn name(&mut self, text: &str) -> Name {
        if let Some(word) = self.words.iter().find(|word| ***word == *text) {
            return Name::clone(word);
        }
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
        self.known.retain(|name| Arc::strong_count(name) > 1);
        self.full = self.known.len() * 2;
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }
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
