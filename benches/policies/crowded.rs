//! Objects with as many items as a review may have, and policies with 500 entries for them.
//!
//! Each item differs from the others and comes close to an entry, so that nothing is decided by the first bytes and
//! every refusal has something to suggest.
#![expect(clippy::disallowed_types, reason = "makes requests independently of the code under test")]

use serde_json::{Value, json};
use tollgate::Endpoint;

/// Entries of the policies.
const ENTRIES: usize = 500;

/// One request.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) policies: String,
    pub(crate) review: String,
    pub(crate) endpoint: Endpoint,
}

/// Every row.
pub(crate) fn rows() -> Vec<Row> {
    let create = |name, policies, object: Value| Row {
        name,
        policies,
        review: review(&object, &Value::Null),
        endpoint: Endpoint::Validate,
    };
    let update = |name, policies, old: Value, object: Value| Row {
        name,
        policies,
        review: review(&object, &old),
        endpoint: Endpoint::Validate,
    };
    let allow = || one_policy("Toleration", &json!({"allow": entries("gpu.example.com/k")}));
    let same_key = || {
        let entries: Vec<Value> = (0..ENTRIES)
            .map(|number| json!({"key": "gpu.example.com/k", "values": [format!("v{number}")]}))
            .collect();
        one_policy("Toleration", &json!({"allow": entries}))
    };
    let deny = || one_policy("Toleration", &json!({"deny": entries("gpu.example.com/k")}));
    let many = |kind: &'static str, spec: fn(usize) -> Value| -> String {
        (0..ENTRIES).map(|number| policy(kind, number, &spec(number))).collect()
    };
    let globs = || {
        let allow: Vec<Value> =
            (0..ENTRIES).map(|number| json!({"key": format!("*{number}.${{driver}}/*x*")})).collect();
        one_policy("Taint", &json!({"allow": allow}))
    };
    let teams = |pattern: &str| {
        let deny: Vec<Value> = (0..ENTRIES)
            .map(|number| json!({"key": pattern.replace("{}", &format!("{number:03}"))}))
            .collect();
        one_policy("Taint", &json!({"deny": deny}))
    };
    let hostile = format!("*?{}{{}}*", ".team".repeat(30));
    let data = |schema: Value| {
        let data: Vec<Value> = (0..ENTRIES).map(|_| json!({"key": "*", "schema": schema})).collect();
        one_policy("Taint", &json!({"data": data}))
    };
    let schemas = || {
        let schemas: Vec<Value> = (0..ENTRIES)
            .map(|number| json!({"apiVersion": "gpu.example.com/v1", "kind": format!("K{number}"), "schema": {"type": "object"}}))
            .collect();
        one_policy("Parameter", &json!({"schemas": schemas, "unknown": "Deny"}))
    };
    let anything = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    vec![
        create("tolerations in one list, 500 allow entries", allow(), claim(1, &tolerations(105_000))),
        create("tolerations in 256 lists, 500 allow entries", allow(), claim(256, &tolerations(400))),
        create("tolerations of one key, 500 values", same_key(), claim(1, &values(60_000))),
        create("tolerations, 500 deny entries", deny(), claim(1, &tolerations(105_000))),
        create("empty tolerations, 500 allow entries", allow(), claim(1, &vec![json!({}); 320_000])),
        create(
            "tolerations, 500 policies that deny every one",
            many("Toleration", |_| json!({"deny": [{"key": "*"}]})),
            claim(1, &tolerations(105_000)),
        ),
        create(
            "tolerations, 500 policies with an allow entry",
            many("Toleration", |number| json!({"allow": [{"key": format!("gpu.example.com/k{number}")}]})),
            claim(256, &tolerations(400)),
        ),
        update(
            "tolerations that are stored and wrong, and one more",
            allow(),
            claim(1, &tolerations(52_000)),
            claim(1, &tolerations(52_001)),
        ),
        create("taints of 64 devices, 500 globs with ${driver}", globs(), slice(64, 1_000, &Value::Null)),
        create("taints of 20,000 devices, 500 globs with ${driver}", globs(), slice(20_000, 1, &Value::Null)),
        create("taints with long keys, 500 globs", teams("*.team{}.example.com/*"), long_keys(64, 64)),
        create("taints with long keys, 500 globs with ?", teams("*.team{}.ex?mple.com/*"), long_keys(64, 64)),
        create("taints with long keys, 500 long globs with ?", teams(&hostile), long_keys(64, 64)),
        update(
            "taints that are stored and wrong, and one more",
            many("Taint", |_| json!({"deny": [{"key": "*"}]})),
            slice(64, 300, &Value::Null),
            slice(64, 301, &Value::Null),
        ),
        create("taints with data, 500 schemas", data(anything.clone()), slice(64, 400, &json!({"a": 1}))),
        create(
            "a taint with large data, 500 schemas",
            data(anything.clone()),
            slice(1, 1, &json!((0..300_000).collect::<Vec<u32>>())),
        ),
        create(
            "parameters, 500 types",
            schemas(),
            configs(
                25_000,
                |number| json!({"apiVersion": "gpu.example.com/v1", "kind": format!("K{number}")}),
            ),
        ),
        create(
            "parameters, 500 policies with a schema",
            many(
                "Parameter",
                |_| json!({"schemas": [{"apiVersion": "a/v1", "kind": "K", "schema": {"required": ["x"]}}], "unknown": "Deny"}),
            ),
            configs(25_000, |_| json!({"apiVersion": "a/v1", "kind": "K"})),
        ),
        create(
            "parameters with many keys, 500 types",
            schemas(),
            configs(1, |_| (0..150_000).map(|number| (format!("apiVersioN{number}"), Value::Null)).collect()),
        ),
        Row {
            endpoint: Endpoint::Mutate,
            ..create(
                "requests, 500 default tolerations",
                one_policy("Toleration", &json!({"defaults": defaults()})),
                claim(25_000, &[json!({"key": "gpu.example.com/z"})]),
            )
        },
        Row {
            endpoint: Endpoint::Mutate,
            ..create(
                "tolerations, 500 default tolerations",
                one_policy("Toleration", &json!({"defaults": defaults()})),
                claim(1, &tolerations(105_000)),
            )
        },
    ]
}

