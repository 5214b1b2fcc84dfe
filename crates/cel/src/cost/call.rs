//! The cost of one call, and the size of its result, by function and overload.
//!
//! Most functions cost 1 plus their arguments; the ones listed read or build something whose size matters. The
//! estimators of the list and set libraries are asked first, then Kubernetes' own, as on the server.

use super::path::{DevicePath, ITEMS, VALUES};
use super::{Estimator, set_if_some};
use crate::overload::{CallStyle, Overload};
use crate::size::{COST_PER_PATTERN_CHARACTER, SizeRange};
use crate::tree::NodeId;
use crate::types::Type;

/// The cost of a call without its arguments, and the size of its result.
pub(super) struct Estimate {
    cost: u64,
    size: Option<SizeRange>,
}

impl Estimate {
    /// A cost, and a result of unknown size.
    pub(super) fn of_unknown_size(cost: u64) -> Estimate {
        Estimate { cost, size: None }
    }

    /// A cost, and a result of that size.
    pub(super) fn of_size(cost: u64, size: SizeRange) -> Estimate {
        Estimate { cost, size: Some(size) }
    }
}

/// An argument or the target of a call. Its size is the one known before the next argument is read.
pub(super) struct Operand<'t> {
    pub(super) id: NodeId,
    pub(super) path: DevicePath<'t>,
    pub(super) known: Option<SizeRange>,
}

impl Operand<'_> {
    /// The known size, or the size derived from the path; otherwise [`SizeRange::UNKNOWN`].
    pub(super) fn size(&self) -> SizeRange {
        self.known.or_else(|| self.path.size()).unwrap_or(SizeRange::UNKNOWN)
    }
}

/// A call with one of the overloads that it may resolve to.
pub(super) struct OverloadCall<'c, 't> {
    pub(super) id: NodeId,
    pub(super) overload: &'static Overload,
    pub(super) target: Option<&'c Operand<'t>>,
    pub(super) args: &'c [Operand<'t>],
}

impl OverloadCall<'_, '_> {
    /// The type of one of the overload's parameters, of which the target of a member call is the first.
    pub(super) fn parameter(&self, index: usize) -> Option<&'static Type> {
        self.overload.params.get(index)
    }
}

