//! Filters and scores on small clusters: what the recorded cases in `tests/nodes` do not have.

use super::*;
use tollgate_allocator::AllocatorSemantics;
use tollgate_document::doc::{Value, parse};

/// Calls `look` with the scheduling cycle of `pod` in a cluster given as JSON: `nodes`, `classes`, bound
/// `pods`, and the `pod` to schedule.
fn with_scheduling_cycle(cluster: &str, look: impl FnOnce(&SchedulingCycle<'_, '_, '_>, &PodCatalog<'_>)) {
    let doc = parse(cluster).expect("the cluster is JSON");
    let root = doc.root();
    let mut catalog = PodCatalog::new(AllocatorSemantics::V1_37_0, []);
    let bound: Vec<_> =
        root.get("pods").items().map(|pod| (pod, add_pod_object(&mut catalog, pod))).collect();
    let pod = add_pod_object(&mut catalog, root.get("pod"));
    let nodes = Nodes::new(root.get("nodes").items().map(|node| catalog.read_node(node)).collect::<Vec<_>>());
    let mut occupancy = Occupancy::new(&catalog, &nodes);
    for (object, pod) in bound {
        let node = nodes.find(object.get("spec").get("nodeName").str()).expect("the node exists");
        occupancy.add_pod(node, pod);
    }
    let fits = NodeFitCache::new(&catalog, &nodes);
    let delegated = catalog.resources_delegated_to_devices(root.get("classes").items());
    let cycle = SchedulingCycle::start(&occupancy, &fits, &delegated, pod).expect("there are candidates");
    look(&cycle, &catalog);
}

fn add_pod_object<'d>(catalog: &mut PodCatalog<'d>, pod: Value<'d>) -> PodId {
    catalog.add_pod(&PodSource::from_object(pod))
}

fn node(cycle: &SchedulingCycle<'_, '_, '_>, name: &str) -> NodeIndex {
    cycle.occupancy.nodes().find(name).expect("the node exists")
}

#[test]
fn more_than_a_hundred_nodes_are_not_all_looked_at() {
    // upstream v1.37 TestNumFeasibleNodesToFind
    let expected = [(10, 10), (99, 99), (100, 100), (250, 120), (1000, 420), (5000, 500), (6000, 300)];
    for (candidates, found) in expected {
        assert_eq!(feasible_nodes_to_find(candidates), found, "{candidates} candidates");
    }
}

#[test]
fn zones_take_turns() {
    let node = |name: &str, zone: &str| {
        format!(
            r#"{{"metadata": {{"name": "{name}", "labels": {{"topology.kubernetes.io/zone": "{zone}"}}}}}}"#
        )
    };
    let list = [node("a", "1"), node("b", "1"), node("c", "2"), node("d", "1"), node("e", "3")].join(",");
    with_scheduling_cycle(&format!(r#"{{"nodes": [{list}], "pod": {{}}}}"#), |cycle, _| {
        let names = cycle.occupancy.nodes().iter().map(|(_, info)| info.node.name);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "c", "e", "b", "d"]);
        let from_third = cycle.candidates(3).map(NodeIndex::get).collect::<Vec<_>>();
        assert_eq!(from_third, [3, 4, 0, 1, 2]);
    });
}

const EXTENDED: &str = r#"{
    "nodes": [
        {"metadata": {"name": "plugin"}, "status": {"allocatable": {"pods": 9, "example.com/gpu": "1"}}},
        {"metadata": {"name": "devices"}, "status": {"allocatable": {"pods": 9}}}],
    "classes": [{"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}],
    "pods": [{"spec": {"nodeName": "plugin", "containers": [
        {"resources": {"requests": {"example.com/gpu": 1}}}]}}],
    "pod": {"spec": {"containers": [{"resources": {"limits": {"example.com/gpu": 1}}},
        {"resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": 2}}}]}}}"#;

#[test]
fn devices_provide_extended_resources_that_the_node_does_not_offer() {
    with_scheduling_cycle(EXTENDED, |cycle, catalog| {
        let (plugin, devices) = (node(cycle, "plugin"), node(cycle, "devices"));
        let rejection = cycle.check_node_without_devices(plugin).expect_err("the only one is taken");
        let texts: Vec<_> =
            rejection.reasons.as_slice().iter().map(|reason| reason.scheduler_message(catalog)).collect();
        assert_eq!(texts, ["Insufficient example.com/gpu"]);
        assert!(rejection.resolvable);
        assert_eq!(cycle.check_node_without_devices(devices), Ok(()));
        let delegated = [("example.com/gpu", 1), ("deviceclass.resource.kubernetes.io/gpu", 2)];
        assert_eq!(cycle.requests_delegated_to_devices(devices).collect::<Vec<_>>(), delegated);
        assert_eq!(cycle.requests_delegated_to_devices(plugin).collect::<Vec<_>>(), delegated[1..]);
    });
}

