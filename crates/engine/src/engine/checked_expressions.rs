//! A cache of CEL expressions that were accepted, with their cost: most requests use the same few.
//!
//! The cache is bounded in bytes and shared by all threads. Only accepted expressions are kept, so it stores no
//! messages. It implements [`Checker`] like the compiler itself, so rules do not know about it.

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};
use tollgate_cel::{CelEnv, CheckOutcome, Checker, ExpressionPurpose, UncachedChecker};

/// Maximum number of bytes that all entries together may take.
const MAX_CACHE_BYTES: u64 = 2 << 20;
/// Expected number of entries. The cache creates at most one shard for 32 entries, so that a shard has room
/// for the longest expression on any machine.
const ESTIMATED_ENTRIES: usize = 512;
/// Bytes that an entry takes besides its text.
const ENTRY_OVERHEAD_BYTES: usize = 128;

/// The key of a cached expression: its text and everything else that the result of a check depends on.
#[derive(PartialEq, Eq, Hash, Debug)]
struct CacheKey {
    target: ExpressionPurpose,
    env: CelEnv,
    text: Box<str>,
}

/// A [`CacheKey`] that borrows its text, so that a lookup allocates nothing.
#[derive(Hash)]
struct BorrowedCacheKey<'a> {
    target: ExpressionPurpose,
    env: CelEnv,
    text: &'a str,
}

impl Equivalent<CacheKey> for BorrowedCacheKey<'_> {
    fn equivalent(&self, stored: &CacheKey) -> bool {
        self.target == stored.target && self.env == stored.env && *self.text == *stored.text
    }
}

/// Tells the cache how many bytes an entry takes, because the cache is limited in bytes.
#[derive(Clone, Debug)]
struct EntryByteWeighter;

impl Weighter<CacheKey, u64> for EntryByteWeighter {
    fn weight(&self, key: &CacheKey, _: &u64) -> u64 {
        (key.text.len() + ENTRY_OVERHEAD_BYTES) as u64
    }
}

/// Cache of CEL expressions that were accepted before, with their costs.
#[derive(Debug)]
pub(super) struct AcceptedExpressionCache(
    Cache<CacheKey, u64, EntryByteWeighter, RandomState, DefaultLifecycle<CacheKey, u64>>,
);

impl Default for AcceptedExpressionCache {
    fn default() -> AcceptedExpressionCache {
        let (hasher, lifecycle) = (RandomState::default(), DefaultLifecycle::default());
        AcceptedExpressionCache(Cache::with(
            ESTIMATED_ENTRIES,
            MAX_CACHE_BYTES,
            EntryByteWeighter,
            hasher,
            lifecycle,
        ))
    }
}

impl Checker for AcceptedExpressionCache {
    /// Returns the cached cost of an accepted expression, or compiles the expression and caches its cost if it is
    /// accepted.
    fn check(
        &self,
        expression: &str,
        target: ExpressionPurpose,
        env: &CelEnv,
        max_detail: usize,
    ) -> CheckOutcome {
        if let Some(cost) = self.0.get(&BorrowedCacheKey { target, env: *env, text: expression }) {
            return CheckOutcome::Accepted { cost };
        }
        let outcome = UncachedChecker.check(expression, target, env, max_detail);
        if let CheckOutcome::Accepted { cost } = outcome {
            self.0.insert(CacheKey { target, env: *env, text: expression.into() }, cost);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::{AcceptedExpressionCache, MAX_CACHE_BYTES};
    use tollgate_cel::{Checker as _, ExpressionPurpose, V1_33, V1_34, V1_37, check};

    #[test]
    fn outcomes_are_those_of_the_check_each_time() {
        let cache = AcceptedExpressionCache::default();
        let expressions =
            ["device.driver == 'a'", "device.", "1 + 1", "device.allowMultipleAllocations", "true", "'a'"];
        for _ in 0..3 {
            for expression in expressions {
                for target in [ExpressionPurpose::Selector, ExpressionPurpose::DerivedAttribute] {
                    for env in [V1_33, V1_34, V1_37] {
                        let expected = check(expression, target, &env);
                        let found = cache.check(expression, target, &env, usize::MAX);
                        assert_eq!(found, expected, "{expression} {target:?} {env:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_used() {
        let cache = AcceptedExpressionCache::default();
        let used = "device.driver == 'used'";
        for number in 0..5_000 {
            let other = format!("device.driver == '{number:01000}'");
            for expression in [used, used, other.as_str()] {
                assert_eq!(
                    cache.check(expression, ExpressionPurpose::Selector, &V1_37, usize::MAX),
                    check(expression, ExpressionPurpose::Selector, &V1_37)
                );
            }
            assert!(cache.0.weight() <= MAX_CACHE_BYTES);
        }
        assert!(cache.0.weight() > MAX_CACHE_BYTES / 2, "{}", cache.0.weight());
    }
}
