//! Objects with far more tolerations, taints or parameters than policies check: how many are compared and explained,
//! whatever the object has. `benches/policies.rs` measures the time.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::sync::Arc;

use tollgate_api::profile::Profile;
use tollgate_document::doc;
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown, Operation};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::{FindingLevel, RuleSet};

use super::support::NOW;

fn engine(policies: &str) -> Engine {
    let file = PolicyFile { name: "p.yaml".to_owned(), text: policies.to_owned() };
    let set = PolicySet::load(&[file], &|path| Err(format!("no file {path}"))).expect("policies that load");
    let rules = RuleSet::parse("policy").expect("an origin");
    Engine::new(vec![Profile::named("kep-5055").expect("a profile")], rules).with_policies(Arc::new(set))
}

fn policy(kind: &str, name: usize, spec: &str) -> String {
    format!(
        "---\n{{apiVersion: tollgate.dev/v1alpha1, kind: {kind}Policy, metadata: {{name: p{name}}}, spec: {spec}}}\n"
    )
}

fn with_request<T>(
    object: &str,
    old: Option<&str>,
    ask: impl FnOnce(&Attributes<'_>, LabelsIfKnown<'_>) -> T,
) -> T {
    let object = doc::parse(object).expect("JSON");
    let old = old.map(|old| doc::parse(old).expect("JSON"));
    let attributes = Attributes {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        subresource: "",
        object: object.root(),
        old_object: old.as_ref().map(doc::Doc::root),
        namespace: "n",
        user: doc::Value::absent(),
        now: NOW.into(),
    };
    ask(&attributes, LabelsIfKnown::Unknown)
}

/// The findings, and their number including omitted ones.
fn check_object(policies: &str, object: &str, old: Option<&str>) -> (Vec<Diagnostic>, usize) {
    let engine = engine(policies);
    let findings =
        with_request(object, old, |request, labels| engine.validate(request, labels).findings().to_vec());
    let count = findings.iter().map(|diagnostic| diagnostic.finding.omitted_finding_count().max(1)).sum();
    (findings, count)
}

/// Number of findings that contain the text.
fn count_containing(findings: &[Diagnostic], text: &str) -> usize {
    findings.iter().filter(|diagnostic| diagnostic.finding.detail.contains(text)).count()
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn claim(devices: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"c","namespace":"n","uid":"u","resourceVersion":"1"}},"spec":{{"devices":{{{devices}}}}}}}"#
    )
}

fn tolerating(tolerations: &str) -> String {
    claim(&format!(
        r#""requests":[{{"name":"r","exactly":{{"deviceClassName":"g","tolerations":[{tolerations}]}}}}]"#
    ))
}

