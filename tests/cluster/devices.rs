//! `devices` at the double: the running cluster gives the report of its dump, and what the user may not list is said.

use serde_json::{Value, json};

use crate::live::{double, dump, files, only_reads, run};
use crate::state::{CLAIMS, PODS, pod};

const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
const NODES: &str = "/api/v1/nodes";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";

const NOW: &str = "2026-02-01T00:00:00Z";
const LIVE: [&str; 5] = ["devices", "--now", NOW, "-o", "json"];

fn owned_by(mut object: Value, api_version: &str, kind: &str, name: &str) -> Value {
    let owner = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true});
    object["metadata"]["ownerReferences"] = json!([owner]);
    object
}

#[test]
fn a_running_cluster_is_reported() {
    let double = double("devices-live");
    double.serves(CLASSES);
    let folder = files("devices-live");
    let (code, live, errors) = run(&double, &folder, &LIVE);
    assert_eq!(code, 0, "{errors}");
    only_reads(&double);
    let live: Value = serde_json::from_str(&live).expect("JSON");
    assert_eq!(live["totals"], json!({"devices": 12, "allocated": 7, "tainted": 0, "blocked": 0, "free": 5}));
    assert_eq!(live["devices"][0]["holders"][0]["pod"], json!({"namespace": "ml", "name": "p0"}));
    // A dump of the same objects says the same of the devices.
    dump(&double, &folder);
    let arguments = ["devices", "--state", "dump.json", "--kubernetes", "1.36", "--now", NOW, "-o", "json"];
    let (_, dumped, _) = run(&double, &folder, &arguments);
    let dumped: Value = serde_json::from_str(&dumped).expect("JSON");
    assert_eq!(live["devices"], dumped["devices"]);
}

#[test]
fn what_is_not_permitted_is_a_note_or_an_error() {
    let double = double("devices-rights");
    double.serves(CLASSES);
    let replica_set = json!({"metadata": {"namespace": "ml", "name": "chat-7d9", "uid": "uid-chat-7d9"}});
    double.put(REPLICA_SETS, owned_by(replica_set, "apps/v1", "Deployment", "chat"));
    double.put(PODS, owned_by(pod("ml", "p0"), "apps/v1", "ReplicaSet", "chat-7d9"));
    let folder = files("devices-rights");
    let workload = |refused: &[(&'static str, u16)]| {
        double.refuse(refused);
        let (code, report, errors) = run(&double, &folder, &LIVE);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        (code, report["devices"][0]["holders"][0]["workload"].clone(), report["incomplete"].clone(), errors)
    };
    let (code, found, incomplete, errors) = workload(&[]);
    assert_eq!(
        (code, found, incomplete),
        (0, json!({"kind": "Deployment", "name": "chat"}), json!([])),
        "{errors}"
    );
    let (code, found, incomplete, errors) = workload(&[(NODES, 403), (REPLICA_SETS, 403)]);
    let replica_set = json!({"kind": "ReplicaSet", "name": "chat-7d9"});
    assert_eq!((code, found), (0, replica_set), "{errors}");
    // Devices of cordoned nodes seem to be free.
    let incomplete: Vec<&str> =
        incomplete.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(matches!(incomplete[..], [one] if one.starts_with("cannot list nodes: ")), "{incomplete:?}");
    assert!(errors.contains("note: cannot list nodes: "), "{errors}");
    assert!(errors.contains("note: cannot list replicasets: "), "{errors}");
    let (code, found, incomplete, errors) = workload(&[(CLAIMS, 403)]);
    assert_eq!((code, found, incomplete.as_array().map(Vec::len)), (3, Value::Null, Some(1)), "{errors}");
    assert!(errors.contains("error: cannot list resourceclaims: "), "{errors}");
}
