//! Functions on lists: cel-go's list and set extensions, and those of Kubernetes.

use std::cmp::Ordering;

use super::CallContext;
use crate::evaluate::collections::List;
use crate::evaluate::compare;
use crate::evaluate::value::{
    EvalFailure, Evaluated, Value, cost_limit_exceeded, eval_error, no_such_overload,
};

/// Maximum length of a list that `lists.range` creates. A longer one exceeds the cost limit.
const MAX_RANGE_LENGTH: i64 = 1_000_000;
/// Maximum length of a list whose elements are all compared with each other.
const MAX_PAIRWISE_LENGTH: usize = 20_000;

pub(super) fn try_call(name: &str, args: &[Value], context: &CallContext<'_>) -> Option<Evaluated> {
    Some(match (name, args) {
        ("slice", [Value::List(list), Value::Int(start), Value::Int(end)]) => slice(list, *start, *end),
        ("flatten", [Value::List(list)]) => flattened(list, 1),
        ("flatten", [Value::List(list), Value::Int(depth)]) => flattened(list, *depth),
        ("flatten", [list, depth @ ..]) => {
            let depth = depth.first().map_or("", Value::type_name);
            eval_error(format!("no such overload: {}.flatten({depth})", list.type_name()))
        }
        ("distinct", [Value::List(list)]) => distinct(list, context),
        ("reverse", [Value::List(list)]) => {
            list.items().map(|items| Value::list(items.iter().rev().cloned().collect()))
        }
        ("lists.range", [Value::Int(size)]) => range(*size, context),
        ("sort", [Value::List(list)]) => sort_by(list, list),
        ("@sortByAssociatedKeys", [Value::List(list), Value::List(keys)]) => sort_by(list, keys),
        ("isSorted", [Value::List(list)]) => is_sorted(list),
        ("sum", [Value::List(list)]) => sum(list),
        ("min", [Value::List(list)]) => min_or_max(list, "min", Ordering::Greater),
        ("max", [Value::List(list)]) => min_or_max(list, "max", Ordering::Less),
        ("indexOf", [Value::List(list), item]) => index_of_item(list, item, false, context),
        ("lastIndexOf", [Value::List(list), item]) => index_of_item(list, item, true, context),
        ("includes", [Value::List(list), item]) => includes(list, item, context),
        ("includes", [target, item]) => {
            compare::is_comparable_and_equal(target, item, &context.work).map(Value::Bool)
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [Value::List(a), Value::List(b)]) => {
            compare_sets(name, a, b, context).map(Value::Bool)
        }
        _ => return None,
    })
}

fn slice(list: &List, start: i64, end: i64) -> Evaluated {
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return eval_error(format!("cannot slice({start}, {end}), negative indexes not supported"));
    };
    if from > to {
        return eval_error(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    if list.len() < to {
        return eval_error(format!("cannot slice({start}, {end}), list is length {}", list.len()));
    }
    Ok(Value::list(list.items()?.get(from..to).unwrap_or_default().to_vec()))
}

fn flattened(list: &List, depth: i64) -> Evaluated {
    if depth < 0 {
        return eval_error("level must be non-negative");
    }
    let mut flat = Vec::new();
    flatten_into(list, depth, &mut flat)?;
    Ok(Value::list(flat))
}

fn flatten_into(list: &List, depth: i64, flat: &mut Vec<Value>) -> Result<(), EvalFailure> {
    for item in list.items()?.iter() {
        match item {
            Value::List(inner) if depth > 0 => flatten_into(inner, depth - 1, flat)?,
            other => flat.push(other.clone()),
        }
        if flat.len() > crate::evaluate::collections::MAX_READ_ELEMENTS {
            return Err(cost_limit_exceeded());
        }
    }
    Ok(())
}

fn distinct(list: &List, context: &CallContext<'_>) -> Evaluated {
    if list.len() > MAX_PAIRWISE_LENGTH {
        return Err(cost_limit_exceeded());
    }
    let mut unique: Vec<Value> = Vec::new();
    for item in list.items()?.iter() {
        if !contains(&unique, item, context)? {
            unique.push(item.clone());
        }
    }
    Ok(Value::list(unique))
}

fn range(size: i64, context: &CallContext<'_>) -> Evaluated {
    if context.behaviour.range_is_checked {
        if size < 0 {
            return eval_error(format!("lists.range: size must be non-negative, got {size}"));
        }
        if size > MAX_RANGE_LENGTH {
            return eval_error(format!(
                "lists.range: size {size} exceeds maximum allowed ({MAX_RANGE_LENGTH})"
            ));
        }
    }
    if size > MAX_RANGE_LENGTH {
        Err(cost_limit_exceeded())
    } else {
        Ok(Value::list((0..size).map(Value::Int).collect()))
    }
}

fn sort_by(list: &List, keys: &List) -> Evaluated {
    if list.len() != keys.len() {
        return eval_error(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        ));
    }
    let (items, keys) = (list.items()?, keys.items()?);
    let Some(first) = keys.first() else { return Ok(Value::List(list.clone())) };
    if !compare::has_order(first) {
        return eval_error("list elements must be comparable");
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return eval_error("list elements must have the same type");
    }
    let mut pairs: Vec<(&Value, &Value)> = keys.iter().zip(items.iter()).collect();
    pairs.sort_by(|(a, _), (b, _)| compare::compare_values(a, b).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item.clone()).collect()))
}

