//! The requests of a cluster, in the shares in which they come, each with the answer that it must get.
//!
//! Claims, templates and pods of users, allocations by the scheduler, slices of drivers, DeviceTaintRules of
//! administrators, both webhooks, and what is wrong with some of them. The answers are known by construction and from
//! recordings of real API servers; no server under test is asked for them. `cluster.rs` has the cluster and the
//! policies that they depend on.

use std::io::Read as _;

use serde_json::{Value, json};

use crate::client::{Reply, request};
use crate::reviews::{self, CLASS_NAME, DEVICE_NAME};

/// What a request must be answered with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    Allowed,
    /// Allowed, and a webhook configuration of the API server would apply the patch.
    Patched,
    /// Denied, with this in the message.
    Denied(&'static str),
    /// No review, so an HTTP status.
    Status(u16),
}

/// A kind of request.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    /// Of a hundred requests.
    pub(crate) share: usize,
    /// The requests that are sent in turn.
    variants: Vec<Vec<u8>>,
    /// What precedes the eight digits that make each request new.
    renamed: Option<&'static str>,
    pub(crate) expected: Expected,
}

impl Expected {
    /// True if the reply is right.
    pub(crate) fn is_met(self, reply: &Reply) -> bool {
        let text = reply.text();
        match self {
            Expected::Status(code) => reply.status == code,
            _ if reply.status != 200 => false,
            Expected::Allowed => text.contains(r#""allowed":true"#),
            Expected::Patched => {
                text.contains(r#""allowed":true"#) && text.contains(r#""patchType":"JSONPatch""#)
            }
            Expected::Denied(why) => text.contains(r#""allowed":false"#) && text.contains(why),
        }
    }
}

impl Sample {
    /// The bytes of a request, which no other request with another number has if the sample is renamed.
    pub(crate) fn bytes(&mut self, number: u32) -> &[u8] {
        let place = number as usize % self.variants.len();
        let bytes = &mut self.variants[place];
        if let Some(begins) = self.renamed {
            crate::rename(bytes, begins, number % 100_000_000);
        }
        bytes
    }

    /// True for requests of the size that most have.
    pub(crate) fn is_small(&self) -> bool {
        self.variants.iter().all(|bytes| bytes.len() < 10_000)
    }
}

/// All kinds of requests; their shares add up to a hundred.
pub(crate) fn samples() -> Vec<Sample> {
    let claim = String::from_utf8(reviews::claim()).expect("UTF-8");
    let with = |from: &str, to: &str| {
        assert!(claim.contains(from), "{from}");
        claim.replace(from, to).into_bytes()
    };
    let new_expression = with("40Gi", "00000040Mi");
    let no_defaults = with(r#""allocationMode":"ExactCount","count":2,"#, "");
    let bad_operator = with(r#""operator":"Exists""#, r#""operator":"Never!""#);
    let never_by_file = with("gpu.example.com/degraded", "gpu.example.com/forbidden-by-file");
    let never_by_resource = with("gpu.example.com/degraded", "gpu.example.com/forbidden-by-resource");
    let cut = claim.as_bytes()[..claim.len() / 2].to_vec();
    let post = |path: &str, body: &[u8]| request("POST", path, "application/json", body);
    let sample = |name, share, body: Vec<u8>, expected| Sample {
        name,
        share,
        variants: vec![post("/validate?timeout=10s", &body)],
        renamed: None,
        expected,
    };
    let new_each = |sample: Sample, begins| Sample { renamed: Some(begins), ..sample };
    let mutated = |name, share, body: &[u8], expected| Sample {
        name,
        share,
        variants: vec![post("/mutate?timeout=10s", body)],
        renamed: None,
        expected,
    };
    let (allowed, patched) = (Expected::Allowed, Expected::Patched);
    let recorded = Sample {
        variants: recordings().iter().map(|body| post("/validate?timeout=10s", body)).collect(),
        ..sample("recorded of API servers", 6, Vec::new(), allowed)
    };
    let text = Sample {
        variants: vec![request("POST", "/validate?timeout=10s", "text/plain", claim.as_bytes())],
        ..sample("claim as text/plain", 1, Vec::new(), Expected::Status(415))
    };
    let elsewhere = Sample {
        variants: vec![post("/elsewhere", claim.as_bytes())],
        ..sample("unknown path", 1, Vec::new(), Expected::Status(404))
    };
    let all = vec![
        new_each(sample("claim, create", 19, claim.clone().into_bytes(), allowed), CLASS_NAME),
        new_each(sample("claim, new expression", 5, new_expression, allowed), r#"quantity(\""#),
        new_each(mutated("claim, defaults", 10, &no_defaults, patched), CLASS_NAME),
        sample("claim, allocation by the scheduler", 12, allocation(), allowed),
        sample("pod with claims, create", 9, pod(), allowed),
        sample("claim template, create", 6, template(), allowed),
        sample("claim, delete", 5, deletion(), allowed),
        new_each(sample("slice, 64 devices, new taint", 4, health(), allowed), HEALTH),
        new_each(sample("slice, 380 KB, create", 2, reviews::slice(), allowed), DEVICE_NAME),
        sample("rule, create, with impact", 4, rule("node-7", "NoExecute"), allowed),
        mutated("rule, defaults", 3, &rule("node-8", "NoSchedule"), patched),
        sample("rule, status of the controller", 3, rule_status(), allowed),
        recorded,
        sample("claim, bad operator", 2, bad_operator, Expected::Denied("Never!")),
        sample("claim, denied by a policy file", 2, never_by_file, Expected::Denied("forbidden-by-file")),
        sample(
            "claim, denied by a policy resource",
            2,
            never_by_resource,
            Expected::Denied("forbidden-by-resource"),
        ),
        sample("rule, denied for its impact", 1, rule("", "NoExecute"), Expected::Denied("limited-impact")),
        sample("slice, denied, long answer", 1, reviews::denied(), Expected::Denied("Whenever")),
        sample("claim, cut off", 1, cut, Expected::Status(400)),
        sample("not JSON", 1, b"<review/>".to_vec(), Expected::Status(400)),
        text,
        elsewhere,
    ];
    assert_eq!(all.iter().map(|sample| sample.share).sum::<usize>(), 100);
    all
}

/// The order of a hundred requests: the place of each in the samples, well mixed.
pub(crate) fn deck(samples: &[Sample]) -> Vec<usize> {
    let sorted: Vec<usize> = samples
        .iter()
        .enumerate()
        .flat_map(|(place, sample)| std::iter::repeat_n(place, sample.share))
        .collect();
    (0..sorted.len()).map(|turn| sorted[turn * 37 % sorted.len()]).collect()
}

/// AdmissionReviews that real API servers sent to a validating webhook; they were all valid.
fn recordings() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/reviews.jsonl.gz");
    let file = std::fs::File::open(path).expect("the recordings of the repository");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    let reviews = text.lines().filter(|line| line.contains("-validating-")).map(|line| {
        let recording: Value = serde_json::from_str(line).expect("JSON");
        recording["review"].to_string().into_bytes()
    });
    // Kubernetes 1.37 still serves these versions of the API.
    reviews.filter(|review| !review.windows(8).any(|part| part == b"v1alpha3")).collect()
}

/// A review, with the user of whom requests of its kind come.
fn review(resource: &str, sub: &str, operation: &str, object: &Value, old: &Value) -> Vec<u8> {
    let one = if object.is_null() { old } else { object };
    let (group, version) =
        one["apiVersion"].as_str().expect("a version").split_once('/').unwrap_or(("", "v1"));
    let kind = json!({"group": group, "version": version, "kind": one["kind"]});
    let resource_of = json!({"group": group, "version": version, "resource": resource});
    let user = match (resource, sub) {
        ("resourceslices", _) => "system:serviceaccount:gpu-driver:plugin",
        (_, "status") => "system:kube-scheduler",
        _ => "system:serviceaccount:ml-research:launcher",
    };
    let mut request = json!({
        "uid": "d3a97c0e-f002-464d-9a3a-f1ca25586797", "kind": kind, "resource": resource_of,
        "requestKind": kind, "requestResource": resource_of, "operation": operation,
        "name": one["metadata"]["name"], "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": object, "oldObject": old, "dryRun": false,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    });
    if let Some(namespace) = one["metadata"]["namespace"].as_str() {
        request["namespace"] = json!(namespace);
    }
    if !sub.is_empty() {
        request["subResource"] = json!(sub);
        request["requestSubResource"] = json!(sub);
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
        .to_string()
        .into_bytes()
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "uid": format!("7e015350-9aa1-4d83-82cc-{name:0>12.12}"),
        "resourceVersion": "4711", "creationTimestamp": "2026-11-15T00:53:30Z"});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

fn claim_spec() -> Value {
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {
        "deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1,
        "tolerations": [{"key": "gpu.example.com/degraded", "operator": "Exists", "effect": "NoSchedule"}],
    }}]}})
}

