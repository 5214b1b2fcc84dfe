//! Values for the CEL interpreter: JSON values, and the lists and maps that expressions create. Strings are borrowed
//! and containers are shared, so that they are not copied.
//!
//! The items of a JSON list and the members of an object become values when an expression first uses them, and cost
//! steps by their number: an object with a hundred thousand of them costs a policy about its name nothing. Members are
//! sorted by key, so that a lookup is a binary search; of duplicates the last counts, as everywhere. The interpreter
//! copies items into loop variables, so containers are reference-counted. `null` is null; a number with a fraction, or
//! too large for int, is a double.
//!
//! Invariant: what is kept in memory is at most 20 bytes for each step that was charged. Without steps, a container is
//! empty, and the evaluation has failed.

use std::sync::{Arc, OnceLock};

use ::cel::ExecutionError;
use ::cel::common::traits::{self, Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use ::cel::common::types::{
    self, CelBool, CelDouble, CelInt, CelList, CelMap, CelNull, CelString, CelUInt, Type,
};
use ::cel::common::value::{CowVal, Val};

use super::functions::{charge_steps, charged_deep_equals, copy_cost, no_such_overload};
use super::meter::charge;
use tollgate_document::doc::{Value, ValueKind};

/// Steps for making a value of a JSON item, or a copy of it for another list.
const JSON_ITEM_COST: u64 = 2;
/// Steps for making values of a member of a JSON object and sorting it in.
const JSON_MEMBER_COST: u64 = 4;

/// A value of a JSON document, as the CEL interpreter reads it.
#[derive(Clone, Debug)]
pub(super) enum JsonVal<'d> {
    Null(CelNull),
    Bool(CelBool),
    Int(CelInt),
    Double(CelDouble),
    Str(CelString<'d>),
    List(SharedList<'d>),
    Map(SharedMap<'d>),
}

/// A CEL list: of a JSON document, converted on first use, or made by an expression.
#[derive(Clone, Debug)]
pub(super) enum SharedList<'d> {
    Json { list: Value<'d>, items: OnceLock<Arc<Vec<JsonVal<'d>>>> },
    ExpressionResult(Arc<ComputedContainer<CelList<'d>>>),
}

/// A CEL map: of a JSON document, converted on first use, or made by an expression.
#[derive(Clone, Debug)]
pub(super) enum SharedMap<'d> {
    Json { object: Value<'d>, members: OnceLock<Arc<Vec<JsonMember<'d>>>> },
    ExpressionResult(Arc<ComputedContainer<CelMap<'d>>>),
}

type JsonMember<'d> = (CelString<'d>, JsonVal<'d>);

/// A list or map that an expression made, such as the result of `map`.
#[derive(Debug)]
pub(super) struct ComputedContainer<T> {
    container: T,
    /// Steps for a loop that copies each of its items or keys.
    loop_cost: u64,
}

impl<'d> JsonVal<'d> {
    /// Converts a JSON value; an absent value becomes null.
    pub(super) fn from_json(value: Value<'d>) -> JsonVal<'d> {
        match value.kind() {
            ValueKind::Null => JsonVal::Null(CelNull),
            ValueKind::Bool => JsonVal::Bool(value.bool().unwrap_or_default().into()),
            ValueKind::Number => match value.int() {
                Some(number) => JsonVal::Int(number.into()),
                None => JsonVal::Double(value.text().parse::<f64>().unwrap_or(f64::NAN).into()),
            },
            ValueKind::String => JsonVal::Str(CelString::from(value.text())),
            ValueKind::Array => JsonVal::List(SharedList::Json { list: value, items: OnceLock::new() }),
            ValueKind::Object => JsonVal::Map(SharedMap::Json { object: value, members: OnceLock::new() }),
        }
    }

    /// Returns the value as the interpreter's trait object.
    pub(super) fn as_val<'b, 'v>(&'b self) -> &'b (dyn Val + 'v)
    where
        'd: 'v,
    {
        match self {
            JsonVal::Null(value) => value,
            JsonVal::Bool(value) => value,
            JsonVal::Int(value) => value,
            JsonVal::Double(value) => value,
            JsonVal::Str(value) => value,
            JsonVal::List(value) => value,
            JsonVal::Map(value) => value,
        }
    }
}

/// Returns the steps for reading the digits of a number, of which there can be a million; 0 for other values.
fn digits_cost(value: Value<'_>) -> u64 {
    if value.kind() == ValueKind::Number { (value.text().len() / 8) as u64 } else { 0 }
}

impl<'d> SharedList<'d> {
    /// Wraps a list that an expression made, so that copies of it share the items.
    pub(super) fn from_computed(list: CelList<'d>) -> SharedList<'d> {
        let loop_cost = list.inner().iter().map(|item| 1 + copy_cost(item.as_ref())).sum();
        SharedList::ExpressionResult(Arc::new(ComputedContainer { container: list, loop_cost }))
    }
}

/// Returns the values of a JSON list, which are made and charged for on first use; empty if the steps do not suffice.
fn charged_json_items<'b, 'd>(
    list: Value<'d>,
    made: &'b OnceLock<Arc<Vec<JsonVal<'d>>>>,
) -> &'b [JsonVal<'d>] {
    if made.get().is_none() {
        let (count, digits) =
            list.items().fold((0, 0), |(count, digits), item| (count + 1, digits + digits_cost(item)));
        // Nothing is remembered if the steps do not suffice: they may suffice for the next expression.
        if !charge(JSON_ITEM_COST * count as u64 + digits) {
            return &[];
        }
        made.get_or_init(|| {
            let mut items = Vec::with_capacity(count);
            items.extend(list.items().map(JsonVal::from_json));
            Arc::new(items)
        });
    }
    made.get().map_or(&[], |items| items.as_slice())
}

/// Returns the members of a JSON object, sorted by key, which are made and charged for on first use; empty if the steps
/// do not suffice.
fn charged_sorted_json_members<'b, 'd>(
    object: Value<'d>,
    made: &'b OnceLock<Arc<Vec<JsonMember<'d>>>>,
) -> &'b [JsonMember<'d>] {
    if made.get().is_none() {
        let (count, texts) = object.members().fold((0, 0), |(count, texts), (key, value)| {
            (count + 1, texts + (key.text().len() / 8) as u64 + digits_cost(value))
        });
        if !charge(JSON_MEMBER_COST * count as u64 + texts) {
            return &[];
        }
        made.get_or_init(|| {
            let mut keys: Vec<Value<'d>> = Vec::with_capacity(count);
            keys.extend(object.members().map(|(key, _)| key));
            keys.sort_unstable_by(|one, other| (one.text(), one.index()).cmp(&(other.text(), other.index())));
            keys.dedup_by(|next, last| {
                let is_same = next.text() == last.text();
                if is_same {
                    *last = *next;
                }
                is_same
            });
            let mut members = Vec::with_capacity(keys.len());
            // On the tape, a value follows its key.
            members.extend(keys.into_iter().map(|key| {
                (
                    CelString::from(key.text()),
                    JsonVal::from_json(key.doc().value_at_node_index(key.index() + 1)),
                )
            }));
            Arc::new(members)
        });
    }
    made.get().map_or(&[], |members| members.as_slice())
}

/// Methods that lists and maps share as values of the interpreter.
macro_rules! container_methods {
    ($cel_type:expr) => {
        fn get_type(&self) -> &Type {
            <Self as Val>::cel_type()
        }

        fn cel_type() -> &'static Type {
            $cel_type
        }

        fn as_container(&self) -> Option<&dyn Container> {
            Some(self)
        }

        fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
        where
            Self: 'v,
        {
            Some(self)
        }

        fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
        where
            Self: 'v,
        {
            Some(self)
        }

        fn as_sizer(&self) -> Option<&dyn Sizer> {
            Some(self)
        }

        fn as_zeroer(&self) -> Option<&dyn Zeroer> {
            Some(self)
        }

        fn equals(&self, other: &dyn Val) -> bool {
            charged_deep_equals(self, other)
        }

        fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
        where
            Self: 'v,
        {
            Box::new(self.clone())
        }
    };
}

impl Val for SharedList<'_> {
    container_methods!(&types::LIST_TYPE);

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
}

impl Val for SharedMap<'_> {
    container_methods!(&types::MAP_TYPE);
}

impl Adder for SharedList<'_> {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let (Some(more), Some(count)) = (other.as_iterable(), other.as_sizer().map(Sizer::size)) else {
            return Err(no_such_overload("_+_", [self as &dyn Val, other]));
        };
        let count = u64::try_from(*self.size().inner() + *count.inner()).unwrap_or_default();
        charge_steps(JSON_ITEM_COST * count)?;
        let mut all: Vec<Box<dyn Val + 'v>> = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        for mut items in [self.iter(), more.iter()] {
            while let Some(item) = items.next() {
                all.push(item.clone_as_boxed());
            }
        }
        Ok(CowVal::owned(SharedList::from_computed(CelList::from(all))))
    }
}

