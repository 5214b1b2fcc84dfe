//! One scenario: the state before, the steps, and the last look at each pod.

use crate::Table;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_document::doc::{Value, parse};
use tollgate_forecast::{
    ClusterChange, Forecast, NodeAndDevices, ObjectKind, Plan, PodForecast, PodOutcome, Settings,
    SimulatedRelease, State,
};
use tollgate_formats::gotime::Timestamp;

const SAMPLES: u32 = 64;

pub(crate) fn settings() -> Settings {
    let now = Timestamp::parse("2030-01-01T00:00:00Z").expect("a time");
    Settings { assume_complete: true, ..Settings::defaults_at(now) }
}

pub(crate) fn play(
    state: State<'_>,
    steps: Vec<ClusterChange<'_>>,
    release: SimulatedRelease,
    samples: u32,
) -> Forecast {
    let plan = Plan::new(state, steps, release, settings());
    let mut player = plan.create_run_simulator();
    let courses: Vec<_> = (0..samples).map(|course| player.simulate_run(course)).collect();
    Forecast::from_runs(&plan, courses)
}

/// Reason and message of a PodScheduled condition.
type Condition = Option<(String, String)>;

/// The last recorded observation of a pod.
struct Observation<'d> {
    is_bound: bool,
    node: &'d str,
    claims: Vec<String>,
    condition: Condition,
}

pub(crate) fn compare(scenario: Value<'_>, release_name: &str, release: SimulatedRelease, table: &mut Table) {
    let id = scenario.get("id").text();
    let topic = scenario.get("topic").text();
    let result = scenario.get("result").get(release_name);
    let same = result.get("same_as");
    let result = if same.exists() { scenario.get("result").get(same.text()) } else { result };
    let outcomes: Vec<Value<'_>> = result.get("outcomes").items().collect();
    let refused: BTreeSet<&str> = outcomes
        .iter()
        .flat_map(|outcome| outcome.get("arrivals").items())
        .filter(|arrival| arrival.get("refused").exists())
        .flat_map(|arrival| arrival.get("create").items())
        .map(Value::text)
        .collect();
    // Plays that started from another state are compared with a forecast of their own.
    let mut starts: Vec<(Value<'_>, Vec<Value<'_>>)> = Vec::new();
    for &outcome in &outcomes {
        let before = outcome.get("before");
        let before = if before.exists() { before } else { scenario.get("before").get("items") };
        match starts.iter_mut().find(|(known, _)| known.index() == before.index()) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => starts.push((before, vec![outcome])),
        }
    }
    let namespaces = scenario.get("namespaces").members().map(|(name, labels)| {
        let (name, labels) = (name.text(), labels.to_json());
        format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}","labels":{labels}}}}}"#
        )
    });
    let namespaces: Vec<String> = namespaces.collect();
    let namespaces: Vec<_> = namespaces.iter().map(|text| parse(text).expect("JSON")).collect();
    for (before, outcomes) in starts {
        let mut state = State::default();
        for object in before.items().chain(namespaces.iter().map(|doc| doc.root())) {
            state.add(object);
        }
        let (steps, deleted) = steps_of(scenario, &refused);
        let forecast = play(state, steps, release, SAMPLES);
        let where_ = format!("{id} {release_name}");
        compare_evicted(&where_, &forecast, &outcomes, table);
        let mut pods: BTreeMap<&str, Vec<Observation<'_>>> = BTreeMap::new();
        for outcome in outcomes {
            let looks = outcome.get("arrivals").items().filter(|arrival| arrival.get("pod").exists());
            let last: BTreeMap<&str, Value<'_>> =
                looks.map(|arrival| (arrival.get("pod").text(), arrival)).collect();
            for (pod, arrival) in last.into_iter().filter(|(pod, _)| !deleted.contains(*pod)) {
                pods.entry(pod).or_default().push(observation(arrival));
            }
        }
        for (pod, looks) in pods {
            compare_pod(&where_, topic, pod, &looks, &forecast, table);
        }
    }
}

pub(crate) fn steps_of<'d>(
    scenario: Value<'d>,
    refused: &BTreeSet<&str>,
) -> (Vec<ClusterChange<'d>>, BTreeSet<String>) {
    let mut steps = Vec::new();
    let mut deleted = BTreeSet::new();
    for step in scenario.get("change").items().chain(scenario.get("arrivals").items()) {
        for object in step.get("create").items() {
            let name = format!("{}/{}", object.get("kind").text(), object.get("metadata").get("name").text());
            if !refused.contains(name.as_str()) {
                steps.push(ClusterChange::Apply(object));
            }
        }
        if step.get("replace").exists() {
            steps.push(ClusterChange::Apply(step.get("replace")));
        }
        let delete = step.get("delete");
        if delete.exists() {
            let (namespace, name) = (delete.get("namespace").text(), delete.get("name").text());
            assert_eq!(delete.get("kind").text(), "Pod", "only pods are deleted");
            deleted.insert(format!("{namespace}/{name}"));
            steps.push(ClusterChange::Delete { kind: ObjectKind::Pod, namespace, name });
        }
        if step.get("wait").exists() {
            steps.push(ClusterChange::Wait(1));
        }
    }
    (steps, deleted)
}

