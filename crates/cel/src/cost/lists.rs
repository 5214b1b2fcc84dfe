//! What calls of the list and set libraries cost. cel-go `ext/lists.go` and `ext/sets.go`, cost estimators.

use super::Estimator;
use super::call::{Estimate, OverloadCall};
use crate::number::double_of_uint;
use crate::size::SizeRange;
use crate::tree::{ExprKind, Literal, NodeId};
use crate::types::Type;

/// Cost of a call that creates a list, in cel-go's units: one for the call, ten for the list.
const NEW_LIST_CALL_COST: u64 = 11;

impl Estimator<'_> {
    /// cel-go's estimate for a call of the list and set libraries, without arguments; `None` for other
    /// functions.
    pub(super) fn list_estimate(&self, call: &OverloadCall<'_, '_>) -> Option<Estimate> {
        let estimate = match (call.overload.name, call.target, call.args) {
            (name @ ("sets.contains" | "sets.intersects" | "sets.equivalent"), None, [left, right]) => {
                let factor = if name == "sets.equivalent" { 2.0 } else { 1.0 };
                let pairs = left.size().times(right.size());
                Estimate::of_unknown_size(pairs.max_read_cost(factor).saturating_add(1))
            }
            ("slice", Some(list), [start, end]) => {
                let end = self.int_literal_with_negatives_as_zero(end.id).unwrap_or(list.size().max);
                let start = self.int_literal_with_negatives_as_zero(start.id).unwrap_or(0);
                // Wraps around where a slice ends before it starts.
                new_list_estimate(1.0, SizeRange::exactly(end.wrapping_sub(start)))
            }
            ("flatten" | "reverse", Some(list), []) => new_list_estimate(1.0, list.size()),
            ("flatten", Some(list), [depth]) => new_list_estimate(
                double_of_uint(self.int_literal_with_negatives_as_zero(depth.id).unwrap_or(u64::MAX)),
                list.size(),
            ),
            ("lists.range", None, [count]) => new_list_estimate(
                1.0,
                SizeRange::exactly(self.int_literal_with_negatives_as_zero(count.id).unwrap_or(u64::MAX)),
            ),
            ("distinct", Some(list), []) => new_list_estimate(2.0, list.size().times(list.size())),
            ("sort", Some(list), []) => new_list_estimate(sort_factor(call), list.size().times(list.size())),
            ("@sortByAssociatedKeys", Some(_), [keys]) => {
                new_list_estimate(sort_factor(call), keys.size().times(keys.size()))
            }
            _ => return None,
        };
        Some(estimate)
    }

    /// The number if the node is an integer literal, 0 if it is negative; `None` for other nodes.
    fn int_literal_with_negatives_as_zero(&self, id: NodeId) -> Option<u64> {
        match self.tree.kind(id) {
            ExprKind::Literal(Literal::Int(value)) => Some(u64::try_from(*value).unwrap_or(0)),
            _ => None,
        }
    }
}

/// The estimate for a function that makes a new list, given the cost per element and the size of the list.
fn new_list_estimate(factor: f64, list: SizeRange) -> Estimate {
    Estimate::of_size(list.max_read_cost(factor).saturating_add(NEW_LIST_CALL_COST), list)
}

/// The cost of sorting per pair of elements: a little more for strings than for numbers.
fn sort_factor(call: &OverloadCall<'_, '_>) -> f64 {
    match call.overload.params.last() {
        Some(Type::List(element)) if matches!(**element, Type::String | Type::Bytes) => 2.1,
        _ => 2.0,
    }
}
