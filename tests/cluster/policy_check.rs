//! `policy check --context`: policies that are custom resources, and those that cannot be read.

use serde_json::{Value, json};

use crate::double::Double;
use crate::double::policies::TOLERATION_POLICIES;
use crate::live::{double_without_objects, files, only_reads, run};

const DEGRADED: &str = "gpu.example.com/degraded:NoSchedule";

/// A cluster with the namespace `ml`, whose team is `research`.
fn double(name: &str) -> Double {
    let double = double_without_objects(name);
    double.put("/api/v1/namespaces", json!({"metadata": {"name": "ml", "labels": {"team": "research"}}}));
    double
}

/// Stores a TolerationPolicy.
fn store(double: &Double, name: &str, spec: &Value) {
    let metadata = json!({"name": name, "uid": format!("uid-{name}"), "generation": 1});
    double.put(
        TOLERATION_POLICIES,
        json!({"apiVersion": "tollgate.dev/v1alpha1", "kind": "TolerationPolicy", "metadata": metadata, "spec": spec}),
    );
}

/// Runs `policy check ml` with these arguments.
fn check(double: &Double, name: &str, arguments: &[&str]) -> (i32, String, String) {
    let folder = files(&format!("policy-check-{name}"));
    let text = "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: research}\n\
                spec: {allow: []}\n";
    std::fs::write(folder.join("policy.yaml"), text).expect("written");
    let all: Vec<&str> = ["policy", "check", "ml"].into_iter().chain(arguments.iter().copied()).collect();
    run(double, &folder, &all)
}

#[test]
fn the_policies_of_a_cluster_answer() {
    let double = double("check-stored");
    double.install_policies();
    store(
        &double,
        "research",
        &json!({
            "match": {"namespaceSelector": {"matchLabels": {"team": "research"}}},
            "allow": [{"key": "gpu.example.com/degraded", "reason": "slow is fine"}],
        }),
    );
    let (code, out, err) = check(&double, "stored", &[DEGRADED, "--context", "double"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains(
            "allowed by {key: gpu.example.com/degraded}, allow[0] of TolerationPolicy/research: slow is fine"
        ),
        "{out}"
    );
    let (code, out, err) = check(&double, "other", &["a.example.com/b", "--context", "double"]);
    assert_eq!(code, 1, "{out}{err}");
    // A file with the same kind and name counts instead.
    let (code, out, err) =
        check(&double, "file", &[DEGRADED, "--context", "double", "--policy", "policy.yaml"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("TolerationPolicy/research of the cluster is not used: a file has"), "{err}");
    let config = double.kubeconfig().display().to_string();
    // An explicit kubeconfig asks for its cluster as well.
    let (code, out, err) = check(&double, "kubeconfig", &[DEGRADED, "--kubeconfig", &config]);
    assert_eq!(code, 0, "{out}{err}");
    let exported = |flags: &[&str]| {
        let export = ["policy", "export", "--to", "vap"];
        run(&double, &files("policy-export"), &[&export, flags].concat())
    };
    let (code, out, err) = exported(&["--context", "double"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("gpu.example.com/degraded"), "{out}");
    only_reads(&double);
}

#[test]
fn a_broken_policy_of_a_cluster_is_said() {
    let double = double("check-broken");
    double.install_policies();
    store(&double, "typo", &json!({"alow": []}));
    let (code, out, err) = check(&double, "broken", &[DEGRADED, "--context", "double"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("cannot evaluate policy TolerationPolicy/typo: spec.alow: unknown field"), "{out}");
    assert!(err.contains("TolerationPolicy/typo of the cluster is invalid"), "{err}");
    assert!(err.contains("spec.alow: unknown field; did you mean `allow`?"), "{err}");
}

#[test]
fn without_definitions_or_permissions_nothing_is_guessed() {
    let double = double("check-without");
    let (code, out, err) = check(&double, "none", &[DEGRADED, "--context", "double"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("there are no policies"), "{err}");
    let (code, out, err) =
        check(&double, "files", &[DEGRADED, "--context", "double", "--policy", "policy.yaml"]);
    assert_eq!(code, 1, "the policy of the file: {out}{err}");
    double.install_policies();
    double.refuse(&[("/tolerationpolicies", 403)]);
    let (code, out, err) =
        check(&double, "refused", &[DEGRADED, "--context", "double", "--policy", "policy.yaml"]);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("cannot list tolerationpolicies.tollgate.dev:"), "{err}");
    assert!(err.contains("allow `list` on tolerationpolicies.tollgate.dev"), "{err}");
}
