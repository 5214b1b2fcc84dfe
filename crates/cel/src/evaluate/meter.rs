//! What an evaluation costs, in the server's units, while it runs.
//!
//! cel-go remembers the value of every step on a stack, and finds a call's arguments there by the ids of their
//! expressions. Whatever lies above an argument is forgotten with it, and a call whose arguments are not found costs
//! nothing. All of this shows in the sum, so it is done here in the same way. cel-go `interpreter/runtimecost.go`

use super::plan::Plan;
use super::value::{EvalFailure, Value, cost_limit_exceeded};
use crate::MAX_COST;
use crate::tree::NodeId;

/// The cost of an evaluation so far, and the values that cel-go's cost tracker remembers.
#[derive(Default)]
pub(super) struct CostMeter {
    cost: u64,
    stack: Vec<RememberedValue>,
    /// For each expression, the positions of its values on the stack.
    places: Vec<Vec<usize>>,
}

/// The value of a step on the tracker's stack, with the expression that it belongs to.
struct RememberedValue {
    id: NodeId,
    /// The value; `None` for an error.
    value: Option<Value>,
}

impl CostMeter {
    pub(super) fn add(&mut self, cost: u64) {
        self.cost = self.cost.wrapping_add(cost);
    }

    /// Fails if a call that costs this much would exceed the remaining budget.
    pub(super) fn check_affordable(&self, cost: u64) -> Result<(), EvalFailure> {
        if self.cost.saturating_add(cost) > MAX_COST { Err(cost_limit_exceeded()) } else { Ok(()) }
    }

    /// Refunds the cost of a presence test, which is free.
    pub(super) fn refund_one(&mut self) {
        self.cost = self.cost.wrapping_sub(1);
    }

    /// Records the value of a step, and fails if the cost limit is exceeded.
    pub(super) fn record_value_and_check_limit(
        &mut self,
        id: NodeId,
        value: Option<&Value>,
    ) -> Result<(), EvalFailure> {
        if self.places.len() <= id.index() {
            self.places.resize_with(id.index() + 1, Vec::new);
        }
        if let Some(places) = self.places.get_mut(id.index()) {
            places.push(self.stack.len());
        }
        self.stack.push(RememberedValue { id, value: value.cloned() });
        self.check_affordable(0)
    }

    /// Removes the latest value of each expression, and all values above it.
    pub(super) fn pop_values_and_all_above(&mut self, ids: impl IntoIterator<Item = NodeId>) {
        for id in ids {
            self.pop_value_and_all_above(id);
        }
    }

    /// Removes the arguments of a call and returns them, unless one is not found.
    pub(super) fn take_args(&mut self, plan: &Plan, args: &[NodeId]) -> Option<Vec<Option<Value>>> {
        let mut found = Vec::with_capacity(args.len());
        for arg in args.iter().rev() {
            found.push(self.pop_value_and_all_above(plan.step_cost_id(*arg)?)?.value);
        }
        found.reverse();
        Some(found)
    }

    fn pop_value_and_all_above(&mut self, id: NodeId) -> Option<RememberedValue> {
        let place = *self.places.get(id.index())?.last()?;
        let mut taken = None;
        while self.stack.len() > place
            && let Some(remembered) = self.stack.pop()
        {
            if let Some(places) = self.places.get_mut(remembered.id.index()) {
                places.pop();
            }
            taken = Some(remembered);
        }
        taken
    }
}
