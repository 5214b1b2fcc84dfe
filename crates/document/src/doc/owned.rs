//! Texts of a document that its source does not contain literally: strings with escapes, folded YAML, added values.
//!
//! All of them are concatenated in one string, because a separate allocation for each of a million escaped strings
//! would take ten times the memory of the source. Invariant: the texts are in the order of their nodes.

/// The texts of nodes that are not in the source, concatenated in one string.
#[derive(Debug)]
pub(super) struct OwnedTexts {
    /// For each text, its node and its end offset. It begins where the previous text ends.
    ends: Vec<(u32, u32)>,
    texts: String,
}

impl OwnedTexts {
    pub(super) const NONE: OwnedTexts = OwnedTexts { ends: Vec::new(), texts: String::new() };

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Memory used by the texts in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.ends.capacity() * size_of::<(u32, u32)>() + self.texts.capacity()
    }

    /// Adds the text of a node, which comes after all nodes that have one.
    #[expect(clippy::cast_possible_truncation, reason = "sources are capped far below 4 GiB")]
    pub(super) fn push(&mut self, node: u32, text: &str) {
        self.texts.push_str(text);
        self.ends.push((node, self.texts.len() as u32));
    }

    /// The text of a node; empty if none was added for it.
    pub(super) fn text(&self, node: u32) -> &str {
        let found = self.ends.binary_search_by_key(&node, |(owner, _)| *owner);
        found.ok().map_or("", |index| self.texts.get(self.start(index)..self.end(index)).unwrap_or_default())
    }

    /// The first node, `node` or a later one, that has a text here; `None` if there is none.
    pub(super) fn first_node_with_text_from(&self, node: u32) -> Option<u32> {
        let index = self.ends.partition_point(|(owner, _)| *owner < node);
        self.ends.get(index).map(|(owner, _)| *owner)
    }

    /// Removes the texts of that node and of all later ones.
    pub(super) fn truncate(&mut self, node: u32) {
        let kept = self.ends.partition_point(|(owner, _)| *owner < node);
        self.texts.truncate(self.start(kept));
        self.ends.truncate(kept);
    }

    /// The byte at which the text with that index starts.
    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.end(before))
    }

    /// The byte at which the text with that index ends; the end of all texts past the last one.
    fn end(&self, index: usize) -> usize {
        self.ends.get(index).map_or(self.texts.len(), |(_, end)| *end as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::OwnedTexts;

    #[test]
    fn each_node_has_its_own_text() {
        let mut owned = OwnedTexts::NONE;
        for (node, text) in [(1, "a"), (4, ""), (9, "ö\n")] {
            owned.push(node, text);
        }
        assert_eq!([1, 2, 4, 9].map(|node| owned.text(node)), ["a", "", "", "ö\n"]);
        assert_eq!(
            [0, 2, 9, 10].map(|node| owned.first_node_with_text_from(node)),
            [Some(1), Some(4), Some(9), None]
        );
        owned.truncate(4);
        owned.push(5, "b");
        assert_eq!([1, 4, 5, 9].map(|node| owned.text(node)), ["a", "", "b", ""]);
    }
}
