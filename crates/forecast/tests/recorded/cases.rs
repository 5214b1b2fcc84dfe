//! One case of the allocator: a state, claims and one pod that names them.

use crate::Table;
use crate::scenario::play;
use std::collections::BTreeMap;
use tollgate_document::doc::Value;
use tollgate_forecast::{ClusterChange, NodeAndDevices, PodOutcome, SimulatedRelease, State};

/// The recorded cases of the allocator.
pub(crate) const CASES: &[u8] = include_bytes!("../../../allocator/tests/recorded/cases.jsonl.gz");

/// Number of simulated runs. Two suffice, because only one node can take the pod.
const SAMPLES: u32 = 2;

/// For each claim, its devices with their consumed capacity.
type Devices = Vec<(String, Vec<(String, BTreeMap<String, String>)>)>;

pub(crate) fn compare(case: Value<'_>, release_name: &str, release: SimulatedRelease, table: &mut Table) {
    let (id, topic) = (case.get("id").text(), case.get("topic").text());
    let result = case.get("result").get(release_name);
    let result = if result.text() == "same" { case.get("result").get("1.36") } else { result };
    let mut state = State::default();
    for object in case.get("before").get("items").items() {
        state.add(object);
    }
    let steps = case.get("create").items().map(ClusterChange::Apply).collect();
    let forecast = play(state, steps, release, SAMPLES);
    let agreement = table.topic(topic);
    agreement.pods += 1;
    let Some(pod) = forecast.pods.first() else {
        table.differs(format!("{id} {release_name}: no pod"));
        return;
    };
    let is_bound = result.get("scheduled").bool() == Some(true);
    let is_right = pod.outcome == if is_bound { PodOutcome::Fits } else { PodOutcome::Pending };
    agreement.bound += u32::from(is_right);
    let message = result.get("message").text();
    let message = message.split(" preemption:").next().unwrap_or(message);
    let is_same_place =
        !is_bound || pod.placements.first().map(|p| devices(&p.place)) == Some(recorded(result));
    let is_same_message = is_bound
        || pod.message.as_deref() == Some(message)
            && pod.reason.as_deref() == Some(result.get("reason").text());
    agreement.places += u32::from(is_same_place);
    agreement.messages += u32::from(is_same_message);
    if !is_right || !is_same_place || !is_same_message {
        let place = pod.placements.first().map(|placement| devices(&placement.place));
        let (outcome, found) = (pod.outcome, &pod.message);
        table.differs(format!(
            "{id} {release_name}: {outcome:?} {place:?} {found:?} {:?}, recorded {}",
            pod.not_modelled,
            result.to_json()
        ));
    }
}

fn devices(place: &NodeAndDevices) -> Devices {
    let claims = place.claims.iter().map(|claim| {
        let devices = claim.devices.iter().map(|device| {
            let name = format!("{}={}/{}/{}", device.request, device.driver, device.pool, device.device);
            (name, device.consumed_capacity.clone().unwrap_or_default())
        });
        (claim.name.clone().unwrap_or_default(), devices.collect())
    });
    claims.collect()
}

fn recorded(result: Value<'_>) -> Devices {
    let claims = result.get("claims").items().map(|claim| {
        let devices = claim.get("devices").items().map(|device| {
            let text = |field: &str| device.get(field).text();
            let name = format!("{}={}/{}/{}", text("request"), text("driver"), text("pool"), text("device"));
            let consumed = device.get("consumedCapacity").members();
            let consumed =
                consumed.map(|(name, value)| (name.text().to_owned(), value.text().to_owned())).collect();
            (name, consumed)
        });
        (claim.get("claim").text().to_owned(), devices.collect())
    });
    claims.collect()
}
