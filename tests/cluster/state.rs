//! `--cluster`: what a DeviceTaintRule will do, from the watched state, through everything a watch can suffer.

use serde_json::{Value, json};

use crate::double::Double;
use crate::running::until;
use crate::webhook::Webhook;

pub(crate) const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
pub(crate) const CLAIMS: &str = "/apis/resource.k8s.io/v1/resourceclaims";
pub(crate) const RULES: &str = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
pub(crate) const PODS: &str = "/api/v1/pods";
pub(crate) const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";

pub(crate) fn slice(name: &str, devices: usize) -> Value {
    let devices: Vec<Value> = (0..devices).map(|number| json!({"name": format!("gpu-{number}")})).collect();
    json!({
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com", "nodeName": "n", "devices": devices,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        },
    })
}

pub(crate) fn claim(namespace: &str, name: &str, pool: &str, device: &str) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [
                {"request": "r", "driver": "gpu.example.com", "pool": pool, "device": device},
            ]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": format!("uid-{name}")}],
        },
    })
}

/// A pod that uses the claim of its name.
pub(crate) fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}")},
        "spec": {"nodeName": "n", "resourceClaims": [{"name": "gpu", "resourceClaimName": name}], "containers": []},
        "status": {"phase": "Running"},
    })
}

fn review(pool: &str) -> Vec<u8> {
    let kind = json!({"group": "resource.k8s.io", "version": "v1", "kind": "DeviceTaintRule"});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "name": "drain", "kind": kind,
            "resource": {"group": "resource.k8s.io", "version": "v1", "resource": "devicetaintrules"},
            "object": {
                "apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "drain"},
                "spec": {
                    "deviceSelector": {"driver": "gpu.example.com", "pool": pool},
                    "taint": {"key": "example.com/broken", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
                },
            },
        },
    })
    .to_string()
    .into_bytes()
}

struct Fixture(Webhook);

impl std::ops::Deref for Fixture {
    type Target = Webhook;

    fn deref(&self) -> &Webhook {
        &self.0
    }
}

impl Fixture {
    fn start(name: &str, double: &Double, arguments: &[&str]) -> Fixture {
        Fixture(Webhook::start(&format!("state-{name}"), double, None, arguments))
    }

    /// The warnings in the response to a rule for this pool.
    fn warnings(&self, pool: &str) -> String {
        let response = self.send_review(&review(pool));
        assert_eq!(response["allowed"], true, "{response}");
        response["warnings"].to_string()
    }
}

/// Two pools of four devices; pod `a/one` holds a device of the first.
fn double(name: &str) -> Double {
    let double = Double::start(name);
    for collection in [SLICES, CLAIMS, RULES, PODS, BUDGETS] {
        double.serves(collection);
    }
    double.put(SLICES, slice("node-1", 4));
    double.put(SLICES, slice("node-2", 4));
    double.put(CLAIMS, claim("a", "one", "node-1", "gpu-0"));
    double.put(PODS, pod("a", "one"));
    // Most pods use no claim.
    double.put(PODS, json!({"metadata": {"namespace": "a", "name": "plain"}, "spec": {"containers": []}}));
    double
}

#[test]
fn what_a_rule_will_do_is_told_from_the_watched_state() {
    let double = double("impact");
    double.page(1);
    double.refuse(&[(PODS, 403)]);
    let fixture = Fixture::start("impact", &double, &["--cluster"]);
    until("refused", || {
        let verbose = fixture.process.get("/readyz?verbose").text();
        verbose.contains("[-]pods not listed yet") && verbose.contains("manifests/overlays/cluster")
    });
    assert_eq!(fixture.process.get("/readyz").status, 503);
    assert!(!fixture.warnings("node-1").contains("evicts"), "nothing is told before everything was read");
    double.refuse(&[]);
    fixture.until_ready();
    let warnings = fixture.warnings("node-1");
    assert!(warnings.contains("selects 4 devices and evicts 1 pod in 1 namespace"), "{warnings}");
    assert!(fixture.warnings("node-2").contains("selects 4 devices and evicts 0 pods in 0 namespaces"));
    // Changes are seen as they happen.
    double.put(CLAIMS, claim("b", "two", "node-1", "gpu-1"));
    double.put(PODS, pod("b", "two"));
    until("the second pod", || fixture.warnings("node-1").contains("evicts 2 pods in 2 namespaces"));
    double.delete(PODS, "a/one");
    until("the first pod is gone", || fixture.warnings("node-1").contains("evicts 1 pod in 1 namespace"));
    double.put(SLICES, slice("node-1", 3));
    until("a device is gone", || fixture.warnings("node-1").contains("selects 3 devices"));
    let objects = |resource: &str| {
        fixture.process.metric(&format!("tollgate_watch_objects{{resource=\"{resource}\"}}"))
    };
    assert_eq!(
        [objects("pods"), objects("resourceslices"), objects("resourceclaims")],
        [Some(1), Some(2), Some(2)]
    );
    // Rules are served in an older version here, and found there.
    assert!(double.count("GET /apis/resource.k8s.io/v1/devicetaintrules") > 0);
    assert!(fixture.process.get("/readyz?verbose").text().contains("[+]devicetaintrules ok"));
    // Nobody asked for labels.
    assert_eq!(double.count("/api/v1/namespaces"), 0);
}

