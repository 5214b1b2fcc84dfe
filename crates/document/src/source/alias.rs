//! Anchors, and the limits of their aliases.
//!
//! The values of anchors are stored on a separate tape, so that rewriting the document (merge keys) cannot move them.
//!
//! Invariant: aliases cannot make up more of a document than go-yaml allows: from 99 % of a small document down to 10 %
//! of a large one. An alias bomb is rejected before it is expanded.

use std::collections::HashMap;

use crate::doc::{Builder, Syntax, Value};

/// Maximum number of stored nodes: nested anchors are stored once per level.
const MAX_ANCHOR_NODES: usize = 4_000_000;

/// The anchors of one document with their values, and the counts that limit aliases.
#[derive(Debug, Default)]
pub(super) struct Anchors<'a> {
    /// For each anchor, the position of its value on the kept tape and the number of its nodes.
    positions: HashMap<usize, (usize, usize)>,
    values: Option<Builder<'a>>,
    /// Number of nodes read so far, including those that aliases expand to.
    read: usize,
    expanded: usize,
}

impl<'a> Anchors<'a> {
    /// Counts a node that is not from an alias.
    pub(super) fn count_node(&mut self) {
        self.read += 1;
    }

    /// Stores a copy of the value at node `at` of `out` under the anchor's number; an error if too much is stored.
    pub(super) fn store(
        &mut self,
        anchor: usize,
        out: &Builder<'a>,
        at: usize,
        source: &'a str,
    ) -> Result<(), String> {
        let values = self.values.get_or_insert_with(|| Builder::with_capacity(source, Syntax::Yaml, 64));
        let (start, nodes) = (values.len(), out.len() - at);
        if start + nodes > MAX_ANCHOR_NODES {
            return Err("anchors are nested too deeply".to_owned());
        }
        values.copy(out.value(at));
        self.positions.insert(anchor, (start, nodes));
        Ok(())
    }

    /// Writes a copy of the anchor's value to `out`. An error if the value is not complete, or if aliases make up too
    /// much of the document.
    pub(super) fn write_alias_copy(&mut self, anchor: usize, out: &mut Builder<'a>) -> Result<(), String> {
        let Some((&(at, nodes), values)) = self.positions.get(&anchor).zip(self.values.as_ref()) else {
            // The parser knows the name, so the value it names is still being read.
            return Err("the anchor's value contains itself".to_owned());
        };
        self.read += nodes + 1;
        self.expanded += nodes;
        if self.expanded > 100 && self.read > 1000 && self.has_excessive_aliases() {
            let expanded = self.expanded;
            return Err(format!(
                "document contains excessive aliasing ({expanded} values come from aliases)"
            ));
        }
        out.copy(values.value(at));
        Ok(())
    }

    /// The value of an anchor; `None` as long as it is not complete.
    pub(super) fn value(&self, anchor: usize) -> Option<Value<'_>> {
        let (&(at, _), values) = self.positions.get(&anchor).zip(self.values.as_ref())?;
        Some(values.value(at))
    }

    /// True if more of the document comes from aliases than its size allows.
    // upstream go-yaml v2 allowedAliasRatio
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn has_excessive_aliases(&self) -> bool {
        const SMALL_DOCUMENT_NODES: f64 = 400_000.0;
        const LARGE_DOCUMENT_NODES: f64 = 4_000_000.0;
        let (read, expanded) = (self.read as f64, self.expanded as f64);
        let along =
            ((read - SMALL_DOCUMENT_NODES) / (LARGE_DOCUMENT_NODES - SMALL_DOCUMENT_NODES)).clamp(0.0, 1.0);
        expanded / read > 0.99 - 0.89 * along
    }
}
