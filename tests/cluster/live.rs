//! Commands that read a running cluster: what they list, what they say, and that they change nothing.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::double::Double;
use crate::program::{folder, tollgate};
use crate::state::{BUDGETS, CLAIMS, PODS, RULES, SLICES, claim, pod, slice};

const RULE: &str = "
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: drain}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/broken, effect: NoExecute, timeAdded: 2026-01-01T00:00:00Z}
";

/// Runs a command against the double. Returns the exit code, stdout and stderr.
pub(crate) fn run(double: &Double, folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run_in(double, folder, arguments, &[])
}

pub(crate) fn run_in(
    double: &Double,
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (i32, String, String) {
    let mut command = tollgate(folder, arguments);
    command.env("KUBECONFIG", double.kubeconfig()).envs(variables.iter().copied());
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

/// A double of a 1.36 API server without objects.
pub(crate) fn double_without_objects(name: &str) -> Double {
    let double = Double::start(name);
    serve_kinds(&double);
    double
}

fn serve_kinds(double: &Double) {
    double.release("36");
    double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", true)]);
    double.serve_kinds("v1", &["ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"]);
    double.serve_kinds("v1beta2", &["DeviceTaintRule"]);
    for collection in [SLICES, CLAIMS, RULES, PODS, BUDGETS, "/api/v1/namespaces", "/api/v1/nodes"] {
        double.serves(collection);
    }
    for resource in ["replicasets", "deployments", "statefulsets", "daemonsets"] {
        double.serves(&format!("/apis/apps/v1/{resource}"));
    }
    for resource in ["jobs", "cronjobs"] {
        double.serves(&format!("/apis/batch/v1/{resource}"));
    }
}

/// A double of a 1.36 API server with three pools of four devices; each of seven pods holds one.
pub(crate) fn double(name: &str) -> Double {
    let double = Double::start(name);
    fill(&double);
    double
}

/// Fills the double with the objects of the test cluster.
pub(crate) fn fill(double: &Double) {
    serve_kinds(double);
    for node in 0..3 {
        double.put(SLICES, slice(&format!("node-{node}"), 4));
    }
    for number in 0..7 {
        let (name, namespace) = (format!("p{number}"), if number < 4 { "ml" } else { "web" });
        let (pool, device) = (format!("node-{}", number % 3), format!("gpu-{}", number / 3));
        double.put(CLAIMS, claim(namespace, &name, &pool, &device));
        double.put(PODS, pod(namespace, &name));
    }
}

pub(crate) fn files(name: &str) -> PathBuf {
    let folder = folder(name);
    std::fs::write(folder.join("rule.yaml"), RULE).expect("written");
    folder
}

/// Writes the objects of the test cluster as a dump from kubectl.
pub(crate) fn dump(double: &Double, folder: &Path) -> PathBuf {
    let mut items = Vec::new();
    for (collection, api_version, kind) in [
        (SLICES, "resource.k8s.io/v1", "ResourceSlice"),
        (CLAIMS, "resource.k8s.io/v1", "ResourceClaim"),
        (RULES, "resource.k8s.io/v1beta2", "DeviceTaintRule"),
        (PODS, "v1", "Pod"),
        (BUDGETS, "policy/v1", "PodDisruptionBudget"),
    ] {
        for mut object in double.objects(collection) {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            items.push(object);
        }
    }
    let file = folder.join("dump.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(&file, list.to_string()).expect("written");
    file
}

pub(crate) fn only_reads(double: &Double) {
    let requests = double.requests();
    assert!(requests.iter().all(|line| line.starts_with("GET ")), "{requests:?}");
    assert_eq!(double.count("watch=true"), 0);
}

#[test]
fn impact_reads_the_current_context() {
    let (double, folder) = (double("live-impact"), files("live-impact"));
    double.page(2);
    let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("total: 7 of 7 pods evicted in 2 namespaces"), "{out}");
    assert!(out.contains("(1.36, at "), "the profile is that of the cluster: {out}");
    let first =
        format!("note: context double (http://127.0.0.1:{}): Kubernetes 1.36;", double.address.port());
    assert!(err.starts_with(&first), "{err}");
    only_reads(&double);
    assert!(double.count("/pods?limit=500&continue=2") == 1, "{:?}", double.requests());
    // Another release is a question, not a mistake.
    let (code, out, _) = run(&double, &folder, &["impact", "rule.yaml", "--kubernetes", "1.37"]);
    assert!(code == 0 && out.contains("(1.37, at ") && !out.contains("(1.36"), "{out}");
    // The same numbers as from a dump, which does not contain the feature gates.
    let at = [
        "impact",
        "rule.yaml",
        "--at",
        "2026-01-01T00:00:00Z",
        "--kubernetes",
        "1.36",
        "--feature-gates",
        "all",
        "-o",
        "json",
    ];
    let (_, live, _) = run(&double, &folder, &at);
    let dump = dump(&double, &folder);
    let (code, dumped, _) =
        run(&double, &folder, &[&at[..], &["--state", &dump.display().to_string()]].concat());
    assert_eq!((code, live), (0, dumped));
}

#[test]
fn ci_must_name_the_context() {
    let (double, folder) = (double("live-ci"), files("live-ci"));
    let impact = ["impact", "rule.yaml"];
    let (code, out, err) = run_in(&double, &folder, &impact, &[("CI", "true")]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("CI is set; choose the cluster with --context NAME, or pass a dump with --state"),
        "{err}"
    );
    assert!(double.requests().is_empty(), "nothing was asked");
    let named = [&impact[..], &["--context", "double"]].concat();
    assert_eq!(run_in(&double, &folder, &named, &[("CI", "true")]).0, 0);
    assert_eq!(run_in(&double, &folder, &impact, &[("CI", "1"), ("TOLLGATE_CONTEXT", "double")]).0, 0);
    assert_eq!(run_in(&double, &folder, &impact, &[("CI", "false")]).0, 0);
    assert_eq!(run_in(&double, &folder, &impact, &[("CI", "")]).0, 0);
}

#[test]
fn what_cannot_be_listed_is_said() {
    let (double, folder) = (double("live-403"), files("live-403"));
    double.refuse(&[(PODS, 403)]);
    let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml", "-o", "json"]);
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("error: cannot list pods: the API server returned 403: /api/v1/pods is forbidden"),
        "{err}"
    );
    let record: Value = serde_json::from_str(&out).expect("JSON");
    assert!(
        record["incomplete"][0].as_str().is_some_and(|why| why.starts_with("cannot list pods: ")),
        "{out}"
    );
    assert_eq!(record["devices"]["published"], 12);
    assert_eq!(record["condition"], Value::Null, "what the controller will write is not known");
    let (_, out, _) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert!(out.contains("total: at least 0 pods evicted\n"), "{out}");
    assert!(out.contains("\nat least 12 published") && !out.contains("status:"), "{out}");
    // An error that may pass is tried again before it is one.
    double.refuse(&[(CLAIMS, 503)]);
    let before = double.count(CLAIMS);
    let (code, _, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert!(code == 3 && err.contains("cannot list resourceclaims: the API server returned 503"), "{err}");
    assert_eq!(double.count(CLAIMS) - before, 3);
    // A page in the middle.
    double.refuse(&[]);
    double.page(2);
    double.break_lists_after(4, 500);
    let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("cannot list pods: the API server returned 500: etcdserver: request timed out (after 4"),
        "{err}"
    );
    assert!(err.contains("some objects could not be read; more devices and pods may be affected"), "{err}");
    assert!(out.contains("total: "), "what was read is reported: {out}");
}

#[test]
fn what_is_not_served_is_no_error() {
    let folder = files("live-served");
    let double = Double::start("live-served");
    double.release("34");
    double.serve_kinds("v1", &["ResourceSlice", "ResourceClaim"]);
    for collection in [SLICES, CLAIMS, PODS, BUDGETS, "/api/v1/nodes"] {
        double.serves(collection);
    }
    double.put(SLICES, slice("node-1", 4));
    let rule = RULE.replace("v1beta2", "v1alpha3");
    std::fs::write(folder.join("rule.yaml"), rule).expect("written");
    let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("note: this API server does not serve devicetaintrules"), "{err}");
    assert!(out.contains("4 published"), "{out}");
    let first = "this API server does not serve DeviceTaintRule, so the rule has no effect\n";
    assert!(out.starts_with(first) && !out.contains("status:"), "{out}");
    assert_eq!(double.count("devicetaintrules"), 0, "discovery has it not: it is not asked for");
}

