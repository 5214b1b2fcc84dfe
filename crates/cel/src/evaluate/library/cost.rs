//! What a call costs when it runs, in the server's units.
//!
//! First come the costs that cel-go's extensions have for their overloads, then those of Kubernetes by the function's
//! name, then the standard ones. An overload counts only where the checker found no other.
//! cel-go `interpreter/runtimecost.go`, `ext`; Kubernetes `apiserver/pkg/cel/library/cost.go`

use crate::evaluate::Behaviour;
use crate::evaluate::value::{EvalFailure, Value, go_panic_failure};
use crate::overload::{DeclaredType, Overload};
use crate::size::{COST_PER_CHARACTER, COST_PER_PATTERN_CHARACTER, CREATE_LIST_COST, scaled};

type TrackedArg = Option<Value>;

fn arg_size(arg: Option<&TrackedArg>) -> u64 {
    arg.and_then(Option::as_ref).map_or(1, Value::cost_size)
}

/// The size as cel-go counts it; that of an optional value is the size of its content.
fn optional_content_size(arg: Option<&TrackedArg>) -> u64 {
    let mut value = arg.and_then(Option::as_ref);
    while let Some(Value::Optional(Some(inner))) = value {
        value = Some(inner);
    }
    value.map_or(1, Value::cost_size)
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the server counts in floats; a negative factor wraps"
)]
fn scale_truncating(size: u64, factor: f64) -> u64 {
    let product = size as f64 * factor;
    if product < 0.0 { (product as i64).cast_unsigned() } else { product as u64 }
}

fn text_cost(arg: Option<&TrackedArg>) -> u64 {
    scaled(arg_size(arg), COST_PER_CHARACTER)
}

/// Cost of matching a text with a pattern of the given size.
fn match_cost(text: u64, pattern: u64) -> u64 {
    let text = scaled(text.saturating_add(1), COST_PER_CHARACTER);
    text.wrapping_mul(scaled(pattern, COST_PER_PATTERN_CHARACTER))
}

pub(in crate::evaluate) fn equality_cost(is_negated: bool, args: &[TrackedArg]) -> u64 {
    let is_opaque = matches!(args.first(), Some(Some(value)) if value.is_opaque());
    if is_opaque && !is_negated {
        return 1;
    }
    scaled(optional_content_size(args.first()).min(optional_content_size(args.get(1))), COST_PER_CHARACTER)
}

pub(in crate::evaluate) fn call_cost(
    function: &str,
    overload: Option<&Overload>,
    args: &[TrackedArg],
    result: Option<&Value>,
    behaviour: &Behaviour,
) -> Result<u64, EvalFailure> {
    if let Some(overload) = overload
        && let Some(cost) = list_call_cost(overload, args, result, behaviour)?
    {
        return Ok(cost);
    }
    if let Some(cost) = kubernetes_call_cost(function, overload, args, result, behaviour) {
        return Ok(cost);
    }
    Ok(overload.map_or(1, |overload| standard_call_cost(overload, args, behaviour)))
}

/// True if the cost of a call does not depend on its result, so that a call that exceeds the limit can be
/// skipped.
pub(in crate::evaluate) fn checks_cost_before_call(function: &str) -> bool {
    matches!(function, "matches" | "find" | "findAll" | "contains")
}

/// Cost of a function of the list and set extensions. cel-go inspects arguments that the call may have
/// rejected, which panics in Go.
fn list_call_cost(
    overload: &Overload,
    args: &[TrackedArg],
    result: Option<&Value>,
    behaviour: &Behaviour,
) -> Result<Option<u64>, EvalFailure> {
    let cost = match overload.name {
        "slice" | "lists.range" | "reverse" => {
            result.map_or(1, Value::cost_size).saturating_add(1 + CREATE_LIST_COST)
        }
        "flatten" => {
            let depth = match args.get(1) {
                None => 1.0,
                Some(Some(Value::Int(depth))) => crate::number::double_of_int(*depth),
                Some(other) => {
                    let found = go_type(other.as_ref());
                    return Err(go_panic_failure(&format!(
                        "interface conversion: ref.Val is {found}, not types.Int"
                    )));
                }
            };
            let depth = if depth < 0.0 && behaviour.range_is_checked { 1.0 } else { depth };
            scale_truncating(arg_size(args.first()), depth).wrapping_add(1 + CREATE_LIST_COST)
        }
        "distinct" | "sort" => pairwise_comparison_cost(args.first())?,
        "@sortByAssociatedKeys" => pairwise_comparison_cost(args.get(1))?,
        "sets.contains" | "sets.intersects" => set_comparison_cost(args, 1.0),
        "sets.equivalent" => set_comparison_cost(args, 2.0),
        _ => return Ok(None),
    };
    Ok(Some(cost))
}

