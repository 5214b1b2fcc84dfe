//! AdmissionReviews that real API servers sent, through both sides of the webhook.
//!
//! Every answer must pass the checks the API server makes (`VerifyAdmissionResponse` and what it does with warnings
//! and audit annotations), and every request that reached a validating webhook was valid, so it must be admitted.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

#[path = "support/reviews.rs"]
mod reviews;

use reviews::{faults, recordings, unpacked};
use tollgate::doc::{self, Value};
use tollgate::engine::{Engine, Labels, Side, admit};
use tollgate::profile::Profile;
use tollgate::rules::{Origin, RuleSet};

fn engine(profile: &str) -> Engine {
    Engine::new(
        vec![Profile::named(profile).expect("a profile")],
        RuleSet::compile(|rule| rule.origin != Origin::Strict),
    )
}

fn ask(engine: &Engine, review: Value<'_>, side: Side) -> String {
    let answer = admit(engine, review.to_json().as_bytes(), side, "2026-11-15T12:00:00Z", &Labels::Unknown)
        .expect("a review");
    String::from_utf8(answer).expect("UTF-8")
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
    let text = unpacked("conformance/cases.jsonl.gz");
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
            let bytes = review.source().as_bytes();
            let answer = String::from_utf8(
                admit(&engine, bytes, side, "2026-11-15T12:00:00Z", &Labels::Unknown).expect("a review"),
            )
            .expect("UTF-8");
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
