//! Optional values.

use crate::evaluate::value::{Evaluated, Value, error, no_such_overload};

pub(super) fn find(name: &str) -> Option<super::Function> {
    Some(match name {
        "optional.of" => |args, _| args.first().cloned().map(Value::some).map_or_else(no_such_overload, Ok),
        "optional.ofNonZeroValue" => |args, _| match args {
            [value] => Ok(if value.is_zero() { Value::NONE } else { Value::some(value.clone()) }),
            _ => no_such_overload(),
        },
        "optional.none" => |_, _| Ok(Value::NONE),
        "optional.unwrap" | "unwrapOpt" => |args, _| unwrap(args),
        "value" => |args, _| match args {
            [Value::Optional(Some(inner))] => Ok((**inner).clone()),
            [Value::Optional(None)] => error("optional.none() dereference"),
            _ => no_such_overload(),
        },
        "hasValue" => |args, _| match args {
            [Value::Optional(inner)] => Ok(Value::Bool(inner.is_some())),
            _ => no_such_overload(),
        },
        "first" => |args, _| end(args, |_| 0),
        "last" => |args, _| end(args, |length| length - 1),
        _ => return None,
    })
}

fn end(args: &[Value], index: fn(usize) -> usize) -> Evaluated {
    match args {
        [Value::List(list)] if list.len() == 0 => Ok(Value::NONE),
        [Value::List(list)] => Ok(list.get(index(list.len())).map_or(Value::NONE, Value::some)),
        _ => no_such_overload(),
    }
}

fn unwrap(args: &[Value]) -> Evaluated {
    let [Value::List(list)] = args else { return no_such_overload() };
    let mut values = Vec::new();
    for item in list.items()?.iter() {
        match item {
            Value::Optional(inner) => values.extend(inner.as_deref().cloned()),
            other => return error(format!("value {} is not optional", super::printed(other))),
        }
    }
    Ok(Value::list(values))
}
