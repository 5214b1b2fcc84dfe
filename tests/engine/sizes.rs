//! Sizes of raw JSON: what kubectl makes of a file is measured, whatever the file looks like.
//!
//! `tests/conformance/kubectl-sizes.jsonl.gz` has files with opaque parameters, and what an API server 1.37 stored of
//! them after `kubectl create`. At 10,240 bytes of this form it admitted each of them, and at 10,241 none.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use super::support::corpus;
use tollgate_api::profile::{ALL, Profile};
use tollgate_document::{doc, source};
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Operation};
use tollgate_engine::rules::RuleSet;

/// The violated size rules of a file.
fn violated_rules(profile: &'static Profile, text: &str) -> Vec<&'static str> {
    let document = source::documents(text).next().expect("a document").expect("a readable one");
    let engine = Engine::new(vec![profile], RuleSet::parse("upstream,documented,decoding").expect("origins"));
    let verdict = engine.validate(
        &Attributes {
            operation: Operation::Create,
            subresource: "",
            object: document.doc.root(),
            old_object: None,
            namespace: "",
            user: doc::Value::absent(),
            now: "2026-01-02T03:04:05Z".into(),
        },
        LabelsIfKnown::Unknown,
    );
    let rules = verdict.findings().iter().map(|diagnostic| diagnostic.finding.rule.id);
    rules.filter(|rule| ["opaque-parameters", "oversized-taint-data"].contains(rule)).collect()
}

/// A claim with these parameters, in the first version that a profile serves by default.
fn claim(parameters: &str) -> [String; 3] {
    ["v1beta1", "v1beta2", "v1"].map(|version| {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/{version}","kind":"ResourceClaim","metadata":{{"name":"c","namespace":"n"}},
"spec":{{"devices":{{"requests":[],"config":[{{"opaque":{{"driver":"gpu.example.com","parameters":{parameters}}}}}]}}}}}}"#
        )
    })
}

/// A slice of draft r2 with this data of a taint.
fn slice(data: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"gpu.example.com",
"pool":{{"name":"p","generation":1,"resourceSliceCount":1}},"nodeName":"n",
"taints":[{{"device":"gpu-0","taint":{{"key":"gpu.example.com/health","effect":"None","data":{data}}}}}]}}}}"#
    )
}

/// Checks a value in every shape of an object and in both syntaxes.
fn check(value: &str, is_denied: bool) {
    for profile in ALL {
        // A version that a profile does not serve says nothing about sizes.
        for object in claim(value) {
            for text in [object.clone(), format!("--- # YAML\n{object}")] {
                let denied = violated_rules(profile, &text) == ["opaque-parameters"];
                let is_served = violated_rules(profile, &text.replace(value, "[]")) == ["opaque-parameters"];
                assert!(denied == (is_denied && is_served), "{}: {text:.200}", profile.name);
            }
        }
        if profile.documented.taint_data.is_some() {
            for text in [slice(value), format!("--- # YAML\n{}", slice(value))] {
                let expected: &[&str] = if is_denied { &["oversized-taint-data"] } else { &[] };
                assert_eq!(violated_rules(profile, &text), expected, "{}: {text:.200}", profile.name);
            }
        }
    }
}

#[test]
fn indentation_does_not_count() {
    // 5,591 bytes, which take 68 KB when each item has a line of its own.
    let items = vec!["1"; 2_791];
    let compact = format!(r#"{{"l":[{}]}}"#, items.join(","));
    let blanks = format!("\n{}", " ".repeat(22));
    let indented = format!(r#"{{{blanks}"l": [{blanks}{}{blanks}]}}"#, items.join(&format!(",{blanks}")));
    assert!(compact.len() < 5_600 && indented.len() > 68_000, "{} {}", compact.len(), indented.len());
    // As parameters, and as the data of taints.
    check(&compact, false);
    check(&indented, false);
}

#[test]
fn escapes_count_as_they_are_sent() {
    // kubectl sends 12.2 KB.
    check(&format!(r#"{{"log":"{}"}}"#, "<".repeat(2_000)), true);
    for (letters, bytes) in
        [("<", 6), (">", 6), ("&", 6), ("\\u2028", 6), ("\\u003c", 6), ("\\u0041", 1), ("\\n", 2), ("é", 2)]
    {
        let most = (10_240 - r#"{"l":""}"#.len()) / bytes;
        check(&format!(r#"{{"l":"{}"}}"#, letters.repeat(most)), false);
        check(&format!(r#"{{"l":"{}"}}"#, letters.repeat(most + 1)), true);
    }
}

#[test]
fn numbers_and_keys_count_as_they_are_sent() {
    for (written, sent) in [("1e20", "100000000000000000000"), ("1.000", "1"), ("-0", "0"), ("1e3", "1000")] {
        let most = (10_240 - r#"{"l":[]}"#.len() + 1) / (sent.len() + 1);
        check(&format!(r#"{{"l":[{}]}}"#, vec![written; most].join(",")), false);
        check(&format!(r#"{{"l":[{}]}}"#, vec![written; most + 1].join(",")), true);
    }
}

#[test]
fn files_count_as_kubectl_sends_them() {
    let recorded = corpus("kubectl-sizes.jsonl");
    assert!(recorded.lines().count() > 130);
    for line in recorded.lines() {
        let case = doc::parse(line).expect("JSON");
        let (file, sent) = (case.root().get("file").str(), case.root().get("sent").str());
        let document = source::documents(file).next().expect("a document").expect("a readable one");
        let config =
            document.doc.root().get("spec").get("devices").get("config").items().next().expect("a config");
        let parameters = config.get("opaque").get("parameters");
        assert!(!parameters.exceeds_bytes_when_sent_by_kubectl(sent.len()), "{sent}\n{file}");
        assert!(parameters.exceeds_bytes_when_sent_by_kubectl(sent.len() - 1), "{sent}\n{file}");
    }
}
