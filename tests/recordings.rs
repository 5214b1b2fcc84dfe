//! AdmissionReviews that real API servers sent, through both sides of the webhook.
//!
//! Every answer must pass the checks the API server makes (`VerifyAdmissionResponse` and what it does with warnings
//! and audit annotations), and every request that reached a validating webhook was valid, so it must be admitted.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads the recordings")]

use std::io::Read as _;

use base64::Engine as _;
use tollgate::doc::{self, Value};
use tollgate::engine::{Engine, Labels, Side, Surroundings, admit};
use tollgate::profile::Profile;
use tollgate::rules::{Origin, RuleSet};

fn recordings() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/reviews.jsonl.gz");
    let bytes = std::fs::read(path).expect("the recordings are in the tree");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip and UTF-8");
    text
}

fn engine(profile: &str) -> Engine {
    Engine {
        profiles: vec![Profile::named(profile).expect("a profile")],
        rules: RuleSet::compile(|rule| rule.origin != Origin::Strict),
        exact: false,
    }
}

fn ask(engine: &Engine, review: Value<'_>, side: Side) -> String {
    let labels = |_: &str| Labels::Unknown;
    let around = Surroundings { now: "2026-11-15T12:00:00Z", labels: &labels };
    let answer = admit(engine, review.to_json().as_bytes(), side, around).expect("a review");
    String::from_utf8(answer).expect("UTF-8")
}

/// What the API server refuses, or silently drops, in an answer.
fn faults(uid: &str, side: Side, answer: &str) -> Vec<String> {
    let answer = match doc::parse(answer) {
        Ok(answer) => answer,
        Err(error) => return vec![format!("not JSON: {error}")],
    };
    let (review, response) = (answer.root(), answer.root().get("response"));
    let mut faults = Vec::new();
    let mut check = |holds: bool, fault: &str| {
        if !holds {
            faults.push(fault.to_owned());
        }
    };
    check(response.exists(), "response was absent");
    check(response.get("uid").str() == uid, "another uid");
    check(review.get("apiVersion").str() == "admission.k8s.io/v1", "another apiVersion");
    check(review.get("kind").str() == "AdmissionReview", "another kind");
    check(response.get("allowed").bool().is_some(), "allowed is no bool");
    let (patch, patch_type) = (response.get("patch"), response.get("patchType"));
    check(patch.exists() == patch_type.exists(), "patch and patchType must come together");
    check(side == Side::Mutate || !patch.exists(), "a validating webhook may not return a patch");
    if patch.exists() {
        check(patch_type.str() == "JSONPatch", "unsupported patch type");
        let bytes = base64::engine::general_purpose::STANDARD.decode(patch.str()).unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap_or_default();
        let operations = doc::parse(&text);
        check(operations.is_ok_and(|patch| patch.root().items().count() > 0), "undecodable or empty patch");
    }
    if response.get("allowed").bool() == Some(false) {
        let status = response.get("status");
        check(status.get("code").int().is_some_and(|code| code >= 400), "a refusal needs a code");
        check(!status.get("message").str().is_empty(), "denied without explanation");
    } else {
        check(!response.get("status").exists(), "status is ignored when allowed");
    }
    let warnings: Vec<&str> = response.get("warnings").items().map(Value::str).collect();
    check(warnings.len() <= 8, "too many warnings");
    for (index, warning) in warnings.iter().enumerate() {
        check(!warning.is_empty() && warning.chars().count() <= 120, "an empty or long warning");
        check(!warning.chars().any(char::is_control), "a warning with control characters is dropped");
        check(!warnings.iter().take(index).any(|earlier| earlier == warning), "a warning given twice");
    }
    for (key, value) in response.get("auditAnnotations").members() {
        let key = key.text();
        let ends = key.starts_with(|c: char| c.is_ascii_alphanumeric())
            && key.ends_with(|c: char| c.is_ascii_alphanumeric());
        let inner = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        check(ends && inner && key.len() <= 63, "an audit key that the server drops");
        check(value.kind() == doc::Kind::String, "an audit value that is no string");
    }
    faults
}

#[test]
fn every_answer_is_one_the_server_accepts() {
    let text = recordings();
    let mut count = 0;
    for line in text.lines() {
        let recording = doc::parse(line).expect("JSON");
        let (name, review) = (recording.root().get("name").str(), recording.root().get("review"));
        let uid = review.get("request").get("uid").str();
        for profile in ["1.36", "1.37", "kep-5055"] {
            let engine = engine(profile);
            for side in [Side::Validate, Side::Mutate] {
                let answer = ask(&engine, review, side);
                assert_eq!(
                    faults(uid, side, &answer),
                    Vec::<String>::new(),
                    "{name} {profile} {side:?}: {answer}"
                );
            }
        }
        count += 1;
    }
    assert_eq!(count, 60);
}

#[test]
fn what_the_server_admitted_is_admitted() {
    let text = recordings();
    for line in text.lines() {
        let recording = doc::parse(line).expect("JSON");
        let (name, review) = (recording.root().get("name").str(), recording.root().get("review"));
        // The one object that in-tree validation refused; only mutating webhooks saw it.
        if name.contains("invalid-claim-create") {
            continue;
        }
        let release = name.split('-').nth(1).expect("number-release-…");
        for profile in [release, "kep-5055"] {
            let answer = ask(&engine(profile), review, Side::Validate);
            assert!(answer.contains(r#""allowed":true"#), "{name} {profile}: {answer}");
        }
    }
}

#[test]
fn what_the_server_filled_in_needs_no_patch() {
    let text = recordings();
    for line in text.lines() {
        let recording = doc::parse(line).expect("JSON");
        let (name, review) = (recording.root().get("name").str(), recording.root().get("review"));
        let release = name.split('-').nth(1).expect("number-release-…");
        let answer = ask(&engine(release), review, Side::Mutate);
        // A rule whose effect changes within the second, or that is still in the mutating phase, has the old time.
        let restarts = name.contains("rule-effect");
        assert!(!answer.contains("patch") || restarts, "{name}: {answer}");
    }
}

/// Every object of the corpus as a request: refusals and warnings must satisfy the server too.
#[test]
fn answers_about_broken_objects_are_accepted_too() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/cases.jsonl.gz");
    let bytes = std::fs::read(path).expect("the corpus is in the tree");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip and UTF-8");
    let engine = engine("kep-5055");
    let mut denied = 0;
    for line in text.lines() {
        let case = doc::parse(line).expect("JSON");
        let case = case.root();
        let id = case.get("id").str();
        let request = format!(
            r#"{{"request":{{"uid":"{id}","operation":{},"subResource":"{}","object":{},"oldObject":{}}}}}"#,
            case.get("operation").to_json(),
            case.get("subresource").str(),
            case.get("object").raw_json(),
            case.get("oldObject").raw_json(),
        );
        let review = doc::parse(&request).expect("JSON");
        for side in [Side::Validate, Side::Mutate] {
            let labels = |_: &str| Labels::Unknown;
            let around = Surroundings { now: "2026-11-15T12:00:00Z", labels: &labels };
            let bytes = review.source().as_bytes();
            let answer =
                String::from_utf8(admit(&engine, bytes, side, around).expect("a review")).expect("UTF-8");
            assert_eq!(faults(id, side, &answer), Vec::<String>::new(), "{id} {side:?}: {answer}");
            assert!(
                side == Side::Validate || answer.contains(r#""allowed":true"#),
                "{id}: mutating never refuses"
            );
            denied += usize::from(answer.contains(r#""allowed":false"#));
        }
    }
    assert!(denied > 500, "only {denied} of the corpus are refused");
}
