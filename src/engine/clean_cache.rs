//! What was found clean before and need not be checked again: CEL expressions, devices of a slice, specs of claims.
//!
//! One cache for all of them, bounded in bytes and shared by all threads. A fingerprint finds an entry; its [`CacheScope`]
//! and all of its bytes must be equal. Only clean results are kept, so the cache never holds a message. An entry is
//! inserted the second time it is found clean: a stream of objects that never come again evicts nothing.
//!
//! Not for policies: their result also depends on the user and on the time.

use std::hash::{BuildHasher as _, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};

use crate::cel::{self, CelEnv, Outcome, Target};
use crate::profile::{ApiKind, GateSet, Version};

/// Bytes of all entries: a few thousand devices of the usual size.
const MAX_BYTES: u64 = 8 << 20;
/// Entries that are expected. The cache has at most one shard for 32 of them, so that an entry of [`MAX_ENTRY_BYTES`] fits into
/// a shard on machines of any size.
const ESTIMATED_ENTRIES: usize = 512;
/// Larger values are not cached.
const MAX_ENTRY_BYTES: usize = 64 << 10;
/// What an entry costs besides its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// Fingerprints of what was seen once; a power of two.
const SEEN_ONCE: usize = 8192;

/// What some bytes are, and everything else that the result of checking them depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum CacheScope {
    /// A part of an object: a device of a slice, the spec of a claim or template.
    Part {
        /// The name of the profile.
        profile: &'static str,
        /// Its feature gates, which may change while the server runs.
        gates: GateSet,
        kind: ApiKind,
        version: Version,
        /// The slice lets each device select its nodes.
        per_device_nodes: bool,
    },
    /// A CEL expression.
    Expression { target: Target, env: CelEnv },
}

/// A key, borrowed from the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct CleanKey<'a> {
    pub(super) fingerprint: u64,
    pub(super) scope: CacheScope,
    pub(super) bytes: &'a [u8],
}

/// The same, as it is stored.
#[derive(Debug)]
struct StoredKey {
    fingerprint: u64,
    scope: CacheScope,
    bytes: Box<[u8]>,
}

impl Hash for CleanKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint);
    }
}

impl Hash for StoredKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint);
    }
}

impl PartialEq for StoredKey {
    fn eq(&self, other: &StoredKey) -> bool {
        self.scope == other.scope && self.bytes == other.bytes
    }
}

impl Eq for StoredKey {}

impl Equivalent<StoredKey> for CleanKey<'_> {
    fn equivalent(&self, stored: &StoredKey) -> bool {
        self.fingerprint == stored.fingerprint && self.scope == stored.scope && *self.bytes == *stored.bytes
    }
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<StoredKey, u64> for ByBytes {
    fn weight(&self, key: &StoredKey, _: &u64) -> u64 {
        (key.bytes.len() + ENTRY_OVERHEAD_BYTES) as u64
    }
}

/// What was found clean before.
#[derive(Debug)]
pub(super) struct CleanCache {
    hasher: RandomState,
    /// The cost of an expression; nothing is known of parts but that they are clean.
    entries: Cache<StoredKey, u64, ByBytes, RandomState, DefaultLifecycle<StoredKey, u64>>,
    seen_once: Box<[AtomicU64]>,
}

