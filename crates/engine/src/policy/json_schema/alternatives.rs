//! Rewrites a schema so that the errors of an invalid value do not include those of `anyOf` and `oneOf` branches.
//!
//! The `jsonschema` crate collects the errors of all branches of `anyOf` and `oneOf`, and those of the branches
//! inside them: in a recursive schema, that tree grows with every level of the data. Inside `not`, the crate only
//! checks whether a value is valid, and caches the results. So `anyOf: […]` is rewritten as `not: {not: {$ref: …}}`.
//!
//! Invariant: the schema accepts the same values, as long as nothing depends on which branch was valid
//! (`unevaluatedProperties`, `unevaluatedItems`).
#![expect(clippy::disallowed_types, reason = "a schema is given to the validator as a generic JSON tree")]

use serde_json::{Map, Value as Json};

use super::single_member_object;

/// Keywords whose value is a map from names to schemas.
const SCHEMA_MAP_KEYWORDS: [&str; 6] =
    ["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];
/// Keywords whose values are not schemas, or schemas for which no errors are collected.
const SKIPPED_KEYWORDS: [&str; 6] = ["const", "enum", "default", "examples", "not", "if"];

/// Beginning of the references to moved alternatives, which a number and the keyword follow.
const MOVED_REFERENCE_PREFIX: &str = "#/$defs/tollgate-alternatives-";

/// Returns the schema with each `anyOf` and `oneOf` moved to `$defs` and replaced by a double `not`, so that errors of
/// branches are not collected; `None` if the schema is not an object.
pub(super) fn with_alternatives_behind_double_not(schema: &Json) -> Option<Json> {
    let mut schema = schema.clone();
    let mut definitions = Map::new();
    move_alternatives_behind_double_not(&mut schema, &mut definitions);
    let known = schema.as_object_mut()?.entry("$defs").or_insert_with(|| Json::Object(Map::new()));
    known.as_object_mut()?.extend(definitions);
    Some(schema)
}

fn move_alternatives_behind_double_not(schema: &mut Json, definitions: &mut Map<String, Json>) {
    match schema {
        Json::Array(list) => {
            for schema in list.iter_mut() {
                move_alternatives_behind_double_not(schema, definitions);
            }
        }
        Json::Object(schema) => {
            for (keyword, value) in schema.iter_mut() {
                match value {
                    Json::Object(map) if SCHEMA_MAP_KEYWORDS.contains(&keyword.as_str()) => {
                        map.values_mut()
                            .for_each(|schema| move_alternatives_behind_double_not(schema, definitions));
                    }
                    _ if SKIPPED_KEYWORDS.contains(&keyword.as_str()) => {}
                    value => move_alternatives_behind_double_not(value, definitions),
                }
            }
            for keyword in ["anyOf", "oneOf"] {
                let Some(branches) = schema.remove(keyword) else { continue };
                let reference = format!("{MOVED_REFERENCE_PREFIX}{}-{keyword}", definitions.len());
                let name = reference.trim_start_matches("#/$defs/").to_owned();
                definitions.insert(name, single_member_object(keyword, branches));
                if let Json::Array(all) = schema.entry("allOf").or_insert_with(|| Json::Array(Vec::new())) {
                    all.push(single_member_object(
                        "not",
                        single_member_object("not", single_member_object("$ref", reference.into())),
                    ));
                }
            }
        }
        _ => {}
    }
}

/// Returns the message for a value that violates a moved `anyOf` or `oneOf`; `schema` is the schema inside `not`.
/// `None` if it is another `not`.
pub(super) fn violated_alternatives_message(schema: &Json) -> Option<&'static str> {
    let reference = schema.get("not")?.get("$ref")?.as_str()?;
    match reference.strip_prefix(MOVED_REFERENCE_PREFIX)?.rsplit('-').next()? {
        "anyOf" => Some("is not valid under any of the schemas listed in the 'anyOf' keyword"),
        _ => Some("is not valid under exactly one of the schemas listed in the 'oneOf' keyword"),
    }
}
