//! The values of message literals such as `google.protobuf.Duration{seconds: 1}`, for the message types that become
//! plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_formats::gotime::Timestamp;

use super::times;
use crate::evaluate::collections::Map;
use crate::evaluate::value::{Evaluated, OffsetTimestamp, Value, eval_error};

pub(in crate::evaluate) fn build_well_known_type_value(
    name: &str,
    fields: &BTreeMap<&str, Value>,
) -> Evaluated {
    let int = |field: &str| match fields.get(field) {
        Some(Value::Int(value)) => *value,
        _ => 0,
    };
    let given = |field: &str| fields.get(field).cloned();
    let value = given("value");
    Ok(match name.strip_prefix("google.protobuf.").unwrap_or(name) {
        "Duration" => {
            let seconds = int("seconds").checked_mul(1_000_000_000);
            return times::duration_or_overflow(seconds.and_then(|nanos| nanos.checked_add(int("nanos"))));
        }
        "Timestamp" => {
            let moment = OffsetTimestamp { time: Timestamp { seconds: int("seconds"), nanos: 0 }, offset: 0 };
            return times::shifted_timestamp(moment, i128::from(int("nanos")));
        }
        "BoolValue" => value.unwrap_or(Value::Bool(false)),
        "Int64Value" | "Int32Value" => value.unwrap_or(Value::Int(0)),
        "UInt64Value" | "UInt32Value" => value.unwrap_or(Value::Uint(0)),
        "DoubleValue" | "FloatValue" => value.unwrap_or(Value::Double(0.0)),
        "StringValue" => value.unwrap_or_else(|| Value::string("")),
        "BytesValue" => value.unwrap_or_else(|| Value::Bytes([].into())),
        "ListValue" => given("values").unwrap_or_else(|| Value::list(Vec::new())),
        "Struct" => given("fields").unwrap_or_else(|| Value::Map(Arc::new(Map::new_growing().to_fixed()))),
        "Value" => fields.values().next().cloned().unwrap_or(Value::Null),
        other => return eval_error(format!("unknown type: {other}")),
    })
}
