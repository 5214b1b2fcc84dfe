//! Conversions between types, and the type of a value.

use tollgate_formats::gofloat;
use tollgate_formats::gofmt;
use tollgate_formats::gotime::{self, Timestamp};

use super::operators::{int_or_overflow, uint_or_overflow};
use super::times;
use crate::evaluate::value::{Evaluated, OffsetTimestamp, Value, eval_error};
use crate::number;

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    let [value] = args else { return None };
    match name {
        "type" => Some(Ok(Value::Type(value.type_name()))),
        "dyn" => Some(Ok(value.clone())),
        _ => convert(name, value),
    }
}

/// Converts a value; `None` if the function is no conversion.
pub(in crate::evaluate) fn convert(function: &str, value: &Value) -> Option<Evaluated> {
    let to = match function {
        "bool" | "bytes" | "double" | "int" | "uint" | "string" => function,
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        _ => return None,
    };
    if value.type_name() == to {
        return Some(Ok(value.clone()));
    }
    let converted = match (function, value) {
        ("bool", Value::String(text)) => number::parse_bool_like_go(text).map(Value::Bool),
        ("bytes", Value::String(text)) => Some(Value::Bytes(text.as_bytes().into())),
        ("double", Value::Int(value)) => Some(Value::Double(number::double_of_int(*value))),
        ("double", Value::Uint(value)) => Some(Value::Double(number::double_of_uint(*value))),
        ("double", Value::String(text)) => gofloat::parse_float(text).map(Value::Double),
        ("int", Value::Uint(value)) => return Some(int_or_overflow(i64::try_from(*value).ok())),
        ("int", Value::Double(value)) => {
            return Some(int_or_overflow(number::truncate_double_to_int(*value)));
        }
        ("int", Value::Duration(nanos)) => Some(Value::Int(*nanos)),
        ("int", Value::Timestamp(moment)) => Some(Value::Int(moment.time.seconds)),
        ("int", Value::String(text)) => text.parse().ok().map(Value::Int),
        ("uint", Value::Int(value)) => return Some(uint_or_overflow(u64::try_from(*value).ok())),
        ("uint", Value::Double(value)) => {
            return Some(uint_or_overflow(number::truncate_double_to_uint(*value)));
        }
        ("uint", Value::String(text)) => number::parse_uint_like_go(text).map(Value::Uint),
        ("string", Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Some(Value::string(text)),
            Err(_) => return Some(eval_error("invalid UTF-8 in bytes, cannot convert to string")),
        },
        ("string", _) => text_of_non_string_value(value).map(Value::string),
        ("duration", Value::String(text)) => gotime::parse_duration(text).ok().map(Value::Duration),
        ("timestamp", Value::Int(seconds)) => {
            let time = Timestamp { seconds: *seconds, nanos: 0 };
            return Some(times::timestamp_in_range(OffsetTimestamp { time, offset: 0 }));
        }
        ("timestamp", Value::String(text)) => match gotime::parse_rfc3339_with_offset(text) {
            Ok((time, offset)) => return Some(times::timestamp_in_range(OffsetTimestamp { time, offset })),
            Err(_) => None,
        },
        _ => None,
    };
    let failed = || eval_error(format!("type conversion error from '{}' to '{to}'", value.type_name()));
    Some(converted.map_or_else(failed, Ok))
}

/// Converts a value to a string; `None` if it is a string or has no text.
pub(super) fn text_of_non_string_value(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => gofmt::float_text(*value),
        Value::Duration(nanos) => number::duration_text_in_seconds(*nanos),
        Value::Timestamp(moment) => times::rfc3339_text(*moment),
        Value::Type(name) => (*name).to_owned(),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(prefix) => prefix.to_string(),
        _ => return None,
    })
}
