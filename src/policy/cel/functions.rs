//! What expressions can call: the standard library, the strings extension, and our own where those have no limits.
//!
//! `replace` and `join` pay for what they write; equality looks through our trees from either side; what Kubernetes
//! adds to the language is in `library`. Names that begin with two underscores are made by `rewrite` and cannot be written:
//! CEL text that uses them is refused.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "the interpreter fixes the signature of a function"
)]

use std::cmp::Ordering;

use ::cel::common::ast::operators;
use ::cel::common::functions::Function;
use ::cel::common::types::{
    CelBool, CelBytes, CelInt, CelString, DYN_TYPE, INT_TYPE, Kind, LIST_TYPE, STRING_TYPE,
};
use ::cel::common::value::{CowVal, Val};
use ::cel::{Env, ExecutionError, extensions};

use super::library;
use super::meter::pay;

/// Pays for a turn of a loop; false if it may not be taken.
pub(super) const TICK: &str = "__tick";
/// Pays for a turn of a loop and gives its second argument.
pub(super) const TURN: &str = "__turn";
/// Pays for an operand by its size and gives it.
pub(super) const OPERAND: &str = "__operand";
/// Pays for an operand and everything in it, as its text would be written, and gives it.
pub(super) const WHOLE: &str = "__whole";
/// Pays for every letter of an operand and gives it: what is split may come apart into letters.
pub(super) const LETTERS: &str = "__letters";
/// Operators that look at whole values, and ours that pay for it: one call instead of an operator and two payments.
pub(super) const OPERATORS: &[(&str, &str, Function)] = &[
    (operators::EQUALS, "__equals", equals),
    (operators::NOT_EQUALS, "__differs", differs),
    (operators::ADD, "__add", add),
    (operators::IN, "__in", is_in),
    (operators::LESS, "__less", |arguments| ordered(operators::LESS, &arguments, Ordering::is_lt)),
    (operators::LESS_EQUALS, "__at_most", |arguments| {
        ordered(operators::LESS_EQUALS, &arguments, Ordering::is_le)
    }),
    (operators::GREATER, "__greater", |arguments| ordered(operators::GREATER, &arguments, Ordering::is_gt)),
    (operators::GREATER_EQUALS, "__at_least", |arguments| {
        ordered(operators::GREATER_EQUALS, &arguments, Ordering::is_ge)
    }),
];

/// Functions an expression may call by name.
pub(super) const NAMES: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "dyn",
    "type",
    "of",
    "none",
    "ofNonZeroValue",
    "hasValue",
    "value",
    "or",
    "orValue",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "join",
    "lowerAscii",
    "upperAscii",
    "trim",
    "replace",
    "split",
    "substring",
    "reverse",
    "format",
];

/// Functions that are ours under another name.
pub(super) const RENAMED: &[(&str, &str)] =
    &[("matches", "__matches"), ("replace", "__replace"), ("join", "__join")];

type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// The environment.
pub(super) fn env() -> Env {
    let mut env = Env::stdlib();
    // None of the names is taken: they are ours, or the extension is added once.
    let added = [
        env.add_extension(extensions::strings),
        env.add_overload(TICK, TICK, vec![INT_TYPE], tick),
        env.add_overload(TURN, TURN, vec![INT_TYPE, DYN_TYPE], turn),
        env.add_overload(OPERAND, OPERAND, vec![DYN_TYPE], operand),
        library::add(&mut env),
        env.add_overload(WHOLE, WHOLE, vec![DYN_TYPE], whole),
        env.add_overload(LETTERS, LETTERS, vec![DYN_TYPE], letters),
        env.add_member_overload(
            "__replace",
            "__replace",
            STRING_TYPE,
            vec![STRING_TYPE, STRING_TYPE],
            replace,
        ),
        env.add_member_overload("__join", "__join", LIST_TYPE, vec![STRING_TYPE], join),
        env.add_member_overload("__join", "__join_plain", LIST_TYPE, vec![], join),
    ];
    debug_assert!(added.iter().all(Result::is_ok));
    for (_, ours, function) in OPERATORS {
        let added = env.add_overload(ours, ours, vec![DYN_TYPE, DYN_TYPE], *function);
        debug_assert!(added.is_ok());
    }
    env
}

pub(super) fn spent() -> ExecutionError {
    ExecutionError::function_error("", "takes too many steps")
}

fn number(value: Option<&CowVal<'_, '_>>) -> u64 {
    let number = value.and_then(|value| value.downcast_ref::<CelInt>()).map(|number| *number.inner());
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or(1)
}

fn text<'a>(value: Option<&'a CowVal<'_, '_>>) -> &'a str {
    value.and_then(|value| value.downcast_ref::<CelString<'_>>()).map_or("", |text| text.inner())
}

fn boolean<'b, 'v>(value: bool) -> CowVal<'b, 'v> {
    CowVal::owned(CelBool::from(value))
}

fn tick<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    Ok(boolean(pay(number(arguments.first()))))
}

fn turn<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    if !pay(number(arguments.first())) {
        return Err(spent());
    }
    arguments.pop().ok_or_else(spent)
}

fn operand<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = arguments.pop().ok_or_else(spent)?;
    if pay(weight(value.as_ref())) { Ok(value) } else { Err(spent()) }
}

fn whole<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = arguments.pop().ok_or_else(spent)?;
    if written(value.as_ref()) { Ok(value) } else { Err(spent()) }
}

fn letters<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = arguments.pop().ok_or_else(spent)?;
    if pay(text(Some(&value)).len() as u64) { Ok(value) } else { Err(spent()) }
}

