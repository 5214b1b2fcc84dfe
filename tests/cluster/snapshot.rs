//! `snapshot` at the double: nodes and workloads for forecasts, in YAML and JSON, and what the user may not list.

use serde_json::{Value, json};

use crate::double::Double;
use crate::live::{double, files, only_reads, run};
use crate::state::{CLAIMS, PODS, claim, pod};

const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
const NODES: &str = "/api/v1/nodes";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";
const JOBS: &str = "/apis/batch/v1/jobs";
const JOB_SETS: &str = "/apis/jobset.x-k8s.io/v1alpha2/jobsets";
const POD_GROUPS: &str = "/apis/scheduling.k8s.io/v1alpha2/podgroups";

const NOW: &str = "2026-02-01T00:00:00Z";

fn owner(api_version: &str, kind: &str, name: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true}])
}

/// A pod template with a secret in every field that does not matter for scheduling.
fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "chat"}, "annotations": {"example.com/a": "TOKEN"}},
        "spec": {
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "example.com/node", "operator": "Exists"}],
            "containers": [{
                "name": "c", "image": "TOKEN", "command": ["TOKEN"], "env": [{"name": "A", "value": "TOKEN"}],
                "resources": {"requests": {"cpu": "2"}}, "ports": [{"containerPort": 80, "hostPort": 8080, "name": "http"}],
            }],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "TOKEN"}}, {"name": "s", "secret": {"secretName": "TOKEN"}}],
        },
    })
}

/// The cluster of the other tests, where p0 belongs to a Deployment and two more pods to a JobSet, with a node.
fn with_workloads(name: &str) -> Double {
    let double = double(name);
    for collection in [JOB_SETS, POD_GROUPS] {
        double.serves(collection);
    }
    double.answer_with("/apis/jobset.x-k8s.io", r#"{"kind":"APIGroup","versions":[{"version":"v1alpha2"}]}"#);
    double.answer_with(
        "/apis/scheduling.k8s.io",
        r#"{"kind":"APIGroup","versions":[{"version":"v1"},{"version":"v1alpha2"}]}"#,
    );
    double.put(NODES, json!({
        "metadata": {"name": "n", "labels": {"zone": "a"}, "annotations": {"example.com/a": "TOKEN"}},
        "spec": {"podCIDR": "TOKEN", "unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8"}, "capacity": {"cpu": "8"}, "images": [{"names": ["TOKEN"]}],
            "conditions": [{"type": "Ready", "message": "TOKEN"}]},
    }));
    double.put(
        REPLICA_SETS,
        json!({
            "metadata": {"namespace": "ml", "name": "chat-7d9", "uid": "uid-chat-7d9",
                "ownerReferences": owner("apps/v1", "Deployment", "chat")},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "chat"}}, "template": template()},
        }),
    );
    double.put(
        DEPLOYMENTS,
        json!({
            "metadata": {"namespace": "ml", "name": "chat", "uid": "uid-chat"},
            "spec": {"replicas": 1, "template": template()},
        }),
    );
    let mut chat = pod("ml", "p0");
    chat["metadata"]["ownerReferences"] = owner("apps/v1", "ReplicaSet", "chat-7d9");
    chat["spec"]["containers"] = template()["spec"]["containers"].clone();
    chat["spec"]["priority"] = json!(7);
    chat["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True", "message": "TOKEN"}]);
    double.put(PODS, chat);
    double.put(JOB_SETS, json!({
        "metadata": {"namespace": "web", "name": "train", "uid": "uid-train"},
        "spec": {"failurePolicy": {"maxRestarts": 3}, "network": {"subdomain": "TOKEN"},
            "replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {"backoffLimit": 0, "template": template()}}}]},
    }));
    double.put(JOBS, json!({
        "metadata": {"namespace": "web", "name": "train-w-0", "uid": "uid-train-w-0",
            "ownerReferences": owner("jobset.x-k8s.io/v1alpha2", "JobSet", "train")},
        "spec": {"backoffLimit": 0, "parallelism": 2, "template": template()}, "status": {"failed": 0, "active": 2},
    }));
    for (name, device) in [("t0", "gpu-3"), ("t1", "gpu-9")] {
        double.put(CLAIMS, claim("web", name, "node-0", device));
        let mut worker = pod("web", name);
        worker["metadata"]["ownerReferences"] = owner("batch/v1", "Job", "train-w-0");
        double.put(PODS, worker);
    }
    double
}

const RULE: &str = "
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: one}
spec:
  deviceSelector: {driver: gpu.example.com, pool: node-0, device: gpu-3}
  taint: {key: example.com/broken, effect: NoExecute, timeAdded: 2026-01-01T00:00:00Z}
";

