//! The objects of a document: the object itself, or each item of a list.
//!
//! `kind: List` and every `…List` with items stand for their items, lists inside lists too. Items of a typed list
//! may leave out apiVersion and kind; they get those of the list, as kubectl gives them. kubectl takes anything with `items`
//! for a list, a ConfigMap too, and sends the items alone: objects in there count beside the object that they are in.
//!
//! Of a key that is given twice the last one counts, as for kubectl in JSON and in YAML.
//!
//! An item that is not an object is passed on, and the engine reports it.

use crate::doc::{Change, Doc, New, Value, ValueKind, apply};
use crate::field::{FieldPath, Path, Segment};

/// Lists inside lists at most; what is deeper is handed on as it is.
const MAX_LISTS: usize = 8;

/// One object.
#[derive(Debug)]
pub struct ListedObject<'d> {
    value: Value<'d>,
    /// With the list's apiVersion and kind, where the item has none.
    filled: Option<Doc<'d>>,
    /// The way from the document to the item: `items[3]` is `[3]`; empty for the document itself.
    pub indexes: Vec<usize>,
}

impl ListedObject<'_> {
    /// The object.
    pub fn value(&self) -> Value<'_> {
        self.filled.as_ref().map_or(self.value, Doc::root)
    }

    /// The path in the document of a path in the item: `items[3].spec.taint`.
    pub fn within(&self, path: FieldPath) -> FieldPath {
        self.indexes.iter().rev().fold(path, |path, &index| {
            path.within(&Path::ROOT.then(Segment::UserField("items")).own_index(index))
        })
    }
}

/// The objects of a document.
pub fn objects(root: Value<'_>) -> Objects<'_> {
    Objects { todo: vec![PendingList { value: root, indexes: Vec::new(), inherit: None }] }
}

/// An object with the apiVersion and kind of its list, unless it has its own.
pub fn with_type<'d>(value: Value<'d>, api_version: &'d str, kind: &'d str) -> ListedObject<'d> {
    item(value, Vec::new(), Some((api_version, kind)))
}

/// The lists among them: the document itself, and lists inside lists.
pub fn lists(root: Value<'_>) -> Vec<Value<'_>> {
    let mut found = Vec::new();
    let mut level = vec![root];
    for _ in 0..=MAX_LISTS {
        level.retain(|value| is_list(*value));
        found.extend(&level);
        level = level.iter().flat_map(|value| last(*value, "items").items()).collect();
    }
    found
}

fn is_list(value: Value<'_>) -> bool {
    last(value, "kind").str().ends_with("List") && last(value, "items").kind() == ValueKind::Array
}

/// The last member of that name.
pub fn last<'d>(object: Value<'d>, key: &str) -> Value<'d> {
    object.member(key).map_or(Value::absent(), |(_, value)| value)
}

/// The keys that decide what a list is and are given twice, in the order of the lists. kubectl takes the last of each, and
/// the API server never sees that there were two.
pub fn duplicate_keys(root: Value<'_>) -> Vec<FieldPath> {
    let mut found = Vec::new();
    let mut level = vec![item(root, Vec::new(), None)];
    for _ in 0..=MAX_LISTS {
        level.retain(|list| last(list.value, "items").exists());
        for list in &level {
            let count = |key: &str| list.value.members().filter(|(name, _)| name.text_is(key)).count();
            let twice = ["apiVersion", "kind", "items"].into_iter().filter(|key| count(key) > 1);
            found.extend(twice.map(|key| list.within(Path::ROOT.field(key).owned())));
        }
        level = level
            .iter()
            .flat_map(|list| {
                last(list.value, "items").items().enumerate().map(|(index, value)| {
                    let mut indexes = list.indexes.clone();
                    indexes.push(index);
                    item(value, indexes, None)
                })
            })
            .collect();
    }
    found
}

/// Iterator over the objects, in document order.
#[derive(Debug)]
pub struct Objects<'d> {
    todo: Vec<PendingList<'d>>,
}

#[derive(Debug)]
struct PendingList<'d> {
    value: Value<'d>,
    indexes: Vec<usize>,
    /// apiVersion and kind for an item that has neither.
    inherit: Option<(&'d str, &'d str)>,
}

impl<'d> Iterator for Objects<'d> {
    type Item = ListedObject<'d>;

    fn next(&mut self) -> Option<ListedObject<'d>> {
        loop {
            let PendingList { value, indexes, inherit } = self.todo.pop()?;
            let kind = last(value, "kind").str();
            let list = last(value, "items");
            if kind.is_empty() || list.kind() != ValueKind::Array || indexes.len() >= MAX_LISTS {
                return Some(item(value, indexes, inherit));
            }
            let item_kind = kind.strip_suffix("List");
            let inherited = item_kind.unwrap_or(kind);
            let inherited = (!inherited.is_empty()).then_some((last(value, "apiVersion").str(), inherited));
            let from = self.todo.len();
            let items = list.items().enumerate().filter(|(_, value)| item_kind.is_some() || is_typed(*value));
            self.todo.extend(items.map(|(index, value)| {
                let mut indexes = indexes.clone();
                indexes.push(index);
                PendingList { value, indexes, inherit: inherited }
            }));
            if let Some(added) = self.todo.get_mut(from..) {
                added.reverse();
            }
            if item_kind.is_none() {
                return Some(item(value, indexes, inherit));
            }
        }
    }
}

/// An object with both or none of apiVersion and kind: what kubectl could send.
fn is_typed(value: Value<'_>) -> bool {
    let is_given = |key| !last(value, key).str().is_empty();
    value.kind() == ValueKind::Object && is_given("kind") == is_given("apiVersion")
}

/// An item, with what it inherits.
// upstream v1.36 unstructuredJSONScheme.decodeToList
fn item<'d>(value: Value<'d>, indexes: Vec<usize>, inherit: Option<(&'d str, &'d str)>) -> ListedObject<'d> {
    let untyped = value.kind() == ValueKind::Object
        && last(value, "kind").str().is_empty()
        && last(value, "apiVersion").str().is_empty();
    let filled = inherit.filter(|_| untyped).map(|(api_version, kind)| {
        let add = |key, text: &str| Change::Add { object: value.index(), key, value: New::str(text) };
        apply(value, &[add("apiVersion", api_version), add("kind", kind)])
    });
    ListedObject { value, filled, indexes }
}
