//! Items of a list that occurred before. Short lists cost no allocation, long ones are remembered.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Lists longer than this are remembered instead of searched.
const SEARCHED: usize = 64;

/// Calls `found(first, later)`, each with its index, for every item with the identity of an earlier one.
pub(super) fn each<T: Copy, I: Eq + Hash>(
    items: impl Iterator<Item = T> + Clone,
    identity: impl Fn(T) -> I,
    mut found: impl FnMut((usize, T), (usize, T)),
) {
    let items = items.enumerate();
    if items.clone().nth(SEARCHED).is_some() {
        let mut known: HashMap<I, (usize, T)> = HashMap::new();
        for (index, item) in items {
            match known.get(&identity(item)) {
                Some(first) => found(*first, (index, item)),
                None => _ = known.insert(identity(item), (index, item)),
            }
        }
        return;
    }
    // Fingerprints on the stack: an item is read once, and only a repeat is looked for.
    let mut prints = [0_u64; SEARCHED];
    for (index, item) in items.clone() {
        let print = fingerprint(&identity(item));
        let repeated = prints.iter().take(index).any(|known| *known == print);
        if let Some(slot) = prints.get_mut(index) {
            *slot = print;
        }
        let mut earlier = items.clone().take(if repeated { index } else { 0 });
        if let Some(first) = earlier.find(|(_, earlier)| identity(*earlier) == identity(item)) {
            found(first, (index, item));
        }
    }
}

fn fingerprint(identity: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn short_and_long_lists_give_the_same_answer() {
        for length in [6, 60, 66, 600] {
            let items: Vec<usize> = (0..length).map(|item| item % (length - 2)).collect();
            let mut found = Vec::new();
            each(items.iter(), |item| *item, |(first, _), (later, _)| found.push((later, first)));
            assert_eq!(found, [(length - 2, 0), (length - 1, 1)], "{length}");
        }
    }
}
