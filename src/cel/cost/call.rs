//! The cost of one call, and the size of its result, by function and overload.
//!
//! Most functions cost 1 plus their arguments; the ones listed read or build something whose size
//! matters. Kubernetes' own table comes first, as it does on the server.

use super::{Contents, Estimator};
use crate::cel::overload::{Decl, Overload, Style};
use crate::cel::size::{Factor, PER_CHARACTER, PER_COPIED_CHARACTER, PER_PATTERN_CHARACTER, Size};
use crate::cel::tree::{ExprKind, Literal, NodeId};
use crate::cel::types::Type;

/// An authorization check, of which two fit under the limit. upstream v1.34 `EstimateCallCost`
const AUTHORIZER_CHECK: u64 = 350_000;
/// The longest pattern behind a named format, as a pattern's cost. upstream v1.34 `MaxNameFormatRegexSize`
const FORMAT_PATTERN: Factor = Factor(32, 1);
const ALLOCATED_LIST: u64 = 11;
/// Bytes of the longest address.
const ADDRESS_BYTES: u64 = 16;
/// Comparing two of them, a tenth of their bytes.
const COMPARED_ADDRESSES: u64 = 4;

/// What a call costs beside its arguments, and how large its result is.
struct Estimate {
    cost: u64,
    size: Option<Size>,
}

impl Estimate {
    fn of(cost: u64) -> Estimate {
        Estimate { cost, size: None }
    }

    fn sized(cost: u64, size: Size) -> Estimate {
        Estimate { cost, size: Some(size) }
    }
}

