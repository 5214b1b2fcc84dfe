//! The objects of a cluster, whatever they say: devices, impact, forecast and the plan of a drain come to an end, and
//! the same objects give the same forecast.

use tollgate_api::profile::Profile;
use tollgate_document::doc;
use tollgate_engine::Snapshot;
use tollgate_forecast::{ClusterChange, Forecast, Plan, Settings, SimulatedRelease, State, report_devices};
use tollgate_formats::gotime::Timestamp;

/// Courses that are played: enough for chance to matter.
const COURSES: u32 = 3;
/// Search steps, fewer than by default: thousands of inputs are played in a second.
const MAX_STEPS: u64 = 2_000;

/// A List in JSON. Objects with the annotation `fuzz` are applied after the others, one by one.
pub(crate) fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(document) = doc::parse(text) else { return };
    let profile = Profile::named(if choice & 1 == 0 { "1.37" } else { "1.36" }).expect("a profile");
    let mut snapshot = Snapshot::new();
    let mut state = State::default();
    let mut steps = Vec::new();
    for item in document.root().get("items").items() {
        _ = snapshot.apply(item);
        if item.get("metadata").get("annotations").get("fuzz").exists() {
            steps.push(ClusterChange::Apply(item));
        } else {
            state.add(item);
        }
    }
    let report = report_devices(&state, profile);
    assert!(report.devices.len() <= snapshot.device_count().max(report.devices.len()));
    let release = SimulatedRelease { profile, semantics: profile.allocation, behaviour: profile.selectors };
    let now = Timestamp::parse("2030-01-01T00:00:00Z").expect("a time");
    let settings =
        Settings { max_steps: MAX_STEPS, assume_complete: choice & 2 == 0, ..Settings::defaults_at(now) };
    let play = || {
        let plan = Plan::new(state.clone(), steps.clone(), release, settings);
        let mut player = plan.create_run_simulator();
        let courses: Vec<_> = (0..COURSES).map(|course| player.simulate_run(course)).collect();
        format!("{:?}", Forecast::from_runs(&plan, courses))
    };
    assert_eq!(play(), play(), "two forecasts of one state");
}
