//! Items of a list that occurred before. Short lists cost no allocation, long ones are remembered.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::FixedState;

/// Lists longer than this are remembered instead of searched.
const SEARCHED: usize = 64;

/// Items with their indexes, by their identity.
type FirstByIdentity<'d, T> = HashMap<[&'d [u8]; 4], (usize, T)>;

/// Calls `found(first, later)`, each with its index, for every item with the identity of an earlier one. What differs
/// most comes first in the identity.
pub(crate) fn each<'d, T: Copy>(
    items: impl Iterator<Item = T> + Clone,
    identity: impl Fn(T) -> [&'d [u8]; 4],
    mut found: impl FnMut((usize, T), (usize, T)),
) {
    // Fingerprints on the stack: an item is read once, and only a repeat is looked for.
    let mut fingerprints = [0_u64; SEARCHED];
    let mut many: Option<FirstByIdentity<'d, T>> = None;
    let items = items.enumerate();
    for (index, item) in items.clone() {
        let this = identity(item);
        let first = if let Some(slot) = fingerprints.get_mut(index) {
            *slot = fingerprint(this);
            let (here, earlier) = (*slot, fingerprints.get(..index).unwrap_or_default());
            let mut earlier = items.clone().take(if earlier.contains(&here) { index } else { 0 });
            earlier.find(|(_, earlier)| identity(*earlier) == this)
        } else {
            let known = many.get_or_insert_with(|| remember(items.clone().take(index), &identity));
            let first = known.entry(this).or_insert((index, item));
            (first.0 != index).then_some(*first)
        };
        if let Some(first) = first {
            found(first, (index, item));
        }
    }
}

/// Items by their identity, the first of those that have the same.
fn remember<'d, T: Copy>(
    items: impl Iterator<Item = (usize, T)>,
    identity: &impl Fn(T) -> [&'d [u8]; 4],
) -> FirstByIdentity<'d, T> {
    let mut known = FirstByIdentity::new();
    for (index, item) in items {
        known.entry(identity(item)).or_insert((index, item));
    }
    known
}

/// A hash of the first two texts, which nearly always tell items apart. Equal ones are compared, so two items that share
/// one only cost time, and at most what the length of the list allows.
#[inline]
fn fingerprint(texts: [&[u8]; 4]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    texts.iter().take(2).for_each(|text| hasher.write(text));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::each;

    fn identity(item: &String) -> [&[u8]; 4] {
        [b"", item.as_bytes(), b"", b"NoSchedule"]
    }

    #[test]
    fn short_and_long_lists_give_the_same_answer() {
        for length in [6, 60, 66, 600] {
            let items: Vec<String> =
                (0..length).map(|item| format!("{}-long-end", item % (length - 2))).collect();
            let mut found = Vec::new();
            each(items.iter(), identity, |(first, _), (later, _)| found.push((later, first)));
            assert_eq!(found, [(length - 2, 0), (length - 1, 1)], "{length}");
        }
    }
}