fn set_comparison_cost(args: &[TrackedArg], factor: f64) -> u64 {
    1_u64.saturating_add(scale_truncating(arg_size(args.first()).wrapping_mul(arg_size(args.get(1))), factor))
}

fn go_type(value: Option<&Value>) -> &'static str {
    value.map_or("*types.Err", Value::go_type)
}

/// Cost of comparing every element with every other.
fn pairwise_comparison_cost(arg: Option<&TrackedArg>) -> Result<u64, EvalFailure> {
    let value = arg.and_then(Option::as_ref);
    let Some(Value::List(list)) = value else {
        let missing = if value.is_some_and(Value::has_add) { "Contains" } else { "Add" };
        let found = go_type(value);
        return Err(go_panic_failure(&format!(
            "interface conversion: {found} is not traits.Lister: missing method {missing}"
        )));
    };
    let is_text = matches!(list.get(0), Some(Value::String(_) | Value::Bytes(_)));
    let size = list.len() as u64;
    let factor = if is_text { 2.0 + COST_PER_CHARACTER } else { 2.0 };
    Ok(scale_truncating(size.saturating_mul(size), factor).saturating_add(1 + CREATE_LIST_COST))
}

fn kubernetes_call_cost(
    function: &str,
    overload: Option<&Overload>,
    args: &[TrackedArg],
    result: Option<&Value>,
    behaviour: &Behaviour,
) -> Option<u64> {
    let takes_text = overload.is_some_and(|overload| overload.params.get(1) == Some(&DeclaredType::Str));
    Some(match function {
        "includes" if !behaviour.env.includes_is_traversal => return None,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            args.first().map_or(0, |arg| traversal_cost(arg.as_ref()))
        }
        "ip" if overload.is_some_and(Overload::is_member) => 1,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" | "ip" => text_cost(args.first()),
        "replace" | "split" | "ip.isCanonical" => {
            scaled(arg_size(args.first()).saturating_mul(2), COST_PER_CHARACTER)
        }
        "join" => scaled(result.map_or(1, Value::cost_size).saturating_mul(2), COST_PER_CHARACTER),
        "find" | "findAll" => match_cost(arg_size(args.first()), arg_size(args.get(1))),
        "containsIP" | "containsCIDR" => {
            let network = arg_size(args.first());
            let compared = scaled(network + network, COST_PER_CHARACTER);
            let masked = if function == "containsCIDR" { scaled(network, COST_PER_CHARACTER) + 1 } else { 0 };
            let parsed = if takes_text { text_cost(args.get(1)) } else { 0 };
            compared + masked + parsed
        }
        "validate" => match args.first() {
            Some(Some(Value::Format(format))) => match_cost(arg_size(args.get(1)), format.pattern_size),
            _ => return None,
        },
        _ => return None,
    })
}

/// Cost of reading a value completely.
fn traversal_cost(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::String(text)) => scale_truncating(text.len() as u64, COST_PER_CHARACTER),
        Some(Value::Bytes(bytes)) => scale_truncating(bytes.len() as u64, COST_PER_CHARACTER),
        Some(Value::List(list)) => match list.items() {
            Ok(items) => {
                items.iter().fold(0, |sum, item| u64::saturating_add(sum, traversal_cost(Some(item))))
            }
            Err(_) => u64::MAX / 2,
        },
        Some(Value::Map(map)) => map.entries().iter().fold(0, |sum, (key, value)| {
            u64::saturating_add(sum, traversal_cost(Some(key)).saturating_add(traversal_cost(Some(value))))
        }),
        _ => 1,
    }
}

fn standard_call_cost(overload: &Overload, args: &[TrackedArg], behaviour: &Behaviour) -> u64 {
    let (first, second) = (optional_content_size(args.first()), optional_content_size(args.get(1)));
    match (overload.name, overload.params) {
        ("startsWith" | "endsWith", _) => {
            let read = if behaviour.affix_costs_its_own_size { second } else { first };
            scaled(read, COST_PER_CHARACTER)
        }
        ("bytes", [DeclaredType::Str])
        | ("string", [DeclaredType::Bytes])
        | ("strings.quote" | "format", _) => scaled(first, COST_PER_CHARACTER),
        ("@in", [_, DeclaredType::List(_)]) => second,
        ("_<_" | "_<=_" | "_>_" | "_>=_", [DeclaredType::Str | DeclaredType::Bytes, _]) => {
            scaled(first.min(second), COST_PER_CHARACTER)
        }
        ("_+_", [DeclaredType::Str | DeclaredType::Bytes, _]) => {
            scaled(first.saturating_add(second), COST_PER_CHARACTER)
        }
        ("matches", _) if overload.is_member() || behaviour.env.matches_function_has_cost => {
            match_cost(first, second)
        }
        ("contains", _) => scaled(first, COST_PER_CHARACTER).wrapping_mul(scaled(second, COST_PER_CHARACTER)),
        _ => 1,
    }
}
