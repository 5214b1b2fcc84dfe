//! The functions of the libraries for another interpreter, which has its own values: the one that evaluates policies.
//!
//! That interpreter passes strings and integers, and gets values of the Kubernetes types, which it can pass again. It
//! handles lists and maps itself. Nothing here counts cost.
//!
//! Invariant: a function gets only arguments of the types that it is declared with.

use std::cmp::Ordering;

use super::compare::{self, ComparisonBudget};
use super::library::{self, CallContext};
use super::value::{EvalFailure, Value};
use super::{BEHAVIOUR_V1_37, ReleaseBehaviour};
use crate::{POLICY_ENV, functions};

/// A string, an integer, or a value that a library function returned, for another CEL interpreter.
#[derive(Clone, Debug)]
pub struct LibraryValue(Value);

/// A value of a type that every CEL interpreter has: a boolean, an integer, a double or a string.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PlainValue<'v> {
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(&'v str),
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

impl From<&str> for LibraryValue {
    fn from(text: &str) -> LibraryValue {
        LibraryValue(Value::string(text))
    }
}

impl From<i64> for LibraryValue {
    fn from(value: i64) -> LibraryValue {
        LibraryValue(Value::Int(value))
    }
}

impl LibraryValue {
    /// Calls a library function or an operator by its name. For a method, the first argument is the value that it
    /// is called on.
    pub fn call_function(function: &str, arguments: &[LibraryValue]) -> Result<LibraryValue, CallError> {
        let arguments: Vec<Value> = arguments.iter().map(|argument| argument.0.clone()).collect();
        if !functions::overloads(function, POLICY_ENV).any(|overload| library::accepts(overload, &arguments))
        {
            return Err(CallError::NoSuchOverload);
        }
        match library::call_by_name(function, &arguments, &CallContext::of(&BEHAVIOUR)) {
            Ok(value) => Ok(LibraryValue(value.with_normalized_time_or_quantity())),
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
            Value::Bool(value) => Some(PlainValue::Bool(*value)),
            Value::Int(value) => Some(PlainValue::Int(*value)),
            Value::Double(value) => Some(PlainValue::Double(*value)),
            Value::String(text) => Some(PlainValue::Text(text)),
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
