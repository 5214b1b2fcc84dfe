//! Plans of drains for realistic states, compared with the plan files beside them; and properties of every plan.
//!
//! A state begins with a comment `# drain TARGET… [--flag…]`; the objects of `cluster.yaml` precede its own. Set
//! `SNAPSHOTS=overwrite` to rewrite the plans.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot read its data has failed"
)]

mod laws;
mod text;

use std::path::{Path, PathBuf};
use tollgate_api::profile::Profile;
use tollgate_document::source::{Document, documents};
use tollgate_drain::{DEFAULT_KEY, DrainPlan, DrainRequest, MoveOptions, PlanInput, plan};
use tollgate_engine::impact::target::DeviceTarget;
use tollgate_forecast::{Forecast, ObjectKind, Plan, Settings, SimulatedRelease, State};
use tollgate_formats::gotime::Timestamp;

/// Number of simulated runs in each forecast.
const SAMPLES: u32 = 16;

fn release() -> SimulatedRelease {
    let profile = Profile::named("1.37").expect("a release");
    SimulatedRelease { profile, semantics: profile.allocation, behaviour: profile.selectors }
}

fn play(plan: &Plan<'_>) -> Forecast {
    let mut player = plan.create_run_simulator();
    let courses: Vec<_> = (0..SAMPLES).map(|course| player.simulate_run(course)).collect();
    Forecast::from_runs(plan, courses)
}

/// A drain command, and whether the state is complete.
struct DrainCommand {
    request: DrainRequest,
    missing: Vec<String>,
    /// Kinds that could not be read.
    unread: Vec<ObjectKind>,
}

/// Parses `TARGET… [--flag…]`.
fn drain_command(command: &str) -> DrainCommand {
    let mut options = MoveOptions::default();
    let (mut typed, mut missing, mut key) = (Vec::new(), Vec::new(), DEFAULT_KEY.to_owned());
    let mut unread = Vec::new();
    for word in command.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("--move-unknown", _) => options.move_unknown = true,
            ("--force", _) => options.without_controller = true,
            ("--delete-emptydir-data", _) => options.delete_empty_dir_data = true,
            ("--evict-daemonset-pods", _) => options.daemon_set_pods = true,
            ("--ignore-do-not-disrupt", _) => options.ignore_do_not_disrupt = true,
            ("--max-wave", number) => options.max_wave = number.parse().expect("a number"),
            ("--key", name) => name.clone_into(&mut key),
            ("--unread", name) => {
                unread.extend(ObjectKind::ALL.into_iter().find(|kind| kind.name() == name));
            }
            ("--incomplete", _) => missing.push("the dump contains no Nodes".to_owned()),
            _ => typed.push(word.to_owned()),
        }
    }
    let targets = typed.iter().map(|text| DeviceTarget::parse(text).expect("a target")).collect();
    DrainCommand { request: DrainRequest { typed, targets, key, options }, missing, unread }
}

/// Computes the plan for objects in YAML.
fn plan_of(drain_command: &DrainCommand, objects: &str) -> Result<DrainPlan, String> {
    let documents: Vec<Document<'_>> = documents(objects).map(|document| document.expect("YAML")).collect();
    let mut state = State::default();
    for document in &documents {
        state.add(document.doc.root()).expect("a kind that a forecast reads");
    }
    drain_command.unread.iter().for_each(|kind| state.mark_unread(*kind));
    plan(&PlanInput {
        state: &state,
        request: &drain_command.request,
        release: release(),
        settings: Settings {
            assume_complete: true,
            ..Settings::defaults_at(Timestamp::parse("2030-01-01T00:00:00Z").expect("a time"))
        },
        closed: &[],
        is_first_wave: true,
        play: &play,
        missing: &drain_command.missing,
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans")
}

/// Every state file: its name, its drain command and all its objects.
fn states() -> Vec<(String, DrainCommand, String)> {
    let cluster = std::fs::read_to_string(folder().join("cluster.yaml")).expect("the cluster");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder().join("states"))
        .expect("states")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a state");
        let command = text.lines().find_map(|line| line.strip_prefix("# drain ")).expect("a command");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, drain_command(command), format!("{cluster}---\n{text}"))
    };
    paths.iter().map(read).collect()
}

#[test]
fn every_state_has_its_plan() {
    let mut wrong = Vec::new();
    for (name, drain_command, objects) in states() {
        let found = match plan_of(&drain_command, &objects) {
            Ok(plan) => text::render(&plan),
            Err(error) => format!("error: {error}\n"),
        };
        let path = folder().join(format!("states/{name}.plan"));
        if std::env::var("SNAPSHOTS").is_ok_and(|how| how == "overwrite") {
            std::fs::write(&path, &found).expect("the plan is written");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if expected != found {
            wrong.push(format!("{name}: expected\n{expected}\nfound\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