/// A slice with taints whose keys are as long as possible and nearly match, again and again.
fn long_keys(devices: usize, taints: usize) -> Value {
    let keys = |device: usize| -> Vec<Value> {
        let key = |number: usize| format!("{}{device:03}{number:03}.com/k", ".team".repeat(60));
        (0..taints)
            .map(|number| json!({"key": key(number).trim_start_matches('.'), "effect": "NoExecute"}))
            .collect()
    };
    let devices: Vec<Value> =
        (0..devices).map(|number| json!({"name": format!("d{number}"), "taints": keys(number)})).collect();
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata(), "spec": {
        "driver": "gpu.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n", "devices": devices}})
}

fn entries(prefix: &str) -> Vec<Value> {
    (0..ENTRIES)
        .map(|number| json!({"key": format!("{prefix}{number}"), "effects": ["NoSchedule"]}))
        .collect()
}

fn defaults() -> Vec<Value> {
    (0..ENTRIES)
        .map(|number| json!({"key": format!("gpu.example.com/k{number}"), "operator": "Exists", "effect": "NoSchedule"}))
        .collect()
}

fn tolerations(count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({"key": format!("gpu.example.com/k{number}x")})).collect()
}

fn values(count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({"key": "gpu.example.com/k", "value": format!("w{number}")})).collect()
}

fn policy(kind: &str, number: usize, spec: &Value) -> String {
    let body = json!({"apiVersion": "tollgate.dev/v1alpha1", "kind": format!("{kind}Policy"),
        "metadata": {"name": format!("p{number}")}, "spec": spec});
    format!("{body}\n---\n")
}

fn one_policy(kind: &str, spec: &Value) -> String {
    policy(kind, 0, spec)
}

/// A claim with so many requests, each with the tolerations.
fn claim(requests: usize, tolerations: &[Value]) -> Value {
    let requests: Vec<Value> = (0..requests)
        .map(|number| json!({"name": format!("r{number}"), "exactly": {"deviceClassName": "g", "tolerations": tolerations}}))
        .collect();
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata(),
        "spec": {"devices": {"requests": requests}}})
}

fn configs(count: usize, parameters: impl Fn(usize) -> Value) -> Value {
    let config: Vec<Value> = (0..count)
        .map(|number| json!({"opaque": {"driver": "gpu.example.com", "parameters": parameters(number)}}))
        .collect();
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata(),
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}], "config": config}}})
}

/// A slice with so many devices and taints on each.
fn slice(devices: usize, taints: usize, data: &Value) -> Value {
    let taints: Vec<Value> = (0..taints)
        .map(|number| match data {
            Value::Null => json!({"key": format!("k{number}.gpu.example.com/x"), "effect": "NoSchedule"}),
            data => {
                json!({"key": format!("k{number}.gpu.example.com/x"), "effect": "NoSchedule", "data": data})
            }
        })
        .collect();
    let devices: Vec<Value> =
        (0..devices).map(|number| json!({"name": format!("d{number}"), "taints": taints})).collect();
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata(),
        "spec": {"driver": "gpu.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n", "devices": devices}})
}

fn metadata() -> Value {
    json!({"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1"})
}

fn review(object: &Value, old: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": operation, "object": object, "oldObject": old, "namespace": "n", "name": "c",
        "kind": {"group": "resource.k8s.io", "version": "v1", "kind": kind},
        "resource": {"group": "resource.k8s.io", "version": "v1", "resource": format!("{}s", kind.to_lowercase())}}})
    .to_string()
}
