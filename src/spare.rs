//! Room that is left by what is done with, for what comes next: a slice is half a megabyte of text and as much of
//! nodes, and memory that goes back to the system for every request costs more than copying it.
//!
//! Lives in a `thread_local`. Bounded: one vector is kept, the larger of two, and none above a size. It holds no data,
//! so it changes no answer.

use std::cell::Cell;

/// The vector kept.
pub(crate) struct Spare<T>(Cell<Vec<T>>);

impl<T> Spare<T> {
    /// Nothing yet.
    pub(crate) const fn new() -> Spare<T> {
        Spare(Cell::new(Vec::new()))
    }

    /// An empty vector with room for that many.
    pub(crate) fn take(&self, room: usize) -> Vec<T> {
        let spare = self.0.take();
        if spare.capacity() < room { Vec::with_capacity(room) } else { spare }
    }

    /// Keeps the room of a vector, unless it is for more than `most`.
    pub(crate) fn leave(&self, mut vector: Vec<T>, most: usize) {
        vector.clear();
        let other = self.0.take();
        let is_better = (other.capacity()..=most).contains(&vector.capacity());
        self.0.set(if is_better { vector } else { other });
    }
}

#[cfg(test)]
mod tests {
    use super::Spare;

    #[test]
    fn the_larger_room_is_kept_and_no_enormous_one() {
        let spare = Spare::new();
        let mut vector = spare.take(100);
        vector.push(1);
        spare.leave(vector, 1_000);
        let (larger, smaller) = (spare.take(50), spare.take(10));
        assert_eq!((larger.capacity(), smaller.capacity()), (100, 10));
        assert!(larger.is_empty(), "room, and nothing in it");
        spare.leave(larger, 1_000);
        spare.leave(smaller, 1_000);
        spare.leave(Vec::with_capacity(1_001), 1_000);
        assert_eq!(spare.take(1).capacity(), 100);
    }
}
