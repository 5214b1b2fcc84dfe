//! Tests the client functions of `tollgate drain`: requests that change a cluster, one at a time, and a watch of many
//! kinds.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::cluster::{
    AccessAttributes, Cluster, ClusterTarget, DEVICE_TAINT_RULES, DRAIN_LEASE, DrainApiRequest, JOB_SETS,
    NODES, ObjectWatch, POD_DISRUPTION_BUDGETS, PODS, ProjectFn, RESOURCE_CLAIMS, RESOURCE_SLICES, Timing,
    WatchState,
};
use tollgate_api::profile::Version;
use tollgate_document::doc::{Builder, Syntax};

use crate::double::Double;
use crate::running::until;
use crate::state::{self, claim, pod, slice};

const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";
const NODE_PATH: &str = "/api/v1/nodes";
const LONG: Duration = Duration::from_mins(1);

fn open(double: &Double) -> Cluster {
    let kubeconfig = double.kubeconfig();
    let (min_backoff, max_backoff) = (Duration::from_millis(20), Duration::from_millis(100));
    let timing = Timing { min_backoff, max_backoff, ..Timing::default() };
    Cluster::start_without_connecting(ClusterTarget { kubeconfig: Some(&kubeconfig), context: None }, timing)
        .expect("a client")
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn rule(effect: &str) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "drain-1"},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1"},
            "taint": {"key": "tollgate.dev/drain", "effect": effect},
        },
    })
}

/// Sends requests, and compares those that the double received with the recorded form.
struct Sender<'a> {
    double: &'a Double,
    cluster: Cluster,
}

impl Sender<'_> {
    fn send(&self, request: &DrainApiRequest) -> (u16, Value) {
        let before = self.double.requests().len();
        let (code, body) = self.cluster.send(request.clone()).expect("a response");
        let (method, path) = request.method_and_path();
        let line = format!("{method} {path}{}", if path.contains('?') { "" } else { "?" });
        let seen = self.double.requests().split_off(before);
        assert!(seen.len() == 1 && seen[0].starts_with(&line), "{line}: {seen:?}");
        (code, serde_json::from_str(&body).expect("JSON"))
    }

    fn code(&self, request: &DrainApiRequest) -> u16 {
        self.send(request).0
    }
}

#[test]
fn rules_are_created_updated_and_deleted() {
    let double = Double::start("drain-rules");
    double.serves(state::RULES);
    let sender = Sender { double: &double, cluster: open(&double) };
    let (version, name) = (Version::V1beta2, text("drain-1"));
    let stored = || double.object(state::RULES, "drain-1");
    let create =
        |is_dry_run| DrainApiRequest::CreateRule { version, object: rule("None").to_string(), is_dry_run };
    assert_eq!((sender.code(&create(true)), stored()), (201, None));
    assert_eq!(sender.code(&create(false)), 201);
    let get = DrainApiRequest::GetRule { version, name: name.clone() };
    let (code, mut read) = sender.send(&get);
    assert_eq!((code, &read["spec"]["taint"]["effect"]), (200, &json!("None")));
    read["spec"]["taint"]["effect"] = json!("NoSchedule");
    let update = |is_dry_run| DrainApiRequest::UpdateRule {
        version,
        name: name.clone(),
        object: read.to_string(),
        is_dry_run,
    };
    assert_eq!(sender.code(&update(true)), 200);
    assert_eq!(stored().expect("stored")["spec"]["taint"]["effect"], "None");
    assert_eq!(sender.code(&update(false)), 200);
    assert_eq!(stored().expect("stored")["spec"]["taint"]["effect"], "NoSchedule");
    let (code, refusal) = sender.send(&update(false));
    assert_eq!((code, &refusal["kind"]), (409, &json!("Status")), "what was read is old by now");
    let now = stored().expect("stored");
    let delete = |uid: &Value, resource_version: &Value| DrainApiRequest::DeleteRule {
        version,
        name: name.clone(),
        uid: text(uid.as_str().expect("a UID")),
        resource_version: text(resource_version.as_str().expect("a version")),
    };
    let metadata = &now["metadata"];
    assert_eq!(sender.code(&delete(&json!("other"), &metadata["resourceVersion"])), 409);
    assert_eq!(sender.code(&delete(&metadata["uid"], &json!("1"))), 409);
    assert_eq!(sender.code(&delete(&metadata["uid"], &metadata["resourceVersion"])), 200);
    assert_eq!((sender.code(&get), stored()), (404, None));
}

