//! Tests which controllers replace evicted pods, and which pods workloads create.

use crate::forecast;
use std::fmt::Write as _;
use tollgate_forecast::{Forecast, PodForecast, PodOrigin, PodOutcome};

/// Nodes with the given number of devices each, a DeviceClass, and a template for a claim of one device.
pub(crate) fn cluster(nodes: usize, devices: usize) -> String {
    let mut text = String::new();
    for node in 0..nodes {
        let list: Vec<String> = (0..devices).map(|device| format!(r#"{{"name":"d{device}"}}"#)).collect();
        let list = list.join(",");
        let _ = writeln!(
            text,
            r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n{node}"}},"status":{{"allocatable":{{"cpu":"8","memory":"32Gi","pods":"110"}}}}}}"#
        );
        let _ = writeln!(
            text,
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s{node}"}},"spec":{{"driver":"gpu.example.com","nodeName":"n{node}","pool":{{"name":"n{node}","generation":1,"resourceSliceCount":1}},"devices":[{list}]}}}}"#
        );
    }
    text + r#"{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},"spec":{}}
    {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"one","namespace":"app"},"spec":{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}}}}
    "#
}

/// A bound pod with its claim.
pub(crate) fn bound_pod(name: &str, node: &str, device: &str, owner: (&str, &str, &str)) -> String {
    let (api_version, kind, owner) = owner;
    let owners = match kind {
        "" => String::new(),
        _ => format!(
            r#","ownerReferences":[{{"apiVersion":"{api_version}","kind":"{kind}","name":"{owner}","uid":"u-{owner}","controller":true}}]"#
        ),
    };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"app","uid":"u-{name}"{owners}}},"spec":{{"nodeName":"{node}","containers":[{{"name":"c","resources":{{"claims":[{{"name":"c0"}}]}}}}],"resourceClaims":[{{"name":"c0","resourceClaimTemplateName":"one"}}]}},"status":{{"phase":"Running","resourceClaimStatuses":[{{"name":"c0","resourceClaimName":"{name}-c0"}}]}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{name}-c0","namespace":"app","ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"{name}","uid":"u-{name}","controller":true}}]}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu"}}}}]}}}},"status":{{"allocation":{{"devices":{{"results":[{{"request":"r","driver":"gpu.example.com","pool":"{node}","device":"{device}"}}]}},"nodeSelector":{{"nodeSelectorTerms":[{{"matchFields":[{{"key":"metadata.name","operator":"In","values":["{node}"]}}]}}]}}}},"reservedFor":[{{"resource":"pods","name":"{name}","uid":"u-{name}"}}]}}}}
        "#
    )
}

pub(crate) const DRAIN_N0: &str = r#"{"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{"name":"drain"},"spec":{"deviceSelector":{"pool":"n0"},"taint":{"key":"drain","effect":"NoExecute"}}}"#;

pub(crate) fn outcomes(forecast: &Forecast) -> Vec<(Option<&str>, PodOutcome)> {
    forecast.pods.iter().map(|pod: &PodForecast| (pod.name.as_deref(), pod.outcome)).collect()
}

#[test]
fn a_pod_without_a_controller_is_not_made_again() {
    let state = cluster(2, 1) + &bound_pod("p", "n0", "d0", ("", "", ""));
    let forecast = forecast(&state, DRAIN_N0, 4);
    assert_eq!(forecast.evicted.len(), 1);
    assert_eq!(outcomes(&forecast), [(None, PodOutcome::NotRecreated)]);
    assert_eq!(forecast.pods[0].replaces.as_deref(), Some("p"));
}

#[test]
fn replicas_find_devices_elsewhere_until_there_are_none() {
    let owner = ("apps/v1", "ReplicaSet", "web-1");
    let state = cluster(2, 2) + &bound_pod("a", "n0", "d0", owner) + &bound_pod("b", "n0", "d1", owner);
    let full = state.clone() + &bound_pod("c", "n1", "d0", owner);
    let both = forecast(&state, DRAIN_N0, 8);
    assert_eq!(outcomes(&both), [(None, PodOutcome::Fits), (None, PodOutcome::Fits)]);
    let one = forecast(&full, DRAIN_N0, 8);
    assert_eq!(outcomes(&one), [(None, PodOutcome::Fits), (None, PodOutcome::Pending)]);
    let pending = &one.pods[1];
    assert_eq!(pending.origin, PodOrigin::Replacement);
    assert_eq!(pending.message.as_deref(), Some("0/2 nodes are available: 2 cannot allocate all claims."));
    assert_eq!(
        pending.explanation.as_deref(),
        Some("Class gpu has 4 devices: 2 in use, 2 with taints that the request does not tolerate.")
    );
}

