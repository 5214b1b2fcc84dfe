//! The budget of an evaluation, in steps of 0.1 to 0.25 microseconds (`benches/policies.rs`).
//!
//! Functions of the interpreter are plain pointers, so the counter is thread-local: one evaluation at a time.
//!
//! Invariant: an evaluation that was stopped stays so until the next [`start_evaluation`], whatever the expression
//! does.

use std::cell::Cell;

/// Maximum number of steps of one evaluation: at most 25 milliseconds, and several times what a policy over a full
/// slice takes.
pub(super) const MAX_EVALUATION_STEPS: u64 = 100_000;
/// Maximum number of steps of all evaluations for one request: at most 50 milliseconds.
pub(super) const MAX_REQUEST_STEPS: u64 = 200_000;

thread_local! {
    static STEPS_LEFT: Cell<u64> = const { Cell::new(0) };
    /// The error message about the limit that stopped the evaluation; `None` if it was not stopped.
    static STOP_REASON: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Starts an evaluation with this number of steps.
pub(super) fn start_evaluation(steps: u64) {
    STEPS_LEFT.set(steps);
    STOP_REASON.set(None);
}

/// Returns the steps that the current evaluation has left; 0 once it is stopped.
pub(super) fn steps_left() -> u64 {
    if STOP_REASON.get().is_some() { 0 } else { STEPS_LEFT.get() }
}

/// Takes steps from the budget of the current evaluation; false, and the evaluation is stopped, if there are not enough
/// left.
pub(super) fn charge(steps: u64) -> bool {
    if STOP_REASON.get().is_some() {
        return false;
    }
    let left = STEPS_LEFT.get().checked_sub(steps);
    STEPS_LEFT.set(left.unwrap_or_default());
    if left.is_none() {
        STOP_REASON.set(Some("exceeds the step limit"));
    }
    left.is_some()
}

/// Stops the evaluation because a value is nested too deep to be compared or formatted.
pub(super) fn stop_for_depth() {
    let reason = "compares or formats a value that is nested deeper than 200 levels";
    STOP_REASON.set(STOP_REASON.get().or(Some(reason)));
}

/// Returns why the current evaluation was stopped, as a text; `None` if it was not.
pub(super) fn stop_reason() -> Option<&'static str> {
    STOP_REASON.get()
}
