//! Compares computed impacts with recorded ones: `tests/impact/`, see the README there.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]
#![expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "seconds of a recording")]
#![expect(clippy::disallowed_methods, reason = "reads fixtures")]
#![expect(clippy::disallowed_types, reason = "reads recordings independently of the code under test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use tollgate_api::profile::Profile;
use tollgate_document::doc;
use tollgate_document::source::{documents, list};
use tollgate_engine::engine;
use tollgate_engine::impact::{
    self, Impact, ImpactQuery, PodOutcome, ProposedChange, Snapshot, SnapshotKind,
};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_formats::gotime::{self, Timestamp};

fn folders(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/impact").join(name);
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn snapshot(text: &str) -> Snapshot {
    let mut snapshot = Snapshot::new();
    for document in documents(text) {
        let document = document.expect("YAML");
        for item in list::objects(document.doc.root()) {
            snapshot.apply(item.typed_value()).expect("an object that fits");
        }
    }
    snapshot
}

fn time(text: &str) -> Timestamp {
    gotime::parse_rfc3339(text).expect("a time")
}

/// Computes the impact of the rule or slice in a manifest, and calls `tell` with it.
fn with_impact<R>(
    state: &Snapshot,
    manifest: &str,
    profile: &str,
    at: Timestamp,
    tell: impl FnOnce(&ProposedChange, &Impact<'_>) -> R,
) -> R {
    let profile = Profile::named(profile).expect("a profile");
    let mut state = state.clone();
    let document = documents(manifest).next().expect("a document").expect("YAML");
    let object = document.doc.root();
    let change = if object.get("kind").str() == "ResourceSlice" {
        ProposedChange::from_published_slice(object, &mut state, at).expect("a slice that fits")
    } else {
        ProposedChange::from_rule_manifest(object, None, &state, profile, at).expect("a rule that fits")
    };
    let query = ImpactQuery { snapshot: &state, change: &change, profile, at };
    tell(&change, &impact::assess(query))
}

/// Seconds from `from` to the eviction; 0 for pods that are evicted immediately.
fn seconds(outcome: PodOutcome, from: Timestamp) -> Option<f64> {
    let precise = |time: Timestamp| time.seconds as f64 + f64::from(time.nanos) / 1e9;
    match outcome {
        PodOutcome::EvictedNow => Some(0.0),
        PodOutcome::EvictedAt(time) => Some(precise(time) - precise(from)),
        PodOutcome::Tolerated | PodOutcome::Unaffected => None,
    }
}

/// Compares a recorded condition with the computed one. The part of the message about earlier evictions is
/// ignored, because the state does not contain them.
fn same_condition(what: &str, recorded: &Json, impact: &Impact<'_>, wrong: &mut Vec<String>) {
    let condition = impact.condition.as_ref().expect("1.36 writes a status");
    let text = |name: &str| recorded[name].as_str().expect("a text");
    let mut message = text("message");
    if let Some(at) = message.find(" evicted since starting the controller.") {
        let before = &message[..at];
        message = before.rfind(['.']).map_or("", |end| &before[..=end]);
    }
    let expected = (text("status"), text("reason"), message);
    let found = (condition.status, condition.reason, condition.message.as_str());
    if expected != found {
        wrong.push(format!("{what}: expected {expected:?}\n   found {found:?}"));
    }
}

/// Compares every recorded pod with its computed outcome, from `start` to `end` seconds.
fn same_pods(
    what: &str,
    result: &Json,
    impact: &Impact<'_>,
    from: Timestamp,
    window: (f64, f64),
    wrong: &mut Vec<String>,
) {
    for pod in result["pods"].as_array().expect("pods") {
        let (namespace, name) = (pod["namespace"].as_str().unwrap(), pod["name"].as_str().unwrap());
        let foreseen = impact.pods.iter().find(|found| found.namespace == namespace && found.name == name);
        let foreseen = foreseen.and_then(|pod| seconds(pod.outcome, from));
        let foreseen = foreseen.filter(|at| *at <= window.1);
        let happened = pod["evicted"].as_bool().unwrap().then(|| pod["deleted_after_s"].as_f64().unwrap());
        let happened = happened.filter(|at| *at >= window.0 && *at <= window.1).map(|at| at - window.0);
        let agree = match (foreseen, happened) {
            (None, None) => true,
            (Some(foreseen), Some(happened)) => (foreseen - happened).abs() <= 1.0,
            _ => false,
        };
        if !agree {
            wrong.push(format!("{what}: {namespace}/{name} went at {happened:?}, foreseen {foreseen:?}"));
        }
    }
}

#[test]
fn recorded_rules_did_what_is_foreseen() {
    let mut wrong = Vec::new();
    let mut scenarios = 0;
    // Recorded with 1.36; a controller of 1.37 did the same.
    let both = folders("recorded")
        .into_iter()
        .flat_map(|folder| ["1.36", "1.37"].map(|name| (folder.clone(), name)));
    for (folder, profile) in both {
        let what = folder.file_name().unwrap().to_string_lossy().into_owned();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of the recording");
        let result: Json = serde_json::from_str(&read("result.json")).expect("JSON");
        let mut state = snapshot(&read("before.yaml"));
        let created = time(result["created_at"].as_str().unwrap());
        let steps = result["steps"].as_array().unwrap();
        let first_step = steps.first().map_or(f64::INFINITY, |step| step["seconds"].as_f64().unwrap());
        let end = result["condition"]["end"]["seconds"].as_f64().unwrap_or(20.0);
        with_impact(&state, &read("rule.yaml"), profile, created, |_, impact| {
            if result["condition"].is_object() {
                same_condition(&what, &result["condition"]["first"], impact, &mut wrong);
            } else {
                assert!(impact.condition.is_none(), "{what}: a slice has no condition");
            }
            same_pods(&what, &result, impact, created, (0.0, end.min(first_step)), &mut wrong);
        });
        for step in steps {
            let (after, rule) = next_state(&mut state, &result, step, first_step);
            let from = Timestamp { seconds: created.seconds + after as i64, ..created };
            with_impact(&state, &rule, profile, from, |change, impact| {
                let what = format!("{what}, after {after} s");
                let later = result["condition"]["history"].as_array().unwrap().iter();
                let mut later = later.filter(|condition| condition["seconds"].as_f64().unwrap() >= after);
                same_condition(&what, later.next().expect("a condition"), impact, &mut wrong);
                same_pods(&what, &result, impact, from, (after, end), &mut wrong);
                if let (ProposedChange::Rule(rule), Some(stored)) = (change, step["taint_after"].as_object())
                {
                    assert_eq!(rule.taint.added, Some(time(stored["timeAdded"].as_str().unwrap())), "{what}");
                }
            });
        }
        scenarios += 1;
    }
    assert_eq!(scenarios, 2 * 38);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Applies a recorded step to the state. Returns its time and the rule as sent.
fn next_state(state: &mut Snapshot, result: &Json, step: &Json, first_step: f64) -> (f64, String) {
    let stored = result["rule"]["stored"].clone();
    apply(state, &stored);
    for pod in result["pods"].as_array().unwrap() {
        let gone = pod["deleted_after_s"].as_f64().is_some_and(|at| at < first_step);
        if gone {
            state.remove(
                SnapshotKind::Pod,
                pod["namespace"].as_str().unwrap(),
                pod["name"].as_str().unwrap(),
            );
        }
    }
    let mut rule = stored;
    if let Some(claim) = step["deallocate"].as_str() {
        let (namespace, name) = claim.split_once('/').unwrap();
        state.remove(SnapshotKind::Claim, namespace, name);
    } else {
        for (name, value) in step["patch"]["spec"]["taint"].as_object().expect("a patch of the taint") {
            rule["spec"]["taint"][name] = value.clone();
        }
    }
    (step["seconds"].as_f64().unwrap(), rule.to_string())
}

fn apply(state: &mut Snapshot, object: &Json) {
    let text = object.to_string();
    let document = doc::parse(&text).expect("JSON");
    state.apply(document.root()).expect("an object that fits");
}

#[test]
fn eviction_times() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/impact/times.yaml");
    let text = std::fs::read_to_string(path).expect("the cases");
    let document = documents(&text).next().expect("a document").expect("YAML");
    let file: Json = serde_json::from_str(&document.doc.root().to_json()).expect("JSON");
    let now = file["now"].as_str().unwrap();
    let cases = file["cases"].as_array().unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let profile = case["profile"].as_str().unwrap_or("1.36");
        let mut state = Snapshot::new();
        for object in objects(case) {
            apply(&mut state, &object);
        }
        // Where there are no rules, drivers and patches taint devices: it is a slice that changes.
        let manifest = match case["published"].as_object() {
            Some(_) => slice(&case["published"]).to_string(),
            None => rule(case, "asked", &case["taint"]).to_string(),
        };
        with_impact(&state, &manifest, profile, time(now), |_, impact| {
            for (pod, expected) in case["expect"].as_object().unwrap() {
                let found = impact.pods.iter().find(|found| found.name == pod);
                let found = match found.map(|found| found.outcome) {
                    None => "absent".to_owned(),
                    Some(PodOutcome::EvictedNow) => "now".to_owned(),
                    Some(PodOutcome::EvictedAt(at)) => after(at, time(now)),
                    Some(other) => other.name().to_owned(),
                };
                if found != expected.as_str().unwrap() {
                    wrong.push(format!("{name}: {pod}: expected {expected}, found {found}"));
                }
            }
        });
    }
    assert!(cases.len() >= 30);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The time relative to `now` in seconds, such as `+60` or `+0.25`.
fn after(at: Timestamp, now: Timestamp) -> String {
    let nanos = format!("{:09}", at.nanos);
    let nanos = nanos.trim_end_matches('0');
    let point = if nanos.is_empty() { "" } else { "." };
    format!("+{}{point}{nanos}", at.seconds - now.seconds)
}

fn rule(case: &Json, name: &str, taint: &Json) -> Json {
    let selector = match case.get("selector") {
        None => json!({"driver": "gpu.example.com"}),
        Some(selector) => selector.clone(),
    };
    let usual = json!({"key": "k", "value": "v", "effect": "NoExecute"});
    let taint = if taint.is_null() { &usual } else { taint };
    let mut spec = json!({"taint": taint});
    if !selector.is_null() {
        spec["deviceSelector"] = selector;
    }
    json!({"apiVersion": "resource.k8s.io/v1alpha3", "kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": spec})
}

/// The slice of a case, with the taints of its devices.
fn slice(taints: &Json) -> Json {
    let device = |name: &str| json!({"name": name, "taints": taints[name]});
    let devices: Vec<Json> = ["gpu-0", "gpu-1", "gpu-2", "gpu-3"].map(device).into();
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "slice"},
        "spec": {"driver": "gpu.example.com", "nodeName": "n", "devices": devices,
                 "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}},
    })
}

