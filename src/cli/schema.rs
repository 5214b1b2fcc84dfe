//! `tollgate schema`: JSON Schemas of the files that Tollgate reads, for editors, and of what it writes, for programs.
//!
//! The schemas of policies, policy tests and configurations are generated from the field tables with which these files
//! are parsed, so they always agree. The schemas of reports are files; tests compare them with the output
//! (`tests/cli/schemas.rs`).

mod crd;

use std::collections::BTreeMap;
use std::io::Write as _;

use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use crate::config::CONFIG_SCHEMA;
use tollgate_engine::policy::{FieldType, ObjectSchema, PolicyKind, TEST_FILE};
use tollgate_formats::gofmt::json_string;

/// Print the schema of policies, policy tests, .tollgate.yaml or a report
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Schema to print
    #[arg(value_name = "WHAT", default_value = "policy")]
    what: SchemaSubject,
}

/// A kind of file or report whose JSON Schema can be printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum SchemaSubject {
    /// Policy files
    Policy,
    /// CustomResourceDefinitions of the policy kinds, as YAML for `kubectl apply`
    Crd,
    /// Policy tests: *.test.yaml
    Test,
    /// Configuration file .tollgate.yaml
    Config,
    /// Output of `tollgate validate -o json` and `tollgate audit -o json`
    Validate,
    /// One line of the output of `tollgate impact -o json`
    Impact,
    /// One line of the output of `tollgate forecast -o json`
    Forecast,
    /// Output of `tollgate devices -o json`
    Devices,
    /// One line of the output of `tollgate drain -o json`
    Drain,
    /// Output of `tollgate policy diff -o json`
    PolicyDiff,
    /// Output of `tollgate policy check -o json`
    PolicyCheck,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let schema = match self.what {
            SchemaSubject::Policy => schema_of_structs(
                "tollgate policy",
                "oneOf",
                &PolicyKind::ALL.map(PolicyKind::document_schema),
            ),
            SchemaSubject::Crd => crd::all_crds_yaml().trim_end().to_owned(),
            SchemaSubject::Test => schema_of_structs("tollgate policy test", "allOf", &[&TEST_FILE]),
            SchemaSubject::Config => schema_of_structs("tollgate configuration", "allOf", &[&CONFIG_SCHEMA]),
            SchemaSubject::Validate => include_str!("schema/validate.json").trim_end().to_owned(),
            SchemaSubject::Impact => include_str!("schema/impact.json").trim_end().to_owned(),
            SchemaSubject::Forecast => include_str!("schema/forecast.json").trim_end().to_owned(),
            SchemaSubject::Devices => include_str!("schema/devices.json").trim_end().to_owned(),
            SchemaSubject::Drain => include_str!("schema/drain.json").trim_end().to_owned(),
            SchemaSubject::PolicyDiff => include_str!("schema/policy-diff.json").trim_end().to_owned(),
            SchemaSubject::PolicyCheck => include_str!("schema/policy-check.json").trim_end().to_owned(),
        };
        writeln!(console, "{schema}")?;
        Ok(ExitCounts::default())
    }
}

