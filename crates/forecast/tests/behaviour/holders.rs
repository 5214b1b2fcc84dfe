//! Tests which pods can use a claim and which do, and which workload a pod belongs to.

use crate::controllers::{cluster, outcomes};
use crate::{forecast, read};
use tollgate_forecast::{ObjectKind, PodOutcome, State, StoredObject, claim_users, workload_of};

/// A pod of a PodGroup that uses a claim by name, or that uses a generated claim.
fn pod((namespace, name): (&str, &str), group: &str, claim: &str, is_generated: bool) -> String {
    let (used, status) = if is_generated {
        (
            r#""resourceClaimTemplateName":"t""#.to_owned(),
            format!(r#"{{"name":"r","resourceClaimName":"{claim}"}}"#),
        )
    } else {
        (format!(r#""resourceClaimName":"{claim}""#), String::new())
    };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"{namespace}","name":"{name}"}},"spec":{{"schedulingGroup":{{"podGroupName":"{group}"}},"resourceClaims":[{{"name":"r",{used}}}]}},"status":{{"resourceClaimStatuses":[{status}]}}}}"#
    )
}

#[test]
fn members_of_a_group_that_use_the_claim() {
    let claim = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"namespace":"app","name":"c"},"status":{"reservedFor":[{"apiGroup":"scheduling.k8s.io","resource":"podgroups","name":"gang"}]}}"#;
    let lines = [
        claim.to_owned(),
        pod(("app", "named"), "gang", "c", false),
        pod(("app", "generated"), "gang", "c", true),
        pod(("app", "with-another-claim"), "gang", "d", false),
        pod(("app", "of-another-group"), "other", "c", false),
        pod(("other", "in-another-namespace"), "gang", "c", false),
    ];
    let lines = lines.join("\n");
    let docs = read(&lines);
    let mut state = State::default();
    for doc in &docs {
        state.add(doc.root());
    }
    let claim = state.objects_of_kind(ObjectKind::ResourceClaim).get("app", "c").expect("the claim");
    let users = claim_users(&state, claim);
    let names: Vec<_> = users.iter().map(|user| user.pod.map(StoredObject::name)).collect();
    assert_eq!(names, [Some("named"), Some("generated")]);
}

/// An allocated claim, and a pod that is created later and uses it.
fn claim_and_pod(name: &str, device: &str, timestamp: &str) -> (String, String) {
    let claim = format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{name}","namespace":"app"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu"}}}}]}}}},"status":{{"allocation":{{{timestamp}"devices":{{"results":[{{"request":"r","driver":"gpu.example.com","pool":"n0","device":"{device}"}}]}}}}}}}}"#
    );
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"app"}},"spec":{{"containers":[{{"name":"c"}}],"resourceClaims":[{{"name":"c0","resourceClaimName":"{name}"}}]}}}}"#
    );
    (claim, pod)
}

/// A server that stores timestamps does not let the scheduler add one to an older allocation.
#[test]
fn a_claim_that_was_allocated_without_a_timestamp_cannot_be_used_by_new_pods() {
    let (old_claim, old_pod) = claim_and_pod("old", "d0", "");
    let timestamp = r#""allocationTimestamp":"2029-12-01T00:00:00Z","#;
    let (new_claim, new_pod) = claim_and_pod("new", "d1", timestamp);
    let state = cluster(1, 2) + &[old_claim.as_str(), &new_claim].join("\n");
    let found = forecast(&state, &[old_pod.as_str(), &new_pod].join("\n"), 4);
    assert_eq!(outcomes(&found), [(Some("old"), PodOutcome::Pending), (Some("new"), PodOutcome::Fits)]);
    let message = found.pods[0].message.as_deref();
    assert!(message.is_some_and(|message| message.contains("has no timestamp")), "{message:?}");
    // If no claim has a timestamp, the server does not store them.
    let found = forecast(&(cluster(1, 2) + &old_claim), &old_pod, 4);
    assert_eq!(outcomes(&found), [(Some("old"), PodOutcome::Fits)]);
}

/// Objects that a person wrote have no UID.
#[test]
fn owners_with_another_uid_are_others() {
    for (referenced, stored, is_owner) in
        [("u", "u", true), ("u", "", true), ("", "u", true), ("", "", true), ("u", "v", false)]
    {
        let lines = format!(
            r#"{{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{{"namespace":"app","name":"web","uid":"{stored}","ownerReferences":[{{"apiVersion":"apps/v1","kind":"Deployment","name":"front","controller":true}}]}}}}
            {{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"namespace":"app","name":"front"}}}}
            {{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"app","name":"p","ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"{referenced}","controller":true}}]}}}}"#
        );
        let docs = read(&lines);
        let mut state = State::default();
        for doc in &docs {
            state.add(doc.root());
        }
        let pod = state.objects_of_kind(ObjectKind::Pod).get("app", "p").expect("the pod");
        let workload = workload_of(&state, pod).map(|workload| (workload.kind, workload.name));
        let expected = if is_owner { ("Deployment", "front") } else { ("ReplicaSet", "web") };
        assert_eq!(workload, Some(expected), "{referenced:?} {stored:?}");
    }
}