#[test]
fn a_stateful_set_keeps_names_and_order() {
    let owner = ("apps/v1", "StatefulSet", "db");
    let state = cluster(2, 2)
        + &bound_pod("db-1", "n0", "d0", owner)
        + &bound_pod("db-0", "n0", "d1", owner)
        + &bound_pod("x", "n1", "d0", ("", "", ""));
    let forecast = forecast(&state, DRAIN_N0, 8);
    assert_eq!(outcomes(&forecast), [(Some("db-0"), PodOutcome::Fits), (Some("db-1"), PodOutcome::Pending)]);
}

#[test]
fn a_stateful_set_makes_no_pod_after_one_that_is_pending() {
    let owner = ("apps/v1", "StatefulSet", "db");
    let x = bound_pod("x", "n1", "d0", ("", "", ""));
    let full = cluster(2, 1) + &bound_pod("db-1", "n0", "d0", owner) + &x;
    // The other pod of the set waits already.
    let waiting = |set: &str, number: usize, cpu: usize| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{set}-{number}","namespace":"app","uid":"u-{set}-{number}","ownerReferences":[{{"apiVersion":"apps/v1","kind":"StatefulSet","name":"{set}","uid":"u-{set}","controller":true}}]}},"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{cpu}"}}}}}}],"resourceClaims":[{{"name":"c0","resourceClaimTemplateName":"one"}}]}}}}"#
        )
    };
    let after_waiting = forecast(&(full + &waiting("db", 0, 1)), DRAIN_N0, 4);
    assert_eq!(
        outcomes(&after_waiting),
        [(Some("db-1"), PodOutcome::NotRecreated), (Some("db-0"), PodOutcome::Pending)]
    );
    // A later pod, and pods of other sets, do not count.
    let free = cluster(2, 1) + &bound_pod("db-1", "n0", "d0", owner);
    for (set, number, outcome) in [
        ("db", 0, PodOutcome::NotRecreated),
        ("db", 2, PodOutcome::Fits),
        ("cache", 0, PodOutcome::Fits),
        ("cache", 2, PodOutcome::Fits),
    ] {
        let forecast = forecast(&format!("{free}{}", waiting(set, number, 100)), DRAIN_N0, 4);
        assert_eq!(forecast.pods[0].outcome, outcome, "{set}-{number}");
    }
    let state = cluster(2, 2)
        + &bound_pod("db-1", "n0", "d0", owner)
        + &bound_pod("db-0", "n0", "d1", owner)
        + &x
        + &bound_pod("y", "n1", "d1", ("", "", ""));
    let forecast = forecast(&state, DRAIN_N0, 4);
    assert_eq!(
        outcomes(&forecast),
        [(Some("db-0"), PodOutcome::Pending), (Some("db-1"), PodOutcome::NotRecreated)]
    );
    assert_eq!((forecast.totals.pending, forecast.most_pending), (1, 1));
    assert!(forecast.pods[1].explanation.as_deref().is_some_and(|text| text.contains("StatefulSet")));
}

#[test]
fn a_job_stops_after_too_many_failures() {
    let job = |limit: i64| {
        format!(
            r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"train","namespace":"app","uid":"u-train"}},"spec":{{"backoffLimit":{limit},"parallelism":2}}}}
            "#
        )
    };
    let owner = ("batch/v1", "Job", "train");
    let pods = bound_pod("t-0", "n0", "d0", owner) + &bound_pod("t-1", "n0", "d1", owner);
    let lasting = forecast(&(cluster(2, 2) + &job(6) + &pods), DRAIN_N0, 4);
    assert_eq!(outcomes(&lasting), [(None, PodOutcome::Fits), (None, PodOutcome::Fits)]);
    let failing = forecast(&(cluster(2, 2) + &job(1) + &pods), DRAIN_N0, 4);
    assert_eq!(outcomes(&failing), [(None, PodOutcome::NotRecreated), (None, PodOutcome::NotRecreated)]);
}

