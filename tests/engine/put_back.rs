//! The same manifest applied again: tolerations that a policy added to a stored claim are put back, and nothing else
//! is.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "applies patches independently of the code under test"
)]

use std::sync::Arc;

use base64::Engine as _;
use serde_json::{Value, json};
use tollgate_api::profile::Profile;
use tollgate_engine::engine::{Endpoint, Engine, LabelsIfKnown, admit};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::{RuleOrigin, RuleSet};

const POLICY: &str = "{apiVersion: tollgate.dev/v1alpha1, kind: TolerationPolicy, metadata: {name: p}, \
                      spec: {defaults: [{key: a/b, operator: Exists, effect: NoSchedule}]}}";

fn engine(profile: &str, policy: &str) -> Engine {
    let rules = RuleSet::compile(|rule| rule.origin != RuleOrigin::Strict);
    let engine = Engine::new(vec![Profile::named(profile).expect("a profile")], rules);
    if policy.is_empty() {
        return engine;
    }
    let text = PolicyFile { name: "p.yaml".to_owned(), text: policy.to_owned() };
    let set = PolicySet::load(&[text], &|path| Err(format!("no file {path}"))).expect("a policy that loads");
    engine.with_policies(Arc::new(set))
}

/// The webhook's response, with the patch decoded.
fn webhook_response(engine: &Engine, endpoint: Endpoint, old: &Value, new: &Value) -> Value {
    let (group, version) = new["apiVersion"].as_str().expect("text").split_once('/').expect("a group");
    let kind = json!({"group": group, "version": version, "kind": new["kind"]});
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    let request = json!({"uid": "u", "kind": kind, "operation": operation, "namespace": "n",
        "object": new, "oldObject": old});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let answer = admit(
        engine,
        review.to_string().as_bytes(),
        endpoint,
        "2026-01-02T03:04:05Z",
        &LabelsIfKnown::Unknown,
    )
    .expect("a review");
    let mut answer = serde_json::from_slice::<Value>(&answer).expect("JSON")["response"].clone();
    if let Some(patch) = answer.get_mut("patch") {
        let text = base64::engine::general_purpose::STANDARD.decode(patch.as_str().expect("text"));
        *patch = serde_json::from_slice(&text.expect("base64")).expect("a patch is JSON");
    }
    answer
}

/// Applies a JSON Patch; supports only the operations that Tollgate uses.
fn apply_patch(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    for operation in patch.as_array().into_iter().flatten() {
        let (parent, name) = operation["path"].as_str().expect("a path").rsplit_once('/').expect("a pointer");
        let value = operation["value"].clone();
        match (object.pointer_mut(parent).expect("the parent is there"), operation["op"].as_str()) {
            (Value::Array(items), Some("add")) => items.insert(name.parse().expect("an index"), value),
            (Value::Object(members), Some("add")) => {
                assert!(members.insert(name.to_owned(), value).is_none())
            }
            (Value::Object(members), Some("replace")) => {
                assert!(members.insert(name.to_owned(), value).is_some())
            }
            other => panic!("{other:?}"),
        }
    }
    object
}

/// A claim or a template with these requests, complete as the server stores it.
fn object(version: &str, kind: &str, requests: &Value) -> Value {
    let claim = json!({"devices": {"requests": requests}});
    let spec = if kind == "ResourceClaim" { claim } else { json!({"spec": claim}) };
    json!({"apiVersion": format!("resource.k8s.io/{version}"), "kind": kind,
        "metadata": {"name": "c", "namespace": "n", "resourceVersion": "1", "uid": "1"}, "spec": spec})
}

fn body(tolerations: &Value) -> Value {
    let mut body = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1});
    if !tolerations.is_null() {
        body["tolerations"] = tolerations.clone();
    }
    body
}

/// Requests in the shape of a version: one exact, and one of two alternatives.
fn requests(version: &str, first: &Value, second: &Value) -> Value {
    let named = |name: &str, mut body: Value| {
        body["name"] = json!(name);
        body
    };
    let one = match version {
        "v1alpha3" | "v1beta1" => named("one", body(first)),
        _ => json!({"name": "one", "exactly": body(first)}),
    };
    let alternatives = [named("a", body(&Value::Null)), named("b", body(second))];
    json!([one, {"name": "two", "firstAvailable": alternatives}])
}

#[test]
fn the_second_apply_of_the_same_file_changes_nothing() {
    let own = json!([{"key": "x/y", "operator": "Equal", "value": "z", "effect": "NoExecute", "tolerationSeconds": 0}]);
    for (profile, version) in
        [("1.33", "v1alpha3"), ("1.36", "v1beta1"), ("1.36", "v1beta2"), ("1.37", "v1"), ("kep-5055", "v1")]
    {
        let engine = engine(profile, POLICY);
        for kind in ["ResourceClaim", "ResourceClaimTemplate"] {
            for (first, second) in [(&Value::Null, &own), (&own, &json!([])), (&own, &Value::Null)] {
                let manifest = object(version, kind, &requests(version, first, second));
                let created = webhook_response(&engine, Endpoint::Mutate, &Value::Null, &manifest);
                assert_eq!(
                    created["patch"].as_array().map(Vec::len),
                    Some(3),
                    "{profile} {version} {kind}: {created}"
                );
                let stored = apply_patch(&manifest, &created["patch"]);
                let again = webhook_response(&engine, Endpoint::Mutate, &stored, &manifest);
                assert_eq!(apply_patch(&manifest, &again["patch"]), stored, "{profile} {version} {kind}");
                assert_eq!(again["patch"], created["patch"], "the same, and no more");
                assert_eq!(
                    again["warnings"],
                    json!(["the spec is immutable: restored 3 tolerations that this update omits"])
                );
                let third = webhook_response(&engine, Endpoint::Mutate, &stored, &stored);
                assert_eq!((third.get("patch"), third.get("warnings")), (None, None), "idempotent");
                let verdict = webhook_response(
                    &engine,
                    Endpoint::Validate,
                    &stored,
                    &apply_patch(&manifest, &again["patch"]),
                );
                assert_eq!(verdict["allowed"], json!(true));
            }
        }
    }
}