impl Estimator<'_> {
    pub(super) fn cost_of_call(
        &mut self,
        id: NodeId,
        function: &str,
        target: Option<NodeId>,
        args: &[NodeId],
    ) -> u64 {
        if let ("dyn", None, [arg]) = (function, target, args) {
            let cost = self.cost(*arg).saturating_add(1);
            let (size, contents) = (self.size(*arg), self.contents(*arg));
            super::put(&mut self.sizes, id, size);
            super::put(&mut self.contents, id, contents);
            return cost;
        }
        let arg_costs: Vec<u64> = args.iter().map(|arg| self.cost(*arg)).collect();
        let overloads = self.checked.overloads(id);
        // `sets.contains(…)` is spelled like a member call and is none.
        let is_member = overloads.first().is_some_and(|overload| overload.style == Style::Member);
        let target = target.filter(|_| is_member);
        let target_cost = target.map_or(0, |target| self.cost(target));
        let mut worst = 0;
        let mut size: Option<Size> = None;
        for overload in overloads {
            let call = Call { id, function: overload.name, overload, target, args };
            let estimate = self.estimate(&call, &arg_costs);
            worst = worst.max(estimate.cost);
            size = match (size, estimate.size) {
                (Some(left), Some(right)) => Some(left.union(right)),
                (left, right) => left.or(right),
            };
            if let ("_[_]", [container, ..]) = (function, args) {
                size = self.contents(*container).map(|inside: Contents| inside.value);
                let device_value = self.device_value(*container).and_then(super::DeviceValue::value);
                super::put(&mut self.device_values, id, device_value);
            }
        }
        let size = size.or_else(|| self.size(id));
        super::put(&mut self.sizes, id, size);
        target_cost.saturating_add(worst)
    }

    /// Arguments included.
    fn estimate(&mut self, call: &Call<'_>, arg_costs: &[u64]) -> Estimate {
        let args = arg_costs.iter().fold(0_u64, |sum, cost| sum.saturating_add(*cost));
        if let Some(estimate) = self.lists_and_sets(call).or_else(|| self.kubernetes(call)) {
            return Estimate { cost: estimate.cost.saturating_add(args), ..estimate };
        }
        match (call.function, arg_costs) {
            ("_&&_" | "_||_", _) => return Estimate::of(args),
            ("_?_:_", [condition, yes, no]) => {
                return self.conditional(call, condition.saturating_add(*yes.max(no)));
            }
            _ => {}
        }
        let estimate = self.standard(call).unwrap_or_else(|| Estimate::of(1));
        Estimate { cost: estimate.cost.saturating_add(args), ..estimate }
    }

    fn conditional(&mut self, call: &Call<'_>, cost: u64) -> Estimate {
        let [_, yes, no] = call.args else { return Estimate::of(cost) };
        let inside = self.contents(*yes).zip(self.contents(*no)).map(|(yes, no)| yes.union(no));
        super::put(&mut self.contents, call.id, inside);
        Estimate::sized(cost, self.size_or_unknown(*yes).union(self.size_or_unknown(*no)))
    }

    /// cel-go `functionCost`
    fn standard(&mut self, call: &Call<'_>) -> Option<Estimate> {
        let size = |id: &NodeId| self.size_or_unknown(*id);
        let estimate = match (call.function, call.target.as_ref(), call.args) {
            ("format", Some(text), [list]) => {
                let result = size(text).plus(size(list));
                Estimate::sized(PER_CHARACTER.times(size(text).max), result)
            }
            ("bytes", None, [text]) if call.first() == Some(Decl::Str) => {
                let read = size(text);
                let result = Size { min: read.min, max: read.max.saturating_mul(4) };
                Estimate::sized(PER_CHARACTER.times(read.max), result)
            }
            ("string", None, [bytes]) if call.first() == Some(Decl::Bytes) => {
                let read = size(bytes);
                Estimate::sized(PER_CHARACTER.times(read.max), Size { min: read.min / 4, max: read.max })
            }
            ("strings.quote", None, [text]) => {
                let read = size(text);
                let result = Size {
                    min: read.min.saturating_add(2),
                    max: read.max.saturating_mul(2).saturating_add(2),
                };
                Estimate::sized(PER_CHARACTER.times(read.max), result)
            }
            ("startsWith" | "endsWith", Some(_), [affix]) => {
                Estimate::of(PER_CHARACTER.times(size(affix).max))
            }
            ("@in", None, [_, list]) if matches!(call.second(), Some(Decl::List(_))) => {
                Estimate::of(size(list).max)
            }
            ("matches", Some(text), [pattern]) => Estimate::of(pattern_cost(size(text), size(pattern))),
            ("contains", Some(text), [part]) => Estimate::of(
                PER_CHARACTER.times(size(text).max).saturating_mul(PER_CHARACTER.times(size(part).max)),
            ),
            ("_+_", None, [left, right])
                if matches!(call.first(), Some(Decl::Str | Decl::Bytes | Decl::List(_))) =>
            {
                let result = size(left).plus(size(right));
                let inside =
                    self.contents(*left).zip(self.contents(*right)).map(|(left, right)| left.union(right));
                super::put(&mut self.contents, call.id, inside);
                // Lists are chained, not copied.
                let is_list = matches!(call.first(), Some(Decl::List(_)));
                Estimate::sized(if is_list { 1 } else { PER_CHARACTER.times(result.max) }, result)
            }
            ("_<_" | "_<=_" | "_>_" | "_>=_", None, [left, right])
                if matches!(call.first(), Some(Decl::Str | Decl::Bytes)) =>
            {
                Estimate::of(PER_CHARACTER.times(size(left).max.min(size(right).max)))
            }
            ("_==_" | "_!=_", None, [left, right]) => {
                Estimate::of(PER_CHARACTER.times(size(left).max.min(size(right).max)))
            }
            _ => return None,
        };
        Some(estimate)
    }

    /// upstream v1.34 `library.CostEstimator.EstimateCallCost`
    fn kubernetes(&self, call: &Call<'_>) -> Option<Estimate> {
        let size = |id: &NodeId| self.size_or_unknown(*id);
        let estimate = match (call.function, call.target.as_ref(), call.args) {
            ("check", Some(_), _) => Estimate::of(AUTHORIZER_CHECK),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), _) => {
                Estimate::of(self.traversal(*list))
            }
            ("url", None, [text]) => Estimate::sized(PER_CHARACTER.times(size(text).max), size(text)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                Estimate::sized(PER_CHARACTER.times(size(text).max), size(text))
            }
            ("replace", Some(text), [old, new, ..]) => {
                let result = size(text).replaced(size(old), size(new));
                Estimate::sized(PER_COPIED_CHARACTER.times(size(text).max), result)
            }
            ("split", Some(text), [_, limit @ ..]) => {
                let pieces = limit.first().and_then(|limit| self.literal_count(*limit));
                let result = Size::up_to(pieces.unwrap_or(size(text).max));
                Estimate::sized(PER_COPIED_CHARACTER.times(size(text).max), result)
            }
            ("join", Some(list), separator) => {
                let pieces = size(list);
                let mut result = pieces.times(self.element_size(*list));
                if let [separator] = separator {
                    let gaps = Size { min: pieces.min.saturating_sub(1), max: pieces.max.saturating_sub(1) };
                    result = result.plus(size(separator).times(gaps));
                }
                Estimate::sized(PER_CHARACTER.times(result.max), result)
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                Estimate::sized(pattern_cost(size(text), size(pattern)), Size::up_to(size(text).max))
            }
            ("ip", Some(_), []) => Estimate::of(1),
            (
                "quantity" | "isQuantity" | "semver" | "isSemver" | "ip" | "isIP" | "cidr" | "isCIDR",
                None,
                [text, ..],
            ) => Estimate::of(PER_CHARACTER.times(size(text).max)),
            // Parsed, and compared with what it was parsed from.
            ("ip.isCanonical", None, [text]) => Estimate::of(PER_COPIED_CHARACTER.times(size(text).max)),
            ("containsIP", Some(_), [other]) => {
                Estimate::of(COMPARED_ADDRESSES.saturating_add(self.parsed_address(call, *other)))
            }
            ("containsCIDR", Some(_), [other]) => {
                let masked = PER_CHARACTER.times(ADDRESS_BYTES) + 1;
                Estimate::of((COMPARED_ADDRESSES + masked).saturating_add(self.parsed_address(call, *other)))
            }
            ("validate", Some(_), [text]) => {
                Estimate::of(FORMAT_PATTERN.times(PER_CHARACTER.times(size(text).max)))
            }
            // Comparing two values of one library type is one step. That is said of `==` only: `!=` compares two values of
            // unknown size, and is too dear for any selector.
            ("_==_", None, [left, right]) if self.are_one_named_type(*left, *right) => Estimate::of(1),
            _ => return None,
        };
        Some(estimate)
    }

    /// cel-go `ext/lists.go` and `ext/sets.go`, cost estimators
    fn lists_and_sets(&self, call: &Call<'_>) -> Option<Estimate> {
        let size = |id: &NodeId| self.size_or_unknown(*id);
        let allocating = |factor: Factor, list: Size| {
            Estimate::sized(factor.times(list.max).saturating_add(ALLOCATED_LIST), list)
        };
        let estimate = match (call.function, call.target.as_ref(), call.args) {
            ("sets.contains" | "sets.intersects", None, [left, right]) => {
                Estimate::of(size(left).times(size(right)).max.saturating_add(1))
            }
            ("sets.equivalent", None, [left, right]) => {
                Estimate::of(Factor(2, 1).times(size(left).times(size(right)).max).saturating_add(1))
            }
            ("slice", Some(list), [start, end]) => {
                let end = self.literal_count(*end).unwrap_or(size(list).max);
                let start = self.literal_count(*start).unwrap_or(0);
                allocating(Factor(1, 1), Size::exactly(end.saturating_sub(start)))
            }
            ("flatten" | "reverse", Some(list), []) => allocating(Factor(1, 1), size(list)),
            ("flatten", Some(list), [depth]) => {
                allocating(Factor(self.literal_count(*depth).unwrap_or(u64::MAX), 1), size(list))
            }
            ("lists.range", None, [count]) => {
                allocating(Factor(1, 1), Size::exactly(self.literal_count(*count).unwrap_or(u64::MAX)))
            }
            ("distinct", Some(list), []) => allocating(Factor(2, 1), size(list).times(size(list))),
            ("sort", Some(list), []) => allocating(call.sort_factor(), size(list).times(size(list))),
            ("@sortByAssociatedKeys", Some(_), [keys]) => {
                allocating(call.sort_factor(), size(keys).times(size(keys)))
            }
            _ => return None,
        };
        Some(estimate)
    }

    /// What it costs to read an address that is given as a string.
    fn parsed_address(&self, call: &Call<'_>, other: NodeId) -> u64 {
        let is_text = call.second() == Some(Decl::Str);
        if is_text { PER_CHARACTER.times(self.size_or_unknown(other).max) } else { 0 }
    }

    /// Reading a list's elements once, or a string's characters.
    fn traversal(&self, target: NodeId) -> u64 {
        let size = self.size_or_unknown(target);
        match self.checked.type_of(target) {
            Type::List(element) if matches!(**element, Type::String | Type::Bytes) => {
                let each = PER_CHARACTER.times(self.element_size(target).max).saturating_add(1);
                size.max.saturating_mul(each)
            }
            Type::List(_) => size.max,
            _ => PER_CHARACTER.times(size.max),
        }
    }

    /// The size of a list's elements, which only a path into the device tells: not even those of a literal are known.
    /// upstream v1.37 `listElementNode`
    fn element_size(&self, list: NodeId) -> Size {
        let inside = self.device_value(list).and_then(super::DeviceValue::value);
        match self.checked.type_of(list) {
            Type::List(_) => inside.map_or(Size::UNKNOWN, super::DeviceValue::size),
            // Of what may be a list nothing is counted.
            _ => Size::exactly(0),
        }
    }

    fn literal_count(&self, id: NodeId) -> Option<u64> {
        match self.tree.kind(id) {
            ExprKind::Literal(Literal::Int(value)) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    fn are_one_named_type(&self, left: NodeId, right: NodeId) -> bool {
        let left = self.checked.type_of(left);
        matches!(left, Type::Named(_)) && left == self.checked.type_of(right)
    }
}

struct Call<'c> {
    id: NodeId,
    function: &'static str,
    overload: &'static Overload,
    target: Option<NodeId>,
    args: &'c [NodeId],
}

impl Call<'_> {
    fn first(&self) -> Option<Decl> {
        self.overload.params.first().copied()
    }

    fn second(&self) -> Option<Decl> {
        self.overload.params.get(1).copied()
    }

    /// Comparing strings costs a little more than comparing numbers.
    fn sort_factor(&self) -> Factor {
        match self.overload.params.last() {
            Some(Decl::List(Decl::Str | Decl::Bytes)) => Factor(21, 10),
            _ => Factor(2, 1),
        }
    }
}

/// One more than the text, so that an empty text does not make a pattern free.
fn pattern_cost(text: Size, pattern: Size) -> u64 {
    PER_CHARACTER.times(text.max.saturating_add(1)).saturating_mul(PER_PATTERN_CHARACTER.times(pattern.max))
}
