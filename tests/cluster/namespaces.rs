//! `--cluster`: the release of the API server, and the labels of namespaces, through everything a watch can suffer.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::cluster::{Cluster, ClusterTarget, LabelsInCache, NamespaceLabelWatch, Timing};

use crate::double::Double;
use crate::running::{Folder, until};
use crate::webhook::Webhook;

const NAMESPACES: &str = "/api/v1/namespaces";

/// A policy that forbids all tolerations in namespaces with the label `team: ml`.
const POLICY: &str = "
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: strict}
spec:
  match: {namespaceSelector: {matchLabels: {team: ml}}}
  action: Deny
  allow: []
";

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

fn namespace(name: &str, team: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"team": team}, "annotations": {"secret": "not for us"}},
        "spec": {"finalizers": ["kubernetes"]},
    })
}

/// A server with the policy, or with another one.
struct Fixture(Webhook);

impl std::ops::Deref for Fixture {
    type Target = Webhook;

    fn deref(&self) -> &Webhook {
        &self.0
    }
}

impl Fixture {
    fn start(name: &str, double: &Double, arguments: &[&str]) -> Fixture {
        let policy = Some(POLICY).filter(|_| !arguments.contains(&"--policy"));
        let arguments = [&["--cluster"], arguments].concat();
        Fixture(Webhook::start(&format!("namespaces-{name}"), double, policy, &arguments))
    }

    fn send_review(&self, namespace: &str) -> Value {
        self.0.send_review(&review(namespace))
    }

    /// The code of the denial; 0 if there is none.
    fn code(&self, namespace: &str) -> i64 {
        self.send_review(namespace)["status"]["code"].as_i64().unwrap_or_default()
    }

