//! The fields that differ between two versions of a policy, as written, including the contents of schema files.
//!
//! These differences are only shown to the user. Their effect is found by comparing sample requests; if a field changes
//! that no sample request covers, the effect of the change is unknown ([`is_covered_by_samples`]).

use std::collections::BTreeSet;

use crate::policy::Policy;
use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_formats::gofmt;

/// Maximum number of characters of a value that are shown.
const MAX_SHOWN_CHARS: usize = 200;
/// Values nested deeper than this are compared as a whole.
const MAX_COMPARED_DEPTH: usize = 64;

/// The fields of `spec` whose meaning is compared.
const COMPARED_FIELDS: &[&str] = &[
    "match",
    "exempt",
    "action",
    "enforceFrom",
    "failurePolicy",
    "onUnavailable",
    "matchConditions",
    "validations",
    "allow",
    "deny",
    "requireKey",
    "defaults",
    "data",
    "maxEvictionsPerSecond",
    "requireSelector",
    "twoSteps",
    "maxImpact",
    "maxTainted",
    "requireAnnotations",
    "maxAgeSeconds",
    "onUnknown",
    "acknowledge",
    "schemas",
    "unknown",
];

/// The fields of `spec` that do not affect any request.
const INFORMATIVE_FIELDS: &[&str] = &["contact", "docs"];

/// A field of a policy whose value differs between two versions, with both values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldChange {
    /// Path of the field, such as `spec.twoSteps`.
    pub field: String,
    /// The old value as JSON, shortened; `None` if the field was not set.
    pub before: Option<String>,
    /// The new value as JSON, shortened; `None` if the field is not set.
    pub after: Option<String>,
}

/// True if comparing sample requests shows what a change of the field means, or if the field has no effect on requests.
pub(super) fn is_covered_by_samples(change: &FieldChange) -> bool {
    let Some(below) = change.field.strip_prefix("spec.") else { return change.field != "spec" };
    let name = below.split(['.', '[']).next().unwrap_or_default();
    COMPARED_FIELDS.contains(&name) || INFORMATIVE_FIELDS.contains(&name)
}

/// Returns the fields and schema files that differ between two versions of a policy.
pub(super) fn changed_fields(before: &Policy, after: &Policy) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    // Both were serialized by `Value::to_json`, so they parse.
    if let (Ok(old), Ok(new)) = (doc::parse(&before.json), doc::parse(&after.json)) {
        compare_fields("", old.root(), new.root(), 0, &mut changes);
    }
    changes.retain(|change| !is_set_by_server(&change.field));
    for (field, text) in &after.schema_files {
        let was = before.schema_files.iter().find(|(other, _)| other == field);
        if was.is_some_and(|(_, was)| was != text) {
            let content = |what: &str| Some(format!("{what} content of the file"));
            let (before, after) = (content("old"), content("new"));
            changes.push(FieldChange { field: field.clone(), before, after });
        }
    }
    changes
}

/// True if an API server sets the field of a stored policy, or kubectl does when it applies one.
fn is_set_by_server(field: &str) -> bool {
    const METADATA: [&str; 5] =
        ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"];
    let name = field.strip_prefix("metadata.").unwrap_or_default();
    field == "status"
        || field.starts_with("status.")
        || METADATA.contains(&name.split(['.', '[']).next().unwrap_or_default())
        || name == "annotations.kubectl.kubernetes.io/last-applied-configuration"
}

/// Adds each field of two versions of a value whose values differ; `at` is the path of the value.
fn compare_fields(at: &str, old: Value<'_>, new: Value<'_>, depth: usize, changes: &mut Vec<FieldChange>) {
    let is_flat = |list: Value<'_>| list.items().all(Value::is_empty);
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    // kubectl adds the annotations for its own one, so without any the map is as good as empty.
    let is_empty_map = |value: Value<'_>| at == "metadata.annotations" && value.is_null_or_absent();
    let kind = |value| if is_empty_map(value) { ValueKind::Object } else { value.kind() };
    match (kind(old), kind(new)) {
        (ValueKind::Object, ValueKind::Object) if depth < MAX_COMPARED_DEPTH => {
            let members = old.members().chain(new.members());
            let names: BTreeSet<&str> = members.map(|(key, _)| key.text()).collect();
            for name in names {
                compare_fields(&below(name), old.get(name), new.get(name), depth + 1, changes);
            }
        }
        (ValueKind::Array, ValueKind::Array)
            if depth < MAX_COMPARED_DEPTH && !(is_flat(old) && is_flat(new)) =>
        {
            for index in 0..old.len().max(new.len()) {
                compare_fields(
                    &format!("{at}[{index}]"),
                    old.item(index),
                    new.item(index),
                    depth + 1,
                    changes,
                );
            }
        }
        _ => {
            if old.exists() != new.exists() || old.to_json() != new.to_json() {
                let (before, after) = (shortened_json(old), shortened_json(new));
                changes.push(FieldChange { field: at.to_owned(), before, after });
            }
        }
    }
}

/// Returns a value as JSON, cut to [`MAX_SHOWN_CHARS`] characters; `None` if it does not exist.
fn shortened_json(value: Value<'_>) -> Option<String> {
    value.exists().then(|| gofmt::shorten(&value.to_json_for_messages(), MAX_SHOWN_CHARS).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{COMPARED_FIELDS, INFORMATIVE_FIELDS, compare_fields, is_set_by_server};
    use crate::policy::PolicyKind;
    use tollgate_document::doc;

    #[test]
    fn what_kubectl_adds_is_no_change() {
        let applied = r#""kubectl.kubernetes.io/last-applied-configuration":"{}""#;
        for (annotations, expected) in [
            (format!("{{{applied}}}"), &[][..]),
            (format!(r#"{{{applied},"a":"b"}}"#), &["metadata.annotations.a"]),
        ] {
            let stored = format!(r#"{{"metadata":{{"name":"p","annotations":{annotations}}}}}"#);
            let (file, stored) = (doc::parse(r#"{"metadata":{"name":"p"}}"#), doc::parse(&stored));
            let (file, stored) = (file.expect("JSON"), stored.expect("JSON"));
            for (old, new) in [(file.root(), stored.root()), (stored.root(), file.root())] {
                let mut changes = Vec::new();
                compare_fields("", old, new, 0, &mut changes);
                changes.retain(|change| !is_set_by_server(&change.field));
                let fields: Vec<_> = changes.iter().map(|change| change.field.as_str()).collect();
                assert_eq!(fields, expected);
            }
        }
    }

    #[test]
    fn every_field_is_compared_or_has_no_effect() {
        for kind in PolicyKind::ALL {
            for field in kind.spec_schema().fields {
                let is_known =
                    COMPARED_FIELDS.contains(&field.name) || INFORMATIVE_FIELDS.contains(&field.name);
                assert!(is_known, "`policy diff` does not know {}.{}", kind.name(), field.name);
            }
        }
    }
}
