//! Tests of controllers and scheduler together, and of large clusters.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

mod controllers;
mod extended;
mod grace_periods;
mod holders;
mod large;
mod stateful_sets;
mod unmodelled;

use tollgate_api::profile::{GateChoice, Profile};
use tollgate_document::doc::{Doc, parse};
use tollgate_forecast::{ClusterChange, Forecast, ObjectKind, Plan, Settings, SimulatedRelease, State};
use tollgate_formats::gotime::Timestamp;

pub(crate) fn release() -> SimulatedRelease {
    release_of(Profile::named("1.37").expect("a release"))
}

fn release_of(profile: &'static Profile) -> SimulatedRelease {
    SimulatedRelease { profile, semantics: profile.allocation, behaviour: profile.selectors }
}

pub(crate) fn settings() -> Settings {
    Settings::defaults_at(Timestamp::parse("2030-01-01T00:00:00Z").expect("a time"))
}

/// Forecasts the given objects, one on each line, for a state of such lines.
pub(crate) fn forecast(state: &str, given: &str, samples: u32) -> Forecast {
    play(release(), state, given, samples)
}

/// Like [`forecast`], for a given release and feature gates.
pub(crate) fn forecast_with_gates(
    name: &str,
    gates: &str,
    state: &str,
    given: &str,
    samples: u32,
) -> Forecast {
    let gates = GateChoice::parse(gates).expect("gates");
    let profile = Profile::named(name).expect("a release").with_gates(&gates).expect("gates of the release");
    play(release_of(profile), state, given, samples)
}

fn play(release: SimulatedRelease, state: &str, given: &str, samples: u32) -> Forecast {
    let (state_docs, given_docs) = (read(state), read(given));
    let mut objects = State::default();
    for doc in &state_docs {
        objects.add(doc.root());
    }
    let steps = given_docs.iter().map(|doc| step(doc)).collect();
    let plan = Plan::new(objects, steps, release, settings());
    let mut player = plan.create_run_simulator();
    let courses: Vec<_> = (0..samples).map(|course| player.simulate_run(course)).collect();
    Forecast::from_runs(&plan, courses)
}

/// Parses a step: an object to apply, `{"wait":1}`, or `{"delete":"web-1"}` or `{"evict":"web-1"}` for a pod of the
/// namespace `app`. `"group":true` marks a pod of a group that is recreated.
fn step<'d>(doc: &'d Doc<'_>) -> ClusterChange<'d> {
    let given = doc.root();
    let deleted = given.get("delete").str();
    if !deleted.is_empty() {
        return ClusterChange::Delete { kind: ObjectKind::Pod, namespace: "app", name: deleted };
    }
    match (given.get("evict").str(), given.get("wait").int()) {
        ("", None) => ClusterChange::Apply(given),
        ("", Some(seconds)) => ClusterChange::Wait(seconds),
        (name, _) => {
            let with_group = given.get("group").bool() == Some(true);
            ClusterChange::Evict { namespace: "app", name, with_group }
        }
    }
}

fn read(lines: &str) -> Vec<Doc<'_>> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| parse(line).expect("JSON")).collect()
}