fn stored_claim() -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": metadata("worker-3", Some("ml-research")), "spec": claim_spec(), "status": {}})
}

fn allocation() -> Vec<u8> {
    let old = stored_claim();
    let mut new = old.clone();
    new["status"] = json!({
        "allocation": {
            "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["node-1"]},
            ]}]},
        },
        "reservedFor": [{"resource": "pods", "name": "worker-3", "uid": "11111111-2222-3333-4444-555555555555"}],
    });
    review("resourceclaims", "status", "UPDATE", &new, &old)
}

fn deletion() -> Vec<u8> {
    review("resourceclaims", "", "DELETE", &Value::Null, &stored_claim())
}

fn template() -> Vec<u8> {
    let object = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": metadata("worker", Some("ml-research")), "spec": {"spec": claim_spec()}});
    review("resourceclaimtemplates", "", "CREATE", &object, &Value::Null)
}

fn pod() -> Vec<u8> {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata("worker-3", Some("ml-research")),
    "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "worker"}],
        "containers": [{"name": "main", "image": "registry.example.com/train:17",
            "resources": {"claims": [{"name": "gpu"}], "limits": {"cpu": "4", "memory": "32Gi"}}}],
    }});
    review("pods", "", "CREATE", &object, &Value::Null)
}

/// A request for a DeviceTaintRule for a pool, or for all devices.
pub(crate) fn rule(pool: &str, effect: &str) -> Vec<u8> {
    let mut selector = json!({"driver": "gpu.example.com"});
    if !pool.is_empty() {
        selector["pool"] = json!(pool);
    }
    let object = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule",
        "metadata": metadata("drain", None),
        "spec": {"deviceSelector": selector, "taint": {"key": "example.com/broken", "effect": effect}}});
    review("devicetaintrules", "", "CREATE", &object, &Value::Null)
}