#[test]
fn a_job_gives_up_failed_indexes_and_ended_work_queues() {
    let owner = ("batch/v1", "Job", "train");
    let pods = bound_pod("t-0", "n0", "d0", owner) + &bound_pod("t-1", "n0", "d1", owner);
    let other = bound_pod("t-2", "n1", "d0", owner);
    let (fits, lost) = ((None, PodOutcome::Fits), (None, PodOutcome::NotRecreated));
    for (job, expected) in [
        (r#""spec":{"backoffLimitPerIndex":1,"completions":3}"#, vec![fits, fits]),
        (r#""spec":{"backoffLimitPerIndex":0,"completions":3}"#, vec![lost, lost]),
        (r#""spec":{"backoffLimitPerIndex":0,"maxFailedIndexes":2,"completions":3}"#, vec![lost, lost]),
        // The Job fails and deletes its third pod.
        (r#""spec":{"backoffLimitPerIndex":0,"maxFailedIndexes":1,"completions":3}"#, vec![lost; 3]),
        (
            r#""spec":{"backoffLimitPerIndex":0,"maxFailedIndexes":2,"completions":3},"status":{"failedIndexes":"5"}"#,
            vec![lost; 3],
        ),
        (r#""spec":{"parallelism":3},"status":{"succeeded":1}"#, vec![lost, lost]),
        (r#""spec":{"parallelism":3},"status":{"failed":1}"#, vec![fits, fits]),
    ] {
        let object = format!(
            r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"train","namespace":"app","uid":"u-train"}},{job}}}"#
        );
        let forecast = forecast(&(cluster(2, 3) + &object + "\n" + &pods + &other), DRAIN_N0, 4);
        assert_eq!(outcomes(&forecast), expected, "{job}");
    }
}

#[test]
fn controllers_that_are_quicker_get_the_devices() {
    let (set, job) = (("apps/v1", "StatefulSet", "db"), ("batch/v1", "Job", "train"));
    let web = ("apps/v1", "ReplicaSet", "web-1");
    for (free, fits) in [(1, vec!["web-1-a"]), (2, vec!["db-0", "web-1-a"])] {
        let mut state = cluster(2, 3)
            + &bound_pod("a-train", "n0", "d0", job)
            + &bound_pod("db-0", "n0", "d1", set)
            + &bound_pod("web-1-a", "n0", "d2", web);
        for device in free..3 {
            state += &bound_pod(&format!("x{device}"), "n1", &format!("d{device}"), ("", "", ""));
        }
        // Pods that are gone at once; `grace_periods.rs` has the others.
        let spec = r#""spec":{"nodeName""#;
        let state = state.replace(spec, r#""spec":{"terminationGracePeriodSeconds":0,"nodeName""#);
        let forecast = forecast(&state, DRAIN_N0, 16);
        let fitting = forecast.pods.iter().filter(|pod| pod.outcome == PodOutcome::Fits);
        assert_eq!(fitting.filter_map(|pod| pod.replaces.as_deref()).collect::<Vec<_>>(), fits);
        assert_eq!(forecast.totals.pending, 3 - free);
    }
}

#[test]
fn a_job_that_fails_frees_the_devices_of_its_other_pods() {
    let job = r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"train","namespace":"app","uid":"u-train"},"spec":{"backoffLimit":0,"parallelism":2}}
        "#;
    let waiting = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"w","namespace":"app"},"spec":{"containers":[{"name":"c"}],"resourceClaims":[{"name":"c0","resourceClaimTemplateName":"one"}]}}"#;
    let owner = ("batch/v1", "Job", "train");
    let pods = bound_pod("t-0", "n0", "d0", owner) + &bound_pod("t-1", "n1", "d0", owner);
    let failing = forecast(&(cluster(2, 1) + job + &pods + waiting), DRAIN_N0, 4);
    assert_eq!(failing.evicted.len(), 1);
    let gone: Vec<_> = failing.pods.iter().filter_map(|pod| pod.replaces.as_deref()).collect();
    assert_eq!(gone, ["t-0", "t-1"]);
    assert_eq!((failing.totals.not_recreated, failing.totals.fits), (2, 1));
    let lasting = job.replace(r#""backoffLimit":0"#, r#""backoffLimit":1"#);
    let lasting = forecast(&(cluster(2, 1) + &lasting + &pods + waiting), DRAIN_N0, 4);
    assert_eq!((lasting.totals.not_recreated, lasting.totals.pending), (0, 2));
}

