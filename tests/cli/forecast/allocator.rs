//! The cases of the allocator: one pod, and one node that can take it.

use std::collections::BTreeMap;

use serde_json::Value;
use tollgate_formats::quantity::Quantity;

use super::{RELEASES, devices, forecast, items, message_start, recording, text};

const CASES: &str = "crates/allocator/tests/recorded/cases.jsonl.gz";

/// Number of compared cases, and how many agree in each part.
#[derive(Default)]
struct Agreement {
    played: usize,
    messages: usize,
    differences: Vec<String>,
    message_differences: Vec<String>,
}

/// Every tenth case; each is a run of the program for each release.
#[test]
fn some_cases_end_as_recorded() {
    play_every(10);
}

#[test]
#[ignore = "runs the program 4,000 times: make forecast-cases"]
fn all_cases_end_as_recorded() {
    play_every(1);
}

fn play_every(step: usize) {
    let mut found = Agreement::default();
    for case in recording(CASES).iter().step_by(step) {
        let objects: Vec<&Value> = items(&case["create"]).iter().collect();
        for (release, profile) in RELEASES {
            let expected = match text(&case["result"][release]) {
                "same" => &case["result"]["1.36"],
                _ => &case["result"][release],
            };
            let report = forecast(text(&case["id"]), &case["before"], &objects, profile);
            compare(&format!("{} in {release}", text(&case["id"])), expected, &report, &mut found);
        }
    }
    assert_eq!(found.played, 2_000_usize.div_ceil(step) * 2);
    assert!(found.differences.is_empty(), "{}", found.differences.join("\n"));
    let missed = found.message_differences.len();
    assert!(
        missed * 50 <= found.messages,
        "{missed} of {} messages differ:\n{}",
        found.messages,
        found.message_differences.join("\n")
    );
}

fn compare(name: &str, expected: &Value, report: &Value, found: &mut Agreement) {
    found.played += 1;
    let Some(pod) = items(&report["pods"]).iter().find(|pod| text(&pod["name"]) == "p1") else {
        found.differences.push(format!("{name}: the pod is missing"));
        return;
    };
    let is_scheduled = expected["scheduled"] == true;
    if text(&pod["outcome"]) != if is_scheduled { "fits" } else { "pending" } {
        found.differences.push(format!("{name}: {pod} instead of {expected}"));
        return;
    }
    if !is_scheduled {
        found.messages += 1;
        let message = message_start(text(&expected["message"]));
        if pod["reason"] != expected["reason"] || text(&pod["message"]) != message {
            found.message_differences.push(format!("{name}: {} instead of {message}", pod["message"]));
        }
        return;
    }
    let placement = &pod["placements"][0];
    let said = items(&placement["claims"]).iter().map(|claim| items(&claim["devices"]));
    let recorded = items(&expected["claims"]).iter().map(|claim| items(&claim["devices"]));
    let is_same = said.clone().map(devices).eq(recorded.clone().map(devices))
        && said
            .flatten()
            .zip(recorded.flatten())
            .all(|(one, other)| capacity(&one["consumedCapacity"]) == capacity(&other["consumedCapacity"]));
    if !is_same || placement["node"] != expected["node"] {
        found.differences.push(format!("{name}: {placement} instead of {expected}"));
    }
}

/// Consumed capacities as numbers: the releases write them in different units.
fn capacity(consumed: &Value) -> BTreeMap<String, i128> {
    let members = consumed.as_object().into_iter().flatten();
    let value = |amount: &Value| Quantity::parse(text(amount)).expect("a quantity").nano_value();
    members.map(|(name, amount)| (name.clone(), value(amount))).collect()
}