/// The objects that a test case describes.
fn objects(case: &Json) -> Vec<Json> {
    let mut objects = vec![slice(&case["slice"])];
    if case["sliceTaints"].is_array() {
        objects.push(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "taints"},
            "spec": {"driver": "gpu.example.com", "nodeName": "n", "taints": case["sliceTaints"],
                     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 2}},
        }));
    }
    for other in case["rules"].as_array().into_iter().flatten() {
        // Without a selector of its own it has that of the case.
        let selecting = if other.get("selector").is_some() { other } else { case };
        objects.push(rule(selecting, other["name"].as_str().unwrap(), &other["taint"]));
    }
    let pods = case["pods"].as_object().unwrap();
    for (claim, devices) in case["claims"].as_object().unwrap() {
        let (mut results, mut requests) = (Vec::new(), Vec::new());
        for (index, device) in devices.as_array().unwrap().iter().enumerate() {
            let mut result = device.clone();
            result["driver"] = "gpu.example.com".into();
            result["pool"] = "node-1".into();
            let request = format!("gpu-{index}");
            result["request"] = request.clone().into();
            if let Some(tolerations) = result.as_object_mut().unwrap().remove("requested") {
                requests.push(json!({"name": request, "exactly": {"tolerations": tolerations}}));
            }
            results.push(result);
        }
        let users = pods.iter().filter(|(_, pod)| pod["claims"].as_array().unwrap().contains(&json!(claim)));
        let (mut reserved, mut owner) = (Vec::new(), Json::Null);
        for (name, pod) in users {
            if pod["reserved"] != json!(false) {
                reserved.push(json!({"resource": "pods", "name": name, "uid": format!("uid-{name}")}));
            }
            if let Some(group) = pod["group"].as_str() {
                let group = json!({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": group, "uid": "g"});
                reserved.push(group);
            }
            if pod["template"] == json!(name) {
                owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": format!("uid-{name}"), "controller": true}]);
            }
        }
        objects.push(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": claim, "namespace": "ml", "ownerReferences": owner},
            "spec": {"devices": {"requests": requests}},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved},
        }));
    }
    for (name, pod) in pods {
        let from_template = pod["template"].is_string();
        let claims = pod["claims"].as_array().unwrap().iter();
        let claims: Vec<Json> = claims
            .map(|claim| {
                if from_template {
                    json!({"name": claim, "resourceClaimTemplateName": "t"})
                } else {
                    json!({"name": claim, "resourceClaimName": claim})
                }
            })
            .collect();
        let made: Vec<Json> = pod["claims"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|_| from_template)
            .map(|claim| json!({"name": claim, "resourceClaimName": claim}))
            .collect();
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "ml", "uid": format!("uid-{name}")},
            "spec": {"nodeName": pod["node"].as_str().unwrap_or("n"), "resourceClaims": claims},
            "status": {"resourceClaimStatuses": made},
        });
        if pod["deleting"] == json!(true) {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        if let Some(group) = pod["group"].as_str() {
            object["spec"]["schedulingGroup"] = json!({"podGroupName": group});
        }
        objects.push(object);
    }
    objects
}

