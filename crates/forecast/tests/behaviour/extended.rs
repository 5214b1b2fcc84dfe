//! Tests pods that request extended resources which devices provide.

use crate::forecast_with_gates;
use std::fmt::Write as _;
use tollgate_forecast::{Forecast, PodForecast, PodOutcome};

/// One node with a device and a class for each letter. The devices of class `a` provide `example.com/a`.
fn cluster(letters: &str) -> String {
    let names: Vec<String> = letters.chars().map(String::from).collect();
    let device =
        |name: &String| format!(r#"{{"name":"{name}","attributes":{{"model":{{"string":"{name}"}}}}}}"#);
    let devices: Vec<String> = names.iter().map(device).collect();
    let mut text = format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n"}},"status":{{"allocatable":{{"cpu":"8","memory":"32Gi","pods":"110"}}}}}}
        {{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"gpu.example.com","nodeName":"n","pool":{{"name":"n","generation":1,"resourceSliceCount":1}},"devices":[{}]}}}}
        "#,
        devices.join(",")
    );
    for name in &names {
        let _ = writeln!(
            text,
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"{name}"}},"spec":{{"extendedResourceName":"example.com/{name}","selectors":[{{"cel":{{"expression":"device.attributes['gpu.example.com'].model == '{name}'"}}}}]}}}}"#
        );
    }
    text
}

/// A pod that requests one of `example.com/a` for each letter.
fn pod(name: &str, letters: &str) -> String {
    let requests: Vec<String> = letters.chars().map(|name| format!(r#""example.com/{name}":"1""#)).collect();
    let requests = requests.join(",");
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"app"}},"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{{requests}}},"limits":{{{requests}}}}}}}]}}}}"#
    )
}

fn forecast(state: &str, pods: &[String]) -> Forecast {
    forecast_with_gates("1.37", "DRAExtendedResource=true", state, &pods.join("\n"), 4)
}

/// The devices that each pod gets in every run; none if they differ.
fn devices(forecast: &Forecast) -> Vec<Vec<&str>> {
    fn of_pod(pod: &PodForecast) -> Vec<&str> {
        let [placement] = pod.placements.as_slice() else { return Vec::new() };
        let devices = placement.place.claims.iter().flat_map(|claim| &claim.devices);
        devices.map(|device| device.device.as_str()).collect()
    }
    forecast.pods.iter().map(of_pod).collect()
}

#[test]
fn each_resource_has_its_own_devices() {
    let state = cluster("ab");
    for (first, second) in [("a", "b"), ("b", "a")] {
        let found = forecast(&state, &[pod("p", first), pod("q", second)]);
        assert_eq!(devices(&found), [[first], [second]], "{:?}", found.pods);
    }
    let found = forecast(&state, &[pod("p", "a"), pod("q", "ab")]);
    assert_eq!(found.pods.iter().filter(|pod| pod.outcome == PodOutcome::Fits).count(), 1);
}

#[test]
fn what_the_node_offers_needs_no_device() {
    let state = cluster("abc").replace(r#""pods":"110""#, r#""pods":"110","example.com/b":"1""#);
    let found = forecast(&state, &[pod("p", "abc")]);
    assert_eq!(devices(&found), [["a", "c"]], "{:?}", found.pods);
}

#[test]
fn an_init_container_needs_only_what_the_containers_after_it_do_not_have() {
    let device = |name: &str| format!(r#"{{"name":"{name}","attributes":{{"model":{{"string":"a"}}}}}}"#);
    let two = r#"{"example.com/a":"2"}"#;
    let init =
        format!(r#""initContainers":[{{"name":"i","resources":{{"requests":{two},"limits":{two}}}}}]"#);
    let pod = pod("p", "a").replace(r#""containers""#, &format!(r#"{init},"containers""#));
    for (names, outcome) in [(&["a"][..], PodOutcome::Pending), (&["a", "b"], PodOutcome::Fits)] {
        let devices: Vec<String> = names.iter().map(|name| device(name)).collect();
        let state = cluster("a").replace(&device("a"), &devices.join(","));
        let found = forecast(&state, std::slice::from_ref(&pod));
        assert_eq!(found.pods[0].outcome, outcome, "{names:?}: {:?}", found.pods);
    }
}

#[test]
fn pods_with_many_resources_are_not_modelled() {
    let state = cluster("abcde");
    let found = forecast(&state, &[pod("p", "abcd")]);
    assert_eq!(devices(&found), [["a", "b", "c", "d"]], "{:?}", found.pods);
    let found = forecast(&state, &[pod("p", "abcde")]);
    assert_eq!(found.pods[0].outcome, PodOutcome::Unknown);
    assert_eq!(found.pods[0].not_modelled, ["more than four extended resources"]);
}