#[test]
fn a_new_deployment_makes_its_pods() {
    let given = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"app"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c"}],"resourceClaims":[{"name":"c0","resourceClaimTemplateName":"one"}]}}}}"#;
    let forecast = forecast(&cluster(2, 1), given, 8);
    let outcomes: Vec<PodOutcome> = forecast.pods.iter().map(|pod| pod.outcome).collect();
    assert_eq!(outcomes, [PodOutcome::Fits, PodOutcome::Fits, PodOutcome::Pending]);
    assert!(forecast.pods.iter().all(|pod| pod.origin == PodOrigin::Given && pod.name.is_none()));
}

#[test]
fn a_pod_that_the_eviction_controller_does_not_let_stay() {
    let owner = ("apps/v1", "ReplicaSet", "web-1");
    let template = r#"{"name":"r","exactly":{"deviceClassName":"gpu"}}"#;
    let tolerating =
        r#"{"name":"r","exactly":{"deviceClassName":"gpu","tolerations":[{"operator":"Exists"}]}}"#;
    let state = cluster(1, 1).replace(template, tolerating) + &bound_pod("a", "n0", "d0", owner);
    let forecast = forecast(&state, DRAIN_N0, 4);
    assert_eq!(outcomes(&forecast), [(None, PodOutcome::Fits)]);
    assert!(forecast.pods[0].evicted_again);
}

#[test]
fn a_state_without_nodes_is_said_to_lack_them() {
    let owner = ("apps/v1", "ReplicaSet", "web-1");
    let forecast = forecast(&bound_pod("a", "n0", "d0", owner), DRAIN_N0, 2);
    assert_eq!(outcomes(&forecast), [(None, PodOutcome::Unknown)]);
    assert_eq!(forecast.missing, ["Nodes", "DeviceClasses", "ResourceSlices", "ResourceClaimTemplates"]);
}

#[test]
fn pods_that_need_what_the_state_lacks_are_unknown() {
    let owner = ("apps/v1", "ReplicaSet", "web-1");
    let plain = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"plain","namespace":"app"},"spec":{"containers":[{"name":"c"}]}}"#;
    let whole = cluster(2, 1) + &bound_pod("a", "n0", "d0", owner);
    let without = |kind: &str| {
        let has_kind = |line: &&str| line.contains(&format!(r#""kind":"{kind}","metadata""#));
        let (removed, kept): (Vec<&str>, Vec<&str>) = whole.lines().partition(has_kind);
        (removed.join("\n"), kept.join("\n"))
    };
    for (kind, plural) in [
        ("ResourceClaimTemplate", "ResourceClaimTemplates"),
        ("ResourceSlice", "ResourceSlices"),
        ("DeviceClass", "DeviceClasses"),
    ] {
        let (removed, state) = without(kind);
        let lacking = forecast(&state, &[DRAIN_N0, plain].join("\n"), 2);
        assert_eq!(lacking.missing, [plural]);
        let replacement =
            lacking.pods.iter().find(|pod| pod.origin == PodOrigin::Replacement).expect("a pod");
        assert_eq!(replacement.outcome, PodOutcome::Unknown, "{kind}");
        assert_eq!(replacement.not_modelled, [format!("the state has no {plural}")]);
        let other = lacking.pods.iter().find(|pod| pod.origin == PodOrigin::Given).expect("a pod");
        assert_eq!(other.outcome, PodOutcome::Fits, "{kind}");
        // Given objects are not missing.
        let given = forecast(&state, &[&removed, DRAIN_N0].join("\n"), 2);
        assert_eq!((given.missing.len(), given.totals.fits), (0, 1), "{kind}");
    }
    // Nobody can say which devices are in use.
    let (_, state) = without("ResourceClaim");
    assert_eq!(forecast(&state, plain, 2).missing, ["ResourceClaims"]);
    // A cluster can do without templates: nothing shows that there are any.
    let (_, state) = without("ResourceClaimTemplate");
    let free: Vec<&str> = state.lines().filter(|line| !line.contains("u-a")).collect();
    let given = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"app"},"spec":{"containers":[{"name":"c"}],"resourceClaims":[{"name":"c0","resourceClaimTemplateName":"one"}]}}"#;
    assert_eq!(outcomes(&forecast(&free.join("\n"), given, 2)), [(Some("p"), PodOutcome::Pending)]);
}

