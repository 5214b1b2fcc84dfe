//! Who is let through unjudged: updates that change nothing, and nobody else.
//!
//! Being deleted is no excuse.
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

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::engine::{Engine, Labels, Side, Surroundings, admit};
use tollgate::policy::{PolicySet, Text};
use tollgate::profile;
use tollgate::rules::{Origin, RuleSet};

const NOW: &str = "2026-01-02T03:04:05Z";

fn engine(policies: &str) -> Engine {
    let engine = Engine::new(vec![profile::DEFAULT], RuleSet::compile(|rule| rule.origin != Origin::Strict));
    if policies.is_empty() {
        return engine;
    }
    let text = Text { name: "p.yaml".to_owned(), text: policies.to_owned() };
    let set = PolicySet::load(&[text], &|path| Err(format!("no file {path}"))).expect("policies that load");
    engine.with_policies(Arc::new(set))
}

const RESERVED: &str = "{apiVersion: tollgate.dev/v1alpha1, kind: TaintPolicy, metadata: {name: reserved}, \
                        spec: {deny: [{key: k8s.io/*}]}}";

fn request(group: &str, version: &str, kind: &str, old: &Value, new: &Value) -> Value {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": group, "version": version, "kind": kind},
        "operation": operation, "object": new, "oldObject": old}})
}

fn ask(engine: &Engine, review: &Value, side: Side) -> Value {
    let labels = |_: &str| Labels::Unknown;
    let answer = admit(engine, review.to_string().as_bytes(), side, Surroundings::of(NOW, &labels));
    serde_json::from_slice::<Value>(&answer.expect("a review")).expect("JSON")["response"].clone()
}

fn allowed(engine: &Engine, review: &Value) -> bool {
    ask(engine, review, Side::Validate)["allowed"].as_bool().expect("a verdict")
}

fn of_kind(version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("resource.k8s.io/{version}"), "kind": kind,
        "metadata": {"name": "a", "resourceVersion": "1", "uid": "1"}, "spec": spec})
}

fn rule(version: &str, selector: &Value, key: &str, effect: &str) -> Value {
    let taint = json!({"key": key, "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"});
    of_kind(version, "DeviceTaintRule", &json!({"deviceSelector": selector, "taint": taint}))
}

fn slice(taints: &Value) -> Value {
    of_kind(
        "v1",
        "ResourceSlice",
        &json!({"driver": "gpu.example.com", "nodeName": "n", "devices": [{"name": "a", "taints": taints}],
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}),
    )
}

fn being_deleted(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    object["metadata"]["finalizers"] = json!(["example.com/keep"]);
    object
}

#[test]
fn an_object_that_is_being_deleted_cannot_be_changed_at_will() {
    let engine = engine(RESERVED);
    let harmless = rule("v1", &json!({"driver": "gpu.example.com", "pool": "p"}), "example.com/a", "None");
    let deadly = rule("v1", &json!({}), "k8s.io/a", "NoExecute");
    let clean = slice(&json!([]));
    let tainted = slice(&json!([{"key": "k8s.io/a", "effect": "NoExecute", "timeAdded": NOW}]));
    for (old, new) in [(harmless, deadly), (clean, tainted)] {
        let kind = new["kind"].as_str().expect("a kind");
        for (old, new) in [
            (old.clone(), new.clone()),
            (being_deleted(old.clone()), being_deleted(new.clone())),
            (being_deleted(old.clone()), new.clone()),
            (old.clone(), being_deleted(new.clone())),
        ] {
            let review = request("resource.k8s.io", "v1", kind, &old, &new);
            assert!(!allowed(&engine, &review), "{review}");
            let without_old = request("resource.k8s.io", "v1", kind, &Value::Null, &new);
            assert!(!allowed(&engine, &without_old), "{without_old}");
        }
    }
}

#[test]
fn a_stored_object_that_is_wrong_loses_labels_and_finalizers() {
    let engine = engine(RESERVED);
    let wrong = |version: &str| rule(version, &json!({}), "k8s.io/a", "X");
    let claim = json!({"devices": {"requests": [{"name": "-", "exactly": {"deviceClassName": "-"}}]}});
    let flat = json!({"devices": {"requests": [{"name": "-", "deviceClassName": "-"}]}});
    let objects = [
        ("v1alpha3", wrong("v1alpha3")),
        ("v1beta2", wrong("v1beta2")),
        ("v1", wrong("v1")),
        ("v1", slice(&json!([{"key": "k8s.io/a", "effect": "X", "timeAdded": NOW}]))),
        ("v1", of_kind("v1", "ResourceClaim", &claim)),
        ("v1beta1", of_kind("v1beta1", "ResourceClaim", &flat)),
        ("v1", of_kind("v1", "ResourceClaimTemplate", &json!({"spec": claim}))),
        ("v1", of_kind("v1", "DeviceClass", &json!({"selectors": [{"cel": {"expression": "-"}}]}))),
    ];
    for (version, stored) in objects {
        let kind = stored["kind"].as_str().expect("a kind");
        let old = being_deleted(stored.clone());
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!([]);
        new["metadata"]["labels"] = json!({"a": "b"});
        assert!(allowed(&engine, &request("resource.k8s.io", version, kind, &old, &new)), "{kind} {version}");
        new["spec"] =
            json!({"-": 1, "devices": {}, "taint": {"key": "k8s.io/b", "effect": "X"}, "selectors": [{}]});
        assert!(
            !allowed(&engine, &request("resource.k8s.io", version, kind, &old, &new)),
            "{kind} {version}"
        );
    }
    // A kind without a spec: all of it beside the metadata.
    let class = json!({"apiVersion": "cdi.k8s.io/v1alpha1", "kind": "ResourceClass",
        "metadata": {"name": "a"}, "driverName": "-"});
    let old = being_deleted(class);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    assert!(allowed(&engine, &request("cdi.k8s.io", "v1alpha1", "ResourceClass", &old, &new)));
    new["driverName"] = json!("-b-");
    assert!(!allowed(&engine, &request("cdi.k8s.io", "v1alpha1", "ResourceClass", &old, &new)));
}
