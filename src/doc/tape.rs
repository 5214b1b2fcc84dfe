//! The nodes of a document, in room that an earlier document of the thread may have left.

use std::ops::{Deref, DerefMut};

use super::Node;
use crate::spare::Spare;

/// Nodes of the largest room kept: those of an object as large as a cluster stores them.
const LARGEST: usize = 128 << 10;

thread_local! {
    static SPARE: Spare<Node> = const { Spare::new() };
}

/// A vector of nodes that leaves its room behind.
#[derive(Debug)]
pub(super) struct Tape(Vec<Node>);

impl Tape {
    /// No nodes and no room.
    pub(super) const EMPTY: Tape = Tape(Vec::new());

    /// No nodes, and room for that many.
    pub(super) fn with_room(nodes: usize) -> Tape {
        Tape(SPARE.try_with(|spare| spare.take(nodes)).unwrap_or_default())
    }

    /// The same in room of its own, not more: for what is kept.
    pub(super) fn to_keep(nodes: usize) -> Tape {
        Tape(Vec::with_capacity(nodes))
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        let nodes = std::mem::take(&mut self.0);
        // Nobody needs room in a thread that ends.
        let _ = SPARE.try_with(|spare| spare.leave(nodes, LARGEST));
    }
}

impl Deref for Tape {
    type Target = Vec<Node>;

    fn deref(&self) -> &Vec<Node> {
        &self.0
    }
}

impl DerefMut for Tape {
    fn deref_mut(&mut self) -> &mut Vec<Node> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::SPARE;
    use crate::doc::parse;

    #[test]
    fn a_document_finds_the_room_of_the_one_before_and_nothing_else() {
        let large = format!("[{}0]", "{\"a\":[1,2,3]},".repeat(100));
        drop(parse(&large).unwrap());
        let room = SPARE.with(|spare| spare.take(0));
        assert!(room.capacity() > 100 && room.is_empty());
        SPARE.with(|spare| spare.leave(room, usize::MAX));
        for text in ["{}", r#"{"b":null}"#, "[[[]]]"] {
            assert_eq!(parse(text).unwrap().root().to_json(), text);
        }
    }
}
