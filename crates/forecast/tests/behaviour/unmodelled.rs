//! Devices and requests with features that are not modelled: the outcome of the pods that use them is unknown, and
//! that of all others is not.

use crate::{controllers, forecast, forecast_with_gates};
use tollgate_forecast::{Forecast, PodOutcome};

/// One node with these devices, the class `gpu` for devices of the model `a`, and the class `any`.
fn cluster(devices: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n"}},"status":{{"allocatable":{{"cpu":"8","memory":"32Gi","pods":"110"}}}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"c"}},"spec":{{"driver":"gpu.example.com","nodeName":"n","pool":{{"name":"n","generation":1,"resourceSliceCount":2}},"sharedCounters":[{{"name":"s","counters":{{"m":{{"value":"4"}}}}}}]}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"gpu.example.com","nodeName":"n","pool":{{"name":"n","generation":1,"resourceSliceCount":2}},"devices":[{devices}]}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"any"}},"spec":{{}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"gpu"}},"spec":{{"selectors":[{{"cel":{{"expression":"device.attributes['gpu.example.com'].model == 'a'"}}}}]}}}}
        "#
    )
}

/// A device with the given model attribute.
fn device(name: &str, model: &str, rest: &str) -> String {
    format!(r#"{{"name":"{name}","attributes":{{"model":{{"string":"{model}"}}}}{rest}}}"#)
}

/// A pod with a claim for one device.
fn pod(class: &str, rest: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"c","namespace":"app"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"{class}"{rest}}}}}]}}}}}}
        {{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"app"}},"spec":{{"containers":[{{"name":"c"}}],"resourceClaims":[{{"name":"c0","resourceClaimName":"c"}}]}}}}"#
    )
}

/// The outcome of the only pod, and the features that are not simulated.
fn outcome(forecast: &Forecast) -> (PodOutcome, Vec<&str>) {
    let [pod] = forecast.pods.as_slice() else { panic!("{:?}", forecast.pods) };
    (pod.outcome, pod.not_modelled.iter().map(String::as_str).collect())
}

const GROUPS: &str =
    r#","consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"1"}},"compatibilityGroups":["g"]}]"#;
const COUNTERS: &str = r#","consumesCounters":[{"counterSet":"s","counters":{"m":{"value":"1"}}}]"#;

#[test]
fn compatibility_groups() {
    let state =
        cluster(&[device("a", "a", COUNTERS), device("b", "b", GROUPS), device("c", "c", "")].join(","));
    let by_model = |model: &str| {
        format!(
            r#","selectors":[{{"cel":{{"expression":"device.attributes['gpu.example.com'].model == '{model}'"}}}}]"#
        )
    };
    let unknown = (PodOutcome::Unknown, vec!["compatibility groups"]);
    let gate = "DRADeviceCompatibilityGroups=true";
    for (model, expected) in [("a", &unknown), ("b", &unknown), ("c", &(PodOutcome::Fits, vec![]))] {
        let found = forecast_with_gates("1.37", gate, &state, &pod("any", &by_model(model)), 4);
        assert_eq!(outcome(&found), *expected, "{model}");
    }
    // With the gate off, the scheduler ignores such slices.
    let found = forecast(&state, &pod("gpu", ""), 4);
    assert_eq!(outcome(&found), (PodOutcome::Pending, vec![]));
    let explanation = found.pods[0].explanation.as_deref();
    assert_eq!(
        explanation,
        Some("Class gpu has 1 device: 1 blocked (compatibility groups are not supported).")
    );
}

