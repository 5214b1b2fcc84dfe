//! What a call costs when it runs, in the server's units.
//!
//! First come the costs that cel-go's extensions have for their overloads, then those of Kubernetes by the function's
//! name, then the standard ones. Costs of an overload apply only if the checker found no other overload.
//! cel-go `interpreter/runtimecost.go`, `ext`; Kubernetes `apiserver/pkg/cel/library/cost.go`

use crate::evaluate::ReleaseBehaviour;
use crate::evaluate::value::{EvalFailure, Value, go_panic_failure};
use crate::overload::Overload;
use crate::size::{COST_PER_CHARACTER, COST_PER_PATTERN_CHARACTER, CREATE_LIST_COST, multiply_rounding_up};
use crate::types::Type;

/// The value of an argument; `None` if its evaluation failed.
type TrackedArg = Option<Value>;

/// The size as cel-go counts it; that of an optional value is the size of its content.
fn cost_size_unwrapping_optionals(mut value: Option<&Value>) -> u64 {
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

/// Cost of reading a text of that size.
fn read_cost(size: u64) -> u64 {
    multiply_rounding_up(size, COST_PER_CHARACTER)
}

/// Cost of matching a text with a pattern of the given size.
fn match_cost(text: u64, pattern: u64) -> u64 {
    let text = read_cost(text.saturating_add(1));
    text.wrapping_mul(multiply_rounding_up(pattern, COST_PER_PATTERN_CHARACTER))
}

pub(in crate::evaluate) fn equality_cost(is_negated: bool, args: &[TrackedArg]) -> u64 {
    let (left, right) = (args.first().and_then(Option::as_ref), args.get(1).and_then(Option::as_ref));
    if left.is_some_and(Value::is_kubernetes_library_value) && !is_negated {
        return 1;
    }
    read_cost(cost_size_unwrapping_optionals(left).min(cost_size_unwrapping_optionals(right)))
}

/// True if the cost of a call does not depend on its result, so that a call that exceeds the limit can be
/// skipped.
pub(in crate::evaluate) fn checks_cost_before_call(function: &str) -> bool {
    matches!(function, "matches" | "find" | "findAll" | "contains")
}

/// A call whose cost is computed. Arguments and results that are errors are `None`.
pub(in crate::evaluate) struct MeteredCall<'c> {
    pub(in crate::evaluate) function: &'static str,
    pub(in crate::evaluate) overload: Option<&'static Overload>,
    pub(in crate::evaluate) args: &'c [TrackedArg],
    pub(in crate::evaluate) result: Option<&'c Value>,
    pub(in crate::evaluate) behaviour: &'c ReleaseBehaviour,
}

