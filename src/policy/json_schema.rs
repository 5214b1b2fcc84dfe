//! JSON Schema for taint data and opaque parameters: compiled when a set is loaded, no references to elsewhere.
//!
//! The schema is the admin's, the data is anybody's. The `jsonschema` crate says whether a schema is one and judges
//! assertions; alternatives and recursion are walked here (`graph`, `evaluate`), each subschema once for each value,
//! with a budget of steps over the whole object. What cannot be checked within it is a fault and never passes. Neither
//! does a key that a Go decoder takes for another (`keys`).
//!
//! Invariant: time and memory are at most linear in the data, whatever the schema.
#![expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]

mod evaluate;
mod explain;
mod fold;
mod graph;
mod keys;
mod tape;

pub(super) use evaluate::Budget;
pub(super) use explain::Fault;
pub(super) use keys::{TYPE_NAMES, values_of};

use std::collections::HashSet;

use jsonschema::PatternOptions;

use crate::doc::{Kind, Value};
use crate::field::Path;
use evaluate::Evaluation;
use explain::{Explanation, Faults};
use graph::Graph;

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

    /// Holds a value against the schema; `visit` gets each fault with its path.
    pub(super) fn check(
        &self,
        value: Value<'_>,
        at: &Path<'_>,
        budget: &mut Budget,
        visit: &mut dyn FnMut(&Path<'_>, Fault),
    ) {
        let mut faults = Faults::new(visit);
        check_within(&self.0, value, at, budget, &mut faults, &mut |run, faults| {
            keys::check(run, value, &[0], &TYPE_NAMES, at, faults);
            if !run.is_spent && !run.is_valid(0, value) {
                let mut explanation =
                    Explanation { run: &mut *run, faults: &mut *faults, seen: HashSet::new() };
                explanation.explain(0, value, at);
                if faults.is_empty() && !run.is_spent {
                    faults.say_of_all(at, "is not valid under its schema");
                }
            }
        });
    }
}

/// Looks for keys that a Go decoder takes for others, where there is no schema.
pub(super) fn check_keys(
    value: Value<'_>,
    at: &Path<'_>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(&Path<'_>, Fault),
) {
    let mut faults = Faults::new(visit);
    check_within(&Graph::default(), value, at, budget, &mut faults, &mut |run, faults| {
        keys::check(run, value, &[], &TYPE_NAMES, at, faults);
    });
}

/// The same among the keys that say which type the value is.
pub(super) fn check_type_keys(value: Value<'_>, at: &Path<'_>, visit: &mut dyn FnMut(&Path<'_>, Fault)) {
    keys::check_type(value, at, &mut Faults::new(visit));
}

/// Checks a value if that can be done at all, and says so if it could not be.
fn check_within(
    graph: &Graph,
    value: Value<'_>,
    at: &Path<'_>,
    budget: &mut Budget,
    faults: &mut Faults<'_>,
    check: &mut dyn FnMut(&mut Evaluation<'_>, &mut Faults<'_>),
) {
    budget.grant(value);
    if let Err(reason) = can_be_checked(value) {
        return faults.say_of_all(at, &format!("cannot be checked: {reason}"));
    }
    let mut run = Evaluation::new(graph, budget);
    check(&mut run, faults);
    if run.is_spent && faults.is_empty() {
        faults
            .say_of_all(at, "cannot be checked: trying the alternatives of its schema takes too many steps");
    } else if faults.is_full() {
        // What is not listed is not known to be old: only the same value is excused by it.
        faults.say_of_all(at, "has more faults than are listed here");
    }
}

/// A name in a text, as far as it helps.
fn cut(name: &str) -> String {
    match name.char_indices().nth(128) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// Why a value cannot be looked into, if it cannot.
fn can_be_checked(value: Value<'_>) -> Result<(), String> {
    let mut open: Vec<usize> = Vec::new();
    for part in value.descendants() {
        let index = part.index() as usize;
        while open.last().is_some_and(|end| *end <= index) {
            open.pop();
        }
        match part.kind() {
            Kind::Array | Kind::Object => {
                open.push(index + part.size());
                if open.len() > MAX_DEPTH {
                    return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
                }
            }
            Kind::Number => {
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