#[test]
fn pods_leave_only_if_they_are_the_ones_that_were_meant() {
    let double = Double::start("drain-pods");
    for name in ["one", "two"] {
        double.put(state::PODS, pod("ml", name));
    }
    let sender = Sender { double: &double, cluster: open(&double) };
    let evict =
        |uid: &str| DrainApiRequest::EvictPod { namespace: text("ml"), name: text("one"), uid: text(uid) };
    let budget = "Cannot evict pod as it would violate the pod's disruption budget.";
    double.plan("one", 429, json!({"kind": "Status", "message": budget, "code": 429}));
    let (code, refusal) = sender.send(&evict("uid-one"));
    assert_eq!((code, &refusal["message"]), (429, &json!(budget)), "it is the caller who waits");
    double.plan("one", 500, json!({"kind": "Status", "message": "two budgets", "code": 500}));
    assert_eq!(sender.code(&evict("uid-one")), 500);
    let double_without_plan = Double::start("drain-pods-2");
    double_without_plan.put(state::PODS, pod("ml", "one"));
    let other = Sender { double: &double_without_plan, cluster: open(&double_without_plan) };
    assert_eq!(other.code(&evict("uid-before")), 409);
    assert_eq!(other.code(&evict("uid-one")), 201);
    assert_eq!(other.code(&evict("uid-one")), 404);
    let delete =
        |uid: &str| DrainApiRequest::DeletePod { namespace: text("ml"), name: text("two"), uid: text(uid) };
    assert_eq!((sender.code(&delete("uid-before")), sender.code(&delete("uid-two"))), (409, 200));
    assert_eq!(double.objects(state::PODS).len(), 1, "the other one is still there");
}

#[test]
fn the_lease_and_access_reviews_are_requested() {
    let double = Double::start("drain-lease");
    double.serves(LEASES);
    let sender = Sender { double: &double, cluster: open(&double) };
    let namespace = || text("tollgate-system");
    let get = DrainApiRequest::GetLease { namespace: namespace() };
    assert_eq!(sender.code(&get), 404);
    double.put(LEASES, json!({"metadata": {"namespace": "tollgate-system", "name": DRAIN_LEASE}}));
    let (code, mut lease) = sender.send(&get);
    assert_eq!(code, 200);
    lease["spec"] = json!({"holderIdentity": "us"});
    let update = DrainApiRequest::UpdateLease { namespace: namespace(), object: lease.to_string() };
    assert_eq!((sender.code(&update), sender.code(&update)), (200, 409), "somebody else took it meanwhile");
    let review = AccessAttributes {
        verb: text("create"),
        resource: text("pods"),
        subresource: text("eviction"),
        ..AccessAttributes::default()
    };
    let (code, answer) = sender.send(&DrainApiRequest::ReviewAccess(review));
    assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(true)));
}

/// Without a name, the path of an object is that of all objects.
#[test]
fn nothing_is_sent_without_a_name_or_uid() {
    let double = Double::start("drain-nameless");
    let cluster = open(&double);
    let version = Version::V1;
    let pod = |namespace: &str, name: &str, uid: &str| DrainApiRequest::DeletePod {
        namespace: text(namespace),
        name: text(name),
        uid: text(uid),
    };
    for request in [
        pod("ml", "", "u"),
        pod("", "p", "u"),
        pod("ml", "p", ""),
        pod("ml", "..", "u"),
        DrainApiRequest::DeleteRule { version, name: text(""), uid: text("u"), resource_version: text("1") },
        DrainApiRequest::DeleteRule { version, name: text("r"), uid: text("u"), resource_version: text("") },
        DrainApiRequest::GetLease { namespace: text("") },
    ] {
        let error = cluster.send(request.clone()).expect_err("not sent");
        assert!(error.to_string().contains("is not sent"), "{request:?}: {error}");
    }
    assert_eq!(double.requests(), [""; 0]);
    double.stop_listening();
    let unreachable = cluster.send(pod("ml", "p", "u")).expect_err("nobody is there");
    assert!(unreachable.to_string().starts_with("cannot reach the API server"), "{unreachable}");
}

/// A projection that keeps all objects, but rejects broken ones.
fn keep_all() -> ProjectFn {
    Arc::new(|kind, api_version, object| {
        if object.get("broken").exists() {
            return Err(format!("{} of {api_version} is broken", kind.kind));
        }
        let mut copy = Builder::with_capacity("", Syntax::Json, object.node_count());
        copy.copy(object);
        Ok(copy.finish())
    })
}

