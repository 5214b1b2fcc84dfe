//! Tests what evicted pods occupy until their grace period is over, and which controllers replace them before that.

use crate::controllers::{DRAIN_N0, bound_pod, cluster, outcomes};
use crate::forecast;
use tollgate_forecast::PodOutcome;
use tollgate_formats::gotime::rfc3339;

const WEB: (&str, &str, &str) = ("apps/v1", "ReplicaSet", "web-1");
const SET: (&str, &str, &str) = ("apps/v1", "StatefulSet", "db");
const JOB: (&str, &str, &str) = ("batch/v1", "Job", "train");

/// Like [`bound_pod`], with a grace period.
fn pod_with_grace(name: &str, node: &str, device: &str, owner: (&str, &str, &str), seconds: u32) -> String {
    let field = format!(r#""spec":{{"terminationGracePeriodSeconds":{seconds},"nodeName""#);
    bound_pod(name, node, device, owner).replace(r#""spec":{"nodeName""#, &field)
}

/// Changes a pod to reference an existing claim by name.
fn by_name(pod: &str, name: &str) -> String {
    let generated = r#""resourceClaimTemplateName":"one""#;
    let owned = format!(
        r#","ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"{name}","uid":"u-{name}","controller":true}}]"#
    );
    pod.replace(generated, &format!(r#""resourceClaimName":"{name}-c0""#)).replace(&owned, "")
}

/// Like [`by_name`], for a claim that has an owner.
fn by_name_with_owner(pod: &str, name: &str, owner: &str) -> String {
    let claim = format!(r#"{{"name":"{name}-c0","namespace":"app""#);
    by_name(pod, name).replace(&claim, &format!(r#"{claim},"ownerReferences":[{owner}]"#))
}

/// Changes a pod to request almost all cpu of its node.
fn large(pod: &str) -> String {
    pod.replace(r#""resources":{"#, r#""resources":{"requests":{"cpu":"5"},"#)
}

#[test]
fn a_replica_joins_the_claim_of_the_pod_that_is_not_gone() {
    for (owner, seconds, evicted_again) in
        [(WEB, 30, true), (WEB, 0, false), (SET, 30, false), (("apps/v1", "DaemonSet", "d"), 30, false)]
    {
        let name = if owner == SET { "db-0" } else { "p" };
        let pod = by_name(&pod_with_grace(name, "n0", "d0", owner, seconds), name);
        let forecast = forecast(&(cluster(2, 1) + &pod), DRAIN_N0, 4);
        let pod = &forecast.pods[0];
        assert_eq!(
            (pod.outcome, pod.evicted_again),
            (PodOutcome::Fits, evicted_again),
            "{owner:?} {seconds}"
        );
        let node = if evicted_again { "n0" } else { "n1" };
        assert!(pod.placements.iter().all(|placement| placement.place.node == node), "{owner:?} {seconds}");
    }
    // On its node, there is no room for the replacement as long as the old pod is there. After that, the claim is free.
    let pod = large(&by_name(&pod_with_grace("p", "n0", "d0", WEB, 30), "p"));
    let forecast = forecast(&(cluster(2, 1) + &pod), DRAIN_N0, 4);
    assert!(!forecast.pods[0].evicted_again);
    assert_eq!(forecast.pods[0].placements[0].place.node, "n1");
}

#[test]
fn a_claim_is_generated_only_if_a_pod_controls_it() {
    let pod = pod_with_grace("p", "n0", "d0", WEB, 30);
    for (owner, is_generated) in [
        (r#"{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u-p","controller":true}"#, true),
        (r#"{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u-p"}"#, false),
        (r#"{"apiVersion":"example.com/v1","kind":"Lab","name":"p","uid":"u-p","controller":true}"#, false),
    ] {
        let state = cluster(2, 1) + &by_name_with_owner(&pod, "p", owner);
        let forecast = forecast(&state, DRAIN_N0, 4);
        // A generated claim is deleted with its pod. Another one stays, and its device is tainted.
        let expected = if is_generated { (PodOutcome::Pending, false) } else { (PodOutcome::Fits, true) };
        assert_eq!((forecast.pods[0].outcome, forecast.pods[0].evicted_again), expected, "{owner}");
    }
}

#[test]
fn a_pod_that_is_not_gone_counts_on_its_node() {
    // The taint is on one of two devices, so that the node itself can be used again.
    let one_device = DRAIN_N0.replace(r#""pool":"n0""#, r#""pool":"n0","device":"d0""#);
    let other_node = large(&bound_pod("x", "n1", "d0", ("", "", "")));
    for seconds in [0, 30] {
        let state = cluster(2, 2) + &large(&pod_with_grace("p", "n0", "d0", WEB, seconds)) + &other_node;
        let forecast = forecast(&state, &one_device, 4);
        // It waits until the old pod is gone.
        assert_eq!(outcomes(&forecast), [(None, PodOutcome::Fits)]);
        assert_eq!(forecast.pods[0].placements[0].place.node, "n0");
    }
    let small = bound_pod("x", "n1", "d0", ("", "", ""));
    for (seconds, node) in [(0, "n0"), (30, "n1")] {
        let state = cluster(2, 2) + &large(&pod_with_grace("p", "n0", "d0", WEB, seconds)) + &small;
        let forecast = forecast(&state, &one_device, 8);
        assert!(forecast.pods[0].placements.iter().all(|place| place.place.node == node), "{seconds}");
    }
}

#[test]
fn a_pod_that_is_not_gone_does_not_count_for_topology_spread() {
    let labels = r#""namespace":"app","labels":{"app":"web"}"#;
    let spread = r#""topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}]"#;
    let web = |pod: String| {
        // The first line is the pod, the second one its claim.
        let (pod, claim) = pod.split_once('\n').unwrap_or_default();
        let pod = pod.replacen(r#""namespace":"app""#, labels, 1);
        format!("{}\n{claim}", pod.replace(r#""containers""#, &format!(r#"{spread},"containers""#)))
    };
    let mut nodes = cluster(2, 2);
    for name in ["n0", "n1"] {
        let named = format!(r#""metadata":{{"name":"{name}"}},"status""#);
        let labelled = format!(
            r#""metadata":{{"name":"{name}","labels":{{"kubernetes.io/hostname":"{name}"}}}},"status""#
        );
        nodes = nodes.replace(&named, &labelled);
    }
    let one_device = DRAIN_N0.replace(r#""pool":"n0""#, r#""pool":"n0","device":"d0""#);
    for seconds in [0, 30] {
        let state = nodes.clone()
            + &web(large(&pod_with_grace("p", "n0", "d0", WEB, seconds)))
            + &web(bound_pod("x", "n1", "d0", ("", "", "")));
        let forecast = forecast(&state, &one_device, 8);
        // The other node has a pod already, so the replacement waits until there is room on its node.
        assert_eq!(outcomes(&forecast), [(None, PodOutcome::Fits)], "{seconds}");
        assert!(forecast.pods[0].placements.iter().all(|place| place.place.node == "n0"), "{seconds}");
    }
}

#[test]
fn devices_are_in_use_until_their_pod_is_gone() {
    // Both devices of the claim are held, though only one is tainted.
    let two = |pod: &str| {
        pod.replace(
            r#"{"request":"r","driver":"gpu.example.com","pool":"n0","device":"d0"}"#,
            r#"{"request":"r","driver":"gpu.example.com","pool":"n0","device":"d0"},{"request":"r","driver":"gpu.example.com","pool":"n0","device":"d1"}"#,
        )
    };
    let one_device = DRAIN_N0.replace(r#""pool":"n0""#, r#""pool":"n0","device":"d0""#);
    for (seconds, node) in [(0, "n0"), (30, "n1")] {
        let x = large(&bound_pod("x", "n1", "d0", ("", "", "")));
        let state = cluster(2, 2) + &two(&pod_with_grace("p", "n0", "d0", WEB, seconds)) + &x;
        let forecast = forecast(&state, &one_device, 8);
        assert!(forecast.pods[0].placements.iter().all(|place| place.place.node == node), "{seconds}");
    }
}

#[test]
fn replacements_come_in_the_order_of_their_times() {
    let job = |policy: &str| {
        format!(
            r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"train","namespace":"app","uid":"u-train"}},"spec":{{"parallelism":1{policy}}}}}
            "#
        )
    };
    // A Job waits for ten seconds, a StatefulSet until the pod is gone; one device is left.
    for (seconds, policy, first) in [
        (30, "", "t"),
        (5, "", "db-0"),
        (0, "", "db-0"),
        (30, r#","podReplacementPolicy":"Failed""#, "db-0"),
        (30, r#","podReplacementPolicy":"TerminatingOrFailed""#, "t"),
    ] {
        let state = cluster(2, 2)
            + &job(policy)
            + &pod_with_grace("t", "n0", "d0", JOB, seconds)
            + &pod_with_grace("db-0", "n0", "d1", SET, seconds)
            + &bound_pod("x", "n1", "d0", ("", "", ""));
        let forecast = forecast(&state, DRAIN_N0, 4);
        let fitting = forecast.pods.iter().filter(|pod| pod.outcome == PodOutcome::Fits);
        let fitting: Vec<_> = fitting.filter_map(|pod| pod.replaces.as_deref()).collect();
        assert_eq!(fitting, [first], "{seconds} {policy}");
    }
}

#[test]
fn a_pod_moves_on_while_its_predecessors_hold_tainted_devices() {
    // The scheduler takes the toleration, the eviction controller does not. The third device is not tainted.
    let template = r#"{"name":"r","exactly":{"deviceClassName":"gpu"}}"#;
    let tolerating =
        r#"{"name":"r","exactly":{"deviceClassName":"gpu","tolerations":[{"operator":"Exists"}]}}"#;
    let healthy = r#"{"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{"name":"more"},"spec":{"deviceSelector":{"pool":"n0","device":"d1"},"taint":{"key":"drain","effect":"NoExecute"}}}"#;
    let one_device = DRAIN_N0.replace(r#""pool":"n0""#, r#""pool":"n0","device":"d0""#);
    let rules = [one_device.as_str(), healthy].join("\n");
    for (seconds, evicted_again) in [(0, true), (30, false)] {
        let state =
            cluster(1, 3).replace(template, tolerating) + &pod_with_grace("a", "n0", "d0", WEB, seconds);
        let forecast = forecast(&state, &rules, 2);
        assert_eq!(outcomes(&forecast), [(None, PodOutcome::Fits)]);
        assert_eq!(forecast.pods[0].evicted_again, evicted_again, "{seconds}");
    }
}

#[test]
fn a_pod_that_waits_for_its_driver_leaves_its_node_at_once() {
    let waits = r#"{"name":"d0","bindsToNode":true,"bindingConditions":["ready"],"bindingFailureConditions":["broken"]}"#;
    let state = cluster(1, 1).replace(r#"{"name":"d0"}"#, waits);
    let pod = |name: &str, claims: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"app"}},"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"5"}}}}}}]{claims}}}}}"#
        )
    };
    let first = pod("p", r#","resourceClaims":[{"name":"c0","resourceClaimTemplateName":"one"}]"#);
    let second = pod("q", "");
    let with = forecast(&state, &[first.as_str(), &second].join("\n"), 4);
    assert_eq!(outcomes(&with), [(Some("p"), PodOutcome::Pending), (Some("q"), PodOutcome::Pending)]);
    let without = forecast(&state, &[first.as_str(), r#"{"delete":"p"}"#, &second].join("\n"), 4);
    assert_eq!(without.pods[1].outcome, PodOutcome::Fits, "{:?}", without.pods);
}

/// Changes a pod on the device `d0` of `n0` to tolerate [`DRAIN_N0`] for ten minutes.
fn tolerating(pod: &str) -> String {
    let device = r#""pool":"n0","device":"d0""#;
    let tolerations =
        r#""tolerations":[{"key":"drain","operator":"Exists","effect":"NoExecute","tolerationSeconds":600}]"#;
    pod.replace(device, &format!("{device},{tolerations}"))
}

/// [`DRAIN_N0`] as the API server stores it now.
fn stored_rule() -> String {
    DRAIN_N0.replace(r#""key":"drain""#, r#""key":"drain","timeAdded":"2030-01-01T00:00:00Z""#)
}

#[test]
fn a_toleration_ends_between_two_steps() {
    let state = cluster(2, 1) + &tolerating(&bound_pod("p", "n0", "d0", WEB));
    for waits in [&[700][..], &[300, 700], &[600], &[601, 1]] {
        let waits = waits.iter().map(|seconds| format!(r#"{{"wait":{seconds}}}"#));
        let steps: Vec<String> = std::iter::once(stored_rule()).chain(waits).collect();
        let forecast = forecast(&state, &steps.join("\n"), 4);
        let times: Vec<_> = forecast.evicted.iter().map(|pod| rfc3339(pod.at)).collect();
        assert_eq!(times, ["2030-01-01T00:10:00Z"], "{steps:?}");
    }
}

#[test]
fn a_pod_that_is_created_after_a_replacement_is_scheduled_after_it() {
    let later = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"app"},"spec":{"containers":[{"name":"c"}],"resourceClaims":[{"name":"c0","resourceClaimTemplateName":"one"}]}}"#;
    let state = cluster(2, 1) + &tolerating(&pod_with_grace("db-0", "n0", "d0", SET, 30));
    // The old pod is gone after 630 seconds; one device is left.
    for (seconds, first) in [(620, "q"), (640, "db-0"), (700, "db-0")] {
        let steps = [&stored_rule(), &format!(r#"{{"wait":{seconds}}}"#), later];
        let forecast = forecast(&state, &steps.join("\n"), 4);
        let fitting = forecast.pods.iter().filter(|pod| pod.outcome == PodOutcome::Fits);
        let fitting: Vec<_> = fitting.filter_map(|pod| pod.name.as_deref()).collect();
        assert_eq!(fitting, [first], "{seconds}");
    }
}

#[test]
fn each_pod_has_its_own_grace_period() {
    let rule = DRAIN_N0.replace(r#""pool":"n0""#, r#""pool":"n0","device":"d1""#);
    let rule = rule.replace("NoExecute", "NoSchedule");
    // The first device is free after 5 seconds, the second one after 60.
    for (seconds, pending) in [(30, 1), (90, 0)] {
        let state = cluster(1, 2)
            + &pod_with_grace("a", "n0", "d0", WEB, 5)
            + &pod_with_grace("b", "n0", "d1", WEB, 60);
        let wait = format!(r#"{{"wait":{seconds}}}"#);
        let steps = [r#"{"evict":"a"}"#, r#"{"evict":"b"}"#, &wait, &rule];
        let forecast = forecast(&state, &steps.join("\n"), 4);
        assert_eq!(forecast.totals.pending, pending, "{seconds}: {:?}", forecast.pods);
    }
}

/// The kubelet of a node that is not Ready does not end pods. The outcome of what waits for them is unknown, and their
/// devices stay in use.
#[test]
fn a_pod_on_a_node_that_is_not_ready_does_not_end() {
    let conditions = r#""status":{"conditions":[{"type":"Ready","status":"Unknown"}],"#;
    let not_ready = |state: &str| state.replacen(r#""status":{"#, conditions, 1);
    let waits = r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"train","namespace":"app","uid":"u-train"},"spec":{"podReplacementPolicy":"Failed"}}"#;
    for (owner, seconds, expected) in [
        (WEB, 30, PodOutcome::Fits),
        (SET, 30, PodOutcome::Unknown),
        (SET, 0, PodOutcome::Fits),
        (JOB, 30, PodOutcome::Unknown),
        (("batch/v1", "Job", "other"), 30, PodOutcome::Fits),
    ] {
        let name = if owner == SET { "db-0" } else { "p" };
        let state = not_ready(&cluster(2, 1)) + &pod_with_grace(name, "n0", "d0", owner, seconds) + waits;
        let found = forecast(&state, DRAIN_N0, 4);
        assert_eq!(found.pods[0].outcome, expected, "{owner:?} {seconds}");
        let why = format!("pod {name} stays Terminating while node n0 is not Ready");
        assert_eq!(found.pods[0].not_modelled.contains(&why), expected == PodOutcome::Unknown, "{owner:?}");
    }
    // The pod that does not end holds the only device.
    let state = cluster(1, 1) + &pod_with_grace("p", "n0", "d0", WEB, 30);
    for (state, expected) in [(not_ready(&state), PodOutcome::Pending), (state, PodOutcome::Fits)] {
        assert_eq!(forecast(&state, r#"{"evict":"p"}"#, 4).pods[0].outcome, expected);
    }
}