impl Container for SharedList<'_> {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        let mut items = self.iter();
        while let Some(item) = items.next() {
            if charged_deep_equals(item, value) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Indexer for SharedList<'_> {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let number = if let Some(number) = index.downcast_ref::<CelInt>() {
            Some(*number.inner())
        } else if let Some(number) = index.downcast_ref::<CelUInt>() {
            i64::try_from(*number.inner()).ok()
        } else {
            // The text of a double has a fraction unless it is a whole number.
            index.downcast_ref::<CelDouble>().and_then(|number| number.inner().to_string().parse().ok())
        };
        let Some(number) = number else {
            let (got, want) = (index.get_type().name().to_owned(), "int".to_owned());
            return Err(ExecutionError::UnexpectedType { got, want });
        };
        let out_of_bounds = || ExecutionError::IndexOutOfBounds(number.into());
        let place = usize::try_from(number).map_err(|_negative| out_of_bounds())?;
        let item = match self {
            SharedList::Json { list, items } => {
                charged_json_items(*list, items).get(place).map(JsonVal::as_val)
            }
            SharedList::ExpressionResult(made) => {
                let item = made.container.inner().get(place).map(AsRef::as_ref);
                charge_steps(item.map_or(0, copy_cost))?;
                item
            }
        };
        item.map(CowVal::Borrowed).ok_or_else(out_of_bounds)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Iterable for SharedList<'_> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        match self {
            SharedList::Json { list, items: made } => {
                Box::new(ItemIterator(charged_json_items(*list, made).iter()))
            }
            SharedList::ExpressionResult(made) if charge(made.loop_cost) => made.container.iter(),
            SharedList::ExpressionResult(_) => Box::new(ItemIterator([].iter())),
        }
    }
}

