//! `--register`: what is registered, when, and that it stays so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollgate::cluster::{
    Cluster, ClusterTarget, DesiredConfig, DesiredConfigForCaBundleFn, Timing, WebhookRegistration,
};
use tollgate::server::SelfSignedCerts;

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

/// Policies that need both configurations, with every entry of the static manifests.
const WIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/wide.yaml");
/// Flags to register a Service without delay, with these policies.
const SERVICE: [&str; 6] = ["--register", "service", "--register-delay", "0s", "--policy", WIDE];

/// The names of the registered entries, without their common suffix.
fn entries(double: &Double, collection: &str, name: &str) -> Vec<String> {
    let object = double.object(collection, name).unwrap_or_default();
    let webhooks = object["webhooks"].as_array().cloned().unwrap_or_default();
    let name = |webhook: &Value| webhook["name"].as_str().unwrap_or_default().replace(".tollgate.dev", "");
    webhooks.iter().map(name).collect()
}

/// Timing with short delays.
fn timing() -> Timing {
    Timing {
        min_backoff: Duration::from_millis(5),
        max_backoff: Duration::from_millis(50),
        stable_after: Duration::from_millis(500),
        check_interval: Duration::from_millis(20),
        ..Timing::default()
    }
}

#[test]
fn a_service_is_registered_as_the_manifests_say() {
    let double = double("service");
    let process = Process::start(&double, &SERVICE);
    double.until("registered", registered);
    let bundle = bundle(&double, VALIDATING);
    for (collection, file) in [(VALIDATING, "validating"), (MUTATING, "mutating")] {
        let path = format!("{}/manifests/webhooks/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a manifest");
        let document = tollgate::documents(&text).next().expect("a document").expect("YAML");
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
    assert_eq!(process.send_review(&bundle, REVIEW).status, 200);
    until("told", || {
        let told = |name| process.metric(&format!("tollgate_registration_ok{{configuration=\"{name}\"}}"));
        told("validating") == Some(1) && told("mutating") == Some(1)
    });
    let verbose = process.get("/readyz?verbose").text();
    assert!(verbose.contains("[+]validating-registration registered as"), "{verbose}");
    // The write of each configuration is counted and logged.
    for name in ["validating", "mutating"] {
        let writes = format!("tollgate_registration_writes_total{{configuration=\"{name}\"}}");
        assert_eq!(process.metric(&writes), Some(1), "{name}");
    }
    until("both are logged", || process.log().matches("webhook configuration created").count() == 2);
}

#[test]
fn an_api_server_with_tls_reaches_us_by_what_is_registered() {
    let double = serving(Double::start_tls("url"));
    let process = Process::start(&double, &["--register", "https://hook.example.com:8443", "--policy", WIDE]);
    double.until("registered", registered);
    let stored = double.object(VALIDATING, "tollgate").expect("registered");
    let client = &stored["webhooks"][0]["clientConfig"];
    assert_eq!(client["url"], "https://hook.example.com:8443/validate");
    assert!(client.get("service").is_none());
    let bundle = bundle(&double, VALIDATING);
    assert_eq!(process.send_review(&bundle, REVIEW).status, 200);
    // The certificate is for the name that is registered.
    let shown = Client::new(process.address, &bundle).connect().expect("connected").certificate();
    let name = b"hook.example.com";
    assert!(shown.windows(name.len()).any(|part| part == name));
}

#[test]
fn what_others_change_is_put_right_and_what_they_add_stays() {
    let double = double("changed");
    let process = Process::start(&double, &SERVICE);
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

/// A field of the webhook configuration, and a function that narrows it.
type Narrowing<'a> = (&'a str, &'a dyn Fn(&mut Value));

/// A narrowed webhook configuration would disable enforcement while all health checks pass.
#[test]
fn a_narrowing_that_somebody_adds_is_reverted_and_reported() {
    let double = double("narrowed");
    let process = Process::start(&double, &SERVICE);
    double.until("registered", registered);
    double.until_watched(VALIDATING);
    let good = double.object(VALIDATING, "tollgate").expect("registered")["webhooks"].clone();
    let narrow: [Narrowing<'_>; 5] = [
        ("matchConditions", &|webhook| {
            let conditions = webhook["matchConditions"].as_array_mut().expect("a list");
            conditions.push(json!({"name": "off", "expression": "false"}));
        }),
        ("objectSelector", &|webhook| webhook["objectSelector"] = json!({"matchLabels": {"a": "b"}})),
        ("namespaceSelector", &|webhook| webhook["namespaceSelector"] = json!({"matchLabels": {"a": "b"}})),
        ("rules", &|webhook| webhook["rules"][0]["operations"] = json!(["CREATE"])),
        ("failurePolicy", &|webhook| webhook["failurePolicy"] = json!("Ignore")),
    ];
    for (field, change) in narrow {
        let mut object = double.object(VALIDATING, "tollgate").expect("registered");
        object["metadata"]["managedFields"] = json!([{"manager": "mallory", "time": "2026-01-01T00:00:00Z"}]);
        change(&mut object["webhooks"][0]);
        double.put(VALIDATING, object);
        until(field, || double.object(VALIDATING, "tollgate").expect("registered")["webhooks"] == good);
        until("logged", || {
            let field = format!("claims.validate.tollgate.dev: {field}");
            process.log().lines().any(|line| line.contains("mallory") && line.contains(&field))
        });
    }
    // However often: it is not narrow for long.
    for _ in 0..6 {
        let mut object = double.object(VALIDATING, "tollgate").expect("registered");
        object["webhooks"][0]["failurePolicy"] = json!("Ignore");
        double.put(VALIDATING, object);
        until("reverted", || double.object(VALIDATING, "tollgate").expect("registered")["webhooks"] == good);
    }
    // What cannot be put right shows in the metric and in the text, never in the status.
    let ok = r#"tollgate_registration_ok{configuration="validating"}"#;
    until("the metric is 1", || process.metric(ok) == Some(1));
    double.refuse(&[("PATCH", 403)]);
    let mut object = double.object(VALIDATING, "tollgate").expect("registered");
    object["webhooks"][0]["failurePolicy"] = json!("Ignore");
    double.put(VALIDATING, object);
    until("the text says so", || {
        process.get("/readyz?verbose").text().contains("[!]validating-registration not registered: ")
    });
    assert_eq!(process.metric(ok), Some(0));
    assert_eq!(process.get("/readyz").status, 200);
    double.refuse(&[]);
    until("the metric rises", || process.metric(ok) == Some(1));
}

/// The webhook configuration must not be narrower than the policies require.
#[test]
fn a_registration_follows_every_reload_of_the_policies() {
    let double = double("follows");
    let folder = Folder::new("register-follows");
    let file = folder.0.join("policy.yaml");
    let write = |spec: &str| {
        let text = format!(
            "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: a}}\nspec: {spec}\n"
        );
        // By rename: the server must not read a file that is half written.
        let draft = folder.0.join("draft");
        std::fs::write(&draft, text).expect("written");
        std::fs::rename(&draft, &file).expect("renamed");
    };
    write("{allow: []}");
    let path = file.to_str().expect("UTF-8");
    let process = Process::start(
        &double,
        &["--register", "service", "--register-delay", "0s", "--policy", path, "--reload-interval", "100ms"],
    );
    let has =
        |name: &str, collection: &str| entries(&double, collection, "tollgate").contains(&name.to_owned());
    until("registered", || has("claims.validate", VALIDATING));
    assert!(!has("other-claims.validate", VALIDATING), "{:?}", entries(&double, VALIDATING, "tollgate"));
    assert!(double.object(MUTATING, "tollgate").is_none(), "nothing is to be mutated");
    let digest = |text: &str| text.lines().find(|line| line.contains("]policies")).map(str::to_owned);
    let before = digest(&process.get("/readyz?verbose").text());
    // Wider before the new set answers.
    write("{validations: [{expression: 'true'}], defaults: [{key: a/b, operator: Exists}]}");
    until("the new set answers", || digest(&process.get("/readyz?verbose").text()) != before);
    assert!(has("other-claims.validate", VALIDATING) && has("claims.mutate", MUTATING));
    // Narrower after.
    write("{allow: []}");
    until("narrow again", || !has("other-claims.validate", VALIDATING) && !has("claims.mutate", MUTATING));
    assert!(has("claims.validate", VALIDATING) && has("claim-details.validate", VALIDATING));
}

/// A rolling update to policies that need fewer entries: the old replica adds its entry again and again, until it ends.
#[test]
fn an_entry_that_an_ended_replica_needed_does_not_stay() {
    let double = double("rolling");
    let folder = Folder::new("register-rolling");
    let file = folder.0.join("policy.yaml");
    let policy = "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: a}\nspec:\n  \
        onUnavailable: Deny\n  defaults: [{key: a/b, operator: Exists, effect: NoSchedule}]\n";
    std::fs::write(&file, policy).expect("written");
    let flags = ["--register", "service", "--register-delay", "0s"];
    let old = Process::start(&double, &[&flags[..], &["--policy", file.to_str().expect("UTF-8")]].concat());
    let is_stored = || entries(&double, MUTATING, "tollgate") == ["claims.mutate"];
    until("registered", is_stored);
    let new = Process::start(&double, &flags);
    until("ready", || new.get("/readyz").status == 200);
    until("removed", || !is_stored());
    until("added again", is_stored);
    drop(old);
    until("removed again", || !is_stored());
    until("told", || {
        let verbose = new.get("/readyz?verbose").text();
        verbose.contains("[+]mutating-registration not registered: no policy needs it")
    });
    assert!(!is_stored());
}

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Uninstalling must not leave webhook configurations that fail closed.
#[test]
fn configurations_go_and_come_with_their_owner() {
    let double = double("owner");
    double.serves(ROLES);
    let role = || json!({"metadata": {"name": "tollgate-register"}});
    double.put(ROLES, role());
    let process =
        Process::start(&double, &[&SERVICE[..], &["--register-owner", "tollgate-register"]].concat());
    double.until("registered", registered);
    let uid = |double: &Double| {
        double.object(ROLES, "tollgate-register").expect("a role")["metadata"]["uid"].clone()
    };
    let owner = |double: &Double| {
        let object = double.object(VALIDATING, "tollgate").unwrap_or_default();
        object["metadata"]["ownerReferences"][0]["uid"].clone()
    };
    let first = uid(&double);
    assert_eq!(owner(&double), first);
    double.until_watched(VALIDATING);
    double.until_watched(MUTATING);
    // The garbage collector takes them with the role, and nothing is created without one.
    double.delete(ROLES, "tollgate-register");
    double.delete(VALIDATING, "tollgate");
    double.delete(MUTATING, "tollgate");
    until("it waits", || {
        process
            .get("/readyz?verbose")
            .text()
            .contains("not registered: the owner, ClusterRole tollgate-register, does not exist")
    });
    assert!(double.object(VALIDATING, "tollgate").is_none());
    assert_eq!(process.get("/readyz").status, 200);
    // Installed again: they are back, with the new owner.
    double.put(ROLES, role());
    until("they are back", || registered(&double) && owner(&double) == uid(&double));
    assert_ne!(uid(&double), first);
    // A role that was replaced while they stayed: the reference follows.
    double.until_watched(VALIDATING);
    double.delete(ROLES, "tollgate-register");
    double.put(ROLES, role());
    until("the reference follows", || owner(&double) == uid(&double));
    // With its owner alive, deleting is still the emergency stop.
    double.until_watched(VALIDATING);
    double.delete(VALIDATING, "tollgate");
    until("it stays away", || {
        process
            .get("/readyz?verbose")
            .text()
            .contains("deleted; Tollgate does not recreate the configuration until Tollgate restarts")
    });
    assert!(double.object(VALIDATING, "tollgate").is_none());
}

/// `--register https://…` must succeed over configurations that kubectl applied.
#[test]
fn a_url_takes_the_place_of_a_service_and_the_other_way_round() {
    let double = double("switch");
    let client = json!({"service": {"name": "tollgate", "namespace": "tollgate-system", "path": "/validate", "port": 443}});
    let applied = |kind: &str, name: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "tollgate", "managedFields": [{"manager": "kubectl-client-side-apply"}]},
            "webhooks": [{"name": name, "clientConfig": client, "rules": []}],
        })
    };
    double.put(VALIDATING, applied("ValidatingWebhookConfiguration", "claims.validate.tollgate.dev"));
    double.put(MUTATING, applied("MutatingWebhookConfiguration", "claims.mutate.tollgate.dev"));
    let has = |field: &str, other: &str| {
        let all = [VALIDATING, MUTATING]
            .map(|collection| double.object(collection, "tollgate").unwrap_or_default());
        all.iter().flat_map(|object| object["webhooks"].as_array().cloned().unwrap_or_default()).all(
            |webhook| {
                let client = &webhook["clientConfig"];
                client.get(field).is_some() && client.get(other).is_none()
            },
        )
    };
    let process = Process::start(&double, &["--register", "https://hook.example.com:8443", "--policy", WIDE]);
    until("by URL", || has("url", "service"));
    let exempt = double.object(VALIDATING, "tollgate").expect("registered").to_string();
    assert!(!exempt.contains("tollgate-system"), "the server does not run in that namespace: {exempt}");
    until("ok", || process.metric(r#"tollgate_registration_ok{configuration="validating"}"#) == Some(1));
    drop(process);
    let _process = Process::start(&double, &SERVICE);
    until("by service", || has("service", "url"));
}

/// The configurations of the other overlays must get a caBundle from `--register` as well.
#[test]
fn other_apis_are_registered_with_a_bundle_too() {
    let double = double("others");
    let with = ["--register-with", "pods,classic-dra,foundationdb,kep-5055-r1"];
    let process = Process::start(&double, &[&SERVICE[..], &with].concat());
    for (collection, name) in [
        (VALIDATING, "tollgate-pods"),
        (VALIDATING, "tollgate-classic-dra"),
        (MUTATING, "tollgate-classic-dra"),
        (VALIDATING, "tollgate-foundationdb"),
        (VALIDATING, "tollgate-kep-5055-r1"),
        (MUTATING, "tollgate-kep-5055-r1"),
    ] {
        until(name, || double.object(collection, name).is_some());
        let object = double.object(collection, name).expect("registered");
        for webhook in object["webhooks"].as_array().expect("webhooks") {
            assert!(webhook["clientConfig"]["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty()));
        }
    }
    until("reported", || {
        process.metric(r#"tollgate_registration_ok{configuration="pods-validating"}"#) == Some(1)
    });
}

/// A configuration that fails closed would reject all pods with claims once its CAs have ended.
#[test]
fn the_entries_of_an_api_that_is_no_longer_registered_are_removed() {
    let double = double("dropped");
    let closed = [&SERVICE[..], &["--register-fail-closed"]].concat();
    let process = Process::start(&double, &[&closed[..], &["--register-with", "pods,classic-dra"]].concat());
    let of = |collection: &str, name: &str| entries(&double, collection, name);
    let configurations = [
        (VALIDATING, "tollgate-pods"),
        (VALIDATING, "tollgate-classic-dra"),
        (MUTATING, "tollgate-classic-dra"),
    ];
    until("registered", || configurations.iter().all(|(collection, name)| !of(collection, name).is_empty()));
    drop(process);
    // That of another server, whatever its name, is not touched.
    let other =
        json!({"name": "a.tollgate.dev", "clientConfig": {"url": "https://other.example.com/validate"}});
    double.put(VALIDATING, json!({"metadata": {"name": "tollgate-foundationdb"}, "webhooks": [other]}));
    let process = Process::start(&double, &[&closed[..], &["--register-with", "pods"]].concat());
    until("removed", || configurations[1..].iter().all(|(collection, name)| of(collection, name).is_empty()));
    assert!(!of(VALIDATING, "tollgate-pods").is_empty());
    assert_eq!(of(VALIDATING, "tollgate-foundationdb"), ["a"]);
    assert!(double.object(VALIDATING, "tollgate-kep-5055-r1").is_none(), "nothing is created");
    assert!(!process.get("/readyz?verbose").text().contains("classic-dra"));
    drop(process);
    // Without the right, everything else goes on.
    double.refuse(&[("tollgate-pods", 403)]);
    let before = double.count("tollgate-pods");
    let process = Process::start(&double, &closed);
    until("ok", || process.metric(r#"tollgate_registration_ok{configuration="validating"}"#) == Some(1));
    double.until("asked", |double| double.count("tollgate-pods") > before);
    assert!(!process.log().contains("cannot register"), "{}", process.log());
}

/// After a configuration change and its rollback, the instance that starts last registers the configuration
/// that it needs.
#[test]
fn an_installation_that_fails_closed_can_be_rolled_back() {
    let double = double("closed");
    let failure_policies = || {
        let of =
            |collection: &&str| double.object(collection, "tollgate").unwrap_or_default()["webhooks"].clone();
        let webhooks: Vec<Value> = [VALIDATING, MUTATING].iter().map(of).collect();
        let webhooks = webhooks.iter().filter_map(Value::as_array).flatten();
        webhooks
            .map(|webhook| webhook["failurePolicy"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let process = Process::start(&double, &SERVICE);
    double.until("registered", registered);
    let before = failure_policies();
    assert!(before.iter().any(|policy| policy == "Ignore"), "{before:?}");
    drop(process);
    let process = Process::start(&double, &[&SERVICE[..], &["--register-fail-closed"]].concat());
    until("closed", || failure_policies() == vec!["Fail"; before.len()]);
    drop(process);
    let process = Process::start(&double, &SERVICE);
    until("rolled back", || failure_policies() == before);
    // Nobody else changed anything.
    assert!(!process.log().contains("webhook configuration changed"), "{}", process.log());
}

/// After a restart of the API server, no change must be attributed to another client.
#[test]
fn nobody_is_blamed_after_a_restart_of_the_api_server() {
    let double = double("restarted");
    let (first, second) = (Process::start(&double, &SERVICE), Process::start(&double, &SERVICE));
    until("both are trusted", || certificates(&bundle(&double, VALIDATING)) == 2);
    double.until_watched(VALIDATING);
    let before = double.object(VALIDATING, "tollgate");
    double.stop_listening();
    for process in [&first, &second] {
        until("lost", || process.log().contains("cannot reach the API server"));
    }
    double.listen_again();
    for process in [&first, &second] {
        let ok = r#"tollgate_registration_ok{configuration="validating"}"#;
        until("found again", || process.metric(ok) == Some(1));
        assert!(!process.log().contains("was changed"), "{}", process.log());
    }
    assert_eq!(double.object(VALIDATING, "tollgate"), before);
}

#[test]
fn a_registration_that_somebody_deletes_stays_deleted() {
    let double = double("deleted");
    let process = Process::start(&double, &SERVICE);
    double.until("registered", registered);
    double.until_watched(VALIDATING);
    double.until_watched(MUTATING);
    let good = bundle(&double, VALIDATING);
    double.delete(VALIDATING, "tollgate");
    until("told", || {
        process
            .get("/readyz?verbose")
            .text()
            .contains("deleted; Tollgate does not recreate the configuration until Tollgate restarts")
    });
    // And one that is deleted while nobody watches.
    double.stop_listening();
    double.delete(MUTATING, "tollgate");
    double.listen_again();
    until("told", || process.log().matches("webhook configuration deleted").count() == 2);
    assert!(!registered(&double));
    assert_eq!(process.metric(r#"tollgate_registration_ok{configuration="validating"}"#), Some(0));
    // It still serves: readiness is about answering.
    assert_eq!(process.get("/readyz").status, 200);
    assert_eq!(process.send_review(&good, REVIEW).status, 200);
}

#[test]
fn a_missing_right_is_named_and_tried_again() {
    let double = double("forbidden");
    double.refuse(&[("PATCH", 403)]);
    let process = Process::start(&double, &SERVICE);
    let failures = r#"tollgate_registration_failures_total{configuration="validating"}"#;
    until("refused more than once", || process.metric(failures).is_some_and(|count| count > 1));
    for part in [
        "the API server returned 403",
        "cannot do this at the cluster scope",
        "manifests/overlays/self-managed",
    ] {
        until(part, || process.log().contains(part));
    }
    assert_eq!(process.get("/readyz").status, 200);
    assert!(process.get("/readyz?verbose").text().contains("the API server returned 403"));
    // Another conflict, and then it is allowed.
    double.refuse(&[("PATCH", 409)]);
    double.until("tried again", |double| double.count("PATCH") > 4);
    double.refuse(&[]);
    double.until("registered", registered);
    until("told", || process.metric(r#"tollgate_registration_ok{configuration="validating"}"#) == Some(1));
}

#[test]
fn credentials_that_are_not_accepted_are_named() {
    let double = double("unauthorized");
    double.refuse(&[(VALIDATING, 401), (MUTATING, 401)]);
    let process = Process::start(&double, &SERVICE);
    until("told", || {
        let verbose = process.get("/readyz?verbose").text();
        verbose.contains("the API server returned 401") && verbose.contains("; check the credentials")
    });
    until("logged", || process.log().contains("; check the credentials"));
    double.refuse(&[]);
    double.until("registered", registered);
}

#[test]
fn a_new_replica_is_not_ready_before_its_authority_is_trusted() {
    let double = double("replicas");
    let arguments = SERVICE;
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
        assert_eq!(process.send_review(&both, REVIEW).status, 200);
    }
}

#[test]
fn an_api_server_that_goes_away_is_waited_for() {
    let double = double("gone");
    double.stop_listening();
    let folder = Folder::new("register-gone");
    let directory = folder.0.to_str().expect("UTF-8");
    let process = Process::start(&double, &[&SERVICE[..], &["--cert-dir", directory]].concat());
    let failures = r#"tollgate_registration_failures_total{configuration="validating"}"#;
    until("tried more than once", || process.metric(failures).is_some_and(|count| count > 1));
    until("told", || process.log().contains("cannot reach the API server"));
    assert_eq!(process.get("/readyz").status, 200);
    double.listen_again();
    double.until("registered", registered);
    let good = bundle(&double, VALIDATING);
    double.until_watched(VALIDATING);
    // Gone again; somebody empties the bundle before it is back.
    double.stop_listening();
    until("told that it is not known", || {
        let verbose = process.get("/readyz?verbose").text();
        verbose
            .contains("[!]validating-registration cannot check the registration: cannot reach the API server")
    });
    let mut object = double.object(VALIDATING, "tollgate").expect("registered");
    object["webhooks"][0]["clientConfig"]["caBundle"] = json!("");
    double.put(VALIDATING, object);
    assert_eq!(process.send_review(&good, REVIEW).status, 200);
    double.listen_again();
    until("the bundle is back", || bundle(&double, VALIDATING) == good);
    // Old versions are forgotten, watches end: it lists again, and does not spin.
    double.until_watched(VALIDATING);
    double.forget();
    double.end_watches();
    let lists = double.count("GET");
    until("watched again", || double.count("GET") > lists + 3);
    double.until_watched(VALIDATING);
    assert_eq!(process.send_review(&good, REVIEW).status, 200);
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
    let (code, said) = run(&["--register", "service", "--kubeconfig", "/dev/zero"]);
    assert!(code == Some(3) && said.contains("must be a regular file of at most 1 MiB"), "{code:?} {said}");
    for flags in [&["--register", "service"][..], &["--cluster"]] {
        let (code, said) = run(flags);
        assert!(code == Some(3) && said.contains("cannot connect to a cluster"), "{code:?} {said}");
    }
    let (code, said) = run(&["--register", "https://hook.example.com/tollgate"]);
    assert!(
        code == Some(2) && said.contains("use https://hook.example.com without a path"),
        "{code:?} {said}"
    );
}

/// Two servers that disagree report each other and do not overload the API server.
#[test]
fn two_servers_with_one_name_slow_down_and_name_each_other() {
    let double = double("rivals");
    let start = |host: &str| {
        Process::start(
            &double,
            &["--register", &format!("https://{host}.example.com:8443"), "--policy", WIDE],
        )
    };
    let (one, two) = (start("one"), start("two"));
    for (process, other) in [(&one, "https://two.example.com:8443"), (&two, "https://one.example.com:8443")] {
        until("the other is named", || {
            let said =
                format!("is also registered by another server ({other}); set a different --register-name");
            process.get("/readyz?verbose").text().contains(&said)
        });
        until("it is logged", || {
            let log = process.log();
            log.lines()
                .any(|line| line.contains("registers itself under the same name") && line.contains(other))
        });
        assert_eq!(process.get("/readyz").status, 200);
    }
    let reverts = r#"tollgate_registration_reverts_total{configuration="validating"}"#;
    until("some reverts", || one.metric(reverts).is_some_and(|count| count >= 4));
    // Two configurations, reverted twice a second by each server, would be 32 writes.
    let before = double.count("PATCH");
    std::thread::sleep(Duration::from_secs(4));
    let writes = double.count("PATCH") - before;
    assert!(writes <= 8, "{writes} writes in 4 s");
}

/// An installation that replaces another one may be overwritten once.
#[test]
fn another_server_is_named_only_if_it_writes_again() {
    let double = double("once");
    let process = Process::start(&double, &["--register", "https://one.example.com:8443", "--policy", WIDE]);
    double.until("registered", registered);
    double.until_watched(VALIDATING);
    let other = "https://two.example.com:8443/validate";
    let address = |object: &Value| object["webhooks"][0]["clientConfig"]["url"].clone();
    let overwrite = || {
        let mut object = double.object(VALIDATING, "tollgate").expect("registered");
        object["webhooks"][0]["clientConfig"]["url"] = json!(other);
        double.put(VALIDATING, object);
        until("reverted", || address(&double.object(VALIDATING, "tollgate").expect("registered")) != other);
    };
    let reverts =
        |process: &Process| process.log().matches("webhook configuration changed; reverting").count();
    let is_named = |process: &Process| process.log().contains("registers itself under the same name");
    overwrite();
    until("logged", || reverts(&process) == 1);
    assert!(!is_named(&process), "{}", process.log());
    // A change is reverted at once if the last one is not recent; the time that counts as recent doubles.
    for _ in 0..6 {
        if !is_named(&process) {
            overwrite();
        }
    }
    until("named", || is_named(&process));
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

/// The desired configuration with this manifest.
fn desired(manifest: &str) -> DesiredConfig {
    let parsed: Value = serde_json::from_str(manifest).expect("JSON");
    let client_config = parsed["webhooks"][0]["clientConfig"].to_string();
    DesiredConfig { manifest: manifest.to_owned(), client_config }
}

const NOW: i64 = 1_800_000_000;

fn own(made: &Arc<SelfSignedCerts>) -> DesiredConfigForCaBundleFn {
    let made = made.clone();
    Arc::new(move |in_use| Ok(desired(&manifest(&made.merged_bundle(in_use, NOW)))))
}

fn plain(
    desired: DesiredConfigForCaBundleFn,
    ready: Arc<dyn Fn() -> bool + Send + Sync>,
) -> WebhookRegistration {
    let (_, revision) = tokio::sync::watch::channel(1);
    let may_narrow = Arc::new(|| true);
    WebhookRegistration { desired, revision, may_narrow, ready, delay: Duration::ZERO, owner: None }
}

fn made(now: i64) -> Arc<SelfSignedCerts> {
    Arc::new(SelfSignedCerts::load_or_create(None, vec!["localhost".to_owned()], now).expect("made"))
}

fn open(double: &Double) -> Cluster {
    Cluster::start_without_connecting(
        ClusterTarget { kubeconfig: Some(&double.kubeconfig()), context: None },
        timing(),
    )
    .expect("a kubeconfig")
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
    let registration = plain(own(&made(NOW)), ready);
    open(&double).keep_webhook_registered(registration).expect("begun");
    double.until("registered", |double| double.object(VALIDATING, "tollgate").is_some());
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[test]
fn a_renewed_authority_comes_beside_the_old_one() {
    let double = double("renewed");
    let first = made(NOW);
    let ready = Arc::new(|| true);
    let registration = plain(own(&first), ready.clone());
    open(&double).keep_webhook_registered(registration).expect("begun");
    until("registered", || bundle(&double, VALIDATING) == first.ca_bundle());
    double.until_watched(VALIDATING);
    // Late in the CA's life a second one is made, and signs a week later.
    let late = NOW + 600 * 24 * 3600;
    assert!(first.renew_if_needed(late).expect("renewed"));
    until("both are there", || bundle(&double, VALIDATING) == first.ca_bundle());
    assert_eq!(certificates(&first.ca_bundle()), 2);
    // A replica with a CA of its own adds it; both are content with that.
    let second = made(NOW + 5);
    let registration = plain(own(&second), ready);
    open(&double).keep_webhook_registered(registration).expect("begun");
    until("all three are there", || certificates(&bundle(&double, VALIDATING)) == 3);
    let all = bundle(&double, VALIDATING);
    for made in [&first, &second] {
        assert_eq!(made.merged_bundle(&all, NOW), all);
    }
}

#[test]
fn the_authority_of_a_certificate_of_others_is_read_beside_it() {
    let folder = Folder::new("register-files");
    let (one, two) = (Authority::new(), Authority::new());
    let (chain, key) = one.pair_of(&["tollgate"], SERVICE_HOST);
    let place = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).expect("written");
    let file = |name: &str| folder.0.join(name).to_str().expect("UTF-8").to_owned();
    place("tls.crt", &chain);
    place("tls.key", &key);
    let (certificate, key) = (file("tls.crt"), file("tls.key"));
    let arguments = [&SERVICE[..], &["--tls-cert", &certificate, "--tls-key", &key]].concat();
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

/// The host of the Service.
const SERVICE_HOST: &str = "tollgate.tollgate-system.svc";

/// Writes a certificate, its key and a CA; returns the flags that name the first two.
fn certificate_flags(folder: &Folder, pair: &(String, String), ca: &str) -> [String; 4] {
    let files = [("tls.crt", &*pair.0), ("tls.key", &*pair.1), ("ca.crt", ca)];
    for (name, text) in files {
        std::fs::write(folder.0.join(name), text).expect("written");
    }
    let file = |name: &str| folder.0.join(name).to_str().expect("UTF-8").to_owned();
    ["--tls-cert".to_owned(), file("tls.crt"), "--tls-key".to_owned(), file("tls.key")]
}

/// The API server would reject every request that an entry matches that fails closed.
#[test]
fn a_certificate_that_the_api_server_never_trusts_is_not_registered() {
    let double = double("untrusted");
    let folder = Folder::new("register-untrusted");
    let (one, two) = (Authority::new(), Authority::new());
    let refused = |pair: &(String, String), ca: &str| {
        let flags = certificate_flags(&folder, pair, ca);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "off"])
            .args(SERVICE)
            .args(flags)
            .env("KUBECONFIG", double.kubeconfig())
            .output()
            .expect("run");
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let shown = |name: &str| folder.0.join(name).display().to_string();
    let said = refused(&one.pair("localhost"), &one.pem);
    let expected = format!(
        "server certificate: {}: the API server would not trust this certificate with the CA in {}: the certificate is not \
         valid for {SERVICE_HOST}; it contains localhost",
        shown("tls.crt"),
        shown("ca.crt")
    );
    assert!(said.contains(&expected), "{said}");
    let good = one.pair_of(&["tollgate"], SERVICE_HOST);
    let said = refused(&good, &two.pem);
    assert!(said.contains("the certificate is not signed by this CA"), "{said}");
    let said = refused(&good, "hello");
    assert!(said.contains(&format!("{}: the file contains no certificate", shown("ca.crt"))), "{said}");
    assert_eq!(double.count("PATCH"), 0);
    // Files that have expired are replaced some day.
    let old = Folder::new("register-expired");
    let names = vec![SERVICE_HOST.to_owned()];
    SelfSignedCerts::load_or_create(Some(old.0.clone()), names, 1_500_000_000).expect("made");
    let read = |name: &str| std::fs::read_to_string(old.0.join(name)).expect("read");
    let flags = certificate_flags(&folder, &(read("tls.crt"), read("tls.key")), &read("ca.crt"));
    let flags: Vec<&str> = SERVICE.into_iter().chain(flags.iter().map(String::as_str)).collect();
    let process = Process::start(&double, &flags);
    let verbose = process.get("/readyz?verbose").text();
    assert!(verbose.contains("[-]server expired "), "{verbose}");
    certificate_flags(&folder, &good, &one.pem);
    until("replaced", || bundle(&double, VALIDATING) == one.pem && process.get("/readyz").status == 200);
}

/// Certificate, key and CA are used together, or not at all.
#[test]
fn a_ca_file_that_is_broken_later_is_told_and_changes_nothing() {
    let double = double("broken-ca");
    let folder = Folder::new("register-broken-ca");
    let (one, two) = (Authority::new(), Authority::new());
    let good = one.pair_of(&["tollgate"], SERVICE_HOST);
    let flags = certificate_flags(&folder, &good, &one.pem);
    let flags: Vec<&str> = SERVICE.into_iter().chain(flags.iter().map(String::as_str)).collect();
    let process = Process::start(&double, &flags);
    until("registered", || bundle(&double, VALIDATING) == one.pem);
    let file = folder.0.join("ca.crt");
    let told = |fault: &str| {
        until(fault, || {
            let verbose = process.get("/readyz?verbose").text();
            verbose.contains("[!]server not reloaded; the last valid certificate is in use: ")
                && verbose.contains(fault)
        });
        until("logged", || {
            let log = process.log();
            log.lines()
                .any(|line| line.contains("WARN cannot use the new certificate") && line.contains(fault))
        });
        assert_eq!(bundle(&double, VALIDATING), one.pem);
        assert_eq!(process.get("/readyz").status, 200);
        std::fs::write(&file, &one.pem).expect("written");
        until("mended", || process.get("/readyz?verbose").text().contains("[+]server ok"));
    };
    std::fs::write(&file, "hello").expect("written");
    told("ca.crt: the file contains no certificate");
    std::fs::write(&file, &two.pem).expect("written");
    told("the certificate is not signed by this CA");
    std::fs::remove_file(&file).expect("removed");
    told("cannot read ");
    certificate_flags(&folder, &one.pair("localhost"), &one.pem);
    until("the name is told", || {
        process.get("/readyz?verbose").text().contains(&format!("not valid for {SERVICE_HOST}"))
    });
    assert_eq!(process.get("/readyz").status, 200);
}

/// The API server calls every replica for an entry that one of them needs.
#[test]
fn an_entry_that_another_replica_needs_has_the_authority_of_all() {
    let double = double("needed");
    let (ours, theirs) = (made(NOW), made(NOW + 1));
    let entry = json!({"name": "a.tollgate.dev", "failurePolicy": "Fail",
        "clientConfig": {"url": "https://localhost/validate", "caBundle": STANDARD.encode(theirs.ca_bundle())}});
    double.put(
        VALIDATING,
        json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "tollgate"}, "webhooks": [entry]}),
    );
    let made = ours.clone();
    let nothing: DesiredConfigForCaBundleFn = Arc::new(move |in_use| {
        let DesiredConfig { manifest, client_config } = desired(&manifest(&made.merged_bundle(in_use, NOW)));
        let mut manifest: Value = serde_json::from_str(&manifest).expect("JSON");
        manifest["webhooks"] = json!([]);
        Ok(DesiredConfig { manifest: manifest.to_string(), client_config })
    });
    // An entry that stays for 20 of the longest delays between retries is needed by nobody.
    let timing = Timing { max_backoff: Duration::from_millis(150), ..timing() };
    let status = open(&double)
        .with_timing(timing)
        .keep_webhook_registered(plain(nothing, Arc::new(|| true)))
        .expect("begun");
    until("registered", || status.get().ok);
    assert_eq!(bundle(&double, VALIDATING), format!("{}{}", theirs.ca_bundle(), ours.ca_bundle()));
    assert!(status.get().message.ends_with("with entries that this server does not need"));
    until("removed", || entries(&double, VALIDATING, "tollgate").is_empty());
    until("told", || status.get().message == "not registered: no policy needs it");
}

#[test]
fn entries_that_are_not_needed_stay_until_narrowing_is_allowed() {
    let double = double("narrow");
    let own_entry =
        json!({"name": "a.tollgate.dev", "clientConfig": {"url": "https://a"}, "failurePolicy": "Fail"});
    let leftover = json!({"name": "b.tollgate.dev", "clientConfig": {"url": "https://a"}});
    double.put(
        VALIDATING,
        json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "tollgate"}, "webhooks": [own_entry, leftover]}),
    );
    let desired: DesiredConfigForCaBundleFn = Arc::new(|_| {
        let entry = json!({"name": "a.tollgate.dev", "clientConfig": {"url": "https://a"}, "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent"});
        let manifest = json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "tollgate"}, "webhooks": [entry]});
        Ok(desired(&manifest.to_string()))
    });
    let allowed = Arc::new(AtomicUsize::new(0));
    let asked = allowed.clone();
    let may_narrow = Arc::new(move || asked.load(Ordering::SeqCst) > 0);
    let registration = WebhookRegistration { may_narrow, ..plain(desired, Arc::new(|| true)) };
    open(&double).keep_webhook_registered(registration).expect("begun");
    let stored = || double.object(VALIDATING, "tollgate").expect("stored")["webhooks"].clone();
    until("widened", || stored()[0]["matchPolicy"] == "Equivalent");
    double.until_watched(VALIDATING);
    assert_eq!(
        (&stored()[0]["failurePolicy"], &stored()[1]["name"]),
        (&json!("Fail"), &json!("b.tollgate.dev"))
    );
    allowed.store(1, Ordering::SeqCst);
    until("narrowed", || stored().as_array().is_some_and(|webhooks| webhooks.len() == 1));
    assert_eq!(stored()[0]["failurePolicy"], "Ignore");
}
