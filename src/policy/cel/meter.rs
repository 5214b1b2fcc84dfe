//! The budget of an evaluation, in steps of 0.1 to 0.25 microseconds (`benches/policies.rs`).
//!
//! Functions of the interpreter are plain pointers, so the counter is thread-local: one evaluation at a time.
//!
//! Invariant: an exhausted budget stays exhausted until the next [`start`], whatever the expression does.

use std::cell::Cell;

/// Steps of one evaluation: at most 25 milliseconds, and several times what a policy over a full slice takes.
pub(super) const MAX_EVALUATION_STEPS: u64 = 100_000;
/// Steps of all evaluations of one request: at most 50 milliseconds.
pub(super) const MAX_REQUEST_STEPS: u64 = 200_000;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(0) };
    static EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Starts an evaluation with that many steps.
pub(super) fn start(steps: u64) {
    STEPS_LEFT.set(steps);
    EXHAUSTED.set(false);
}

/// Remaining steps; 0 once the budget is exhausted.
pub(super) fn left() -> u64 {
    if EXHAUSTED.get() { 0 } else { STEPS_LEFT.get() }
}

/// Charges steps; false if there are not enough left.
pub(super) fn charge(steps: u64) -> bool {
    if EXHAUSTED.get() {
        return false;
    }
    let left = STEPS_LEFT.get().checked_sub(steps);
    STEPS_LEFT.set(left.unwrap_or_default());
    EXHAUSTED.set(left.is_none());
    left.is_some()
}

/// True if the budget is exhausted.
pub(super) fn is_exhausted() -> bool {
    EXHAUSTED.get()
}
