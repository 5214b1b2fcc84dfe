//! What controllers and the scheduler do together, and how a large cluster is played.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

mod controllers;
mod large;

use tollgate_api::profile::Profile;
use tollgate_document::doc::{Doc, parse};
use tollgate_forecast::{Forecast, Plan, Release, Settings, State, Step};
use tollgate_formats::gotime::Timestamp;

pub(crate) fn release() -> Release {
    let profile = Profile::named("1.37").expect("a release");
    Release { profile, semantics: profile.allocation, behaviour: profile.selectors }
}

pub(crate) fn settings() -> Settings {
    Settings::at(Timestamp::parse("2030-01-01T00:00:00Z").expect("a time"))
}

/// Plays objects, each on a line of its own, over a state of such lines.
pub(crate) fn forecast(state: &str, given: &str, samples: u32) -> Forecast {
    let (state_docs, given_docs) = (read(state), read(given));
    let mut objects = State::default();
    for doc in &state_docs {
        objects.add(doc.root());
    }
    let steps = given_docs.iter().map(|doc| Step::Apply(doc.root())).collect();
    let plan = Plan::new(objects, steps, release(), settings());
    let mut player = plan.player();
    let courses: Vec<_> = (0..samples).map(|course| player.play(course)).collect();
    Forecast::from_courses(&plan, courses)
}

fn read(lines: &str) -> Vec<Doc<'_>> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| parse(line).expect("JSON")).collect()
}
