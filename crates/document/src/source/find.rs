//! Finds the position of a field in its document by following a path from the root.
//!
//! Findings have paths; only reports need positions. Large containers are indexed on the first search, so that many
//! findings in one cost linear time.
//!
//! Invariant: every path has a position. A missing field has that of its nearest existing parent.

use crate::doc::{ContainerIndex, Doc, Span, Value, ValueKind};
use crate::field::{FieldPath, SegmentName};

/// Finds fields of one document by their paths; remembers the large containers that were searched before.
#[derive(Debug, Default)]
pub(super) struct PathLocator {
    index: ContainerIndex,
}

impl PathLocator {
    /// The bytes in the document's source that a path refers to.
    ///
    /// For a scalar, this is the whole value with quotes; for a container, its key; for a list item, the
    /// whole item. With `on_key`, it is the key itself: the last one if the key is duplicated.
    pub(super) fn span_of_path(&self, doc: &Doc<'_>, path: &FieldPath, on_key: bool) -> Span {
        let mut at = doc.root();
        let mut held_by: Option<Value<'_>> = None;
        for step in path.user_steps() {
            let Some((key, next)) = self.follow(at, step) else { return held_by.unwrap_or(at).span() };
            (at, held_by) = (next, key);
        }
        match held_by {
            Some(key)
                if on_key
                    || matches!(at.kind(), ValueKind::Array | ValueKind::Object)
                    || is_empty_span(at.span()) =>
            {
                key.span()
            }
            _ => at.span(),
        }
    }

    /// The value at the path without its last `up` steps; `None` if there is none.
    pub(super) fn value_at_path<'d>(
        &self,
        doc: &'d Doc<'_>,
        path: &FieldPath,
        up: usize,
    ) -> Option<Value<'d>> {
        let steps = path.user_steps().count().checked_sub(up)?;
        let found =
            path.user_steps().take(steps).try_fold(doc.root(), |at, step| Some(self.follow(at, step)?.1));
        found.filter(|value| value.exists())
    }

    /// The value that one step leads to, with its key if it is a member of an object; `None` if there is none.
    pub(super) fn follow<'d>(
        &self,
        at: Value<'d>,
        step: &SegmentName,
    ) -> Option<(Option<Value<'d>>, Value<'d>)> {
        let (key, value) = match step {
            SegmentName::Index(index) => (None, self.index.item(at, *index)),
            SegmentName::Field(name) | SegmentName::Key(name) => {
                let (key, value) = self.index.last_key_and_value(at, name)?;
                (Some(key), value)
            }
        };
        value.exists().then_some((key, value))
    }
}

/// True if the span is empty: that of a null that is not written, such as `key:` with nothing after it.
fn is_empty_span(span: Span) -> bool {
    span.end <= span.start
}
