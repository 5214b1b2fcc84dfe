//! The JSON Schemas of reports describe what is really written, and nothing else.
//!
//! Reports come from the transcripts, which are compared byte for byte, and from runs over all fixtures. A schema that
//! allowed anything would prove nothing, so each report is also changed: one more key in any object must be refused.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test that cannot read its data has failed; the validator takes a generic JSON tree"
)]

use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;

use crate::program::run;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn validator(name: &str) -> Validator {
    let (code, schema, errors) = run(Path::new(ROOT), &["schema", name]);
    assert_eq!((code, errors.as_str()), (0, ""));
    jsonschema::validator_for(&serde_json::from_str(&schema).expect("JSON")).expect("a schema")
}

/// The output of `tollgate COMMAND … -o json` in the transcripts.
fn transcript_outputs(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(format!("{ROOT}/tests/transcripts")).expect("transcripts") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a transcript");
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if !line.starts_with(&format!("$ tollgate {command} ")) || !line.contains("-o json") {
                continue;
            }
            let is_output =
                |line: &&str| !["$ ", "! ", "```", "exit code"].iter().any(|start| line.starts_with(start));
            let mut output = String::new();
            while let Some(line) = lines.next_if(is_output) {
                output.push_str(line);
                output.push('\n');
            }
            if !output.trim().is_empty() {
                found.push(output);
            }
        }
    }
    found
}

fn check(validator: &Validator, report: &Value, from: &str) {
    let errors: Vec<String> =
        validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{from}: {}", errors.join("\n"));
}

/// Checks that the schema rejects additional keys in every object, except in `value`, which contains user
/// data.
fn check_closed(validator: &Validator, report: &Value) {
    let mut objects = Vec::new();
    pointers(report, String::new(), &mut objects);
    // One of each shape: the keys of the way, without indexes.
    let shape = |pointer: &String| -> String {
        pointer.split('/').filter(|step| step.parse::<usize>().is_err()).collect::<Vec<_>>().join("/")
    };
    objects.sort_by_key(shape);
    objects.dedup_by_key(|pointer| shape(pointer));
    for pointer in objects {
        let mut changed = report.clone();
        let object = changed.pointer_mut(&pointer).and_then(Value::as_object_mut).expect("an object");
        object.insert("surprise".to_owned(), Value::Bool(true));
        assert!(!validator.is_valid(&changed), "the schema allows any key in `{pointer}`");
    }
}

fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter().filter(|(key, _)| *key != "value") {
                pointers(member, format!("{at}/{key}"), found);
            }
            found.push(at);
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn the_schema_of_validate_describes_its_reports() {
    let validator = validator("validate");
    let reports = transcript_outputs("validate");
    assert!(reports.len() >= 2, "{}", reports.len());
    for report in &reports {
        let report: Value = serde_json::from_str(report).expect("JSON");
        check(&validator, &report, "a transcript");
        check_closed(&validator, &report);
    }
    let mut found = 0;
    for arguments in [
        &["validate", "tests/rules", "-o", "json"][..],
        &["validate", "tests/rules", "tests/report", "-o", "json", "--kubernetes", "1.33,1.37,kep-5055"],
        &["validate", "tests/rules", "-o", "json", "--statistics", "--quiet"],
        &["validate", "policies", "examples", "README.md", "missing.yaml", "-o", "json"],
        &["validate", "tests/rules", "-o", "json", "--policy", "policies/reserved-keys.yaml"],
    ] {
        let (_, report, _) = run(Path::new(ROOT), arguments);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        check(&validator, &report, &arguments.join(" "));
        found += report["results"].as_array().map_or(0, Vec::len);
    }
    assert!(found > 1000, "{found} documents");
}

#[test]
fn the_schema_of_impact_describes_its_lines() {
    let validator = validator("impact");
    let mut kinds = [0; 3];
    for output in transcript_outputs("impact") {
        for line in output.lines() {
            let report: Value = serde_json::from_str(line).expect("JSON");
            check(&validator, &report, line);
            check_closed(&validator, &report);
            for (count, key) in kinds.iter_mut().zip(["rule", "patch", "cluster"]) {
                *count += usize::from(report.get(key).is_some());
            }
        }
    }
    assert!(kinds.iter().all(|count| *count > 0), "rules, patches and clusters: {kinds:?}");
}