fn observation(arrival: Value<'_>) -> Observation<'_> {
    let condition = arrival.get("condition");
    let message = condition.get("message").text();
    let message = message.split(" preemption:").next().unwrap_or(message).to_owned();
    let reason = condition.get("reason").text().to_owned();
    let claims = arrival.get("claims").items().map(|claim| {
        let devices = claim.get("allocation").get("devices").get("results").items().map(|result| {
            let text = |field: &str| result.get(field).text();
            format!("{}={}/{}/{}", text("request"), text("driver"), text("pool"), text("device"))
        });
        format!("{}: {}", claim.get("ref").text(), devices.collect::<Vec<_>>().join(" "))
    });
    Observation {
        is_bound: arrival.get("scheduled").bool() == Some(true),
        node: arrival.get("node").text(),
        claims: claims.collect(),
        condition: (!reason.is_empty()).then_some((reason, message)),
    }
}

/// Formats a placement like a recorded observation.
fn claims_of(place: &NodeAndDevices) -> Vec<String> {
    let claims = place.claims.iter().map(|claim| {
        let devices = claim.devices.iter();
        let devices = devices
            .map(|device| format!("{}={}/{}/{}", device.request, device.driver, device.pool, device.device));
        let reference = claim.reference.as_deref().unwrap_or("");
        format!("{reference}: {}", devices.collect::<Vec<_>>().join(" "))
    });
    claims.collect()
}

fn compare_evicted(where_: &str, forecast: &Forecast, outcomes: &[Value<'_>], table: &mut Table) {
    for outcome in outcomes {
        let recorded: BTreeSet<String> =
            outcome.get("evicted").items().map(|pod| pod.text().to_owned()).collect();
        let forecast: BTreeSet<String> =
            forecast.evicted.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect();
        if recorded != forecast {
            table.differs(format!("{where_}: evicted {forecast:?}, recorded {recorded:?}"));
        }
    }
}

fn compare_pod(
    where_: &str,
    topic: &str,
    pod: &str,
    looks: &[Observation<'_>],
    forecast: &Forecast,
    table: &mut Table,
) {
    let named = |candidate: &&PodForecast| {
        let name = candidate.name.as_deref().unwrap_or("");
        format!("{}/{name}", candidate.namespace) == pod
    };
    let Some(found) = forecast.pods.iter().find(named) else {
        table.differs(format!("{where_} {pod}: not in the forecast"));
        table.topic(topic).pods += 1;
        return;
    };
    let is_sometimes_bound = looks.iter().any(|look| look.is_bound);
    let is_always_bound = looks.iter().all(|look| look.is_bound);
    for look in looks {
        table.topic(topic).pods += 1;
        let is_right = match found.outcome {
            PodOutcome::Fits => is_always_bound,
            PodOutcome::Pending => !is_sometimes_bound,
            PodOutcome::Sometimes => is_sometimes_bound && !is_always_bound,
            PodOutcome::Unknown | PodOutcome::NotRecreated => false,
        };
        if is_right {
            table.topic(topic).bound += 1;
        } else {
            let Observation { is_bound, node, claims, condition } = look;
            table.differs(format!(
                "{where_} {pod}: {:?} {} {:?} {:?}, recorded {is_bound} {node} {claims:?} {condition:?}",
                found.outcome, found.fits, found.message, found.not_modelled
            ));
        }
        let is_there = |placement: &tollgate_forecast::PlacementWithRunCount| {
            placement.place.node == look.node && claims_of(&placement.place) == look.claims
        };
        if !look.is_bound || found.placements.iter().any(is_there) {
            table.topic(topic).places += 1;
        } else if is_right {
            let places: Vec<_> =
                found.placements.iter().map(|p| (p.place.node.clone(), claims_of(&p.place))).collect();
            table.differs(format!(
                "{where_} {pod}: places {places:?}, recorded {} {:?}",
                look.node, look.claims
            ));
        }
        let condition = found.reason.clone().zip(found.message.clone());
        if look.is_bound || condition == look.condition {
            table.topic(topic).messages += 1;
        } else if is_right {
            table.differs(format!("{where_} {pod}: message {condition:?}, recorded {:?}", look.condition));
        }
    }
}
