//! Answers kept: an expression that was checked before is not compiled again.
//!
//! Bounded in bytes and shared between threads: it is cut into shards, each with a young and an old generation. What
//! is asked again moves to the young one; when that is full, the old one is forgotten. Whoever sends many different
//! expressions makes others be compiled again, and nothing worse.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;

use super::{CelEnv, Outcome, Target};

/// Locks; more than there are workers on any usual machine.
const SHARDS: usize = 16;
/// Bytes of expressions and answers in one generation of one shard: 4 MiB in all.
const GENERATION: usize = 128 << 10;
/// What an entry costs beside its texts.
const OVERHEAD: usize = 128;

/// Checks expressions and remembers the answers.
#[derive(Debug)]
pub struct Memo {
    keys: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Default, Debug)]
struct Shard {
    young: HashMap<u64, Entry, BuildHasherDefault<AsIs>>,
    old: HashMap<u64, Entry, BuildHasherDefault<AsIs>>,
    young_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    expression: Box<str>,
    target: Target,
    env: CelEnv,
    /// How much of the answer was asked for.
    room: usize,
    outcome: Outcome,
}

impl Entry {
    fn is(&self, expression: &str, target: Target, env: CelEnv, room: usize) -> bool {
        let is_whole = self.room == room || self.answer() <= room.min(self.room);
        is_whole && *self.expression == *expression && self.target == target && self.env == env
    }

    /// Bytes of the answer.
    fn answer(&self) -> usize {
        match &self.outcome {
            Outcome::CompileError(text) | Outcome::WrongType(text) => text.len(),
            Outcome::Accepted { .. } | Outcome::TooComplex | Outcome::Unchecked(_) => 0,
        }
    }

    fn bytes(&self) -> usize {
        self.expression.len() + self.answer() + OVERHEAD
    }
}

impl Default for Memo {
    fn default() -> Memo {
        Memo { keys: RandomState::default(), shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl Memo {
    /// [`super::check`], or what it answered before. An answer may end anywhere past `room` bytes.
    pub fn check(&self, expression: &str, target: Target, env: &CelEnv, room: usize) -> Outcome {
        let key = self.keys.hash_one((expression, target, env));
        let shard = usize::try_from(key % SHARDS as u64).unwrap_or_default();
        let Some(shard) = self.shards.get(shard) else {
            return super::check_within(expression, target, *env, room);
        };
        let known =
            shard.lock().unwrap_or_else(PoisonError::into_inner).find(key, expression, target, *env, room);
        if let Some(outcome) = known {
            return outcome;
        }
        // Not under the lock: compiling takes long, and two that do the same work do no harm.
        let outcome = super::check_within(expression, target, *env, room);
        let entry =
            Entry { expression: expression.into(), target, env: *env, room, outcome: outcome.clone() };
        // One that takes the room of all others is not worth it.
        if entry.bytes() <= GENERATION {
            shard.lock().unwrap_or_else(PoisonError::into_inner).keep(key, entry);
        }
        outcome
    }
}

impl Shard {
    fn find(
        &mut self,
        key: u64,
        expression: &str,
        target: Target,
        env: CelEnv,
        room: usize,
    ) -> Option<Outcome> {
        if let Some(entry) = self.young.get(&key).filter(|entry| entry.is(expression, target, env, room)) {
            return Some(entry.outcome.clone());
        }
        let entry = self.old.remove(&key).filter(|entry| entry.is(expression, target, env, room))?;
        let outcome = entry.outcome.clone();
        self.keep(key, entry);
        Some(outcome)
    }

    fn keep(&mut self, key: u64, entry: Entry) {
        let bytes = entry.bytes();
        if self.young_bytes + bytes > GENERATION {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        if let Some(replaced) = self.young.insert(key, entry) {
            self.young_bytes = self.young_bytes.saturating_sub(replaced.bytes());
        }
    }
}

/// The key is a hash already.
#[derive(Default, Debug)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::{GENERATION, Memo, SHARDS};
    use crate::cel::{Outcome, Target, V1_33, V1_34, V1_37, check};

    #[test]
    fn answers_are_those_of_the_check_each_time() {
        let memo = Memo::default();
        let expressions =
            ["device.driver == 'a'", "device.", "1 + 1", "device.allowMultipleAllocations", "true", "'a'"];
        for _ in 0..3 {
            for expression in expressions {
                for target in [Target::Selector, Target::DerivedAttribute] {
                    for env in [V1_33, V1_34, V1_37] {
                        let expected = check(expression, target, &env);
                        assert_eq!(
                            memo.check(expression, target, &env, usize::MAX),
                            expected,
                            "{expression} {target:?} {env:?}"
                        );
                    }
                }
            }
        }
        assert_eq!(entries(&memo), expressions.len() * 2 * 3);
    }

    fn entries(memo: &Memo) -> usize {
        let shards = memo.shards.iter().map(|shard| shard.lock().expect("not poisoned"));
        shards.map(|shard| shard.young.len() + shard.old.len()).sum()
    }

    #[test]
    fn an_answer_that_was_cut_is_not_given_to_who_asks_for_more() {
        let memo = Memo::default();
        let wrong = "device.nope == device.nope && device.nope == device.nope";
        let whole = check(wrong, Target::Selector, &V1_37);
        let length = |outcome: &Outcome| match outcome {
            Outcome::CompileError(text) => text.len(),
            other => panic!("{other:?}"),
        };
        let cut = memo.check(wrong, Target::Selector, &V1_37, 100);
        assert!((101..length(&whole)).contains(&length(&cut)), "{cut:?}");
        assert_eq!(memo.check(wrong, Target::Selector, &V1_37, 100), cut);
        assert_eq!(memo.check(wrong, Target::Selector, &V1_37, usize::MAX), whole);
        assert_eq!(memo.check(wrong, Target::Selector, &V1_37, length(&whole)), whole);
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_asked_again() {
        let memo = Memo::default();
        let hot = "device.driver == 'hot'";
        for number in 0..8_000 {
            assert!(matches!(memo.check(hot, Target::Selector, &V1_37, 100), Outcome::Accepted { .. }));
            let cold = format!("'{number}' == '{}'", "x".repeat(900));
            memo.check(&cold, Target::Selector, &V1_37, 100);
        }
        let mut bytes = 0;
        let mut kept = false;
        for shard in &memo.shards {
            let shard = shard.lock().expect("not poisoned");
            let all = shard.young.values().chain(shard.old.values());
            bytes += all.map(super::Entry::bytes).sum::<usize>();
            kept |= shard.young.values().chain(shard.old.values()).any(|entry| &*entry.expression == hot);
        }
        assert!(kept && bytes <= SHARDS * 2 * GENERATION, "{bytes} bytes");
    }
}