fn is_sorted(list: &List) -> Evaluated {
    let items = list.items()?;
    let mut previous: Option<&Value> = None;
    for item in items.iter() {
        if !compare::has_order(item) {
            return no_such_overload();
        }
        if previous.is_some_and(|previous| compare::compare_values(previous, item).is_ok_and(Ordering::is_gt))
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum(list: &List) -> Evaluated {
    let items = list.items()?;
    // Of a list whose type is not known, an empty one is a sum of integers.
    let mut total = match items.first() {
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(Value::Duration(_)) => Value::Duration(0),
        _ => Value::Int(0),
    };
    for item in items.iter() {
        total = super::operators::arithmetic("_+_", &total, item)?;
    }
    Ok(total)
}

fn min_or_max(list: &List, name: &str, worse: Ordering) -> Evaluated {
    let mut best: Option<Value> = None;
    for item in list.items()?.iter() {
        if !compare::has_order(item) {
            return no_such_overload();
        }
        let is_better = best
            .as_ref()
            .is_none_or(|best| compare::compare_values(best, item).is_ok_and(|order| order == worse));
        if is_better {
            best = Some(item.clone());
        }
    }
    best.map_or_else(|| eval_error(format!("{name} called on empty list")), Ok)
}

fn index_of_item(list: &List, item: &Value, is_last: bool, context: &CallContext<'_>) -> Evaluated {
    let items = list.items()?;
    let mut places = items.iter().enumerate();
    while let Some((index, found)) = if is_last { places.next_back() } else { places.next() } {
        if compare::is_comparable_and_equal(found, item, &context.work)? {
            return Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}

fn includes(list: &List, item: &Value, context: &CallContext<'_>) -> Evaluated {
    let limit = context.behaviour.includes_limit.unwrap_or(usize::MAX);
    let found =
        any(list.iter().take(limit), |found| compare::is_comparable_and_equal(&found, item, &context.work))?;
    if !found && list.len() > limit {
        return eval_error(format!(
            "'includes' function cannot be applied to lists longer than {limit} values"
        ));
    }
    Ok(Value::Bool(found))
}

/// Implements `sets.contains`, `sets.equivalent` and `sets.intersects`.
fn compare_sets(name: &str, a: &List, b: &List, context: &CallContext<'_>) -> Result<bool, EvalFailure> {
    let (a, b) = (a.items()?, b.items()?);
    match name {
        "sets.contains" => contains_all(&a, &b, context),
        "sets.equivalent" => Ok(contains_all(&a, &b, context)? && contains_all(&b, &a, context)?),
        _ => any(a.iter(), |item| contains(&b, item, context)),
    }
}

/// True if `is_found` returns true for an item. Stops at the first such item or error.
pub(super) fn any<T>(
    items: impl Iterator<Item = T>,
    mut is_found: impl FnMut(T) -> Result<bool, EvalFailure>,
) -> Result<bool, EvalFailure> {
    for item in items {
        if is_found(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(list: &[Value], item: &Value, context: &CallContext<'_>) -> Result<bool, EvalFailure> {
    any(list.iter(), |other| compare::is_comparable_and_equal(item, other, &context.work))
}

fn contains_all(list: &[Value], part: &[Value], context: &CallContext<'_>) -> Result<bool, EvalFailure> {
    Ok(!any(part.iter(), |item| Ok(!contains(list, item, context)?))?)
}