/// The impact of some rules on a snapshot, as text.
fn impact_texts(state: &Snapshot) -> String {
    let selectors =
        [json!({}), json!({"driver": "d0"}), json!({"pool": "p1"}), json!({"device": "x2"}), Json::Null];
    let mut said = String::new();
    for selector in selectors {
        let case = json!({"selector": selector});
        let manifest = rule(&case, "r0", &json!({"key": "k", "effect": "NoExecute"})).to_string();
        with_impact(state, &manifest, "1.36", time("2026-01-01T00:00:00Z"), |change, impact| {
            let query = ImpactQuery {
                snapshot: state,
                change,
                profile: Profile::named("1.36").unwrap(),
                at: time("2026-01-01T00:00:00Z"),
            };
            assert_eq!(impact.counts, impact::impact_counts(query), "counting alone gives the same numbers");
            let pods = impact.pods.iter();
            let pods: Vec<String> = pods
                .map(|pod| format!("{}/{} {:?} {}", pod.namespace, pod.name, pod.outcome, pod.reasons.len()))
                .collect();
            let budgets = impact::violated_budgets(state, impact);
            let differences = impact::impact_notes(query, impact);
            _ = writeln!(said, "{:?} {} {pods:#?} {budgets:?} {differences:?}", impact.counts, impact.claims);
        });
    }
    for kind in SnapshotKind::ALL {
        _ = writeln!(said, "{kind:?}: {}", state.count(kind));
    }
    said
}