#[test]
fn what_every_api_server_serves_is_not_missing() {
    let (double, folder) = (double("live-core"), files("live-core"));
    for (collection, resource) in [(PODS, "pods"), (BUDGETS, "poddisruptionbudgets")] {
        double.refuse(&[(collection, 404)]);
        let (code, _, err) = run(&double, &folder, &["impact", "rule.yaml"]);
        let expected = format!("error: cannot list {resource}: the API server returned 404");
        assert!(code == 3 && err.contains(&expected), "{code} {err}");
    }
}

#[test]
fn a_response_that_is_no_list_is_an_error() {
    let (double, folder) = (double("live-no-list"), files("live-no-list"));
    let not_json = "the response is not JSON (is there a login proxy in front of the API server?)";
    for (text, expected) in [
        (r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#, "expected a PodList, got Status"),
        (r#"{"kind":"NodeList","apiVersion":"v1","items":[]}"#, "expected a PodList, got NodeList"),
        (r#"{"items":[]}"#, "expected a PodList, got an object without a kind"),
        (r#"{"kind":"PodList","items":{}}"#, "`items` of the PodList is not a list"),
        ("[]", "expected a PodList, got an array"),
        ("<html>Log in</html>", not_json),
    ] {
        double.answer_with(PODS, text);
        let (code, _, err) = run(&double, &folder, &["impact", "rule.yaml"]);
        let expected = format!("error: cannot list pods: {expected}\n");
        assert!(code == 3 && err.contains(&expected), "{code} {err}");
    }
    double.answer_with(PODS, r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}"#);
    let (code, _, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert_eq!(code, 0, "Go writes an empty list as null: {err}");
    double.answer_with("/version", "<html>Log in</html>");
    let (code, _, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert!(code == 3 && err.contains(not_json) && !err.contains("cannot reach"), "{code} {err}");
}

#[test]
fn a_list_that_expires_goes_on() {
    for goes_on in [true, false] {
        let name = format!("live-410-{goes_on}");
        let (double, folder) = (double(&name), files(&name));
        double.page(2);
        double.expire_next_page(goes_on);
        let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml"]);
        assert_eq!(code, 0, "{err}");
        assert!(err.contains("resourceslices: the list expired while it was read"), "{err}");
        assert!(out.contains("total: 7 of 7 pods evicted in 2 namespaces"), "{out}");
        assert!(out.contains("12 published"), "{out}");
    }
}

#[test]
fn an_object_that_cannot_be_read_is_said() {
    let (double, folder) = (double("live-unreadable"), files("live-unreadable"));
    double.put(
        PODS,
        json!({"metadata": {"name": "x", "namespace": "ml", "uid": "u"}, "spec": {"resourceClaims": "r"}}),
    );
    let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("error: Pod ml/x: spec.resourceClaims: is not a list"), "{err}");
    assert!(out.contains("total: at least 7 pods evicted"), "{out}");
}

/// The gates and versions of a cluster are in its snapshot, which gives the same result.
#[test]
fn a_snapshot_is_assessed_as_its_cluster() {
    let (double, folder) = (double("live-recorded"), files("live-recorded"));
    let impact = ["impact", "rule.yaml", "--at", "2026-01-01T00:00:00Z"];
    let recorded = [&impact[..], &["--state", "state.yaml"]].concat();
    for gates in [Some(true), Some(false), None] {
        let reported = gates.map(|is_on| [("DRADeviceTaints", true), ("DRADeviceTaintRules", is_on)]);
        double.report_gates(&reported.into_iter().flatten().collect::<Vec<_>>());
        let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
        assert_eq!(code, 0, "{err}");
        for more in [&[][..], &["-o", "json"], &["--kubernetes", "1.36"], &["--feature-gates", "all"]] {
            let (_, live, _) = run(&double, &folder, &[&impact[..], more].concat());
            let (code, out, err) = run(&double, &folder, &[&recorded[..], more].concat());
            assert_eq!((code, out.as_str()), (0, live.as_str()), "{gates:?} {more:?}: {err}");
        }
        let (_, _, err) = run(&double, &folder, &recorded);
        let expected = match gates {
            Some(true) => {
                "note: checking against 1.36, the release of the dump; feature gates recorded in the dump: the defaults of \
                 1.36 except DRADeviceTaintRules=true; off: "
            }
            Some(false) => {
                "; feature gates recorded in the dump: the defaults of 1.36; off: DRADeviceTaintRules, "
            }
            None => {
                "; its feature gates are not known (/metrics contains no kubernetes_feature_enabled for a known feature gate"
            }
        };
        assert!(err.contains(expected), "{gates:?}: {err}");
    }
    let (code, out, err) = run(&double, &folder, &["validate", "state.yaml"]);
    assert!(code == 0 && !out.contains("unreadable"), "other readers skip it: {out}{err}");
    // `taint` prints the version that this cluster serves.
    let taint = ["taint", "gpu.example.com", "example.com/broken", "--state", "state.yaml"];
    let (code, out, err) = run(&double, &folder, &taint);
    assert!(code == 0 && out.starts_with("apiVersion: resource.k8s.io/v1beta2\n"), "{out}{err}");
    // Another release than its own has no gates of this cluster.
    let (_, out, err) = run(&double, &folder, &[&recorded[..], &["--kubernetes", "1.37"]].concat());
    assert!(out.contains("(1.37, at ") && !err.contains("recorded"), "{out}{err}");
}

/// A release that is named and is that of the cluster is the cluster's, with its gates and versions.
#[test]
fn naming_the_release_of_the_cluster_changes_nothing() {
    let (double, folder) = (double("live-own-release"), files("live-own-release"));
    double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", false)]);
    let impact = ["impact", "rule.yaml", "--kubernetes"];
    let (code, out, err) = run(&double, &folder, &[&impact[..], &["1.36"]].concat());
    assert_eq!(code, 0, "{err}");
    let first = "the feature gate DRADeviceTaintRules is off on this API server, so the rule has no effect\n";
    assert!(out.starts_with(first), "{out}");
    let (_, out, _) = run(&double, &folder, &[&impact[..], &["1.36,1.37"]].concat());
    assert!(out.starts_with(first) && out.matches("has no effect").count() == 1, "{out}");
    let chosen = [&impact[..], &["1.36", "--feature-gates", "all"]].concat();
    let (_, out, _) = run(&double, &folder, &chosen);
    assert!(out.starts_with("DeviceTaintRule drain"), "{out}");
    double.put(RULES, json!({"metadata": {"name": "stored"}, "spec": {
        "deviceSelector": {"driver": "gpu.example.com"}, "taint": {"key": "example.com/a", "effect": "NoSchedule"}}}));
    for releases in ["1.36", "1.36,1.37"] {
        let (_, out, err) = run(&double, &folder, &["audit", "--kubernetes", releases]);
        assert!(out.contains("DRADeviceTaintRules is off on this API server"), "{releases}: {out}{err}");
    }
    // A newer server is judged by the newest release that is known, which is not its own.
    double.release("99");
    let (_, out, _) = run(&double, &folder, &[&impact[..], &["1.37"]].concat());
    assert!(out.starts_with("DeviceTaintRule drain"), "{out}");
}

/// Rules can be stored where nothing acts on them.
#[test]
fn a_rule_that_does_nothing_is_said_to() {
    let (double, folder) = (double("live-inert"), files("live-inert"));
    double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", false)]);
    let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert_eq!(code, 0, "{err}");
    let first = "the feature gate DRADeviceTaintRules is off on this API server, so the rule has no effect\n\
                 DeviceTaintRule drain";
    assert!(out.starts_with(first), "{out}");
    assert!(out.contains("total: 7 of 7 pods would be evicted in 2") && !out.contains("status:"), "{out}");
    let (_, out, _) = run(&double, &folder, &["impact", "rule.yaml", "-o", "json"]);
    let record: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(record["noEffect"], "the feature gate DRADeviceTaintRules is off on this API server");
    assert_eq!(record["condition"], Value::Null);
    // Neither is one printed without a word.
    let taint = ["taint", "gpu.example.com", "example.com/broken", "--kubernetes", "cluster"];
    let (code, _, err) = run(&double, &folder, &taint);
    assert_eq!(code, 0, "{err}");
    let warning = "warning: the feature gate DRADeviceTaintRules is off on this API server, so the rule has no effect\n";
    assert!(err.ends_with(warning), "{err}");
    let (code, out, _) = run(&double, &folder, &["validate", "rule.yaml", "--kubernetes", "cluster"]);
    assert!(code == 0 && out.contains("warning[rule-without-effect]"), "{out}");
    // With everything off no rule does anything; a wish on the command line is followed.
    let (_, out, _) = run(&double, &folder, &["impact", "rule.yaml", "--feature-gates", "all"]);
    assert!(out.starts_with("DeviceTaintRule drain") && out.contains("status:"), "{out}");
    double.report_gates(&[("DRADeviceTaints", false), ("DRADeviceTaintRules", true)]);
    let (_, out, _) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert!(
        out.starts_with(
            "the feature gate DRADeviceTaints is off on this API server, so the rule has no effect"
        ),
        "{out}"
    );
}

/// Without permission to read `/metrics`, the feature gates are unknown, so a rule may have an effect.
#[test]
fn a_rule_behind_unknown_gates_is_assessed_as_if_they_were_on() {
    let (double, folder) = (double("live-unknown-gates"), files("live-unknown-gates"));
    double.refuse(&[("/metrics", 403)]);
    let (code, out, err) = run(&double, &folder, &["impact", "rule.yaml"]);
    assert_eq!(code, 0, "{err}");
    let depends = "the API server does not report its feature gates; the rule has no effect unless the feature \
        gate DRADeviceTaintRules is on (off by default in Kubernetes 1.36)";
    assert!(
        out.starts_with(&format!("{depends}; this forecast assumes that all feature gates are on\n")),
        "{out}"
    );
    assert!(out.contains("total: 7 of 7 pods would be evicted in 2") && out.contains("status:"), "{out}");
    assert!(err.contains("cannot read the feature gates (/metrics: the API server returned 403"), "{err}");
    let (_, out, _) = run(&double, &folder, &["impact", "rule.yaml", "-o", "json"]);
    let record: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&record["noEffect"], &record["dependsOn"]), (&Value::Null, &json!(depends)));
    assert_eq!(record["totals"]["evicted"], 7);
    let (code, _, _) = run(&double, &folder, &["impact", "rule.yaml", "--max", "pods=1"]);
    assert_eq!(code, 1, "a limit holds as if the gate were on");
    let taint = ["taint", "gpu.example.com", "example.com/broken", "--kubernetes", "cluster"];
    let (code, _, err) = run(&double, &folder, &taint);
    assert!(code == 0 && err.ends_with(&format!("warning: {depends}\n")), "{err}");
    let (code, out, _) = run(&double, &folder, &["validate", "rule.yaml", "--kubernetes", "cluster"]);
    assert!(code == 0 && out.contains("warning[rule-without-effect]") && out.contains(depends), "{out}");
    // Whoever knows the gates says so.
    let (_, out, _) = run(&double, &folder, &["impact", "rule.yaml", "--feature-gates", "default"]);
    assert!(out.contains("the rule has no effect\n") && out.contains("would be evicted"), "{out}");
}

#[test]
fn taint_says_that_its_version_is_not_served() {
    let folder = files("live-taint");
    let double = Double::start("live-taint");
    double.release("36");
    double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", true)]);
    double.serve_kinds("v1", &["ResourceSlice", "ResourceClaim"]);
    let taint = ["taint", "gpu.example.com", "example.com/broken", "--kubernetes", "cluster"];
    let (code, out, err) = run(&double, &folder, &taint);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("apiVersion: resource.k8s.io/v1beta2\n"), "{out}");
    let warning = "warning: this API server does not serve DeviceTaintRule in resource.k8s.io/v1beta2; to enable it, start \
        kube-apiserver with --runtime-config=resource.k8s.io/v1beta2=true\n";
    assert!(err.ends_with(warning), "{err}");
    double.serve_kinds("v1beta2", &["DeviceTaintRule"]);
    let (_, _, err) = run(&double, &folder, &taint);
    assert!(!err.contains("warning:"), "{err}");
}
