//! Lists and maps of values.
//!
//! As in cel-go, adding two lists copies no elements, because a short expression can build a list that does not fit
//! into memory, and only elements that are read have a cost. A loop fills its list or map in place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::value::{EvalFailure, Value, cost_limit_exceeded, go_panic_failure};

/// Maximum number of elements that are read at once. Evaluations that need more exceed the cost limit.
pub(super) const MAX_READ_ELEMENTS: usize = 4_000_000;

#[derive(Clone, Debug)]
pub(super) enum List {
    Items(Arc<Vec<Value>>),
    Joined(Arc<JoinedLists>),
    /// Items that a loop has collected so far.
    Growing(Arc<Mutex<Vec<Value>>>),
}

#[derive(Debug)]
pub(super) struct JoinedLists {
    left: List,
    right: List,
    size: usize,
}

impl List {
    pub(super) fn from_items(items: Vec<Value>) -> List {
        List::Items(Arc::new(items))
    }

    pub(super) fn new_growing() -> List {
        List::Growing(Arc::new(Mutex::new(Vec::new())))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            List::Items(items) => items.len(),
            List::Joined(sum) => sum.size,
            List::Growing(items) => lock_ignoring_poison(items).len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Value> {
        let (mut list, mut index) = (self, index);
        loop {
            match list {
                List::Items(items) => return items.get(index).cloned(),
                List::Growing(items) => return lock_ignoring_poison(items).get(index).cloned(),
                List::Joined(sum) => match index.checked_sub(sum.left.len()) {
                    Some(rest) => (list, index) = (&sum.right, rest),
                    None => list = &sum.left,
                },
            }
        }
    }

    /// The elements, if they are not too many to be read.
    pub(super) fn items(&self) -> Result<Arc<Vec<Value>>, EvalFailure> {
        match self {
            List::Items(items) => Ok(Arc::clone(items)),
            List::Growing(items) => Ok(Arc::new(lock_ignoring_poison(items).clone())),
            List::Joined(sum) if sum.size > MAX_READ_ELEMENTS => Err(cost_limit_exceeded()),
            List::Joined(_) => Ok(Arc::new(self.iter().collect())),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Value> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    pub(super) fn concat_or_extend_growing(&self, other: &List) -> Result<List, EvalFailure> {
        if let List::Growing(items) = self {
            let more = other.items()?;
            lock_ignoring_poison(items).extend(more.iter().cloned());
            return Ok(self.clone());
        }
        Ok(match (self.len(), other.len()) {
            (0, _) => other.clone(),
            (_, 0) => self.clone(),
            (left, right) => List::Joined(Arc::new(JoinedLists {
                left: self.clone(),
                right: other.clone(),
                size: left.saturating_add(right),
            })),
        })
    }

    /// Converts the items that a loop has collected into a list, after the loop has ended.
    pub(super) fn into_fixed(self) -> List {
        match self {
            List::Growing(items) => List::from_items(lock_ignoring_poison(&items).clone()),
            other => other,
        }
    }

    pub(super) fn go_type(&self) -> &'static str {
        match self {
            List::Items(_) => "*types.baseList",
            List::Joined(_) => "*types.concatList",
            List::Growing(_) => "*types.mutableList",
        }
    }
}

/// A map key, in the order in which maps are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a floating-point number that does not equal an integer.
    Double(u64),
    String(Arc<str>),
    Type(&'static str),
    Duration(i64),
    Null,
    /// A value that equals only itself, identified by its address.
    Identity(usize),
}

impl Key {
    /// Converts a value to a map key. Fails for bytes, versions and named formats, for which Go panics.
    pub(super) fn from_value(value: &Value) -> Result<Key, EvalFailure> {
        Ok(match value {
            Value::Null => Key::Null,
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => Key::Uint(*value),
            Value::Double(value) => Key::Double(if *value == 0.0 { 0 } else { value.to_bits() }),
            Value::String(text) => Key::String(Arc::clone(text)),
            Value::Type(name) => Key::Type(name),
            Value::Duration(nanos) => Key::Duration(*nanos),
            Value::Bytes(_) | Value::Semver(_) | Value::Format(_) => {
                let what = format!("runtime error: hash of unhashable type {}", value.go_type());
                return Err(go_panic_failure(&what));
            }
            Value::Map(map) => Key::Identity(Arc::as_ptr(map).addr()),
            Value::List(List::Items(items)) => Key::Identity(Arc::as_ptr(items).addr()),
            Value::List(List::Joined(sum)) => Key::Identity(Arc::as_ptr(sum).addr()),
            Value::List(List::Growing(items)) => Key::Identity(Arc::as_ptr(items).addr()),
            Value::Url(url) => Key::Identity(Arc::as_ptr(url).addr()),
            Value::Optional(Some(inner)) => Key::Identity(Arc::as_ptr(inner).addr()),
            Value::Optional(None) => Key::Identity(0),
            Value::Quantity(quantity) => Key::Identity(quantity.cell_address()),
            Value::Timestamp(moment) => {
                Key::String(format!("{} {}", moment.time.seconds, moment.time.nanos).into())
            }
            Value::Ip(address) => Key::String(address.to_string().into()),
            Value::Cidr(prefix) => Key::String(prefix.to_string().into()),
        })
    }
}

/// How a map looks up keys, and what indexing returns for missing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapLookup {
    /// A map of the language: numbers of different types are the same key if they are equal.
    Values,
    /// A map of the device whose keys are names.
    Names,
    /// `device.attributes` or `device.capacity`: every domain exists as a key, and most have an empty map.
    Domains,
}

#[derive(Debug)]
pub(super) struct Map {
    entries: FixedOrGrowingEntries,
    kind: MapLookup,
}

type Pairs = BTreeMap<Key, (Value, Value)>;

#[derive(Debug)]
enum FixedOrGrowingEntries {
    Fixed(Pairs),
    /// Entries that a loop has collected so far.
    Growing(Mutex<Pairs>),
}

impl Map {
    pub(super) fn from_pairs(pairs: Pairs, kind: MapLookup) -> Map {
        Map { entries: FixedOrGrowingEntries::Fixed(pairs), kind }
    }

