//! Tests which updates are admitted without validation: those that change nothing, and no others.
//!
//! An object that is being deleted is still checked, and so is a request whose kind differs from that of its object.
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
use tollgate_api::profile;
use tollgate_document::doc;
use tollgate_engine::engine::{Endpoint, Engine, LabelsIfKnown, LoadedNamespaces, admit};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::{RuleOrigin, RuleSet};

const NOW: &str = "2026-01-02T03:04:05Z";

fn engine(policies: &str) -> Engine {
    let engine =
        Engine::new(vec![profile::DEFAULT], RuleSet::compile(|rule| rule.origin != RuleOrigin::Strict));
    if policies.is_empty() {
        return engine;
    }
    let text = PolicyFile { name: "p.yaml".to_owned(), text: policies.to_owned() };
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

fn webhook_response(engine: &Engine, review: &Value, endpoint: Endpoint) -> Value {
    let answer = admit(engine, review.to_string().as_bytes(), endpoint, NOW, &LabelsIfKnown::Unknown);
    serde_json::from_slice::<Value>(&answer.expect("a review")).expect("JSON")["response"].clone()
}

fn allowed(engine: &Engine, review: &Value) -> bool {
    webhook_response(engine, review, Endpoint::Validate)["allowed"].as_bool().expect("a verdict")
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

#[test]
fn a_request_whose_kind_and_object_disagree_is_refused() {
    let engine = engine("");
    let good = |version: &str| {
        rule(version, &json!({"driver": "gpu.example.com", "pool": "p"}), "example.com/a", "None")
    };
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
    let group = "resource.k8s.io";
    let ours = "DeviceTaintRule";
    assert!(allowed(&engine, &request(group, "v1", ours, &Value::Null, &good("v1"))));
    assert!(allowed(&engine, &request(group, "v1", ours, &good("v1"), &good("v1"))));
    let null = Value::Null;
    for (group, version, kind, old, new) in [
        // Another object than the one that is spoken of, ours or not.
        (group, "v1", ours, &null, &pod),
        (group, "v1", ours, &null, &service),
        (group, "v1", ours, &null, &slice(&json!([]))),
        (group, "v1", "ResourceSlice", &null, &good("v1")),
        // A kind that is not ours, or that we do not know yet, in front of one of ours.
        ("", "v1", "Pod", &null, &good("v1")),
        ("apps", "v1", ours, &null, &good("v1")),
        (group, "v2", ours, &null, &good("v1")),
        ("", "", ours, &null, &good("v1")),
        // Another version, of either object.
        (group, "v1", ours, &null, &good("v1beta2")),
        (group, "v1", ours, &good("v1beta2"), &good("v1")),
        (group, "v1beta2", ours, &good("v1beta2"), &good("v1")),
        (group, "v1", ours, &pod, &good("v1")),
    ] {
        let review = request(group, version, kind, old, new);
        let answer = webhook_response(&engine, &review, Endpoint::Validate);
        assert_eq!(answer["allowed"], json!(false), "{review}");
        let message = answer["status"]["message"].as_str().expect("a message");
        let about = format!("must match request.kind, which is \"{kind}\" in ");
        assert!(message.contains(&about), "{message}");
        assert_eq!(answer["status"]["code"], json!(422));
        let filled = webhook_response(&engine, &review, Endpoint::Mutate);
        assert_eq!(filled, json!({"uid": "u", "allowed": true}), "the mutating endpoint never refuses");
    }
    // What is not ours on both sides is not ours to judge, and a review that names no kind is judged by its object.
    assert!(allowed(&engine, &request("apps", "v1", "Scale", &null, &service)));
    assert!(allowed(&engine, &request("", "", "", &null, &good("v1"))));
}

#[test]
fn no_choice_of_rules_lets_a_request_disagree_with_itself() {
    let engine = Engine::new(vec![profile::DEFAULT], RuleSet::compile(|_| false));
    let other = slice(&json!([]));
    let review = request("resource.k8s.io", "v1", "DeviceTaintRule", &Value::Null, &other);
    assert!(!allowed(&engine, &review));
}

/// The namespace in the object's metadata does not determine which policy applies.
#[test]
fn the_namespace_of_the_request_counts() {
    let policy = "{apiVersion: tollgate.dev/v1alpha1, kind: TolerationPolicy, metadata: {name: strict}, \
                  spec: {match: {namespaceSelector: {matchLabels: {strict: 'yes'}}}, allow: []}}";
    let engine = engine(policy);
    let strict = doc::parse(r#"{"metadata":{"name":"strict","labels":{"strict":"yes"}}}"#).expect("JSON");
    let mut namespaces = LoadedNamespaces::new(true);
    namespaces.add(strict.root());
    let judged = |requested: &str, own: &str| {
        let tolerations = json!([{"key": "example.com/a", "operator": "Exists", "effect": "NoSchedule"}]);
        let exactly = json!({"deviceClassName": "gpu", "tolerations": tolerations});
        let mut claim = of_kind(
            "v1",
            "ResourceClaim",
            &json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}}),
        );
        claim["metadata"]["namespace"] = json!(own);
        let mut review = request("resource.k8s.io", "v1", "ResourceClaim", &Value::Null, &claim);
        review["request"]["namespace"] = json!(requested);
        let answer = admit(&engine, review.to_string().as_bytes(), Endpoint::Validate, NOW, &namespaces)
            .expect("a review");
        String::from_utf8(answer).expect("UTF-8").contains("allows no tolerations in this namespace")
    };
    assert!(judged("strict", "strict"));
    assert!(judged("strict", ""), "the server has not filled it in yet");
    assert!(judged("strict", "free"), "what the owner writes does not count");
    assert!(judged("", "strict"), "a review without a namespace is judged by the object's, labels included");
    assert!(!judged("free", "strict"));
}

/// The API server passes opaque parameters on as they were sent. Bytes that are not UTF-8 must not be a way around a
/// policy: a webhook that answers 400 is ignored where it fails open.
#[test]
fn parameters_that_are_not_utf_8_are_judged_as_go_reads_them() {
    let engine = engine(
        "apiVersion: tollgate.dev/v1alpha1\nkind: ParameterPolicy\nmetadata: {name: p}\nspec:\n  schemas:\n  \
         - {apiVersion: a/v1, kind: B, schema: {properties: {sharing: {enum: [none]}}}}\n",
    );
    for (sharing, expected) in [("none", true), ("MPS", false)] {
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a", "namespace": "n"},
            "spec": {"devices": {
                "requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}],
                "config": [{"opaque": {"driver": "d.example.com", "parameters":
                    {"apiVersion": "a/v1", "kind": "B", "sharing": sharing, "x": "BYTE"}}}],
            }},
        });
        let review = request("resource.k8s.io", "v1", "ResourceClaim", &Value::Null, &claim).to_string();
        let (before, after) = review.split_once("BYTE").expect("a place");
        let review = [before.as_bytes(), b"\xff", after.as_bytes()].concat();
        let answer =
            admit(&engine, &review, Endpoint::Validate, NOW, &LabelsIfKnown::Unknown).expect("an answer");
        let answer = String::from_utf8(answer).expect("UTF-8");
        assert_eq!(answer.contains(r#""allowed":true"#), expected, "{answer}");
    }
}
