//! The functions of the libraries for another interpreter, which has its own values: the one that evaluates policies.
//!
//! That interpreter passes values of the basic types, and lists and maps of them, and gets values of the Kubernetes
//! types, which it can pass again. Nothing here counts cost.
//!
//! Invariant: a function gets only arguments of the types that it is declared with.

use std::cmp::Ordering;
use std::sync::Arc;

use super::collections::{Key, Map, MapLookup};
use super::compare::{self, ComparisonBudget};
use super::library::{self, CallContext};
use super::value::{EvalFailure, Value};
use super::{BEHAVIOUR_V1_37, ReleaseBehaviour};
use crate::{POLICY_ENV, functions};

/// A value of another CEL interpreter, or one that a library function returned for it.
#[derive(Clone, Debug)]
pub struct LibraryValue(Value);

/// A value of a basic type, which every CEL interpreter has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PlainValue<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(&'v str),
    Bytes(&'v [u8]),
}

/// The reason why a call of a library function has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The function has no overload for arguments of these types.
    NoSuchOverload,
    /// The function failed for these arguments, for this reason.
    Failed(String),
}

const BEHAVIOUR: ReleaseBehaviour = ReleaseBehaviour { env: POLICY_ENV, ..BEHAVIOUR_V1_37 };

impl From<PlainValue<'_>> for LibraryValue {
    fn from(value: PlainValue<'_>) -> LibraryValue {
        LibraryValue(match value {
            PlainValue::Null => Value::Null,
            PlainValue::Bool(value) => Value::Bool(value),
            PlainValue::Int(value) => Value::Int(value),
            PlainValue::Uint(value) => Value::Uint(value),
            PlainValue::Double(value) => Value::Double(value),
            PlainValue::Text(text) => Value::string(text),
            PlainValue::Bytes(bytes) => Value::Bytes(bytes.into()),
        })
    }
}

impl From<&str> for LibraryValue {
    fn from(text: &str) -> LibraryValue {
        PlainValue::Text(text).into()
    }
}

impl LibraryValue {
    /// Creates a list.
    pub fn list(items: Vec<LibraryValue>) -> LibraryValue {
        LibraryValue(Value::list(items.into_iter().map(|item| item.0).collect()))
    }

    /// Creates a map; `None` if a key has a type that keys cannot have. Of equal keys, the last counts.
    pub fn map(entries: Vec<(LibraryValue, LibraryValue)>) -> Option<LibraryValue> {
        let entry = |(key, value): (LibraryValue, LibraryValue)| {
            Some((Key::from_value(&key.0).ok()?, (key.0, value.0)))
        };
        let pairs = entries.into_iter().map(entry).collect::<Option<_>>()?;
        Some(LibraryValue(Value::Map(Arc::new(Map::from_pairs(pairs, MapLookup::Values)))))
    }

    /// Calls a library function or an operator by its name. For a method, the first argument is the value that it
    /// is called on.
    pub fn call_function(function: &str, arguments: &[LibraryValue]) -> Result<LibraryValue, CallError> {
        let arguments: Vec<Value> = arguments.iter().map(|argument| argument.0.clone()).collect();
        if !functions::overloads(function, POLICY_ENV).any(|overload| library::accepts(overload, &arguments))
        {
            return Err(CallError::NoSuchOverload);
        }
        match library::call_by_name(function, &arguments, &CallContext::of(&BEHAVIOUR)) {
            Ok(value) => Ok(LibraryValue(value.with_normalized_quantity())),
            Err(EvalFailure::Error(text) | EvalFailure::Cancelled(text)) => {
                Err(CallError::Failed(text.to_string()))
            }
            Err(EvalFailure::Unsupported(what)) => {
                Err(CallError::Failed(format!("{what} are not supported")))
            }
        }
    }

    /// The value, if its type is one that every interpreter has.
    pub fn plain_value_if_basic_type(&self) -> Option<PlainValue<'_>> {
        match &self.0 {
            Value::Null => Some(PlainValue::Null),
            Value::Bool(value) => Some(PlainValue::Bool(*value)),
            Value::Int(value) => Some(PlainValue::Int(*value)),
            Value::Uint(value) => Some(PlainValue::Uint(*value)),
            Value::Double(value) => Some(PlainValue::Double(*value)),
            Value::String(text) => Some(PlainValue::Text(text)),
            Value::Bytes(bytes) => Some(PlainValue::Bytes(bytes)),
            _ => None,
        }
    }

    /// Returns the CEL name of the value's type.
    pub fn type_name(&self) -> &'static str {
        self.0.type_name()
    }

    /// True if both are equal; values of different types are not.
    pub fn is_equal(&self, other: &LibraryValue) -> bool {
        compare::is_comparable_and_equal(&self.0, &other.0, &ComparisonBudget::new()) == Ok(true)
    }

    /// The order of two values; `None` if they have none.
    pub fn order(&self, other: &LibraryValue) -> Option<Ordering> {
        compare::compare_values(&self.0, &other.0).ok()
    }
}