#[test]
fn a_snapshot_has_nodes_and_workloads() {
    let (double, folder) = (with_workloads("snapshot-all"), files("snapshot-all"));
    std::fs::write(folder.join("one.yaml"), RULE).expect("written");
    double.page(2);
    let (code, out, err) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    only_reads(&double);
    let text = std::fs::read_to_string(folder.join("state.yaml")).expect("written");
    assert!(!text.contains("TOKEN"), "{text}");
    for kept in [
        "kind: NodeList",
        "unschedulable: true",
        "allocatable:",
        "kind: ReplicaSetList",
        "kind: DeploymentList",
        "kind: JobList",
        "kind: JobSetList",
        "maxRestarts: 3",
        "kind: PodGroupList",
        "hostPort: 8080",
        "priority: 7",
        "nodeSelector:",
        "persistentVolumeClaim: {}",
        "PodScheduled",
        "backoffLimit: 0",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!err.contains("x-k8s.io"), "an API that is not installed needs no word: {err}");
    // A file that is called .json has JSON, which says the same.
    let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "state.json"]);
    assert_eq!(code, 0, "{err}");
    let json = std::fs::read_to_string(folder.join("state.json")).expect("written");
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&json)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON documents");
    assert_eq!(documents[0]["kind"], "SnapshotInfo");
    let items: usize = documents.iter().filter_map(|list| list["items"].as_array()).map(Vec::len).sum();
    assert_eq!(items, text.matches("\n- metadata:").count(), "{json}");
    let commands: [&[&str]; 3] = [
        &["impact", "one.yaml", "rule.yaml", "--now", NOW],
        &["impact", "rule.yaml", "--now", NOW, "-o", "json", "--by", "workload"],
        &["audit", "--rules", "lint", "--now", NOW],
    ];
    for command in commands {
        let yaml = run(&double, &folder, &[command, &["--state", "state.yaml"]].concat());
        let json = run(&double, &folder, &[command, &["--state", "state.json"]].concat());
        assert_eq!((yaml.0, &yaml.1), (json.0, &json.1), "{command:?}: {}{}", yaml.2, json.2);
    }
    // A JobSet that loses a pod restarts the other one.
    let (_, out, err) = run(&double, &folder, &["impact", "one.yaml", "--state", "state.yaml", "--now", NOW]);
    let expected = "JobSet web/train (failurePolicy.maxRestarts: 3) loses 1 pod: Job train-w-0 fails \
        (BackoffLimitExceeded): the other pod is recreated\n";
    assert!(out.contains(expected), "{out}{err}");
}

#[test]
fn pods_are_grouped_by_workload_at_the_cluster_and_in_its_snapshot() {
    let (double, folder) = (with_workloads("snapshot-by"), files("snapshot-by"));
    double.serves(CLASSES);
    double.put(CLASSES, json!({"metadata": {"name": "gpu"}, "spec": {}}));
    let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    assert_eq!(code, 0, "{err}");
    let by = ["impact", "rule.yaml", "--now", NOW, "--by", "workload"];
    let (code, live, err) = run(&double, &folder, &by);
    assert_eq!(code, 0, "{err}");
    for row in [
        "ml         Deployment/chat  1     1 ",
        "web        JobSet/train     2     2 ",
        "ml         -                3     3 ",
    ] {
        assert!(live.contains(row), "{row}: {live}");
    }
    let (_, dumped, err) = run(&double, &folder, &[&by[..], &["--state", "state.yaml"]].concat());
    let elsewhere = "of 9 evicted pods 1 stays Pending, 8 are not recreated\n";
    assert!(live.contains(elsewhere), "{live}");
    assert_eq!(live, dumped, "{err}");
    // Where pods go is said only if nodes can be listed, and is unknown without classes.
    let limited = [&by[..], &["--max", "pending=1"]].concat();
    let (code, _, err) = run(&double, &folder, &limited);
    assert_eq!(code, 0, "{err}");
    double.refuse(&[(NODES, 403)]);
    let (code, out, err) = run(&double, &folder, &by);
    assert!(code == 0 && !out.contains("of 9 evicted"), "{out}{err}");
    assert!(err.contains("note: cannot list nodes: the API server returned 403"), "{err}");
    let (code, _, err) = run(&double, &folder, &limited);
    assert!(code == 3 && err.contains("cannot check --max pending: cannot list nodes: "), "{err}");
    double.refuse(&[(CLASSES, 403)]);
    let (code, out, err) = run(&double, &folder, &by);
    let unknown =
        "of 9 evicted pods 1 has an unknown outcome, 8 are not recreated: cannot list deviceclasses: ";
    assert!(code == 0 && out.contains(unknown), "{out}{err}");
    let (code, _, err) = run(&double, &folder, &limited);
    assert!(code == 0, "one pod is unknown, one may be pending: {err}");
    // Without the right to list ReplicaSets, what is known of the pod is its owner.
    double.refuse(&[(REPLICA_SETS, 403)]);
    let (code, out, err) = run(&double, &folder, &by);
    assert!(code == 0 && out.contains("ml         ReplicaSet/chat-7d9  1     1 "), "{out}{err}");
    assert!(err.contains("note: cannot list replicasets: the API server returned 403"), "{err}");
    let (_, out, _) =
        run(&double, &folder, &["impact", "rule.yaml", "--now", NOW, "--by", "node", "-o", "json"]);
    let record: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&record["by"], &record["groups"][0]["node"]), (&json!("node"), &json!("n")), "{out}");
}

