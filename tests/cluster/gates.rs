//! The feature gates and served versions of a live cluster: in the server, and for `--kubernetes cluster`.

use std::path::Path;

use crate::double::Double;
use crate::process::Process;
use crate::program::{folder, tollgate};
use crate::running::until;

const SLICE: &str = "
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    taints:
    - {key: example.com/broken, effect: Never}
";

const RULE: &str = "
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: r}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/broken, effect: NoSchedule}
";

/// Runs a command against the double. Returns the exit code, stdout and stderr.
fn run_command(double: &Double, folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        tollgate(folder, arguments).env("KUBECONFIG", double.kubeconfig()).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

fn files(name: &str) -> std::path::PathBuf {
    let folder = folder(name);
    std::fs::write(folder.join("slice.yaml"), SLICE).expect("written");
    std::fs::write(folder.join("rule.yaml"), RULE).expect("written");
    folder
}

fn double(name: &str, minor: &str) -> Double {
    let double = Double::start(name);
    double.release(minor);
    double.serve_kinds("v1", &["ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"]);
    double
}

fn verbose(process: &Process) -> String {
    process.get("/readyz?verbose").text()
}

#[test]
fn a_server_uses_the_gates_that_the_api_server_reports() {
    let double = double("gates-read", "36");
    double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", true), ("WatchList", true)]);
    double.serve_kinds("v1beta2", &["DeviceTaintRule"]);
    let process = Process::start(&double, &["--cluster=labels"]);
    until("ready", || process.get("/readyz").status == 200);
    let text = verbose(&process);
    let expected = "[+]feature-gates ok (read from the API server: the defaults of 1.36 except \
        DRADeviceTaintRules=true; off: DRAListTypeAttributes, DRANodeAllocatableResources)";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains(
            "[+]release ok (the API server runs Kubernetes 1.36); DeviceTaintRule is served as v1beta2"
        ),
        "{text}"
    );
    assert_eq!(process.metric("tollgate_feature_gates_known"), Some(1));
    until("logged", || process.log().contains("feature gates read from the API server"));
    // They are read again with the release, and a change is used.
    double.report_gates(&[("DRADeviceTaints", false)]);
    until("read again", || verbose(&process).contains("except DRADeviceTaints=false"));
    // What cannot be read any more is what it was, and that is said.
    double.report_metrics(None);
    until("degraded", || {
        verbose(&process).contains("[!]feature-gates cannot refresh the feature gates (/metrics")
    });
    assert_eq!(process.get("/readyz").status, 200);
}

#[test]
fn a_server_says_which_gates_it_assumes() {
    for (name, code, metrics, why) in [
        ("gates-403", Some(403), None, "/metrics: the API server returned 403: /metrics is forbidden"),
        ("gates-404", None, None, "/metrics: the API server returned 404: /metrics not found"),
        (
            "gates-none",
            None,
            Some("up 1\n"),
            "/metrics contains no kubernetes_feature_enabled for a known feature gate",
        ),
    ] {
        let double = double(name, "35");
        double.report_metrics(metrics);
        double.refuse(&code.map(|code| ("/metrics", code)).into_iter().collect::<Vec<_>>());
        let process = Process::start(&double, &["--cluster=labels"]);
        until("ready", || process.get("/readyz").status == 200);
        let text = verbose(&process);
        let expected = format!("[!]feature-gates cannot read the feature gates ({why}");
        assert!(text.contains(&expected), "{text}");
        assert!(text.contains("assuming the defaults of 1.35; off: DRAConsumableCapacity, "), "{text}");
        assert_eq!(process.metric("tollgate_feature_gates_known"), Some(0));
        until("logged", || process.log().contains("assuming the defaults of 1.35"));
    }
}

#[test]
fn flags_win_over_what_the_api_server_reports() {
    let double = double("gates-flags", "36");
    double.report_gates(&[("DRADeviceTaints", true)]);
    let process = Process::start(&double, &["--cluster=labels", "--feature-gates", "DRADeviceTaints=false"]);
    until("ready", || process.get("/readyz").status == 200);
    let expected =
        "[!]feature-gates --feature-gates differs from what the API server reports (DRADeviceTaints=true);";
    assert!(verbose(&process).contains(expected), "{}", verbose(&process));
    until("read again", || double.count("/metrics") > 2);
    assert_eq!(process.log().matches("differs from what the API server reports").count(), 1, "said once");
}

