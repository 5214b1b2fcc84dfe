//! How many steps the JSON Schemas of a request may take.
//!
//! The `jsonschema` crate has no limit of its own. It sees the data only by way of [`Instance`](super::instance::Instance),
//! which takes a step for each look. Once there are no steps left, values look as if they were empty, so that evaluation
//! ends soon.
//!
//! Invariant: what was decided after the meter was closed is never used.

use std::cell::Cell;

use tollgate_document::doc::Value;

/// Steps that every object may take.
const BASE_STEPS: u64 = 50_000;
/// Steps for each key, item and scalar of the data.
const STEPS_PER_NODE: u64 = 256;
/// Steps that no object may exceed, whatever its size.
const MAX_STEPS: u64 = 4_000_000;
/// Steps for a value as such, whatever its schema.
const STEPS_PER_VALUE: u64 = 8;
/// Parts of a value that are looked at in one step, to see whether it can be checked.
const PARTS_PER_STEP: u64 = 8;
/// Errors that the crate may collect about one value, also those of alternatives. Each contains its path through the
/// schema, which takes some kilobytes for a deep value.
const MAX_ERRORS: usize = 256;
/// Members or items of a value that count as one more error: an error can list them.
const PARTS_PER_ERROR: usize = 4;
/// Bytes of a schema that count as one more error: an error can contain a part of it.
const BYTES_PER_ERROR: usize = 256;

/// How many steps the JSON Schemas of all policies may take for one object.
#[derive(Clone, Debug, Default)]
pub(in crate::policy) struct Budget {
    granted: Cell<u64>,
    taken: Cell<u64>,
}

impl Budget {
    /// Grants steps for one more value.
    pub(super) fn grant(&self, value: Value<'_>) {
        let steps = (value.size() as u64).saturating_mul(STEPS_PER_NODE);
        self.granted.set(self.granted.get().max(BASE_STEPS).saturating_add(steps).min(MAX_STEPS));
    }

    /// Takes steps; false if there are not enough.
    fn take(&self, steps: u64) -> bool {
        let taken = self.taken.get().saturating_add(steps);
        let is_granted = taken <= self.granted.get();
        if is_granted {
            self.taken.set(taken);
        }
        is_granted
    }

    /// Takes steps for looking at a value once; false if there are not enough.
    pub(super) fn take_for(&self, value: Value<'_>) -> bool {
        self.take(STEPS_PER_VALUE + value.size() as u64 / PARTS_PER_STEP)
    }

    /// Takes steps that were needed, as far as there are any left.
    pub(in crate::policy) fn charge(&self, steps: u64) {
        self.taken.set(self.taken.get().saturating_add(steps).min(self.granted.get()));
    }

    /// Steps that were taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.taken.get()
    }
}

/// Counts the steps of one evaluation.
#[derive(Debug)]
pub(super) struct Meter<'b> {
    budget: &'b Budget,
    is_closed: Cell<bool>,
    errors: Cell<usize>,
    error_weight: usize,
}

impl<'b> Meter<'b> {
    pub(super) fn new(budget: &'b Budget) -> Meter<'b> {
        Meter { budget, is_closed: Cell::new(false), errors: Cell::new(0), error_weight: 1 }
    }

    /// A meter for collecting errors, of which each may contain a part of a schema of so many bytes.
    pub(super) fn for_errors(&self, bytes: usize) -> Meter<'b> {
        Meter { error_weight: 1 + bytes / BYTES_PER_ERROR, ..Meter::new(self.budget) }
    }

    /// Takes steps; false if it is over.
    pub(super) fn take(&self, steps: u64) -> bool {
        let is_open = !self.is_closed.get() && self.budget.take(steps);
        self.is_closed.set(!is_open);
        is_open
    }

    /// Counts an error of the crate about a value of so many members or items; false if it was found too late to mean
    /// anything.
    pub(super) fn count_error(&self, parts: usize) -> bool {
        let is_open = !self.is_closed.get();
        let errors = self.errors.get() + self.error_weight + parts / PARTS_PER_ERROR;
        self.errors.set(errors);
        self.is_closed.set(!is_open || errors >= MAX_ERRORS);
        is_open
    }

    /// The steps, or the errors that may be collected, were used up.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }
}