/// A rule with the effect NoSchedule for the devices of n0, which evicts no pods.
const CLOSE_N0: &str = r#"{"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{"name":"drain"},"spec":{"deviceSelector":{"pool":"n0"},"taint":{"key":"drain","effect":"NoSchedule"}}}
"#;

#[test]
fn an_eviction_that_is_a_step_moves_one_pod_at_its_time() {
    let owner = ("apps/v1", "ReplicaSet", "web-1");
    let state = cluster(2, 2) + &bound_pod("a", "n0", "d0", owner) + &bound_pod("b", "n0", "d1", owner);
    assert!(forecast(&state, CLOSE_N0, 4).evicted.is_empty());
    let steps = CLOSE_N0.to_owned()
        + r#"{"evict":"b"}
        {"wait":5}
        {"evict":"a"}
        {"evict":"a"}
        {"evict":"nobody"}"#;
    let both = forecast(&state, &steps, 4);
    let order: Vec<(&str, i64)> = both
        .evicted
        .iter()
        .map(|pod| (pod.name.as_str(), pod.at.seconds - both.evicted[0].at.seconds))
        .collect();
    assert_eq!(order, [("b", 0), ("a", 5)]);
    assert_eq!(outcomes(&both), [(None, PodOutcome::Fits), (None, PodOutcome::Fits)]);
    let replaced: Vec<_> = both.pods.iter().map(|pod| pod.replaces.as_deref()).collect();
    assert_eq!(replaced, [Some("b"), Some("a")]);
    let nodes =
        both.pods.iter().flat_map(|pod| &pod.placements).all(|placement| placement.place.node == "n1");
    assert!(nodes, "no replacement comes back to the devices that are closed");
}

#[test]
fn pods_that_are_evicted_by_steps_compete_in_their_order() {
    let owner = ("apps/v1", "ReplicaSet", "web-1");
    let state = cluster(2, 2)
        + &bound_pod("a", "n0", "d0", owner)
        + &bound_pod("b", "n0", "d1", owner)
        + &bound_pod("x", "n1", "d0", ("", "", ""));
    let steps = CLOSE_N0.to_owned()
        + r#"{"evict":"b"}
        {"wait":1}
        {"evict":"a"}"#;
    let forecast = forecast(&state, &steps, 8);
    let found: Vec<_> = forecast.pods.iter().map(|pod| (pod.replaces.as_deref(), pod.outcome)).collect();
    assert_eq!(found, [(Some("b"), PodOutcome::Fits), (Some("a"), PodOutcome::Pending)]);
}

