//! The functions that a device expression can call, as cel-go and Kubernetes implement them.
//!
//! A function is found by its name alone and looks at the types of its arguments; which types it may be called with is
//! declared in `crate::functions`, and checked here before it is called.

pub(super) mod conversions;
pub(super) mod cost;
pub(super) mod formats;
pub(super) mod formatting;
mod lists;
mod maps;
pub(super) mod messages;
pub(super) mod net;
mod netparse;
mod operators;
mod optionals;
pub(super) mod patterns;
pub(super) mod quantity;
pub(super) mod semver;
mod strings;
mod times;
pub(super) mod url;
mod urlparse;

use super::ReleaseBehaviour;
use super::compare::{self, ComparisonBudget};
use super::plan::ArgumentGuard;
use super::value::{Evaluated, Value, eval_error, no_such_overload};
use crate::overload::Overload;
use crate::types::Type;

/// Settings and limits that library functions can use.
pub(super) struct CallContext<'b> {
    pub(super) behaviour: &'b ReleaseBehaviour,
    pub(super) work: ComparisonBudget,
}

impl<'b> CallContext<'b> {
    pub(super) fn of(behaviour: &'b ReleaseBehaviour) -> CallContext<'b> {
        CallContext { behaviour, work: ComparisonBudget::new() }
    }
}

/// Maximum size in bytes of a text that one function creates, because not all results are charged by size.
const MAX_CREATED_TEXT_BYTES: usize = 64 << 20;

/// Calls the function of that name; `no such overload` if it does not take these arguments.
pub(super) fn call_by_name(name: &str, args: &[Value], context: &CallContext<'_>) -> Evaluated {
    operators::try_call(name, args, context)
        .or_else(|| conversions::try_call(name, args))
        .or_else(|| strings::try_call(name, args, context))
        .or_else(|| lists::try_call(name, args, context))
        .or_else(|| maps::try_call(name, args))
        .or_else(|| optionals::try_call(name, args))
        .or_else(|| times::try_call(name, args))
        .or_else(|| patterns::try_call(name, args))
        .or_else(|| quantity::try_call(name, args, context))
        .or_else(|| semver::try_call(name, args))
        .or_else(|| net::try_call(name, args))
        .or_else(|| url::try_call(name, args))
        .or_else(|| formats::try_call(name, args))
        .unwrap_or_else(no_such_overload)
}

/// The requirement on an operator's first operand, for functions with a single implementation for all
/// overloads.
pub(super) fn first_operand_guard(name: &str) -> Option<ArgumentGuard> {
    Some(match name {
        "_+_" => ArgumentGuard::Operand(Value::has_go_add_method),
        "_-_" => ArgumentGuard::Operand(|value| {
            compare::is_number(value) || matches!(value, Value::Duration(_) | Value::Timestamp(_))
        }),
        "_*_" | "_/_" => ArgumentGuard::Operand(compare::is_number),
        "_%_" => ArgumentGuard::Operand(|value| matches!(value, Value::Int(_) | Value::Uint(_))),
        "-_" => ArgumentGuard::Operand(|value| {
            matches!(value, Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::Duration(_))
        }),
        "_<_" | "_<=_" | "_>_" | "_>=_" => ArgumentGuard::Operand(compare::has_order),
        "size" => ArgumentGuard::Operand(|value| {
            matches!(value, Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))
        }),
        "matches" => ArgumentGuard::Operand(|value| matches!(value, Value::String(_))),
        "sort" | "@sortByAssociatedKeys" => ArgumentGuard::Operand(|value| matches!(value, Value::List(_))),
        "@in" | "!_" | "type" | "dyn" | "@not_strictly_false" => ArgumentGuard::None,
        _ => return None,
    })
}

/// Calls a function after checking its arguments with `guard`.
pub(super) fn call_with_guard(
    guard: &ArgumentGuard,
    name: &str,
    args: &[Value],
    context: &CallContext<'_>,
) -> Evaluated {
    match guard {
        ArgumentGuard::None => {}
        ArgumentGuard::Operand(fits) => {
            if let Some(first) = args.first()
                && !fits(first)
            {
                // Some types are asked for a method of that name first.
                let is_receiver =
                    matches!(first, Value::String(_) | Value::Duration(_) | Value::Timestamp(_));
                return if is_receiver {
                    no_such_overload()
                } else {
                    eval_error(format!("no such overload: {name}"))
                };
            }
        }
        ArgumentGuard::Overloads(overloads) => {
            if !overloads.iter().any(|overload| accepts(overload, args)) {
                let types: Vec<&str> = args.iter().map(Value::type_name).collect();
                return eval_error(format!("no such overload: {name}({})", types.join(", ")));
            }
        }
    }
    call_by_name(name, args, context)
}

/// True if the overload accepts arguments of these types and this number.
pub(super) fn accepts(overload: &Overload, args: &[Value]) -> bool {
    overload.params.len() == args.len()
        && overload.params.iter().zip(args).all(|(param, arg)| has_declared_type(arg, param))
}

/// True if the value has the declared type. Of a list or map, only the first entry is checked.
fn has_declared_type(value: &Value, declared: &Type) -> bool {
    match (declared, value) {
        (Type::Dyn | Type::Param(_), _)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Meta(_), Value::Type(_)) => true,
        (Type::Named(name), value) => value.type_name() == *name,
        (Type::List(element), Value::List(list)) => {
            list.get(0).is_none_or(|first| has_declared_type(&first, element))
        }
        (Type::Map(key, entry), Value::Map(map)) => map
            .first()
            .is_none_or(|(first, value)| has_declared_type(&first, key) && has_declared_type(&value, entry)),
        _ => false,
    }
}

/// The value as Go's `%v` prints it.
pub(super) fn go_value_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => (**text).to_owned(),
        Value::Bytes(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!("[{}]", bytes.join(" "))
        }
        Value::List(list) => match list.items() {
            Ok(items) => {
                let items: Vec<String> = items.iter().map(go_value_text).collect();
                format!("[{}]", items.join(", "))
            }
            Err(_) => String::new(),
        },
        Value::Map(map) => {
            let entries: Vec<String> = map
                .entries()
                .iter()
                .map(|(key, value)| format!("{}: {}", go_value_text(key), go_value_text(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(inner)) => format!("optional({})", go_value_text(inner)),
        Value::Quantity(quantity) => quantity.text(),
        Value::Semver(version) => version.text.clone(),
        Value::Url(url) => url.to_string(),
        _ => conversions::text_of_non_string_value(value).unwrap_or_default(),
    }
}
