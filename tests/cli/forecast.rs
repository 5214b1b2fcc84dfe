//! `tollgate forecast` against what kube-scheduler really did.
//!
//! The recordings are those of the crates below: scenarios that a real scheduler played (`crates/forecast/tests`),
//! and small cases that its allocator answered (`crates/allocator/tests`). Here the program plays them, from files,
//! as a user would: the state before, then the changes and arrivals in their order.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed; recordings are generic JSON trees"
)]

mod allocator;
mod scenarios;

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::program::{folder, run};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The time of the recordings.
const NOW: &str = "2026-01-01T00:00:00Z";

/// The two releases of the recordings, and the profiles that play them.
const RELEASES: [(&str, &str); 2] = [("1.36", "1.36"), ("1.37", "1.37.0")];

/// The lines of a compressed recording.
fn recording(path: &str) -> Vec<Value> {
    let bytes = std::fs::read(Path::new(ROOT).join(path)).expect("a recording");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The items of a list; none if it is not there.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The forecast that the program prints for objects that are applied to a state.
fn forecast(name: &str, state: &Value, objects: &[&Value], profile: &str) -> Value {
    let folder = folder(&format!("forecast-{name}-{profile}"));
    let given: Vec<String> = objects.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("state.json"), state.to_string()).expect("a file");
    std::fs::write(folder.join("given.yaml"), given.join("\n---\n")).expect("a file");
    let mut arguments = vec!["forecast", "--state", "state.json", "--kubernetes", profile, "--now", NOW];
    arguments.extend(["-o", "json"]);
    if !objects.is_empty() {
        arguments.push("given.yaml");
    }
    let (code, output, errors) = run(&folder, &arguments);
    assert_eq!(code, 0, "{name}, {profile}: {errors}");
    _ = std::fs::remove_dir_all(folder);
    serde_json::from_str(&output).expect("one JSON object")
}

/// Randomness comes from the seed alone: neither the run number nor the threads matter.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let scenario = recording(scenarios::SCENARIOS)
        .into_iter()
        .find(|scenario| text(&scenario["id"]) == "scarcity-09-no-claims-pod")
        .expect("a scenario");
    let folder = folder("forecast-seed");
    let steps = ["change", "arrivals"].into_iter().flat_map(|key| items(&scenario[key]));
    let given: Vec<String> = steps.flat_map(scenarios::applied).map(ToString::to_string).collect();
    std::fs::write(folder.join("state.json"), scenario["before"].to_string()).expect("a file");
    std::fs::write(folder.join("given.yaml"), given.join("\n---\n")).expect("a file");
    let output = |seed: &str, samples: &str| {
        let arguments =
            ["forecast", "given.yaml", "--state", "state.json", "--kubernetes", "1.37", "--now", NOW];
        let (code, output, errors) =
            run(&folder, &[&arguments[..], &["--seed", seed, "--samples", samples, "-o", "json"]].concat());
        assert_eq!(code, 0, "{errors}");
        output
    };
    assert_eq!(output("7", "64"), output("7", "64"));
    let one = |seed: u32| output(&seed.to_string(), "1");
    assert!((1..32).any(|seed| one(seed) != one(0)), "the seed changes nothing");
}

/// The part of a message that a forecast predicts.
fn message_start(message: &str) -> &str {
    message.split(" preemption:").next().unwrap_or(message)
}

/// The devices of a claim in a forecast or a recording, as one comparable text per device.
fn devices(results: &[Value]) -> Vec<String> {
    let device = |result: &Value| {
        ["request", "driver", "pool", "device"].map(|key| text(&result[key]).to_owned()).join("/")
    };
    results.iter().map(device).collect()
}
