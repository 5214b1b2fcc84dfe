//! A large cluster, read by commands in bounded memory: 50,000 devices and 20,000 pods that use them (`make large`),
//! and a tenth of that in every run.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::double::Double;
use crate::live::{double_without_objects, dump, files, only_reads};
use crate::process::Process;
use crate::program::tollgate;
use crate::state::{BUDGETS, CLAIMS, PODS, SLICES, claim, pod};

const PER_SLICE: usize = 125;

/// Devices with attributes as a driver publishes them.
fn slice(number: usize) -> Value {
    let devices: Vec<Value> = (0..PER_SLICE)
        .map(|device| {
            let uuid = format!("GPU-{number:08x}-{device:04x}");
            json!({
                "name": format!("gpu-{device}"),
                "attributes": {"model": {"string": "example-80g"}, "uuid": {"string": uuid}, "minor": {"int": device}, "driverVersion": {"version": "1.2.3"}},
                "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "108"}},
            })
        })
        .collect();
    let name = format!("node-{number}");
    json!({
        "metadata": {"name": name},
        "spec": {"driver": "gpu.example.com", "nodeName": name, "devices": devices,
                 "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}},
    })
}

/// A pod of typical size.
fn long_pod(namespace: &str, name: &str) -> Value {
    let mut object = pod(namespace, name);
    let environment: Vec<Value> = (0..20)
        .map(|number| json!({"name": format!("VARIABLE_{number}"), "value": "x".repeat(40)}))
        .collect();
    object["metadata"]["labels"] = json!({"app": "train", "job": name});
    object["metadata"]["managedFields"] = json!([{"manager": "kubelet", "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:containers": {"x".repeat(500): {}}}}}]);
    object["spec"]["containers"] = json!([{"name": "train", "image": "registry.example.com/train:1", "env": environment,
        "resources": {"claims": [{"name": "gpu"}]}}]);
    object
}

