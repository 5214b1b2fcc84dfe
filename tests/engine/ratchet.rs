//! Tests that for updates, documented limits and lints report only problems that the update introduces.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use tollgate_api::profile;
use tollgate_document::doc;
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Operation};
use tollgate_engine::rules::RuleSet;

const TAINT: &str = r#""taint":{"key":"example.com/a","effect":"NoSchedule"}"#;

fn rules_told(spec_of_old: &str, spec_of_new: &str) -> Vec<&'static str> {
    reported_rules("documented,lint", spec_of_old, spec_of_new)
}

fn reported_rules(origins: &str, spec_of_old: &str, spec_of_new: &str) -> Vec<&'static str> {
    let object = |spec: &str| {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"a","resourceVersion":"1"}},
            "spec":{{"driver":"gpu.example.com","pool":{{"name":"p","generation":1,"resourceSliceCount":1}},
            "allNodes":true,{spec}}}}}"#
        )
    };
    let (old, new) = (object(spec_of_old), object(spec_of_new));
    let (old, new) = (doc::parse(&old).expect("JSON"), doc::parse(&new).expect("JSON"));
    let rules = RuleSet::parse(origins).expect("origins");
    let engine = Engine::new(vec![profile::DEFAULT], rules);
    let verdict = engine.validate(
        &Attributes {
            operation: Operation::Update,
            subresource: "",
            object: new.root(),
            old_object: Some(old.root()),
            namespace: "",
            user: doc::Value::absent(),
            now: "2026-01-02T03:04:05Z".into(),
        },
        LabelsIfKnown::Unknown,
    );
    verdict.findings().iter().map(|diagnostic| diagnostic.finding.rule.id).collect()
}

fn entry(device: &str, more: &str) -> String {
    format!(r#"{{"device":"{device}","taint":{{"key":"example.com/a","effect":"None"{more}}}}}"#)
}

fn taints(entries: &[String]) -> String {
    format!(r#""taints":[{}]"#, entries.join(","))
}

#[test]
fn what_was_wrong_and_did_not_change_is_not_told() {
    let old = taints(&[entry("x", r#","evictionsPerSecond":0"#)]);
    let moved = taints(&[entry("w", ""), entry("x", r#","evictionsPerSecond":0"#)]);
    assert_eq!(rules_told(&old, &moved), [""; 0]);
    let other_device = taints(&[entry("y", r#","evictionsPerSecond":0"#)]);
    assert_eq!(rules_told(&old, &other_device), ["eviction-rate", "rate-without-noexecute"]);
    let worse = taints(&[entry("x", r#","evictionsPerSecond":-1"#)]);
    assert_eq!(rules_told(&old, &worse), ["eviction-rate", "rate-without-noexecute"]);
    let once_more = taints(&[
        entry("x", r#","evictionsPerSecond":0"#),
        entry("x", r#","value":"b","evictionsPerSecond":0"#),
    ]);
    assert_eq!(rules_told(&old, &once_more), ["eviction-rate", "rate-without-noexecute"]);
}

#[test]
fn a_value_that_no_text_shows_is_compared_itself() {
    let large = |fill: &str| entry("x", &format!(r#","data":"{}""#, fill.repeat(11_000)));
    let old = taints(&[large("a")]);
    assert_eq!(rules_told(&old, &taints(&[large("a"), entry("y", "")])), [""; 0]);
    assert_eq!(rules_told(&old, &taints(&[large("b")])), ["oversized-taint-data"]);
}

#[test]
fn a_list_over_its_limit_may_change_and_shrink_but_not_grow() {
    let list = |count: usize, value: &str| {
        let entries: Vec<String> =
            (0..count).map(|index| entry(&format!("d{index}"), &format!(r#","value":"{value}""#))).collect();
        taints(&entries)
    };
    assert_eq!(rules_told(&list(33, "a"), &list(33, "b")), [""; 0]);
    assert_eq!(rules_told(&list(33, "a"), &list(34, "a")), ["too-many-slice-taints"]);
    assert_eq!(rules_told(&list(32, "a"), &list(33, "a")), ["too-many-slice-taints"]);
    assert_eq!(rules_told(&list(40, "a"), &list(33, "a")), [""; 0]);
}

#[test]
fn an_entry_of_a_list_that_was_too_long_is_not_new_when_the_list_fits() {
    let list = |count: usize, first: &str| {
        let others = (1..count).map(|index| entry(&format!("d{index}"), ""));
        taints(&std::iter::once(entry(first, "")).chain(others).collect::<Vec<_>>())
    };
    assert_eq!(rules_told(&list(33, "-wrong-"), &list(32, "-wrong-")), [""; 0]);
    assert_eq!(rules_told(&list(33, "right"), &list(32, "-wrong-")), ["slice-taint-device"]);
}

#[test]
fn devices_go_by_their_names() {
    let device = |name: &str, key: &str| {
        format!(r#"{{"name":"{name}","taints":[{{"key":"{key}","effect":"NoSchedule"}}]}}"#)
    };
    let devices = |list: &[String]| format!(r#""devices":[{}]"#, list.join(","));
    let old = devices(&[device("a", "k8s.io/x"), device("b", "example.com/x")]);
    let swapped = devices(&[device("b", "example.com/x"), device("a", "k8s.io/x")]);
    assert_eq!(rules_told(&old, &swapped), [""; 0]);
    let exchanged = devices(&[device("a", "example.com/x"), device("b", "k8s.io/x")]);
    assert_eq!(rules_told(&old, &exchanged), ["reserved-taint-key"]);
    let both = format!(r#"{old},"taints":[{{"device":"a",{TAINT}}}]"#);
    assert_eq!(rules_told(&old, &both), ["devices-and-taints", "draft-only-field"]);
    let both_before = format!(r#"{swapped},"taints":[{{"device":"a",{TAINT}}}]"#);
    assert_eq!(rules_told(&both_before, &both), [""; 0]);
}

#[test]
fn a_new_device_is_not_excused_by_the_stored_one_that_it_repeats() {
    let device = |name: &str| {
        let taints = r#"[{"key":"-wrong-","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}]"#;
        format!(r#"{{"name":"{name}","taints":{taints}}}"#)
    };
    let (one, two) = (device("a"), [device("a"), device("b")].join(","));
    let (one, two) = (format!(r#""devices":[{one}]"#), format!(r#""devices":[{two}]"#));
    assert_eq!(reported_rules("upstream", &one, &one), [""; 0]);
    assert_eq!(reported_rules("upstream", &one, &two), ["taint-key"]);
}
