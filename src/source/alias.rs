//! Anchors and what their aliases may cost.
//!
//! What an anchor names is kept on a tape of its own, so that rewriting the document (merge keys) cannot move it.
//!
//! Invariant: a document cannot grow by aliases beyond what go-yaml allows, 99 % of a small document falling to 10 %
//! of a large one; a bomb is refused before it is unfolded.

use std::collections::HashMap;

use crate::doc::{Builder, Syntax, Value};

/// Nodes kept for anchors at most: anchors inside anchors are kept once per level.
const MAX_KEPT: usize = 4_000_000;

/// The anchors of one document.
#[derive(Debug, Default)]
pub(super) struct Anchors<'a> {
    /// Where on the kept tape an anchor's value starts, and its number of nodes.
    known: HashMap<usize, (usize, usize)>,
    kept: Option<Builder<'a>>,
    /// Nodes read so far, and how many of them came from aliases.
    read: usize,
    unfolded: usize,
}

impl<'a> Anchors<'a> {
    /// Counts nodes that were written out.
    pub(super) fn count(&mut self) {
        self.read += 1;
    }

    /// Keeps the value that starts at node `at` of `out` under the anchor's number.
    pub(super) fn keep(
        &mut self,
        anchor: usize,
        out: &Builder<'a>,
        at: usize,
        source: &'a str,
    ) -> Result<(), String> {
        let kept = self.kept.get_or_insert_with(|| Builder::with_room(source, Syntax::Yaml, 64));
        let (start, nodes) = (kept.len(), out.len() - at);
        if start + nodes > MAX_KEPT {
            return Err("too many anchors inside anchors".to_owned());
        }
        kept.copy(out.value(at));
        self.known.insert(anchor, (start, nodes));
        Ok(())
    }

    /// Writes what the anchor names to `out`.
    pub(super) fn unfold(&mut self, anchor: usize, out: &mut Builder<'a>) -> Result<(), String> {
        let Some((&(at, nodes), kept)) = self.known.get(&anchor).zip(self.kept.as_ref()) else {
            // The parser knows the name, so the value it names is still being read.
            return Err("the anchor's value contains itself".to_owned());
        };
        self.read += nodes + 1;
        self.unfolded += nodes;
        if self.unfolded > 100 && self.read > 1000 && self.is_excessive() {
            let unfolded = self.unfolded;
            return Err(format!(
                "document contains excessive aliasing ({unfolded} values come from aliases)"
            ));
        }
        out.copy(kept.value(at));
        Ok(())
    }

    /// The value an anchor names, once it is complete.
    pub(super) fn value(&self, anchor: usize) -> Option<Value<'_>> {
        let (&(at, _), kept) = self.known.get(&anchor).zip(self.kept.as_ref())?;
        Some(kept.value(at))
    }

    /// True if more of the document comes from aliases than its size allows.
    // upstream go-yaml v2 allowedAliasRatio
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn is_excessive(&self) -> bool {
        const LOW: f64 = 400_000.0;
        const HIGH: f64 = 4_000_000.0;
        let (read, unfolded) = (self.read as f64, self.unfolded as f64);
        let along = ((read - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        unfolded / read > 0.99 - 0.89 * along
    }
}
