//! Fast repeated lookups of items by index and members by name: large containers are indexed on first search.
//!
//! A document with a hundred thousand errors has as many paths, and each is looked up from the root. Invariant:
//! results are those of [`Value::item`] and [`Value::last_key_and_value`]; an index belongs to one document.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{Value, ValueKind};

/// Finds items and members quickly: remembers where they are in the large containers that were searched before.
#[derive(Debug, Default)]
pub struct ContainerIndex {
    /// For each container, its items, or its keys sorted by text. Equal keys keep their order.
    known: RefCell<HashMap<u32, Vec<u32>>>,
}

impl ContainerIndex {
    /// The item with that index, from 0; absent if there is none.
    pub fn item<'d>(&self, list: Value<'d>, index: usize) -> Value<'d> {
        if is_too_small_to_index(list) || list.kind() != ValueKind::Array {
            return list.item(index);
        }
        let mut known = self.known.borrow_mut();
        let items = known.entry(list.index()).or_insert_with(|| list.items().map(Value::index).collect());
        items.get(index).map_or(Value::absent(), |&item| list.doc().value_at_node_index(item))
    }

    /// The key and the value of the last member with that name; `None` if there is none.
    pub fn last_key_and_value<'d>(&self, object: Value<'d>, name: &str) -> Option<(Value<'d>, Value<'d>)> {
        if is_too_small_to_index(object) || object.kind() != ValueKind::Object {
            return object.last_key_and_value(name);
        }
        let doc = object.doc();
        let mut known = self.known.borrow_mut();
        let keys = known.entry(object.index()).or_insert_with(|| {
            let mut keys: Vec<u32> = object.members().map(|(key, _)| key.index()).collect();
            keys.sort_by_key(|&key| doc.value_at_node_index(key).text());
            keys
        });
        let after = keys.partition_point(|&key| doc.value_at_node_index(key).text() <= name);
        let key = doc.value_at_node_index(*keys.get(after.checked_sub(1)?)?);
        // A key is one node, its value the next.
        key.text_is(name).then(|| (key, doc.value_at_node_index(key.index() + 1)))
    }
}

/// True if a container has so few nodes that it is searched each time instead of being indexed.
fn is_too_small_to_index(container: Value<'_>) -> bool {
    container.node_count() < 100
}
