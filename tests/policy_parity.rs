//! Server and command line on the same policy cases: same verdict, same findings.
//!
//! 240 claims and templates in four namespaces meet one set of policies of all actions, once as AdmissionReviews
//! through `engine::admit` and `tollgate review`, once as manifests through `tollgate validate`.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_macros, reason = "numbers for people, with --nocapture")]
#![allow(clippy::disallowed_types, reason = "reads reports as any program would")]
#![expect(clippy::disallowed_methods, reason = "writes the inputs of the program")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::engine::{Engine, Labels, Side, Surroundings, admit, parse_rules};
use tollgate::policy::{PolicySet, Text};
use tollgate::profile::Profile;

const NOW: &str = "2026-06-01T00:00:00Z";
const RULES: &str = "policy,decoding";

const POLICIES: &str = r#"
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

const NAMESPACES: &str = r"
{apiVersion: v1, kind: Namespace, metadata: {name: ml-a, labels: {team: ml}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ml-infra, labels: {team: infra}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: lab, labels: {team: lab}}}
";

fn cases() -> Vec<Value> {
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

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("policy-parity");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn tollgate(folder: &Path, arguments: &[&str]) -> String {
    let common =
        ["--policy", "policies.yaml", "--namespaces", "namespaces.yaml", "--rules", RULES, "--now", NOW];
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .current_dir(folder)
        .args(arguments)
        .args(common)
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A finding without its place in the file, which a review does not have.
fn without_place(finding: &Value) -> Value {
    let mut finding = finding.clone();
    for key in ["line", "column", "endLine", "endColumn"] {
        finding.as_object_mut().unwrap().remove(key);
    }
    finding
}

#[test]
fn server_and_command_line_say_the_same() {
    let folder = folder();
    let cases = cases();
    std::fs::write(folder.join("policies.yaml"), POLICIES).unwrap();
    std::fs::write(folder.join("namespaces.yaml"), NAMESPACES).unwrap();
    let objects: Vec<String> = cases.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("objects.json"), objects.join("\n")).unwrap();
    let reviews: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(index, object)| {
            let resource =
                if object["kind"] == "ResourceClaim" { "resourceclaims" } else { "resourceclaimtemplates" };
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                "uid": index.to_string(), "operation": "CREATE", "object": object,
                "kind": {"group": "resource.k8s.io", "version": "v1", "kind": object["kind"]},
                "resource": {"group": "resource.k8s.io", "version": "v1", "resource": resource},
                "namespace": object["metadata"]["namespace"], "name": object["metadata"]["name"]}})
        })
        .collect();
    let texts: Vec<String> = reviews.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("reviews.json"), texts.join("\n")).unwrap();

    let validated: Value =
        serde_json::from_str(&tollgate(&folder, &["validate", "objects.json", "-o", "json"])).unwrap();
    let reviewed = tollgate(&folder, &["review", "--findings", "reviews.json"]);
    let reviewed: Vec<Value> = reviewed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let served = serve(&texts);

    let mut verdicts = [0usize; 2];
    for (index, object) in cases.iter().enumerate() {
        let offline = &validated["results"][index];
        let findings: Vec<Value> =
            offline["findings"].as_array().unwrap().iter().map(without_place).collect();
        assert_eq!(&Value::from(findings.clone()), &reviewed[index]["findings"], "{object}");
        let allowed = offline["verdict"] == "valid";
        assert_eq!(reviewed[index]["allowed"], allowed, "{object}");
        let response = &served[index]["response"];
        assert_eq!(response["allowed"], allowed, "{object}");
        // The server's answer has a cause for each denial, and nothing else.
        let denied: Vec<&Value> = findings.iter().filter(|finding| finding["level"] == "deny").collect();
        let causes = response["status"]["details"]["causes"].as_array().cloned().unwrap_or_default();
        let told: Vec<String> = causes
            .iter()
            .map(|cause| {
                format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())
            })
            .collect();
        let expected: Vec<&str> = denied.iter().map(|finding| finding["message"].as_str().unwrap()).collect();
        assert_eq!(told, expected, "{object}");
        if !allowed {
            assert_eq!(
                (&response["status"]["code"], &response["status"]["reason"]),
                (&json!(403), &json!("Forbidden"))
            );
        }
        verdicts[usize::from(allowed)] += 1;
    }
    println!("{} cases: {} refused, {} admitted", cases.len(), verdicts[0], verdicts[1]);
    assert!(cases.len() >= 200 && verdicts.iter().all(|count| *count > 20), "{verdicts:?}");
}

/// What the webhook answers, without HTTP.
fn serve(reviews: &[String]) -> Vec<Value> {
    let files = [Text { name: "policies.yaml".to_owned(), text: POLICIES.to_owned() }];
    let set = PolicySet::load(&files, &|_| Err("no files".to_owned())).unwrap();
    let engine = Engine::new(vec![Profile::named("kep-5055").unwrap()], parse_rules(RULES).unwrap());
    let engine = engine.with_policies(Arc::new(set));
    let known =
        tollgate::doc::parse(r#"{"ml-a":{"team":"ml"},"ml-infra":{"team":"infra"},"lab":{"team":"lab"}}"#)
            .unwrap();
    let labels = |name: &str| Labels::Known(known.root().get(name));
    let around = Surroundings { now: NOW, labels: &labels };
    let answer = |review: &String| admit(&engine, review.as_bytes(), Side::Validate, around).unwrap();
    reviews.iter().map(|review| serde_json::from_slice(&answer(review)).unwrap()).collect()
}

/// The policies we ship pass their own tests, and each has some.
#[test]
fn shipped_policies_pass_their_tests() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    for entry in std::fs::read_dir(&policies).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "yaml") && !name.contains(".test.") {
            assert!(path.with_extension("test.yaml").exists(), "{name} has no test");
        }
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate")).arg("test").arg(&policies).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
