//! The objects of a document: the object itself, or each item of a list.
//!
//! `kind: List` and every `…List` with items stand for their items. Lists inside of lists are read too, because dumps
//! may have them; kubectl rejects them. Items of a typed list may leave out apiVersion and kind; they get those of the list, as kubectl gives them. kubectl takes anything with
//! `items` for a list, a ConfigMap too, and sends the items alone: objects in there count beside the object that they
//! are in.
//!
//! Of a key that is given twice the last one counts, as for kubectl in JSON and in YAML.
//!
//! An item that is not an object is passed on, and the engine reports it.

use std::cell::OnceCell;

use crate::doc::{Doc, DocChange, OwnedJsonValue, Value, ValueKind, apply_changes};
use crate::field::{FieldPath, Path, Segment};

/// Maximum nesting of lists. Deeper lists are treated as objects.
const MAX_LIST_NESTING: usize = 8;

/// An object of a document: the document itself, or an item of a list.
#[derive(Debug)]
pub struct DocumentObject<'d> {
    value: Value<'d>,
    /// The apiVersion and kind of the list, if the item has neither.
    inherited: Option<(&'d str, &'d str)>,
    /// A copy with the apiVersion and kind of the list, created on first use.
    filled: OnceCell<Doc<'d>>,
    /// The indices from the document to the item: `items[3]` is `[3]`; empty for the document itself.
    pub indexes: Vec<usize>,
}

impl<'d> DocumentObject<'d> {
    /// The object, with the apiVersion and kind of its list if it has neither.
    pub fn typed_value(&self) -> Value<'_> {
        let Some((api_version, kind)) = self.inherited else { return self.value };
        let fill = || {
            let object = self.value.index();
            let add = |key, text: &str| DocChange::Add { object, key, value: OwnedJsonValue::str(text) };
            apply_changes(self.value, &[add("apiVersion", api_version), add("kind", kind)])
        };
        self.filled.get_or_init(fill).root()
    }

    /// The object as it is in its document, possibly without apiVersion and kind. It lives as long as the document.
    pub fn value_as_written(&self) -> Value<'d> {
        self.value
    }

    /// The apiVersion and kind of the object, or those of its list if it has neither.
    pub fn api_version_and_kind(&self) -> (&'d str, &'d str) {
        let own = || (last_member(self.value, "apiVersion").str(), last_member(self.value, "kind").str());
        self.inherited.unwrap_or_else(own)
    }

    /// Turns a path in this object into the path in its document: `spec.taint` into `items[3].spec.taint`.
    pub fn path_in_document(&self, path: FieldPath) -> FieldPath {
        self.indexes.iter().rev().fold(path, |path, &index| {
            path.with_prefix(&Path::ROOT.with_segment(Segment::UserField("items")).user_only_index(index))
        })
    }
}

/// The objects of a document: the root itself, or the items of a list and of lists in it.
pub fn objects(root: Value<'_>) -> Objects<'_> {
    Objects { todo: vec![listed_object(root, Vec::new(), None)] }
}

/// An object with the apiVersion and kind of its list, unless it has its own.
pub fn with_inherited_type_if_untyped<'d>(
    value: Value<'d>,
    api_version: &'d str,
    kind: &'d str,
) -> DocumentObject<'d> {
    listed_object(value, Vec::new(), Some((api_version, kind)))
}

/// Returns the root of a document if it is a list, and all lists inside of it.
pub fn all_lists(root: Value<'_>) -> Vec<Value<'_>> {
    let mut found = Vec::new();
    let mut level = vec![root];
    for _ in 0..=MAX_LIST_NESTING {
        level.retain(|value| is_kubernetes_list(*value));
        found.extend(&level);
        level = level.iter().flat_map(|value| last_member(*value, "items").items()).collect();
    }
    found
}

/// True if the kind ends with `List` and `items` is a list.
fn is_kubernetes_list(value: Value<'_>) -> bool {
    last_member(value, "kind").str().ends_with("List")
        && last_member(value, "items").kind() == ValueKind::Array
}

/// The value of the last member with that key; absent if there is none.
pub fn last_member<'d>(object: Value<'d>, key: &str) -> Value<'d> {
    object.last_key_and_value(key).map_or(Value::absent(), |(_, value)| value)
}

/// The paths of `apiVersion`, `kind` and `items` that a list has more than once. kubectl takes the last of each, and
/// the API server never sees that there were two.
pub fn duplicate_type_or_items_keys_of_lists(root: Value<'_>) -> Vec<FieldPath> {
    let mut found = Vec::new();
    let mut level = vec![listed_object(root, Vec::new(), None)];
    for _ in 0..=MAX_LIST_NESTING {
        level.retain(|list| last_member(list.value, "items").exists());
        for list in &level {
            let count = |key: &str| list.value.members().filter(|(name, _)| name.text_is(key)).count();
            let twice = ["apiVersion", "kind", "items"].into_iter().filter(|key| count(key) > 1);
            found.extend(twice.map(|key| list.path_in_document(Path::ROOT.field(key).owned())));
        }
        level = level
            .iter()
            .flat_map(|list| {
                last_member(list.value, "items").items().enumerate().map(|(index, value)| {
                    listed_object(value, [list.indexes.as_slice(), &[index]].concat(), None)
                })
            })
            .collect();
    }
    found
}

/// Iterator over the objects, in document order.
#[derive(Debug)]
pub struct Objects<'d> {
    /// The objects and lists that are not visited yet, the next one last.
    todo: Vec<DocumentObject<'d>>,
}

impl<'d> Iterator for Objects<'d> {
    type Item = DocumentObject<'d>;

    fn next(&mut self) -> Option<DocumentObject<'d>> {
        loop {
            let object = self.todo.pop()?;
            let (value, indexes) = (object.value, &object.indexes);
            let kind = last_member(value, "kind").str();
            let list = last_member(value, "items");
            if kind.is_empty() || list.kind() != ValueKind::Array || indexes.len() >= MAX_LIST_NESTING {
                return Some(object);
            }
            let item_kind = kind.strip_suffix("List");
            let inherited = item_kind.unwrap_or(kind);
            let inherited =
                (!inherited.is_empty()).then_some((last_member(value, "apiVersion").str(), inherited));
            let from = self.todo.len();
            let items = list
                .items()
                .enumerate()
                .filter(|(_, value)| item_kind.is_some() || has_api_version_iff_kind(*value));
            self.todo.extend(items.map(|(index, value)| {
                listed_object(value, [indexes.as_slice(), &[index]].concat(), inherited)
            }));
            if let Some(added) = self.todo.get_mut(from..) {
                added.reverse();
            }
            if item_kind.is_none() {
                return Some(object);
            }
        }
    }
}

/// True for an object that has both or neither of apiVersion and kind, which kubectl could send.
fn has_api_version_iff_kind(value: Value<'_>) -> bool {
    let is_given = |key| !last_member(value, key).str().is_empty();
    value.kind() == ValueKind::Object && is_given("kind") == is_given("apiVersion")
}

/// An object of a list; gets the apiVersion and kind in `inherit` if it has neither.
// upstream v1.36 unstructuredJSONScheme.decodeToList
fn listed_object<'d>(
    value: Value<'d>,
    indexes: Vec<usize>,
    inherit: Option<(&'d str, &'d str)>,
) -> DocumentObject<'d> {
    let untyped = value.kind() == ValueKind::Object
        && last_member(value, "kind").str().is_empty()
        && last_member(value, "apiVersion").str().is_empty();
    DocumentObject { value, inherited: inherit.filter(|_| untyped), filled: OnceCell::new(), indexes }
}
