//! Operators on numbers, texts, lists and times. Nothing wraps: what does not fit is an error.

use std::cmp::Ordering;

use super::{CallContext, lists, times};
use crate::evaluate::compare;
use crate::evaluate::value::{Evaluated, Value, eval_error, no_such_overload};

pub(super) fn try_call(name: &str, args: &[Value], context: &CallContext<'_>) -> Option<Evaluated> {
    Some(match (name, args) {
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [left, right]) => arithmetic(name, left, right),
        ("-_", [Value::Int(value)]) => int_or_overflow(value.checked_neg()),
        ("-_", [Value::Double(value)]) => Ok(Value::Double(-value)),
        ("-_", [Value::Duration(value)]) => times::duration_or_overflow(value.checked_neg()),
        ("!_", [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        ("@not_strictly_false", _) => Ok(Value::Bool(!matches!(args, [Value::Bool(false)]))),
        ("_<_", [left, right]) => compare_by(left, right, Ordering::is_lt),
        ("_<=_", [left, right]) => compare_by(left, right, Ordering::is_le),
        ("_>_", [left, right]) => compare_by(left, right, Ordering::is_gt),
        ("_>=_", [left, right]) => compare_by(left, right, Ordering::is_ge),
        ("@in", [element, Value::List(list)]) => {
            let is_found = |item: Value| compare::is_comparable_and_equal(element, &item, &context.work);
            lists::any(list.iter(), is_found).map(Value::Bool)
        }
        ("@in", [key, Value::Map(map)]) => map.existing_value(key).map(|found| Value::Bool(found.is_some())),
        ("size", [value]) => Ok(Value::Int(i64::try_from(value.cost_size()).unwrap_or(i64::MAX))),
        _ => return None,
    })
}

/// Whether the order of two values is one that `holds` accepts.
fn compare_by(left: &Value, right: &Value, holds: fn(Ordering) -> bool) -> Evaluated {
    compare::compare_values(left, right).map(|order| Value::Bool(holds(order)))
}

pub(super) fn int_or_overflow(found: Option<i64>) -> Evaluated {
    found.map_or_else(|| eval_error("integer overflow"), |value| Ok(Value::Int(value)))
}

pub(super) fn uint_or_overflow(found: Option<u64>) -> Evaluated {
    found.map_or_else(|| eval_error("unsigned integer overflow"), |value| Ok(Value::Uint(value)))
}

/// Implements the binary operators of numbers, texts, lists and times.
pub(super) fn arithmetic(operator: &str, left: &Value, right: &Value) -> Evaluated {
    match (left, operator, right) {
        (Value::Int(a), "_+_", Value::Int(b)) => int_or_overflow(a.checked_add(*b)),
        (Value::Int(a), "_-_", Value::Int(b)) => int_or_overflow(a.checked_sub(*b)),
        (Value::Int(a), "_*_", Value::Int(b)) => int_or_overflow(a.checked_mul(*b)),
        (Value::Int(_), "_/_", Value::Int(0)) | (Value::Uint(_), "_/_", Value::Uint(0)) => {
            eval_error("division by zero")
        }
        (Value::Int(_), "_%_", Value::Int(0)) | (Value::Uint(_), "_%_", Value::Uint(0)) => {
            eval_error("modulus by zero")
        }
        (Value::Int(a), "_/_", Value::Int(b)) => int_or_overflow(a.checked_div(*b)),
        (Value::Int(a), "_%_", Value::Int(b)) => int_or_overflow(a.checked_rem(*b)),
        (Value::Uint(a), "_+_", Value::Uint(b)) => uint_or_overflow(a.checked_add(*b)),
        (Value::Uint(a), "_-_", Value::Uint(b)) => uint_or_overflow(a.checked_sub(*b)),
        (Value::Uint(a), "_*_", Value::Uint(b)) => uint_or_overflow(a.checked_mul(*b)),
        (Value::Uint(a), "_/_", Value::Uint(b)) => uint_or_overflow(a.checked_div(*b)),
        (Value::Uint(a), "_%_", Value::Uint(b)) => uint_or_overflow(a.checked_rem(*b)),
        (Value::Double(a), "_+_", Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::Double(a), "_-_", Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Double(a), "_*_", Value::Double(b)) => Ok(Value::Double(a * b)),
        (Value::Double(a), "_/_", Value::Double(b)) => Ok(Value::Double(a / b)),
        (Value::String(a), "_+_", Value::String(b)) => Ok(Value::string([&**a, &**b].concat())),
        (Value::Bytes(a), "_+_", Value::Bytes(b)) => Ok(Value::Bytes([&**a, &**b].concat().into())),
        (Value::List(a), "_+_", Value::List(b)) => a.concat_or_extend_growing(b).map(Value::List),
        (Value::Duration(a), "_+_", Value::Duration(b)) => times::duration_or_overflow(a.checked_add(*b)),
        (Value::Duration(a), "_-_", Value::Duration(b)) => times::duration_or_overflow(a.checked_sub(*b)),
        (Value::Duration(duration), "_+_", Value::Timestamp(moment))
        | (Value::Timestamp(moment), "_+_", Value::Duration(duration)) => {
            times::shifted_timestamp(*moment, i128::from(*duration))
        }
        (Value::Timestamp(moment), "_-_", Value::Duration(duration)) => {
            times::shifted_timestamp(*moment, -i128::from(*duration))
        }
        (Value::Timestamp(a), "_-_", Value::Timestamp(b)) => times::duration_between(*a, *b),
        _ => no_such_overload(),
    }
}
