//! Many requests, each decided by the engine and by the exported expressions.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "makes objects for tests")]

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::evaluate::LoadedExport;
use super::{NOW, export, load};
use crate::admission::{Attributes, LabelsIfKnown, Operation};
use crate::engine::Engine;
use crate::policy::cel::Variables;
use crate::rules::{FindingLevel, RuleSet};
use tollgate_api::profile::{ApiKind, Profile};
use tollgate_document::doc::{self, Value};

const KEYS: [&str; 9] = [
    "gpu.example.com/degraded",
    "gpu.example.com/maintenance",
    "nic.example.com/maintenance",
    "gpu.nvidia.com/xid",
    "kubernetes.io/x",
    "sub.k8s.io/z",
    "example.com/a",
    "plain",
    "a.gpu.example.com/x",
];
const VALUES: [&str; 5] = ["", "slowdown", "ecc", "1", "A"];
const EFFECTS: [&str; 3] = ["NoSchedule", "NoExecute", "None"];
const DRIVERS: [&str; 4] = ["gpu.example.com", "nic.example.com", "gpu.nvidia.com", "other.io"];
const TIMES: [&str; 3] = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T12:30:00Z"];
const NAMESPACES: [(&str, &str); 5] = [
    ("research", r#"{"team":"ml","tier":"a"}"#),
    ("ml-infra", r#"{"team":"ml","batch":""}"#),
    ("ml-a", r#"{"team":"ml"}"#),
    ("prod", r#"{"tier":"prod"}"#),
    ("lab", "{}"),
];
const USERS: [&str; 5] = [
    r#"{"username":"ann","groups":["dev"]}"#,
    r#"{"username":"bob","groups":["gpu-oncall","dev"]}"#,
    r#"{"username":"carol"}"#,
    r#"{"username":"gpu-admin","groups":["x"]}"#,
    r#"{"username":"system:serviceaccount:kube-system:c","groups":["system:serviceaccounts"]}"#,
];

/// A small generator of pseudo-random numbers, so that every run checks the same requests.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }

    fn in_ten(&mut self, times: usize) -> bool {
        self.roll(10) < times
    }
}

fn toleration(dice: &mut Dice) -> Json {
    let mut toleration = json!({"operator": "Exists"});
    if dice.in_ten(8) {
        toleration["key"] = dice.pick(&KEYS).into();
        if dice.in_ten(5) {
            toleration["operator"] = "Equal".into();
            toleration["value"] = dice.pick(&VALUES).into();
        }
    }
    if dice.in_ten(8) {
        toleration["effect"] = dice.pick(&EFFECTS).into();
    }
    if dice.in_ten(5) {
        toleration["tolerationSeconds"] = dice.pick(&[-5, 0, 60, 600, 601, 3600, 3601]).into();
    }
    toleration
}

fn request(dice: &mut Dice, index: usize, is_flat: bool) -> Json {
    let mut body = |name: Option<String>| {
        let mut body = json!({"deviceClassName": "gpu"});
        if let Some(name) = name {
            body["name"] = name.into();
        }
        let count = dice.roll(3);
        if count > 0 {
            body["tolerations"] = (0..count).map(|_| toleration(dice)).collect();
        }
        body
    };
    let name = format!("r{index}");
    let alternatives = json!([body(Some("s0".to_owned())), body(Some("s1".to_owned()))]);
    if is_flat {
        let flat = body(Some(name.clone()));
        return if dice.in_ten(2) { json!({"name": name, "firstAvailable": alternatives}) } else { flat };
    }
    let exactly = body(None);
    if dice.in_ten(2) {
        json!({"name": name, "firstAvailable": alternatives})
    } else {
        json!({"name": name, "exactly": exactly})
    }
}

fn claim(dice: &mut Dice, version: &str, is_template: bool, namespace: &str) -> Json {
    let requests: Vec<Json> =
        (0..dice.roll(3)).map(|index| request(dice, index, version == "v1beta1")).collect();
    let requests = if requests.is_empty() { Json::Null } else { requests.into() };
    let spec = json!({"devices": {"requests": requests}});
    let (kind, spec) =
        if is_template { ("ResourceClaimTemplate", json!({"spec": spec})) } else { ("ResourceClaim", spec) };
    let mut metadata = json!({"name": "x", "namespace": namespace});
    if dice.in_ten(4) {
        metadata["labels"] = json!({"a": dice.pick(&["b", "c"])});
    }
    json!({"apiVersion": format!("resource.k8s.io/{version}"), "kind": kind, "metadata": metadata, "spec": spec})
}

fn taint(dice: &mut Dice, driver: &str) -> Json {
    let own = [format!("{driver}/own"), format!("{driver}/health")];
    let key = if dice.in_ten(5) { dice.pick(&[&*own[0], &*own[1]]) } else { dice.pick(&KEYS) };
    let mut taint = json!({"key": key, "effect": dice.pick(&EFFECTS), "timeAdded": dice.pick(&TIMES)});
    match dice.pick(&VALUES) {
        "" => {}
        value => taint["value"] = value.into(),
    }
    taint
}

fn taints(dice: &mut Dice, driver: &str) -> Vec<Json> {
    (0..dice.roll(4)).map(|_| taint(dice, driver)).collect()
}

fn device(name: &str, taints: &[Json], version: &str) -> Json {
    let body = if taints.is_empty() { json!({}) } else { json!({"taints": taints}) };
    let mut device = if version == "v1beta1" { json!({"basic": body}) } else { body };
    device["name"] = name.into();
    device
}

/// A slice and, for an update, the slice that is stored: some of its taints are kept, changed, doubled or removed.
fn slices(dice: &mut Dice, version: &str) -> (Json, Option<Json>) {
    let driver = dice.pick(&DRIVERS);
    let old: Vec<Vec<Json>> = (0..2).map(|_| taints(dice, driver)).collect();
    let mut new = old.clone();
    for list in &mut new {
        for _ in 0..dice.roll(3) {
            let at = dice.roll(list.len().max(1));
            match (dice.roll(6), list.get_mut(at)) {
                (0, Some(taint)) => taint["effect"] = dice.pick(&EFFECTS).into(),
                (1, Some(taint)) => taint["timeAdded"] = dice.pick(&TIMES).into(),
                (2, Some(taint)) => {
                    let double = taint.clone();
                    list.push(double);
                }
                (3, Some(_)) => _ = list.remove(at),
                (4, Some(taint)) => taint["value"] = dice.pick(&["1", "A"]).into(),
                _ => list.push(taint(dice, driver)),
            }
        }
    }
    let slice = |lists: &[Vec<Json>]| {
        let named = |(index, list): (usize, &Vec<Json>)| device(&format!("d{index}"), list, version);
        let devices: Vec<Json> = lists.iter().enumerate().map(named).collect();
        json!({"apiVersion": format!("resource.k8s.io/{version}"), "kind": "ResourceSlice",
            "metadata": {"name": "x"}, "spec": {"driver": driver, "nodeName": "n", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}})
    };
    let is_update = dice.in_ten(7);
    (slice(&new), is_update.then(|| slice(&old)))
}

/// A rule and, for an update, the rule that is stored.
fn rules(dice: &mut Dice, version: &str) -> (Json, Option<Json>) {
    let selector = |dice: &mut Dice| {
        let mut selector = json!({});
        for (field, value) in [("driver", dice.pick(&DRIVERS)), ("pool", "p"), ("device", "d")] {
            if dice.in_ten(6) {
                selector[field] = value.into();
            }
        }
        selector
    };
    let mut spec = json!({"taint": taint(dice, "gpu.example.com")});
    if dice.in_ten(9) {
        spec["deviceSelector"] = selector(dice);
    }
    let mut old = spec.clone();
    for _ in 0..=dice.roll(2) {
        match dice.roll(6) {
            0 => old["deviceSelector"] = selector(dice),
            1 => old["deviceSelector"] = Json::Null,
            2 => old["taint"]["effect"] = dice.pick(&EFFECTS).into(),
            3 => old["taint"]["timeAdded"] = dice.pick(&TIMES).into(),
            4 => old["taint"]["key"] = dice.pick(&KEYS).into(),
            _ => old["deviceSelector"] = json!({}),
        }
    }
    let rule = |mut spec: Json, status: Option<Json>| {
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        let mut rule = json!({"apiVersion": format!("resource.k8s.io/{version}"), "kind": "DeviceTaintRule",
            "metadata": {"name": "x", "generation": 2}, "spec": spec});
        if let Some(status) = status {
            rule["status"] = status;
        }
        rule
    };
    let observed = dice.pick(&[1, 2]);
    let status = dice.in_ten(7).then(|| {
        json!({"conditions": [{"type": "EvictionInProgress", "status": "False", "reason": "r", "message": "m",
            "lastTransitionTime": NOW, "observedGeneration": observed}]})
    });
    let is_update = dice.in_ten(7);
    (rule(spec, None), is_update.then(|| rule(old, status)))
}

/// Compares the engine with the export for `count` requests. Returns the number of denied requests.
fn compare(policies: &str, versions: &[&str], count: usize) -> usize {
    let set = load(policies);
    let loaded = LoadedExport::new(&export(&set, "1.37"));
    let profile = Profile::named("1.37").unwrap();
    let engine = Engine::new(vec![profile], RuleSet::parse("policy").unwrap()).with_policies(Arc::new(set));
    let mut dice = Dice(5055);
    let mut denied = 0;
    for number in 0..count {
        let (namespace, labels) = dice.pick(&NAMESPACES);
        let version = dice.pick(versions);
        let (kind, (object, old)) = match dice.roll(5) {
            0 => (ApiKind::ResourceClaim, (claim(&mut dice, version, false, namespace), None)),
            1 => (ApiKind::ResourceClaimTemplate, (claim(&mut dice, version, true, namespace), None)),
            2 => (ApiKind::ResourceSlice, slices(&mut dice, version)),
            _ => {
                let version = if version == "v1beta1" { "v1alpha3" } else { version };
                (ApiKind::DeviceTaintRule, rules(&mut dice, version))
            }
        };
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let user = dice.pick(&USERS);
        let version = object["apiVersion"].as_str().unwrap().split('/').next_back().unwrap();
        let request = json!({"operation": operation.name(), "kind": {"group": kind.group(), "version": version,
            "kind": kind.name()}, "resource": {"group": kind.group(), "version": version,
            "resource": kind.resource()}, "namespace": if kind.is_namespaced() { namespace } else { "" },
            "userInfo": serde_json::from_str::<Json>(user).unwrap()});
        let namespace_object = json!({"metadata": {"name": namespace,
            "labels": serde_json::from_str::<Json>(labels).unwrap()}});
        let texts =
            [object, old.unwrap_or(Json::Null), request, namespace_object].map(|json| json.to_string());
        let [object, old, request, namespace_object] = texts.each_ref().map(|text| doc::parse(text).unwrap());
        let (labels, user) = (doc::parse(labels).unwrap(), doc::parse(user).unwrap());
        let old_value = (operation == Operation::Update).then(|| old.root());
        let scope = if kind.is_namespaced() { namespace } else { "" };
        let attributes = Attributes {
            operation,
            old_object: old_value,
            user: user.root(),
            ..Attributes::for_create(object.root(), scope, NOW)
        };
        let found = engine.validate(&attributes, LabelsIfKnown::Known(labels.root()));
        let expected = found.findings().iter().map(|finding| finding.level).max();
        let namespace_value = if kind.is_namespaced() { namespace_object.root() } else { Value::absent() };
        let variables = Variables::new(
            object.root(),
            old_value.unwrap_or(Value::absent()),
            request.root(),
            namespace_value,
        );
        let given = loaded.violations(kind, &variables);
        let action = given.iter().map(|(action, _)| *action).max();
        assert_eq!(action, expected, "request {number}: {texts:#?}\n{given:#?}\n{:#?}", found.findings());
        denied += usize::from(expected == Some(FindingLevel::Deny));
    }
    denied
}

#[test]
fn the_export_gives_the_verdicts_of_the_engine() {
    let denied = compare(include_str!("policies.yaml"), &["v1", "v1beta2", "v1beta1"], 600);
    assert!(
        (120..480).contains(&denied),
        "{denied} of 600 requests are denied: too few or too many to compare"
    );
}

#[test]
fn exported_expressions_give_the_verdicts_of_the_engine() {
    let denied = compare(include_str!("expressions.yaml"), &["v1"], 300);
    assert!(
        (60..240).contains(&denied),
        "{denied} of 300 requests are denied: too few or too many to compare"
    );
}

/// Without the policies that depend on the cluster.
#[test]
fn shipped_policies_give_the_verdicts_of_the_engine() {
    let shipped = [
        include_str!("../../../../../../policies/maintenance-for-infra.yaml"),
        include_str!("../../../../../../policies/narrow-rules.yaml"),
        include_str!("../../../../../../policies/no-blanket-tolerations.yaml"),
        include_str!("../../../../../../policies/nvidia-key-catalogue.yaml"),
        include_str!("../../../../../../policies/own-domain-keys.yaml"),
        include_str!("../../../../../../policies/reserved-keys.yaml"),
        include_str!("../../../../../../policies/safe-rules.yaml"),
        include_str!("../../../../../../policies/time-limited-no-execute.yaml"),
    ];
    let denied = compare(&shipped.join("\n---\n"), &["v1"], 300);
    assert!(
        (60..290).contains(&denied),
        "{denied} of 300 requests are denied: too few or too many to compare"
    );
}
