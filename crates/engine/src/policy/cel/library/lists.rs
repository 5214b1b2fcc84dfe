//! Lists: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`; and lists as sets: `sets.contains`,
//! `sets.equivalent`, `sets.intersects`. Items may be of any type; what cannot be compared or added is an error.
#![expect(clippy::needless_pass_by_value, reason = "the interpreter fixes the signature of a function")]

use std::cmp::Ordering;

use ::cel::common::functions::Function;
use ::cel::common::types::{CelInt, DYN_TYPE, Kind, LIST_TYPE, Type};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::super::functions::{self, charged_deep_equals, read_cost};
use super::{CelResult, boolean, charge_steps, function_error, integer};

pub(super) fn declare_functions(env: &mut Env) -> Result<(), DeclarationError> {
    let (none, item) = (Vec::new, || vec![DYN_TYPE]);
    let methods: [(&str, &str, Vec<Type>, Function); 6] = [
        ("isSorted", "list.isSorted", none(), is_sorted),
        ("sum", "list.sum", none(), sum),
        ("min", "list.min", none(), |it| min_or_max("min", &it, Ordering::Less)),
        ("max", "list.max", none(), |it| min_or_max("max", &it, Ordering::Greater)),
        ("__index_of", "list.indexOf", item(), |it| index_of_item(&it, |indexes| indexes.next())),
        ("__last_index_of", "list.lastIndexOf", item(), |it| index_of_item(&it, |indexes| indexes.last())),
    ];
    for (name, id, arguments, function) in methods {
        env.add_member_overload(name, id, LIST_TYPE, arguments, function)?;
    }
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "sets.contains", lists(), |arguments| {
        let (all, part) = both_list_arguments(&arguments)?;
        Ok(boolean(part.iter().all(|item| has_equal_item(&all, *item))))
    })?;
    env.add_overload("sets.equivalent", "sets.equivalent", lists(), |arguments| {
        let (one, other) = both_list_arguments(&arguments)?;
        Ok(boolean(
            one.iter().all(|item| has_equal_item(&other, *item))
                && other.iter().all(|item| has_equal_item(&one, *item)),
        ))
    })?;
    env.add_overload("sets.intersects", "sets.intersects", lists(), |arguments| {
        let (one, other) = both_list_arguments(&arguments)?;
        Ok(boolean(one.iter().any(|item| has_equal_item(&other, *item))))
    })
}

type ListItems<'a, 'v> = Vec<&'a (dyn Val + 'v)>;

/// Returns the items of the list argument at `index`. The caller has already charged for reading it.
fn list_argument<'a, 'v>(
    arguments: &'a [CowVal<'_, 'v>],
    index: usize,
) -> Result<ListItems<'a, 'v>, ExecutionError> {
    let list = arguments.get(index).and_then(|list| list.as_ref().as_iterable());
    let mut items = list.ok_or_else(|| function_error("list", "is not a list"))?.iter();
    let mut all = Vec::new();
    while let Some(item) = items.next() {
        all.push(item);
    }
    Ok(all)
}

fn both_list_arguments<'a, 'v>(
    arguments: &'a [CowVal<'_, 'v>],
) -> Result<(ListItems<'a, 'v>, ListItems<'a, 'v>), ExecutionError> {
    Ok((list_argument(arguments, 0)?, list_argument(arguments, 1)?))
}

/// True if one of the items equals `wanted`. Each comparison is charged.
fn has_equal_item(items: &[&(dyn Val + '_)], wanted: &(dyn Val + '_)) -> bool {
    items.iter().any(|item| charged_deep_equals(*item, wanted))
}

fn index_of_item<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    choose: fn(&mut dyn Iterator<Item = usize>) -> Option<usize>,
) -> CelResult<'b, 'v> {
    let all = list_argument(arguments, 0)?;
    let wanted = arguments.get(1).ok_or_else(|| function_error("indexOf", "requires an item"))?.as_ref();
    let mut indexes = all
        .iter()
        .enumerate()
        .filter(|(_, item)| charged_deep_equals(**item, wanted))
        .map(|(index, _)| index);
    let index = choose(&mut indexes).and_then(|index| i64::try_from(index).ok());
    Ok(integer(index.unwrap_or(-1)))
}

/// Returns the order of two items, after charging for their sizes.
fn charge_and_compare(
    function: &str,
    one: &(dyn Val + '_),
    other: &(dyn Val + '_),
) -> Result<Ordering, ExecutionError> {
    charge_steps(1 + read_cost(one) + read_cost(other))?;
    functions::compare(function, one, other)
}

fn is_sorted<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    for pair in list_argument(&arguments, 0)?.windows(2) {
        if let [one, other] = pair
            && charge_and_compare("isSorted", *one, *other)?.is_gt()
        {
            return Ok(boolean(false));
        }
    }
    Ok(boolean(true))
}

fn min_or_max<'b, 'v>(function: &str, arguments: &[CowVal<'b, 'v>], wanted: Ordering) -> CelResult<'b, 'v> {
    let all = list_argument(arguments, 0)?;
    let (first, rest) =
        all.split_first().ok_or_else(|| function_error(function, "called on an empty list"))?;
    let mut best = *first;
    for item in rest {
        if charge_and_compare(function, *item, best)? == wanted {
            best = *item;
        }
    }
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn sum<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    let all = list_argument(&arguments, 0)?;
    // The items of a list are numbers or durations; the sum of anything else is an error, as it is for 0 and that.
    let mut total: Box<dyn Val + 'v> = Box::new(CelInt::from(0));
    for (index, item) in all.iter().enumerate() {
        let is_summand = matches!(item.get_type().kind(), Kind::UInt | Kind::Double)
            || item.get_type().name() == "google.protobuf.Duration";
        if index == 0 && is_summand {
            total = item.clone_as_boxed();
            continue;
        }
        charge_steps(1 + read_cost(total.as_ref()) + read_cost(*item))?;
        let adder = total.as_adder().ok_or_else(|| function_error("sum", "the items cannot be added"))?;
        let sum = adder.add(*item)?.into_owned();
        total = sum;
    }
    Ok(CowVal::Owned(total))
}
