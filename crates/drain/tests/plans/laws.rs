//! Properties of every plan, checked for the states beside this file and for random clusters.

use crate::{DrainCommand, drain_command, plan_of, states};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tollgate_document::doc::Value;
use tollgate_document::source::documents;
use tollgate_drain::{DrainPlan, PodDecision};

/// A seeded pseudorandom number generator.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

/// A random cluster: nodes with GPUs, Deployments and StatefulSets with pods on some of them, and PDBs for
/// some of these.
fn random_cluster(numbers: &mut RandomNumbers) -> String {
    let (nodes, devices) = (2 + numbers.below(4), 1 + numbers.below(4));
    let mut out = String::from(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n---\n\
         apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {namespace: app, name: one}\n\
         spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}\n",
    );
    let workloads = 1 + numbers.below(5);
    for workload in 0..workloads {
        // A StatefulSet is not ordered, so that a pod does not wait for others.
        let kind = if numbers.below(3) == 0 { "StatefulSet" } else { "ReplicaSet" };
        _ = write!(
            out,
            "---\napiVersion: apps/v1\nkind: {kind}\nmetadata: {{namespace: app, name: w{workload}, uid: u-w{workload}}}\n\
             spec: {{podManagementPolicy: Parallel}}\n"
        );
    }
    for budget in 0..numbers.below(3) {
        let (expected, desired) = (1 + numbers.below(6), 1 + numbers.below(4));
        let allowed = expected.saturating_sub(desired);
        let now = if numbers.below(2) == 0 { allowed } else { 0 };
        _ = write!(
            out,
            "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{namespace: app, name: pdb-{budget}}}\n\
             spec: {{selector: {{matchLabels: {{budget: \"{budget}\"}}}}}}\n\
             status: {{disruptionsAllowed: {now}, expectedPods: {expected}, desiredHealthy: {desired}}}\n"
        );
    }
    let mut number = 0;
    for node in 0..nodes {
        let list: Vec<String> = (0..devices).map(|device| format!("{{name: d{device}}}")).collect();
        _ = write!(
            out,
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{node}}}\n\
             status: {{allocatable: {{cpu: \"8\", memory: 32Gi, pods: \"110\"}}}}\n---\n\
             apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s{node}}}\n\
             spec: {{driver: gpu.example.com, nodeName: n{node}, pool: {{name: n{node}, generation: 1, resourceSliceCount: 1}}, devices: [{}]}}\n",
            list.join(", ")
        );
        for device in 0..devices {
            if numbers.below(2) == 0 {
                continue;
            }
            let owner = numbers.below(workloads + 1);
            let (budget, annotation) = (numbers.below(3), numbers.below(6) == 0);
            number += 1;
            add_pod(&mut out, &format!("p{number}"), (node, device), owner, workloads, budget, annotation);
        }
    }
    out
}

fn add_pod(
    out: &mut String,
    name: &str,
    (node, device): (u64, u64),
    owner: u64,
    workloads: u64,
    budget: u64,
    is_kept: bool,
) {
    let kind = if out.contains(&format!("kind: StatefulSet\nmetadata: {{namespace: app, name: w{owner},")) {
        "StatefulSet"
    } else {
        "ReplicaSet"
    };
    let (name, owners) = if owner == workloads {
        (name.to_owned(), String::new())
    } else {
        let controller = format!(
            ", ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: w{owner}, uid: u-w{owner}, controller: true}}]"
        );
        (format!("w{owner}-{}", &name[1..]), controller)
    };
    let annotations = if is_kept { ", annotations: {karpenter.sh/do-not-disrupt: \"true\"}" } else { "" };
    _ = write!(
        out,
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{namespace: app, name: {name}, generateName: x-, uid: u-{name}, \
         labels: {{budget: \"{budget}\"}}{annotations}{owners}}}\n\
         spec: {{nodeName: n{node}, containers: [{{name: c, resources: {{claims: [{{name: g}}]}}}}], \
         resourceClaims: [{{name: g, resourceClaimTemplateName: one}}]}}\n\
         status: {{phase: Running, resourceClaimStatuses: [{{name: g, resourceClaimName: {name}-g}}]}}\n---\n\
         apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{namespace: app, name: {name}-g, \
         ownerReferences: [{{apiVersion: v1, kind: Pod, name: {name}, uid: u-{name}, controller: true}}]}}\n\
         spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu}}}}]}}}}\n\
         status: {{allocation: {{devices: {{results: [{{request: gpu, driver: gpu.example.com, pool: n{node}, device: d{device}}}]}}}}, \
         reservedFor: [{{resource: pods, name: {name}, uid: u-{name}}}]}}\n"
    );
}

/// For each PDB, as namespace/name, the maximum number of its pods in one wave.
fn allowed_by_budget(objects: &str) -> BTreeMap<String, usize> {
    let mut allowed = BTreeMap::new();
    for document in documents(objects) {
        let document = document.expect("YAML");
        let object = document.doc.root();
        if object.get("kind").str() != "PodDisruptionBudget" {
            continue;
        }
        let (metadata, status) = (object.get("metadata"), object.get("status"));
        let number = |field: &str| status.get(field).int().expect("a number");
        let at_best = number("expectedPods") - number("desiredHealthy");
        let now = number("disruptionsAllowed").max(1).min(at_best.max(0));
        let name = format!("{}/{}", metadata.get("namespace").str(), metadata.get("name").str());
        allowed.insert(name, usize::try_from(now).expect("not negative"));
    }
    allowed
}

/// The pods, as namespace/name, that have reserved a claim with one of the plan's devices.
fn users(objects: &str, plan: &DrainPlan) -> BTreeSet<String> {
    let mut users = BTreeSet::new();
    for document in documents(objects) {
        let document = document.expect("YAML");
        let claim = document.doc.root();
        let results = claim.get("status").get("allocation").get("devices").get("results");
        let is_selected = |result: Value<'_>| {
            let name = |field: &str| result.get(field).str().to_owned();
            result.get("adminAccess").bool() != Some(true)
                && plan.devices.iter().any(|device| {
                    (&device.driver, &device.pool, &device.device)
                        == (&name("driver"), &name("pool"), &name("device"))
                })
        };
        if !results.items().any(is_selected) {
            continue;
        }
        let consumers = claim.get("status").get("reservedFor");
        for consumer in consumers.items().filter(|consumer| consumer.get("resource").text_is("pods")) {
            let namespace = claim.get("metadata").get("namespace").str();
            users.insert(format!("{namespace}/{}", consumer.get("name").str()));
        }
    }
    users
}

/// Checks that a plan fulfils all invariants.
fn check_invariants(name: &str, drain_command: &DrainCommand, objects: &str) {
    let Ok(plan) = plan_of(drain_command, objects) else { return };
    assert_eq!(
        Ok(&plan),
        plan_of(drain_command, objects).as_ref(),
        "{name}: the same input gives the same plan"
    );
    let path = |place: &usize| format!("{}/{}", plan.pods[*place].namespace, plan.pods[*place].name);
    let listed: Vec<String> = (0..plan.pods.len()).map(|place| path(&place)).collect();
    let unique: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), unique.len(), "{name}: a pod is in the plan once");
    let ghosts: BTreeSet<String> = plan
        .claims_without_pods
        .iter()
        .flat_map(|claim| {
            claim.users.iter().map(|user| format!("{}/{}", claim.namespace, user.replace("pod ", "")))
        })
        .collect();
    for user in users(objects, &plan) {
        assert!(unique.contains(&user) || ghosts.contains(&user), "{name}: {user} uses a device");
    }
    let allowed = allowed_by_budget(objects);
    let spent: BTreeSet<String> = (plan.budgets.iter().filter(|budget| budget.allowed <= 0))
        .map(|budget| format!("{}/{}", budget.namespace, budget.name))
        .collect();
    let waits = |pod: &usize| plan.pods[*pod].budgets.iter().any(|budget| spent.contains(budget));
    let mut some_waited = false;
    let mut moved = Vec::new();
    for (number, wave) in plan.waves.iter().enumerate() {
        assert!(!wave.pods.is_empty(), "{name}: wave {number} is empty");
        moved.extend(wave.pods.iter().copied());
        let is_unit = wave.limited_by.as_ref().is_some_and(|why| why.ends_with("moves as one unit"));
        for pod in &wave.pods {
            assert!(
                matches!(plan.pods[*pod].fate, PodDecision::Moves { wave, .. } if wave == number),
                "{name}: {} is in wave {number}",
                path(pod)
            );
        }
        if is_unit {
            continue;
        }
        assert!(number > 0 || wave.pods.len() == 1, "{name}: the first wave has one pod");
        assert!(
            wave.pods.len() <= drain_command.request.options.max_wave,
            "{name}: wave {number} is too large"
        );
        let is_alone = wave.limited_by.as_ref().is_some_and(|why| why.ends_with("moves alone"));
        if number > 0 && !is_alone {
            let free = wave.pods.iter().filter(|pod| !waits(pod)).count();
            assert!(free == 0 || !some_waited, "{name}: wave {number} waits for the PDB of an earlier one");
            some_waited |= free < wave.pods.len();
            assert!(free == 0 || free == wave.pods.len(), "{name}: wave {number} waits for one of its pods");
        }
        let workloads: BTreeSet<_> = wave
            .pods
            .iter()
            .map(|pod| {
                (&plan.pods[*pod].namespace, plan.pods[*pod].workload.clone().map_or(path(pod), |of| of.name))
            })
            .collect();
        assert_eq!(workloads.len(), wave.pods.len(), "{name}: one pod of a workload in wave {number}");
        let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
        for budget in wave.pods.iter().flat_map(|pod| &plan.pods[*pod].budgets) {
            *sums.entry(budget).or_default() += 1;
        }
        for (budget, sum) in sums {
            assert!(sum <= allowed[budget], "{name}: PDB {budget} in wave {number}");
        }
    }
    let in_order: Vec<usize> = (0..moved.len()).collect();
    assert_eq!(moved, in_order, "{name}: those that move come first, in their order");
    let staying = plan.pods.iter().filter(|pod| matches!(pod.fate, PodDecision::Stays { .. })).count();
    assert_eq!(moved.len() + staying, plan.pods.len(), "{name}");
    for pod in &plan.pods {
        if let PodDecision::Moves { nodes, .. } = &pod.fate {
            // In these clusters, a drained node has no other devices.
            let drained = |node: &String| drain_command.request.typed.contains(&format!("node/{node}"));
            assert!(!nodes.iter().any(drained), "{name}: {} goes to a drained node", pod.name);
        }
    }
}

#[test]
fn every_plan_keeps_the_laws() {
    for (name, drain_command, objects) in states() {
        check_invariants(&name, &drain_command, &objects);
    }
    let flags = ["", " --force", " --ignore-do-not-disrupt", " --move-unknown --max-wave=2"];
    let (mut moves, mut stays) = (0, 0);
    for seed in 1..120_u64 {
        let mut numbers = RandomNumbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let objects = random_cluster(&mut numbers);
        let flags = flags[usize::try_from(seed % 4).expect("small")];
        let drain_command = drain_command(&format!("node/n0 node/n1{flags}"));
        check_invariants(&format!("cluster {seed}"), &drain_command, &objects);
        let plan = plan_of(&drain_command, &objects).expect("a plan");
        let moving = plan.pods.iter().filter(|pod| matches!(pod.fate, PodDecision::Moves { .. })).count();
        (moves, stays) = (moves + moving, stays + plan.pods.len() - moving);
    }
    assert!(moves > 50 && stays > 50, "{moves} pods move, {stays} stay: the clusters show little");
}

#[test]
fn a_drain_creates_at_most_200_rules() {
    let slices = |count: usize| {
        let slice = |number| {
            format!(
                "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s{number}}}\n\
                 spec: {{driver: gpu.example.com, nodeName: n{number}, pool: {{name: n{number}, generation: 1, \
                 resourceSliceCount: 1}}, devices: [{{name: gpu-0}}]}}\n"
            )
        };
        let all: Vec<String> = (0..count).map(slice).collect();
        all.join("---\n")
    };
    let drain_command = drain_command("gpu.example.com gpu.example.com/n7/gpu-0");
    assert_eq!(plan_of(&drain_command, &slices(200)).expect("a plan").rules.len(), 200);
    let error = plan_of(&drain_command, &slices(201)).expect_err("too many");
    assert!(error.contains("201 DeviceTaintRules") && error.contains("at most 200"), "{error}");
}
