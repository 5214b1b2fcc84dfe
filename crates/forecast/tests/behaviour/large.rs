//! Large clusters, and searches that exceed their limit.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "how long it takes is what is measured, and printed"
)]

use crate::{forecast, release, settings};
use std::fmt::Write as _;
use tollgate_document::doc::parse;
use tollgate_forecast::{ClusterChange, Forecast, Plan, PodOutcome, RunOutcome, State};

/// A cluster whose nodes have ten devices each and four pods with two devices each. The pods belong to
/// ReplicaSets of a hundred.
fn large_cluster(nodes: usize) -> String {
    let mut text = String::from(
        r#"{"items":[{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},"spec":{"selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}]}},{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"two","namespace":"app"},"spec":{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":2}}]}}}}"#,
    );
    for node in 0..nodes {
        let devices: Vec<String> = (0..10)
            .map(|device| format!(r#"{{"name":"d{device}","attributes":{{"model":{{"string":"a"}},"index":{{"int":{device}}}}}}}"#))
            .collect();
        let devices = devices.join(",");
        let _ = write!(
            text,
            r#",{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n{node}","labels":{{"zone":"z{}"}}}},"status":{{"allocatable":{{"cpu":"64","memory":"512Gi","pods":"110"}}}}}},{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s{node}"}},"spec":{{"driver":"gpu.example.com","nodeName":"n{node}","pool":{{"name":"n{node}","generation":1,"resourceSliceCount":1}},"devices":[{devices}]}}}}"#,
            node % 3
        );
        for slot in 0..4 {
            let (name, owner) = (format!("p{node}-{slot}"), (node * 4 + slot) / 100);
            let (one, two) = (slot * 2, slot * 2 + 1);
            let _ = write!(
                text,
                r#",{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","generateName":"rs{owner}-","namespace":"app","uid":"u-{name}","labels":{{"app":"a{owner}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs{owner}","uid":"u-rs{owner}","controller":true}}]}},"spec":{{"nodeName":"n{node}","containers":[{{"name":"c","resources":{{"requests":{{"cpu":"4","memory":"8Gi"}},"claims":[{{"name":"c0"}}]}}}}],"resourceClaims":[{{"name":"c0","resourceClaimTemplateName":"two"}}]}},"status":{{"phase":"Running","resourceClaimStatuses":[{{"name":"c0","resourceClaimName":"{name}-c0"}}]}}}},{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{name}-c0","namespace":"app","ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"{name}","uid":"u-{name}","controller":true}}]}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu","allocationMode":"ExactCount","count":2}}}}]}}}},"status":{{"allocation":{{"devices":{{"results":[{{"request":"r","driver":"gpu.example.com","pool":"n{node}","device":"d{one}"}},{{"request":"r","driver":"gpu.example.com","pool":"n{node}","device":"d{two}"}}]}},"nodeSelector":{{"nodeSelectorTerms":[{{"matchFields":[{{"key":"metadata.name","operator":"In","values":["n{node}"]}}]}}]}}}},"reservedFor":[{{"resource":"pods","name":"{name}","uid":"u-{name}"}}]}}}}"#
            );
        }
    }
    text + "]}"
}

/// Drains the first nodes, simulates runs in two threads, and prints the elapsed time.
fn drain(nodes: usize, drained: usize, samples: u32) -> Forecast {
    let text = large_cluster(nodes);
    let rules: Vec<String> = (0..drained)
        .map(|node| format!(r#"{{"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{{"name":"drain-{node}"}},"spec":{{"deviceSelector":{{"pool":"n{node}"}},"taint":{{"key":"drain","effect":"NoExecute"}}}}}}"#))
        .collect();
    let rules: Vec<_> = rules.iter().map(|rule| parse(rule).expect("JSON")).collect();
    let started = std::time::Instant::now();
    let doc = parse(&text).expect("JSON");
    let mut state = State::default();
    for object in doc.root().get("items").items() {
        state.add(object);
    }
    println!("read: {:?}", started.elapsed());
    let steps = rules.iter().map(|doc| ClusterChange::Apply(doc.root())).collect();
    let plan = Plan::new(state, steps, release(), settings());
    println!("planned: {:?}", started.elapsed());
    let half = |first: u32| -> Vec<RunOutcome> {
        let mut player = plan.create_run_simulator();
        (first..samples).step_by(2).map(|course| player.simulate_run(course)).collect()
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        (half(0), other.join().expect("a thread"))
    });
    println!("played: {:?}", started.elapsed());
    let forecast = Forecast::from_runs(&plan, one.into_iter().chain(other));
    println!("done: {:?}", started.elapsed());
    forecast
}

#[test]
fn evicted_pods_of_many_nodes_fit_elsewhere() {
    let forecast = drain(300, 10, 4);
    assert_eq!(forecast.evicted.len(), 40);
    assert_eq!(forecast.totals.fits, 40);
}

/// Run with `cargo test --release -p tollgate-forecast --test behaviour -- --ignored --nocapture`.
#[test]
#[ignore = "measures time, which only an optimized program is judged by"]
fn five_thousand_nodes() {
    let forecast = drain(5000, 125, 64);
    assert_eq!(forecast.evicted.len(), 500);
    assert_eq!(forecast.totals.fits, 500);
}

#[test]
fn a_search_without_end_is_given_up() {
    let devices: Vec<String> = (0..128)
        .map(|device| format!(r#"{{"name":"d{device}","attributes":{{"a":{{"int":{}}}}}}}"#, device / 31))
        .collect();
    let state = format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n"}},"status":{{"allocatable":{{"cpu":"8","memory":"8Gi","pods":"10"}}}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"gpu"}},"spec":{{}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"gpu.example.com","nodeName":"n","pool":{{"name":"n","generation":1,"resourceSliceCount":1}},"devices":[{}]}}}}"#,
        devices.join(",")
    );
    let given = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"app"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":32}}],"constraints":[{"requests":["r"],"matchAttribute":"gpu.example.com/a"}]}}}
        {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"app"},"spec":{"containers":[{"name":"c"}],"resourceClaims":[{"name":"c0","resourceClaimName":"c"}]}}"#;
    let forecast = forecast(&state, given, 64);
    assert_eq!(forecast.pods[0].outcome, PodOutcome::Unknown);
    assert_eq!(forecast.pods[0].not_modelled, ["gave up after 1000000 steps"]);
}
