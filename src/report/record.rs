//! Builds JSON objects member by member: the records of reports for programs.
//!
//! A record is serialized when it is built, so a report about many objects is never kept as a tree of values. The
//! report that builds a record decides which members it has.
//!
//! Invariant: the members of a record have the order in which they were written.

use serde::Serialize;
use serde_json::value::RawValue;

/// A JSON value in its written form.
pub(crate) type Json = Box<RawValue>;

/// Builds a JSON object. A member with `if given` is left out where it is null, false, zero or empty; any other
/// condition is the name of a `bool`.
macro_rules! record {
    ($($name:literal $(if $condition:ident)?: $value:expr),* $(,)?) => {{
        let mut members = $crate::report::record::JsonObjectBuilder::default();
        $(
            let text = $crate::report::record::to_json_text(&$value);
            if $crate::report::record::record!(@is_written text $($condition)?) {
                members.add_json_member($name, &text);
            }
        )*
        members.finish()
    }};
    (@is_written $text:ident) => { true };
    (@is_written $text:ident given) => { $crate::report::record::is_non_default_json(&$text) };
    (@is_written $text:ident $condition:ident) => { $condition };
}

pub(crate) use record;

/// The members of an object that is being built, as text.
#[derive(Default, Debug)]
pub(crate) struct JsonObjectBuilder(String);

impl JsonObjectBuilder {
    /// Adds a member whose value is JSON already.
    pub(crate) fn add_json_member(&mut self, name: &str, value: &str) {
        let separator = if self.0.is_empty() { "\"" } else { ",\"" };
        self.0.extend([separator, name, "\":", value]);
    }

    /// Returns the finished JSON object.
    pub(crate) fn finish(self) -> Json {
        json_from_text_or_null(format!("{{{}}}", self.0))
    }
}

/// Serializes a value as JSON.
pub(crate) fn to_raw_json(value: &impl Serialize) -> Json {
    json_from_text_or_null(to_json_text(value))
}

fn json_from_text_or_null(text: String) -> Json {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Collects JSON records into a list, for a member of [`record!`].
pub(crate) fn collect_records(records: impl Iterator<Item = Json>) -> Vec<Json> {
    records.collect()
}

/// Serializes a value as compact JSON text; `null` if that fails.
pub(crate) fn to_json_text(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// True if the JSON value is not null, false, zero or empty.
pub(crate) fn is_non_default_json(json: &str) -> bool {
    !matches!(json, "null" | "false" | "0" | "\"\"" | "[]" | "{}")
}
