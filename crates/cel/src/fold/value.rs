//! Constants, and conversions between them, with the server's errors.
//!
//! What a list, a map or a type is does not matter: nothing converts them.

use super::number;
use crate::outcome::CelEnv;
use crate::tree::Literal;
use tollgate_formats::gotime::{self, Timestamp};

/// Seconds since 1970. cel-go `minUnixTime`, `maxUnixTime`
const YEARS_1_TO_9999: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A constant of an expression.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    Type,
    List {
        is_empty: bool,
    },
    Map,
}

impl From<&Literal> for Value {
    fn from(literal: &Literal) -> Value {
        match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Int(value) => Value::Int(*value),
            Literal::Uint(value) => Value::Uint(*value),
            Literal::Double(value) => Value::Double(*value),
            Literal::String(value) => Value::String(value.clone()),
            Literal::Bytes(value) => Value::Bytes(value.clone()),
        }
    }
}

/// True if the function is a conversion, which the server evaluates for constants. cel-go `IsTypeConversionFunction`
pub(crate) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

impl Value {
    /// The name of the type in the server's errors.
    fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Type => "type",
            Value::List { .. } => "list",
            Value::Map => "map",
        }
    }

    /// Go's name of the type if nothing can be indexed by such a value; `None` if something can.
    pub(super) fn kind_unfit_for_index(&self) -> Option<&'static str> {
        match self {
            Value::Null => Some("types.Null"),
            Value::Bytes(_) => Some("types.Bytes"),
            Value::Duration(_) => Some("types.Duration"),
            Value::Timestamp(_) => Some("types.Timestamp"),
            Value::Type => Some("*types.Type"),
            Value::List { .. } => Some("*types.baseList"),
            Value::Map => Some("*types.baseMap"),
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => None,
        }
    }

    /// The result of a conversion function for this constant; the error is the server's text.
    pub(super) fn converted(self, function: &str, env: CelEnv) -> Result<Value, String> {
        let from = self.type_name();
        let converted = match (function, self) {
            ("type", _) => Some(Value::Type),
            ("dyn", value)
            | ("bool", value @ Value::Bool(_))
            | ("bytes", value @ Value::Bytes(_))
            | ("double", value @ Value::Double(_))
            | ("duration", value @ Value::Duration(_))
            | ("int", value @ Value::Int(_))
            | ("string", value @ Value::String(_))
            | ("timestamp", value @ Value::Timestamp(_))
            | ("uint", value @ Value::Uint(_)) => Some(value),
            ("bool", Value::String(text)) => number::parse_bool(&text).map(Value::Bool),
            ("bytes", Value::String(text)) => Some(Value::Bytes(text.into_bytes())),
            ("double", Value::String(text)) => number::parse_double(&text).map(Value::Double),
            ("double", Value::Int(value)) => Some(Value::Double(number::double_of_int(value))),
            ("double", Value::Uint(value)) => Some(Value::Double(number::double_of_uint(value))),
            ("duration", Value::String(text)) => gotime::parse_duration(&text).ok().map(Value::Duration),
            ("duration", Value::Int(_)) if env.duration_of_int => None,
            ("int", Value::String(text)) => text.parse().ok().map(Value::Int),
            ("int", value) if value.is_number_or_time() => return value.to_int(),
            ("uint", Value::String(text)) => number::parse_uint(&text).map(Value::Uint),
            ("uint", Value::Int(value)) => return to_uint(u64::try_from(value).ok()),
            ("uint", Value::Double(value)) => return to_uint(number::uint_of_double(value)),
            ("timestamp", Value::String(text)) => match gotime::parse(&text) {
                Ok(time) => return checked_timestamp(time),
                Err(_) => None,
            },
            ("timestamp", Value::Int(seconds)) => return checked_timestamp(Timestamp { seconds, nanos: 0 }),
            ("string", value) if value.has_text() => return value.to_text().map(Value::String),
            (function, _) => return Err(format!("no such overload: {function}({from})")),
        };
        let to = match function {
            "duration" => "google.protobuf.Duration",
            "timestamp" => "google.protobuf.Timestamp",
            other => other,
        };
        converted.ok_or_else(|| format!("type conversion error from '{from}' to '{to}'"))
    }

    /// True for values, other than integers, that `int()` converts.
    fn is_number_or_time(&self) -> bool {
        matches!(self, Value::Uint(_) | Value::Double(_) | Value::Duration(_) | Value::Timestamp(_))
    }

    /// The value as an integer; an error if it does not fit.
    fn to_int(&self) -> Result<Value, String> {
        let found = match self {
            Value::Uint(value) => i64::try_from(*value).ok(),
            Value::Double(value) => number::int_of_double(*value),
            Value::Duration(nanos) => Some(*nanos),
            Value::Timestamp(time) => Some(time.seconds),
            _ => None,
        };
        found.map(Value::Int).ok_or_else(|| "integer overflow".to_owned())
    }

    /// True for values, other than strings, that `string()` converts.
    fn has_text(&self) -> bool {
        self.is_number_or_time() || matches!(self, Value::Bool(_) | Value::Int(_) | Value::Bytes(_))
    }

    /// The value as `string()` converts it; an error for bytes that are not UTF-8.
    fn to_text(&self) -> Result<String, String> {
        Ok(match self {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Uint(value) => value.to_string(),
            Value::Double(value) => number::text_of_double(*value),
            Value::Duration(nanos) => number::text_of_duration(*nanos),
            Value::Timestamp(time) => gotime::rfc3339(*time),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => return Err("invalid UTF-8 in bytes, cannot convert to string".to_owned()),
            },
            _ => String::new(),
        })
    }
}

/// The unsigned value; the server's overflow error if there is none.
fn to_uint(found: Option<u64>) -> Result<Value, String> {
    found.map(Value::Uint).ok_or_else(|| "unsigned integer overflow".to_owned())
}

/// The timestamp; the server's error if it is outside of the years 1 to 9999.
fn checked_timestamp(time: Timestamp) -> Result<Value, String> {
    if YEARS_1_TO_9999.contains(&time.seconds) {
        Ok(Value::Timestamp(time))
    } else {
        Err("timestamp overflow".to_owned())
    }
}