impl<'t> Estimator<'t> {
    /// The cost of a call with its arguments, for the most expensive of its overloads. Sets the size of its
    /// result.
    pub(super) fn cost_of_call(&mut self, id: NodeId, target: Option<NodeId>, args: &'t [NodeId]) -> u64 {
        let checked = self.checked;
        let overloads = checked.overloads(id);
        let is = |name: &str| overloads.first().is_some_and(|overload| overload.name == name);
        if let (true, [arg]) = (is("dyn"), args) {
            let cost = self.node_cost(*arg).saturating_add(1);
            self.copy_sizes(id, *arg);
            return cost;
        }
        let mut arg_costs = Vec::with_capacity(args.len());
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            arg_costs.push(self.node_cost(*arg));
            operands.push(self.operand(*arg));
        }
        // `sets.contains(…)` is spelled like a member call and is none.
        let is_member = overloads.first().is_some_and(|overload| overload.style == CallStyle::Member);
        let mut total = 0;
        let target = target.filter(|_| is_member).map(|target| {
            total = self.node_cost(target);
            self.operand(target)
        });
        let mut worst = 0;
        let mut size: Option<SizeRange> = None;
        for overload in overloads {
            let call = OverloadCall { id, overload, target: target.as_ref(), args: &operands };
            let estimate = self.estimate_call(&call, &arg_costs);
            worst = worst.max(estimate.cost);
            size = match (size, estimate.size) {
                (Some(left), Some(right)) => Some(left.union(right)),
                (left, right) => left.or(right),
            };
            let step = match (call.overload.name, call.parameter(0)) {
                ("_[_]", Some(Type::List(_))) => Some(ITEMS),
                ("_[_]", Some(Type::Map(..))) => Some(VALUES),
                _ => None,
            };
            if let (Some(step), Some(container)) = (step, args.first()) {
                size = self.content_sizes(*container).map(|inside| inside.value);
                let path = self.device_path(*container).append_with_go_slice_aliasing(step);
                set_if_some(&mut self.paths, id, Some(path));
            }
            size = size.or_else(|| self.node_size(id));
        }
        set_if_some(&mut self.sizes, id, size);
        total.saturating_add(worst)
    }

    /// An argument with its size and path, as known now.
    fn operand(&mut self, id: NodeId) -> Operand<'t> {
        Operand { id, known: self.node_size(id), path: self.device_path(id) }
    }

    /// The cost of a call, arguments included, and the size of its result.
    fn estimate_call(&mut self, call: &OverloadCall<'_, 't>, arg_costs: &[u64]) -> Estimate {
        let args = arg_costs.iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        let special = self.list_estimate(call).or_else(|| self.kubernetes_estimate(call));
        match (call.overload.name, arg_costs) {
            ("_&&_" | "_||_", _) => return Estimate::of_unknown_size(args),
            ("_?_:_", [condition, yes, no]) => {
                return self.conditional_estimate(call, condition.saturating_add(*yes.max(no)));
            }
            _ => {}
        }
        let estimate =
            special.or_else(|| self.standard_estimate(call)).unwrap_or_else(|| Estimate::of_unknown_size(1));
        Estimate { cost: estimate.cost.saturating_add(args), ..estimate }
    }

    /// The estimate for `a ? b : c`; its result has the size of either alternative.
    fn conditional_estimate(&mut self, call: &OverloadCall<'_, 't>, cost: u64) -> Estimate {
        let [_, yes, no] = call.args else { return Estimate::of_unknown_size(cost) };
        self.merge_content_sizes(call.id, yes.id, no.id);
        Estimate::of_size(cost, size_ignoring_path(yes).union(size_ignoring_path(no)))
    }

    /// Sets the sizes of a node's contents to cover those of two others, if both are known.
    fn merge_content_sizes(&mut self, id: NodeId, left: NodeId, right: NodeId) {
        let inside =
            self.content_sizes(left).zip(self.content_sizes(right)).map(|(left, right)| left.union(right));
        set_if_some(&mut self.contents, id, inside);
    }

    /// cel-go's own estimate for a call, without arguments; `None` for functions that cost 1. cel-go
    /// `functionCost`
    fn standard_estimate(&mut self, call: &OverloadCall<'_, 't>) -> Option<Estimate> {
        let first = call.parameter(0);
        let cost = match (call.overload.name, call.target, call.args) {
            ("format", Some(text), [_]) => size_ignoring_path(text).max_text_read_cost(),
            ("bytes", None, [text]) if first == Some(&Type::String) => {
                let read = size_ignoring_path(text);
                // Four bytes per character; the server's product wraps around.
                let result = SizeRange { min: read.min, max: read.max.wrapping_mul(4) };
                return Some(Estimate::of_size(read.max_text_read_cost(), result));
            }
            ("string", None, [bytes]) if first == Some(&Type::Bytes) => {
                let read = size_ignoring_path(bytes);
                let result = SizeRange { min: read.min / 4, max: read.max };
                return Some(Estimate::of_size(read.max_text_read_cost(), result));
            }
            ("strings.quote", None, [text]) => {
                let read = size_ignoring_path(text);
                let max = read.max.wrapping_mul(2).wrapping_add(2);
                let result = SizeRange { min: read.min.wrapping_add(2), max };
                return Some(Estimate::of_size(read.max_text_read_cost(), result));
            }
            ("startsWith" | "endsWith", Some(_), [affix]) => size_ignoring_path(affix).max_text_read_cost(),
            ("@in", None, [_, list]) if matches!(call.parameter(1), Some(Type::List(_))) => {
                size_ignoring_path(list).max_read_cost(1.0)
            }
            ("matches", Some(text), [pattern]) | ("matches", None, [text, pattern])
                if call.target.is_some() || self.env.matches_function_has_cost =>
            {
                pattern_cost(size_ignoring_path(text), size_ignoring_path(pattern))
            }
            ("contains", Some(text), [part]) => {
                let part = size_ignoring_path(part).max_text_read_cost();
                size_ignoring_path(text).max_text_read_cost().saturating_mul(part)
            }
            ("_+_", None, [left, right])
                if matches!(first, Some(Type::String | Type::Bytes | Type::List(_))) =>
            {
                let result = size_ignoring_path(left).plus(size_ignoring_path(right));
                self.merge_content_sizes(call.id, left.id, right.id);
                // Lists are chained, not copied.
                let is_list = matches!(first, Some(Type::List(_)));
                return Some(Estimate::of_size(
                    if is_list { 1 } else { result.max_text_read_cost() },
                    result,
                ));
            }
            ("_<_" | "_<=_" | "_>_" | "_>=_", None, [left, right])
                if matches!(first, Some(Type::String | Type::Bytes)) =>
            {
                comparison_cost(left, right)
            }
            ("_==_" | "_!=_", None, [left, right]) => comparison_cost(left, right),
            _ => return None,
        };
        Some(Estimate::of_unknown_size(cost))
    }
}

/// The size of an argument as known before the call; otherwise [`SizeRange::UNKNOWN`]. cel-go does not look at its path
/// again, the libraries do.
fn size_ignoring_path(operand: &Operand<'_>) -> SizeRange {
    operand.known.unwrap_or(SizeRange::UNKNOWN)
}

/// The cost of comparing two values: that of reading the shorter one.
fn comparison_cost(left: &Operand<'_>, right: &Operand<'_>) -> u64 {
    SizeRange::up_to(size_ignoring_path(left).max.min(size_ignoring_path(right).max)).max_text_read_cost()
}

/// The cost of matching a text with a pattern. The text counts as one character longer, so that an empty text
/// has a cost.
pub(super) fn pattern_cost(text: SizeRange, pattern: SizeRange) -> u64 {
    let text = text.plus(SizeRange::exactly(1)).max_text_read_cost();
    text.saturating_mul(pattern.max_read_cost(COST_PER_PATTERN_CHARACTER))
}
