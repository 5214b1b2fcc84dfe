//! A cluster that is always in motion, behind the API server double of the tests: nodes with devices, pods that hold
//! them, labelled namespaces, and policies as custom resources.
//!
//! Also the policy files of the servers under test: a request must know which policies deny it (`mix.rs`).

use std::path::Path;

use serde_json::{Value, json};

use crate::double::Double;
use crate::double::policies::TOLERATION_POLICIES;

const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/resourceclaims";
const RULES: &str = "/apis/resource.k8s.io/v1/devicetaintrules";
const PODS: &str = "/api/v1/pods";
const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";
const NAMESPACES: &str = "/api/v1/namespaces";

const NODES: u32 = 48;
const DEVICES: u32 = 8;
/// Four of each node's devices are in use.
const PODS_PER_NODE: u32 = 4;

/// Pods with devices of node 9 that are always there.
pub(crate) const PODS_ON_NODE_9: u32 = PODS_PER_NODE;

/// The flags with which servers use this cluster.
pub(crate) const FLAGS: [&str; 3] = ["--cluster=all", "--policy-source", "files,cluster"];

/// The cluster, and what its objects say at the moment.
pub(crate) struct FakeCluster {
    pub(crate) api_server: Double,
    generation: i64,
    seconds: u32,
}

fn namespace_of(number: u32) -> String {
    format!("team-{}", number % 8)
}

fn slice(node: u32, version: u32) -> Value {
    let devices: Vec<Value> = (0..DEVICES)
        .map(|number| {
            let mut device = json!({"name": format!("gpu-{number}"),
                "attributes": {"gpu.example.com/model": {"string": "h100"}}});
            if (number + version).is_multiple_of(11) {
                device["taints"] = json!([{"key": "gpu.example.com/hot", "effect": "None",
                    "timeAdded": "2026-11-15T00:53:30Z"}]);
            }
            device
        })
        .collect();
    let name = format!("node-{node}");
    json!({"metadata": {"name": name, "generation": version + 1},
        "spec": {"driver": "gpu.example.com", "nodeName": name, "devices": devices,
            "pool": {"name": name, "generation": version + 1, "resourceSliceCount": 1}}})
}

fn claim(number: u32, name: &str, version: u32) -> Value {
    let (pool, device) =
        (format!("node-{}", number / PODS_PER_NODE), format!("gpu-{}", number % PODS_PER_NODE));
    json!({"metadata": {"namespace": namespace_of(number), "name": name, "annotations": {"beat": version.to_string()}},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    "status": {
        "allocation": {"devices": {"results": [
            {"request": "r", "driver": "gpu.example.com", "pool": pool, "device": device},
        ]}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": format!("uid-{name}")}],
    }})
}

fn pod(number: u32, name: &str, version: u32) -> Value {
    json!({"metadata": {"namespace": namespace_of(number), "name": name, "uid": format!("uid-{name}"),
            "annotations": {"beat": version.to_string()}},
        "spec": {"nodeName": format!("node-{}", number / PODS_PER_NODE), "containers": [],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]},
        "status": {"phase": "Running"}})
}

impl FakeCluster {
    pub(crate) fn start(name: &str) -> FakeCluster {
        let double = Double::start(name);
        double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", true)]);
        double.serve_kinds(
            "v1",
            &["ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "DeviceTaintRule"],
        );
        for collection in [SLICES, CLAIMS, RULES, PODS, BUDGETS, NAMESPACES] {
            double.serves(collection);
        }
        let labelled = (0..8).map(|number| (namespace_of(number), "web"));
        for (name, team) in labelled.chain([("ml-research".to_owned(), "ml"), ("default".to_owned(), "none")])
        {
            double.put(NAMESPACES, json!({"metadata": {"name": name, "labels": {"team": team}}}));
        }
        for node in 0..NODES {
            double.put(SLICES, slice(node, 0));
        }
        for number in 0..NODES * PODS_PER_NODE {
            let name = format!("p{number}");
            double.put(CLAIMS, claim(number, &name, 0));
            double.put(PODS, pod(number, &name, 0));
        }
        let cluster = FakeCluster { api_server: double, generation: 0, seconds: 0 };
        cluster.install_policies();
        cluster
    }

    /// Installs the definitions and stores the policies.
    pub(crate) fn install_policies(&self) {
        self.api_server.install_policies();
        let by_label = json!({"match": {"namespaceSelector": {"matchLabels": {"team": "ml"}}},
            "deny": [{"key": "gpu.example.com/forbidden-by-resource"}]});
        self.store("forbidden-by-resource", 1, &by_label);
        self.store_swapped();
    }

    /// Changes the policy that forbids tolerations in one namespace, `resource-GENERATION`.
    pub(crate) fn swap_policy(&mut self) {
        self.generation += 1;
        self.store_swapped();
    }

    /// The namespace that the policy forbids tolerations in now.
    pub(crate) fn forbidden_namespace(&self) -> String {
        format!("resource-{}", self.generation)
    }

    fn store_swapped(&self) {
        let spec = json!({"match": {"namespaces": [self.forbidden_namespace()]}, "allow": []});
        self.store("swapped-resource", self.generation + 1, &spec);
    }

    /// Stores a policy that cannot be read, for a namespace that nobody uses, or removes it.
    pub(crate) fn store_broken(&self, present: bool) {
        if present {
            self.store(
                "broken",
                self.generation + 1,
                &json!({"match": {"namespaces": ["nobody"]}, "alow": []}),
            );
        } else if self.api_server.object(TOLERATION_POLICIES, "broken").is_some() {
            self.api_server.delete(TOLERATION_POLICIES, "broken");
        }
    }

    /// Stores a policy that forbids tolerations in a namespace.
    pub(crate) fn forbid_in(&self, namespace: &str, policy: &str) {
        self.store(policy, 1, &json!({"match": {"namespaces": [namespace]}, "allow": []}));
    }

    fn store(&self, name: &str, generation: i64, spec: &Value) {
        self.api_server.put(
            TOLERATION_POLICIES,
            json!({"apiVersion": "tollgate.dev/v1alpha1", "kind": "TolerationPolicy",
                "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": generation}, "spec": spec}),
        );
    }