/// A random object with one of few names, so that objects replace each other.
fn some_object(draw: &mut impl FnMut(u64) -> u64) -> Json {
    let taint = |effect: &str| json!({"key": "k", "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"});
    let effect = ["None", "NoSchedule", "NoExecute"][draw(3) as usize];
    let metadata = |name: String| json!({"name": name, "namespace": "n"});
    match draw(6) {
        0 => {
            let devices = (0..draw(4)).map(|n| json!({"name": format!("x{n}"), "taints": [taint(effect)]}));
            let devices: Vec<Json> = devices.collect();
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                "metadata": {"name": format!("s{}", draw(4))},
                "spec": {"driver": format!("d{}", draw(2)), "devices": devices, "allNodes": true,
                    "pool": {"name": format!("p{}", draw(2)), "generation": draw(3), "resourceSliceCount": 1}}})
        }
        1 => {
            let results = (0..draw(3)).map(|_| {
                json!({"driver": format!("d{}", draw(2)), "pool": format!("p{}", draw(2)),
                    "device": format!("x{}", draw(4)), "request": "r",
                    "tolerations": (0..draw(2)).map(|_| json!({"key": "k", "operator": "Exists", "effect": "NoExecute"})).collect::<Vec<_>>()})
            });
            let results: Vec<Json> = results.collect();
            let reserved: Vec<Json> = (0..draw(4))
                .map(|n| json!({"resource": "pods", "name": format!("u{n}"), "uid": format!("u{n}")}))
                .collect();
            let mut status = json!({"reservedFor": reserved});
            if draw(4) > 0 {
                status["allocation"] = json!({"devices": {"results": results}});
            }
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata(format!("c{}", draw(4))), "status": status})
        }
        2 | 3 => {
            let name = format!("u{}", draw(4));
            let claims = (0..draw(3))
                .map(|n| json!({"name": format!("{n}"), "resourceClaimName": format!("c{}", draw(4))}));
            let claims: Vec<Json> = claims.collect();
            json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"app": format!("{}", draw(2))}},
                "spec": {"nodeName": "node", "resourceClaims": claims}})
        }
        4 => json!({"apiVersion": "resource.k8s.io/v1alpha3", "kind": "DeviceTaintRule",
            "metadata": {"name": format!("r{}", draw(3))},
            "spec": {"deviceSelector": {"driver": format!("d{}", draw(2))}, "taint": taint(effect)}}),
        _ => {
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(format!("b{}", draw(2))),
            "spec": {"selector": {"matchLabels": {"app": format!("{}", draw(2))}}},
            "status": {"disruptionsAllowed": draw(2)}})
        }
    }
}

