//! JSON Schema for taint data and opaque parameters: compiled when a set is loaded, without external references.
//!
//! Schemas are trusted, data is not. The `jsonschema` crate compiles and evaluates schemas. It reads the data through
//! `instance`, which counts steps (`budget`), and remembers what it has decided about lists and objects in recursive
//! schemas. What could explode without looking at the data is refused when the schema is compiled (`graph`). A value
//! that cannot be checked within the budget is a violation, and so is a key that a Go decoder confuses with another
//! one (`keys`).
//!
//! Invariant: time and memory are at most linear in the data, whatever the schema.
#![expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]

mod alternatives;
mod budget;
mod faults;
mod fold;
mod graph;
mod instance;
mod keys;

pub(super) use budget::SchemaBudget;
pub(super) use faults::SchemaViolation;
pub(super) use keys::{ExpressionFieldNames, TYPE_FIELDS, values_of_case_variants};

use std::borrow::Cow;
use std::sync::LazyLock;

use jsonschema::{Draft, PatternOptions, Validator};

use budget::EvaluationMeter;
use faults::SchemaViolationSink;
use graph::SchemaGraph;
use instance::{Instance, TapeJsonRepresentation};
use keys::KeyCheckContext;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_formats::gofmt;

/// Message for a value whose check exceeds the step limit.
const STEP_LIMIT_MESSAGE: &str = "cannot be checked: evaluating its schema exceeds the step limit";

/// Maximum nesting depth of a value that is checked.
const MAX_VALUE_DEPTH: usize = 127;

/// Maximum nesting of subschemas, over all levels of a value.
const MAX_SUBSCHEMA_NESTING: usize = 2_000;
/// Nesting depth that can be evaluated on the stack of any thread, including in debug builds.
const MAX_NESTING_ON_ANY_STACK: usize = 200;
/// Stack size for deeper nesting, in bytes. Only the used pages are touched.
const DEEP_STACK_BYTES: usize = 32 << 20;

/// Maximum number of keys and values of a value whose errors are explained. API servers accept parameters of up to
/// 10 KiB.
const MAX_EXPLAINED_NODES: usize = 10_000;

/// Maximum length of a text with the format `regex`.
const MAX_REGEX_BYTES: usize = 4096;

/// A compiled JSON Schema.
#[derive(Debug)]
pub(super) struct Schema {
    validator: Validator<TapeJsonRepresentation>,
    /// Validator that collects errors, where that needs a schema with fewer alternatives; `None` to use `validator`.
    explainer: Option<Validator<TapeJsonRepresentation>>,
    graph: SchemaGraph,
}

/// Compiles a schema with the `jsonschema` crate so that references to other documents fail, and texts are checked in
/// linear time.
fn compile(schema: &serde_json::Value) -> Result<Validator<TapeJsonRepresentation>, String> {
    let options = jsonschema::options_for::<TapeJsonRepresentation>()
        .with_pattern_options(PatternOptions::regex())
        .offline();
    let options = options.with_format("regex", is_regex_within_length_limit);
    let options = options.with_content_media_type("application/json", |text| {
        serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    });
    options.build(schema).map_err(|error| error.to_string())
}

/// Creates a JSON object with one member.
fn single_member_object(name: &str, value: serde_json::Value) -> serde_json::Value {
    serde_json::Value::Object(serde_json::Map::from_iter([(name.to_owned(), value)]))
}

/// True for a regular expression of at most [`MAX_REGEX_BYTES`]. Longer texts are refused, because the check of the
/// crate, which is used here, takes quadratic time.
fn is_regex_within_length_limit(text: &str) -> bool {
    static REGEX_VALIDATOR: LazyLock<Option<Validator>> = LazyLock::new(|| {
        jsonschema::options()
            .with_draft(Draft::Draft7)
            .build(&single_member_object("format", "regex".into()))
            .ok()
    });
    text.len() <= MAX_REGEX_BYTES
        && REGEX_VALIDATOR.as_ref().is_some_and(|check| check.is_valid(&text.into()))
}

impl Schema {
    /// Compiles a schema written in JSON.
    pub(super) fn compile(json: &str) -> Result<Schema, String> {
        let schema: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let (validator, graph) =
            (compile(&schema)?, SchemaGraph::from_schema_if_evaluation_bounded(&schema)?);
        let can_move = graph.has_one_base && !json.contains("unevaluated");
        // Where a reference leads into alternatives, it does not compile.
        let explainer = alternatives::with_alternatives_behind_double_not(&schema)
            .filter(|_| can_move)
            .and_then(|it| compile(&it).ok());
        Ok(Schema { validator, explainer, graph })
    }

