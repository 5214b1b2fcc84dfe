//! The policy cases that server and command line must agree on: 240 claims and templates in four namespaces meet one
//! set of policies of all actions.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "builds JSON as any client would"
)]

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::{Endpoint, Engine, LoadedNamespaces, PolicyFile, PolicySet, Profile, RuleSet, admit};

/// A time after the expiring entry has expired.
pub(crate) const NOW: &str = "2026-06-01T00:00:00Z";
pub(crate) const RULES: &str = "policy,decoding";

pub(crate) const POLICIES: &str = r#"
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: ml}
spec:
  match: {namespaces: ["ml-*"], excludeNamespaces: [ml-infra]}
  allow:
  - {key: gpu.example.com/*, effects: [NoSchedule]}
  - {key: gpu.example.com/degraded, values: [thermal], maxTolerationSeconds: 600}
  - {key: nic.example.com/down, expires: "2026-01-01T00:00:00Z"}
  deny: [{key: gpu.example.com/lost, reason: it is gone}]
  defaults: [{key: gpu.example.com/slow, operator: Exists, effect: NoSchedule}]
---
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: by-label}
spec:
  action: Warn
  match: {namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [ml, lab]}]}}
  allow: []
---
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: watched}
spec:
  action: Audit
  deny: [{key: "*", effects: [NoExecute]}]
  validations:
  - {expression: "object.metadata.name.size() < 5", message: short names}
  - {expression: "namespaceObject.metadata.labels.?team.orValue('none') != 'lab'"}
"#;

pub(crate) const NAMESPACES: &str = r"
{apiVersion: v1, kind: Namespace, metadata: {name: ml-a, labels: {team: ml}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ml-infra, labels: {team: infra}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: lab, labels: {team: lab}}}
";

/// The objects of the test cases.
pub(crate) fn cases() -> Vec<Value> {
    let tolerations = [
        json!([]),
        json!([{"key":"gpu.example.com/degraded","operator":"Exists","effect":"NoSchedule"}]),
        json!([{"key":"gpu.example.com/degraded","operator":"Exists"}]),
        json!([{"key":"gpu.example.com/degraded","value":"thermal","effect":"NoExecute","tolerationSeconds":600}]),
        json!([{"key":"gpu.example.com/degraded","value":"thermal","effect":"NoExecute"}]),
        json!([{"key":"gpu.example.com/lost","operator":"Exists","effect":"NoSchedule"}]),
        json!([{"operator":"Exists"}]),
        json!([{}]),
        json!([{"key":"nic.example.com/down","operator":"Exists","effect":"NoSchedule"}]),
        json!([{"operator":"Exists","effect":"None"}, {"key":"a/b","value":"c"}]),
    ];
    let mut cases = Vec::new();
    for namespace in ["ml-a", "ml-infra", "lab", "elsewhere"] {
        for list in &tolerations {
            for name in ["c", "longer-name"] {
                let body = json!({"deviceClassName": "gpu", "tolerations": list});
                let exactly = json!({"devices": {"requests": [{"name": "r", "exactly": body}]}});
                let alternatives = json!({"devices": {"requests": [{"name": "r", "firstAvailable": [
                    {"name": "s", "deviceClassName": "gpu", "tolerations": list}]}]}});
                let metadata = json!({"name": name, "namespace": namespace});
                let object = |kind: &str, spec: Value| json!({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec});
                cases.push(object("ResourceClaim", exactly));
                cases.push(object("ResourceClaim", alternatives.clone()));
                cases.push(object("ResourceClaimTemplate", json!({"spec": alternatives})));
            }
        }
    }
    cases
}

/// The AdmissionReviews of the objects.
pub(crate) fn reviews(cases: &[Value]) -> Vec<String> {
    let review = |(index, object): (usize, &Value)| {
        let resource =
            if object["kind"] == "ResourceClaim" { "resourceclaims" } else { "resourceclaimtemplates" };
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": index.to_string(), "operation": "CREATE", "object": object,
            "kind": {"group": "resource.k8s.io", "version": "v1", "kind": object["kind"]},
            "resource": {"group": "resource.k8s.io", "version": "v1", "resource": resource},
            "namespace": object["metadata"]["namespace"], "name": object["metadata"]["name"]}})
        .to_string()
    };
    cases.iter().enumerate().map(review).collect()
}

/// The webhook's responses, without HTTP. `file` is the reported location of the policies.
pub(crate) fn admitted(file: &str, reviews: &[String], endpoint: Endpoint) -> Vec<Vec<u8>> {
    let files = [PolicyFile { name: file.to_owned(), text: POLICIES.to_owned() }];
    let set = PolicySet::load(&files, &|_| Err("no files".to_owned())).expect("good policies");
    let rules = RuleSet::parse(RULES).expect("rules");
    let engine = Engine::new(vec![Profile::named("kep-5055").expect("a profile")], rules);
    let engine = engine.with_policies(Arc::new(set));
    let mut namespaces = LoadedNamespaces::new(true);
    for (name, team) in [("ml-a", "ml"), ("ml-infra", "infra"), ("lab", "lab")] {
        let text = format!(r#"{{"metadata":{{"name":"{name}","labels":{{"team":"{team}"}}}}}}"#);
        namespaces.add(tollgate::parse_json(&text).expect("JSON").root());
    }
    let answer =
        |review: &String| admit(&engine, review.as_bytes(), endpoint, NOW, &namespaces).expect("a review");
    reviews.iter().map(answer).collect()
}