#[test]
fn the_order_of_changes_does_not_matter() {
    for seed in 0..200_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let mut watched = Snapshot::new();
        let mut stored: std::collections::BTreeMap<(String, String, String), Json> =
            std::collections::BTreeMap::new();
        for _ in 0..60 {
            let object = some_object(&mut draw);
            let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
            let kind = object["kind"].as_str().unwrap().to_owned();
            let key = (kind.clone(), text("namespace"), text("name"));
            if draw(4) == 0 {
                let kind = SnapshotKind::from_type_meta(object["apiVersion"].as_str().unwrap(), &kind)
                    .expect("a kind");
                watched.remove(kind, &key.1, &key.2);
                stored.remove(&key);
            } else {
                apply(&mut watched, &object);
                stored.insert(key, object);
            }
        }
        let mut fresh = Snapshot::new();
        for object in stored.values().rev() {
            apply(&mut fresh, object);
        }
        assert_eq!(impact_texts(&watched), impact_texts(&fresh), "seed {seed}");
        let mut emptied = watched.clone();
        for kind in SnapshotKind::ALL {
            emptied.retain(kind, |_, _| false);
        }
        assert_eq!(
            impact_texts(&emptied),
            impact_texts(&Snapshot::new()),
            "seed {seed}: something stays behind"
        );
    }
}

/// A cluster with a namespace for each of these lists of budgets: name, `unhealthyPodEvictionPolicy` and status. In each are
/// four pods, and each of them has a device: two Ready ones, one that is not, and one that does not run yet.
fn cluster_with_budgets(namespaces: &[&[(&str, &str, Json)]]) -> Snapshot {
    let mut state = Snapshot::new();
    let devices: Vec<Json> = (0..4 * namespaces.len()).map(|n| json!({"name": format!("x{n}")})).collect();
    apply(
        &mut state,
        &json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "d", "devices": devices, "allNodes": true,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}),
    );
    let ready =
        |status: &str| json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status}]});
    let statuses = [ready("True"), ready("True"), ready("False"), json!({"phase": "Pending"})];
    for (number, budgets) in namespaces.iter().enumerate() {
        let namespace = format!("n{number}");
        for (n, status) in statuses.iter().enumerate() {
            let device = format!("x{}", 4 * number + n);
            let metadata =
                json!({"name": device, "namespace": namespace, "uid": device, "labels": {"app": "x"}});
            let claims = json!([{"name": "r", "resourceClaimName": device}]);
            apply(
                &mut state,
                &json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status,
                "spec": {"nodeName": "a", "resourceClaims": claims}}),
            );
            let result = json!({"request": "r", "driver": "d", "pool": "p", "device": device});
            apply(
                &mut state,
                &json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata,
                "status": {"reservedFor": [{"resource": "pods", "name": device, "uid": device}],
                    "allocation": {"devices": {"results": [result]}}}}),
            );
        }
        for (name, policy, status) in *budgets {
            apply(
                &mut state,
                &json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "status": status,
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"selector": {"matchLabels": {"app": "x"}}, "unhealthyPodEvictionPolicy": policy}}),
            );
        }
    }
    state
}

