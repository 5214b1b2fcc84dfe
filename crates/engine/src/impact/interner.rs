//! Interned strings: drivers, pools, devices, namespaces, keys and values repeat.
//!
//! Clusters create new pod names all day, so unused strings are dropped whenever the interner has doubled: memory
//! follows the current state of the cluster.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::cost::STRING_OVERHEAD_BYTES;

/// A string that several records share.
pub(super) type InternedStr = Arc<str>;

/// Interns strings. A clone is empty: two interners would keep each other's strings alive.
#[derive(Debug, Default)]
pub(super) struct StringInterner {
    known: HashSet<InternedStr, RandomState>,
    /// Size at which unused strings are dropped.
    sweep_at: usize,
    /// Total bytes of all strings that were added, including dropped ones. How much it grows while an object is read is
    /// what the object adds.
    pub(super) added_bytes: usize,
}

/// Unused strings are not dropped below this size.
const MIN_STRINGS_TO_SWEEP: usize = 4_096;

impl Clone for StringInterner {
    fn clone(&self) -> StringInterner {
        StringInterner::default()
    }
}

impl StringInterner {
    /// Returns the shared copy of a text, which is added if it is new; drops unused strings if the table has doubled.
    pub(super) fn intern(&mut self, text: &str) -> InternedStr {
        if let Some(name) = self.known.get(text) {
            return InternedStr::clone(name);
        }
        if self.known.len() >= self.sweep_at.max(MIN_STRINGS_TO_SWEEP) {
            self.drop_unused();
        }
        let name = InternedStr::from(text);
        self.added_bytes = self.added_bytes.wrapping_add(text.len() + STRING_OVERHEAD_BYTES);
        self.known.insert(InternedStr::clone(&name));
        name
    }

    /// Drops the strings that only the interner references.
    pub(super) fn drop_unused(&mut self) {
        self.known.retain(|name| Arc::strong_count(name) > 1);
        self.sweep_at = self.known.len() * 2;
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{MIN_STRINGS_TO_SWEEP, StringInterner};

    #[test]
    fn names_are_shared_and_forgotten() {
        let mut names = StringInterner::default();
        let kept = names.intern("kept");
        assert!(std::sync::Arc::ptr_eq(&kept, &names.intern("kept")));
        for number in 0..MIN_STRINGS_TO_SWEEP * 4 {
            drop(names.intern(&format!("pod-{number}")));
        }
        assert!(names.len() <= MIN_STRINGS_TO_SWEEP + 1, "{}", names.len());
        assert!(std::sync::Arc::ptr_eq(&kept, &names.intern("kept")), "a name in use is not forgotten");
    }
}
