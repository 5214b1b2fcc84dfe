//! `tollgate schema`: the JSON Schema of policy files, so that editors complete and check them.
//!
//! Printed from the rows that policies are read by, so the two cannot drift.

use std::collections::BTreeMap;
use std::io::Write as _;

use super::console::Console;
use super::outcome::{Failure, Tally};
use crate::gofmt::json_string;
use crate::policy::{PolicyKind, Struct, Ty};

/// Print the JSON Schema of policy files
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let Arguments {} = self;
        writeln!(console, "{}", schema())?;
        Ok(Tally::default())
    }
}

/// The schema.
fn schema() -> String {
    let mut definitions = BTreeMap::new();
    let kinds: Vec<String> = PolicyKind::ALL.map(|kind| reference(kind.schema(), &mut definitions)).into();
    let definitions: Vec<String> =
        definitions.iter().map(|(name, text)| format!("    {}: {text}", quoted(name))).collect();
    format!(
        "{{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"title\": \"tollgate policy\",\n  \
         \"oneOf\": [{}],\n  \"$defs\": {{\n{}\n  }}\n}}",
        kinds.join(", "),
        definitions.join(",\n")
    )
}

/// A reference to a struct, which is described on the way.
fn reference(ty: &'static Struct, definitions: &mut BTreeMap<&'static str, String>) -> String {
    if !definitions.contains_key(ty.name) {
        definitions.insert(ty.name, String::new());
        let mut properties = Vec::new();
        let mut required = Vec::new();
        for field in ty.fields {
            let body = described(&field.ty, definitions);
            let rest = body.strip_prefix('{').unwrap_or(&body);
            properties.push(format!(
                "{}: {{\"description\": {}, {rest}",
                quoted(field.name),
                quoted(field.doc)
            ));
            if field.required {
                required.push(quoted(field.name));
            }
        }
        let text = format!(
            "{{\"type\": \"object\", \"additionalProperties\": false, \"required\": [{}], \"properties\": {{{}}}}}",
            required.join(", "),
            properties.join(", ")
        );
        definitions.insert(ty.name, text);
    }
    format!("{{\"$ref\": \"#/$defs/{}\"}}", ty.name)
}

fn described(ty: &Ty, definitions: &mut BTreeMap<&'static str, String>) -> String {
    match ty {
        Ty::NonEmptyStr => r#"{"type": "string", "minLength": 1}"#.to_owned(),
        Ty::Str => r#"{"type": "string"}"#.to_owned(),
        Ty::OneOf(words) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            format!("{{\"enum\": [{}]}}", words.join(", "))
        }
        Ty::Int(least) => format!("{{\"type\": \"integer\", \"minimum\": {least}}}"),
        Ty::Bool => r#"{"type": "boolean"}"#.to_owned(),
        Ty::Time => r#"{"type": "string", "format": "date-time"}"#.to_owned(),
        Ty::Schema => r#"{"type": "object"}"#.to_owned(),
        Ty::Any => r#"{"$comment": "any value"}"#.to_owned(),
        Ty::List(item) => format!("{{\"type\": \"array\", \"items\": {}}}", described(item, definitions)),
        Ty::StrMap => r#"{"type": "object", "additionalProperties": {"type": "string"}}"#.to_owned(),
        Ty::Struct(ty) => reference(ty, definitions),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    json_string(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    #[test]
    #[expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]
    fn the_schema_is_one_and_takes_what_the_reader_takes() {
        let schema: serde_json::Value = serde_json::from_str(&super::schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let table = [
            (
                r#"{"apiVersion":"tollgate.dev/v1alpha1","kind":"TolerationPolicy","metadata":{"name":"a"},"spec":{"allow":[{"key":"*"}]}}"#,
                true,
            ),
            (
                r#"{"apiVersion":"tollgate.dev/v1alpha1","kind":"TolerationPolicy","metadata":{"name":"a"},"spec":{"alow":[]}}"#,
                false,
            ),
            (
                r#"{"apiVersion":"tollgate.dev/v1alpha1","kind":"TaintRulePolicy","metadata":{"name":"a"},"spec":{"requireSelector":["any"]}}"#,
                true,
            ),
        ];
        for (policy, expected) in table {
            assert_eq!(validator.is_valid(&serde_json::from_str(policy).unwrap()), expected, "{policy}");
        }
    }
}
