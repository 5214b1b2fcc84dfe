//! The scenarios: what became of each pod when it was last looked at.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{RELEASES, devices, forecast, items, message_start, recording, text};

pub(super) const SCENARIOS: &str = "crates/forecast/tests/recorded/scenarios.jsonl.gz";

/// A node and the devices of each claim.
type Place = (String, Vec<Vec<String>>);

/// The last recorded observation of a pod in one run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Observation {
    place: Option<Place>,
    message: Option<String>,
}

/// Number of compared pods, and how many agree in each part.
#[derive(Default)]
struct Agreement {
    pods: usize,
    messages: usize,
    equal_messages: usize,
    differences: Vec<String>,
    message_differences: Vec<String>,
}

#[test]
fn scenarios_end_as_recorded() {
    let mut found = Agreement::default();
    let mut played = 0;
    for scenario in recording(SCENARIOS) {
        let steps: Vec<&Value> =
            ["change", "arrivals"].into_iter().flat_map(|key| items(&scenario[key])).collect();
        // The program cannot delete or wait, and takes no object for refused that another release accepts.
        let is_played =
            |step: &&Value| ["delete", "wait", "may_fail"].iter().all(|key| step.get(key).is_none());
        if !steps.iter().all(is_played) {
            continue;
        }
        played += 1;
        let objects: Vec<&Value> = steps.iter().flat_map(|step| applied(step)).collect();
        // Three plays of one release can agree by chance where those of the other do not.
        let chances: BTreeSet<String> = RELEASES
            .iter()
            .flat_map(|(release, _)| observations(recorded(&scenario, release)))
            .filter(|(_, looks)| is_chance(looks))
            .map(|(pod, _)| pod)
            .collect();
        for (release, profile) in RELEASES {
            let name = format!("{} in {release}", text(&scenario["id"]));
            let report = forecast(text(&scenario["id"]), &scenario["before"], &objects, profile);
            compare(&name, recorded(&scenario, release), &report, &chances, &mut found);
        }
    }
    assert_eq!(played, 128, "scenarios without steps that the program cannot do");
    assert!(found.differences.is_empty(), "{}", found.differences.join("\n"));
    let missed = found.messages - found.equal_messages;
    assert!(
        missed * 50 <= found.messages,
        "{missed} of {} messages differ:\n{}",
        found.messages,
        found.message_differences.join("\n")
    );
    assert!(found.pods > 400 && found.messages > 100, "{} pods, {} messages", found.pods, found.messages);
}

/// The objects that a step creates or replaces.
pub(super) fn applied(step: &Value) -> Vec<&Value> {
    items(&step["create"]).iter().chain(step.get("replace")).collect()
}

/// The recording of a scenario with a release.
fn recorded<'s>(scenario: &'s Value, release: &str) -> &'s Value {
    let results = &scenario["result"];
    match text(&results[release]["same_as"]) {
        "" => &results[release],
        same => &results[same],
    }
}

/// The recorded runs that started from the state of the file. Others cannot be compared.
fn comparable_runs(result: &Value) -> impl Iterator<Item = &Value> {
    items(&result["outcomes"]).iter().filter(|outcome| outcome.get("before").is_none())
}

/// The last observations of each pod in all recorded runs.
fn observations(result: &Value) -> BTreeMap<String, BTreeSet<Observation>> {
    let mut found: BTreeMap<String, BTreeSet<Observation>> = BTreeMap::new();
    for outcome in comparable_runs(result) {
        let last: BTreeMap<&str, Observation> =
            items(&outcome["arrivals"]).iter().map(|pod| (text(&pod["pod"]), look(pod))).collect();
        for (pod, look) in last {
            found.entry(pod.to_owned()).or_default().insert(look);
        }
    }
    found
}

/// True if the pod was bound in only some of the recorded runs.
fn is_chance(looks: &BTreeSet<Observation>) -> bool {
    let is_bound: BTreeSet<bool> = looks.iter().map(|look| look.place.is_some()).collect();
    is_bound.len() > 1
}

fn compare(name: &str, result: &Value, report: &Value, chances: &BTreeSet<String>, found: &mut Agreement) {
    for evicted in comparable_runs(result).filter_map(|outcome| outcome["evicted"].as_array()) {
        let expected: BTreeSet<String> = evicted.iter().map(|pod| text(pod).to_owned()).collect();
        let said: BTreeSet<String> = items(&report["evicted"]).iter().map(pod_name).collect();
        if said != expected {
            found.differences.push(format!("{name}: evicts {said:?} instead of {expected:?}"));
        }
    }
    for (pod, looks) in observations(result) {
        found.pods += 1;
        match items(&report["pods"]).iter().find(|said| pod_name(said) == pod) {
            Some(said) => {
                compare_pod(&format!("{name}: {pod}"), &looks, said, chances.contains(&pod), found);
            }
            None => found.differences.push(format!("{name}: does not mention {pod}")),
        }
    }
}

/// Compares the forecast of a pod with the recordings. `is_chance` is true if recordings of the scenario
/// differ in their outcome.
fn compare_pod(
    name: &str,
    looks: &BTreeSet<Observation>,
    said: &Value,
    is_chance: bool,
    found: &mut Agreement,
) {
    let bound = looks.iter().filter(|look| look.place.is_some()).count();
    let expected = match bound {
        _ if is_chance => "sometimes",
        0 => "pending",
        _ => "fits",
    };
    if text(&said["outcome"]) != expected {
        found.differences.push(format!("{name} should be {expected}: {said}"));
        return;
    }
    let placements: Vec<Place> = items(&said["placements"]).iter().map(placement).collect();
    for place in looks.iter().filter_map(|look| look.place.as_ref()) {
        if !placements.contains(place) {
            found.differences.push(format!("{name} was placed at {place:?}: {said}"));
        }
    }
    let messages: BTreeSet<Option<&str>> =
        looks.iter().filter(|look| look.place.is_none()).map(|look| look.message.as_deref()).collect();
    if !messages.is_empty() {
        found.messages += 1;
        if messages.contains(&said["message"].as_str()) {
            found.equal_messages += 1;
        } else {
            found.message_differences.push(format!("{name}: {} instead of {messages:?}", said["message"]));
        }
    }
}

fn pod_name(pod: &Value) -> String {
    format!("{}/{}", text(&pod["namespace"]), text(&pod["name"]))
}

fn look(pod: &Value) -> Observation {
    let claims =
        items(&pod["claims"]).iter().map(|claim| devices(items(&claim["allocation"]["devices"]["results"])));
    let place = (pod["scheduled"] == true).then(|| (text(&pod["node"]).to_owned(), claims.collect()));
    let message = pod["condition"]["message"].as_str();
    Observation { place, message: message.map(|message| message_start(message).to_owned()) }
}

fn placement(placement: &Value) -> Place {
    let claims = items(&placement["claims"]).iter().map(|claim| devices(items(&claim["devices"])));
    (text(&placement["node"]).to_owned(), claims.collect())
}