    fn lists(&self) -> Option<i64> {
        self.process.metric(r#"tollgate_watch_lists_total{resource="namespaces"}"#)
    }
}

fn double(name: &str) -> Double {
    let double = Double::start(name);
    double.put(NAMESPACES, namespace("a", "ml"));
    double.put(NAMESPACES, namespace("b", "web"));
    double.put(NAMESPACES, namespace("c", "ml"));
    double
}

#[test]
fn labels_of_a_watched_cluster_select_policies() {
    let double = double("labels");
    double.page(1);
    double.refuse(&[(NAMESPACES, 403)]);
    let fixture = Fixture::start("labels", &double, &[]);
    // Not ready, and no verdict, before everything was read once.
    until("refused", || {
        fixture
            .process
            .get("/readyz?verbose")
            .text()
            .contains("[-]namespaces not listed yet: the API server returned 403")
    });
    assert_eq!(fixture.process.get("/readyz").status, 503);
    assert_eq!(fixture.code("a"), 500, "a lookup that fails is an error and not `no match`");
    double.refuse(&[]);
    fixture.until_ready();
    assert_eq!([fixture.code("a"), fixture.code("b"), fixture.code("c")], [403, 0, 403]);
    double.until_watched(NAMESPACES);
    double.put(NAMESPACES, namespace("b", "ml"));
    until("the change is seen", || fixture.code("b") == 403);
    double.put(NAMESPACES, namespace("b", "web"));
    until("the change is seen", || fixture.code("b") == 0);
    double.delete(NAMESPACES, "b");
    until("it is gone", || fixture.code("b") == 500);
    // Only metadata was asked for, in every list, watch and lookup.
    assert_eq!(double.count(NAMESPACES), double.count("PartialObjectMetadata"));
    assert!(double.count("continue=") >= 2);
}

#[test]
fn a_namespace_that_the_watch_has_not_told_of_is_asked_for() {
    let double = double("late");
    let fixture = Fixture::start("late", &double, &[]);
    fixture.until_ready();
    double.until_watched(NAMESPACES);
    double.mute(true);
    double.put(NAMESPACES, namespace("late", "ml"));
    double.put(NAMESPACES, namespace("tame", "web"));
    let requests = fixture.process.metric(
        r#"tollgate_requests_total{webhook="validate",resource="resourceclaims",operation="CREATE",decision="denied"}"#,
    );
    assert_eq!([fixture.code("late"), fixture.code("tame")], [403, 0]);
    assert!(double.count("GET /api/v1/namespaces/late") > 0);
    assert_eq!(
        fixture.process.metric(
            r#"tollgate_requests_total{webhook="validate",resource="resourceclaims",operation="CREATE",decision="denied"}"#
        ),
        Some(requests.unwrap_or_default() + 1),
        "one request is one decision"
    );
    // A namespace that is not there, an API server that does not answer: errors.
    assert_eq!(fixture.code("never"), 500);
    double.refuse(&[("/api/v1/namespaces/late", 500)]);
    assert_eq!(fixture.code("late"), 500);
    assert_eq!(fixture.code("../x"), 422);
    assert_eq!(double.count("/api/v1/namespaces/.."), 0, "what a user sends becomes no path");
    double.refuse(&[]);
    double.mute(false);
    until("the watch tells", || {
        let asked = double.count("GET /api/v1/namespaces/late");
        fixture.code("late") == 403 && double.count("GET /api/v1/namespaces/late") == asked
    });
}

#[test]
fn an_api_server_that_is_gone_leaves_what_was_known_with_its_age() {
    let double = double("gone");
    let fixture = Fixture::start("gone", &double, &[]);
    fixture.until_ready();
    double.until_watched(NAMESPACES);
    assert!(fixture.send_review("a")["auditAnnotations"].get("namespace-labels-age").is_none());
    double.stop_listening();
    double.put(NAMESPACES, namespace("b", "ml"));
    double.delete(NAMESPACES, "c");
    until("a second has passed", || {
        let answer = fixture.send_review("a");
        assert_eq!(answer["status"]["code"], 403, "still judged by what was known");
        let age = answer["auditAnnotations"]["namespace-labels-age"].as_str().unwrap_or_default().to_owned();
        age.strip_suffix('s').and_then(|age| age.parse::<u64>().ok()).is_some_and(|age| age >= 1)
    });
    let answer = fixture.send_review("a");
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("s old, because the watch on namespaces is interrupted"), "{warnings}");
    assert_eq!(fixture.send_review("b")["allowed"], true);
    assert!(fixture.send_review("b").get("warnings").is_none(), "nothing to tell whom nothing was refused");
    // It stays ready: what is old is better than nobody.
    let verbose = fixture.process.get("/readyz?verbose");
    assert!(
        verbose.status == 200 && verbose.text().contains("the watch is interrupted"),
        "{}",
        verbose.text()
    );
    assert_eq!(fixture.process.metric(r#"tollgate_watch_ok{resource="namespaces"}"#), Some(0));
    double.listen_again();
    until("what changed meanwhile is seen", || fixture.code("b") == 403 && fixture.code("c") == 500);
    until("it is current", || {
        fixture.process.metric(r#"tollgate_watch_ok{resource="namespaces"}"#) == Some(1)
    });
    assert!(fixture.send_review("a")["auditAnnotations"].get("namespace-labels-age").is_none());
    assert_eq!(fixture.lists(), Some(1), "it went on where it was");
}

#[test]
fn broken_watches_go_on_and_forgotten_versions_are_listed_again() {
    let double = double("broken");
    let fixture = Fixture::start("broken", &double, &[]);
    fixture.until_ready();
    // Ended in good order, cut in the middle: no list, nothing missed.
    for (round, break_it) in
        [Double::end_watches as fn(&Double), Double::close_connections].into_iter().enumerate()
    {
        double.until_watched(NAMESPACES);
        let name = format!("new-{round}");
        double.mute(true);
        double.put(NAMESPACES, namespace(&name, "ml"));
        break_it(&double);
        double.mute(false);
        let lookup = format!("GET /api/v1/namespaces/{name}");
        until("the change is seen", || {
            let asked = double.count(&lookup);
            fixture.code(&name) == 403 && double.count(&lookup) == asked
        });
    }
    assert_eq!(fixture.lists(), Some(1));
    // A bookmark is where the next watch begins: what is forgotten before it is not missed.
    double.until_watched(NAMESPACES);
    double.forget();
    double.bookmark(NAMESPACES);
    let watches = double.count("watch=true");
    double.end_watches();
    double.until("another watch", |double| double.count("watch=true") > watches);
    double.until_watched(NAMESPACES);
    // Forgotten and told nothing: 410, and everything is listed again.
    double.mute(true);
    double.delete(NAMESPACES, "c");
    double.put(NAMESPACES, namespace("b", "ml"));
    double.forget();
    double.end_watches();
    double.mute(false);
    until("listed again", || fixture.lists() == Some(2));
    assert_eq!([fixture.code("a"), fixture.code("b"), fixture.code("c")], [403, 403, 500]);
}

#[test]
fn a_watch_without_a_word_is_given_up() {
    let double = double("silent");
    let timing = Timing {
        min_backoff: Duration::from_millis(5),
        max_backoff: Duration::from_millis(50),
        silence_timeout: Duration::from_millis(100),
        ..Timing::default()
    };
    let cluster = Cluster::start_without_connecting(
        ClusterTarget { kubeconfig: Some(&double.kubeconfig()), context: None },
        timing,
    )
    .expect("a kubeconfig");
    let namespaces = NamespaceLabelWatch::new(&cluster, 1 << 20);
    assert_eq!(double.count(""), 0, "nothing is asked before somebody needs it");
    namespaces.start();
    until("read", || matches!(namespaces.labels("a"), LabelsInCache::Known(_)));
    until("given up and begun again", || double.count("watch=true") > 2);
    until("told", || namespaces.status().failed > 1);
    assert_eq!(namespaces.status().lists, 1);
}

#[test]
fn the_release_of_the_api_server_picks_the_profile() {
    let mut releases = tollgate::Profile::ALL.iter().filter(|profile| profile.is_release);
    let newest = releases.next_back().expect("a release").name;
    for (minor, profile, says) in [
        ("35", "1.35", "ok (the API server runs Kubernetes 1.35)"),
        ("36+", "1.36", "ok (the API server runs Kubernetes 1.36+)"),
        ("99", newest, &*format!("newer than all supported releases; checking against {newest}")),
        ("30", "1.33", "older than all supported releases; checking against 1.33"),
        ("?", "kep-5055", "which is not known; checking against the default profile"),
    ] {
        let double = double("release");
        double.release(minor);
        let fixture = Fixture::start("release", &double, &[]);
        fixture.until_ready();
        let verbose = fixture.process.get("/readyz?verbose").text();
        assert!(verbose.contains(&format!("(profiles {profile})")) && verbose.contains(says), "{verbose}");
    }
    // Who is told which release it is does not ask.
    let double = double("named-release");
    let fixture = Fixture::start("release", &double, &["--kubernetes", "1.34"]);
    fixture.until_ready();
    assert!(fixture.process.get("/readyz?verbose").text().contains("(profiles 1.34)"));
    assert_eq!(double.count("/version"), 0);
}

#[test]
fn an_api_server_that_comes_late_is_waited_for() {
    let double = double("comes-late");
    double.stop_listening();
    let fixture = Fixture::start("comes-late", &double, &[]);
    until("told", || fixture.process.get("/readyz?verbose").text().contains("cannot reach the API server"));
    assert_eq!(fixture.process.get("/readyz").status, 503);
    assert_eq!(fixture.process.get("/livez").status, 200);
    double.listen_again();
    fixture.until_ready();
    assert_eq!(fixture.code("a"), 403);
}

#[test]
fn nobody_who_needs_no_labels_watches_namespaces() {
    let double = double("unneeded");
    let folder = Folder::new("unneeded-policy");
    let policy = folder.0.join("policy.yaml");
    let without = POLICY.replace("namespaceSelector: {matchLabels: {team: ml}}", "namespaces: [a]");
    std::fs::write(&policy, &without).expect("written");
    let path = policy.to_str().expect("UTF-8");
    let fixture = Fixture::start("unneeded", &double, &["--policy", path]);
    fixture.until_ready();
    assert_eq!([fixture.code("a"), fixture.code("b")], [403, 0]);
    assert_eq!(double.count(NAMESPACES), 0);
    // A policy that is loaded later may need them.
    std::fs::write(&policy, POLICY).expect("written");
    until("the labels are known", || fixture.code("c") == 403 && fixture.code("b") == 0);
    // And what was loaded later is judged by the same release.
    assert!(fixture.process.get("/readyz?verbose").text().contains("(profiles 1.37)"));
}

#[test]
fn new_policies_wait_for_the_labels_they_need() {
    let double = double("waiting");
    double.refuse(&[(NAMESPACES, 403)]);
    let folder = Folder::new("waiting-policy");
    let policy = folder.0.join("policy.yaml");
    let without = POLICY.replace("namespaceSelector: {matchLabels: {team: ml}}", "namespaces: [a]");
    std::fs::write(&policy, &without).expect("written");
    let path = policy.to_str().expect("UTF-8");
    let fixture = Fixture::start("waiting", &double, &["--policy", path]);
    fixture.until_ready();
    let verbose = || fixture.process.get("/readyz?verbose");
    std::fs::write(&policy, POLICY).expect("written");
    until("the new policies wait", || {
        verbose().text().contains("[!]policies new policies are not used until the namespaces are listed;")
    });
    until("told why", || {
        verbose().text().contains("[!]namespaces not listed yet: the API server returned 403")
    });
    // Those in use need no labels: they answer, and the server stays ready.
    assert_eq!(verbose().status, 200);
    assert_eq!([fixture.code("a"), fixture.code("b"), fixture.code("c")], [403, 0, 0]);
    assert_eq!(fixture.process.metric("tollgate_policy_reload_ok"), Some(0));
    // Invalid files replace neither; the next valid ones wait again.
    std::fs::write(&policy, POLICY.replace("allow:", "alow:")).expect("written");
    until("told", || verbose().text().contains("spec.alow"));
    std::fs::write(&policy, POLICY).expect("written");
    until("waiting again", || verbose().text().contains("new policies are not used until"));
    assert_eq!(fixture.code("a"), 403);
    double.refuse(&[]);
    until("the new policies are in use", || fixture.code("c") == 403);
    assert_eq!([fixture.code("a"), fixture.code("b")], [403, 0]);
    assert!(verbose().text().contains("[+]policies ok"));
    assert_eq!(fixture.process.metric("tollgate_policy_reload_ok"), Some(1));
    let lookups = r#"tollgate_findings_total{rule="policy-lookup",level="deny"}"#;
    assert_eq!(
        fixture.process.metric(lookups).unwrap_or_default(),
        0,
        "nobody was refused for want of labels"
    );
}
