//! What rules do, against what they did: `tests/impact/`, see the README there.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]
#![expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "seconds of a recording")]
#![expect(clippy::disallowed_methods, reason = "reads fixtures")]
#![expect(clippy::disallowed_types, reason = "reads recordings independently of the code under test")]

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tollgate::doc;
use tollgate::gotime::{self, Timestamp};
use tollgate::impact::{self, Impact, Kind, Outcome, Question, Snapshot, Subject};
use tollgate::profile::Profile;
use tollgate::source::{documents, list};

fn folders(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/impact").join(name);
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn snapshot(text: &str) -> Snapshot {
    let mut snapshot = Snapshot::new();
    for document in documents(text) {
        let document = document.expect("YAML");
        for item in list::items(document.doc.root()) {
            snapshot.apply(item.value()).expect("an object that fits");
        }
    }
    snapshot
}

fn time(text: &str) -> Timestamp {
    gotime::parse(text).expect("a time")
}

/// What the rule or slice of a manifest will do.
fn ask<R>(
    state: &Snapshot,
    manifest: &str,
    profile: &str,
    at: Timestamp,
    tell: impl FnOnce(&Subject, &Impact<'_>) -> R,
) -> R {
    let profile = Profile::named(profile).expect("a profile");
    let mut state = state.clone();
    let document = documents(manifest).next().expect("a document").expect("YAML");
    let object = document.doc.root();
    let subject = if object.get("kind").str() == "ResourceSlice" {
        assert_eq!(state.apply(object), Ok(Some(Kind::Slice)));
        Subject::Slice(object.get("metadata").get("name").str().into())
    } else {
        Subject::applied(object, &state, profile, at).expect("a rule that fits")
    };
    let question = Question { snapshot: &state, subject: &subject, profile, at };
    tell(&subject, &impact::assess(question))
}

/// Seconds after `from`; pods that go at once go at 0.
fn seconds(outcome: Outcome, from: Timestamp) -> Option<f64> {
    let precise = |time: Timestamp| time.seconds as f64 + f64::from(time.nanos) / 1e9;
    match outcome {
        Outcome::EvictedNow => Some(0.0),
        Outcome::EvictedAt(time) => Some(precise(time) - precise(from)),
        Outcome::Tolerated | Outcome::Unaffected => None,
    }
}

/// One recorded condition against the one foreseen. What the controller remembers of earlier evictions is in no
/// state, so that part of a message is cut off.
fn same_condition(what: &str, recorded: &Json, impact: &Impact<'_>, wrong: &mut Vec<String>) {
    let condition = impact.condition.as_ref().expect("1.36 writes a status");
    let text = |name: &str| recorded[name].as_str().expect("a text");
    let mut message = text("message");
    if let Some(at) = message.find(" evicted since starting the controller.") {
        let before = &message[..at];
        message = before.rfind(['.']).map_or("", |end| &before[..=end]);
    }
    let expected = (text("status"), text("reason"), message);
    let found = (condition.status, condition.reason, condition.message.as_str());
    if expected != found {
        wrong.push(format!("{what}: expected {expected:?}\n   found {found:?}"));
    }
}

/// Every pod of the recording against what was foreseen for it, from `start` to `end` seconds.
fn same_pods(
    what: &str,
    result: &Json,
    impact: &Impact<'_>,
    from: Timestamp,
    window: (f64, f64),
    wrong: &mut Vec<String>,
) {
    for pod in result["pods"].as_array().expect("pods") {
        let (namespace, name) = (pod["namespace"].as_str().unwrap(), pod["name"].as_str().unwrap());
        let foreseen = impact.pods.iter().find(|found| found.namespace == namespace && found.name == name);
        let foreseen = foreseen.and_then(|pod| seconds(pod.outcome, from));
        let foreseen = foreseen.filter(|at| *at <= window.1);
        let happened = pod["evicted"].as_bool().unwrap().then(|| pod["deleted_after_s"].as_f64().unwrap());
        let happened = happened.filter(|at| *at >= window.0 && *at <= window.1).map(|at| at - window.0);
        let agree = match (foreseen, happened) {
            (None, None) => true,
            (Some(foreseen), Some(happened)) => (foreseen - happened).abs() <= 1.0,
            _ => false,
        };
        if !agree {
            wrong.push(format!("{what}: {namespace}/{name} went at {happened:?}, foreseen {foreseen:?}"));
        }
    }
}

#[test]
fn recorded_rules_did_what_is_foreseen() {
    let mut wrong = Vec::new();
    let mut scenarios = 0;
    for folder in folders("recorded") {
        let what = folder.file_name().unwrap().to_string_lossy().into_owned();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of the recording");
        let result: Json = serde_json::from_str(&read("result.json")).expect("JSON");
        let mut state = snapshot(&read("before.yaml"));
        let created = time(result["created_at"].as_str().unwrap());
        let steps = result["steps"].as_array().unwrap();
        let first_step = steps.first().map_or(f64::INFINITY, |step| step["seconds"].as_f64().unwrap());
        let end = result["condition"]["end"]["seconds"].as_f64().unwrap_or(20.0);
        ask(&state, &read("rule.yaml"), "1.36", created, |_, impact| {
            if result["condition"].is_object() {
                same_condition(&what, &result["condition"]["first"], impact, &mut wrong);
            } else {
                assert!(impact.condition.is_none(), "{what}: a slice has no condition");
            }
            same_pods(&what, &result, impact, created, (0.0, end.min(first_step)), &mut wrong);
        });
        for step in steps {
            let (after, rule) = next_state(&mut state, &result, step, first_step);
            let from = Timestamp { seconds: created.seconds + after as i64, ..created };
            ask(&state, &rule, "1.36", from, |subject, impact| {
                let what = format!("{what}, after {after} s");
                let later = result["condition"]["history"].as_array().unwrap().iter();
                let mut later = later.filter(|condition| condition["seconds"].as_f64().unwrap() >= after);
                same_condition(&what, later.next().expect("a condition"), impact, &mut wrong);
                same_pods(&what, &result, impact, from, (after, end), &mut wrong);
                if let (Subject::Rule(rule), Some(stored)) = (subject, step["taint_after"].as_object()) {
                    assert_eq!(rule.taint.added, Some(time(stored["timeAdded"].as_str().unwrap())), "{what}");
                }
            });
        }
        scenarios += 1;
    }
    assert_eq!(scenarios, 38);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The state after a step, the moment of the step, and the rule as it then was sent.
fn next_state(state: &mut Snapshot, result: &Json, step: &Json, first_step: f64) -> (f64, String) {
    let stored = result["rule"]["stored"].clone();
    apply(state, &stored);
    for pod in result["pods"].as_array().unwrap() {
        let gone = pod["deleted_after_s"].as_f64().is_some_and(|at| at < first_step);
        if gone {
            state.remove(Kind::Pod, pod["namespace"].as_str().unwrap(), pod["name"].as_str().unwrap());
        }
    }
    let mut rule = stored;
    if let Some(claim) = step["deallocate"].as_str() {
        let (namespace, name) = claim.split_once('/').unwrap();
        state.remove(Kind::Claim, namespace, name);
    } else {
        for (name, value) in step["patch"]["spec"]["taint"].as_object().expect("a patch of the taint") {
            rule["spec"]["taint"][name] = value.clone();
        }
    }
    (step["seconds"].as_f64().unwrap(), rule.to_string())
}

fn apply(state: &mut Snapshot, object: &Json) {
    let text = object.to_string();
    let document = doc::parse(&text).expect("JSON");
    state.apply(document.root()).expect("an object that fits");
}