#[test]
fn an_api_server_that_is_gone_leaves_what_was_known_with_its_age() {
    let double = double("impact-gone");
    let fixture = Fixture::start("impact-gone", &double, &["--cluster"]);
    fixture.until_ready();
    for collection in [SLICES, CLAIMS, RULES, PODS, BUDGETS] {
        double.until_watched(collection);
    }
    assert!(!fixture.warnings("node-1").contains("ago"));
    double.stop_listening();
    double.delete(PODS, "a/one");
    until("told how old", || {
        let warnings = fixture.warnings("node-1");
        assert!(warnings.contains("evicts 1 pod in 1 namespace"), "{warnings}");
        warnings.contains("s ago)") && !warnings.contains("of 0 s ago")
    });
    assert_eq!(fixture.process.get("/readyz").status, 200);
    double.listen_again();
    until("current again", || {
        let warnings = fixture.warnings("node-1");
        warnings.contains("evicts 0 pods") && !warnings.contains("ago")
    });
    // Everything is forgotten: one list each, and what went meanwhile is gone.
    for collection in [SLICES, CLAIMS, RULES, PODS, BUDGETS] {
        double.until_watched(collection);
    }
    double.mute(true);
    double.delete(SLICES, "node-2");
    double.forget();
    double.end_watches();
    double.mute(false);
    until("listed again", || fixture.warnings("node-2").contains("selects 0 devices"));
}

/// Four of the eight devices may be tainted.
const FOUR_TAINTED: &str = "
apiVersion: tollgate.dev/v1alpha1
kind: TaintRulePolicy
metadata: {name: four}
spec: {maxTainted: {devices: 4}}
";

#[test]
fn all_rules_together_are_not_counted_while_a_watch_is_interrupted() {
    let double = double("tainted-interrupted");
    let fixture = Webhook::start("tainted-interrupted", &double, Some(FOUR_TAINTED), &["--cluster"]);
    fixture.until_ready();
    double.until_watched(RULES);
    let create = |pool: &str| fixture.send_review(&review(pool));
    assert_eq!(create("node-1")["allowed"], true, "{}", create("node-1"));
    // A rule of which Tollgate does not learn.
    double.refuse(&[("devicetaintrules", 503)]);
    double.end_watches();
    let message = |response: &Value| response["status"]["message"].as_str().unwrap_or_default().to_owned();
    until("interrupted", || {
        message(&create("node-1")).contains("cannot check this rule against policy four")
    });
    let mut stored: Value = serde_json::from_slice(&review("node-1")).expect("JSON");
    stored["request"]["object"]["metadata"]["name"] = json!("other");
    double.put(RULES, stored["request"]["object"].clone());
    let response = create("node-2");
    assert_eq!(response["allowed"], false, "{response}");
    assert!(message(&response).contains("the numbers may be too low (as of "), "{response}");
    // Damage control: a narrower, a weaker and an unchanged rule.
    let update = |change: &dyn Fn(&mut Value)| {
        let mut review: Value = serde_json::from_slice(&review("node-1")).expect("JSON");
        let request = &mut review["request"];
        request["operation"] = json!("UPDATE");
        request["oldObject"] = request["object"].clone();
        change(&mut request["object"]);
        fixture.send_review(review.to_string().as_bytes())
    };
    let allowed: [&dyn Fn(&mut Value); 4] = [
        &|object| object["spec"]["deviceSelector"]["device"] = json!("gpu-0"),
        &|object| object["spec"]["taint"]["effect"] = json!("NoSchedule"),
        &|object| object["spec"]["taint"]["effect"] = json!("None"),
        &|object| object["metadata"]["labels"] = json!({"a": "b"}),
    ];
    for change in allowed {
        let response = update(change);
        assert_eq!(response["allowed"], true, "{response}");
    }
    let wider = update(&|object| object["spec"]["deviceSelector"] = json!({"driver": "gpu.example.com"}));
    assert_eq!(wider["allowed"], false, "{wider}");
    double.refuse(&[]);
    until("counted again", || {
        message(&create("node-2")).contains("all rules together taint 8 devices")
            && create("node-1")["allowed"] == true
    });
}

