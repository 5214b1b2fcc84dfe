//! The cases that are compiled into the program are the creates of the corpus, without what could hurt an API server.
//!
//! `SNAPSHOTS=overwrite cargo test --test engine shipped` writes them anew after the corpus has changed.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the cases if asked to")]

use std::collections::BTreeSet;
use std::io::Write as _;

use super::support::{RELEASES, corpus};
use tollgate::conformance::{CorpusSet, dra_kind_and_version_in_a_release};
use tollgate_document::doc::{self, Value, ValueKind};

/// Generated cases, by how they were recorded.
const GENERATED: [&str; 6] = [
    "generated/all-gates-1.36.jsonl",
    "generated/all-gates-1.37.jsonl",
    "generated/default-gates-1.34.jsonl",
    "generated/default-gates-1.35.jsonl",
    "generated/default-gates-1.36.jsonl",
    "generated/default-gates-1.37.jsonl",
];

/// True if some API server panics on such an object: a step that is zero as an integer divides by zero up to
/// 1.36, and a number in opaque parameters that is not a finite float cannot be printed. The check is wider
/// than the recorded cases, because each of them was sent to one server only.
fn is_dangerous(object: Value<'_>) -> bool {
    object.self_and_descendants().any(|value| match value.kind() {
        ValueKind::Number => value.text().parse::<f64>().is_ok_and(f64::is_infinite),
        ValueKind::Object => value
            .members()
            .any(|(key, step)| key.text().eq_ignore_ascii_case("step") && !is_harmless_step(step)),
        _ => false,
    })
}

/// `1`, `10`, `2Gi`: a small positive number, and nothing fancy.
fn is_harmless_step(step: Value<'_>) -> bool {
    let digits = step.str().trim_end_matches(['K', 'M', 'G', 'k', 'i']);
    (1..=6).contains(&digits.len())
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && step.str().len() - digits.len() <= 2
}

/// A namespace that other objects can be moved from.
fn has_plain_namespace(object: Value<'_>) -> bool {
    let namespace = object.get("metadata").get("namespace");
    let named = object.get("metadata").members().filter(|(key, _)| key.text() == "namespace").count();
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    named <= 1
        && (namespace.is_null_or_absent()
            || namespace.kind() == ValueKind::String && is_plain(namespace.str()))
}

/// The cases of a set as they are shipped.
#[derive(Default)]
struct Shipped {
    lines: Vec<String>,
    texts: BTreeSet<String>,
    updates: usize,
    dangerous: usize,
}

impl Shipped {
    fn add(&mut self, id: &str, operation: &str, text: &str, has_panicked: bool) {
        if operation != "CREATE" {
            self.updates += 1;
            return;
        }
        let document = doc::parse(text).expect("JSON");
        let object = document.root();
        if has_panicked || is_dangerous(object) {
            self.dangerous += 1;
            return;
        }
        // Where it is to be sent must be certain, and what is sent must be new.
        let Some((kind, _)) = dra_kind_and_version_in_a_release(object) else { return };
        if kind.is_namespaced() && !has_plain_namespace(object) || !self.texts.insert(text.to_owned()) {
            return;
        }
        let object = serde_json::to_string(text).expect("JSON");
        self.lines.push(format!(r#"{{"id":"{id}","object":{object}}}"#));
    }

    fn text(&self) -> String {
        let head = format!(r#"{{"updates":{},"dangerous":{}}}"#, self.updates, self.dangerous);
        std::iter::once(&head).chain(&self.lines).flat_map(|line| [line, "\n"]).collect()
    }
}

fn written() -> Shipped {
    let mut shipped = Shipped::default();
    let mut panicked: BTreeSet<String> = BTreeSet::new();
    for release in RELEASES {
        for line in corpus(&format!("expected-{release}.jsonl")).lines() {
            let expected = doc::parse(line).expect("JSON");
            if expected.root().get("panic").exists() {
                panicked.insert(expected.root().get("id").str().to_owned());
            }
        }
    }
    for line in corpus("cases.jsonl").lines() {
        let case = doc::parse(line).expect("JSON");
        let (id, operation) = (case.root().get("id").str(), case.root().get("operation").str());
        let object = String::from_utf8(case.root().get("object").unchanged_source_json_or_empty().to_vec())
            .expect("UTF-8");
        shipped.add(id, operation, &object, panicked.contains(id));
    }
    shipped
}

fn generated() -> Shipped {
    let mut shipped = Shipped::default();
    for file in GENERATED {
        for line in corpus(file).lines() {
            let case = doc::parse(line).expect("JSON");
            let case = case.root();
            // 0: the connection broke.
            let has_panicked =
                case.get("answer").get("code").int().is_none_or(|code| code <= 0 || code >= 500);
            shipped.add(case.get("id").str(), case.get("op").str(), case.get("object").str(), has_panicked);
        }
    }
    shipped
}

fn check(set: CorpusSet, file: &str, expected: &str) {
    if std::env::var("SNAPSHOTS").is_ok_and(|snapshots| snapshots == "overwrite") {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(expected.as_bytes()).expect("written");
        let path = format!("{}/src/conformance/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, encoder.finish().expect("compressed")).expect("written");
        return;
    }
    let is_same = set.to_jsonl().expect("cases") == expected;
    assert!(
        is_same,
        "{file} is not what the corpus says; SNAPSHOTS=overwrite cargo test --test engine shipped"
    );
}

#[test]
fn the_shipped_cases_are_the_creates_of_the_corpus() {
    check(CorpusSet::Corpus, "corpus.jsonl.gz", &written().text());
    check(CorpusSet::Generated, "generated.jsonl.gz", &generated().text());
}

#[test]
fn what_makes_a_server_panic_is_not_shipped() {
    for (object, expected) in [
        (r#"{"a":[{"validRange":{"step":"0"}}]}"#, true),
        (r#"{"step":"-0"}"#, true),
        (r#"{"Step":"."}"#, true),
        (r#"{"step":"18446744073709551616"}"#, true),
        (r#"{"step":"10E"}"#, true),
        (r#"{"step":0}"#, true),
        (r#"{"step":"1","step":"0"}"#, true),
        (r#"{"st\u0065p":"0"}"#, true),
        (r#"{"parameters":{"x":1e400}}"#, true),
        (r#"{"parameters":{"x":-1e400}}"#, true),
        (r#"{"step":"1"}"#, false),
        (r#"{"step":"2Gi"}"#, false),
        (r#"{"x":1e300}"#, false),
    ] {
        assert_eq!(is_dangerous(doc::parse(object).expect("JSON").root()), expected, "{object}");
    }
    for set in [CorpusSet::Corpus, CorpusSet::Generated] {
        for line in set.to_jsonl().expect("cases").lines().skip(1) {
            let line = doc::parse(line).expect("JSON");
            let object = doc::parse(line.root().get("object").str()).expect("JSON");
            assert!(!is_dangerous(object.root()), "{}", line.root().get("id").str());
        }
    }
}
