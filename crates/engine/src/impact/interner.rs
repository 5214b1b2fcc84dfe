//! Interned strings and lists: drivers, pools, devices, namespaces and keys repeat, and so do the tolerations of claims
//! from one template and the labels of pods of one controller.
//!
//! Clusters create new pod names all day, so unused strings are dropped whenever the interner has doubled: memory
//! follows the current state of the cluster, plus a thousand small lists.

use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::cost::STRING_OVERHEAD_BYTES;
use super::record::Toleration;

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
    pub(super) tolerations: ListCache<Toleration>,
    pub(super) labels: ListCache<(InternedStr, InternedStr)>,
    pub(super) counters: ListCache<(InternedStr, i128)>,
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

    /// Drops the strings that only the interner references, and empties the caches of lists.
    pub(super) fn drop_unused(&mut self) {
        (self.tolerations, self.labels) = (ListCache::default(), ListCache::default());
        self.counters = ListCache::default();
        self.known.retain(|name| Arc::strong_count(name) > 1);
        self.sweep_at = self.known.len() * 2;
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }
}

/// A cache of lists that were read recently, such as the labels of pods, keyed by the JSON they were read from. A new
/// list replaces the one in its slot.
#[derive(Debug)]
pub(super) struct ListCache<T>(Vec<Option<CachedList<T>>>);

/// The JSON and the list that was read from it.
type CachedList<T> = (Box<[u8]>, Arc<[T]>);

impl<T> Default for ListCache<T> {
    fn default() -> ListCache<T> {
        ListCache(Vec::new())
    }
}

/// Slots of the cache of lists.
const LIST_CACHE_SLOTS: usize = 512;

/// Longer lists are not cached, so that hostile objects cannot fill the memory.
const MAX_CACHED_LIST_BYTES: usize = 1_024;
const MAX_CACHED_LIST_ITEMS: usize = 32;

impl<T> ListCache<T> {
    /// Returns the cached list that was read from that JSON; `None` if it is not cached.
    pub(super) fn get(&self, written: &[u8]) -> Option<Arc<[T]>> {
        let (bytes, list) = self.0.get(list_slot(written))?.as_ref()?;
        (**bytes == *written).then(|| Arc::clone(list))
    }

    /// Caches a list under the JSON that it was read from. Does nothing if the JSON is empty or the list is too long.
    pub(super) fn insert(&mut self, written: &[u8], list: &Arc<[T]>) {
        if written.is_empty() || written.len() > MAX_CACHED_LIST_BYTES || list.len() > MAX_CACHED_LIST_ITEMS {
            return;
        }
        self.0.resize_with(LIST_CACHE_SLOTS, || None);
        if let Some(slot) = self.0.get_mut(list_slot(written)) {
            *slot = Some((written.into(), Arc::clone(list)));
        }
    }
}

/// Returns the cache slot of a list by its JSON.
fn list_slot(written: &[u8]) -> usize {
    let hash = foldhash::fast::FixedState::default().hash_one(written);
    (hash >> 32) as usize % LIST_CACHE_SLOTS
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

    #[test]
    fn lists_are_shared_by_their_bytes() {
        let mut lists = super::ListCache::default();
        let made = std::sync::Arc::from([1, 2]);
        lists.insert(b"[1,2]", &made);
        lists.insert(b"", &made);
        assert!(lists.get(b"[1,2]").is_some_and(|list| std::sync::Arc::ptr_eq(&list, &made)));
        assert!(lists.get(b"[1,3]").is_none() && lists.get(b"").is_none());
        lists.insert(&[b'x'; super::MAX_CACHED_LIST_BYTES + 1], &made);
        assert!(lists.get(&[b'x'; super::MAX_CACHED_LIST_BYTES + 1]).is_none(), "too long to be kept");
        lists.insert(b"many", &std::sync::Arc::from([0; super::MAX_CACHED_LIST_ITEMS + 1]));
        assert!(lists.get(b"many").is_none(), "too many to be kept");
    }
}
