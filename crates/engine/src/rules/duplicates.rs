//! Finds items of a list that repeat an earlier one. Short lists need no allocation; the items of long ones are hashed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;
use foldhash::quality::RandomState;

/// Maximum length of a list that is searched linearly. Longer lists are hashed.
const MAX_LINEAR_ITEMS: usize = 64;

/// Calls `found(first, later)`, each with its index, for every item of a list that has the same identity as an earlier
/// one. Faster if the first two texts of an identity are those that differ most.
pub(super) fn for_each_repeat<'d, T: Copy>(
    items: impl Iterator<Item = T> + Clone,
    identity: impl Fn(T) -> [&'d [u8]; 4],
    mut found: impl FnMut((usize, T), (usize, T)),
) {
    if items.clone().nth(1).is_none() {
        return;
    }
    // Fingerprints on the stack: an item is read once, and only a repeat is looked for.
    let mut fingerprints = [0_u64; MAX_LINEAR_ITEMS];
    // The first item of each identity in a long list. Only a hash of the identity is kept, which saves memory; its keys
    // are random, so that collisions cannot be forced.
    let (keys, mut many) = (RandomState::default(), HashMap::new());
    let items = items.enumerate();
    for (index, item) in items.clone() {
        let this = identity(item);
        let first = if let Some(slot) = fingerprints.get_mut(index) {
            *slot = fingerprint_of_first_two(this);
            let (here, earlier) = (*slot, fingerprints.get(..index).unwrap_or_default());
            let mut earlier = items.clone().take(if earlier.contains(&here) { index } else { 0 });
            earlier.find(|(_, earlier)| is_same_identity(identity(*earlier), this))
        } else {
            if many.is_empty() {
                for earlier in items.clone().take(index) {
                    many.entry(keys.hash_one(identity(earlier.1))).or_insert(earlier);
                }
            }
            match many.entry(keys.hash_one(this)) {
                Entry::Occupied(first) => {
                    Some(*first.get()).filter(|(_, first)| is_same_identity(identity(*first), this))
                }
                Entry::Vacant(slot) => {
                    slot.insert((index, item));
                    None
                }
            }
        };
        if let Some(first) = first {
            found(first, (index, item));
        }
    }
}

/// Returns a hash of the first two texts, which are almost always distinct. Items with equal hashes are
/// compared, so a collision only costs time.
#[inline]
fn fingerprint_of_first_two(texts: [&[u8]; 4]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    texts.iter().take(2).for_each(|text| hasher.write(text));
    hasher.finish()
}

/// True if the identities are equal. Empty texts are compared by length only, because comparing zero bytes is
/// slow on some processors.
fn is_same_identity(one: [&[u8]; 4], other: [&[u8]; 4]) -> bool {
    one.iter().zip(other).all(|(one, other)| one.len() == other.len() && (one.is_empty() || *one == other))
}

#[cfg(test)]
mod tests {
    use super::for_each_repeat;

    fn identity(item: &String) -> [&[u8]; 4] {
        [b"", item.as_bytes(), b"", b"NoSchedule"]
    }

    #[test]
    fn short_and_long_lists_give_the_same_answer() {
        for length in [6, 60, 66, 600] {
            let items: Vec<String> =
                (0..length).map(|item| format!("{}-long-end", item % (length - 2))).collect();
            let mut found = Vec::new();
            for_each_repeat(items.iter(), identity, |(first, _), (later, _)| found.push((later, first)));
            assert_eq!(found, [(length - 2, 0), (length - 1, 1)], "{length}");
        }
    }
}
