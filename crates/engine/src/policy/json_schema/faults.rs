//! Converts errors of the `jsonschema` crate to violations with paths and messages.
//!
//! A failed alternative (`anyOf`, `oneOf`, `not`) is one violation at its own path; the errors of its branches are
//! not reported.
//!
//! Invariant: the number of violations and the length of their messages do not depend on the data.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::LocationSegment;

use super::{alternatives, shortened_name};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;

/// Maximum number of reported violations for one value.
const MAX_REPORTED_VIOLATIONS: usize = 16;
/// Maximum total size in bytes of values shown in messages. The value that exceeds it is still shown.
const FULL_AFTER_SHOWN_BYTES: usize = 64 * 1024;
/// Maximum number of names listed in one message.
const MAX_LISTED_NAMES: usize = 16;
/// Values longer than this are not shown in messages.
const MAX_SHOWN_VALUE_BYTES: usize = 1024;

/// One violation of a JSON Schema, or one confusable key. Its path is passed separately.
#[derive(Debug)]
pub(in crate::policy) struct SchemaViolation {
    /// The value as JSON; `None` if the violation is about a whole value that cannot be shown.
    pub(in crate::policy) value: Option<String>,
    /// Message of the violation.
    pub(in crate::policy) text: String,
    /// True if the key, not the value, violates the schema.
    pub(in crate::policy) on_key: bool,
}

/// Passes the violations of one value on to a callback, without repeats and up to a limit.
pub(super) struct SchemaViolationSink<'v> {
    visit: &'v mut dyn FnMut(&Path<'_>, SchemaViolation),
    /// Number of violations reported so far.
    pub(super) reported: usize,
    bytes: usize,
    /// Paths and messages reported so far, because the crate repeats errors of several branches.
    known: HashSet<(String, String)>,
}

impl<'v> SchemaViolationSink<'v> {
    pub(super) fn new(visit: &'v mut dyn FnMut(&Path<'_>, SchemaViolation)) -> SchemaViolationSink<'v> {
        SchemaViolationSink { visit, reported: 0, bytes: 0, known: HashSet::new() }
    }

    /// True if the limit of reported violations, or of bytes shown in them, is reached.
    pub(super) fn is_full(&self) -> bool {
        self.reported >= MAX_REPORTED_VIOLATIONS || self.bytes >= FULL_AFTER_SHOWN_BYTES
    }

    pub(super) fn report(&mut self, at: &Path<'_>, value: String, text: String, on_key: bool) {
        if self.is_full() {
            return;
        }
        self.reported += 1;
        self.bytes += value.len();
        (self.visit)(at, SchemaViolation { value: Some(value), text, on_key });
    }

    /// Reports a violation of the whole value without showing it, even if the limit is reached.
    pub(super) fn report_without_value_even_if_full(&mut self, at: &Path<'_>, text: &str) {
        self.reported += 1;
        (self.visit)(at, SchemaViolation { value: None, text: text.to_owned(), on_key: false });
    }

    /// Reports an error of the crate about a part of a value.
    pub(super) fn report_error(&mut self, root: Value<'_>, at: &Path<'_>, error: &ValidationError<'_>) {
        let path = error.instance_path();
        let segments: Vec<LocationSegment<'_>> = path.into_iter().collect();
        visit_at_path(root, at, &segments, &mut |value, at| {
            let text = error_message(value, error);
            if self.known.insert((path.as_str().to_owned(), text.clone())) {
                self.report(at, value.to_json(), text, false);
            }
        });
    }
}

/// Follows a path into a value, and calls `visit` with the value there and its path for messages.
fn visit_at_path(
    value: Value<'_>,
    at: &Path<'_>,
    path: &[LocationSegment<'_>],
    visit: &mut dyn FnMut(Value<'_>, &Path<'_>),
) {
    let Some((first, rest)) = path.split_first() else { return visit(value, at) };
    match (value.kind(), first) {
        (ValueKind::Array, LocationSegment::Index(index)) => {
            if let Some(item) = value.items().nth(*index) {
                visit_at_path(item, &at.index(*index), rest, visit);
            }
        }
        // A key that consists of digits looks like an index.
        (_, first) => {
            let name = first.to_string();
            visit_at_path(value.get(&name), &at.field(&name), rest, visit);
        }
    }
}

/// True if an error of the `jsonschema` crate is reliable: it, or the first error that causes it, was found before the
/// evaluation was stopped.
pub(super) fn is_error_found_before_exhaustion(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        _ if !error.instance().is_null() => true,
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            context.iter().flatten().next().is_some_and(is_error_found_before_exhaustion)
        }
        Kind::UnevaluatedItems { unexpected } => unexpected.first().is_some_and(|item| item != "null"),
        _ => false,
    }
}

/// Returns the message for an error of the `jsonschema` crate about a value.
fn error_message(value: Value<'_>, error: &ValidationError<'_>) -> String {
    let (what, names) = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            ("Additional properties", quoted_names_up_to_limit(unexpected.iter()))
        }
        Kind::UnevaluatedProperties { unexpected } => {
            ("Unevaluated properties", quoted_names_up_to_limit(unexpected.iter()))
        }
        // Without `properties`, the crate tells of the first member only.
        Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
            ("Additional properties", quoted_names_up_to_limit(value.members().map(|(key, _)| key.text())))
        }
        Kind::AdditionalItems { limit } => (
            "Additional items",
            quoted_names_up_to_limit(value.items().skip(*limit).map(value_or_placeholder)),
        ),
        Kind::UnevaluatedItems { unexpected } => {
            let unexpected = unexpected.iter().filter_map(|index| index.parse().ok());
            let items = unexpected.filter_map(|index: u32| value.items().find(|item| item.index() == index));
            ("Unevaluated items", quoted_names_up_to_limit(items.map(value_or_placeholder)))
        }
        Kind::PropertyNames { error } => return value_error_message(&error.instance().to_string(), error),
        _ => return value_error_message(&value_or_placeholder(value), error),
    };
    let listed = names.get(..MAX_LISTED_NAMES.min(names.len())).unwrap_or_default().join(", ");
    let end = match names.len() {
        1 => "was unexpected",
        2..=MAX_LISTED_NAMES => "were unexpected",
        _ => "and more were unexpected",
    };
    format!("{what} are not allowed ({listed} {end})")
}

/// Returns the message for an error about a value that the message shows as `shown`.
fn value_error_message(shown: &str, error: &ValidationError<'_>) -> String {
    let moved = match error.kind() {
        Kind::Not { schema } => alternatives::violated_alternatives_message(schema),
        _ => None,
    };
    moved.map_or_else(|| error.masked_with(shown).to_string(), |requirement| format!("{shown} {requirement}"))
}

/// Returns names or values in quotes: at most one more than a message lists, so that the message can say that there are
/// more.
fn quoted_names_up_to_limit(names: impl Iterator<Item = impl AsRef<str>>) -> Vec<String> {
    names.take(MAX_LISTED_NAMES + 1).map(|name| format!("'{}'", shortened_name(name.as_ref()))).collect()
}

/// Returns a value as JSON for a message, or the word `value` if it is long.
fn value_or_placeholder(value: Value<'_>) -> String {
    let bytes: usize =
        value.self_and_descendants().take(MAX_SHOWN_VALUE_BYTES).map(|part| part.text().len() + 1).sum();
    if bytes <= MAX_SHOWN_VALUE_BYTES && value.node_count() < MAX_SHOWN_VALUE_BYTES {
        value.to_json()
    } else {
        "value".to_owned()
    }
}
