//! Tricky YAML as kubectl and a 1.36 server took it: 123 files, the verdict on each, and what was stored.
//!
//! Every file goes through `source` and the engine as `tollgate validate` would send it. Three files are accepted by
//! kubectl only because it drops the first of two duplicate keys; we refuse those on purpose.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads the corpus")]

use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_document::source::{self, list};
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Operation};
use tollgate_engine::rules::RuleSet;

/// Files that kubectl accepts and Tollgate rejects because of duplicate keys.
const DUPLICATES: [&str; 3] = ["064.yaml", "065.yaml", "089.yaml"];

fn folder() -> String {
    format!("{}/tests/conformance/yaml", env!("CARGO_MANIFEST_DIR"))
}

fn engine() -> Engine {
    Engine::new(
        vec![Profile::named("1.36").expect("a profile")],
        RuleSet::parse("upstream,decoding,strict").expect("origins"),
    )
}

/// The result for a file: whether it is accepted, the reason, and the specs of its objects as JSON.
#[derive(Default)]
struct Outcome {
    objects: usize,
    refused: Vec<String>,
    specs: Vec<(String, String)>,
}

fn check_file(file: &str, bytes: Vec<u8>) -> Outcome {
    let mut outcome = Outcome::default();
    let text = match source::decode_by_byte_order_mark(file, bytes) {
        Ok(text) => text,
        Err(error) => {
            outcome.refused.push(error.to_string());
            return outcome;
        }
    };
    let lines = source::LineIndex::from_text(&text);
    for document in source::documents(&text) {
        let document = match document {
            Ok(document) => document,
            Err(fault) => {
                outcome.refused.push(fault.input_error(file, &lines).to_string());
                continue;
            }
        };
        for item in list::objects(document.doc.root()) {
            outcome.objects += 1;
            let object = item.typed_value();
            let verdict = engine().validate(
                &Attributes {
                    operation: Operation::Create,
                    subresource: "",
                    object,
                    old_object: None,
                    namespace: "default",
                    user: Value::absent(),
                    now: "2026-01-02T03:04:05Z".into(),
                },
                LabelsIfKnown::Known(Value::absent()),
            );
            for diagnostic in verdict.findings() {
                let place = document.locate(
                    &lines,
                    &item.path_in_document(diagnostic.finding.at.clone()),
                    diagnostic.finding.on_key,
                );
                outcome.refused.push(format!("{}:{}: {}", place.line, place.column, diagnostic));
            }
            outcome
                .specs
                .push((object.get("metadata").get("name").str().to_owned(), object.get("spec").to_json()));
        }
    }
    outcome
}

/// True if everything that was read is in what the server stored; the server adds defaults and prints quantities and
/// times in its own way.
fn is_within(read: Value<'_>, stored: Value<'_>, at: &str) -> Result<(), String> {
    let differs = || Err(format!("{at}: {} was stored as {}", read.to_json(), stored.to_json()));
    match (read.kind(), stored.kind()) {
        (ValueKind::Null, _) => Ok(()),
        (ValueKind::Object, ValueKind::Object) => read.members().try_for_each(|(key, value)| {
            let at = format!("{at}.{}", key.text());
            if key.text() == "timeAdded" { Ok(()) } else { is_within(value, stored.get(key.text()), &at) }
        }),
        (ValueKind::Array, ValueKind::Array) if read.len() == stored.len() => {
            let mut pairs = read.items().zip(stored.items()).enumerate();
            pairs.try_for_each(|(index, (read, stored))| is_within(read, stored, &format!("{at}[{index}]")))
        }
        // A quantity: any number is stored as text.
        (ValueKind::Number, ValueKind::String) if at.contains(".capacity.") => Ok(()),
        (read_kind, stored_kind) if read_kind == stored_kind && read.text() == stored.text() => Ok(()),
        _ => differs(),
    }
}

#[test]
fn agrees_with_kubectl() {
    let expected = std::fs::read_to_string(format!("{}/expected.jsonl", folder())).expect("the corpus");
    let mut wrong = Vec::new();
    let mut files = 0;
    for line in expected.lines() {
        let expected = doc::parse(line).expect("JSON");
        let expected = expected.root();
        let file = expected.get("file").str();
        let note = expected.get("note").str();
        files += 1;
        let bytes = std::fs::read(format!("{}/{file}", folder())).expect("a file of the corpus");
        let outcome = check_file(file, bytes);
        let accepted = outcome.objects > 0 && outcome.refused.is_empty();
        let should = expected.get("accepted").bool() == Some(true) && !DUPLICATES.contains(&file);
        if accepted != should {
            let (verb, why) =
                if should { ("accepts", outcome.refused.join("\n    ")) } else { ("refuses", String::new()) };
            let message = expected.get("message").str();
            wrong.push(format!("{file} ({note}): kubectl {verb} it. {message}\n    {why}"));
        }
        for stored in expected.get("objects").items() {
            let name = stored.get("name").str();
            let Some((_, spec)) = outcome.specs.iter().rev().find(|(read, _)| read == name) else {
                wrong.push(format!("{file} ({note}): the object {name:?} was not read"));
                continue;
            };
            let read = doc::parse(spec).expect("JSON");
            if let Err(difference) = is_within(read.root(), stored.get("spec"), "spec") {
                wrong.push(format!("{file} ({note}): {difference}"));
            }
        }
    }
    assert_eq!(files, 123);
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}
