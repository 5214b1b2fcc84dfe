//! JSON Schema for taint data and opaque parameters: compiled when a set is loaded, no references to elsewhere.
//!
//! The one place in core that makes a generic JSON tree, because the validator wants one. Patterns are matched in
//! linear time; what nests deeper than the JSON reader allows is refused, not walked.
#![expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]

use jsonschema::PatternOptions;

use crate::doc::{Kind, Value};
use crate::field::Path;

/// More faults than this about one value help nobody.
const MAX_FAULTS: usize = 16;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema(jsonschema::Validator);

impl Schema {
    /// Compiles a schema written in JSON.
    pub(super) fn compile(json: &str) -> Result<Schema, String> {
        let schema: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex()).offline();
        options.build(&schema).map(Schema).map_err(|error| error.to_string())
    }

    /// Holds a value against the schema; `visit` gets each fault with its path.
    pub(super) fn check(
        &self,
        value: Value<'_>,
        at: &Path<'_>,
        visit: &mut dyn FnMut(&Path<'_>, Value<'_>, String),
    ) {
        let instance: serde_json::Value = match serde_json::from_str(&value.to_json()) {
            Ok(instance) => instance,
            Err(error) => return visit(at, value, format!("cannot be checked: {error}")),
        };
        for fault in self.0.iter_errors(&instance).take(MAX_FAULTS) {
            let pointer = fault.instance_path().as_str();
            let steps: Vec<String> =
                pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
            let text = fault.to_string();
            follow(value, &steps, at, &mut |at, value| visit(at, value, text.clone()));
        }
    }
}

fn follow(value: Value<'_>, steps: &[String], at: &Path<'_>, visit: &mut dyn FnMut(&Path<'_>, Value<'_>)) {
    match steps.split_first() {
        None => visit(at, value),
        Some((step, rest)) if value.kind() == Kind::Array => {
            let index = step.parse().unwrap_or_default();
            follow(value.at(index), rest, &at.index(index), visit);
        }
        Some((step, rest)) => {
            let member = value.member(step).map_or(Value::absent(), |(_, member)| member);
            follow(member, rest, &at.field(step), visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Schema;
    use crate::doc;
    use crate::field::Path;

    fn faults(schema: &str, value: &str) -> Result<Vec<String>, String> {
        let schema = Schema::compile(schema)?;
        let document = doc::parse(value).unwrap();
        let mut found = Vec::new();
        schema.check(document.root(), &Path::ROOT.field("data"), &mut |at, _, text| {
            found.push(format!("{}: {text}", at.owned().print(crate::field::Reader::User)));
        });
        Ok(found)
    }

    #[test]
    fn faults_point_into_the_value() {
        let schema =
            r#"{"properties":{"a/b":{"items":{"type":"string"}},"n":{"maximum":3}},"required":["n"]}"#;
        assert_eq!(faults(schema, r#"{"n":2}"#).unwrap(), [""; 0]);
        assert_eq!(
            faults(schema, r#"{"a/b":["x",7]}"#).unwrap(),
            ["data: \"n\" is a required property", "data.a/b[1]: 7 is not of type \"string\""]
        );
    }

    #[test]
    fn references_to_elsewhere_and_bad_schemas_are_refused() {
        for schema in [
            r#"{"$ref":"http://example.com/s.json"}"#,
            r#"{"$ref":"file:///etc/passwd"}"#,
            r#"{"type":"strin"}"#,
            r#"{"pattern":"(?=a)b"}"#,
            r#"{"$ref":"other.json"}"#,
        ] {
            assert!(Schema::compile(schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn schemas_and_values_that_never_end_do() {
        for schema in [
            r##"{"$ref":"#"}"##,
            r##"{"allOf":[{"$ref":"#"}]}"##,
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
            r##"{"items":{"$ref":"#"}}"##,
        ] {
            _ = faults(schema, r#"{"a":[[[1]]]}"#);
        }
        let deep = format!("{}1{}", "[".repeat(3_000), "]".repeat(3_000));
        let told = faults(r##"{"items":{"$ref":"#"}}"##, &deep).unwrap();
        assert!(told[0].contains("cannot be checked"), "{told:?}");
        let hostile = format!("\"{}\"", "a".repeat(50_000));
        assert_eq!(faults(r#"{"pattern":"^(a+)+$"}"#, &hostile).unwrap(), [""; 0]);
    }
}
