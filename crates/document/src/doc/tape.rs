//! The nodes of a document. A thread keeps the capacity of its last tape for the next: memory that goes back to the
//! system for every request costs more than reading it.
//!
//! A thread keeps at most one vector, the larger of two, and none above a maximum size. It contains no nodes, so it
//! cannot affect results.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use super::Node;

/// The capacity, in nodes, of the largest vector that a thread keeps: enough for the largest object that a cluster
/// stores.
const MAX_POOLED_NODES: usize = 128 << 10;

thread_local! {
    /// The vector, without nodes, that this thread's next tape will use.
    static POOL: Cell<Vec<Node>> = const { Cell::new(Vec::new()) };
}

/// A vector of nodes; when it is dropped, the thread's next tape can use its memory.
#[derive(Debug)]
pub(super) struct PooledTape(Vec<Node>);

impl PooledTape {
    /// A tape without nodes and capacity.
    pub(super) const EMPTY: PooledTape = PooledTape(Vec::new());

    /// Creates an empty tape with capacity for `nodes` nodes. Reuses the memory of an earlier tape if it is
    /// large enough.
    pub(super) fn with_pooled_capacity(nodes: usize) -> PooledTape {
        let kept = POOL.try_with(Cell::take).unwrap_or_default();
        PooledTape(if kept.capacity() < nodes { Vec::with_capacity(nodes) } else { kept })
    }

    /// Creates an empty tape with capacity for exactly `nodes` nodes, in newly allocated memory. For
    /// documents that are kept.
    pub(super) fn with_exact_capacity(nodes: usize) -> PooledTape {
        PooledTape(Vec::with_capacity(nodes))
    }

    /// Releases unused capacity, for documents that are kept.
    pub(super) fn shrink(&mut self) {
        if self.0.capacity() > MAX_POOLED_NODES {
            self.0.shrink_to_fit();
        } else {
            // The next tape uses the memory of this one, and no gaps are left between those that are kept.
            *self = PooledTape(self.0.clone());
        }
    }
}

impl Drop for PooledTape {
    fn drop(&mut self) {
        let mut nodes = std::mem::take(&mut self.0);
        nodes.clear();
        // A thread that ends keeps nothing.
        let _ = POOL.try_with(|pool| {
            let other = pool.take();
            let is_better = (other.capacity()..=MAX_POOLED_NODES).contains(&nodes.capacity());
            pool.set(if is_better { nodes } else { other });
        });
    }
}

impl Deref for PooledTape {
    type Target = Vec<Node>;

    fn deref(&self) -> &Vec<Node> {
        &self.0
    }
}

impl DerefMut for PooledTape {
    fn deref_mut(&mut self) -> &mut Vec<Node> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_POOLED_NODES, POOL, PooledTape};
    use crate::doc::parse;

    fn pooled() -> usize {
        let tape = POOL.take();
        assert!(tape.is_empty(), "capacity, and nothing in it");
        let capacity = tape.capacity();
        POOL.set(tape);
        capacity
    }

    #[test]
    fn a_document_gets_the_capacity_of_the_one_before_and_nothing_else() {
        let large = format!("[{}0]", "{\"a\":[1,2,3]},".repeat(100));
        drop(parse(&large).unwrap());
        assert!(pooled() > 100);
        for text in ["{}", r#"{"b":null}"#, "[[[]]]"] {
            assert_eq!(parse(text).unwrap().root().to_json(), text);
        }
    }

    #[test]
    fn a_document_that_is_kept_leaves_its_reserve_to_the_next() {
        let text = format!("[{}0]", "{\"a\":[1,2,3]},".repeat(100));
        let mut doc = parse(&text).unwrap();
        doc.shrink();
        assert_eq!(doc.nodes.capacity(), doc.nodes.len());
        assert!(pooled() >= doc.nodes.len());
        assert_eq!(doc.root().to_json(), text);
    }

    #[test]
    fn the_larger_capacity_is_kept_and_no_enormous_one() {
        drop(PooledTape::with_pooled_capacity(MAX_POOLED_NODES + 1));
        assert_eq!(pooled(), 0);
        let (large, small) = (PooledTape::with_pooled_capacity(5_000), PooledTape::with_pooled_capacity(10));
        drop(large);
        drop(small);
        assert_eq!(pooled(), 5_000);
    }
}