impl Default for CleanCache {
    fn default() -> CleanCache {
        let hasher = RandomState::default();
        let entries =
            Cache::with(ESTIMATED_ENTRIES, MAX_BYTES, ByBytes, hasher.clone(), DefaultLifecycle::default());
        CleanCache { hasher, entries, seen_once: (0..SEEN_ONCE).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl CleanCache {
    pub(super) fn key<'a>(&self, scope: CacheScope, bytes: &'a [u8]) -> CleanKey<'a> {
        let mut hasher = self.hasher.build_hasher();
        scope.hash(&mut hasher);
        hasher.write(bytes);
        CleanKey { fingerprint: hasher.finish(), scope, bytes }
    }

    /// What [`CleanCache::insert_on_second_hit`] was given, if it is there.
    pub(super) fn get(&self, key: &CleanKey<'_>) -> Option<u64> {
        self.entries.get(key)
    }

    /// Notes that it was found clean, and keeps it if that is not the first time.
    pub(super) fn insert_on_second_hit(&self, key: &CleanKey<'_>, cost: u64) {
        if key.bytes.len() > MAX_ENTRY_BYTES {
            return;
        }
        let slot = usize::try_from(key.fingerprint % SEEN_ONCE as u64).unwrap_or_default();
        let Some(slot) = self.seen_once.get(slot) else { return };
        if slot.swap(key.fingerprint, Ordering::Relaxed) == key.fingerprint {
            let CleanKey { fingerprint, scope, bytes } = *key;
            self.entries.insert(StoredKey { fingerprint, scope, bytes: bytes.into() }, cost);
        }
    }
}

impl cel::Checker for CleanCache {
    fn check(&self, expression: &str, target: Target, env: &CelEnv, max_detail: usize) -> Outcome {
        let key = self.key(CacheScope::Expression { target, env: *env }, expression.as_bytes());
        if let Some(cost) = self.get(&key) {
            return Outcome::Accepted { cost };
        }
        let outcome = cel::Compiler.check(expression, target, env, max_detail);
        if let Outcome::Accepted { cost } = outcome {
            self.insert_on_second_hit(&key, cost);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheScope, CleanCache, CleanKey, MAX_BYTES, MAX_ENTRY_BYTES};
    use crate::cel::{Checker as _, Outcome, Target, V1_33, V1_34, V1_37, check};
    use crate::profile::{ApiKind, GateSet, Version};

    fn device(profile: &'static str) -> CacheScope {
        let (kind, version) = (ApiKind::ResourceSlice, Version::V1);
        CacheScope::Part { profile, gates: GateSet::ALL, kind, version, per_device_nodes: false }
    }

    fn insert(cache: &CleanCache, scope: CacheScope, bytes: &[u8]) {
        cache.insert_on_second_hit(&cache.key(scope, bytes), 0);
    }

    fn has(cache: &CleanCache, scope: CacheScope, bytes: &[u8]) -> bool {
        cache.get(&cache.key(scope, bytes)).is_some()
    }

    #[test]
    fn only_the_same_bytes_of_the_same_scope_are_known() {
        let (cache, bytes): (_, Vec<u8>) = (CleanCache::default(), (0..200).collect());
        insert(&cache, device("1.36"), &bytes);
        assert!(!has(&cache, device("1.36"), &bytes), "seen once");
        insert(&cache, device("1.36"), &bytes);
        assert!(has(&cache, device("1.36"), &bytes));
        assert!(!has(&cache, device("1.37"), &bytes), "another profile");
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(!has(&cache, device("1.36"), &other), "byte {at}");
            assert!(!has(&cache, device("1.36"), &bytes[..at]), "the first {at} bytes");
        }
    }

    #[test]
    fn a_fingerprint_that_two_values_share_is_not_enough() {
        let cache = CleanCache::default();
        let stored = CleanKey { fingerprint: 7, scope: device("1.36"), bytes: b"clean" };
        (0..2).for_each(|_| cache.insert_on_second_hit(&stored, 0));
        assert!(cache.get(&stored).is_some());
        assert!(cache.get(&CleanKey { bytes: b"other", ..stored }).is_none());
        assert!(cache.get(&CleanKey { scope: device("1.37"), ..stored }).is_none());
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_used() {
        let cache = CleanCache::default();
        let large = |number: u32| number.to_le_bytes().repeat(1_000);
        for number in 0..8_000 {
            // A stream of values that never come again, and of values that come twice.
            insert(&cache, device("1.36"), &large(1_000_000 + number));
            (0..2).for_each(|_| insert(&cache, device("1.36"), &large(number)));
            (0..2).for_each(|_| insert(&cache, device("1.36"), b"used"));
            assert!(has(&cache, device("1.36"), b"used"), "{number}");
            assert!(cache.entries.weight() <= MAX_BYTES);
        }
        assert!(cache.entries.weight() > MAX_BYTES / 2, "{}", cache.entries.weight());
        let huge = vec![0; MAX_ENTRY_BYTES + 1];
        (0..2).for_each(|_| insert(&cache, device("1.36"), &huge));
        assert!(!has(&cache, device("1.36"), &huge));
    }

    #[test]
    fn a_stream_of_new_values_is_not_stored() {
        let cache = CleanCache::default();
        (0..50_000_u32).for_each(|number| insert(&cache, device("1.36"), &number.to_le_bytes()));
        assert_eq!(cache.entries.len(), 0);
    }

    #[test]
    fn outcomes_are_those_of_the_check_each_time() {
        let cache = CleanCache::default();
        let expressions =
            ["device.driver == 'a'", "device.", "1 + 1", "device.allowMultipleAllocations", "true", "'a'"];
        for _ in 0..3 {
            for expression in expressions {
                for target in [Target::Selector, Target::DerivedAttribute] {
                    for env in [V1_33, V1_34, V1_37] {
                        let expected = check(expression, target, &env);
                        let found = cache.check(expression, target, &env, usize::MAX);
                        assert_eq!(found, expected, "{expression} {target:?} {env:?}");
                    }
                }
            }
        }
        let accepted = cache.check("true", Target::Selector, &V1_37, 100);
        assert!(cache.entries.len() > 5 && matches!(accepted, Outcome::Accepted { .. }));
    }
}