    /// Creates a map with string keys.
    pub(super) fn of_names(entries: impl IntoIterator<Item = (Arc<str>, Value)>, kind: MapLookup) -> Map {
        let pair =
            |(name, value): (Arc<str>, Value)| (Key::String(Arc::clone(&name)), (Value::String(name), value));
        Map::from_pairs(entries.into_iter().map(pair).collect(), kind)
    }

    pub(super) fn new_growing() -> Map {
        Map { entries: FixedOrGrowingEntries::Growing(Mutex::new(Pairs::new())), kind: MapLookup::Values }
    }

    fn with_pairs<T>(&self, look: impl FnOnce(&Pairs) -> T) -> T {
        match &self.entries {
            FixedOrGrowingEntries::Fixed(pairs) => look(pairs),
            FixedOrGrowingEntries::Growing(pairs) => look(&lock_ignoring_poison(pairs)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.with_pairs(BTreeMap::len)
    }

    /// The value of an entry with this key; `None` if there is no such entry.
    pub(super) fn existing_value(&self, key: &Value) -> Result<Option<Value>, EvalFailure> {
        if self.len() == 0 || (self.kind != MapLookup::Values && key.as_str().is_none()) {
            return Ok(None);
        }
        let found = |key: &Key| self.with_pairs(|pairs| pairs.get(key).map(|(_, value)| value.clone()));
        Ok(found(&Key::from_value(key)?)
            .or_else(|| equal_keys_of_other_number_types(key).iter().find_map(found)))
    }

    /// The value that indexing the map with this key returns, which may be a default; `None` if it is an error.
    pub(super) fn indexed_value_or_default(&self, key: &Value) -> Result<Option<Value>, EvalFailure> {
        let default = || Value::Map(Arc::new(Map::from_pairs(Pairs::new(), MapLookup::Names)));
        Ok(self.existing_value(key)?.or_else(|| (self.kind == MapLookup::Domains).then(default)))
    }

    pub(super) fn entries(&self) -> Vec<(Value, Value)> {
        self.with_pairs(|pairs| pairs.values().cloned().collect())
    }

    pub(super) fn first(&self) -> Option<(Value, Value)> {
        self.with_pairs(|pairs| pairs.values().next().cloned())
    }

    /// Adds an entry to the map that a loop is filling. `false`, and nothing is added, if this is no such map.
    pub(super) fn insert_if_growing(&self, key: &Value, value: &Value) -> Result<bool, EvalFailure> {
        let FixedOrGrowingEntries::Growing(pairs) = &self.entries else { return Ok(false) };
        let entry = (key.clone(), value.clone());
        lock_ignoring_poison(pairs).insert(Key::from_value(key)?, entry);
        Ok(true)
    }

    /// Returns a copy that does not change any more.
    pub(super) fn to_fixed(&self) -> Map {
        Map::from_pairs(self.with_pairs(Clone::clone), self.kind)
    }

    pub(super) fn is_growing(&self) -> bool {
        matches!(self.entries, FixedOrGrowingEntries::Growing(_))
    }

    pub(super) fn go_type(&self) -> &'static str {
        match (&self.entries, self.kind) {
            (_, MapLookup::Domains) => "cel.mapper",
            (FixedOrGrowingEntries::Growing(_), _) => "*types.mutableMap",
            _ => "*types.baseMap",
        }
    }
}

/// The keys of other number types under which a number is looked up as well.
pub(super) fn equal_keys_of_other_number_types(key: &Value) -> Vec<Key> {
    match key {
        Value::Double(value) => {
            let int = super::compare::lossless_int(*value).map(Key::Int);
            int.into_iter().chain(super::compare::lossless_uint(*value).map(Key::Uint)).collect()
        }
        Value::Int(value) => u64::try_from(*value).map(Key::Uint).into_iter().collect(),
        Value::Uint(value) => i64::try_from(*value).map(Key::Int).into_iter().collect(),
        _ => Vec::new(),
    }
}

pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
