//! A large cluster, read by commands in bounded memory: 50,000 devices and 20,000 pods that use them (`make large`), and a
//! tenth of that in every run.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::double::Double;
use crate::live::{double_without_objects, dump, files, only_reads};
use crate::process::Process;
use crate::program::tollgate;
use crate::state::{CLAIMS, PODS, SLICES, claim, pod};

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

/// A pod as long as they are in a cluster.
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

/// Exit code, stdout, stderr and the most memory that it had, in bytes.
fn run(double: &Double, folder: &Path, arguments: &[&str]) -> (i32, String, String, usize) {
    let mut command = tollgate(folder, arguments);
    command
        .env("KUBECONFIG", double.kubeconfig())
        .env_remove("CI")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
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

/// Tenants decide how large their objects are: pages are asked for in parts, and what is too large to be kept is said.
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
    let (code, audited, err, memory) = run(&double, &folder, &audit);
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
    assert!(process.log().contains("to limit memory"), "{}", process.log());
    assert_eq!(process.metric("tollgate_watch_objects{resource=\"resourceclaims\"}"), Some(60));
    assert_eq!(process.metric("tollgate_watch_objects{resource=\"pods\"}"), Some(1));
}

/// Commands give the same numbers from the cluster, a dump and a snapshot, in less than `max_memory` bytes.
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
    let impact = [
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
    let (code, live, err, memory) = run(&double, &folder, &impact);
    println!("impact: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    let record: Value = serde_json::from_str(&live).expect("JSON");
    assert_eq!(record["devices"], json!({"published": devices, "allocated": pods_with_devices}));
    assert_eq!(record["pods"].as_array().map(Vec::len), Some(pods_with_devices));
    assert!(memory > 0 && memory < max_memory, "{memory}");

    let audit = ["audit", "--kubernetes", "1.36", "-o", "json", "--now", "2026-02-01T00:00:00Z"];
    let (code, audited, err, memory) = run(&double, &folder, &audit);
    println!("audit: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    let report: Value = serde_json::from_str(&audited).expect("JSON");
    assert_eq!(report["summary"]["documents"], json!(devices / PER_SLICE + 2 * pods_with_devices));
    assert!(memory > 0 && memory < max_memory, "{memory}");

    let (code, _, err, memory) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    println!("snapshot: {} MiB", memory >> 20);
    assert_eq!(code, 0, "{err}");
    assert!(memory > 0 && memory < max_memory, "{memory}");
    only_reads(&double);

    // A dump of kubectl and a snapshot give the same numbers as the cluster.
    let dump = dump(&double, &folder).display().to_string();
    let (code, dumped, err, _) = run(&double, &folder, &[&impact[..], &["--state", &dump]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(dumped == live, "impact from a dump differs");
    let (code, dumped, err, _) = run(&double, &folder, &[&audit[..], &["--state", "state.yaml"]].concat());
    assert_eq!(code, 0, "{err}");
    let dumped: Value = serde_json::from_str(&dumped).expect("JSON");
    assert!(dumped["summary"] == report["summary"], "audit of a snapshot differs: {}", dumped["summary"]);

    double.refuse(&[("/pods", 403)]);
    for command in [&impact[..], &audit[..]] {
        let (code, _, err, _) = run(&double, &folder, command);
        assert!(code == 3 && err.contains("error: cannot list pods: the API server returned 403"), "{err}");
    }
}
