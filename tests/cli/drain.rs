//! `tollgate drain` offline: what transcripts cannot hold.
#![allow(
    clippy::expect_used,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed; reports are generic JSON trees"
)]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::program::run;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn plan(arguments: &[&str]) -> Value {
    let state = ["--state", "examples/cluster.yaml", "--state", "examples/forecast/nodes.yaml"];
    let fixed = ["--kubernetes", "1.37", "--now", "2026-11-16T09:00:00Z", "-o", "json"];
    let all: Vec<&str> = ["drain"].iter().chain(arguments).chain(&state).chain(&fixed).copied().collect();
    let (code, out, errors) = run(Path::new(ROOT), &all);
    let plan: Value = serde_json::from_str(&out).expect("JSON");
    let stays = plan["totals"]["staying"] != 0 || plan["totals"]["claimsWithoutPods"] != 0;
    assert_eq!(code, i32::from(stays), "{arguments:?}: {errors}");
    plan
}

fn names(pods: &Value) -> Vec<String> {
    let pods = pods.as_array().map_or(&[][..], Vec::as_slice);
    let name = |pod: &Value| format!("{}/{}", pod["namespace"], pod["name"]);
    pods.iter().map(name).collect()
}

#[test]
fn every_pod_moves_once_or_stays_with_a_reason() {
    for targets in
        [&["node/gpu-node-03"][..], &["gpu.example.com"], &["node/gpu-node-01", "node/gpu-node-02"]]
    {
        let plan = plan(targets);
        let pods = plan["pods"].as_array().expect("pods");
        let waves = plan["waves"].as_array().expect("waves");
        let moving: Vec<String> = waves.iter().flat_map(|wave| names(&wave["pods"])).collect();
        let unique: BTreeSet<&String> = moving.iter().collect();
        assert_eq!(unique.len(), moving.len(), "{targets:?}: no pod moves twice");
        assert!(waves.first().is_none_or(|wave| names(&wave["pods"]).len() == 1), "{targets:?}: a canary");
        for pod in pods {
            let name = format!("{}/{}", pod["namespace"], pod["name"]);
            match pod["fate"].as_str() {
                Some("moves") => {
                    let wave = usize::try_from(pod["wave"].as_u64().expect("a wave")).expect("small");
                    assert!(names(&waves[wave - 1]["pods"]).contains(&name), "{name}");
                }
                Some("stays") => {
                    assert!(!unique.contains(&name), "{name}");
                    for key in ["why", "remedy"] {
                        assert!(pod[key].as_str().is_some_and(|text| !text.is_empty()), "{name}: {key}");
                    }
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_seed_and_the_input_decide() {
    let text = |seed: &str| plan(&["node/gpu-node-03", "--seed", seed]).to_string();
    assert_eq!(text("1"), text("1"));
}

#[test]
fn the_largest_wave_can_be_chosen() {
    let sizes = |max: &str| -> Vec<usize> {
        let plan = plan(&["node/gpu-node-03", "--max-wave", max]);
        let waves = plan["waves"].as_array().expect("waves");
        waves.iter().map(|wave| names(&wave["pods"]).len()).collect()
    };
    assert!(sizes("1").iter().all(|size| *size == 1));
    assert!(sizes("2").contains(&2));
}

/// Otherwise a plan says that pods move, and the drain waits until it stops.
#[test]
fn the_text_names_pdbs_that_allow_no_eviction_now() {
    let state = |name: &str| format!("crates/drain/tests/plans/states/{name}.yaml");
    let cluster = "crates/drain/tests/plans/cluster.yaml";
    let waits = "PDBs that allow no eviction now; the drain waits until they do:\n- app/chat (2 pods)\n";
    // A pod that is not Ready does not wait for a PDB that lets it go.
    for (name, expected) in [("pdb-for-now", Some(waits)), ("pdb-always-allow", None)] {
        let state = state(name);
        let flags = ["--state", cluster, "--state", &state, "--kubernetes", "1.37", "--assume-complete"];
        let (_, text, errors) = run(Path::new(ROOT), &[&["drain", "node/n0"], &flags[..]].concat());
        let found = text.contains("PDBs that allow no eviction now");
        assert_eq!(found, expected.is_some(), "{name}: {errors}{text}");
        assert!(expected.is_none_or(|expected| text.contains(expected)), "{name}: {text}");
    }
}
