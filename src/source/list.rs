//! The objects of a document: the object itself, or each item of a list.
//!
//! `kind: List` and every `…List` with items stand for their items, lists inside lists too. Items of a typed list
//! may leave out apiVersion and kind; they get those of the list, as kubectl gives them.
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
        level = level.iter().flat_map(|value| value.get("items").items()).collect();
    }
    found
}

fn is_list(value: Value<'_>) -> bool {
    value.get("kind").str().ends_with("List") && value.get("items").kind() == ValueKind::Array
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
            let kind = value.get("kind").str();
            let list = value.get("items");
            let Some(item_kind) = kind.strip_suffix("List").filter(|_| list.kind() == ValueKind::Array)
            else {
                return Some(item(value, indexes, inherit));
            };
            if indexes.len() >= MAX_LISTS {
                return Some(item(value, indexes, inherit));
            }
            let inherit = (!item_kind.is_empty()).then_some((value.get("apiVersion").str(), item_kind));
            let from = self.todo.len();
            self.todo.extend(list.items().enumerate().map(|(index, value)| {
                let mut indexes = indexes.clone();
                indexes.push(index);
                PendingList { value, indexes, inherit }
            }));
            if let Some(added) = self.todo.get_mut(from..) {
                added.reverse();
            }
        }
    }
}

/// An item, with what it inherits.
// upstream v1.36 unstructuredJSONScheme.decodeToList
fn item<'d>(value: Value<'d>, indexes: Vec<usize>, inherit: Option<(&'d str, &'d str)>) -> ListedObject<'d> {
    let untyped = value.kind() == ValueKind::Object
        && value.get("kind").str().is_empty()
        && value.get("apiVersion").str().is_empty();
    let filled = inherit.filter(|_| untyped).map(|(api_version, kind)| {
        let add = |key, text: &str| Change::Add { object: value.index(), key, value: New::str(text) };
        apply(value, &[add("apiVersion", api_version), add("kind", kind)])
    });
    ListedObject { value, filled, indexes }
}