fn toleration(number: usize) -> String {
    format!(r#"{{"key":"gpu.example.com/k{number}x","operator":"Exists","effect":"NoSchedule"}}"#)
}

/// Entries that are near to each toleration.
fn near_entries(count: usize) -> String {
    list(count, |number| format!("{{key: gpu.example.com/k{number}}}"))
}

#[test]
fn a_policy_compares_and_explains_a_bounded_number_of_tolerations() {
    let allow = policy("Toleration", 0, &format!("{{allow: [{}]}}", near_entries(50)));
    let deny = policy("Toleration", 0, "{deny: [{key: 'gpu.example.com/*'}]}");
    for policies in [&allow, &deny] {
        for (count, compared) in [(50, 50), (4_096, 4_096), (5_000, 4_096)] {
            let (findings, total) = check_object(policies, &tolerating(&list(count, toleration)), None);
            let excess = usize::from(count > compared);
            assert_eq!(total, compared + excess, "{count}");
            let explained = if policies == &allow { "the closest entry" } else { "by deny[0] {key" };
            assert_eq!(count_containing(&findings, explained), count.min(100), "{count}");
            assert!(count_containing(&findings, "allowed instead") <= 100);
            let said = format!("has {count} tolerations, but policies check at most 4096 in one object");
            let last = findings.iter().any(|diagnostic| diagnostic.finding.omitted_finding_count() > 0);
            assert!(excess == 0 || last || count_containing(&findings, &said) == 1, "{count}: {said}");
        }
    }
    let everything = policy("Toleration", 0, "{allow: [{key: '*'}]}");
    let (findings, total) = check_object(&everything, &tolerating(&list(20_000, toleration)), None);
    assert_eq!(total, 1, "what is not compared is not allowed");
    assert_eq!(
        findings.first().expect("a finding").to_string(),
        "spec: has 20000 tolerations, but policies check at most 4096 in one object; see policy p0 at p.yaml:2"
    );
}

#[test]
fn each_action_denies_the_excess_by_itself() {
    let policies = [("Deny", 0), ("Warn", 1), ("Audit", 2)].map(|(action, name)| {
        policy("Toleration", name, &format!("{{action: {action}, allow: [{{key: '*'}}]}}"))
    });
    let (findings, _) = check_object(&policies.concat(), &tolerating(&list(5_000, toleration)), None);
    let mut levels: Vec<FindingLevel> = findings.iter().map(|diagnostic| diagnostic.level).collect();
    levels.sort_unstable();
    assert_eq!(levels, [FindingLevel::Audit, FindingLevel::Warn, FindingLevel::Deny]);
    let unconcerned = policy("Toleration", 0, "{defaults: [{key: a/b, operator: Exists}]}");
    let (findings, _) = check_object(&unconcerned, &tolerating(&list(5_000, toleration)), None);
    assert!(findings.is_empty(), "a policy that denies nothing checks nothing: {findings:?}");
}

#[test]
fn many_policies_that_deny_one_toleration_are_not_all_named() {
    let policies: String = (0..40).map(|name| policy("Toleration", name, "{deny: [{key: '*'}]}")).collect();
    let (findings, total) = check_object(&policies, &tolerating(&toleration(0)), None);
    assert_eq!((findings.len(), total), (16, 16));
}

#[test]
fn stored_violations_beyond_all_explanations_are_excused_and_new_ones_are_not() {
    let allow = policy("Toleration", 0, &format!("{{allow: [{}]}}", near_entries(50)));
    let stored = tolerating(&list(300, toleration));
    let labelled = stored.replace(r#""requests":["#, r#""constraints":[],"requests":["#);
    let (findings, _) = check_object(&allow, &labelled, Some(&stored));
    assert!(findings.is_empty(), "{findings:?}");
    let (findings, total) = check_object(&allow, &tolerating(&list(302, toleration)), Some(&stored));
    assert_eq!((findings.len(), total), (2, 2), "{findings:?}");
    assert_eq!(count_containing(&findings, "the closest entry"), 2);
    let much = tolerating(&list(5_000, toleration));
    let more = tolerating(&list(5_001, toleration));
    let (findings, _) = check_object(&allow, &more, Some(&much));
    assert_eq!(count_containing(&findings, "has 5001 tolerations"), 1, "a changed list is not excused");
}

fn slice(devices: usize, taints: &str) -> String {
    let devices = list(devices, |number| format!(r#"{{"name":"d{number}","taints":[{taints}]}}"#));
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"gpu.example.com","nodeName":"n","pool":{{"name":"p","generation":1,"resourceSliceCount":1}},"devices":[{devices}]}}}}"#
    )
}