/// Only forecasts need nodes and workloads. Without permission to list them, the rest of the snapshot is
/// unchanged.
#[test]
fn what_only_forecasts_need_may_be_missing() {
    let (double, folder) = (with_workloads("snapshot-403"), files("snapshot-403"));
    let (_, before, _) = run(&double, &folder, &["audit", "--rules", "lint", "--now", NOW]);
    double.refuse(&[(NODES, 403), (JOB_SETS, 403), ("/apis/batch/v1/jobs", 500)]);
    let (code, text, err) = run(&double, &folder, &["snapshot"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("error: cannot list jobs: the API server returned 500"), "{err}");
    assert!(err.contains("note: cannot list nodes: the API server returned 403"), "{err}");
    double.refuse(&[(NODES, 403), (JOB_SETS, 403)]);
    let (code, text_without, err) = run(&double, &folder, &["snapshot"]);
    assert_eq!(code, 0, "{err}");
    for text in [&text, &text_without] {
        let nodes = "kind: NodeList\nmetadata: {continue: incomplete}\nitems: []\n# cannot list nodes: the API server returned 403";
        assert!(text.contains(nodes), "{text}");
        assert!(
            text.contains("# cannot list jobsets.jobset.x-k8s.io: the API server returned 403"),
            "{text}"
        );
    }
    let (_, json, _) = run(&double, &folder, &["snapshot", "--format", "json"]);
    let is_nodes = |list: &Value| list["kind"] == "NodeList";
    let mut documents =
        serde_json::Deserializer::from_str(&json).into_iter::<Value>().map(|list| list.expect("JSON"));
    let nodes = documents.find(is_nodes).expect("a list of nodes");
    assert!(nodes["metadata"]["continue"] == "incomplete", "{nodes}");
    assert!(
        nodes["incomplete"].as_str().is_some_and(|why| why.starts_with("cannot list nodes: ")),
        "{nodes}"
    );
    std::fs::write(folder.join("part.yaml"), text_without).expect("written");
    for command in [&["audit", "--rules", "lint", "--now", NOW][..], &["impact", "rule.yaml", "--now", NOW]] {
        let (code, out, err) = run(&double, &folder, &[command, &["--state", "part.yaml"]].concat());
        assert!(code != 3 && !err.contains("incomplete"), "{out}{err}");
    }
    let (_, after, err) =
        run(&double, &folder, &["audit", "--state", "part.yaml", "--rules", "lint", "--now", NOW]);
    let summary = |out: &str| out.lines().next_back().map(str::to_owned);
    assert_eq!(summary(&before), summary(&after), "{err}");
}

/// If a user may not list Jobs, a forecast is the same for the cluster and for a snapshot of this user.
#[test]
fn only_pods_of_unread_workloads_are_unknown() {
    let (double, folder) = (with_workloads("snapshot-jobs"), files("snapshot-jobs"));
    double.serves(CLASSES);
    double.put(CLASSES, json!({"metadata": {"name": "gpu"}, "spec": {}}));
    double.refuse(&[(JOBS, 403)]);
    let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    assert_eq!(code, 0, "{err}");
    for limit in [&[][..], &["--max", "unknown=2"], &["--max", "unknown=1"]] {
        let forecast = [&["forecast", "rule.yaml", "--now", NOW], limit].concat();
        let (live_code, live, live_err) = run(&double, &folder, &forecast);
        assert!(live.contains(" 2 unknown"), "{live}{live_err}");
        assert!(live_err.contains("note: cannot list jobs: "), "{live_err}");
        let (code, dumped, err) =
            run(&double, &folder, &[&forecast[..], &["--state", "state.yaml"]].concat());
        assert_eq!((code, dumped), (live_code, live), "{limit:?}: {err}");
        let note = "note: state.yaml contains an incomplete JobList, so the outcome of pods that may belong to such \
            objects is unknown\n";
        assert!(err.contains(note), "{err}");
    }
}
