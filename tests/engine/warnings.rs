//! Warnings of the webhook: kubectl shows 120 characters well, so every text of a lint or policy fits, or has a short
//! form that does.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "makes requests independently of the code under test"
)]

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_api::profile;
use tollgate_document::source::documents;
use tollgate_engine::engine::{Endpoint, Engine, LabelsIfKnown, admit};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::{RuleOrigin, RuleSet};

use super::support::NOW;

/// The warnings about an object, created or updated.
fn warnings(engine: &Engine, old: &Value, object: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": group, "version": version, "kind": object["kind"]},
        "namespace": object["metadata"]["namespace"], "operation": operation, "object": object, "oldObject": old}});
    let answer =
        admit(engine, review.to_string().as_bytes(), Endpoint::Validate, NOW, &LabelsIfKnown::Unknown);
    let answer: Value = serde_json::from_slice(&answer.expect("an answer")).expect("JSON");
    answer["response"]["warnings"].as_array().into_iter().flatten().map(text).collect()
}

/// The objects in the fixtures of all rules.
fn objects() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut objects = Vec::new();
    for rule in std::fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("an entry").path()) {
        for file in std::fs::read_dir(rule).into_iter().flatten().map(|entry| entry.expect("an entry").path())
        {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            for document in documents(&text).flatten() {
                let object: Value = serde_json::from_str(&document.doc.root().to_json()).expect("JSON");
                objects.extend(object.get("kind").map(|_| object.clone()));
            }
        }
    }
    objects
}

fn assert_fits(warning: &str) {
    assert!(warning.chars().count() <= 120, "too long: {warning}");
    assert!(!warning.contains("... [") && !warning.contains("...,"), "cut: {warning}");
}

#[test]
fn lints_fit() {
    let objects = objects();
    let mut seen = 0;
    for profile in profile::ALL {
        let engine = Engine::new(vec![profile], RuleSet::compile(|rule| rule.origin == RuleOrigin::Lint));
        for object in &objects {
            for warning in warnings(&engine, &Value::Null, object) {
                assert_fits(&warning);
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "{seen} warnings");
}

const POLICIES: &str = r#"
{apiVersion: tollgate.dev/v1alpha1, kind: TolerationPolicy, metadata: {name: research}, spec: {action: Warn,
  allow: [{key: gpu.example.com/degraded, values: [thermal], effects: [NoSchedule], reason: training can run slower}],
  deny: [{key: gpu.example.com/lost, reason: results would be wrong}], contact: gpu-team@example.com}}
---
{apiVersion: tollgate.dev/v1alpha1, kind: TaintPolicy, metadata: {name: own-domain}, spec: {action: Warn,
  allow: [{key: "${driver}/*", effects: [NoSchedule]}], maxEvictionsPerSecond: 5}}
---
{apiVersion: tollgate.dev/v1alpha1, kind: TaintRulePolicy, metadata: {name: safe-eviction}, spec: {action: Warn,
  requireSelector: [driver, pool, any], twoSteps: true, maxImpact: {pods: 1}, maxTainted: {devices: 5%},
  requireAnnotations: [tollgate.dev/owner], onUnknown: Warn}}
"#;

/// Policies that will deny later state the time, in each warning or in a separate one.
#[test]
fn later_denials_are_announced() {
    let text = POLICIES.replace("action: Warn", "enforceFrom: 2026-12-01T00:00:00Z");
    let all = policy_warnings(&text);
    let time = "will be denied from 2026-12-01T00:00:00Z";
    for warning in &all {
        assert_fits(warning);
    }
    for text in [
        "`driver` is required (policy safe-eviction), will be denied from 2026-12-01T00:00:00Z",
        "toleration of all keys is not allowed (policy research), will be denied from 2026-12-01T00:00:00Z",
        "will be denied from 2026-12-01T00:00:00Z: violations of policies/production/warn.yaml:",
        "wait for the status of the rule before you set a stronger effect (policy safe-eviction), admitted for now",
    ] {
        assert!(all.iter().any(|warning| warning.contains(text)), "{text}\n{all:#?}");
    }
    assert!(all.iter().filter(|warning| warning.contains(time)).count() > 8, "{all:#?}");
}

#[test]
fn policies_have_a_short_form() {
    let all = policy_warnings(POLICIES);
    for warning in &all {
        assert_fits(warning);
        // Every one of these objects is admitted.
        assert!(!warning.contains("denied"), "{warning}");
    }
    let has = |text: &str| all.iter().any(|warning| warning.contains(text));
    for text in [
        "`driver` is required (policy safe-eviction), admitted for now",
        "create the rule with `effect: None` first (policy safe-eviction), admitted for now",
        "cannot check this rule: the cluster state is not available (policy safe-eviction), admitted for now",
        "wait for the status of the rule before you set a stronger effect",
        "set `effect: None` before you change the selector",
        "toleration of gpu.example.com/degraded is not allowed (policy research), admitted for now",
        "toleration of gpu.example.com/lost is not allowed (policy research), admitted for now",
        "toleration of all keys is not allowed (policy research), admitted for now",
        "taint other.example.com/drain:NoExecute is not allowed (policy own-domain), admitted for now",
        "policy research: results would be wrong; contact: gpu-team@example.com",
        "policy research: contact: gpu-team@example.com",
        "annotations[tollgate.dev/owner]: this annotation is required (policy safe-eviction), admitted for now",
    ] {
        assert!(has(text), "{text}\n{all:#?}");
    }
}

/// The warnings of these policies about rules and claims that violate them.
fn policy_warnings(policies: &str) -> Vec<String> {
    let file = PolicyFile { name: "policies/production/warn.yaml".to_owned(), text: policies.to_owned() };
    let set = PolicySet::load(&[file], &|path| Err(format!("no file {path}"))).expect("policies that load");
    let rules = RuleSet::compile(|rule| rule.origin == RuleOrigin::Policy);
    let engine = Engine::new(vec![profile::DEFAULT], rules).with_policies(Arc::new(set));
    let rule = |selector: Value, effect: &str| {
        json!({"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule",
            "metadata": {"name": "drain", "generation": 3},
            "spec": {"deviceSelector": selector, "taint": {"key": "other.example.com/drain", "effect": effect}}})
    };
    let mut all = warnings(&engine, &Value::Null, &rule(json!({}), "NoExecute"));
    let stored = rule(json!({"driver": "d.example.com", "pool": "p"}), "None");
    let raised = rule(json!({"driver": "d.example.com", "pool": "p"}), "NoExecute");
    all.extend(warnings(&engine, &stored, &raised));
    let scheduled = rule(json!({"driver": "d.example.com", "pool": "p"}), "NoSchedule");
    let executed = rule(json!({"driver": "d.example.com", "pool": "p"}), "NoExecute");
    let wider = rule(json!({"driver": "e.example.com", "pool": "p"}), "NoExecute");
    all.extend(warnings(&engine, &scheduled, &executed));
    all.extend(warnings(&engine, &executed, &wider));
    let toleration = |key: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "ml-training"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu",
                "tolerations": [{"key": key, "operator": "Exists", "effect": "NoExecute"}]}}]}}})
    };
    for key in ["gpu.example.com/degraded", "gpu.example.com/lost", ""] {
        all.extend(warnings(&engine, &Value::Null, &toleration(key)));
    }
    all
}