#[test]
fn evictions_that_the_eviction_api_would_allow_violate_no_budget() {
    let one = json!({"disruptionsAllowed": 1});
    let healthy =
        |desired: i64| json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": desired});
    let state = cluster_with_budgets(&[
        &[("always", "AlwaysAllow", one.clone())],
        &[("by-default", "", one.clone())],
        &[("enough-healthy", "IfHealthyBudget", healthy(1))],
        &[("too-few-healthy", "", healthy(3))],
        // The Eviction API refuses pods with several budgets.
        &[("first-of-two", "AlwaysAllow", one.clone()), ("second", "AlwaysAllow", one)],
    ]);
    let rule = rule(&json!({"selector": {"driver": "d"}}), "r", &Json::Null).to_string();
    with_impact(&state, &rule, "1.36", time("2026-01-01T00:00:00Z"), |_, impact| {
        let evicted = impact.pods.iter().filter(|pod| pod.outcome.is_evicted()).count();
        assert_eq!(evicted, 20);
        let violated = impact::violated_budgets(&state, impact);
        let violated: Vec<_> = violated.iter().map(|budget| (budget.name, budget.violated_by)).collect();
        let expected = [
            ("always", 1),
            ("by-default", 2),
            ("enough-healthy", 1),
            ("too-few-healthy", 2),
            ("first-of-two", 2),
            ("second", 2),
        ];
        assert_eq!(violated, expected, "the pods that do not run yet count nowhere");
    });
}

/// The webhook's response to a rule, with the given knowledge of the cluster.
fn webhook_response(cluster: Option<engine::ClusterSource>, policies: &str, effect: &str) -> Json {
    let taint = json!({"key": "example.com/drain", "effect": effect});
    response_to_taint("1.37", cluster, policies, None, &taint)
}

/// The webhook's response to a new rule with a taint, or to an update of the taint `old`.
fn response_to_taint(
    profile: &str,
    cluster: Option<engine::ClusterSource>,
    policies: &str,
    old: Option<&Json>,
    taint: &Json,
) -> Json {
    let profile = Profile::named(profile).unwrap();
    let files = [PolicyFile { name: "p.yaml".to_owned(), text: policies.to_owned() }];
    let set = PolicySet::load(&files, &|_| Err("no files".to_owned())).expect("policies that load");
    let rules = tollgate_engine::rules::RuleSet::parse("upstream,documented,lint,policy,decoding").unwrap();
    let engine = engine::Engine::new(vec![profile], rules).with_policies(std::sync::Arc::new(set));
    let engine = match cluster {
        Some(cluster) => engine.with_cluster(cluster),
        None => engine,
    };
    let rule = |taint: &Json| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "drain"},
            "spec": {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint}})
    };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": if old.is_some() { "UPDATE" } else { "CREATE" }, "name": "drain",
        "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "DeviceTaintRule"},
        "object": rule(taint), "oldObject": old.map(rule)}});
    let bytes = engine::admit(
        &engine,
        review.to_string().as_bytes(),
        engine::Endpoint::Validate,
        "2026-01-01T00:00:00Z",
        &engine::LabelsIfKnown::Unknown,
    );
    let mut answer: Json = serde_json::from_slice(&bytes.expect("a review")).expect("JSON");
    answer["response"].take()
}

fn small() -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/impact/states/small.yaml");
    snapshot(&std::fs::read_to_string(path).expect("a state"))
}

/// The finding for a rule that selects only a driver, which does not depend on the cluster state.
const WHOLE_DRIVER: &str = "spec.deviceSelector.driver: selects every device of the driver; set `pool` or `device` [driver-wide-taint]";

