//! What an evaluation may cost, counted in steps of a tenth to a quarter of a microsecond (`benches/policies.rs`).
//!
//! Functions of the interpreter are plain pointers, so the count lives in the thread: one evaluation at a time.
//!
//! Invariant: once the budget is spent it stays spent until the next [`start`], whatever the expression does.

use std::cell::Cell;

/// Steps of one evaluation: at most 25 milliseconds, and several times what a policy over a full slice takes.
pub(super) const EVALUATION: u64 = 100_000;
/// Steps of all evaluations of one request: at most 50 milliseconds.
pub(super) const REQUEST: u64 = 200_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static SPENT: Cell<bool> = const { Cell::new(false) };
}

/// A new evaluation with that many steps.
pub(super) fn start(steps: u64) {
    LEFT.set(steps);
    SPENT.set(false);
}

/// Steps that are left; none once more was asked for.
pub(super) fn left() -> u64 {
    if SPENT.get() { 0 } else { LEFT.get() }
}

/// Pays; false if there is not enough left.
pub(super) fn pay(steps: u64) -> bool {
    if SPENT.get() {
        return false;
    }
    let left = LEFT.get().checked_sub(steps);
    LEFT.set(left.unwrap_or_default());
    SPENT.set(left.is_none());
    left.is_some()
}

/// True if more was asked for than there was.
pub(super) fn is_spent() -> bool {
    SPENT.get()
}