#[test]
fn a_group_makes_pods_again_that_their_job_does_not() {
    let job = r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"train","namespace":"app","uid":"u-train"},"spec":{"backoffLimit":0}}
    "#;
    let state = cluster(2, 1) + job + &bound_pod("a", "n0", "d0", ("batch/v1", "Job", "train"));
    let alone = forecast(&state, &(CLOSE_N0.to_owned() + r#"{"evict":"a"}"#), 4);
    assert_eq!(outcomes(&alone), [(None, PodOutcome::NotRecreated)]);
    let with_group = forecast(&state, &(CLOSE_N0.to_owned() + r#"{"evict":"a","group":true}"#), 4);
    assert_eq!(outcomes(&with_group), [(None, PodOutcome::Fits)]);
}

#[test]
fn a_pod_counts_with_what_its_containers_have() {
    let bound = |status: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"app","uid":"u-p"}},"spec":{{"nodeName":"n0","containers":[{{"name":"c","resources":{{"requests":{{"cpu":"2"}}}}}}]}},"status":{{"phase":"Running"{status}}}}}"#
        )
    };
    let new = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"app"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"4"}}}]}}"#;
    // The node has 8 cpus. A container keeps what it has until its kubelet has resized it.
    for (status, outcome) in [
        ("", PodOutcome::Fits),
        (r#","containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]"#, PodOutcome::Fits),
        (r#","containerStatuses":[{"name":"c","resources":{"requests":{"cpu":"7"}}}]"#, PodOutcome::Pending),
    ] {
        let forecast = forecast(&(cluster(1, 1) + &bound(status)), new, 2);
        assert_eq!(forecast.pods[0].outcome, outcome, "{status}");
    }
}

#[test]
fn pods_that_differ_in_ports_are_scheduled_on_their_own() {
    let pod = |name: &str, port: u16, rest: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"app","uid":"u-{name}"}},"spec":{{"containers":[{{"name":"c","ports":[{{"containerPort":80,"hostPort":{port}}}]}}]{rest}}}}}
            "#
        )
    };
    let bound = cluster(1, 1) + &pod("x", 80, r#","nodeName":"n0""#);
    // They wait together.
    let state = bound + &pod("p", 80, "") + &pod("q", 81, "") + &pod("r", 81, "");
    let forecast = forecast(&state, r#"{"wait":1}"#, 4);
    let expected = [PodOutcome::Pending, PodOutcome::Fits, PodOutcome::Pending];
    assert_eq!(forecast.pods.iter().map(|pod| pod.outcome).collect::<Vec<_>>(), expected);
}

#[test]
fn a_shared_device_without_enough_capacity_is_not_called_free() {
    let slice = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s0"},"spec":{"driver":"gpu.example.com","nodeName":"n0","pool":{"name":"n0","generation":1,"resourceSliceCount":1},"devices":[{"name":"d0","allowMultipleAllocations":true,"capacity":{"seats":{"value":"4","requestPolicy":{"default":"2"}}}}]}}
    "#;
    let shared = bound_pod("a", "n0", "d0", ("", "", ""))
        .replace(r#""device":"d0""#, r#""device":"d0","shareID":"x","consumedCapacity":{"seats":"3"}"#);
    let node =
        cluster(1, 0).lines().filter(|line| !line.contains("ResourceSlice\"")).collect::<Vec<_>>().join("\n");
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"app"},"spec":{"containers":[{"name":"c"}],"resourceClaims":[{"name":"c0","resourceClaimTemplateName":"one"}]}}"#;
    let state = format!("{node}\n{slice}{shared}");
    let forecast = crate::forecast_with_gates("1.37", "all", &state, pod, 4);
    assert_eq!(forecast.pods[0].outcome, PodOutcome::Pending);
    assert_eq!(
        forecast.pods[0].explanation.as_deref(),
        Some("Class gpu has 1 device: 1 with too little capacity left.")
    );
}

/// A NoExecute taint that is added to a node evicts its pods, also those without devices, at the end of what they
/// tolerate.
#[test]
fn a_taint_of_a_node_evicts_pods() {
    let tainted = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n0"},"spec":{"taints":[{"key":"m","value":"1","effect":"NoExecute"}]},"status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110"}}}"#;
    let tolerating = |rest: &str| {
        let field = format!(r#""spec":{{"tolerations":[{{"key":"m","operator":"Exists"{rest}}}],"nodeName""#);
        bound_pod("p", "n0", "d0", ("apps/v1", "ReplicaSet", "web-1"))
            .replace(r#""spec":{"nodeName""#, &field)
    };
    let without_devices = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"app","uid":"u-q"},"spec":{"nodeName":"n0","containers":[{"name":"c"}]}}"#;
    let daemon = bound_pod("p", "n0", "d0", ("apps/v1", "DaemonSet", "d"));
    let plain = bound_pod("p", "n0", "d0", ("apps/v1", "ReplicaSet", "web-1"));
    for (pods, expected, outcome) in [
        (plain.clone(), Some("2030-01-01T00:00:00Z"), Some(PodOutcome::Fits)),
        (without_devices.to_owned(), Some("2030-01-01T00:00:00Z"), Some(PodOutcome::NotRecreated)),
        (daemon, Some("2030-01-01T00:00:00Z"), Some(PodOutcome::NotRecreated)),
        (tolerating(r#","tolerationSeconds":60"#), Some("2030-01-01T00:01:00Z"), None),
        (tolerating(""), None, None),
    ] {
        let found = forecast(&(cluster(2, 1) + &pods), tainted, 4);
        let evicted = found.evicted.first().map(|pod| tollgate_formats::gotime::rfc3339(pod.at));
        assert_eq!(evicted.as_deref(), expected, "{pods}");
        if let Some(outcome) = outcome {
            assert_eq!(found.pods[0].outcome, outcome, "{pods}");
        }
    }
    // The node of the state has the taint already.
    let state = cluster(1, 1).replace(r#""metadata":{"name":"n0"}"#, r#""metadata":{"name":"x"}"#) + tainted;
    assert_eq!(forecast(&format!("{state}\n{plain}"), tainted, 4).evicted, []);
}