fn rule_status() -> Vec<u8> {
    let old = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": metadata("drain", None),
        "spec": {"deviceSelector": {"driver": "gpu.example.com", "pool": "node-7"},
            "taint": {"key": "example.com/broken", "effect": "NoExecute", "timeAdded": "2026-11-15T00:53:30Z"}}});
    let mut new = old.clone();
    new["status"] = json!({"conditions": [{"type": "EvictionInProgress", "status": "True", "reason": "PodsPendingEviction",
        "lastTransitionTime": "2026-11-15T00:53:31Z", "message": "1 pod needs to be evicted in 1 namespace.",
        "observedGeneration": 1}]});
    review("devicetaintrules", "status", "UPDATE", &new, &old)
}

/// How the value of the new taint begins; eight digits follow.
const HEALTH: &str = r#""value":"xid-"#;

/// A driver's slice of 64 devices with a new taint on one of them.
fn health() -> Vec<u8> {
    let devices = |version: u32| -> Value {
        let device = |number: u32| {
            let mut attributes = json!({});
            for place in 0..8 {
                let name = format!("gpu.vendor.example.com/attribute_{place}");
                attributes[name] = json!({"string": format!("a value of {number}")});
            }
            let mut device = json!({"name": format!("gpu-{number}"), "attributes": attributes,
                "capacity": {"gpu.vendor.example.com/memory": {"value": "80Gi"}}});
            if version > 1 && number == 17 {
                device["taints"] = json!([{"key": "gpu.vendor.example.com/unhealthy", "value": "xid-00000000",
                    "effect": "NoSchedule", "timeAdded": "2026-11-15T00:53:30Z"}]);
            }
            device
        };
        (0..64).map(device).collect()
    };
    let slice = |version: u32| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata("node-3", None),
            "spec": {"driver": "gpu.vendor.example.com", "nodeName": "node-3", "devices": devices(version),
                "pool": {"name": "node-3", "generation": 1, "resourceSliceCount": 1}}})
    };
    review("resourceslices", "", "UPDATE", &slice(2), &slice(1))
}
