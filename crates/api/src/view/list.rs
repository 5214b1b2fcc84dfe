//! Lists, maps and string lists of a document.
//!
//! `is_given` is true for a list that was written, even as `[]`, and false for one that is absent or `null`: Go
//! distinguishes nil and empty lists, and some messages of the API server depend on it.

use super::View;
use tollgate_document::doc::{Value, ValueKind};

/// A list whose items are read as typed views.
#[derive(Clone, Copy, Debug)]
pub struct List<'d, T> {
    value: Value<'d>,
    item: std::marker::PhantomData<T>,
}

impl<T> List<'_, T> {
    /// A list that is not there.
    pub const fn absent() -> Self {
        List { value: Value::absent(), item: std::marker::PhantomData }
    }
}

impl<'d, T: View<'d>> List<'d, T> {
    /// Returns the items of a JSON value as a list of views.
    pub fn from_json(value: Value<'d>) -> Self {
        List { value, item: std::marker::PhantomData }
    }

    /// True if the list is written, even as `[]`.
    pub fn is_given(self) -> bool {
        self.value.kind() == ValueKind::Array
    }

    /// Number of items.
    pub fn len(self) -> usize {
        self.value.len()
    }

    /// True if there are no items.
    pub fn is_empty(self) -> bool {
        self.value.is_empty()
    }

    /// Iterates over the items.
    pub fn iter(self) -> impl Iterator<Item = T> + Clone {
        self.value.items().map(T::of)
    }

    /// The JSON value of the list.
    pub fn value(self) -> Value<'d> {
        self.value
    }
}

/// A map whose values are read as typed views.
#[derive(Clone, Copy, Debug)]
pub struct Map<'d, T> {
    value: Value<'d>,
    item: std::marker::PhantomData<T>,
}

impl<'d, T: View<'d>> Map<'d, T> {
    /// Returns the members of a JSON value as a map of views.
    pub fn from_json(value: Value<'d>) -> Self {
        Map { value, item: std::marker::PhantomData }
    }

    /// Number of entries.
    pub fn len(self) -> usize {
        self.value.len()
    }

    /// True if there are no entries.
    pub fn is_empty(self) -> bool {
        self.value.is_empty()
    }

    /// The entries, in document order.
    pub fn iter(self) -> impl Iterator<Item = (&'d str, T)> + Clone {
        self.value.members().map(|(key, value)| (key.text(), T::of(value)))
    }

    /// The entry with that key; `None` if there is none.
    pub fn get(self, key: &str) -> Option<T> {
        let value = self.value.get(key);
        value.exists().then(|| T::of(value))
    }

    /// The JSON value of the map.
    pub fn value(self) -> Value<'d> {
        self.value
    }
}

/// A list of strings.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'d>(pub Value<'d>);

impl<'d> Strings<'d> {
    /// True if the list is written, even as `[]`.
    pub fn is_given(self) -> bool {
        self.0.kind() == ValueKind::Array
    }

    /// Number of strings.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// True if there are no strings.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The strings; a `null` item is the empty string.
    pub fn iter(self) -> impl Iterator<Item = &'d str> + Clone {
        self.0.items().map(Value::str)
    }

    /// True if one of the strings is `text`.
    pub fn contains(self, text: &str) -> bool {
        self.iter().any(|item| item == text)
    }
}
