//! `--register`: what is registered, when, and that it stays so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollgate::cluster::{Cluster, Registration, Timing, Wanted};
use tollgate::server::SelfMade;

use crate::client::Client;
use crate::double::Double;
use crate::process::{Process, REVIEW};
use crate::running::{Authority, Folder, until};

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

fn double(name: &str) -> Double {
    serving(Double::start(name))
}

fn serving(double: Double) -> Double {
    double.serves(VALIDATING);
    double.serves(MUTATING);
    double
}

/// The bundle of the first webhook, PEM.
fn bundle(double: &Double, collection: &str) -> String {
    let object = double.object(collection, "tollgate").unwrap_or_default();
    let text = object["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned();
    String::from_utf8(STANDARD.decode(text).expect("base64")).expect("PEM")
}

fn certificates(bundle: &str) -> usize {
    bundle.matches("BEGIN CERTIFICATE").count()
}

fn registered(double: &Double) -> bool {
    [VALIDATING, MUTATING].iter().all(|collection| double.object(collection, "tollgate").is_some())
}

/// Short pauses.
fn timing() -> Timing {
    Timing {
        least: Duration::from_millis(5),
        most: Duration::from_millis(50),
        stable: Duration::from_millis(500),
        look: Duration::from_millis(20),
        ..Timing::default()
    }
}

#[test]
fn a_service_is_registered_as_the_manifests_say() {
    let double = double("service");
    let process = Process::start(&double, &["--register", "service", "--register-delay", "0s"]);
    double.until("registered", registered);
    let bundle = bundle(&double, VALIDATING);
    for (collection, file) in [(VALIDATING, "validating"), (MUTATING, "mutating")] {
        let path = format!("{}/manifests/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a manifest");
        let document = tollgate::source::documents(&text).next().expect("a document").expect("YAML");
        let mut manifest: Value = serde_json::from_str(&document.doc.root().to_json()).expect("JSON");
        for webhook in manifest["webhooks"].as_array_mut().expect("webhooks") {
            webhook["clientConfig"]["caBundle"] = json!(STANDARD.encode(&bundle));
            // What the double fills in.
            webhook["objectSelector"] = json!({});
        }
        let mut stored = double.object(collection, "tollgate").expect("registered");
        for own in ["uid", "resourceVersion"] {
            stored["metadata"].as_object_mut().expect("metadata").remove(own);
        }
        assert_eq!(stored, manifest);
    }
    assert_eq!(process.ask(&bundle, REVIEW).status, 200);
    until("told", || {
        let told = |name| process.metric(&format!("tollgate_registration_ok{{configuration=\"{name}\"}}"));
        told("validating") == Some(1) && told("mutating") == Some(1)
    });
    let verbose = process.get("/readyz?verbose").text();
    assert!(verbose.contains("[+]validating-registration registered as"), "{verbose}");
}

#[test]
fn an_api_server_with_tls_reaches_us_by_what_is_registered() {
    let double = serving(Double::start_tls("url"));
    let process = Process::start(&double, &["--register", "https://hook.example.com:8443"]);
    double.until("registered", registered);
    let stored = double.object(VALIDATING, "tollgate").expect("registered");
    let client = &stored["webhooks"][0]["clientConfig"];
    assert_eq!(client["url"], "https://hook.example.com:8443/validate");
    assert!(client.get("service").is_none());
    let bundle = bundle(&double, VALIDATING);
    assert_eq!(process.ask(&bundle, REVIEW).status, 200);
    // The certificate is for the name that is registered.
    let shown = Client::new(process.address, &bundle).connect().expect("connected").certificate();
    let name = b"hook.example.com";
    assert!(shown.windows(name.len()).any(|part| part == name));
}

#[test]
fn what_others_change_is_put_right_and_what_they_add_stays() {
    let double = double("changed");
    let process = Process::start(&double, &["--register", "service", "--register-delay", "0s"]);
    double.until("registered", registered);
    double.until_watched(VALIDATING);
    let good = bundle(&double, VALIDATING);
    let change = |change: &dyn Fn(&mut Value)| {
        let mut object = double.object(VALIDATING, "tollgate").expect("registered");
        change(&mut object);
        double.put(VALIDATING, object);
    };
    change(&|object| {
        object["metadata"]["managedFields"] =
            json!([{"manager": "kubectl-edit", "time": "2026-01-01T00:00:00Z"}]);
        object["webhooks"][0]["clientConfig"]["caBundle"] = json!("");
    });
    until("the bundle is back", || bundle(&double, VALIDATING) == good);
    until("it is told who", || process.log().contains("kubectl-edit"));
    change(&|object| object["webhooks"][1]["failurePolicy"] = json!("Fail"));
    until("the policy is back", || {
        let object = double.object(VALIDATING, "tollgate").expect("registered");
        object["webhooks"][1]["failurePolicy"] == "Ignore"
    });
    change(&|object| object["webhooks"] = json!([]));
    until("the webhooks are back", || bundle(&double, VALIDATING) == good);
    // Labels and webhooks of others are theirs. A change of ours after it shows that theirs was seen.
    change(&|object| {
        object["metadata"]["labels"]["of"] = json!("others");
        let webhooks = object["webhooks"].as_array_mut().expect("webhooks");
        webhooks.insert(0, json!({"name": "another.example.com", "clientConfig": {"url": "https://a"}}));
    });
    change(&|object| object["webhooks"][1]["clientConfig"]["caBundle"] = json!(""));
    until("the bundle is back", || {
        let object = double.object(VALIDATING, "tollgate").expect("registered");
        object["webhooks"][1]["clientConfig"]["caBundle"] != ""
    });
    let object = double.object(VALIDATING, "tollgate").expect("registered");
    assert_eq!(object["webhooks"][0]["name"], "another.example.com");
    assert_eq!(object["metadata"]["labels"]["of"], "others");
    // The other configuration was right all along.
    assert_eq!(double.count(&format!("PATCH {MUTATING}")), 1);
}

#[test]
fn a_registration_that_somebody_deletes_stays_deleted() {
    let double = double("deleted");
    let process = Process::start(&double, &["--register", "service", "--register-delay", "0s"]);
    double.until("registered", registered);
    double.until_watched(VALIDATING);
    double.until_watched(MUTATING);
    let good = bundle(&double, VALIDATING);
    double.delete(VALIDATING, "tollgate");
    until("told", || process.get("/readyz?verbose").text().contains("deleted by somebody"));
    // And one that is deleted while nobody watches.
    double.go();
    double.delete(MUTATING, "tollgate");
    double.come_back();
    until("told", || process.log().matches("somebody deleted the registration").count() == 2);
    assert!(!registered(&double));
    assert_eq!(process.metric(r#"tollgate_registration_ok{configuration="validating"}"#), Some(0));
    // It still serves: readiness is about answering.
    assert_eq!(process.get("/readyz").status, 200);
    assert_eq!(process.ask(&good, REVIEW).status, 200);
}

#[test]
fn a_missing_right_is_named_and_tried_again() {
    let double = double("forbidden");
    double.refuse(&[("PATCH", 403)]);
    let process = Process::start(&double, &["--register", "service", "--register-delay", "0s"]);
    let failures = r#"tollgate_registration_failures_total{configuration="validating"}"#;
    until("refused more than once", || process.metric(failures).is_some_and(|count| count > 1));
    for part in ["answers 403", "cannot do this at the cluster scope", "manifests/overlays/register"] {
        until(part, || process.log().contains(part));
    }
    assert_eq!(process.get("/readyz").status, 200);
    assert!(process.get("/readyz?verbose").text().contains("answers 403"));
    // Another conflict, and then it is allowed.
    double.refuse(&[("PATCH", 409)]);
    double.until("tried again", |double| double.count("PATCH") > 4);
    double.refuse(&[]);
    double.until("registered", registered);
    until("told", || process.metric(r#"tollgate_registration_ok{configuration="validating"}"#) == Some(1));
}

#[test]
fn a_new_replica_is_not_ready_before_its_authority_is_trusted() {
    let double = double("replicas");
    let arguments = ["--register", "service", "--register-delay", "0s"];
    let first = Process::start(&double, &arguments);
    double.until("registered", registered);
    // Nothing was registered before, so nobody could have called it.
    until("ready", || first.get("/readyz").status == 200);
    let before = bundle(&double, VALIDATING);
    double.refuse(&[("PATCH", 403)]);
    let second = Process::start(&double, &arguments);
    let failures = r#"tollgate_registration_failures_total{configuration="validating"}"#;
    until("refused", || second.metric(failures).is_some_and(|count| count > 0));
    let reply = second.get("/readyz?verbose");
    assert!(reply.status == 503 && reply.text().contains("[-]validating-registration"), "{}", reply.text());
    assert_eq!(first.get("/readyz").status, 200);
    double.refuse(&[]);
    until("ready", || second.get("/readyz").status == 200);
    let both = bundle(&double, VALIDATING);
    assert_eq!((certificates(&before), certificates(&both)), (1, 2));
    for process in [&first, &second] {
        assert_eq!(process.ask(&both, REVIEW).status, 200);
    }
}

#[test]
fn an_api_server_that_goes_away_is_waited_for() {
    let double = double("gone");
    double.go();
    let folder = Folder::new("register-gone");
    let directory = folder.0.to_str().expect("UTF-8");
    let process = Process::start(
        &double,
        &["--register", "service", "--register-delay", "0s", "--cert-dir", directory],
    );
    let failures = r#"tollgate_registration_failures_total{configuration="validating"}"#;
    until("tried more than once", || process.metric(failures).is_some_and(|count| count > 1));
    until("told", || process.log().contains("cannot be reached"));
    assert_eq!(process.get("/readyz").status, 200);
    double.come_back();
    double.until("registered", registered);
    let good = bundle(&double, VALIDATING);
    double.until_watched(VALIDATING);
    // Gone again; somebody empties the bundle before it is back.
    double.go();
    let mut object = double.object(VALIDATING, "tollgate").expect("registered");
    object["webhooks"][0]["clientConfig"]["caBundle"] = json!("");
    double.put(VALIDATING, object);
    assert_eq!(process.ask(&good, REVIEW).status, 200);
    double.come_back();
    until("the bundle is back", || bundle(&double, VALIDATING) == good);
    // Old versions are forgotten, watches end: it lists again, and does not spin.
    double.until_watched(VALIDATING);
    double.forget();
    double.end_watches();
    let lists = double.count("GET");
    until("watched again", || double.count("GET") > lists + 3);
    double.until_watched(VALIDATING);
    assert_eq!(process.ask(&good, REVIEW).status, 200);
}

#[test]
fn a_place_that_is_none_and_a_cluster_that_is_none_are_refused() {
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "off"])
            .args(arguments)
            .env("KUBECONFIG", "/nonexistent/kubeconfig")
            .env("HOME", "/nonexistent")
            .output()
            .expect("run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["--register", "http://a"]);
    assert!(code == Some(2) && said.contains("https://host:port"), "{code:?} {said}");
    let (code, said) = run(&["--register", "service"]);
    assert!(code == Some(4) && said.contains("no way to a cluster"), "{code:?} {said}");
}

/// A small configuration with this bundle.
fn manifest(bundle: &str) -> String {
    let client = json!({"url": "https://localhost/validate", "caBundle": STANDARD.encode(bundle)});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "tollgate"}, "webhooks": [{"name": "a.example.com", "clientConfig": client}],
    })
    .to_string()
}

const NOW: i64 = 1_800_000_000;

fn own(made: &Arc<SelfMade>) -> Wanted {
    let made = made.clone();
    Arc::new(move |in_use| Ok(manifest(&made.joined_bundle(in_use, NOW))))
}

fn made(now: i64) -> Arc<SelfMade> {
    Arc::new(SelfMade::open(None, vec!["localhost".to_owned()], now).expect("made"))
}

fn open(double: &Double) -> Cluster {
    Cluster::open(Some(&double.kubeconfig()), timing()).expect("a kubeconfig")
}

#[test]
fn nothing_is_registered_before_the_server_is_ready() {
    let double = double("ready");
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, seen) = (asked.clone(), double.clone());
    let ready = Arc::new(move || {
        let nothing_was_asked = seen.count("") == 0;
        let times = count.fetch_add(1, Ordering::SeqCst);
        assert!(times > 3 || nothing_was_asked, "asked before it was ready");
        times >= 3
    });
    let registration = Registration { wanted: own(&made(NOW)), ready, delay: Duration::ZERO };
    open(&double).register(registration).expect("begun");
    double.until("registered", |double| double.object(VALIDATING, "tollgate").is_some());
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[test]
fn a_renewed_authority_comes_beside_the_old_one() {
    let double = double("renewed");
    let first = made(NOW);
    let ready = Arc::new(|| true);
    let registration = Registration { wanted: own(&first), ready: ready.clone(), delay: Duration::ZERO };
    open(&double).register(registration).expect("begun");
    until("registered", || bundle(&double, VALIDATING) == first.ca_bundle());
    double.until_watched(VALIDATING);
    // Late in the CA's life a second one is made, and signs a week later.
    let late = NOW + 600 * 24 * 3600;
    assert!(first.renew(late).expect("renewed"));
    until("both are there", || bundle(&double, VALIDATING) == first.ca_bundle());
    assert_eq!(certificates(&first.ca_bundle()), 2);
    // A replica with a CA of its own adds it; both are content with that.
    let second = made(NOW + 5);
    let registration = Registration { wanted: own(&second), ready, delay: Duration::ZERO };
    open(&double).register(registration).expect("begun");
    until("all three are there", || certificates(&bundle(&double, VALIDATING)) == 3);
    let all = bundle(&double, VALIDATING);
    for made in [&first, &second] {
        assert_eq!(made.joined_bundle(&all, NOW), all);
    }
}

#[test]
fn the_authority_of_a_certificate_of_others_is_read_beside_it() {
    let folder = Folder::new("register-files");
    let (one, two) = (Authority::new(), Authority::new());
    let (chain, key) = one.pair("tollgate");
    let place = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).expect("written");
    let file = |name: &str| folder.0.join(name).to_str().expect("UTF-8").to_owned();
    place("tls.crt", &chain);
    place("tls.key", &key);
    let (certificate, key) = (file("tls.crt"), file("tls.key"));
    let arguments =
        ["--tls-cert", &certificate, "--tls-key", &key, "--register", "service", "--register-delay", "0s"];
    // Nobody told us the CA: the bundle is left to who injects it.
    let without = double("without-ca");
    let process = Process::start(&without, &arguments);
    without.until("registered", registered);
    without.until_watched(VALIDATING);
    let mut object = without.object(VALIDATING, "tollgate").expect("registered");
    assert!(object["webhooks"][0]["clientConfig"].get("caBundle").is_none());
    for webhook in object["webhooks"].as_array_mut().expect("webhooks") {
        webhook["clientConfig"]["caBundle"] = json!(STANDARD.encode(&two.pem));
    }
    object["webhooks"][0]["timeoutSeconds"] = json!(30);
    without.put(VALIDATING, object);
    until("our part is put right", || {
        without.object(VALIDATING, "tollgate").expect("registered")["webhooks"][0]["timeoutSeconds"] == 3
    });
    assert_eq!(bundle(&without, VALIDATING), two.pem);
    drop(process);
    place("ca.crt", &one.pem);
    let with = double("with-ca");
    let _process = Process::start(&with, &arguments);
    until("registered", || bundle(&with, VALIDATING) == one.pem);
    place("ca.crt", &format!("{}{}", one.pem, two.pem));
    until("the new bundle is there", || certificates(&bundle(&with, VALIDATING)) == 2);
}
