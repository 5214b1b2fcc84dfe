//! Generated objects and what running API servers said of them, with all feature gates on and with default ones.
//!
//! They are a hard selection: every difference that was ever found in 100,000 objects, and a sample of the rest. The
//! numbers below are those of `docs/understand/conformance.md`: a smaller one is written down in both places, a
//! larger one is a regression. `CONFORMANCE_DIFFS=10 cargo test --test engine generated -- --nocapture` shows
//! differences.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "prints differences; reads a variable for how many"
)]

use std::collections::BTreeSet;

use super::support::{self, corpus};
use tollgate_api::profile::{GateChoice, Profile};
use tollgate_document::doc::{self, Value};
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Operation};
use tollgate_engine::rules::RuleSet;

/// Number of compared cases, and how many differ in the verdict, the type and field, or the text.
#[derive(Default, Debug, PartialEq, Eq)]
struct Differences {
    cases: usize,
    verdict: usize,
    fields: usize,
    texts: usize,
}

type Errors = (BTreeSet<(String, String)>, BTreeSet<String>);

/// The recorded errors of the server: `[type, field, message]`.
fn expected(answer: Value<'_>) -> Errors {
    let mut errors = Errors::default();
    for cause in answer.get("causes").items() {
        let [kind, field, message] = [0, 1, 2].map(|index| cause.item(index).str());
        let field = if field == "<nil>" { "" } else { field };
        errors.0.insert((kind.to_owned(), field.to_owned()));
        errors.1.insert(if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") });
    }
    errors
}

fn actual(engine: &Engine, case: Value<'_>) -> (bool, Errors) {
    let (object, old) = (case.get("object").str(), case.get("old").str());
    let old = if old.is_empty() { case.get("stored").str() } else { old };
    let object = doc::parse(object).expect("JSON");
    let is_update = case.get("op").str() == "UPDATE";
    let old = (is_update && !old.is_empty()).then(|| doc::parse(old).expect("JSON"));
    let labels = if case.get("admin").bool() == Some(true) {
        r#"{"resource.kubernetes.io/admin-access":"true"}"#
    } else {
        "{}"
    };
    let labels = doc::parse(labels).expect("JSON");
    let attributes = Attributes {
        operation: if is_update { Operation::Update } else { Operation::Create },
        subresource: case.get("sub").str(),
        object: object.root(),
        old_object: old.as_ref().map(doc::Doc::root),
        namespace: "default",
        user: Value::absent(),
        now: support::NOW.into(),
    };
    let verdict = engine.validate(&attributes, LabelsIfKnown::Known(labels.root()));
    let mut errors = Errors::default();
    for diagnostic in verdict.findings() {
        let finding = &diagnostic.finding;
        let field = finding.server_path();
        errors.0.insert((finding.kind.cause_reason().to_owned(), field.clone()));
        errors.1.insert(if field.is_empty() {
            finding.server_message_without_path()
        } else {
            format!("{field}: {}", finding.server_message_without_path())
        });
    }
    (verdict.is_allowed(), errors)
}

fn compare(file: &str, release: &str, gates: &str) -> Differences {
    let mut shown: usize = std::env::var("CONFORMANCE_DIFFS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let profile = Profile::named(release).expect("a release");
    let profile = profile.with_gates(&GateChoice::parse(gates).expect("gates")).expect("gates");
    let rules = RuleSet::parse("upstream,decoding").expect("origins");
    let engine = Engine::new(vec![profile], rules).with_api_server_verdicts();
    let mut differences = Differences::default();
    for line in corpus(file).lines() {
        let case = doc::parse(line).expect("JSON");
        let (case, answer) = (case.root(), case.root().get("answer"));
        let Some(code @ (200 | 201 | 422)) = answer.get("code").int() else { continue };
        let (want, (allowed, got)) = (expected(answer), actual(&engine, case));
        differences.cases += 1;
        let is_same_verdict = allowed == (code != 422);
        let has_random_name = want.1.iter().any(|text| text.starts_with("metadata.name: "));
        differences.verdict += usize::from(!is_same_verdict);
        differences.fields += usize::from(want.0 != got.0);
        differences.texts += usize::from(want.1 != got.1 && !has_random_name);
        if shown > 0 && want.1 != got.1 && !has_random_name {
            shown -= 1;
            println!("{file} {}", case.get("id").str());
            want.1.difference(&got.1).for_each(|text| println!("  - {text}"));
            got.1.difference(&want.1).for_each(|text| println!("  + {text}"));
        }
    }
    differences
}

#[test]
fn generated_objects_differ_where_we_say() {
    let files = [
        ("generated/default-gates-1.34.jsonl", "1.34", "default", [1_554, 0, 0, 1]),
        ("generated/default-gates-1.35.jsonl", "1.35", "default", [1_623, 0, 0, 0]),
        ("generated/default-gates-1.36.jsonl", "1.36", "default", [1_597, 0, 1, 1]),
        ("generated/default-gates-1.37.jsonl", "1.37", "default", [1_589, 0, 0, 0]),
        ("generated/all-gates-1.36.jsonl", "1.36", "all", [5_807, 0, 0, 0]),
        ("generated/all-gates-1.37.jsonl", "1.37", "all", [3_900, 1, 2, 2]),
    ];
    let found = files.map(|(file, release, gates, _)| (file, compare(file, release, gates)));
    let expected = files.map(|(file, _, _, [cases, verdict, fields, texts])| {
        (file, Differences { cases, verdict, fields, texts })
    });
    assert_eq!(found, expected, "docs/understand/conformance.md has the numbers too");
}
