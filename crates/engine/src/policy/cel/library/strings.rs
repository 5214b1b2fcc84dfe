//! Strings: functions of the strings extension whose result can be larger than their arguments, or whose time grows
//! with the product of two lengths.
//!
//! Indexes count characters, as everywhere in CEL.
#![expect(clippy::needless_pass_by_value, reason = "the interpreter fixes the signature of a function")]

use ::cel::common::types::{CelInt, CelList, CelString, INT_TYPE, LIST_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env};

use super::super::tree::SharedList;
use super::kubernetes::call_library_function;
use super::{CelResult, argument, charge_steps, function_error, string, string_at};

/// Functions of the interpreter, and the internal functions that replace them because they charge for their steps, or
/// return what the server returns.
pub(in crate::policy::cel) const REPLACED_FUNCTIONS: &[(&str, &str)] = &[
    ("replace", "__replace"),
    ("join", "__join"),
    ("split", "__split"),
    ("indexOf", "__index_of"),
    ("lastIndexOf", "__last_index_of"),
    ("bool", "__bool"),
    ("bytes", "__bytes"),
    ("double", "__double"),
    ("int", "__int"),
    ("string", "__string"),
    ("uint", "__uint"),
    ("format", "__format"),
];

pub(super) fn declare_functions(env: &mut Env) -> Result<(), DeclarationError> {
    let word = || vec![STRING_TYPE];
    let limited = || vec![STRING_TYPE, INT_TYPE];
    let two_words = vec![STRING_TYPE, STRING_TYPE];
    let two_limited = vec![STRING_TYPE, STRING_TYPE, INT_TYPE];
    env.add_member_overload("__replace", "replace", STRING_TYPE, two_words, replace)?;
    env.add_member_overload("__replace", "replace.n", STRING_TYPE, two_limited, replace)?;
    env.add_member_overload("__join", "join", LIST_TYPE, Vec::new(), join)?;
    env.add_member_overload("__join", "join.with", LIST_TYPE, word(), join)?;
    env.add_member_overload("__split", "split", STRING_TYPE, word(), split)?;
    env.add_member_overload("__split", "split.n", STRING_TYPE, limited(), split)?;
    env.add_member_overload("__index_of", "string.indexOf", STRING_TYPE, word(), index_of)?;
    env.add_member_overload("__index_of", "string.indexOf.from", STRING_TYPE, limited(), index_of)?;
    env.add_member_overload("__last_index_of", "string.lastIndexOf", STRING_TYPE, word(), last_index_of)?;
    env.add_member_overload("__last_index_of", "string.lastIndexOf.to", STRING_TYPE, limited(), last_index_of)
}

fn index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    call_library_function("indexOf", &arguments)
}

fn last_index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    call_library_function("lastIndexOf", &arguments)
}

/// Implements `replace`: replaces all occurrences, or the first ones up to a limit.
fn replace<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    let (value, from, to) = (string_at(&arguments, 0)?, string_at(&arguments, 1)?, string_at(&arguments, 2)?);
    let limit = if arguments.len() > 3 { *argument::<CelInt>(&arguments, 3)?.inner() } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = value.matches(from).count().min(limit);
    let length = value.len().saturating_add(count.saturating_mul(to.len()));
    charge_steps((length / 8) as u64)?;
    Ok(string(value.replacen(from, to, limit)))
}

fn join<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    let separator = if arguments.len() > 1 { string_at(&arguments, 1)? } else { "" };
    let list = arguments.first().and_then(|list| list.as_iterable());
    let mut items = list.ok_or_else(|| function_error("join", "is not a list"))?.iter();
    let mut joined = String::new();
    let mut is_first = true;
    while let Some(item) = items.next() {
        let item = item
            .downcast_ref::<CelString<'_>>()
            .ok_or_else(|| function_error("join", "the list contains an item that is not a string"))?;
        charge_steps(1 + ((separator.len() + item.inner().len()) / 8) as u64)?;
        if !is_first {
            joined.push_str(separator);
        }
        is_first = false;
        joined.push_str(item.inner());
    }
    Ok(string(joined))
}

/// Implements `split`. With a limit, the last part contains the rest. An empty separator splits into single
/// characters.
fn split<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    let (value, separator) = (string_at(&arguments, 0)?, string_at(&arguments, 1)?);
    let limit = if arguments.len() > 2 { *argument::<CelInt>(&arguments, 2)?.inner() } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut rest = Some(value).filter(|value| !value.is_empty() || !separator.is_empty());
    while let Some(value) = rest.filter(|_| parts.len() < limit) {
        let cut = match value.chars().next() {
            _ if parts.len() + 1 == limit => None,
            Some(first) if separator.is_empty() => {
                value.split_at_checked(first.len_utf8()).filter(|(_, rest)| !rest.is_empty())
            }
            _ => value.split_once(separator),
        };
        let (part, after) = cut.map_or((value, None), |(part, after)| (part, Some(after)));
        charge_steps((4 + part.len() / 8) as u64)?;
        parts.push(Box::new(CelString::from(part.to_owned())));
        rest = after;
    }
    Ok(CowVal::owned(SharedList::from_computed(CelList::from(parts))))
}