fn double(name: &str) -> Double {
    let double = Double::start(name);
    for collection in [state::SLICES, state::CLAIMS, state::RULES, state::PODS, state::BUDGETS, NODE_PATH] {
        double.serves(collection);
    }
    double.put(NODE_PATH, json!({"metadata": {"name": "n"}}));
    double.put(state::SLICES, slice("node-1", 4));
    double.put(state::CLAIMS, claim("a", "one", "node-1", "gpu-0"));
    double.put(state::PODS, pod("a", "one"));
    double
}

fn watch(double: &Double) -> ObjectWatch {
    let needed = [NODES, RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_TAINT_RULES, PODS, POD_DISRUPTION_BUDGETS];
    ObjectWatch::start(&open(double), &needed, &[JOB_SETS], &keep_all(), "manifests/components/drain")
}

/// Each object as `KIND APIVERSION NAMESPACE/NAME`.
fn names(watch: &ObjectWatch) -> Vec<String> {
    let name = |object: &Arc<tollgate::cluster::WatchedObject>| {
        format!("{} {} {}/{}", object.kind.kind, object.api_version, object.namespace, object.name)
    };
    watch.objects().objects.iter().map(name).collect()
}

/// Each added or changed object as `+NAMESPACE/NAME`, and each deleted one as `-NAMESPACE/NAME`.
fn changes(watch: &ObjectWatch, since: u64) -> Vec<String> {
    let changes = watch.changes_since(since).expect("remembered");
    let revisions: Vec<u64> = changes.iter().map(|change| change.revision).collect();
    let expected: Vec<u64> = (since + 1..=watch.revision()).collect();
    assert_eq!(revisions, expected, "each has its number");
    let sign = |is_there: bool| if is_there { "+" } else { "-" };
    changes
        .iter()
        .map(|change| format!("{}{}/{}", sign(change.object.is_some()), change.namespace, change.name))
        .collect()
}

#[test]
fn several_kinds_are_watched() {
    let double = double("drain-watch");
    double.page(1);
    let watch = watch(&double);
    watch.wait_until_synced(LONG).expect("everything is listed");
    assert_eq!(
        names(&watch),
        [
            "Node v1 /n",
            "ResourceSlice resource.k8s.io/v1 /node-1",
            "ResourceClaim resource.k8s.io/v1 a/one",
            "Pod v1 a/one"
        ]
    );
    assert!(
        watch.is_synced()
            && watch.missing_data_messages().is_empty()
            && watch.omitted_kind_notes().is_empty()
    );
    let of = |kind| watch.status().into_iter().find(|status| status.kind == kind).expect("watched").state;
    assert_eq!([of(PODS), of(JOB_SETS)], [WatchState::Current, WatchState::NotServed]);
    // Changes arrive in order, with the version that is served.
    let before = watch.revision();
    assert_eq!(before, 4);
    double.put(state::RULES, rule("None"));
    let after = watch.wait_for_change(before, LONG);
    assert_eq!((after, changes(&watch, before)), (5, vec![text("+/drain-1")]));
    let found = watch.get(&DEVICE_TAINT_RULES, "", "drain-1").expect("cached");
    assert_eq!(*found.api_version, *"resource.k8s.io/v1beta2");
    let stored = double.object(state::RULES, "drain-1").expect("stored");
    assert_eq!(stored["metadata"]["resourceVersion"], *found.resource_version);
    double.put(state::RULES, rule("NoSchedule"));
    watch.wait_for_change(5, LONG);
    let effect = |watch: &ObjectWatch| {
        let rule = watch.get(&DEVICE_TAINT_RULES, "", "drain-1").expect("cached");
        rule.object.root().get("spec").get("taint").get("effect").str().to_owned()
    };
    assert_eq!(effect(&watch), "NoSchedule");
    double.delete(state::RULES, "drain-1");
    watch.wait_for_change(6, LONG);
    assert_eq!(changes(&watch, 5), ["+/drain-1", "-/drain-1"]);
    assert!(watch.get(&DEVICE_TAINT_RULES, "", "drain-1").is_none());
    // What cannot be read is missing, and said.
    let mut broken = pod("a", "one");
    broken["broken"] = json!(true);
    double.put(state::PODS, broken);
    until("unreadable", || watch.missing_data_messages() == ["pods: ok, 1 object unreadable"]);
    assert_eq!(changes(&watch, 7), ["-a/one"]);
    double.put(state::PODS, pod("a", "one"));
    until("readable", || watch.missing_data_messages().is_empty());
    assert_eq!(watch.wait_for_change(9, Duration::ZERO), 9, "nothing new");
}