/// Runs a command. Returns the exit code, stdout, stderr and the peak memory in bytes.
fn run_command(double: &Double, folder: &Path, arguments: &[&str]) -> (i32, String, String, usize) {
    let mut command = tollgate(folder, arguments);
    command.env("KUBECONFIG", double.kubeconfig()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut read = {
        let mut stdout = child.stdout.take().expect("stdout");
        Some(std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).expect("UTF-8");
            text
        }))
    };
    let mut errors = String::new();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let code = loop {
        // The high-water mark only grows: the last one seen is the peak, but for a few milliseconds.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        // A process that is just being started has the memory of this one, and its name.
        let text = text.strip_prefix("Name:\ttollgate\n").unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: usize =
            mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default();
        most = most.max(kib << 10);
        if let Some(status) = child.try_wait().expect("waited") {
            break status.code().expect("a code");
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    child.stderr.take().expect("stderr").read_to_string(&mut errors).expect("UTF-8");
    (code, read.take().expect("once").join().expect("read"), errors, most)
}

#[test]
fn five_thousand_devices_and_two_thousand_pods() {
    check("large", 5_000, 2_000, 64 << 20);
}

#[test]
#[ignore = "minutes in a debug build: `make large`"]
fn fifty_thousand_devices_and_twenty_thousand_pods() {
    check("largest", 50_000, 20_000, 150 << 20);
}

/// Tenants control the size of their objects. Lists are read in small pages, and objects that are too large
/// to be stored are reported.
#[test]
fn claims_and_pods_with_tens_of_thousands_of_labels() {
    let (double, folder) = (double_without_objects("labels"), files("labels"));
    let labels: serde_json::Map<_, _> = (0..20_000).map(|number| (format!("l{number}"), json!(""))).collect();
    for number in 0..60 {
        let name = format!("train-{number}");
        let mut claim = claim("team", &name, "node-0", &format!("gpu-{number}"));
        claim["metadata"]["labels"] = Value::Object(labels.clone());
        double.put(CLAIMS, claim);
    }
    let mut large = pod("team", "train-0");
    large["metadata"]["labels"] = Value::Object(labels);
    double.put(PODS, large);
    double.put(PODS, pod("team", "train-1"));

    let audit = ["audit", "--kubernetes", "1.36", "-o", "json", "--now", "2026-02-01T00:00:00Z"];
    let (code, audited, err, memory) = run_command(&double, &folder, &audit);
    println!("audit: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&audited).expect("JSON");
    assert_eq!(report["summary"]["documents"], json!(62), "{err}");
    assert!(memory < 64 << 20, "{memory}");

    let process = Process::start(&double, &["--cluster"]);
    double.until_watched(CLAIMS);
    double.until_watched(PODS);
    double.until("it is ready", |_| process.get("/readyz").status == 200);
    println!("serve: {} MiB", process.peak_memory() >> 20);
    assert!(process.peak_memory() < 64 << 20, "{}", process.peak_memory());
    let ready = process.get("/readyz?verbose").text();
    assert!(ready.contains("1 object"), "{ready}");
    double.until("it is logged", |_| process.log().contains("to limit memory"));
    assert_eq!(process.metric("tollgate_watch_objects{resource=\"resourceclaims\"}"), Some(60));
    assert_eq!(process.metric("tollgate_watch_objects{resource=\"pods\"}"), Some(1));
}

fn many(prefix: &str, count: usize) -> Value {
    Value::Object((0..count).map(|number| (format!("{prefix}{number}"), json!(""))).collect())
}

/// Fields of an object that are not needed are not read, and do not count towards limits.
#[test]
fn labels_and_annotations_that_nobody_needs() {
    let (double, folder) = (double_without_objects("unneeded"), files("unneeded"));
    for number in 0..4 {
        let name = format!("train-{number}");
        let mut large = pod("team", &name);
        large["metadata"]["annotations"] = many("a", 20_000);
        large["metadata"]["managedFields"] = json!([{"fieldsV1": many("f", 20_000)}]);
        double.put(PODS, large);
        double.put(CLAIMS, claim("team", &name, "node-0", &format!("gpu-{number}")));
        double.put(
            BUDGETS,
            json!({"metadata": {"namespace": "team", "name": name, "labels": many("l", 20_000), "annotations": many("a", 20_000)},
                "spec": {"selector": {"matchLabels": {"app": "train"}}}, "status": {"disruptionsAllowed": 0}}),
        );
    }
    double.put(SLICES, slice(0));
    let process = Process::start(&double, &["--cluster"]);
    double.until("it is ready", |_| process.get("/readyz").status == 200);
    println!("serve: {} MiB", process.peak_memory() >> 20);
    assert!(process.peak_memory() < 64 << 20, "{}", process.peak_memory());
    for resource in ["pods", "poddisruptionbudgets"] {
        let objects = process.metric(&format!("tollgate_watch_objects{{resource=\"{resource}\"}}"));
        assert_eq!(objects, Some(4), "{resource}: {}", process.log());
    }
    assert_eq!(process.metric("tollgate_watch_unreadable_total{resource=\"pods\"}"), Some(0));
    let (code, out, err, memory) = run_command(&double, &folder, &IMPACT);
    println!("impact: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    let record: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(record["pods"].as_array().map(Vec::len), Some(4), "{err}");
    assert!(memory < 64 << 20, "{memory}");
}

/// Each object is within the limits, but all together are not: the largest are omitted, and the process
/// continues.
#[test]
fn many_objects_of_medium_size() {
    let double = double_without_objects("medium");
    for number in 0..30 {
        let (name, prefix) = (format!("train-{number}"), format!("label-of-{number}-"));
        let mut large = pod("team", &name);
        large["metadata"]["labels"] = many(&prefix, 9_000);
        double.put(PODS, large);
        double.put(
            BUDGETS,
            json!({"metadata": {"namespace": "team", "name": name},
                "spec": {"selector": {"matchLabels": many(&prefix, 9_000)}}, "status": {"disruptionsAllowed": 0}}),
        );
    }
    for number in 0..200 {
        double.put(PODS, pod("small", &format!("small-{number}")));
    }
    let process = Process::start(&double, &["--cluster", "--max-memory", "120MiB", "--max-body", "1MiB"]);
    double.until("it is ready", |_| process.get("/readyz").status == 200);
    println!("serve: {} MiB", process.peak_memory() >> 20);
    assert!(process.peak_memory() < 120 << 20, "{}", process.peak_memory());
    let (used, limit) = (
        process.metric("tollgate_state_bytes").expect("used"),
        process.metric("tollgate_state_limit_bytes").expect("a limit"),
    );
    assert!(used <= limit && limit < 24 << 20 && used > limit / 2, "{used} of {limit}");
    let pods = process.metric("tollgate_watch_objects{resource=\"pods\"}").expect("pods");
    assert!((200..225).contains(&pods), "{pods}");
    let unreadable = process.metric("tollgate_watch_unreadable_total{resource=\"pods\"}").expect("pods");
    assert!(unreadable >= 230 - pods, "{unreadable}");
    let ready = process.get("/readyz?verbose").text();
    assert!(ready.contains("[+]pods ok, ") && ready.contains("objects unreadable"), "{ready}");
    double.until("it is logged", |_| process.log().contains("it is among the largest of them"));
    // Once they are gone, everything is read again.
    for number in 0..30 {
        double.delete(PODS, &format!("team/train-{number}"));
        double.delete(BUDGETS, &format!("team/train-{number}"));
    }
    double.until("they are gone", |_| process.get("/readyz?verbose").text().contains("[+]pods ok\n"));
}

/// An object that is larger than what is read of one: it is named, and everything else is read.
#[test]
fn an_object_of_many_mebibytes() {
    let (double, folder) = (double_without_objects("mebibytes"), files("mebibytes"));
    for number in 0..5 {
        let name = format!("train-{number}");
        double.put(PODS, pod("team", &name));
        double.put(CLAIMS, claim("team", &name, "node-0", &format!("gpu-{number}")));
    }
    double.put(SLICES, slice(0));
    let huge = |name: &str| {
        let mut huge = pod("team", name);
        huge["metadata"]["annotations"] = json!({"a": "x".repeat(9 << 20)});
        huge
    };
    double.put(PODS, huge("train-2"));
    let process = Process::start(&double, &["--cluster"]);
    double.until("it is ready", |_| process.get("/readyz").status == 200);
    let objects = || process.metric("tollgate_watch_objects{resource=\"pods\"}");
    let verbose = || process.get("/readyz?verbose").text();
    assert_eq!(objects(), Some(4));
    assert!(verbose().contains("[+]pods ok, 1 object unreadable"), "{}", verbose());
    double.until("it is logged", |_| process.log().contains("has more than 8 MiB"));
    // The same while it is watched; the watch goes on.
    double.until_watched(PODS);
    double.put(PODS, huge("train-4"));
    double.put(PODS, pod("team", "train-5"));
    double.until("it is left out", |_| {
        verbose().contains("[+]pods ok, 2 objects unreadable") && objects() == Some(4)
    });
    assert_eq!(
        process.metric("tollgate_watch_failures_total{resource=\"pods\"}"),
        Some(0),
        "{}",
        process.log()
    );
    double.put(PODS, pod("team", "train-4"));
    double.until("it is back", |_| {
        verbose().contains("[+]pods ok, 1 object unreadable") && objects() == Some(5)
    });
    println!("serve: {} MiB", process.peak_memory() >> 20);
    assert!(process.peak_memory() < 80 << 20, "{}", process.peak_memory());

    let said = "error: Pod team/train-2 has more than 8 MiB; it is not read, to limit memory";
    for command in
        [&IMPACT[..], &["audit", "-o", "json", "--kubernetes", "1.36"], &["snapshot", "-o", "state.yaml"]]
    {
        let (code, out, err, memory) = run_command(&double, &folder, command);
        println!("{}: {} MiB", command[0], memory >> 20);
        assert!(code == 3 && err.contains(said), "{code} {err}");
        assert!(memory < 80 << 20, "{memory}");
        if command[0] == "audit" {
            let report: Value = serde_json::from_str(&out).expect("JSON");
            assert_eq!(report["audit"]["incomplete"][0], said.replace("error: ", ""), "{out}");
        }
    }
    let written = std::fs::read_to_string(folder.join("state.yaml")).expect("a snapshot");
    assert!(written.contains("# Pod team/train-2 has more than 8 MiB"));
}

const IMPACT: [&str; 10] = [
    "impact",
    "rule.yaml",
    "--now",
    "2026-02-01T00:00:00Z",
    "-o",
    "json",
    "--kubernetes",
    "1.36",
    "--feature-gates",
    "all",
];

/// Checks that commands report the same numbers from the cluster, a dump and a snapshot, within `max_memory`
/// bytes.
fn check(name: &str, devices: usize, pods_with_devices: usize, max_memory: usize) {
    let (double, folder) = (double_without_objects(name), files(name));
    for number in 0..devices / PER_SLICE {
        double.put(SLICES, slice(number));
    }
    for number in 0..pods_with_devices {
        let (name, namespace) = (format!("train-{number}"), format!("team-{}", number % 50));
        let (pool, device) = (number / PER_SLICE, number % PER_SLICE);
        double.put(CLAIMS, claim(&namespace, &name, &format!("node-{pool}"), &format!("gpu-{device}")));
        double.put(PODS, long_pod(&namespace, &name));
    }
    let impact = IMPACT;
    let (code, live, err, memory) = run_command(&double, &folder, &impact);
    println!("impact: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    let record: Value = serde_json::from_str(&live).expect("JSON");
    assert_eq!(record["devices"], json!({"published": devices, "allocated": pods_with_devices}));
    assert_eq!(record["pods"].as_array().map(Vec::len), Some(pods_with_devices));
    assert!(memory > 0 && memory < max_memory, "{memory}");

    let audit = ["audit", "--kubernetes", "1.36", "-o", "json", "--now", "2026-02-01T00:00:00Z"];
    let (code, audited, err, memory) = run_command(&double, &folder, &audit);
    println!("audit: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&audited).expect("JSON");
    assert_eq!(report["summary"]["documents"], json!(devices / PER_SLICE + 2 * pods_with_devices));
    assert!(memory > 0 && memory < max_memory, "{memory}");

    let (code, _, err, memory) = run_command(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    println!("snapshot: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    assert!(memory > 0 && memory < max_memory, "{memory}");
    only_reads(&double);

    // A dump of kubectl and a snapshot give the same numbers as the cluster.
    let dump = dump(&double, &folder).display().to_string();
    let (code, dumped, err, _) = run_command(&double, &folder, &[&impact[..], &["--state", &dump]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(dumped == live, "impact from a dump differs");
    let (code, dumped, err, _) =
        run_command(&double, &folder, &[&audit[..], &["--state", "state.yaml"]].concat());
    assert_eq!(code, 0, "{err}");
    let dumped: Value = serde_json::from_str(&dumped).expect("JSON");
    assert!(dumped["summary"] == report["summary"], "audit of a snapshot differs: {}", dumped["summary"]);

    double.refuse(&[("/pods", 403)]);
    for command in [&impact[..], &audit[..]] {
        let (code, _, err, _) = run_command(&double, &folder, command);
        assert!(code == 3 && err.contains("error: cannot list pods: the API server returned 403"), "{err}");
    }
}