/// Pays for every value inside a value: what it costs to write it. A number may be 400 digits long.
fn written(value: &(dyn Val + '_)) -> bool {
    if !pay(100 + 2 * weight(value)) {
        return false;
    }
    let is_map = value.get_type().kind() == Kind::Map;
    let Some(mut items) = value.as_iterable().map(|items| items.iter()) else { return true };
    while let Some(item) = items.next() {
        let inside = value.as_indexer().filter(|_| is_map).and_then(|map| map.get(item).ok());
        if !written(item) || inside.is_some_and(|inside| !written(inside.as_ref())) {
            return false;
        }
    }
    true
}

/// What it costs to look at a value once.
pub(super) fn weight(value: &(dyn Val + '_)) -> u64 {
    let length = if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        text.inner().len() / 8
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        bytes.inner().len() / 8
    } else {
        let size = value.as_sizer().map_or(0, |sizer| *sizer.size().inner());
        usize::try_from(size).unwrap_or_default()
    };
    length as u64
}

fn equals<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    compared(&arguments).map(boolean)
}

fn differs<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    compared(&arguments).map(|equal| boolean(!equal))
}

fn compared(arguments: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    match arguments {
        [left, right] => Ok(same(left.as_ref(), right.as_ref())),
        _ => Err(spent()),
    }
}

/// Both operands of a binary operator, paid for.
fn operands<'a, 'b, 'v>(
    operator: &str,
    arguments: &'a [CowVal<'b, 'v>],
) -> Result<(&'a (dyn Val + 'v), &'a (dyn Val + 'v)), ExecutionError> {
    match arguments {
        [left, right] if pay(weight(left.as_ref()) + weight(right.as_ref())) => {
            Ok((left.as_ref(), right.as_ref()))
        }
        [_, _] => Err(spent()),
        _ => Err(ExecutionError::no_such_overload(operator, Vec::new())),
    }
}

fn no_such(operator: &str, left: &(dyn Val + '_), right: &(dyn Val + '_)) -> ExecutionError {
    let types = [left, right].map(|value| value.get_type().name().to_owned());
    ExecutionError::no_such_overload(operator, types.into())
}

fn add<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (left, right) = operands(operators::ADD, &arguments)?;
    let adder = left.as_adder().ok_or_else(|| no_such(operators::ADD, left, right))?;
    Ok(CowVal::Owned(adder.add(right)?.into_owned()))
}

fn is_in<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (item, container) = operands(operators::IN, &arguments)?;
    let found = container.as_container().ok_or_else(|| no_such(operators::IN, item, container))?;
    found.contains(item).map(boolean)
}

fn ordered<'b, 'v>(
    operator: &str,
    arguments: &[CowVal<'_, '_>],
    holds: fn(Ordering) -> bool,
) -> Answer<'b, 'v> {
    let (left, right) = operands(operator, arguments)?;
    let comparer = left.as_comparer().ok_or_else(|| no_such(operator, left, right))?;
    let ordering = comparer.compare(right).map_err(|_uncomparable| no_such(operator, left, right))?;
    Ok(boolean(holds(ordering)))
}

/// Equality of values, whoever made them. Each value looked at is paid for.
pub(super) fn same(left: &(dyn Val + '_), right: &(dyn Val + '_)) -> bool {
    if !pay(1 + weight(left)) {
        return false;
    }
    let kinds = (left.get_type().kind(), right.get_type().kind());
    match (kinds, left.as_iterable(), right.as_iterable()) {
        ((Kind::List, Kind::List), Some(one), Some(other)) => {
            let (mut one, mut other) = (one.iter(), other.iter());
            loop {
                match (one.next(), other.next()) {
                    (None, None) => return true,
                    (Some(one), Some(other)) if same(one, other) => {}
                    _ => return false,
                }
            }
        }
        ((Kind::Map, Kind::Map), Some(keys), Some(_)) => {
            let (Some(one), Some(other)) = (left.as_indexer(), right.as_indexer()) else { return false };
            if weight(left) != weight(right) {
                return false;
            }
            let mut keys = keys.iter();
            while let Some(key) = keys.next() {
                match (one.get(key), other.get(key)) {
                    (Ok(one), Ok(other)) if same(one.as_ref(), other.as_ref()) => {}
                    _ => return false,
                }
            }
            true
        }
        // A list or map and something else. Its own `equals` is this function: asked again, it would never end.
        ((Kind::List | Kind::Map, _) | (_, Kind::List | Kind::Map), _, _) => false,
        _ => left.equals(right),
    }
}

fn replace<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (value, from, to) = (text(arguments.first()), text(arguments.get(1)), text(arguments.get(2)));
    let count = value.matches(from).count();
    let length = value.len().saturating_add(count.saturating_mul(to.len()));
    if !pay((length / 8) as u64) {
        return Err(spent());
    }
    Ok(CowVal::owned(CelString::from(value.replace(from, to))))
}

fn join<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let separator = text(arguments.get(1));
    let mut joined = String::new();
    let mut items = match arguments.first().and_then(|list| list.as_iterable()) {
        Some(items) => items.iter(),
        None => return Err(spent()),
    };
    let mut first = true;
    while let Some(item) = items.next() {
        let Some(item) = item.downcast_ref::<CelString<'_>>() else {
            return Err(ExecutionError::function_error(
                "join",
                "the list has something that is not a string",
            ));
        };
        if !pay(1 + ((separator.len() + item.inner().len()) / 8) as u64) {
            return Err(spent());
        }
        if !first {
            joined.push_str(separator);
        }
        first = false;
        joined.push_str(item.inner());
    }
    Ok(CowVal::owned(CelString::from(joined)))
}
