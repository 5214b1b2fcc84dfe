//! kubectl's YAML beside ours: what kubectl 1.37 made of 7,500 generated texts, recorded from its own packages.
//!
//! A `scalar` is one value in a small mapping, with every escape, number, tag, quoting and block style: it has the
//! same value, or both refuse it. A `layout` is a random arrangement of tokens, or a field hidden behind a character
//! that only one of the two takes for a line break: what kubectl reads is read alike or refused, and never read as
//! something else.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_document::source::{self, RefusedBy, shape};

use super::support;

/// A document as text for comparison. A scalar document does not count as an object.
fn comparable_text(root: Value<'_>) -> String {
    match root.kind() {
        ValueKind::Object | ValueKind::Array => root.to_json(),
        _ => "a plain value".to_owned(),
    }
}

/// The documents before the first error, and whether there was an error.
fn read_documents(text: &str) -> (Vec<String>, bool) {
    let mut documents = Vec::new();
    let Ok(text) = source::decode_by_byte_order_mark("f", text.as_bytes().to_vec()) else {
        return (documents, true);
    };
    for document in source::documents(&text) {
        match document {
            Ok(document) => documents.push(comparable_text(document.doc.root())),
            Err(_) => return (documents, true),
        }
    }
    (documents, false)
}

/// The difference between the recorded and the actual result, if any.
fn difference(kind: &str, text: &str, expected: &[String], is_refused: bool) -> Option<String> {
    let (documents, fault) = read_documents(text);
    let same = documents.len().min(expected.len());
    let is_wrong = match (is_refused, fault) {
        (true, false) => true,
        (_, true) if is_refused || kind == "layout" => documents[..same] != expected[..same],
        // Documents behind `...` are not read by kubectl.
        (false, false) if kind == "layout" => documents.get(..expected.len()) != Some(expected),
        _ => fault || documents != *expected,
    };
    is_wrong.then(|| {
        format!("{text:?}: kubectl {expected:?} refused={is_refused}, here {documents:?} fault={fault}")
    })
}

#[test]
fn every_text_is_read_as_kubectl_reads_it_or_refused() {
    let recorded = support::corpus("go-yaml.jsonl");
    let mut wrong = Vec::new();
    let (mut scalars, mut layouts, mut values) = (0, 0, 0);
    for line in recorded.lines() {
        let case = doc::parse(line).expect("JSON");
        let case = case.root();
        let expected: Vec<String> = case
            .get("documents")
            .items()
            .map(|document| comparable_text(doc::parse(document.str()).expect("JSON").root()))
            .collect();
        let is_refused = case.get("refused").bool() == Some(true);
        let kind = case.get("kind").str();
        scalars += usize::from(kind == "scalar");
        layouts += usize::from(kind == "layout");
        values += usize::from(!is_refused);
        wrong.extend(difference(kind, case.get("text").str(), &expected, is_refused));
    }
    assert!(scalars >= 5_000 && layouts >= 2_000 && values >= 4_000, "{scalars} {layouts} {values}");
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// A text that Tollgate refuses is taken for a template only if kubectl refuses it, too.
#[test]
fn what_kubectl_reads_is_no_template() {
    let recorded = support::corpus("go-yaml.jsonl");
    let mut refused = 0;
    for line in recorded.lines() {
        let case = doc::parse(line).expect("JSON");
        let case = case.root();
        let text = case.get("text").str();
        let Ok(text) = source::decode_by_byte_order_mark("f", text.as_bytes().to_vec()) else {
            continue;
        };
        let read = case.get("documents").items().count();
        let is_refused = case.get("refused").bool() == Some(true);
        for error in source::documents(&text).take(read).filter_map(Result::err).filter(|_| !is_refused) {
            refused += 1;
            let (start, part) = shape::document_around(&text, error.at);
            let is_template = shape::starts_with_template_action(part)
                || error.by == RefusedBy::Kubectl
                    && shape::stopped_at_template_action(part, error.at - start);
            assert!(!is_template, "{text:?}: {error:?}");
        }
    }
    assert!(refused >= 100, "{refused}");
}