/// Returns the JSON Schema of files whose documents are one of these structs. `combined` is the keyword that
/// joins them, such as `oneOf`.
fn schema_of_structs(title: &str, combined: &str, files: &[&'static ObjectSchema]) -> String {
    let mut definitions = BTreeMap::new();
    let kinds: Vec<String> = files.iter().map(|file| schema_reference(file, &mut definitions)).collect();
    let definitions: Vec<String> =
        definitions.iter().map(|(name, text)| format!("    {}: {text}", json_string(name))).collect();
    format!(
        "{{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"title\": {},\n  \
         \"{combined}\": [{}],\n  \"$defs\": {{\n{}\n  }}\n}}",
        json_string(title),
        kinds.join(", "),
        definitions.join(",\n")
    )
}

/// Returns a JSON Schema reference to a struct, and adds its definition to `definitions` if it is missing.
fn schema_reference(ty: &'static ObjectSchema, definitions: &mut BTreeMap<&'static str, String>) -> String {
    if !definitions.contains_key(ty.name) {
        definitions.insert(ty.name, String::new());
        let mut properties = Vec::new();
        let mut required = Vec::new();
        for field in ty.fields {
            let body = type_schema(&field.ty, definitions);
            let rest = body.strip_prefix('{').unwrap_or(&body);
            properties.push(format!(
                "{}: {{\"description\": {}, {rest}",
                json_string(field.name),
                json_string(field.doc)
            ));
            if field.required {
                required.push(json_string(field.name));
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

/// Returns the JSON Schema of a type, and adds the structs that it uses to `definitions`.
fn type_schema(ty: &FieldType, definitions: &mut BTreeMap<&'static str, String>) -> String {
    match ty {
        FieldType::NonEmptyStr => r#"{"type": "string", "minLength": 1}"#.to_owned(),
        FieldType::Str => r#"{"type": "string"}"#.to_owned(),
        FieldType::Text(format) => format!("{{\"type\": \"string\", \"pattern\": {}}}", json_string(format.pattern)),
        FieldType::OneOf(words) => {
            let words: Vec<String> = words.iter().map(|word| json_string(word)).collect();
            format!("{{\"enum\": [{}]}}", words.join(", "))
        }
        FieldType::Int(least) => format!("{{\"type\": \"integer\", \"minimum\": {least}}}"),
        FieldType::IntOrPercent => {
            r#"{"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^([1-9][0-9]?|100)%$"}]}"#
                .to_owned()
        }
        FieldType::Bool => r#"{"type": "boolean"}"#.to_owned(),
        FieldType::Time => r#"{"type": "string", "format": "date-time"}"#.to_owned(),
        FieldType::AnyObject => r#"{"type": "object"}"#.to_owned(),
        FieldType::Any => r#"{"$comment": "any value"}"#.to_owned(),
        FieldType::List(item) => format!("{{\"type\": \"array\", \"items\": {}}}", type_schema(item, definitions)),
        FieldType::NonEmptyList(item) => {
            let items = type_schema(item, definitions);
            format!("{{\"type\": \"array\", \"minItems\": 1, \"items\": {items}}}")
        }
        FieldType::Word => r#"{"type": ["string", "number"]}"#.to_owned(),
        FieldType::AnyOf(types) => {
            let types: Vec<String> = types.iter().map(|ty| type_schema(ty, definitions)).collect();
            format!("{{\"anyOf\": [{}]}}", types.join(", "))
        }
        // Not `propertyNames`: editors complete properties.
        FieldType::MapOf { keys, values, .. } => {
            let values = type_schema(values, definitions);
            let properties: Vec<String> =
                keys().iter().map(|key| format!("{}: {values}", json_string(key))).collect();
            let properties = properties.join(", ");
            format!(
                "{{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {{{properties}}}}}"
            )
        }
        FieldType::StrMap => r#"{"type": "object", "additionalProperties": {"type": "string"}}"#.to_owned(),
        FieldType::Object(ty) => schema_reference(ty, definitions),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_engine::policy::PolicyKind;

    #[test]
    #[expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]
    fn the_schema_is_one_and_takes_what_the_reader_takes() {
        let schema: serde_json::Value = serde_json::from_str(&super::schema_of_structs(
            "policy",
            "oneOf",
            &PolicyKind::ALL.map(PolicyKind::document_schema),
        ))
        .unwrap();
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

    /// Every test file of the repository is one by the schema too.
    #[test]
    #[expect(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "reads files, takes a generic JSON tree"
    )]
    fn test_files_have_the_schema_of_tests() {
        let schema = super::schema_of_structs("test", "allOf", &[&tollgate_engine::policy::TEST_FILE]);
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut count = 0;
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/policies")).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().ends_with(".test.yaml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let document = tollgate_document::source::documents(&text).next().unwrap().ok().unwrap();
            let json: serde_json::Value = serde_json::from_str(&document.doc.root().to_json()).unwrap();
            let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", path.display());
            count += 1;
        }
        assert!(count >= 5, "{count}");
        let wrong =
            serde_json::from_str(r#"{"tests": [{"name": "a", "expect": "deny", "objct": {}}]}"#).unwrap();
        assert!(!validator.is_valid(&wrong));
    }

    #[test]
    #[expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]
    fn the_schema_of_configurations_takes_what_the_reader_takes() {
        let schema: serde_json::Value = serde_json::from_str(&super::schema_of_structs(
            "configuration",
            "allOf",
            &[&crate::config::CONFIG_SCHEMA],
        ))
        .unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for (text, expected) in [
            (r#"{"kubernetes": "1.37", "levels": {"lint": "deny", "blanket-toleration": "allow"}}"#, true),
            (r#"{"kubernetes": ["1.36", "1.37"], "featureGates": {"DRADeviceTaints": true}}"#, true),
            (r#"{"featureGates": "default", "exclude": "vendor/", "failOn": "warn"}"#, true),
            (r#"{"overrides": [{"paths": ["a"], "levels": {"lint": "allow"}, "reason": "x"}]}"#, true),
            (r#"{"overrides": [{"paths": ["a"], "levels": {"lint": "allow"}}]}"#, false),
            (r#"{"levels": {"blanket": "allow"}}"#, false),
            (r#"{"featureGates": {"DRADeviceTaints": "true"}}"#, false),
            (r#"{"kubernets": "1.37"}"#, false),
        ] {
            assert_eq!(validator.is_valid(&serde_json::from_str(text).unwrap()), expected, "{text}");
            let read = crate::config::ConfigFile::parse("c.yaml", text);
            assert_eq!(read.is_ok(), expected, "{text}: {read:?}");
        }
    }
}