fn names_of_preemption_candidates(priority: i64, rest: &str) -> Vec<String> {
    let cluster = format!(
        r#"{{"nodes": [
            {{"metadata": {{"name": "low"}}, "status": {{"allocatable": {{"pods": 9, "cpu": 2}}}}}},
            {{"metadata": {{"name": "equal"}}, "status": {{"allocatable": {{"pods": 9, "cpu": 2}}}}}},
            {{"metadata": {{"name": "small"}}, "status": {{"allocatable": {{"pods": 9, "cpu": 1}}}}}}],
        "pods": [
            {{"spec": {{"nodeName": "low", "containers": [{{"resources": {{"requests": {{"cpu": 1}}}}}}]}}}},
            {{"spec": {{"nodeName": "equal", "priority": 5, "containers": [
                {{"resources": {{"requests": {{"cpu": 1}}}}}}]}}}},
            {{"spec": {{"nodeName": "small", "containers": [{{"resources": {{"requests": {{"cpu": 1}}}}}}]}}}}],
        "pod": {{"spec": {{"priority": {priority}, {rest}
            "containers": [{{"resources": {{"requests": {{"cpu": 2}}}}}}]}}}}}}"#
    );
    let mut names = Vec::new();
    with_scheduling_cycle(&cluster, |cycle, _| {
        let mut diagnosis = Diagnosis::default();
        for node in cycle.candidates(0) {
            diagnosis.add(node, &cycle.check_node_without_devices(node).expect_err("every node is full"));
        }
        let nodes = cycle.occupancy.nodes();
        let candidates = cycle.preemption_candidates(&diagnosis);
        names = candidates.into_iter().map(|node| nodes.get(node).node.name.to_owned()).collect();
    });
    names
}

#[test]
fn pods_of_lower_priority_could_make_room() {
    assert_eq!(names_of_preemption_candidates(5, ""), ["low"]);
    assert_eq!(names_of_preemption_candidates(6, ""), ["low", "equal"]);
    assert!(names_of_preemption_candidates(0, "").is_empty());
    assert!(names_of_preemption_candidates(5, r#""preemptionPolicy": "Never","#).is_empty());
}

#[test]
fn a_removed_pod_leaves_nothing_behind() {
    let pod = parse(
        r#"{"spec": {"containers": [
            {"ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": 1, "example.com/x": 1}}}]}}"#,
    )
    .expect("the pod is JSON");
    let object = parse(
        r#"{"metadata": {"name": "n"}, "status": {"allocatable": {"pods": 1, "cpu": 1, "example.com/x": 1}}}"#,
    )
    .expect("the node is JSON");
    let mut catalog = PodCatalog::new(AllocatorSemantics::V1_37_0, []);
    let (first, second) =
        (add_pod_object(&mut catalog, pod.root()), add_pod_object(&mut catalog, pod.root()));
    let nodes = Nodes::new([catalog.read_node(object.root())]);
    let node = nodes.find("n").expect("the node exists");
    let (fits, delegated) = (NodeFitCache::new(&catalog, &nodes), catalog.resources_delegated_to_devices([]));
    let mut occupancy = Occupancy::new(&catalog, &nodes);
    let fits_now = |occupancy: &Occupancy<'_, '_>| {
        SchedulingCycle::start(occupancy, &fits, &delegated, second)
            .is_ok_and(|cycle| cycle.check_node_without_devices(node).is_ok())
    };
    assert!(fits_now(&occupancy));
    occupancy.add_pod(node, first);
    assert!(!fits_now(&occupancy));
    assert!(!occupancy.remove_pod(node, second), "it was not there");
    assert!(occupancy.remove_pod(node, first));
    assert!(fits_now(&occupancy));
    assert_eq!(occupancy.with_nodes(&nodes).bound_pods().count(), 0);
}

#[test]
fn what_is_not_modelled_is_named() {
    let spec = |spec: &str| -> Vec<&'static str> {
        let pod = format!(r#"{{"spec": {{{spec}}}}}"#);
        let pod = parse(&pod).expect("the pod is JSON");
        let mut catalog = PodCatalog::new(AllocatorSemantics::V1_37_0, []);
        let id = add_pod_object(&mut catalog, pod.root());
        catalog.pod_needs(id).unmodelled.clone()
    };
    assert!(
        spec(r#""schedulerName": "default-scheduler", "volumes": [{"name": "v", "emptyDir": {}}]"#)
            .is_empty()
    );
    assert_eq!(
        spec(r#""volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]"#),
        ["volumes"]
    );
    assert_eq!(spec(r#""schedulerName": "other""#), ["schedulerName"]);
    let affinity = |selector: &str| {
        let term = format!(r#"{{"topologyKey": "zone", "namespaceSelector": {selector}}}"#);
        format!(
            r#""affinity": {{"podAffinity": {{"requiredDuringSchedulingIgnoredDuringExecution": [{term}]}}}}"#
        )
    };
    assert_eq!(spec(&affinity(r#"{"matchLabels": {"a": "b"}}"#)), ["namespaceSelector without Namespaces"]);
    assert!(spec(&affinity("{}")).is_empty(), "every namespace");
    for needs_feature in [
        r#""hostNetwork": true, "hostUsers": false"#,
        r#""containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]"#,
        r#""initContainers": [{"volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}]"#,
    ] {
        assert_eq!(spec(needs_feature), ["features that nodes declare"], "{needs_feature}");
    }
    for plain in [
        r#""hostNetwork": true"#,
        r#""hostUsers": false"#,
        r#""containers": [{"restartPolicyRules": [{"action": "Restart"}], "volumeMounts": [{"name": "v"}]}]"#,
    ] {
        assert!(spec(plain).is_empty(), "{plain}");
    }
}
