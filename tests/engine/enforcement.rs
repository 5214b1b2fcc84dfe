//! `enforceFrom`: a policy warns until then, says so, and denies afterwards.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use std::sync::Arc;

use tollgate_api::profile;
use tollgate_document::doc;
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::{FindingLevel, RuleSet};

const BEFORE: &str = "2026-11-30T23:59:59Z";
const FROM: &str = "2026-12-01T00:00:00Z";

fn policy(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\n{{apiVersion: tollgate.dev/v1alpha1, kind: {kind}, metadata: {{name: {name}}}, spec: {{{spec}}}}}\n"
    )
}

fn load(text: String) -> Result<PolicySet, Vec<String>> {
    let file = PolicyFile { name: "p.yaml".to_owned(), text };
    PolicySet::load(&[file], &|path| Err(format!("no file {path}")))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn engine(policies: &[String]) -> Engine {
    let set = load(policies.concat()).expect("policies that load");
    let rules = RuleSet::parse("policy").expect("an origin");
    Engine::new(vec![profile::DEFAULT], rules).with_policies(Arc::new(set))
}

/// The level of each finding at a time, and the time from which it denies.
fn levels_at(engine: &Engine, object: &str, now: &str) -> Vec<(FindingLevel, Option<String>)> {
    let said = |one: &Diagnostic| {
        let from = one.finding.denied_from.as_deref().map(str::to_owned);
        let text = from.as_ref().map(|from| format!("; will be denied from {from}"));
        assert_eq!(text.is_some(), one.to_string().contains("will be denied"), "{one}");
        assert!(text.is_none_or(|text| one.finding.detail.contains(&text)), "{one}");
        (one.level, from)
    };
    let object = doc::parse(object).expect("JSON");
    let verdict = engine.validate(&Attributes::for_create(object.root(), "", now), LabelsIfKnown::Unknown);
    verdict.findings().iter().map(said).collect()
}

fn claim(key: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"c","namespace":"ml"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu","tolerations":[{{"key":"{key}","operator":"Exists","effect":"NoSchedule"}}]}}}}]}}}}}}"#
    )
}

const RULE: &str = r#"{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"r"},"spec":{"deviceSelector":{},"taint":{"key":"a.example/x","effect":"NoExecute"}}}"#;

/// Asserts that findings are warnings before the time and denials from then on.
fn assert_changes(engine: &Engine, object: &str) {
    assert_eq!(levels_at(engine, object, BEFORE), [(FindingLevel::Warn, Some(FROM.to_owned()))]);
    assert_eq!(levels_at(engine, object, FROM), [(FindingLevel::Deny, None)]);
    // Without a clock, a policy is in force.
    assert_eq!(levels_at(engine, object, "now"), [(FindingLevel::Deny, None)]);
}

#[test]
fn every_kind_warns_first_and_denies_later() {
    let from = format!("enforceFrom: {FROM}");
    for (kind, spec, object) in [
        ("TolerationPolicy", "allow: []", claim("a.example/x")),
        ("TolerationPolicy", "deny: [{key: \"*\"}]", claim("a.example/x")),
        ("TolerationPolicy", "validations: [{expression: \"false\"}]", claim("a.example/x")),
        ("TaintPolicy", "allow: []", RULE.to_owned()),
        ("TaintPolicy", "deny: [{key: \"*\"}]", RULE.to_owned()),
        ("TaintRulePolicy", "requireSelector: [driver]", RULE.to_owned()),
        ("TaintRulePolicy", "maxTainted: {devices: 1}", RULE.to_owned()),
        ("TaintRulePolicy", "requireAnnotations: [tollgate.dev/owner]", RULE.to_owned()),
        ("ParameterPolicy", "validations: [{expression: \"false\"}]", claim("a.example/x")),
    ] {
        assert_changes(&engine(&[policy(kind, "p", &format!("{spec}, {from}"))]), &object);
        // The offset of a time does not matter, only the time.
        let elsewhere = "enforceFrom: 2026-12-01T09:30:00+09:30";
        assert_changes(&engine(&[policy(kind, "p", &format!("{spec}, {elsewhere}"))]), &object);
        for (action, level) in [("Warn", FindingLevel::Warn), ("Audit", FindingLevel::Audit)] {
            let other = engine(&[policy(kind, "p", &format!("{spec}, {from}, action: {action}"))]);
            for now in [BEFORE, FROM] {
                assert_eq!(levels_at(&other, &object, now), [(level, None)], "{action}");
            }
        }
    }
}

#[test]
fn a_lower_level_of_one_field_is_never_announced_as_a_denial() {
    let spec = format!("maxImpact: {{pods: 1}}, onUnknown: Warn, enforceFrom: {FROM}");
    let engine = engine(&[policy("TaintRulePolicy", "p", &spec)]);
    for now in [BEFORE, FROM] {
        assert_eq!(levels_at(&engine, RULE, now), [(FindingLevel::Warn, None)]);
    }
}