impl Sizer for SharedList<'_> {
    fn size(&self) -> CelInt {
        match self {
            SharedList::Json { list, items } => {
                cel_int(items.get().map_or_else(|| list.len(), |items| items.len()))
            }
            SharedList::ExpressionResult(made) => made.container.size(),
        }
    }
}

impl Zeroer for SharedList<'_> {
    fn is_zero_value(&self) -> bool {
        match self {
            SharedList::Json { list, .. } => list.is_empty(),
            SharedList::ExpressionResult(made) => made.container.is_zero_value(),
        }
    }
}

impl<'d> SharedMap<'d> {
    /// Wraps a map that an expression made, so that copies of it share the entries.
    pub(super) fn from_computed(map: CelMap<'d>) -> SharedMap<'d> {
        let loop_cost = map.inner().keys().map(|key| 1 + copy_cost(key.inner())).sum();
        SharedMap::ExpressionResult(Arc::new(ComputedContainer { container: map, loop_cost }))
    }
}

impl Container for SharedMap<'_> {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        match self {
            SharedMap::Json { .. } => Ok(self.get(key).is_ok()),
            SharedMap::ExpressionResult(made) => made.container.contains(key),
        }
    }
}

impl Indexer for SharedMap<'_> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = key.downcast_ref::<CelString<'_>>().map(CelString::inner);
        // The key is compared, or hashed, and copied into an error if there is none.
        let length = name.map_or(0, str::len) as u64;
        charge_steps(1 + length / 8)?;
        let (object, made) = match self {
            SharedMap::Json { object, members } => (*object, members),
            SharedMap::ExpressionResult(made) => {
                let found = made.container.get(key)?;
                // The interpreter may copy it.
                charge_steps(copy_cost(found.as_ref()))?;
                return Ok(found);
            }
        };
        let Some(name) = name else { return Err(ExecutionError::no_such_key(key.get_type().name())) };
        let members = charged_sorted_json_members(object, made);
        match members.binary_search_by(|(known, _)| known.inner().cmp(name)) {
            Ok(place) => members.get(place).map(|(_, value)| CowVal::Borrowed(value.as_val())),
            Err(_) => None,
        }
        .ok_or_else(|| ExecutionError::no_such_key(name))
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}

impl Iterable for SharedMap<'_> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        match self {
            SharedMap::Json { object, members: made } => {
                Box::new(KeyIterator(charged_sorted_json_members(*object, made).iter()))
            }
            SharedMap::ExpressionResult(made) if charge(made.loop_cost) => made.container.iter(),
            SharedMap::ExpressionResult(_) => Box::new(KeyIterator([].iter())),
        }
    }
}

impl Sizer for SharedMap<'_> {
    fn size(&self) -> CelInt {
        match self {
            // Duplicates do not count.
            SharedMap::Json { object, members: made } => {
                cel_int(charged_sorted_json_members(*object, made).len())
            }
            SharedMap::ExpressionResult(made) => made.container.size(),
        }
    }
}

impl Zeroer for SharedMap<'_> {
    fn is_zero_value(&self) -> bool {
        match self {
            SharedMap::Json { object, .. } => object.is_empty(),
            SharedMap::ExpressionResult(made) => made.container.is_zero_value(),
        }
    }
}

/// Iterates over the items of a JSON list, for the interpreter.
struct ItemIterator<'b, 'd>(std::slice::Iter<'b, JsonVal<'d>>);

impl<'b, 'd: 'v, 'v> traits::Iterator<'b, 'v> for ItemIterator<'b, 'd> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(JsonVal::as_val)
    }
}

/// Iterates over the keys of a JSON object, for the interpreter.
struct KeyIterator<'b, 'd>(std::slice::Iter<'b, JsonMember<'d>>);

impl<'b, 'd: 'v, 'v> traits::Iterator<'b, 'v> for KeyIterator<'b, 'd> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|(key, _)| key as _)
    }
}

fn cel_int(length: usize) -> CelInt {
    i64::try_from(length).unwrap_or(i64::MAX).into()
}