#[test]
fn a_broken_watch_goes_on_where_it_was() {
    let double = double("drain-broken");
    let watch = watch(&double);
    watch.wait_until_synced(LONG).expect("everything is listed");
    double.until_watched(state::PODS);
    let lists = || double.count(&format!("GET {}?limit", state::PODS));
    assert_eq!(lists(), 1);
    // It ends, or is cut: what happens meanwhile is read when it is back, and nothing twice.
    double.mute(true);
    double.put(state::PODS, pod("a", "two"));
    double.end_watches();
    double.close_connections();
    double.mute(false);
    let before = watch.wait_for_change(4, LONG);
    assert_eq!((before, changes(&watch, 4), lists()), (5, vec![text("+a/two")], 1));
    // The API server is gone: what was known stays, with its age.
    double.stop_listening();
    let is_interrupted = |failure: &String| failure.starts_with("pods: the watch is interrupted");
    until("interrupted", || watch.missing_data_messages().iter().any(is_interrupted));
    assert!(watch.watch_down_for().is_some() && watch.is_synced() && names(&watch).len() == 5);
    double.delete(state::PODS, "a/one");
    double.listen_again();
    until("back", || watch.watch_down_for().is_none() && watch.revision() == 6);
    assert_eq!(changes(&watch, 5), ["-a/one"]);
    // The versions are forgotten: everything is listed again, and only what changed is a change.
    for collection in [state::SLICES, state::PODS] {
        double.until_watched(collection);
    }
    double.mute(true);
    double.put(state::PODS, pod("a", "three"));
    double.delete(state::PODS, "a/two");
    double.forget();
    double.end_watches();
    double.mute(false);
    until("listed again", || watch.revision() == 8);
    assert_eq!(changes(&watch, 6), ["+a/three", "-a/two"]);
}

#[test]
fn kinds_that_may_not_be_listed_are_a_failure_or_a_note() {
    let double = double("drain-forbidden");
    double.serves("/apis/jobset.x-k8s.io/v1alpha2/jobsets");
    double.refuse(&[("jobsets", 403)]);
    let watch = watch(&double);
    watch.wait_until_synced(LONG).expect("nobody needs JobSets");
    assert!(watch.missing_data_messages().is_empty());
    let notes = watch.omitted_kind_notes();
    assert!(
        notes.len() == 1
            && notes[0].starts_with("jobsets.jobset.x-k8s.io: not listed yet: the API server returned 403: ")
            && notes[0]
                .ends_with("; apply the ClusterRole of manifests/components/drain and bind it to this user"),
        "{notes:?}"
    );
    double.refuse(&[]);
    until("granted later", || watch.omitted_kind_notes().is_empty());
    // A needed kind.
    double.refuse(&[(NODE_PATH, 403)]);
    let other = crate::drain_client::watch(&double);
    let failures = other.wait_until_synced(LONG).expect_err("nodes are needed");
    assert!(failures.len() == 1 && failures[0].starts_with("nodes: not listed yet: "), "{failures:?}");
    assert!(!other.is_synced());
    // An error that may pass is waited for, up to the timeout.
    double.refuse(&[(NODE_PATH, 503)]);
    let other = crate::drain_client::watch(&double);
    let failures = other.wait_until_synced(Duration::from_millis(300)).expect_err("not yet");
    assert!(failures.iter().any(|failure| failure.starts_with("nodes: not listed yet")), "{failures:?}");
    double.refuse(&[]);
    other.wait_until_synced(LONG).expect("now it is");
    // Who may list and not watch has objects that grow old.
    double.refuse(&[("pods?watch", 403)]);
    let other = crate::drain_client::watch(&double);
    let is_refused =
        |failure: &String| failure.starts_with("pods: the watch is interrupted") && failure.contains("403");
    until("refused", || other.missing_data_messages().iter().any(is_refused));
    assert!(other.watch_down_for().is_some() && other.wait_until_synced(LONG).is_err());
    double.refuse(&[]);
    // A page of a proxy is not an empty list.
    double.answer_with(NODE_PATH, r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#);
    let other = crate::drain_client::watch(&double);
    let failures = other.wait_until_synced(Duration::from_millis(300)).expect_err("no list");
    assert!(
        failures.iter().any(|failure| failure.contains("expected a NodeList, got Status")),
        "{failures:?}"
    );
}
