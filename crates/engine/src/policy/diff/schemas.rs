//! JSON Schemas as canonical texts: without annotations, and with keys and unordered lists sorted.
//!
//! Invariant: schemas with the same text accept the same values.

use crate::policy::kind::PolicySpec;
use crate::policy::{MatchedPolicy, Policy};
use tollgate_document::doc::{self, Value, ValueKind};

/// Keywords that do not affect validation.
const ANNOTATION_KEYWORDS: &[&str] =
    &["title", "description", "$comment", "examples", "default", "deprecated", "readOnly", "writeOnly"];
/// Keywords whose value maps names to schemas.
const SCHEMA_MAP_KEYWORDS: &[&str] =
    &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose value is plain JSON and not a schema.
const LITERAL_KEYWORDS: &[&str] = &["const", "default", "examples"];
/// Keywords whose value is a list in any order.
const UNORDERED_KEYWORDS: &[&str] = &["required", "enum", "type", "allOf", "anyOf", "oneOf"];

/// The JSON Schemas of policies as canonical texts, by policy and by the index of the entry that has the schema.
pub(in crate::policy) struct CanonicalSchemas<'s>(Vec<(&'s Policy, Vec<Option<String>>)>);

impl<'s> CanonicalSchemas<'s> {
    pub(in crate::policy) fn from_policies(policies: &[MatchedPolicy<'s>]) -> CanonicalSchemas<'s> {
        CanonicalSchemas(
            policies.iter().map(|matched| (matched.policy, canonical_schemas_of(matched.policy))).collect(),
        )
    }

    /// Returns the canonical schema of an entry of a policy; `None` if it has none, or one that accepts everything.
    pub(in crate::policy) fn get(&self, policy: &Policy, index: usize) -> Option<&String> {
        let (_, schemas) = self.0.iter().find(|(known, _)| std::ptr::eq(*known, policy))?;
        schemas.get(index)?.as_ref()
    }

    /// Returns the canonical schemas of all policies.
    pub(in crate::policy) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(_, schemas)| schemas).flatten().map(String::as_str)
    }
}

/// Returns the canonical JSON Schemas of a policy's entries.
fn canonical_schemas_of(policy: &Policy) -> Vec<Option<String>> {
    let list = match &policy.spec {
        PolicySpec::Taint(_) => "data",
        PolicySpec::Parameter(_) => "schemas",
        PolicySpec::Toleration(_) | PolicySpec::TaintRule(_) => return Vec::new(),
    };
    let Ok(document) = doc::parse(&policy.json) else { return Vec::new() };
    let items = document.root().get("spec").get(list).items().enumerate();
    let text = |(index, item): (usize, Value<'_>)| {
        let field = format!("spec.{list}[{index}].schemaFile");
        let file = policy.schema_files.iter().find(|(name, _)| *name == field);
        let text = match file {
            Some((_, text)) => doc::parse(text).ok().map(|parsed| canonical_schema_text(parsed.root())),
            None => item.get("schema").exists().then(|| canonical_schema_text(item.get("schema"))),
        };
        text.filter(|text| !matches!(text.as_str(), "{}" | "true"))
    };
    items.map(text).collect()
}

/// Returns a text that is equal for schemas that differ only in annotations, in the order of keys, or in the order of
/// lists where it does not matter.
fn canonical_schema_text(schema: Value<'_>) -> String {
    if schema.kind() != ValueKind::Object {
        return schema.to_json();
    }
    let members = schema.members().filter(|(key, _)| !ANNOTATION_KEYWORDS.contains(&key.text()));
    let mut members: Vec<String> = members
        .map(|(key, value)| {
            let text = match key.text() {
                name if SCHEMA_MAP_KEYWORDS.contains(&name) => sorted_object(value, canonical_schema_text),
                name if LITERAL_KEYWORDS.contains(&name) => sorted_object(value, sorted_json),
                "enum" => sorted_list(value, sorted_json),
                name if UNORDERED_KEYWORDS.contains(&name) => sorted_list(value, canonical_schema_text),
                _ if value.kind() == ValueKind::Array => {
                    format!("[{}]", value.items().map(canonical_schema_text).collect::<Vec<_>>().join(","))
                }
                _ => canonical_schema_text(value),
            };
            format!("{:?}:{text}", key.text())
        })
        .collect();
    members.sort();
    members.dedup();
    format!("{{{}}}", members.join(","))
}

/// Returns a JSON value with the keys of all objects sorted.
fn sorted_json(value: Value<'_>) -> String {
    match value.kind() {
        ValueKind::Object => sorted_object(value, sorted_json),
        ValueKind::Array => format!("[{}]", value.items().map(sorted_json).collect::<Vec<_>>().join(",")),
        _ => value.to_json(),
    }
}

fn sorted_object(value: Value<'_>, text: fn(Value<'_>) -> String) -> String {
    if value.kind() != ValueKind::Object {
        return text(value);
    }
    let mut members: Vec<String> =
        value.members().map(|(key, value)| format!("{:?}:{}", key.text(), text(value))).collect();
    members.sort();
    format!("{{{}}}", members.join(","))
}

fn sorted_list(value: Value<'_>, text: fn(Value<'_>) -> String) -> String {
    if value.kind() != ValueKind::Array {
        return text(value);
    }
    let mut items: Vec<String> = value.items().map(text).collect();
    items.sort();
    items.dedup();
    format!("[{}]", items.join(","))
}