    fn evaluate(
        &self,
        meter: &EvaluationMeter<'_>,
        value: Value<'_>,
        at: &Path<'_>,
        faults: &mut SchemaViolationSink<'_>,
    ) {
        if self.validator.is_valid(Instance::Value(value, meter)) || meter.is_exhausted() {
            return;
        }
        let before = faults.reported;
        let meter = meter.for_errors_with_schema_part_bytes(self.graph.longest_not);
        if value.node_count() <= MAX_EXPLAINED_NODES {
            let explainer = self.explainer.as_ref().unwrap_or(&self.validator);
            let errors = explainer.iter_errors(Instance::Value(value, &meter));
            errors
                .filter(faults::is_error_found_before_exhaustion)
                .for_each(|error| faults.report_error(value, at, &error));
        }
        if faults.reported == before {
            faults.report_without_value_even_if_full(at, "does not match its schema");
        } else if meter.is_exhausted() && !faults.is_full() {
            faults.report_without_value_even_if_full(at, "may have more violations than are listed");
        }
    }
}

/// What is checked of a JSON value.
#[derive(Clone, Copy)]
pub(super) enum JsonCheck<'c> {
    /// The value against a schema, and its keys, at any depth, for those that a Go decoder confuses with others. Without
    /// a schema, only the keys.
    Contents(Option<&'c Schema>),
    /// Duplicate keys, and keys that a Go decoder reads as one of the names that expressions use: a driver would see
    /// another value than the expression.
    SoughtKeys(&'c ExpressionFieldNames),
    /// Keys that a Go decoder could confuse with `apiVersion` and `kind`.
    TypeKeys,
}

impl JsonCheck<'_> {
    /// Checks a value within the step budget, and reports if that is not possible; `visit` gets each violation with its
    /// path.
    pub(super) fn check_value(
        self,
        value: Value<'_>,
        at: &Path<'_>,
        budget: &SchemaBudget,
        visit: &mut dyn FnMut(&Path<'_>, SchemaViolation),
    ) {
        let mut faults = SchemaViolationSink::new(visit);
        let faults = &mut faults;
        budget.grant_steps_for(value);
        if !budget.take_steps_to_visit(value) {
            return faults.report_without_value_even_if_full(at, STEP_LIMIT_MESSAGE);
        }
        if let JsonCheck::TypeKeys = self {
            return keys::report_confusable_api_version_and_kind(value, at, faults);
        }
        let levels = match nesting_depth_if_checkable(value) {
            Ok(levels) => levels,
            Err(reason) => {
                return faults.report_without_value_even_if_full(at, &format!("cannot be checked: {reason}"));
            }
        };
        let meter = &EvaluationMeter::new(budget);
        match self {
            JsonCheck::Contents(Some(schema)) => {
                let key_check = KeyCheckContext { graph: &schema.graph, meter };
                keys::report_duplicate_and_miscased_keys(key_check, value, &[0], &TYPE_FIELDS, at, faults);
                let nesting = levels * schema.graph.nesting as usize;
                if nesting > MAX_SUBSCHEMA_NESTING {
                    faults.report_without_value_even_if_full(at, STEP_LIMIT_MESSAGE);
                } else if nesting > MAX_NESTING_ON_ANY_STACK {
                    stacker::grow(DEEP_STACK_BYTES, || schema.evaluate(meter, value, at, faults));
                } else {
                    schema.evaluate(meter, value, at, faults);
                }
            }
            JsonCheck::Contents(None) => {
                let key_check = KeyCheckContext { graph: &SchemaGraph::default(), meter };
                keys::report_duplicate_and_miscased_keys(key_check, value, &[], &TYPE_FIELDS, at, faults);
            }
            JsonCheck::SoughtKeys(sought) => {
                keys::report_keys_confusable_with_names(meter, value, sought, at, faults)
            }
            JsonCheck::TypeKeys => {}
        }
        if meter.is_exhausted() {
            faults.report_without_value_even_if_full(at, STEP_LIMIT_MESSAGE);
        } else if faults.is_full() {
            // Omitted violations may be new: only the same value is excused.
            faults.report_without_value_even_if_full(at, "has more violations than are listed");
        }
    }
}

/// Shortens a name to 128 characters for a message.
fn shortened_name(name: &str) -> Cow<'_, str> {
    gofmt::shorten(name, 128)
}

/// Returns the nesting depth of a value, or the reason why it cannot be checked.
fn nesting_depth_if_checkable(value: Value<'_>) -> Result<usize, String> {
    let mut open: Vec<usize> = Vec::new();
    let mut levels = 1;
    for part in value.self_and_descendants() {
        let index = part.index() as usize;
        while open.last().is_some_and(|end| *end <= index) {
            open.pop();
        }
        match part.kind() {
            ValueKind::Array | ValueKind::Object => {
                open.push(index + part.node_count());
                levels = levels.max(open.len() + 1);
                if open.len() > MAX_VALUE_DEPTH {
                    return Err(format!("it is nested deeper than {MAX_VALUE_DEPTH} levels"));
                }
            }
            ValueKind::Number => {
                let number: Result<serde_json::Number, _> = serde_json::from_str(part.text());
                number.map_err(|error| error.to_string())?;
            }
            _ => {}
        }
    }
    Ok(levels)
}

#[cfg(test)]
mod tests;
