//! `--policy-source cluster`: policies that are custom resources, through everything that can happen to them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::double::Double;
use crate::double::policies::{LEASES, TOLERATION_POLICIES};
use crate::running::until;
use crate::webhook::Webhook;

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Flags to read policies only from the cluster.
const CLUSTER: [&str; 3] = ["--cluster=labels", "--policy-source", "cluster"];
const BOTH: [&str; 3] = ["--cluster=labels", "--policy-source", "files,cluster"];

/// A double with everything that such a server requests.
fn double(name: &str) -> Double {
    let double = Double::start(name);
    double.serves("/api/v1/namespaces");
    double
}

fn installed(name: &str) -> Double {
    let double = double(name);
    double.install_policies();
    double
}

/// A TolerationPolicy with that `spec`.
fn policy(name: &str, generation: i64, spec: &Value) -> Value {
    json!({"apiVersion": "tollgate.dev/v1alpha1", "kind": "TolerationPolicy",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": generation}, "spec": spec})
}

/// Stores a TolerationPolicy.
fn store(double: &Double, name: &str, generation: i64, spec: &Value) {
    double.put(TOLERATION_POLICIES, policy(name, generation, spec));
}

/// A policy that forbids all tolerations in the namespace `ml`.
fn forbid_tolerations_in_ml() -> Value {
    json!({"match": {"namespaces": ["ml"]}, "allow": []})
}

/// A request for a claim that tolerates something.
fn review(namespace: &str) -> Vec<u8> {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "namespace": namespace, "name": "c",
            "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
            "resource": {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"},
            "object": {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": namespace},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {
                    "deviceClassName": "gpu",
                    "tolerations": [{"key": "gpu.example.com/lost", "operator": "Exists", "effect": "NoSchedule"}],
                }}]}},
            },
        },
    })
    .to_string()
    .into_bytes()
}

fn denies(webhook: &Webhook) -> bool {
    webhook.send_review(&review("ml"))["allowed"] == false
}

fn readyz(webhook: &Webhook) -> String {
    webhook.process.get("/readyz?verbose").text()
}

