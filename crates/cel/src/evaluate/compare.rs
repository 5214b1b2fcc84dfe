//! Equality and order of values, across number types as cel-go has them.
//!
//! Equality can fail: a value of a Kubernetes library cannot be compared with a value of another type. As in upstream,
//! such a failure inside a list or map is mostly ignored.
//!
//! Invariant: work is bounded. A value can be exponentially larger than its expression, because it shares its parts.

use std::cell::Cell;
use std::cmp::Ordering;

use super::collections::{List, Map};
use super::value::{EvalFailure, Value, cost_limit_exceeded, eval_error, no_such_overload};
use crate::number::{double_of_int, double_of_uint, truncate_double_to_int, truncate_double_to_uint};

/// Remaining steps for comparisons in one evaluation, so that nested values cannot stall it.
#[derive(Debug)]
pub(super) struct ComparisonBudget(Cell<u32>);

impl ComparisonBudget {
    pub(super) fn new() -> ComparisonBudget {
        ComparisonBudget(Cell::new(10_000_000))
    }

    pub(super) fn spend(&self) -> Result<(), EvalFailure> {
        let left = self.0.get().checked_sub(1).ok_or_else(cost_limit_exceeded)?;
        self.0.set(left);
        Ok(())
    }
}

/// Implements `==`. Fails if the values cannot be compared, such as a quantity with a number.
pub(super) fn evaluate_equality(
    left: &Value,
    right: &Value,
    work: &ComparisonBudget,
) -> Result<bool, EvalFailure> {
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        _ => equal_non_null(left, right, work),
    }
}

/// True if the values are equal; false if they cannot be compared.
pub(super) fn is_comparable_and_equal(
    left: &Value,
    right: &Value,
    work: &ComparisonBudget,
) -> Result<bool, EvalFailure> {
    match equal_non_null(left, right, work) {
        Err(EvalFailure::Error(_)) => Ok(false),
        answer => answer,
    }
}

/// Implements `==` for values that are not null.
fn equal_non_null(left: &Value, right: &Value, work: &ComparisonBudget) -> Result<bool, EvalFailure> {
    work.spend()?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            order_of_numbers(left, right).is_some_and(Ordering::is_eq)
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a.time == b.time,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::List(a), Value::List(b)) => return equal_lists_deferring_incomparable_items(a, b, work),
        (Value::Map(a), Value::Map(b)) => return equal_maps_ignoring_incomparable_values(a, b, work),
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => return equal_non_null(a, b, work),
        (Value::Optional(a), Value::Optional(b)) => a.is_none() && b.is_none(),
        // A computed quantity is a pointer, which the other side does not know.
        (Value::Quantity(a), Value::Quantity(b)) if !b.is_computed => a.is_equal(b),
        (Value::Semver(a), Value::Semver(b)) => a.order(b).is_eq(),
        (Value::Ip(a), Value::Ip(b)) => a == b,
        (Value::Cidr(a), Value::Cidr(b)) => a == b,
        (Value::Url(a), Value::Url(b)) => a.to_string() == b.to_string(),
        (Value::Format(a), Value::Format(b)) => a.title == b.title,
        _ if left.is_kubernetes_library_value() => return no_such_overload(),
        _ => false,
    })
}

/// Compares all items before one that cannot be compared counts. It is then an error for a sum of lists, and ignored
/// for other lists.
fn equal_lists_deferring_incomparable_items(
    left: &List,
    right: &List,
    work: &ComparisonBudget,
) -> Result<bool, EvalFailure> {
    if left.len() != right.len() {
        return Ok(false);
    }
    let mut problem = None;
    for (a, b) in left.iter().zip(right.iter()) {
        match evaluate_equality(&a, &b, work) {
            Ok(true) => {}
            Err(EvalFailure::Error(text)) => problem = problem.or(Some(text)),
            other => return other,
        }
    }
    // Only a sum of lists remembers what could not be compared.
    match problem {
        Some(text) if matches!(left, List::Joined(_)) => eval_error(text),
        _ => Ok(true),
    }
}

/// True if both maps have the same keys with equal values. As in cel-go, values that cannot be compared do not make
/// maps different.
fn equal_maps_ignoring_incomparable_values(
    left: &Map,
    right: &Map,
    work: &ComparisonBudget,
) -> Result<bool, EvalFailure> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (key, value) in left.entries() {
        let Some(other) = right.indexed_value_or_default(&key)? else { return Ok(false) };
        match evaluate_equality(&value, &other, work) {
            Ok(true) | Err(EvalFailure::Error(_)) => {}
            other => return other,
        }
    }
    Ok(true)
}

/// Compares two values for `<` and similar operators. Fails if their types have no order.
pub(super) fn compare_values(left: &Value, right: &Value) -> Result<Ordering, EvalFailure> {
    let is_nan = |value: &Value| matches!(value, Value::Double(number) if number.is_nan());
    if is_nan(left) || (is_number(left) && is_nan(right)) {
        return eval_error("NaN values cannot be ordered");
    }
    if let Some(found) = order_of_numbers(left, right) {
        return Ok(found);
    }
    Ok(match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.time.cmp(&b.time),
        _ => return no_such_overload(),
    })
}

/// True if values of this type can be ordered.
pub(super) fn has_order(value: &Value) -> bool {
    is_number(value)
        || matches!(
            value,
            Value::Bool(_) | Value::String(_) | Value::Bytes(_) | Value::Duration(_) | Value::Timestamp(_)
        )
}

pub(super) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// The order of two numbers of any of the three types; an integer and a double are compared as doubles. `None` if one
/// of them is not a number, or is NaN.
fn order_of_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Int(a), Value::Uint(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Uint(a), Value::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b)?,
        (Value::Double(a), Value::Int(b)) => a.partial_cmp(&double_of_int(*b))?,
        (Value::Int(a), Value::Double(b)) => double_of_int(*a).partial_cmp(b)?,
        (Value::Double(a), Value::Uint(b)) => a.partial_cmp(&double_of_uint(*b))?,
        (Value::Uint(a), Value::Double(b)) => double_of_uint(*a).partial_cmp(b)?,
        _ => return None,
    })
}

/// The double as an integer, if that loses nothing.
#[expect(clippy::float_cmp, reason = "whether the conversion loses anything")]
pub(super) fn lossless_int(value: f64) -> Option<i64> {
    truncate_double_to_int(value).filter(|int| double_of_int(*int) == value)
}

/// The double as an unsigned integer, if that loses nothing.
#[expect(clippy::float_cmp, reason = "whether the conversion loses anything")]
pub(super) fn lossless_uint(value: f64) -> Option<u64> {
    truncate_double_to_uint(value).filter(|int| double_of_uint(*int) == value)
}