#[test]
fn derived_attributes() {
    let state = cluster(&device("a", "a", ""));
    let derived = r#","derivedAttributes":[{"name":"x","expression":"'y'"}]"#;
    let gate = "DRADerivedAttributes=true";
    let found = forecast_with_gates("1.37", gate, &state, &pod("gpu", derived), 4);
    assert_eq!(outcome(&found), (PodOutcome::Unknown, vec!["derived attributes"]));
    let found = forecast_with_gates("1.37", gate, &state, &pod("gpu", ""), 4);
    assert_eq!(outcome(&found), (PodOutcome::Fits, vec![]));
    let found = forecast(&state, &pod("gpu", derived), 4);
    assert_eq!(outcome(&found), (PodOutcome::Pending, vec![]));
}

#[test]
fn node_allocatable_resources() {
    let gate = "DRANodeAllocatableResources=true";
    for (release, field) in [
        ("1.36", r#","nodeAllocatableResourceMappings":{"cpu":{"allocationMultiplier":"2"}}"#),
        ("1.37", r#","nodeAllocatableResources":{"cpu":{"mapping":{"allocationMultiplier":"2"}}}"#),
    ] {
        let state = cluster(&[device("b", "b", ""), device("a", "a", field)].join(","));
        let unknown = (PodOutcome::Unknown, vec!["node-allocatable resources"]);
        let found = forecast_with_gates(release, gate, &state, &pod("gpu", ""), 4);
        assert_eq!(outcome(&found), unknown, "{release}");
        // A claim that has the device already brings its resources to the next pod that uses it.
        let stored = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"app"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}},"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"gpu.example.com","pool":"n","device":"a"}]}}}}"#;
        let only_pod = pod("gpu", "");
        let only_pod = only_pod.lines().last().unwrap_or_default();
        let found = forecast_with_gates(release, gate, &format!("{state}{stored}"), only_pod, 4);
        assert_eq!(outcome(&found), unknown, "{release}");
        let found = forecast_with_gates(release, "default", &state, &pod("gpu", ""), 4);
        assert_eq!(outcome(&found), (PodOutcome::Fits, vec![]), "{release}");
    }
}

#[test]
fn time_zones_in_selectors() {
    let state = cluster(&device("a", "a", ""));
    let at = |zone: &str, hour: i64| {
        format!(
            r#","selectors":[{{"cel":{{"expression":"timestamp('2024-07-01T06:30:00Z').getHours('{zone}') == {hour}"}}}}]"#
        )
    };
    let found = forecast(&state, &pod("gpu", &at("Europe/Berlin", 8)), 4);
    assert_eq!(outcome(&found), (PodOutcome::Unknown, vec!["time zones in CEL expressions"]));
    let found = forecast(&state, &pod("gpu", &at("+02:00", 8)), 4);
    assert_eq!(outcome(&found), (PodOutcome::Fits, vec![]));
    let found = forecast(&state, &pod("gpu", &at("Nowhere/City", 8)), 4);
    assert_eq!(outcome(&found), (PodOutcome::Pending, vec![]));
    assert!(
        found.pods[0].message.as_deref().is_some_and(|text| text.contains("unknown time zone Nowhere/City"))
    );
}

/// The outcome of each pod, by name.
fn outcomes_by_name(forecast: &Forecast) -> Vec<(&str, PodOutcome)> {
    let mut outcomes: Vec<_> =
        forecast.pods.iter().map(|pod| (pod.name.as_deref().unwrap_or_default(), pod.outcome)).collect();
    outcomes.sort_unstable();
    outcomes
}