fn taint(number: usize) -> String {
    format!(r#"{{"key":"gpu.example.com/k{number}","effect":"NoSchedule","data":{{"a":1}}}}"#)
}

#[test]
fn a_policy_compares_and_explains_a_bounded_number_of_taints() {
    let allow = policy("Taint", 0, "{allow: [{key: '${driver}/ok'}]}");
    let deny = policy("Taint", 0, "{deny: [{key: '${driver}/*'}]}");
    for (policies, explained) in [(&allow, "the closest entry"), (&deny, "by deny[0] {key")] {
        for (count, compared) in [(10, 640), (32, 2_048), (100, 2_048)] {
            let (findings, total) = check_object(policies, &slice(64, &list(count, taint)), None);
            assert_eq!(total, compared + usize::from(count * 64 > compared), "{count}");
            assert_eq!(count_containing(&findings, explained), 100, "{count}");
        }
    }
    let data = policy(
        "Taint",
        0,
        &format!("{{data: [{}]}}", list(500, |number| format!("{{key: '*', schema: {{const: {number}}}}}"))),
    );
    let (findings, total) = check_object(&data, &slice(1, &taint(0)), None);
    assert_eq!((findings.len(), total), (16, 16), "one taint, 500 schemas");
}

#[test]
fn a_key_that_no_server_accepts_is_not_compared() {
    let long = format!(r#"{{"key":"gpu.example.com/{}","effect":"NoSchedule"}}"#, "x".repeat(400));
    for spec in ["{allow: [{key: '*'}]}", "{deny: [{key: 'a/*'}]}"] {
        let (findings, _) = check_object(&policy("Taint", 0, spec), &slice(1, &long), None);
        assert_eq!(
            count_containing(&findings, "a key of 416 bytes is not allowed"),
            1,
            "{spec}: {findings:?}"
        );
    }
}

/// Patterns with `?` take a step for each of their bytes at each byte of a key.
#[test]
fn long_patterns_are_matched_with_a_bounded_number_of_keys() {
    let long = |number: usize| format!(r#"{{"key":"{}/k{number}","effect":"NoSchedule"}}"#, "a".repeat(250));
    let object = slice(32, &list(64, long));
    for (patterns, wildcard, denied) in [(40, "?", true), (2, "?", false), (40, "", false)] {
        let deny = list(patterns, |number| format!("{{key: '*{wildcard}z{}{number}*'}}", "a".repeat(250)));
        let (findings, _) = check_object(&policy("Taint", 0, &format!("{{deny: [{deny}]}}")), &object, None);
        assert_eq!(
            count_containing(&findings, "has 2048 taints, but policies check at most"),
            usize::from(denied)
        );
        assert_eq!(findings.len(), usize::from(denied), "{findings:?}");
    }
}

fn config(number: usize) -> String {
    format!(
        r#"{{"opaque":{{"driver":"gpu.example.com","parameters":{{"apiVersion":"a/v1","kind":"K{number}"}}}}}}"#
    )
}

#[test]
fn a_policy_checks_and_explains_a_bounded_number_of_parameters() {
    let schemas = list(500, |number| format!("{{apiVersion: b/v1, kind: K{number}}}"));
    let strict = policy("Parameter", 0, &format!("{{schemas: [{schemas}], unknown: Deny}}"));
    for (count, compared) in [(32, 32), (256, 256), (1_000, 256)] {
        let object = claim(&format!(r#""config":[{}]"#, list(count, config)));
        let (findings, total) = check_object(&strict, &object, None);
        assert_eq!(total, compared + usize::from(count > compared), "{count}");
        assert!(count_containing(&findings, "supported types") <= 100, "{count}");
    }
    let lenient = policy("Parameter", 0, &format!("{{schemas: [{schemas}]}}"));
    let object = claim(&format!(r#""config":[{}]"#, list(1_000, config)));
    let (findings, _) = check_object(&lenient, &object, None);
    assert_eq!(count_containing(&findings, "has 1000 configurations, but policies check at most 256"), 1);
}

#[test]
fn defaults_are_added_where_a_server_would_accept_them() {
    let entries = list(500, |number| format!("{{key: a/k{number}, operator: Exists}}"));
    let engine = engine(&policy("Toleration", 0, &format!("{{defaults: [{entries}]}}")));
    let added = |object: &str| {
        with_request(object, None, |request, labels| engine.mutate(request, labels).edits.len())
    };
    let request = |number: usize| {
        let tolerations = list(14, toleration);
        format!(
            r#"{{"name":"r{number}","exactly":{{"deviceClassName":"g","allocationMode":"All","tolerations":[{tolerations}]}}}}"#
        )
    };
    assert_eq!(added(&claim(&format!(r#""requests":[{}]"#, list(32, request)))), 32 * 2);
    assert_eq!(added(&claim(&format!(r#""requests":[{}]"#, list(257, request)))), 0, "no server accepts it");
}
