//! The step budget for evaluating JSON Schemas.
//!
//! The `jsonschema` crate has no limit of its own. It reads the data only through
//! [`Instance`](super::instance::Instance), which takes a step for each access. When no steps are left, values appear
//! to be empty, so that the evaluation ends soon.
//!
//! Invariant: results after the budget was exhausted are never used.

use std::cell::Cell;

use tollgate_document::doc::Value;

/// Number of steps that the schemas may take for every object, whatever its size.
const BASE_STEPS: u64 = 50_000;
/// Steps that are granted for each key, item and scalar of the data.
const GRANTED_STEPS_PER_NODE: u64 = 256;
/// Maximum number of steps that the schemas may take for one object, however large it is.
const MAX_STEPS: u64 = 4_000_000;
/// Steps that are charged for each value, independent of its schema.
const CHARGED_STEPS_PER_VALUE: u64 = 8;
/// Number of parts of a value that are visited in one step when checking whether it can be evaluated.
const PARTS_PER_STEP: u64 = 8;
/// Maximum number of errors that the `jsonschema` crate may collect for one value, including errors of
/// alternatives. Each error contains its path in the schema, which takes some kilobytes for a deep value.
const MAX_COLLECTED_ERRORS: usize = 256;
/// Members or items of a value that count as one more error: an error can list them.
const PARTS_COUNTED_AS_ERROR: usize = 4;
/// Bytes of a schema that count as one more error: an error can contain a part of it.
const SCHEMA_BYTES_COUNTED_AS_ERROR: usize = 256;

/// The steps that the JSON Schemas of all policies may take for one object.
#[derive(Clone, Debug, Default)]
pub(in crate::policy) struct SchemaBudget {
    granted: Cell<u64>,
    taken: Cell<u64>,
}

impl SchemaBudget {
    /// Grants the steps that checking this value may take: enlarges the budget, up to [`MAX_STEPS`].
    pub(super) fn grant_steps_for(&self, value: Value<'_>) {
        let steps = (value.node_count() as u64).saturating_mul(GRANTED_STEPS_PER_NODE);
        self.granted.set(self.granted.get().max(BASE_STEPS).saturating_add(steps).min(MAX_STEPS));
    }

    /// Takes steps from the budget; returns false if too few are left.
    fn take_steps(&self, steps: u64) -> bool {
        let taken = self.taken.get().saturating_add(steps);
        let is_granted = taken <= self.granted.get();
        if is_granted {
            self.taken.set(taken);
        }
        is_granted
    }

    /// Takes the steps for visiting a value once; returns false if too few are left.
    pub(super) fn take_steps_to_visit(&self, value: Value<'_>) -> bool {
        self.take_steps(CHARGED_STEPS_PER_VALUE + value.node_count() as u64 / PARTS_PER_STEP)
    }

    /// Takes steps for work that is already done, as far as there are any left.
    pub(in crate::policy) fn take_available(&self, steps: u64) {
        self.taken.set(self.taken.get().saturating_add(steps).min(self.granted.get()));
    }

    /// Number of steps taken so far.
    #[cfg(test)]
    pub(super) fn steps_taken(&self) -> u64 {
        self.taken.get()
    }
}

/// Counts the steps of one evaluation, and stops it if the budget is exhausted or too many errors were collected.
#[derive(Debug)]
pub(super) struct EvaluationMeter<'b> {
    budget: &'b SchemaBudget,
    is_closed: Cell<bool>,
    errors: Cell<usize>,
    error_weight: usize,
}

impl<'b> EvaluationMeter<'b> {
    pub(super) fn new(budget: &'b SchemaBudget) -> EvaluationMeter<'b> {
        EvaluationMeter { budget, is_closed: Cell::new(false), errors: Cell::new(0), error_weight: 1 }
    }

    /// Creates a meter for collecting errors. Each error may contain a schema part of `bytes` bytes.
    pub(super) fn for_errors_with_schema_part_bytes(&self, bytes: usize) -> EvaluationMeter<'b> {
        EvaluationMeter {
            error_weight: 1 + bytes / SCHEMA_BYTES_COUNTED_AS_ERROR,
            ..EvaluationMeter::new(self.budget)
        }
    }

    /// Takes steps; returns false if the meter is exhausted.
    pub(super) fn take_steps(&self, steps: u64) -> bool {
        let is_open = !self.is_closed.get() && self.budget.take_steps(steps);
        self.is_closed.set(!is_open);
        is_open
    }

    /// Counts an error about a value with `parts` members or items. Returns false if the meter was already
    /// exhausted, so that the error is not reliable.
    pub(super) fn count_error(&self, parts: usize) -> bool {
        let is_open = !self.is_closed.get();
        let errors = self.errors.get() + self.error_weight + parts / PARTS_COUNTED_AS_ERROR;
        self.errors.set(errors);
        self.is_closed.set(!is_open || errors >= MAX_COLLECTED_ERRORS);
        is_open
    }

    /// True if the evaluation was stopped: its steps or its errors are used up, so that its result must not be used.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_closed.get()
    }
}
