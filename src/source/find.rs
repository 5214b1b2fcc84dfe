//! Where a field is in its document: a path followed from the root.
//!
//! A finding carries a path, and only a report asks for its place. A container that is large is indexed when it is
//! first searched, so that a hundred thousand findings in it cost no more than their number.
//!
//! Invariant: every path has a place. What is missing is placed at its nearest parent that exists.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::doc::{Doc, Kind, Span, Value};
use crate::field::{FieldPath, Name};

/// The large containers of a document that were searched before.
#[derive(Debug, Default)]
pub(super) struct Finder {
    /// By container: its items, or its keys in the order of their texts, equal ones in that of the document.
    known: RefCell<HashMap<u32, Vec<u32>>>,
}

impl Finder {
    /// The bytes of the document's source that a path is about.
    ///
    /// Scalars are marked whole, quotes included. A container is marked by the key that holds it, a list item by the
    /// whole item. `on_key` asks for the key itself: the last one, if it is given more than once.
    pub(super) fn find(&self, doc: &Doc<'_>, path: &FieldPath, on_key: bool) -> Span {
        let mut at = doc.root();
        let mut held_by: Option<Value<'_>> = None;
        for step in path.user_steps() {
            let (key, next) = match step {
                Name::Index(index) => (None, self.item(at, *index)),
                Name::Field(name) | Name::Key(name) => match self.member(at, name) {
                    Some((key, value)) => (Some(key), value),
                    None => (None, Value::absent()),
                },
            };
            if !next.exists() {
                return held_by.unwrap_or(at).span();
            }
            (at, held_by) = (next, key);
        }
        match held_by {
            Some(key) if on_key || matches!(at.kind(), Kind::Array | Kind::Object) || is_blank(at.span()) => {
                key.span()
            }
            _ => at.span(),
        }
    }

    /// The value at a path, or at its parent `up` steps higher.
    pub(super) fn value<'d>(&self, doc: &'d Doc<'_>, path: &FieldPath, up: usize) -> Option<Value<'d>> {
        let steps = path.user_steps().count().checked_sub(up)?;
        let found = path.user_steps().take(steps).try_fold(doc.root(), |at, step| match step {
            Name::Index(index) => Some(self.item(at, *index)),
            Name::Field(name) | Name::Key(name) => Some(self.member(at, name)?.1),
        });
        found.filter(|value| value.exists())
    }

    fn item<'d>(&self, list: Value<'d>, index: usize) -> Value<'d> {
        if is_small(list) || list.kind() != Kind::Array {
            return list.at(index);
        }
        let mut known = self.known.borrow_mut();
        let items = known.entry(list.index()).or_insert_with(|| list.items().map(Value::index).collect());
        items.get(index).map_or(Value::absent(), |&item| list.doc().value(item))
    }

    /// The last member of that name and its key.
    fn member<'d>(&self, object: Value<'d>, name: &str) -> Option<(Value<'d>, Value<'d>)> {
        if is_small(object) || object.kind() != Kind::Object {
            return object.member(name);
        }
        let doc = object.doc();
        let mut known = self.known.borrow_mut();
        let keys = known.entry(object.index()).or_insert_with(|| {
            let mut keys: Vec<u32> = object.members().map(|(key, _)| key.index()).collect();
            keys.sort_by_key(|&key| doc.value(key).text());
            keys
        });
        let after = keys.partition_point(|&key| doc.value(key).text() <= name);
        let key = doc.value(*keys.get(after.checked_sub(1)?)?);
        // A key is one node, its value the next.
        key.text_is(name).then(|| (key, doc.value(key.index() + 1)))
    }
}

/// Containers of fewer nodes are searched anew each time.
fn is_small(container: Value<'_>) -> bool {
    container.size() < 100
}

/// A null that is not written, such as `key:` with nothing after it.
fn is_blank(span: Span) -> bool {
    span.end <= span.start
}
