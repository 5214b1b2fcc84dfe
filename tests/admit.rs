//! The webhook without HTTP: `tests/admit/<side>-<profile>-<what>/{request.json,response.json}`.
//!
//! A response is compared member by member; a patch is shown decoded, and applied: the filled object must need no
//! second patch. `ADMIT_BLESS=1` writes the responses, to be read before they are committed.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads and blesses fixtures")]
#![expect(clippy::disallowed_types, reason = "applies patches independently of the code under test")]

use std::path::PathBuf;

use base64::Engine as _;
use serde_json::{Value, json};
use tollgate::engine::{Engine, Labels, Side, admit};
use tollgate::profile::Profile;
use tollgate::rules::{Origin, RuleSet};

const NOW: &str = "2026-01-02T03:04:05Z";

fn cases() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/admit");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    cases
}

fn ask(engine: &Engine, request: &str, side: Side) -> Value {
    let answer = admit(engine, request.as_bytes(), side, NOW, &Labels::Unknown);
    let mut answer: Value = match answer {
        Ok(bytes) => serde_json::from_slice(&bytes).expect("JSON"),
        Err(bad) => json!({"badReview": bad.detail, "uid": &*bad.uid}),
    };
    if let Some(patch) = answer.pointer_mut("/response/patch") {
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(patch.as_str().expect("text")).expect("base64");
        *patch = serde_json::from_slice(&bytes).expect("a patch is JSON");
    }
    answer
}

/// RFC 6902, as far as we use it.
fn apply(object: &mut Value, patch: &Value) {
    for operation in patch.as_array().expect("a list") {
        let path = operation["path"].as_str().expect("a path");
        let (parent, name) = path.rsplit_once('/').expect("a pointer below the root");
        let name = name.replace("~1", "/").replace("~0", "~");
        let owner = object.pointer_mut(parent).expect("the parent is there");
        let place = match owner {
            Value::Array(items) => items.get_mut(name.parse::<usize>().expect("an index")),
            Value::Object(members) if operation["op"] == "add" => {
                assert!(!members.contains_key(&name), "{path} is there already");
                Some(members.entry(name).or_insert(Value::Null))
            }
            Value::Object(members) => members.get_mut(&name),
            _ => None,
        };
        *place.expect("the place is there") = operation["value"].clone();
    }
}

#[test]
fn every_request_has_its_response() {
    let mut failures = Vec::new();
    for case in cases() {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        let mut words = name.splitn(3, '-');
        let (side, profile) = (words.next().expect("a side"), words.next().expect("a profile"));
        let side = if side == "mutate" { Side::Mutate } else { Side::Validate };
        let profile = Profile::named(profile).unwrap_or(tollgate::profile::DEFAULT);
        let rules = RuleSet::compile(|rule| rule.origin != Origin::Strict);
        let engine = Engine::new(vec![profile], rules);
        let request = std::fs::read_to_string(case.join("request.json")).expect("request.json");
        let answer = ask(&engine, &request, side);
        if let Some(patch) = answer.pointer("/response/patch") {
            let mut filled: Value = serde_json::from_str(&request).expect("JSON");
            apply(filled.pointer_mut("/request/object").expect("an object"), patch);
            let again = ask(&engine, &filled.to_string(), side);
            assert!(again.pointer("/response/patch").is_none(), "{name}: patched twice: {again}");
        }
        let expected = case.join("response.json");
        if std::env::var("ADMIT_BLESS").is_ok() {
            std::fs::write(&expected, format!("{answer:#}\n")).expect("a blessed response");
        }
        let expected: Value =
            serde_json::from_str(&std::fs::read_to_string(expected).unwrap_or_default()).unwrap_or_default();
        if answer != expected {
            failures.push(format!("{name}:\n{answer:#}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