    /// Starts a pod with this name on a node, and its claim.
    pub(crate) fn start_pod(&self, node: u32, name: &str) {
        self.api_server.put(CLAIMS, claim(node * PODS_PER_NODE, name, 0));
        self.api_server.put(PODS, pod(node * PODS_PER_NODE, name, 0));
    }

    fn end_pod(&self, node: u32, name: &str) {
        let name = format!("{}/{name}", namespace_of(node * PODS_PER_NODE));
        self.api_server.delete(PODS, &name);
        self.api_server.delete(CLAIMS, &name);
    }

    /// Stores a pod of 9 MiB and a slice with 100,000 fields, which real API servers do not accept.
    pub(crate) fn put_huge_objects(&self) {
        let mut large = pod(0, "huge", 0);
        large["metadata"]["annotations"]["text"] = json!("x".repeat(9 << 20));
        self.api_server.put(PODS, large);
        let mut wide = slice(0, 0);
        wide["metadata"]["name"] = json!("huge");
        let fields = (0..100_000).map(|number| (format!("field{number}"), json!({"int": number})));
        wide["spec"]["devices"][0]["attributes"] = fields.collect();
        wide["spec"]["pool"]["name"] = json!("huge");
        self.api_server.put(SLICES, wide);
    }

    pub(crate) fn remove_huge_objects(&self) {
        self.api_server.delete(PODS, &format!("{}/huge", namespace_of(0)));
        self.api_server.delete(SLICES, "huge");
    }

    /// What changes in a second: heartbeats and taints, a pod now and then; and, more rarely, what API servers do.
    pub(crate) fn next_second(&mut self) {
        self.seconds += 1;
        let (now, number) = (self.seconds, self.seconds % (NODES * PODS_PER_NODE));
        self.api_server.put(PODS, pod(number, &format!("p{number}"), now));
        self.api_server.put(CLAIMS, claim(number, &format!("p{number}"), now));
        self.api_server.put(SLICES, slice(now % NODES, now));
        let every = |seconds| now.is_multiple_of(seconds);
        if every(10) {
            self.start_pod(10, &format!("job-{now}"));
            if now > 10 {
                self.end_pod(10, &format!("job-{}", now - 10));
            }
        }
        if every(30) {
            for of in [SLICES, CLAIMS, PODS, NAMESPACES] {
                self.api_server.bookmark(of);
            }
        }
        if every(60) {
            self.swap_policy();
        }
        if every(300) {
            self.api_server.compact(100);
        }
        if every(600) {
            self.api_server.close_connections();
        }
        if every(1_200) {
            self.api_server.stop_listening();
            std::thread::sleep(std::time::Duration::from_secs(5));
            self.api_server.listen_again();
        }
    }
}

/// The policies in files that stay as they are.
pub(crate) fn write_policies(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let text = "\
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: forbidden-by-file}
spec:
  match: {excludeNamespaces: [default]}    # recorded claims have blanket tolerations
  deny:
  - {key: gpu.example.com/forbidden-by-file}
---
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: few-requests}
spec:
  match: {namespaceSelector: {matchLabels: {team: ml}}}
  validations:
  - expression: >-
      [object.kind == 'ResourceClaim' ? object.spec : object.spec.spec].all(spec,
      !has(spec.devices) || !has(spec.devices.requests) || spec.devices.requests.size() < 8)
---
apiVersion: tollgate.dev/v1alpha1
kind: TaintPolicy
metadata: {name: reserved-keys}
spec:
  deny:
  - {key: \"*.kubernetes.io/*\"}
---
apiVersion: tollgate.dev/v1alpha1
kind: TaintRulePolicy
metadata: {name: limited-impact}
spec:
  maxImpact: {pods: 150}
  onUnknown: Warn    # the huge objects of `make chaos` are unknown
";
    std::fs::write(folder.join("fixed.yaml"), text).expect("written");
    swap_policy_file(folder, 0);
}

/// Replaces the policy that forbids tolerations in the namespace `file-NUMBER`, by rename.
pub(crate) fn swap_policy_file(folder: &Path, number: u32) {
    let text = format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: swapped-file}}\nspec:\n  match: {{namespaces: [\"file-{number}\"]}}\n  allow: []\n"
    );
    write_by_rename(folder, &text);
}

pub(crate) fn write_by_rename(folder: &Path, text: &str) {
    std::fs::write(folder.join("swapped.new"), text).expect("written");
    std::fs::rename(folder.join("swapped.new"), folder.join("swapped.yaml")).expect("renamed");
}
