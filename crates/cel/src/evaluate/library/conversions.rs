//! Conversions between types, and the type of a value.

use std::sync::Arc;

use tollgate_formats::gotime::{self, Timestamp};

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
    Some(match function {
        "bool" => to_bool(value),
        "bytes" => to_bytes(value),
        "double" => to_double(value),
        "int" => to_int(value),
        "uint" => to_uint(value),
        "string" => to_string(value),
        "duration" => to_duration(value),
        "timestamp" => to_timestamp(value),
        _ => return None,
    })
}

fn unconvertible(value: &Value, to: &str) -> Evaluated {
    eval_error(format!("type conversion error from '{}' to '{to}'", value.type_name()))
}

fn to_bool(value: &Value) -> Evaluated {
    let found = match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) => number::parse_bool(text),
        _ => None,
    };
    found.map_or_else(|| unconvertible(value, "bool"), |found| Ok(Value::Bool(found)))
}

fn to_bytes(value: &Value) -> Evaluated {
    match value {
        Value::Bytes(_) => Ok(value.clone()),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        _ => unconvertible(value, "bytes"),
    }
}

fn to_double(value: &Value) -> Evaluated {
    let found = match value {
        Value::Double(value) => Some(*value),
        Value::Int(value) => Some(number::double_of_int(*value)),
        Value::Uint(value) => Some(number::double_of_uint(*value)),
        Value::String(text) => number::parse_double(text),
        _ => None,
    };
    found.map_or_else(|| unconvertible(value, "double"), |found| Ok(Value::Double(found)))
}

fn to_int(value: &Value) -> Evaluated {
    let found = match value {
        Value::Int(value) => Some(*value),
        Value::Uint(value) => i64::try_from(*value).ok(),
        Value::Double(value) => number::int_of_double(*value),
        Value::Duration(nanos) => Some(*nanos),
        Value::Timestamp(moment) => Some(moment.time.seconds),
        Value::String(text) => {
            return text.parse().map_or_else(|_| unconvertible(value, "int"), |found| Ok(Value::Int(found)));
        }
        _ => return unconvertible(value, "int"),
    };
    found.map_or_else(|| eval_error("integer overflow"), |found| Ok(Value::Int(found)))
}

fn to_uint(value: &Value) -> Evaluated {
    let found = match value {
        Value::Uint(value) => Some(*value),
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::Double(value) => number::uint_of_double(*value),
        Value::String(text) => {
            let found = number::parse_uint(text);
            return found.map_or_else(|| unconvertible(value, "uint"), |found| Ok(Value::Uint(found)));
        }
        _ => return unconvertible(value, "uint"),
    };
    found.map_or_else(|| eval_error("unsigned integer overflow"), |found| Ok(Value::Uint(found)))
}

fn to_string(value: &Value) -> Evaluated {
    match value {
        Value::String(_) => Ok(value.clone()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::string(text)),
            Err(_) => eval_error("invalid UTF-8 in bytes, cannot convert to string"),
        },
        _ => converted_text(value)
            .map_or_else(|| unconvertible(value, "string"), |text| Ok(Value::string(text))),
    }
}

/// Converts a value to a string; `None` if it is a string or has no text.
pub(super) fn converted_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => number::text_of_double(*value),
        Value::Duration(nanos) => number::text_of_duration(*nanos),
        Value::Timestamp(moment) => times::rfc3339_text(*moment),
        Value::Type(name) => (*name).to_owned(),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(prefix) => prefix.to_string(),
        _ => return None,
    })
}

fn to_duration(value: &Value) -> Evaluated {
    const TARGET_TYPE: &str = "google.protobuf.Duration";
    match value {
        Value::Duration(_) => Ok(value.clone()),
        Value::String(text) => gotime::parse_duration(text)
            .map_or_else(|_| unconvertible(value, TARGET_TYPE), |nanos| Ok(Value::Duration(nanos))),
        _ => unconvertible(value, TARGET_TYPE),
    }
}

fn to_timestamp(value: &Value) -> Evaluated {
    const TO: &str = "google.protobuf.Timestamp";
    match value {
        Value::Timestamp(_) => Ok(value.clone()),
        Value::Int(seconds) => times::timestamp_in_range(OffsetTimestamp {
            time: Timestamp { seconds: *seconds, nanos: 0 },
            offset: 0,
        }),
        Value::String(text) => match gotime::parse_rfc3339(text) {
            Ok(time) => times::timestamp_in_range(OffsetTimestamp { time, offset: parse_utc_offset(text) }),
            Err(_) => unconvertible(value, TO),
        },
        _ => unconvertible(value, TO),
    }
}

/// The offset at the end of a time that was read, in seconds.
fn parse_utc_offset(text: &Arc<str>) -> i64 {
    let Some((_, &[sign, h1, h2, b':', m1, m2])) = text.as_bytes().split_last_chunk() else { return 0 };
    let number =
        |tens: u8, ones: u8| i64::from(tens.wrapping_sub(b'0')) * 10 + i64::from(ones.wrapping_sub(b'0'));
    let offset = number(h1, h2) * 3600 + number(m1, m2) * 60;
    match sign {
        b'+' => offset,
        b'-' => -offset,
        _ => 0,
    }
}