/// A pod that competes with one whose outcome is unknown has a certain outcome only if it is the same with and without
/// that pod.
#[test]
fn pods_that_compete_with_unknown_pods() {
    let bound_volume = r#"{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"v"}}],"#;
    let known = pod("any", "").replace(r#""name":"p""#, r#""name":"known""#);
    let unknown = pod("any", "")
        .replace(r#""name":"p""#, r#""name":"unknown""#)
        .replace(r#""name":"c","namespace""#, r#""name":"d","namespace""#)
        .replace(r#""resourceClaimName":"c""#, r#""resourceClaimName":"d""#)
        .replace(r#""spec":{"containers""#, &format!(r#""spec":{bound_volume}"containers""#));
    for (devices, expected) in [(0, PodOutcome::Pending), (1, PodOutcome::Sometimes), (2, PodOutcome::Fits)] {
        let list: Vec<String> = (0..devices).map(|number| device(&format!("d{number}"), "a", "")).collect();
        for given in [format!("{unknown}\n{known}"), format!("{known}\n{unknown}")] {
            let found = forecast(&cluster(&list.join(",")), &given, 64);
            // The pod that comes first has the device.
            let expected =
                if given.ends_with(&unknown) && devices == 1 { PodOutcome::Fits } else { expected };
            let wanted = [("known", expected), ("unknown", PodOutcome::Unknown)];
            assert_eq!(outcomes_by_name(&found), wanted, "{devices}");
            let explanation = found.pods.iter().find_map(|pod| pod.explanation.as_deref());
            let is_said = explanation.is_some_and(|text| text.contains("pods whose outcome is unknown"));
            assert_eq!(is_said, expected == PodOutcome::Sometimes, "{explanation:?}");
        }
    }
}

/// A StatefulSet creates a pod with two devices from its new template, so that none is left for another pod.
#[test]
fn pods_that_compete_with_a_new_template() {
    let template = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"two","namespace":"app"},"spec":{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu","count":2}}]}}}}"#;
    let set = r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db","namespace":"app","uid":"u-db"},"spec":{"template":{"spec":{"containers":[{"name":"c"}],"resourceClaims":[{"name":"c0","resourceClaimTemplateName":"two"}]}}},"status":{"updateRevision":"new"}}"#;
    let old = controllers::bound_pod("db-0", "n0", "d0", ("apps/v1", "StatefulSet", "db"))
        .replace(
            r#""uid":"u-db-0","owner"#,
            r#""uid":"u-db-0","labels":{"controller-revision-hash":"old"},"owner"#,
        )
        .replace(r#""spec":{"nodeName""#, r#""spec":{"priority":9,"nodeName""#);
    let other = controllers::bound_pod("web", "n0", "d1", ("apps/v1", "ReplicaSet", "web-1"));
    // The pods end at once, so that both replacements are created together.
    let pods = (old + &other).replace(r#""nodeName""#, r#""terminationGracePeriodSeconds":0,"nodeName""#);
    let state = format!("{}{pods}{template}\n{set}", controllers::cluster(2, 2));
    let found = forecast(&state, controllers::DRAIN_N0, 64);
    let outcomes: Vec<_> = found.pods.iter().map(|pod| (pod.replaces.as_deref(), pod.outcome)).collect();
    assert_eq!(outcomes, [(Some("db-0"), PodOutcome::Unknown), (Some("web"), PodOutcome::Sometimes)]);
}

/// A pod that can preempt others takes room from those that come after it, and from its victims.
#[test]
fn pods_that_compete_with_a_pod_that_preempts() {
    let pod = |name: &str, priority: u32, cpu: u32| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"app"}},"spec":{{"priority":{priority},"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{cpu}"}}}}}}]}}}}"#
        )
    };
    let victim = pod("victim", 0, 4).replace(r#""spec":{"#, r#""spec":{"nodeName":"n","#);
    let state = format!("{}{victim}", cluster(""));
    let given = format!("{}\n{}", pod("high", 9, 7), pod("middle", 5, 3));
    let expected = [("high", PodOutcome::Unknown), ("middle", PodOutcome::Sometimes)];
    assert_eq!(outcomes_by_name(&forecast(&state, &given, 64)), expected);
    // The pod that was there first is a victim itself.
    let given = format!("{}\n{}", pod("middle", 5, 3), pod("high", 9, 7));
    let expected = [("high", PodOutcome::Unknown), ("middle", PodOutcome::Unknown)];
    assert_eq!(outcomes_by_name(&forecast(&state, &given, 64)), expected);
}