#[test]
fn what_a_later_policy_allows_counts_from_the_start() {
    let now = policy("TolerationPolicy", "now", "allow: [{key: a.example/now}]");
    let later = policy(
        "TolerationPolicy",
        "later",
        &format!("allow: [{{key: a.example/later}}], enforceFrom: {FROM}"),
    );
    let deny =
        policy("TolerationPolicy", "deny", &format!("deny: [{{key: a.example/now}}], enforceFrom: {FROM}"));
    let both = engine(&[now.clone(), later.clone()]);
    for (key, expected) in
        [("a.example/now", None), ("a.example/later", None), ("a.example/x", Some(FindingLevel::Deny))]
    {
        for time in [BEFORE, FROM] {
            let levels: Vec<FindingLevel> =
                levels_at(&both, &claim(key), time).into_iter().map(|(level, _)| level).collect();
            assert_eq!(levels, Vec::from_iter(expected), "{key} at {time}");
        }
    }
    // Alone, it restricts nothing before its time, but announces that it will.
    assert_changes(&engine(&[later]), &claim("a.example/now"));
    assert_changes(&engine(&[now, deny]), &claim("a.example/now"));
}

#[test]
fn of_two_times_the_first_counts() {
    let policies = [
        policy("TolerationPolicy", "b", "allow: [{key: a.example/b}], enforceFrom: 2027-01-01T00:00:00Z"),
        policy("TolerationPolicy", "a", &format!("allow: [{{key: a.example/a}}], enforceFrom: {FROM}")),
    ];
    assert_changes(&engine(&policies), &claim("a.example/x"));
    let policies = [
        policy("TaintPolicy", "b", "allow: [{key: a.example/b}], enforceFrom: 2027-01-01T00:00:00Z"),
        policy("TaintPolicy", "a", &format!("allow: [{{key: a.example/a}}], enforceFrom: {FROM}")),
    ];
    assert_changes(&engine(&policies), RULE);
}

#[test]
fn wrong_values_are_refused_with_their_place() {
    let table = [
        ("TolerationPolicy", "enforceFrom: tomorrow", "p.yaml:2:"),
        ("TolerationPolicy", "enforceFrom: 2026-12-01", "is not a time in RFC 3339"),
        ("TaintRulePolicy", "maxTainted: {}", "spec.maxTainted.devices: this field is required"),
        ("TaintRulePolicy", "maxTainted: {devices: 5.5}", "5.5 is not an integer"),
        ("TaintRulePolicy", "maxTainted: {devices: -1}", "-1 is too small; the minimum is 0"),
        ("TaintRulePolicy", "maxTainted: {devices: 0%}", "\"0%\" is not a percentage from `1%` to `100%`"),
        ("TaintRulePolicy", "maxTainted: {devices: 101%}", "\"101%\" is not a percentage"),
        ("TaintRulePolicy", "maxTainted: {devices: 05%}", "\"05%\" is not a percentage"),
        ("TaintRulePolicy", "maxTainted: {devices: +5%}", "\"+5%\" is not a percentage"),
        ("TaintRulePolicy", "maxTainted: {devices: \"5\"}", "\"5\" is not a percentage"),
        (
            "TaintRulePolicy",
            "maxTainted: {devices: [5]}",
            "expected an integer or a percentage, found a list",
        ),
        ("TaintRulePolicy", "maxTainted: {device: 5}", "unknown field; did you mean `devices`?"),
        ("TaintRulePolicy", "requireAnnotations: []", "must not be empty"),
        ("TaintRulePolicy", "requireAnnotations: [owner]", "\"owner\" is not supported"),
        ("TaintRulePolicy", "maxAgeSeconds: 0", "0 is too small; the minimum is 1"),
        ("TaintRulePolicy", "maxAgeSeconds: 3d", "expected an integer, found a string"),
        ("TaintPolicy", "maxTainted: {devices: 5}", "unknown field"),
    ];
    for (kind, spec, expected) in table {
        let errors = load(policy(kind, "p", spec)).expect_err(spec);
        assert!(errors.iter().any(|error| error.contains(expected)), "{spec}: {errors:?}");
    }
    for spec in ["maxTainted: {devices: 0}", "maxTainted: {devices: 1%}", "maxTainted: {devices: 100%}"] {
        load(policy("TaintRulePolicy", "p", spec)).expect(spec);
    }
}

#[test]
fn times_are_listed_in_their_order() {
    let text = [
        policy(
            "TolerationPolicy",
            "a",
            "allow: [{key: a/b, expires: 2027-02-01T00:00:00Z}, {key: a/c}, {key: a/d, expires: 2027-01-01T00:00:00Z, reason: because}]",
        ),
        policy(
            "TaintPolicy",
            "b",
            &format!("allow: [{{key: a/b, expires: 2027-01-01T00:00:00Z}}], enforceFrom: {FROM}"),
        ),
        policy("TaintPolicy", "c", &format!("action: Warn, enforceFrom: {FROM}")),
    ];
    let set = load(text.concat()).expect("policies that load");
    let entries = set.toleration_allow_entries_by_expiry();
    let names: Vec<(&str, &str, Option<&str>)> =
        entries.iter().map(|entry| (entry.policy, entry.entry, entry.reason)).collect();
    assert_eq!(names, [("a", "allow[2]", Some("because")), ("a", "allow[0]", None)]);
    let later: Vec<&str> = set.deny_policies_with_enforce_from().map(|later| later.policy).collect();
    assert_eq!(later, ["b"]);
}