/// The plans come from the transcripts. Events of runs are checked where runs are replayed.
#[test]
fn the_schema_of_drain_describes_its_lines() {
    let validator = validator("drain");
    let [mut moving, mut staying] = [0; 2];
    for output in transcript_outputs("drain") {
        for line in output.lines() {
            let report: Value = serde_json::from_str(line).expect("JSON");
            check(&validator, &report, line);
            check_closed(&validator, &report);
            moving += report["totals"]["moving"].as_u64().unwrap_or_default();
            staying += report["totals"]["staying"].as_u64().unwrap_or_default();
        }
    }
    assert!(moving > 0 && staying > 0, "{moving} pods move, {staying} stay");
}

#[test]
fn the_schema_of_forecast_describes_its_lines() {
    let validator = validator("forecast");
    let [mut placed, mut refused, mut evicted] = [0; 3];
    for output in transcript_outputs("forecast") {
        for line in output.lines() {
            let report: Value = serde_json::from_str(line).expect("JSON");
            check(&validator, &report, line);
            check_closed(&validator, &report);
            let count = |value: &Value| value.as_array().map_or(0, Vec::len);
            let pods = report["pods"].as_array().expect("pods");
            placed += pods.iter().map(|pod| count(&pod["placements"])).sum::<usize>();
            refused += count(&report["refused"]);
            evicted += count(&report["evicted"]);
            let totals = report["totals"].as_object().expect("totals");
            let total: u64 = totals.values().filter_map(Value::as_u64).sum();
            assert_eq!(total, pods.len() as u64, "every pod has one outcome");
        }
    }
    assert!(placed > 0 && refused > 0 && evicted > 0, "{placed}, {refused}, {evicted}");
}

#[test]
fn the_schema_of_devices_describes_its_report() {
    let validator = validator("devices");
    let mut states = Vec::new();
    for output in transcript_outputs("devices") {
        for line in output.lines() {
            let report: Value = serde_json::from_str(line).expect("JSON");
            check(&validator, &report, line);
            check_closed(&validator, &report);
            let devices = report["devices"].as_array().expect("devices");
            assert_eq!(report["totals"]["devices"], devices.len());
            states.extend(devices.iter().flat_map(|device| device["states"].as_array().unwrap().clone()));
        }
    }
    for state in ["allocated", "tainted", "blocked", "shared", "unpublished", "free"] {
        assert!(states.iter().any(|found| found == state), "no device is {state}");
    }
}

#[test]
fn the_schemas_of_policy_commands_describe_their_reports() {
    for (command, schema, least) in [("policy diff", "policy-diff", 2), ("policy check", "policy-check", 2)] {
        let validator = validator(schema);
        let reports = transcript_outputs(command);
        assert!(reports.len() >= least, "{command}: {}", reports.len());
        for report in &reports {
            let report: Value = serde_json::from_str(report).expect("JSON");
            check(&validator, &report, command);
            check_closed(&validator, &report);
        }
    }
}

/// The structured reasons match the text in `because`, and the totals add up.
#[test]
fn impact_has_reasons_and_totals() {
    let mut pods = 0;
    for output in transcript_outputs("impact") {
        for line in output.lines() {
            let report: Value = serde_json::from_str(line).expect("JSON");
            // The sum of several rules has totals of its own.
            let Some(totals) = report.get("totals").filter(|_| report.get("rule").is_some()) else {
                continue;
            };
            let number = |key: &str| totals[key].as_u64().expect("a number");
            assert_eq!(number("evicted"), number("evictedNow") + number("evictedLater"));
            assert_eq!(
                number("pods"),
                number("evicted") + number("tolerated") + number("unaffected"),
                "every pod has one outcome"
            );
            for pod in report["pods"].as_array().expect("pods") {
                pods += 1;
                let (because, reasons) = (&pod["because"], &pod["reasons"]);
                let (because, reasons) = (because.as_array().unwrap(), reasons.as_array().unwrap());
                assert_eq!(because.len(), reasons.len());
                for (words, reason) in because.iter().zip(reasons) {
                    let words = words.as_str().unwrap();
                    let (claim, device) = (&reason["claim"], &reason["device"]);
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let start = format!(
                        "claim {}/{}, device {}/{}/{}: ",
                        text(&claim["namespace"]),
                        text(&claim["name"]),
                        text(&device["driver"]),
                        text(&device["pool"]),
                        text(&device["device"])
                    );
                    assert!(words.starts_with(&start), "{words}: {reason}");
                    assert_eq!(reason.get("taint").is_some(), words.contains("taint "), "{words}: {reason}");
                    assert_eq!(
                        reason.get("toleration").is_some(),
                        words.contains("toleration ") && !words.contains("no toleration"),
                        "{words}: {reason}"
                    );
                }
            }
        }
    }
    assert!(pods > 3, "{pods} pods");
}