#[test]
fn validate_judges_as_the_cluster_does() {
    let (double, folder) = (double("gates-validate", "36"), files("gates-validate"));
    double.report_gates(&[("DRADeviceTaints", false)]);
    let cluster = ["validate", "--kubernetes", "cluster", "slice.yaml"];
    let (code, out, note) = run_command(&double, &folder, &cluster);
    // The server drops the bad taint: nothing is denied.
    assert_eq!(code, 0, "{out}{note}");
    assert!(out.contains("unless the feature gate DRADeviceTaints is on (off on this API server)"), "{out}");
    let endpoint =
        format!("note: context double (http://127.0.0.1:{}): Kubernetes 1.36;", double.address.port());
    assert!(note.starts_with(&endpoint), "{note}");
    assert!(
        note.contains(
            "feature gates read from /metrics: the defaults of 1.36 except DRADeviceTaints=false; off: "
        ),
        "{note}"
    );
    double.report_gates(&[("DRADeviceTaints", true)]);
    let (code, out, _) = run_command(&double, &folder, &["validate", "--context", "double", "slice.yaml"]);
    assert_eq!(code, 1, "{out}");
    assert!(!out.contains("dropped-field"), "{out}");
    // A flag wins, and the difference is said.
    let (code, _, note) = run_command(
        &double,
        &folder,
        &[&cluster[..], &["--feature-gates", "DRADeviceTaints=false"]].concat(),
    );
    assert_eq!(code, 0);
    assert_eq!(
        note.matches("--feature-gates differs from what the API server reports (DRADeviceTaints=true)")
            .count(),
        1
    );
    // Nothing that cannot be read is taken for an answer in silence.
    double.refuse(&[("/metrics", 403), ("/apis/resource.k8s.io", 403)]);
    let (_, _, note) = run_command(&double, &folder, &cluster);
    assert!(
        note.contains("note: cannot read the feature gates (/metrics: the API server returned 403"),
        "{note}"
    );
    assert!(
        note.contains(
            "note: cannot read the served API versions (/apis/resource.k8s.io: the API server returned 403"
        ),
        "{note}"
    );
    double.refuse(&[("/version", 503)]);
    let (code, _, error) = run_command(&double, &folder, &cluster);
    assert_eq!(code, 3, "{error}");
    let (code, _, error) = run_command(&double, &folder, &["validate", "--context", "nobody", "slice.yaml"]);
    assert_eq!(code, 3, "{error}");
}

#[test]
fn discovery_decides_which_versions_are_served() {
    let (double, folder) = (double("gates-served", "36"), files("gates-served"));
    double.report_gates(&[("DRADeviceTaints", true)]);
    let arguments = ["validate", "--kubernetes", "cluster", "rule.yaml"];
    let (_, out, _) = run_command(&double, &folder, &arguments);
    let expected = "this API server does not serve DeviceTaintRule in resource.k8s.io/v1beta2; to enable it, start \
        kube-apiserver with --runtime-config=resource.k8s.io/v1beta2=true";
    assert!(out.contains(expected), "{out}");
    double.serve_kinds("v1beta2", &["DeviceTaintRule"]);
    let (_, out, _) = run_command(&double, &folder, &arguments);
    assert!(!out.contains("version-off-by-default"), "{out}");
}

#[test]
fn profiles_shows_the_running_server() {
    let (double, folder) = (double("gates-profiles", "36"), files("gates-profiles"));
    double.report_gates(&[("DRADeviceTaints", false), ("DRADeviceTaintRules", true)]);
    let (code, out, _) = run_command(&double, &folder, &["profiles", "cluster"]);
    assert_eq!(code, 0, "{out}");
    let row = |name: &str| out.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
    assert!(row("DRADeviceTaints").ends_with("  off (on by default)"), "{out}");
    assert!(row("DRADeviceTaintRules").ends_with("  on (off by default)"), "{out}");
    assert!(row("DRAPartitionableDevices").ends_with("  on by default"), "{out}");
    assert!(row("ResourceSlice").ends_with("  v1; not served: v1beta1, v1beta2"), "{out}");
    assert!(row("DeviceTaintRule").ends_with("  not served: v1alpha3, v1beta2"), "{out}");
    let (_, out, _) = run_command(&double, &folder, &["profiles", "cluster", "-o", "json"]);
    assert!(
        out.contains(r#"{"name":"DRADeviceTaints","default":true,"locked":false,"enabled":false}"#),
        "{out}"
    );
}

#[test]
fn nobody_asks_a_cluster_unless_told_to() {
    let (double, folder) = (double("gates-unasked", "36"), files("gates-unasked"));
    run_command(&double, &folder, &["validate", "--kubernetes", "1.36", "slice.yaml"]);
    run_command(&double, &folder, &["profiles", "1.36"]);
    assert_eq!(double.count(""), 0);
    let (code, _, error) = run_command(&double, &folder, &["serve", "--kubernetes", "cluster"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("--kubernetes cluster and --context require --cluster or --register"), "{error}");
}