/// A condition of a stored policy.
fn condition(double: &Double, name: &str, kind: &str) -> Value {
    let stored = double.object(TOLERATION_POLICIES, name).unwrap_or_default();
    let conditions = stored["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

#[test]
fn stored_policies_are_in_force_and_follow_every_change() {
    let double = installed("policies-change");
    store(&double, "strict", 1, &forbid_tolerations_in_ml());
    let webhook = Webhook::start("policies-change", &double, None, &CLUSTER);
    webhook.until_ready();
    let answer = webhook.send_review(&review("ml"));
    assert_eq!(answer["allowed"], false, "{answer}");
    assert_eq!(answer["auditAnnotations"]["policies"], "TolerationPolicy/strict generation 1");
    assert_eq!(webhook.process.metric("tollgate_policies_by_source{source=\"cluster\"}"), Some(1));
    until("written", || condition(&double, "strict", "Ready")["status"] == "True");
    let ready = condition(&double, "strict", "Ready");
    assert_eq!((&ready["reason"], &ready["observedGeneration"]), (&json!("Accepted"), &json!(1)));
    // Wider, stricter, gone.
    store(&double, "strict", 2, &json!({"match": {"namespaces": ["other"]}, "allow": []}));
    until("wider", || !denies(&webhook));
    until("written", || condition(&double, "strict", "Ready")["observedGeneration"] == 2);
    store(&double, "strict", 3, &forbid_tolerations_in_ml());
    until("stricter", || denies(&webhook));
    double.delete(TOLERATION_POLICIES, "strict");
    until("gone", || !denies(&webhook));
    assert_eq!(webhook.process.metric("tollgate_policies"), Some(0));
    assert_eq!(webhook.process.metric("tollgate_policy_source_ok"), Some(1));
}

#[test]
fn a_status_is_written_on_change_only_and_by_one_replica() {
    let double = installed("policies-status");
    for index in 0..5 {
        store(&double, &format!("p{index}"), 1, &forbid_tolerations_in_ml());
    }
    let first = Webhook::start("policies-status-1", &double, None, &CLUSTER);
    first.until_ready();
    let second = Webhook::start("policies-status-2", &double, None, &CLUSTER);
    second.until_ready();
    let patches = || double.count("PATCH");
    until("written", || patches() >= 5);
    until("seen", || {
        first.process.metric("tollgate_policy_status_writes_total") == Some(5)
            || second.process.metric("tollgate_policy_status_writes_total") == Some(5)
    });
    // Somebody changes a label, which is no change of the policy.
    let mut labelled = double.object(TOLERATION_POLICIES, "p0").expect("stored");
    labelled["metadata"]["labels"] = json!({"team": "ml"});
    double.put(TOLERATION_POLICIES, labelled);
    // A change of another policy shows that the label was seen.
    store(&double, "p1", 2, &forbid_tolerations_in_ml());
    until("written", || condition(&double, "p1", "Ready")["observedGeneration"] == 2);
    assert_eq!(patches(), 6, "{:?}", double.requests());
    let held = [&first, &second].map(|webhook| webhook.process.metric("tollgate_policy_lease_held"));
    assert_eq!(held.iter().flatten().sum::<i64>(), 1);
}

#[test]
fn a_broken_policy_gets_its_failure_policy_and_says_why() {
    let double = installed("policies-broken");
    store(&double, "typo", 1, &json!({"match": {"namespaces": ["ml"]}, "alow": []}));
    store(
        &double,
        "careless",
        1,
        &json!({"match": {"namespaces": ["web"]}, "alow": [], "failurePolicy": "Ignore"}),
    );
    let webhook = Webhook::start("policies-broken", &double, None, &CLUSTER);
    webhook.until_ready();
    let answer = webhook.send_review(&review("ml"));
    assert_eq!(answer["allowed"], false, "{answer}");
    let message = answer["status"]["message"].as_str().expect("a message");
    assert!(message.contains("TolerationPolicy/typo") && message.contains("spec.alow"), "{message}");
    assert_eq!(webhook.send_review(&review("web"))["allowed"], true);
    assert_eq!(webhook.send_review(&review("other"))["allowed"], true);
    until("written", || condition(&double, "typo", "Ready")["status"] == "False");
    let ready = condition(&double, "typo", "Ready");
    assert!(ready["message"].as_str().is_some_and(|message| message.starts_with("spec.alow: ")), "{ready}");
    assert_eq!(condition(&double, "typo", "Stalled")["status"], "True");
    assert_eq!(webhook.process.metric("tollgate_policy_resources{state=\"rejected\"}"), Some(2));
    let verbose = readyz(&webhook);
    assert!(verbose.contains("[!]policy-source invalid policies in the cluster: 2 of 2"), "{verbose}");
    // Mended.
    store(&double, "typo", 2, &json!({"match": {"namespaces": ["ml"]}}));
    until("mended", || !denies(&webhook));
    until("written", || condition(&double, "typo", "Ready")["status"] == "True");
    assert_eq!(condition(&double, "typo", "Stalled"), Value::Null);
}

#[test]
fn without_definitions_a_server_does_not_become_ready_and_answers_nothing() {
    let double = double("policies-missing");
    let webhook = Webhook::start("policies-missing", &double, None, &CLUSTER);
    until("said", || readyz(&webhook).contains("the CustomResourceDefinitions are missing"));
    assert_eq!(webhook.process.get("/readyz").status, 503);
    let verbose = readyz(&webhook);
    assert!(verbose.contains("does not serve tolerationpolicies.tollgate.dev, taintpolicies"), "{verbose}");
    // What the policies would deny must not be admitted.
    let refused = webhook.post(&review("ml"));
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(
        refused.text().contains("the policies are not loaded from the cluster yet"),
        "{}",
        refused.text()
    );
    // They are installed later.
    double.install_policies();
    store(&double, "strict", 1, &forbid_tolerations_in_ml());
    webhook.until_ready();
    until("in force", || denies(&webhook));
}

#[test]
fn deleted_definitions_and_a_lost_api_server_do_not_take_policies_away() {
    let double = installed("policies-deleted");
    store(&double, "strict", 1, &forbid_tolerations_in_ml());
    let webhook = Webhook::start("policies-deleted", &double, None, &CLUSTER);
    webhook.until_ready();
    double.until_watched(TOLERATION_POLICIES);
    double.delete_definitions();
    // Long enough for a deletion that is believed.
    std::thread::sleep(Duration::from_secs(1));
    assert!(denies(&webhook), "its kind is being deleted");
    double.forget_definitions();
    until("said", || {
        readyz(&webhook).contains("[!]policy-source the last policies of the cluster (1) stay in use")
    });
    assert!(denies(&webhook) && webhook.process.get("/readyz").status == 200);
    assert_eq!(webhook.process.metric("tollgate_policy_source_ok"), Some(0));
    // Installed again, with another policy: now what is stored counts.
    double.install_policies();
    store(&double, "other", 1, &json!({"match": {"namespaces": ["other"]}, "allow": []}));
    until("back", || !denies(&webhook) && webhook.send_review(&review("other"))["allowed"] == false);
    until("said", || webhook.process.metric("tollgate_policy_source_ok") == Some(1));
    // The API server is gone, comes back, and has forgotten what was watched.
    double.stop_listening();
    until("said", || webhook.process.metric("tollgate_policy_source_ok") == Some(0));
    assert_eq!(webhook.send_review(&review("other"))["allowed"], false);
    double.listen_again();
    double.forget();
    store(&double, "other", 2, &forbid_tolerations_in_ml());
    until("in force", || denies(&webhook));
    assert_eq!(webhook.process.get("/readyz").status, 200);
}

#[test]
fn a_file_counts_before_a_resource_and_a_broken_file_does_not_stop_resources() {
    let double = installed("policies-both");
    store(&double, "own", 1, &forbid_tolerations_in_ml());
    store(&double, "other", 1, &json!({"match": {"namespaces": ["other"]}, "allow": []}));
    let file = "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: own}\nspec: {}\n";
    let webhook = Webhook::start("policies-both", &double, Some(file), &BOTH);
    webhook.until_ready();
    assert!(!denies(&webhook) && webhook.send_review(&review("other"))["allowed"] == false);
    assert_eq!(webhook.process.metric("tollgate_policies_by_source{source=\"files\"}"), Some(1));
    assert_eq!(webhook.process.metric("tollgate_policies_by_source{source=\"cluster\"}"), Some(1));
    until("written", || condition(&double, "own", "Ready")["reason"] == "ReplacedByFile");
    // The file breaks; the last valid one counts, with what changes in the cluster.
    webhook.write_policy("nonsense: [");
    until("said", || webhook.process.metric("tollgate_policy_reload_ok") == Some(0));
    store(&double, "other", 2, &json!({"match": {"namespaces": ["more"]}, "allow": []}));
    until("in force", || webhook.send_review(&review("more"))["allowed"] == false);
    assert!(!denies(&webhook), "the file still replaces the resource");
    assert_eq!(webhook.process.metric("tollgate_policy_reload_ok"), Some(0));
    assert!(readyz(&webhook).contains("[!]policies not reloaded"), "{}", readyz(&webhook));
    webhook.write_policy(file);
    until("mended", || webhook.process.metric("tollgate_policy_reload_ok") == Some(1));
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    for (arguments, expected) in [
        (&["--policy-source", "cluster"][..], "requires --cluster"),
        (&["--cluster", "--policy-source", "cluster", "--policy", "policies"], "files,cluster"),
    ] {
        let folder = crate::program::folder("policy-source-flags");
        let all: Vec<&str> = ["serve"].into_iter().chain(arguments.iter().copied()).collect();
        let (code, _, text) = crate::program::run(&folder, &all);
        assert!(code == 2 && text.contains(expected), "{text}");
    }
}

#[test]
fn without_a_lease_policies_are_in_force_but_nothing_is_written() {
    let double = installed("policies-lease");
    double.delete(LEASES, "tollgate-system/tollgate-policies");
    store(&double, "strict", 1, &forbid_tolerations_in_ml());
    let webhook = Webhook::start("policies-lease", &double, None, &CLUSTER);
    webhook.until_ready();
    assert!(denies(&webhook));
    until("said", || {
        readyz(&webhook).contains("[!]policy-lease cannot use the Lease tollgate-system/tollgate-policies")
    });
    assert_eq!(double.count("PATCH"), 0);
}

/// The names of the registered entries.
fn entries(double: &Double) -> Vec<String> {
    let object = double.object(VALIDATING, "tollgate").unwrap_or_default();
    let webhooks = object["webhooks"].as_array().cloned().unwrap_or_default();
    webhooks.iter().filter_map(|webhook| webhook["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn the_registration_is_widened_at_once_and_not_narrowed_by_who_knows_too_little() {
    let double = installed("policies-register");
    double.serves(VALIDATING);
    double.serves(MUTATING);
    store(&double, "defaults", 1, &json!({"validations": [{"expression": "true"}], "onUnavailable": "Deny"}));
    let arguments: Vec<&str> = CLUSTER
        .into_iter()
        .chain(["--register", "https://localhost:8443", "--register-fail-closed"])
        .collect();
    let webhook = Webhook::start("policies-register", &double, None, &arguments);
    webhook.until_ready();
    until("registered", || entries(&double).iter().any(|name| name == "other-claims.validate.tollgate.dev"));
    let before = double.object(VALIDATING, "tollgate").expect("registered");
    let own = before["webhooks"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|webhook| webhook["name"] == "policies.validate.tollgate.dev");
    assert_eq!(own.map(|own| own["failurePolicy"].clone()), Some(json!("Ignore")), "{before}");
    // The policy goes: this replica may be wrong, so the entry stays, and still fails closed.
    double.delete(TOLERATION_POLICIES, "defaults");
    until("gone", || webhook.process.metric("tollgate_policies") == Some(0));
    store(&double, "strict", 1, &forbid_tolerations_in_ml());
    until("in force", || denies(&webhook));
    let after = double.object(VALIDATING, "tollgate").expect("registered");
    let after = after["webhooks"].as_array().expect("webhooks");
    for entry in before["webhooks"].as_array().expect("webhooks") {
        assert!(after.contains(entry), "{}", entry["name"]);
    }
    // One that starts with an empty view leaves it as it is, too.
    drop(webhook);
    double.delete(TOLERATION_POLICIES, "strict");
    let webhook = Webhook::start("policies-register-2", &double, None, &arguments);
    webhook.until_ready();
    until("registered", || readyz(&webhook).contains("validating-registration registered as"));
    let names = entries(&double);
    assert!(names.iter().any(|name| name == "other-claims.validate.tollgate.dev"), "{names:?}");
}
