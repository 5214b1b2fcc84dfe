//! Items of a list that occurred before. Short lists cost no allocation, long ones are remembered.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

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
    let mut hasher = Quick(0);
    identity.hash(&mut hasher);
    hasher.finish()
}

/// A hasher for telling a few dozen items apart. Equal prints are looked at again, so a bad one only costs time, and
/// at most what the list's length allows.
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
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
