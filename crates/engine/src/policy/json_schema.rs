//! JSON Schema for taint data and opaque parameters: compiled when a set is loaded, without external references.
//!
//! Schemas are trusted, data is not. The `jsonschema` crate validates schemas and evaluates assertions; alternatives and
//! recursion are evaluated here (`graph`, `evaluate`), each subschema once for each value, with a budget of steps for the
//! whole object. A value that cannot be checked within the budget is a violation, and so is a key that a Go decoder
//! confuses with another one (`keys`).
//!
//! Invariant: time and memory are at most linear in the data, whatever the schema.
#![expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]

mod evaluate;
mod explain;
mod fold;
mod graph;
mod instance;
mod keys;

pub(super) use evaluate::Budget;
pub(super) use explain::SchemaViolation;
pub(super) use keys::{SoughtNames, TYPE_NAMES, values_of};

use std::collections::HashSet;

use jsonschema::PatternOptions;

use evaluate::Evaluation;
use explain::{Explanation, ViolationSink};
use graph::Graph;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;

/// What is said of a value for which no steps are left.
const STEP_LIMIT: &str = "cannot be checked: evaluating its schema exceeds the step limit";

/// Deeper values are not checked.
const MAX_DEPTH: usize = 127;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema(Graph);

impl Schema {
    /// Compiles a schema written in JSON.
    pub(super) fn compile(json: &str) -> Result<Schema, String> {
        let schema: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex()).offline();
        options.build(&schema).map_err(|error| error.to_string())?;
        Graph::read(&schema).map(Schema)
    }

    /// Checks a value; `visit` gets each violation with its path.
    pub(super) fn check(
        &self,
        value: Value<'_>,
        at: &Path<'_>,
        budget: &mut Budget,
        visit: &mut dyn FnMut(&Path<'_>, SchemaViolation),
    ) {
        let mut faults = ViolationSink::new(visit);
        check_with_budget(&self.0, value, at, budget, &mut faults, &mut |run, faults| {
            keys::check(run, value, &[0], &TYPE_NAMES, at, faults);
            if !run.is_spent && !run.is_valid(0, value) {
                let mut explanation =
                    Explanation { run: &mut *run, faults: &mut *faults, seen: HashSet::new() };
                explanation.explain(0, value, at);
                if faults.is_empty() && !run.is_spent {
                    faults.report_whole(at, "does not match its schema");
                }
            }
        });
    }
}

/// Checks for keys that a Go decoder confuses with others, where there is no schema.
pub(super) fn check_keys(
    value: Value<'_>,
    at: &Path<'_>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(&Path<'_>, SchemaViolation),
) {
    let mut faults = ViolationSink::new(visit);
    check_with_budget(&Graph::default(), value, at, budget, &mut faults, &mut |run, faults| {
        keys::check(run, value, &[], &TYPE_NAMES, at, faults);
    });
}

/// Checks for keys that an expression would not find by the names it looks for, or would find with another value.
pub(super) fn check_sought_keys(
    value: Value<'_>,
    sought: &SoughtNames,
    at: &Path<'_>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(&Path<'_>, SchemaViolation),
) {
    let mut faults = ViolationSink::new(visit);
    check_with_budget(&Graph::default(), value, at, budget, &mut faults, &mut |run, faults| {
        keys::check_sought(run, value, sought, at, faults);
    });
}

/// Checks for keys that a Go decoder confuses with those that determine the type of the value.
pub(super) fn check_type_keys(
    value: Value<'_>,
    at: &Path<'_>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(&Path<'_>, SchemaViolation),
) {
    let mut faults = ViolationSink::new(visit);
    budget.grant(value);
    if budget.take_for(value) {
        keys::check_type(value, at, &mut faults);
    } else {
        faults.report_whole(at, STEP_LIMIT);
    }
}

/// Checks a value within the budget, and reports if that is not possible.
fn check_with_budget(
    graph: &Graph,
    value: Value<'_>,
    at: &Path<'_>,
    budget: &mut Budget,
    faults: &mut ViolationSink<'_>,
    check: &mut dyn FnMut(&mut Evaluation<'_>, &mut ViolationSink<'_>),
) {
    budget.grant(value);
    if !budget.take_for(value) {
        return faults.report_whole(at, STEP_LIMIT);
    }
    if let Err(reason) = can_be_checked(value) {
        return faults.report_whole(at, &format!("cannot be checked: {reason}"));
    }
    let mut run = Evaluation::new(graph, budget);
    check(&mut run, faults);
    if run.is_spent && faults.is_empty() {
        faults.report_whole(at, STEP_LIMIT);
    } else if faults.is_full() {
        // Omitted violations may be new: only the same value is excused.
        faults.report_whole(at, "has more violations than are listed");
    }
}

/// A name, shortened for a message.
fn cut(name: &str) -> String {
    match name.char_indices().nth(128) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// Why a value cannot be checked, if so.
fn can_be_checked(value: Value<'_>) -> Result<(), String> {
    let mut open: Vec<usize> = Vec::new();
    for part in value.descendants() {
        let index = part.index() as usize;
        while open.last().is_some_and(|end| *end <= index) {
            open.pop();
        }
        match part.kind() {
            ValueKind::Array | ValueKind::Object => {
                open.push(index + part.size());
                if open.len() > MAX_DEPTH {
                    return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
                }
            }
            ValueKind::Number => {
                let number: Result<serde_json::Number, _> = serde_json::from_str(part.text());
                number.map_err(|error| error.to_string())?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