impl MeteredCall<'_> {
    pub(in crate::evaluate) fn cost(&self) -> Result<u64, EvalFailure> {
        let Some(overload) = self.overload else { return Ok(self.kubernetes_cost().unwrap_or(1)) };
        if let Some(cost) = self.list_cost(overload)? {
            return Ok(cost);
        }
        Ok(self.kubernetes_cost().unwrap_or_else(|| self.standard_cost(overload)))
    }

    fn arg(&self, index: usize) -> Option<&Value> {
        self.args.get(index)?.as_ref()
    }

    fn arg_size(&self, index: usize) -> u64 {
        self.arg(index).map_or(1, Value::cost_size)
    }

    fn text_cost(&self, index: usize) -> u64 {
        read_cost(self.arg_size(index))
    }

    fn result_size(&self) -> u64 {
        self.result.map_or(1, Value::cost_size)
    }

    /// Cost of a function of the list and set extensions. cel-go inspects arguments that the call may have
    /// rejected, which panics in Go.
    fn list_cost(&self, overload: &Overload) -> Result<Option<u64>, EvalFailure> {
        let cost = match overload.name {
            "slice" | "lists.range" | "reverse" => self.result_size().saturating_add(1 + CREATE_LIST_COST),
            "flatten" => {
                let depth = match self.args.get(1) {
                    None => 1.0,
                    Some(Some(Value::Int(depth))) => crate::number::double_of_int(*depth),
                    Some(other) => {
                        let found = go_type(other.as_ref());
                        return Err(go_panic_failure(&format!(
                            "interface conversion: ref.Val is {found}, not types.Int"
                        )));
                    }
                };
                let depth = if depth < 0.0 && self.behaviour.range_is_checked { 1.0 } else { depth };
                scale_truncating(self.arg_size(0), depth).wrapping_add(1 + CREATE_LIST_COST)
            }
            "distinct" | "sort" => pairwise_comparison_cost(self.arg(0))?,
            "@sortByAssociatedKeys" => pairwise_comparison_cost(self.arg(1))?,
            "sets.contains" | "sets.intersects" => self.set_comparison_cost(1.0),
            "sets.equivalent" => self.set_comparison_cost(2.0),
            _ => return Ok(None),
        };
        Ok(Some(cost))
    }

    fn set_comparison_cost(&self, factor: f64) -> u64 {
        1_u64.saturating_add(scale_truncating(self.arg_size(0).wrapping_mul(self.arg_size(1)), factor))
    }

    fn kubernetes_cost(&self) -> Option<u64> {
        let copied_cost = |size: u64| read_cost(size.saturating_mul(2));
        Some(match self.function {
            "includes" if !self.behaviour.env.includes_is_traversal => return None,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
                self.args.first().map_or(0, |arg| traversal_cost(arg.as_ref()))
            }
            "ip" if self.overload.is_some_and(Overload::is_member) => 1,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
            | "quantity" | "isQuantity" | "semver" | "isSemver" | "ip" => self.text_cost(0),
            "replace" | "split" | "ip.isCanonical" => copied_cost(self.arg_size(0)),
            "join" => copied_cost(self.result_size()),
            "find" | "findAll" => match_cost(self.arg_size(0), self.arg_size(1)),
            "containsIP" | "containsCIDR" => {
                let network = self.arg_size(0);
                let compared = read_cost(network + network);
                let is_masked = self.function == "containsCIDR";
                let masked = if is_masked { read_cost(network) + 1 } else { 0 };
                let second = self.overload.and_then(|overload| overload.params.get(1));
                let parsed = if second == Some(&Type::String) { self.text_cost(1) } else { 0 };
                compared + masked + parsed
            }
            "validate" => match self.arg(0) {
                Some(Value::Format(format)) => match_cost(self.arg_size(1), format.pattern_size),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn standard_cost(&self, overload: &Overload) -> u64 {
        let (first, second) =
            (cost_size_unwrapping_optionals(self.arg(0)), cost_size_unwrapping_optionals(self.arg(1)));
        match (overload.name, overload.params.as_slice()) {
            ("startsWith" | "endsWith", _) => {
                let read = if self.behaviour.affix_costs_its_own_size { second } else { first };
                read_cost(read)
            }
            ("bytes", [Type::String]) | ("string", [Type::Bytes]) | ("strings.quote" | "format", _) => {
                read_cost(first)
            }
            ("@in", [_, Type::List(_)]) => second,
            ("_<_" | "_<=_" | "_>_" | "_>=_", [Type::String | Type::Bytes, _]) => {
                read_cost(first.min(second))
            }
            ("_+_", [Type::String | Type::Bytes, _]) => read_cost(first.saturating_add(second)),
            ("matches", _) if overload.is_member() || self.behaviour.env.matches_function_has_cost => {
                match_cost(first, second)
            }
            ("contains", _) => read_cost(first).wrapping_mul(read_cost(second)),
            _ => 1,
        }
    }
}

fn go_type(value: Option<&Value>) -> &'static str {
    value.map_or("*types.Err", Value::go_type)
}

/// Cost of comparing every element with every other.
fn pairwise_comparison_cost(value: Option<&Value>) -> Result<u64, EvalFailure> {
    let Some(Value::List(list)) = value else {
        let missing = if value.is_some_and(Value::has_go_add_method) { "Contains" } else { "Add" };
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