#[test]
fn what_a_user_has_not_written_is_compared_as_the_server_fills_it_in() {
    let engine = engine("1.37", POLICY);
    let claim = |exactly: Value| object("v1", "ResourceClaim", &json!([{"name": "r", "exactly": exactly}]));
    let manifest =
        claim(json!({"deviceClassName": "gpu", "tolerations": [{"key": "x/y", "effect": "NoSchedule"}]}));
    let created = webhook_response(&engine, Endpoint::Mutate, &Value::Null, &manifest);
    let stored = apply_patch(&manifest, &created["patch"]);
    let again = webhook_response(&engine, Endpoint::Mutate, &stored, &manifest);
    assert_eq!(apply_patch(&manifest, &again["patch"]), stored);
    assert_eq!(again["warnings"].as_array().map(Vec::len), Some(1));
    // In the middle, and before one that is to be filled in.
    let others = json!([{"key": "a/b", "operator": "Exists"}, {"key": "x/y", "effect": "NoSchedule", "operator": "Equal"}]);
    let stored = claim(body(&others));
    let again = webhook_response(&engine, Endpoint::Mutate, &stored, &manifest);
    assert_eq!(apply_patch(&manifest, &again["patch"]), {
        let mut whole = stored.clone();
        whole["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] = json!([
            {"key": "a/b", "operator": "Exists"}, {"key": "x/y", "operator": "Equal", "effect": "NoSchedule"}]);
        whole
    });
}

#[test]
fn only_tolerations_that_are_missing_are_put_back() {
    let stored = json!([{"key": "a/b", "operator": "Exists"}, {"key": "x/y", "operator": "Exists", "effect": "NoSchedule"}]);
    for policy in [POLICY, ""] {
        let engine = engine("1.37", policy);
        let old = object("v1", "ResourceClaim", &requests("v1", &stored, &Value::Null));
        let with =
            |tolerations: &Value| object("v1", "ResourceClaim", &requests("v1", tolerations, &Value::Null));
        for lacking in [json!([]), Value::Null, json!([stored[0]]), json!([stored[1]])] {
            let new = with(&lacking);
            let answer = webhook_response(&engine, Endpoint::Mutate, &old, &new);
            assert_eq!(apply_patch(&new, &answer["patch"]), old, "{lacking}");
        }
        let mut renamed = with(&Value::Null);
        renamed["spec"]["devices"]["requests"][0]["name"] = json!("other");
        let mut counted = with(&Value::Null);
        counted["spec"]["devices"]["requests"][0]["exactly"]["count"] = json!(2);
        let mut shorter = with(&Value::Null);
        shorter["spec"]["devices"]["requests"].as_array_mut().expect("a list").pop();
        let mut longer = with(&Value::Null);
        longer["spec"]["devices"]["requests"]
            .as_array_mut()
            .expect("a list")
            .push(json!({"name": "three", "exactly": body(&stored)}));
        let mut configured = with(&Value::Null);
        configured["spec"]["devices"]["config"] =
            json!([{"opaque": {"driver": "d.example", "parameters": {}}}]);
        for other in [
            renamed,
            counted,
            shorter,
            longer,
            configured,
            with(&json!([{"key": "a/c", "operator": "Exists"}])),
            with(&json!([{"key": "a/b", "operator": "Exists", "tolerationSeconds": 1}])),
            with(&json!([stored[1], stored[0]])),
            with(&json!([stored[0], stored[0]])),
            with(&json!([stored[0], stored[1], stored[1]])),
        ] {
            let answer = webhook_response(&engine, Endpoint::Mutate, &old, &other);
            assert_eq!((answer.get("patch"), answer.get("warnings")), (None, None), "{other}");
            assert_eq!(answer["allowed"], json!(true), "the mutating endpoint never refuses");
        }
    }
}

/// Stored tolerations are restored even if there are more than the limit.
#[test]
fn more_than_sixteen_are_put_back_too() {
    let many: Vec<Value> = (0..20).map(|n| json!({"key": format!("x/k{n}"), "operator": "Exists"})).collect();
    let old = object("v1", "ResourceClaim", &requests("v1", &json!(many), &Value::Null));
    let new = object("v1", "ResourceClaim", &requests("v1", &json!(many[..15]), &Value::Null));
    let answer = webhook_response(&engine("1.37", POLICY), Endpoint::Mutate, &old, &new);
    assert_eq!(apply_patch(&new, &answer["patch"]), old);
    assert_eq!(answer["patch"].as_array().map(Vec::len), Some(5));
    let warnings = answer["warnings"].as_array().expect("a warning");
    assert!(warnings.iter().all(|text| text.as_str().expect("text").chars().count() <= 120));
}