#[test]
fn every_rule_is_told_what_it_will_do_where_the_cluster_is_known() {
    let cluster = engine::ClusterSource::from_snapshot(std::sync::Arc::new(small()));
    let response = webhook_response(Some(cluster.clone()), "", "NoExecute");
    assert_eq!(response["allowed"], json!(true));
    let told = "the rule selects 3 devices and evicts 2 pods in 2 namespaces";
    let impact = format!("spec.taint.effect: {told} [taint-rule-impact]");
    assert_eq!(response["warnings"], json!([WHOLE_DRIVER, impact]));
    assert_eq!(response["auditAnnotations"]["impact"], json!(told));
    let response = webhook_response(Some(cluster), "", "NoSchedule");
    assert_eq!(
        response["auditAnnotations"]["impact"],
        json!("the rule selects 3 devices and evicts no pods")
    );
    for nothing in [None, Some(engine::ClusterSource::from_fn(|| None))] {
        let response = webhook_response(nothing, "", "NoExecute");
        assert_eq!(response["allowed"], json!(true));
        assert_eq!(response["warnings"], json!([WHOLE_DRIVER]));
        assert_eq!(response["auditAnnotations"]["impact"], Json::Null);
    }
}

/// A policy that allows the eviction of one pod.
const ONE_POD: &str = "apiVersion: tollgate.dev/v1alpha1\nkind: TaintRulePolicy\nmetadata: {name: few}\nspec:\n  maxImpact: {pods: 1}\n";

#[test]
fn an_update_that_reaches_no_more_is_allowed_whatever_the_stored_rule_does() {
    let cluster = engine::ClusterSource::from_snapshot(std::sync::Arc::new(small()));
    // Only in a draft can a taint change without reaching more or less.
    let taint = |text: &str| json!({"key": "example.com/drain", "effect": "NoExecute", "description": text});
    let respond = |old: Option<&Json>, new: &Json| {
        response_to_taint("kep-5055-r2", Some(cluster.clone()), ONE_POD, old, new)
    };
    let response = respond(None, &taint("fan replaced"));
    assert_eq!(response["allowed"], json!(false), "{response}");
    let response = respond(Some(&taint("fan broken")), &taint("fan replaced"));
    assert_eq!(response["allowed"], json!(true), "{response}");
}

#[test]
fn an_old_state_is_used_and_named() {
    let policy = ONE_POD;
    let known = std::sync::Arc::new(small());
    let snapshot = std::sync::Arc::clone(&known);
    let holey = move || {
        Some(impact::ClusterState {
            snapshot: std::sync::Arc::clone(&snapshot),
            age_seconds_if_stale: Some(70),
            unreadable_objects: 2,
        })
    };
    let holey = engine::ClusterSource::from_fn(holey);
    let response = webhook_response(Some(holey.clone()), "", "NoExecute");
    let impact = response["auditAnnotations"]["impact"].as_str().unwrap();
    assert!(impact.ends_with("in 2 namespaces (as of 70 s ago, 2 objects unreadable)"), "{impact}");
    // What is not counted may be what exceeds the limit.
    let response = webhook_response(Some(holey), &policy.replace("pods: 1", "pods: 100"), "NoExecute");
    assert_eq!(response["allowed"], json!(false), "{response}");
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("the numbers may be too low (as of 70 s ago, 2 objects unreadable)"),
        "{message}"
    );
    let watched = move || {
        Some(impact::ClusterState {
            snapshot: std::sync::Arc::clone(&known),
            age_seconds_if_stale: Some(70),
            unreadable_objects: 0,
        })
    };
    let response = webhook_response(Some(engine::ClusterSource::from_fn(watched)), policy, "NoExecute");
    assert_eq!(response["allowed"], json!(false));
    assert_eq!(response["status"]["code"], json!(403));
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.contains(
            "evicts 2 pods in 2 namespaces, but policy few at p.yaml:1 allows 1 pod (as of 70 s ago)"
        ),
        "{message}"
    );
    let impact = response["auditAnnotations"]["impact"].as_str().unwrap();
    assert_eq!(impact, "the rule selects 3 devices and evicts 2 pods in 2 namespaces (as of 70 s ago)");
    let unknown = webhook_response(Some(engine::ClusterSource::from_fn(|| None)), policy, "NoExecute");
    assert_eq!(
        unknown["allowed"],
        json!(false),
        "what is not known is denied unless the policy says otherwise"
    );
}
