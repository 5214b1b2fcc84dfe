//! Functions that create or read optional values, such as `optional.of` and `hasValue`.

use crate::evaluate::collections::List;
use crate::evaluate::value::{Evaluated, Value, eval_error};

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    Some(match (name, args) {
        ("optional.of", [value]) => Ok(Value::optional_of(value.clone())),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(if value.is_zero() { Value::OPTIONAL_NONE } else { Value::optional_of(value.clone()) })
        }
        ("optional.none", _) => Ok(Value::OPTIONAL_NONE),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => unwrap_present_optionals(list),
        ("value", [Value::Optional(Some(inner))]) => Ok((**inner).clone()),
        ("value", [Value::Optional(None)]) => eval_error("optional.none() dereference"),
        ("hasValue", [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        ("first", [Value::List(list)]) => Ok(list.get(0).map_or(Value::OPTIONAL_NONE, Value::optional_of)),
        ("last", [Value::List(list)]) => {
            let last = list.len().checked_sub(1).and_then(|last| list.get(last));
            Ok(last.map_or(Value::OPTIONAL_NONE, Value::optional_of))
        }
        _ => return None,
    })
}

fn unwrap_present_optionals(list: &List) -> Evaluated {
    let mut values = Vec::new();
    for item in list.items()?.iter() {
        match item {
            Value::Optional(inner) => values.extend(inner.as_deref().cloned()),
            other => return eval_error(format!("value {} is not optional", super::go_value_text(other))),
        }
    }
    Ok(Value::list(values))
}
