//! Policies that change while the program serves: on an event, on SIGHUP, on the timer; broken ones change nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};
use tollgate::Endpoint;

use crate::client::{Link, plain};
use crate::parity;
use crate::process::Process;
use crate::running::{Folder, Volume, until};

/// A policy that denies one key.
fn denying(key: &str) -> String {
    format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: deny}}\nspec:\n  deny:\n  - key: {key}\n"
    )
}

/// A claim in a namespace that tolerates one key.
fn claim(namespace: &str, key: &str) -> Vec<u8> {
    let toleration = json!({"key": key, "operator": "Exists", "effect": "NoSchedule"});
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": [toleration]}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "namespace": namespace, "name": "c",
        "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
        "resource": {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"},
        "object": {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": namespace}, "spec": {"devices": {"requests": [request]}}}}})
    .to_string()
    .into_bytes()
}

fn send_claim(link: &mut Link, namespace: &str, key: &str) -> Value {
    let reply = link.post("/validate", &claim(namespace, key)).expect("an answer");
    assert_eq!(reply.status, 200);
    let mut answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    answer["response"].take()
}

fn is_denied(link: &mut Link, key: &str) -> bool {
    send_claim(link, "ml", key)["allowed"] == false
}

/// The value of a line of the metrics.
fn metric(process: &Process, name: &str) -> i64 {
    let text = process.get("/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn serve(policy: &Path, more: &[&str]) -> Process {
    let policy = policy.to_str().expect("UTF-8");
    Process::start(&[&["--drain", "0s", "--log-level", "warn", "--policy", policy], more].concat())
}

#[test]
fn a_swapped_volume_is_seen_by_its_event() {
    let mut volume = Volume::new("policies", &[("a.yaml", &denying("a/b"))]);
    let process = serve(&volume.folder.0, &["--reload-interval", "1h"]);
    let mut link = process.client().connect().expect("connected");
    assert!(is_denied(&mut link, "a/b") && !is_denied(&mut link, "c/d"));
    let digest = |answer: &Value| answer["auditAnnotations"]["policy-digest"].as_str().map(str::to_owned);
    let first = digest(&send_claim(&mut link, "ml", "c/d")).expect("a digest");
    for round in 0..5 {
        let (denied, allowed) = if round % 2 == 0 { ("c/d", "a/b") } else { ("a/b", "c/d") };
        volume.replace(&[("a.yaml", &denying(denied))]);
        until("the new policies", || is_denied(&mut link, denied));
        assert!(!is_denied(&mut link, allowed));
    }
    // The digest is the same wherever it is told, and another one than before.
    let second = digest(&send_claim(&mut link, "ml", "c/d")).expect("a digest");
    assert_ne!(first, second);
    until("the metric", || metric(&process, "tollgate_policy_reloads_total{result=\"success\"}") == 6);
    assert_eq!(metric(&process, &format!("tollgate_policy_info{{digest=\"{second}\"}}")), 1);
    assert!(!process.get("/metrics").contains(&first));
    assert_eq!(metric(&process, "tollgate_policies"), 1);
    assert!(metric(&process, "tollgate_policy_last_success_timestamp_seconds") > 1_700_000_000);
    let verbose = process.get("/readyz?verbose");
    assert!(verbose.contains(&format!("[+]policies ok (1 policies, digest {second})\n")), "{verbose}");
    process.terminate();
    assert_eq!(process.end(), (Some(0), String::new()));
}

/// Policies that are reached through a symbolic link above their folder. Changing the link causes no event in
/// the folder.
struct Elsewhere {
    outer: Folder,
}

impl Elsewhere {
    fn new(name: &str) -> Elsewhere {
        let outer = Folder::new(name);
        for (generation, key) in [("one", "a/b"), ("two", "c/d")] {
            let folder = outer.0.join(generation).join("policies");
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("a.yaml"), denying(key)).expect("written");
        }
        std::os::unix::fs::symlink("one", outer.0.join("now")).expect("a link");
        Elsewhere { outer }
    }

    fn swap(&self) {
        let link = self.outer.0.join("next");
        std::os::unix::fs::symlink("two", &link).expect("a link");
        std::fs::rename(link, self.outer.0.join("now")).expect("swapped");
    }
}

#[test]
fn sighup_reloads() {
    let elsewhere = Elsewhere::new("hangup");
    let more = ["--reload-interval", "1h", "--log-level", "info"];
    let process = Process::start(
        &[
            &["--drain", "0s", "--policy", elsewhere.outer.0.join("now/policies").to_str().expect("UTF-8")],
            &more[..],
        ]
        .concat(),
    );
    let mut link = process.client().connect().expect("connected");
    assert!(is_denied(&mut link, "a/b"));
    elsewhere.swap();
    assert!(is_denied(&mut link, "a/b"), "nothing tells that the link leads elsewhere");
    process.signal(Signal::HUP);
    until("the new policies", || is_denied(&mut link, "c/d"));
    assert!(!is_denied(&mut link, "a/b"));
    // Asked again with nothing new: that is said, and nothing else happens.
    process.signal(Signal::HUP);
    process.terminate();
    let (code, log) = process.end();
    assert_eq!(code, Some(0));
    assert_eq!(log.matches("policies in use").count(), 2, "{log}");
}

#[test]
fn the_timer_reloads() {
    let elsewhere = Elsewhere::new("timer-policies");
    let process = serve(&elsewhere.outer.0.join("now/policies"), &["--reload-interval", "20ms"]);
    let mut link = process.client().connect().expect("connected");
    assert!(is_denied(&mut link, "a/b"));
    elsewhere.swap();
    until("the new policies", || is_denied(&mut link, "c/d"));
    process.terminate();
    assert_eq!(process.end(), (Some(0), String::new()));
}

#[test]
fn a_broken_set_under_load_changes_nothing_and_every_fault_is_told() {
    let good = denying("a/b");
    let mut volume = Volume::new("broken-policies", &[("a.yaml", &good), ("b.yaml", "# nothing yet\n")]);
    let process = serve(&volume.folder.0, &["--reload-interval", "1h"]);
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (client, stop, answered) = (process.client(), stop.clone(), answered.clone());
            std::thread::spawn(move || {
                let mut link = client.connect().expect("connected");
                while !stop.load(Ordering::Relaxed) {
                    // Denied by every good set of this test: a request that is allowed saw half a set.
                    assert!(is_denied(&mut link, "a/b"), "the last good set answers");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let under_load = || {
        let before = answered.load(Ordering::Relaxed);
        until("load", || answered.load(Ordering::Relaxed) > before + 40);
    };
    under_load();
    // One file is fine, one is not: its two faults are of two kinds.
    let broken = "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: more}\nspec:\n  denny:\n  - key: c/d\n  validations:\n  - expression: object.spec.(\n";
    volume.replace(&[("a.yaml", &denying("c/d")), ("b.yaml", broken)]);
    until("the failure", || metric(&process, "tollgate_policy_reloads_total{result=\"failure\"}") == 1);
    under_load();
    let mut link = process.client().connect().expect("connected");
    assert!(!is_denied(&mut link, "c/d"), "nothing of a broken set is used");
    assert_eq!(metric(&process, "tollgate_policy_reload_ok"), 0);
    let ready = plain(process.ops, "GET", "/readyz?verbose", "").expect("an answer");
    let file = volume.file("b.yaml").display().to_string();
    let places = [format!("{file}:5:3: spec.denny"), format!("{file}:8:29: spec.validations[0].expression")];
    assert_eq!(ready.status, 200, "the last good set serves well");
    assert!(
        ready.text().contains("[!]policies not reloaded; the last valid policies are in use: "),
        "{}",
        ready.text()
    );
    // An emptied folder and one without policies are no "no policies".
    volume.replace(&[]);
    until("the failure", || metric(&process, "tollgate_policy_reloads_total{result=\"failure\"}") == 2);
    volume.replace(&[("a.yaml", "# commented out\n"), ("b.yaml", "# as well\n")]);
    until("the failure", || metric(&process, "tollgate_policy_reloads_total{result=\"failure\"}") == 3);
    under_load();
    let both = format!("{good}  - key: c/d\n");
    volume.replace(&[("a.yaml", &both), ("b.yaml", "# nothing yet\n")]);
    until("the mended set", || is_denied(&mut link, "c/d"));
    until("it is told", || metric(&process, "tollgate_policy_reload_ok") == 1);
    assert!(process.get("/readyz?verbose").contains("[+]policies ok"));
    stop.store(true, Ordering::Relaxed);
    for thread in load {
        thread.join().expect("no request failed");
    }
    process.terminate();
    let (code, log) = process.end();
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<&str> = lines.iter().filter_map(|line| line["errors"].as_str()).collect();
    assert_eq!(told.len(), 3, "{log}");
    for place in places {
        assert!(told[0].contains(&place) && ready.text().contains(&place), "{place}: {}", told[0]);
    }
    assert!(told[1].contains("no such file or folder"), "{}", told[1]);
    assert!(told[2].contains("contains no policies"), "{}", told[2]);
}

#[test]
fn schemas_namespaces_and_new_folders_belong_to_it() {
    let folder = Folder::new("belongs");
    let at = |name: &str| folder.0.join(name);
    for name in ["policies", "schemas", "cluster"] {
        std::fs::create_dir(at(name)).expect("a folder");
    }
    let write = |name: &str, text: &str| std::fs::write(at(name), text).expect("written");
    write(
        "policies/parameters.yaml",
        "apiVersion: tollgate.dev/v1alpha1\nkind: ParameterPolicy\nmetadata: {name: p}\nspec:\n  schemas:\n  - {apiVersion: g/v1, kind: C, schemaFile: ../schemas/c.json}\n",
    );
    write(
        "policies/labels.yaml",
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: l}\nspec:\n  match: {namespaceSelector: {matchLabels: {team: ml}}}\n  allow: []\n",
    );
    write("schemas/c.json", r#"{"type": "object"}"#);
    let namespace = |team: &str| {
        format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: ml, labels: {{team: {team}}}}}}}\n")
    };
    write("cluster/namespaces.yaml", &namespace("web"));
    let namespaces = at("cluster/namespaces.yaml");
    let more = ["--reload-interval", "1h", "--namespaces", namespaces.to_str().expect("UTF-8")];
    let process = serve(&at("policies"), &more);
    let mut link = process.client().connect().expect("connected");
    assert!(!is_denied(&mut link, "a/b"));
    write("cluster/namespaces.yaml", &namespace("ml"));
    until("the new label", || is_denied(&mut link, "a/b"));
    assert!(
        send_claim(&mut link, "other", "a/b")["allowed"] == true,
        "a namespace that is not listed has no labels"
    );
    let digest = |link: &mut Link| send_claim(link, "ml", "a/b")["auditAnnotations"]["policy-digest"].take();
    let before = digest(&mut link);
    write("schemas/c.json", r#"{"type": "object", "required": ["x"]}"#);
    until("the new schema", || digest(&mut link) != before);
    // A folder that comes later, and files in it that come later still.
    std::fs::create_dir(at("policies/later")).expect("a folder");
    write("policies/later/more.yaml", &denying("x/y"));
    until("the new folder", || send_claim(&mut link, "other", "x/y")["allowed"] == false);
    write("policies/later/more.yaml", &denying("z/y"));
    until("the new file", || send_claim(&mut link, "other", "z/y")["allowed"] == false);
    // All of it goes, and comes again.
    std::fs::rename(at("policies"), at("aside")).expect("moved");
    until("the fault", || process.get("/readyz?verbose").contains("no such file or folder"));
    assert!(send_claim(&mut link, "other", "z/y")["allowed"] == false, "the last good set answers");
    std::fs::remove_file(at("aside/later/more.yaml")).expect("removed");
    std::fs::rename(at("aside"), at("policies")).expect("moved");
    until("the old folder", || send_claim(&mut link, "other", "z/y")["allowed"] == true);
    write("policies/labels.yaml", &denying("x/y"));
    until("the new file", || send_claim(&mut link, "other", "x/y")["allowed"] == false);
    process.terminate();
    assert_eq!(process.end().0, Some(0));
}

#[test]
fn labels_that_nobody_provides_are_reported() {
    let folder = Folder::new("no-labels");
    let policy = folder.0.join("policy.yaml");
    std::fs::write(&policy, denying("a/b")).expect("written");
    let process = serve(&policy, &["--reload-interval", "1h"]);
    assert!(process.get("/readyz?verbose").contains("[+]policies ok (1 policies"));
    let by_label =
        denying("a/b").replace("spec:\n", "spec:\n  match: {namespaceSelector: {matchLabels: {team: ml}}}\n");
    std::fs::write(&policy, by_label).expect("written");
    let expected = "a policy depends on namespace labels, which are not available";
    until("told", || process.get("/readyz?verbose").contains(&format!("[!]policies {expected}")));
    assert!(process.get("/readyz?verbose").ends_with("ok\n"), "still ready");
    process.terminate();
    let (code, log) = process.end();
    assert!(code == Some(0) && log.matches(expected).count() == 1, "{log}");
    // At start, too.
    let process = serve(&policy, &[]);
    assert!(process.get("/readyz?verbose").contains("--namespaces FILE (1 policies"));
    process.terminate();
    assert_eq!(process.end().1.matches(expected).count(), 1);
}

#[test]
fn policies_that_cannot_be_used_are_fatal_at_start() {
    let folder = Folder::new("fatal-policies");
    let start = |policy: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "off"])
            .args(["--policy", policy])
            .stdin(std::process::Stdio::null())
            .output()
            .expect("run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let path = folder.0.to_str().expect("UTF-8");
    let (code, said) = start(path);
    assert!(code == Some(3) && said.contains("no .yaml, .yml or .json file"), "{said}");
    std::fs::write(folder.0.join("a.yaml"), denying("a/b").replace("deny:", "denny:")).expect("written");
    let (code, said) = start(path);
    assert!(code == Some(3) && said.contains("a.yaml:5:3: spec.denny"), "{said}");
    let (code, said) = start("-");
    assert!(code == Some(2) && said.contains("must be a file or folder"), "{said}");
}

/// Runs the cases of `tests/cli/policy_parity.rs`, which compares `admit` with the command line.
#[test]
fn policy_cases_over_https_give_the_bytes_of_admit() {
    let folder = Folder::new("parity");
    let (policies, namespaces) = (folder.0.join("policies.yaml"), folder.0.join("namespaces.yaml"));
    std::fs::write(&policies, parity::POLICIES).expect("written");
    std::fs::write(&namespaces, parity::NAMESPACES).expect("written");
    let more = ["--namespaces", namespaces.to_str().expect("UTF-8"), "--rules", parity::RULES];
    let process = serve(&policies, &more);
    let mut link = process.client().connect().expect("connected");
    let reviews = parity::reviews(&parity::cases());
    let file = policies.to_str().expect("UTF-8");
    let (mut denied, mut patched) = (0, 0);
    for (endpoint, path) in [(Endpoint::Validate, "/validate"), (Endpoint::Mutate, "/mutate")] {
        for (review, expected) in reviews.iter().zip(parity::admitted(file, &reviews, endpoint)) {
            let reply = link.post(path, review.as_bytes()).expect("an answer");
            let expected = String::from_utf8(expected).expect("UTF-8");
            assert_eq!((reply.status, reply.text()), (200, expected), "{review}");
            denied += usize::from(reply.text().contains(r#""allowed":false"#));
            patched += usize::from(reply.text().contains(r#""patch":"#));
        }
    }
    assert!(reviews.len() >= 200 && denied > 20 && patched > 20, "{denied}, {patched} of {}", reviews.len());
    process.terminate();
    assert_eq!(process.end(), (Some(0), String::new()));
}

/// Compares the output of `examples/first.rs` with the README.
#[test]
fn the_readme_says_what_the_shipped_policies_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let process = serve(Path::new("policies"), &[]);
    let mut link = process.client().connect().expect("connected");
    let mut ask = |name: &str| {
        let review = std::fs::read(root.join(name)).expect("a recording");
        let reply = link.post("/validate", &review).expect("an answer");
        let mut answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
        answer["response"].take()
    };
    let good = ask("examples/recorded/good.json");
    assert!(good["allowed"] == true && good["warnings"].is_null(), "{good}");
    let bad = ask("examples/recorded/bad.json");
    assert_eq!((&bad["allowed"], &bad["status"]["code"]), (&json!(false), &json!(403)));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let mut shown = format!("and {} policies (policies/)\n\n", metric(&process, "tollgate_policies"));
    shown.push_str("POST /validate examples/recorded/good.json: allowed\n\n");
    shown.push_str("POST /validate examples/recorded/bad.json: denied\n");
    for cause in bad["status"]["details"]["causes"].as_array().expect("causes") {
        let text = |name: &str| cause[name].as_str().expect("a text").to_owned();
        shown.extend(["  ", &text("field"), ": ", &text("message"), "\n"]);
    }
    assert!(readme.contains(&shown), "{shown}");
    process.terminate();
    assert_eq!(process.end(), (Some(0), String::new()));
}

/// A policy that would run for minutes is stopped and its requests are denied, while other requests are
/// answered.
#[test]
fn slow_policies_do_not_keep_others_out() {
    let folder = Folder::new("slow");
    let slow = "object.metadata.finalizers.all(a, object.metadata.finalizers.all(b, object.metadata.finalizers.all(c, a + b + c != '')))";
    let policy = json!({"apiVersion": "tollgate.dev/v1alpha1", "kind": "TolerationPolicy", "metadata": {"name": "slow"},
        "spec": {"match": {"namespaces": ["slow"]}, "validations": [{"expression": slow}]}});
    std::fs::write(folder.0.join("slow.yaml"), policy.to_string()).expect("written");
    let process = serve(&folder.0, &[]);
    let mut review: Value = serde_json::from_slice(&claim("slow", "a/b")).expect("JSON");
    let names: Vec<String> = (0..10_000).map(|number| format!("example.com/f{number}")).collect();
    review["request"]["object"]["metadata"]["finalizers"] = json!(names);
    let review = Arc::new(review.to_string().into_bytes());
    let (stop, stopped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    // More of them at once than there are workers.
    let slow: Vec<_> = (0..4)
        .map(|_| {
            let (client, stop, stopped, review) =
                (process.client(), stop.clone(), stopped.clone(), review.clone());
            std::thread::spawn(move || {
                let mut link = client.connect().expect("connected");
                while !stop.load(Ordering::Relaxed) {
                    let reply = link.post("/validate", &review).expect("an answer");
                    assert_eq!(reply.status, 200);
                    assert!(reply.text().contains("exceeds the step limit"), "{}", reply.text());
                    stopped.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    until("slow requests", || stopped.load(Ordering::Relaxed) > 4);
    let mut link = process.client().connect().expect("connected");
    for _ in 0..20 {
        assert_eq!(send_claim(&mut link, "other", "a/b")["allowed"], true);
    }
    let before = stopped.load(Ordering::Relaxed);
    until("slow requests go on", || stopped.load(Ordering::Relaxed) > before);
    stop.store(true, Ordering::Relaxed);
    for thread in slow {
        thread.join().expect("every request was answered");
    }
    assert_eq!(metric(&process, "tollgate_panics_total"), 0);
    process.terminate();
    assert_eq!(process.end(), (Some(0), String::new()));
}
