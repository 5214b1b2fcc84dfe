//! JSON as values of CEL: strings borrowed, containers shared, integers as int.
//!
//! The interpreter borrows items and copies them into loop variables, so containers are reference-counted and copies
//! are cheap. Objects are maps, `null` is null, a number with a fraction or too large for int is a double.
//!
//! Invariant: documents deeper than [`MAX_DEPTH`] are refused, so that no recursion can overflow the stack.

use std::sync::Arc;

use ::cel::ExecutionError;
use ::cel::common::traits::{self, Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use ::cel::common::types::{self, CelBool, CelDouble, CelInt, CelList, CelNull, CelString, CelUInt, Type};
use ::cel::common::value::{CowVal, Val};

use super::functions::deep_equals;
use crate::doc::{Value, ValueKind};

/// Maximum nesting of a document.
const MAX_DEPTH: usize = 200;

/// One value.
#[derive(Clone, Debug)]
pub(super) enum JsonVal<'d> {
    Null(CelNull),
    Bool(CelBool),
    Int(CelInt),
    Double(CelDouble),
    Str(CelString<'d>),
    List(List<'d>),
    Map(Map<'d>),
}

/// A list.
#[derive(Clone, Debug)]
pub(super) struct List<'d>(Arc<[JsonVal<'d>]>);

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Map<'d>(Arc<[(CelString<'d>, JsonVal<'d>)]>);

impl<'d> JsonVal<'d> {
    /// The tree of a value; absent is null.
    pub(super) fn of(value: Value<'d>) -> Result<JsonVal<'d>, String> {
        JsonVal::at_depth(value, 0)
    }

    fn at_depth(value: Value<'d>, depth: usize) -> Result<JsonVal<'d>, String> {
        if depth > MAX_DEPTH {
            return Err(format!("cannot evaluate an object that is nested deeper than {MAX_DEPTH} levels"));
        }
        Ok(match value.kind() {
            ValueKind::Null => JsonVal::Null(CelNull),
            ValueKind::Bool => JsonVal::Bool(value.bool().unwrap_or_default().into()),
            ValueKind::Number => match value.int() {
                Some(number) => JsonVal::Int(number.into()),
                None => JsonVal::Double(value.text().parse::<f64>().unwrap_or(f64::NAN).into()),
            },
            ValueKind::String => JsonVal::Str(CelString::from(value.text())),
            ValueKind::Array => {
                let items: Result<Vec<_>, _> =
                    value.items().map(|item| JsonVal::at_depth(item, depth + 1)).collect();
                JsonVal::List(List(items?.into()))
            }
            ValueKind::Object => {
                let mut members: Vec<(CelString<'d>, JsonVal<'d>)> = Vec::new();
                for (key, member) in value.members() {
                    members.push((CelString::from(key.text()), JsonVal::at_depth(member, depth + 1)?));
                }
                JsonVal::Map(Map(members.into()))
            }
        })
    }

    /// The value as the interpreter's trait object.
    pub(super) fn boxed(self) -> Box<dyn Val + 'd> {
        match self {
            JsonVal::Null(value) => Box::new(value),
            JsonVal::Bool(value) => Box::new(value),
            JsonVal::Int(value) => Box::new(value),
            JsonVal::Double(value) => Box::new(value),
            JsonVal::Str(value) => Box::new(value),
            JsonVal::List(value) => Box::new(value),
            JsonVal::Map(value) => Box::new(value),
        }
    }

    fn as_val<'b, 'v>(&'b self) -> &'b (dyn Val + 'v)
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

/// What lists and maps have in common as values of the interpreter.
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
            deep_equals(self, other)
        }

        fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
        where
            Self: 'v,
        {
            Box::new(self.clone())
        }
    };
}

impl Val for List<'_> {
    container_methods!(&types::LIST_TYPE);

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
}

impl Val for Map<'_> {
    container_methods!(&types::MAP_TYPE);
}

impl Adder for List<'_> {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(more) = other.as_iterable() else {
            let types = vec!["list".to_owned(), other.get_type().name().to_owned()];
            return Err(ExecutionError::no_such_overload("_+_", types));
        };
        let mut all: Vec<Box<dyn Val + 'v>> =
            self.0.iter().map(|item| item.as_val().clone_as_boxed()).collect();
        let mut more = more.iter();
        while let Some(item) = more.next() {
            all.push(item.clone_as_boxed());
        }
        Ok(CowVal::owned(CelList::from(all)))
    }
}

impl Container for List<'_> {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.0.iter().any(|item| deep_equals(item.as_val(), value)))
    }
}

impl Indexer for List<'_> {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let number = index.downcast_ref::<CelInt>().map(|number| usize::try_from(*number.inner()).ok());
        let number =
            number.or_else(|| index.downcast_ref::<CelUInt>().map(|n| usize::try_from(*n.inner()).ok()));
        let Some(number) = number else {
            let (got, want) = (index.get_type().name().to_owned(), "int".to_owned());
            return Err(ExecutionError::UnexpectedType { got, want });
        };
        let item = number.and_then(|number| self.0.get(number));
        let out_of_bounds = || {
            let index = number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1);
            ExecutionError::IndexOutOfBounds(index.into())
        };
        item.map(|item| CowVal::Borrowed(item.as_val())).ok_or_else(out_of_bounds)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Iterable for List<'_> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Items(self.0.iter()))
    }
}

impl Sizer for List<'_> {
    fn size(&self) -> CelInt {
        size(self.0.len())
    }
}

impl Zeroer for List<'_> {
    fn is_zero_value(&self) -> bool {
        self.0.is_empty()
    }
}

impl Map<'_> {
    fn find(&self, key: &dyn Val) -> Option<&JsonVal<'_>> {
        let key = key.downcast_ref::<CelString<'_>>()?;
        // The last duplicate counts, as everywhere.
        self.0.iter().rev().find(|(name, _)| name.inner() == key.inner()).map(|(_, value)| value)
    }
}

impl Container for Map<'_> {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(key).is_some())
    }
}

impl<'d> Indexer for Map<'d> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(name) = key.downcast_ref::<CelString<'_>>() else {
            return Err(ExecutionError::no_such_key(key.get_type().name()));
        };
        let members: &'b [(CelString<'d>, JsonVal<'d>)] = &self.0;
        let found = members.iter().rev().find(|(known, _)| known.inner() == name.inner());
        found
            .map(|(_, value)| CowVal::Borrowed(value.as_val()))
            .ok_or_else(|| ExecutionError::no_such_key(name.inner()))
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}

impl Iterable for Map<'_> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn traits::Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys(self.0.iter()))
    }
}

impl Sizer for Map<'_> {
    fn size(&self) -> CelInt {
        size(self.0.len())
    }
}

impl Zeroer for Map<'_> {
    fn is_zero_value(&self) -> bool {
        self.0.is_empty()
    }
}

/// Iterator over items.
struct Items<'b, 'd>(std::slice::Iter<'b, JsonVal<'d>>);

impl<'b, 'd: 'v, 'v> traits::Iterator<'b, 'v> for Items<'b, 'd> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(JsonVal::as_val)
    }
}

/// Iterator over keys.
struct Keys<'b, 'd>(std::slice::Iter<'b, (CelString<'d>, JsonVal<'d>)>);

impl<'b, 'd: 'v, 'v> traits::Iterator<'b, 'v> for Keys<'b, 'd> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|(key, _)| key as _)
    }
}

fn size(length: usize) -> CelInt {
    i64::try_from(length).unwrap_or(i64::MAX).into()
}
