//! The values of a running expression, what types and sizes they have, and what Go calls them in its own errors.
//!
//! Not the checker's types: a value knows only the type it has at run time, without parameters. Operations on values
//! are in `compare` and `library`.
//!
//! Invariant: values are immutable, but for quantities, which some functions change in place as upstream's do, and for
//! the list or map that a loop is still filling.

use std::net::IpAddr;
use std::sync::Arc;

use tollgate_formats::gotime::Timestamp;

use super::collections::{List, Map};
use super::library::formats::NamedFormat;
use super::library::net::CidrPrefix;
use super::library::quantity::SharedQuantity;
use super::library::semver::Semver;
use super::library::url::Url;
use crate::types;

#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    Timestamp(OffsetTimestamp),
    /// A type as a value, by its name at run time.
    Type(&'static str),
    List(List),
    Map(Arc<Map>),
    Optional(Option<Arc<Value>>),
    Quantity(SharedQuantity),
    Semver(Arc<Semver>),
    Ip(IpAddr),
    Cidr(CidrPrefix),
    Url(Arc<Url>),
    Format(&'static NamedFormat),
}

/// A point in time, with the time zone offset that it was written with.
#[derive(Clone, Copy, Debug)]
pub(super) struct OffsetTimestamp {
    pub(super) time: Timestamp,
    /// Time zone offset in seconds east of UTC.
    pub(super) offset: i64,
}

/// The reason why an expression has no value: an error of the language, a limit, or an unsupported feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EvalFailure {
    /// An error of the language: `||`, `&&` and the like may absorb it.
    Error(Arc<str>),
    /// The evaluation was cancelled as a whole.
    Cancelled(Arc<str>),
    /// Ends the evaluation, because the server's result depends on the named feature, which is not supported.
    Unsupported(&'static str),
}

pub(super) type Evaluated = Result<Value, EvalFailure>;

pub(super) fn eval_error<T>(text: impl Into<Arc<str>>) -> Result<T, EvalFailure> {
    Err(EvalFailure::Error(text.into()))
}

/// The error of an operation that does not support the types of its operands.
pub(super) fn no_such_overload<T>() -> Result<T, EvalFailure> {
    eval_error("no such overload")
}

/// The server's error if Go code panics.
pub(super) fn go_panic_failure(what: &str) -> EvalFailure {
    EvalFailure::Cancelled(format!("internal error: {what}").into())
}

/// The error for an evaluation that exceeds the cost limit.
pub(super) fn cost_limit_exceeded() -> EvalFailure {
    EvalFailure::Cancelled("operation cancelled: actual cost limit exceeded".into())
}

impl Value {
    pub(super) const OPTIONAL_NONE: Value = Value::Optional(None);

    pub(super) fn string(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    pub(super) fn optional_of(value: Value) -> Value {
        Value::Optional(Some(Arc::new(value)))
    }

    pub(super) fn list(items: Vec<Value>) -> Value {
        Value::List(List::from_items(items))
    }

    pub(super) fn strings<'s>(items: impl IntoIterator<Item = &'s str>) -> Value {
        Value::list(items.into_iter().map(Value::string).collect())
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// True if the type of the value can be that of a list index or a map key.
    pub(super) fn can_be_index_or_key(&self) -> bool {
        matches!(self, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_))
    }

    /// The value without its origin: a quantity without the mark that it was computed.
    pub(super) fn with_normalized_quantity(self) -> Value {
        match self {
            Value::Quantity(mut quantity) => {
                quantity.is_computed = false;
                Value::Quantity(quantity)
            }
            other => other,
        }
    }

    /// The name of the type at run time.
    pub(super) fn type_name(&self) -> &'static str {
        self.cel_and_go_type_names().0
    }

    /// Go's name of the type, which is in some errors.
    pub(super) fn go_type(&self) -> &'static str {
        self.cel_and_go_type_names().1
    }

    fn cel_and_go_type_names(&self) -> (&'static str, &'static str) {
        match self {
            Value::Null => ("null_type", "types.Null"),
            Value::Bool(_) => ("bool", "types.Bool"),
            Value::Int(_) => ("int", "types.Int"),
            Value::Uint(_) => ("uint", "types.Uint"),
            Value::Double(_) => ("double", "types.Double"),
            Value::String(_) => ("string", "types.String"),
            Value::Bytes(_) => ("bytes", "types.Bytes"),
            Value::Duration(_) => ("google.protobuf.Duration", "types.Duration"),
            Value::Timestamp(_) => ("google.protobuf.Timestamp", "types.Timestamp"),
            Value::Type(_) => ("type", "*types.Type"),
            Value::List(list) => ("list", list.go_type()),
            Value::Map(map) => ("map", map.go_type()),
            Value::Optional(_) => (types::OPTIONAL, "*types.Optional"),
            Value::Quantity(quantity) if quantity.is_computed => (types::QUANTITY, "*cel.Quantity"),
            Value::Quantity(_) => (types::QUANTITY, "cel.Quantity"),
            Value::Semver(_) => (types::SEMVER, "cel.Semver"),
            Value::Ip(_) => (types::IP, "cel.IP"),
            Value::Cidr(_) => (types::CIDR, "cel.CIDR"),
            Value::Url(_) => (types::URL, "cel.URL"),
            Value::Format(_) => (types::FORMAT, "cel.Format"),
        }
    }

    /// True for values of the Kubernetes libraries, which can be compared with values of their own type only.
    pub(super) fn is_kubernetes_library_value(&self) -> bool {
        matches!(
            self,
            Value::Quantity(_)
                | Value::Semver(_)
                | Value::Ip(_)
                | Value::Cidr(_)
                | Value::Url(_)
                | Value::Format(_)
        )
    }

    /// True if the Go type has a method `Add`. The error of a failed type assertion names the first missing
    /// method.
    pub(super) fn has_go_add_method(&self) -> bool {
        matches!(
            self,
            Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::String(_)
                | Value::Bytes(_)
                | Value::Duration(_)
                | Value::Timestamp(_)
                | Value::List(_)
        )
    }

    /// The size for cost calculations; 1 for values without a size.
    pub(super) fn cost_size(&self) -> u64 {
        let size = match self {
            Value::String(text) => text.chars().count(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Ip(IpAddr::V4(_)) => 4,
            Value::Ip(IpAddr::V6(_)) => 16,
            Value::Cidr(prefix) => prefix.prefix_length_bytes(),
            _ => 1,
        };
        size as u64
    }

    /// True for zero values, as cel-go's `IsZeroValue`. False for types without a zero value.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(value) => *value == 0,
            Value::Uint(value) => *value == 0,
            Value::Double(value) => *value == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Duration(nanos) => *nanos == 0,
            Value::Timestamp(moment) => moment.time.is_go_zero_time(),
            Value::List(list) => list.len() == 0,
            Value::Map(map) => map.len() == 0,
            _ => false,
        }
    }
}