#[test]
fn rules_that_have_expired_or_have_no_owner_are_counted() {
    let double = double("forgotten");
    let put = |name: &str, effect: &str, annotations: Value| {
        double.put(
            RULES,
            json!({
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"deviceSelector": {"pool": "node-1"}, "taint": {"key": "example.com/a", "effect": effect}},
            }),
        );
    };
    let (past, future) = ("2020-01-01T00:00:00Z", "2120-01-01T00:00:00Z");
    put("expired", "NoSchedule", json!({"tollgate.dev/owner": "a", "tollgate.dev/expires": past}));
    put("current", "NoExecute", json!({"tollgate.dev/owner": "a", "tollgate.dev/expires": future}));
    put("ownerless", "NoExecute", json!({}));
    put("neither", "NoSchedule", json!({"tollgate.dev/expires": past}));
    put("unlimited", "NoSchedule", json!({"example.com/owner": "a"}));
    put("without-effect", "None", json!({"tollgate.dev/expires": past}));
    let fixture = Fixture::start("forgotten", &double, &["--cluster"]);
    fixture.until_ready();
    assert_eq!(fixture.process.metric("tollgate_rules_expired"), Some(2));
    assert_eq!(fixture.process.metric("tollgate_rules_without_owner"), Some(3));
}

#[test]
fn a_cluster_without_dynamic_resources_is_no_error() {
    let double = Double::start("without-dra");
    double.serves(PODS);
    double.serves(BUDGETS);
    double.release("33");
    // An older release, where slices are found two versions down.
    let older = "/apis/resource.k8s.io/v1beta1/resourceslices";
    let mut flat = slice("node-1", 0);
    flat["spec"]["devices"] = json!([{"name": "gpu-0", "basic": {}}]);
    double.put(older, flat);
    let fixture = Fixture::start("without-dra", &double, &["--cluster", "--kubernetes", "1.37"]);
    fixture.until_ready();
    let verbose = fixture.process.get("/readyz?verbose").text();
    for says in [
        "[+]resourceclaims not served by this cluster",
        "[+]devicetaintrules not served",
        "[+]resourceslices ok",
    ] {
        assert!(verbose.contains(says), "{says}: {verbose}");
    }
    assert!(fixture.warnings("node-1").contains("selects 1 device and evicts 0 pods"));
    // Who asks only for labels watches nothing else.
    let small = Double::start("labels-only");
    let fixture = Fixture::start("labels-only", &small, &["--cluster=labels"]);
    fixture.until_ready();
    assert_eq!(small.count("watch=true"), 0);
    assert!(!fixture.warnings("node-1").contains("evicts"));
}

#[test]
fn an_object_that_cannot_be_read_is_told_and_left_out() {
    let double = double("unreadable");
    let mut broken = slice("node-3", 1);
    broken["spec"]["pool"]["generation"] = json!("one");
    double.put(SLICES, broken);
    let fixture = Fixture::start("unreadable", &double, &["--cluster"]);
    fixture.until_ready();
    assert_eq!(
        fixture.process.metric(r#"tollgate_watch_unreadable_total{resource="resourceslices"}"#),
        Some(1)
    );
    until("told", || fixture.process.log().contains("an object is not cached"));
    let warnings = fixture.warnings("node-1");
    assert!(warnings.contains("selects 4 devices"), "{warnings}");
    assert!(warnings.contains("(1 object unreadable)"), "{warnings}");
    let standing = fixture.process.get("/readyz?verbose").text();
    assert!(standing.contains("ok, 1 object unreadable"), "{standing}");
    // Mended, broken again and deleted: the hole is gone each time.
    double.put(SLICES, slice("node-3", 1));
    until("mended", || !fixture.warnings("node-1").contains("unreadable"));
    let mut broken = slice("node-3", 1);
    broken["spec"]["devices"] = json!("none");
    double.put(SLICES, broken);
    until("broken", || fixture.warnings("node-1").contains("unreadable"));
    double.delete(SLICES, "node-3");
    until("deleted", || !fixture.warnings("node-1").contains("unreadable"));
}

#[test]
fn nobody_is_registered_who_does_not_know_the_cluster() {
    let double = double("both");
    let validating = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    double.serves(validating);
    double.serves("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations");
    double.refuse(&[(BUDGETS, 503)]);
    let fixture = Fixture::start("both", &double, &["--cluster", "--register", "https://localhost:8443"]);
    until("refused", || double.count(BUDGETS) > 3);
    assert_eq!(double.count("admissionregistration"), 0);
    double.refuse(&[]);
    double.until("registered", |double| double.object(validating, "tollgate").is_some());
    assert_eq!(fixture.process.get("/readyz").status, 200);
}
