//! Recorded evaluations of selectors (`tests/cel-eval`) through `tollgate devices -o json`: each expression is a
//! DeviceClass, and each device of the recordings says whether it belongs to it.
//!
//! `tests/engine/cel_evaluation.rs` compares the evaluator itself. Here is what lies around it: decoding of slices and
//! classes, the release and its feature gates, and the report.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test that cannot read its data has failed; reports are generic JSON trees"
)]

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::program::{folder, run};

struct Case {
    id: String,
    expression: String,
    needs_lists: bool,
    /// The recorded results of each release.
    recorded: [Value; 2],
}

fn cases() -> Vec<Case> {
    let text = include_str!("../cel-eval/cases.jsonl");
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| case[key].as_str().unwrap().to_owned();
        let older = case["1.36"].clone();
        let newer = if case["1.37"] == "same" { older.clone() } else { case["1.37"].clone() };
        let (id, expression) = (text("id"), text("expression"));
        Case { id, expression, needs_lists: case.get("gates").is_some(), recorded: [older, newer] }
    };
    text.lines().map(case).collect()
}

/// A dump with the recorded slices and a class for each case.
fn dump(cases: &[&Case]) -> String {
    let mut slices: Value = serde_json::from_str(include_str!("../cel-eval/devices.json")).unwrap();
    let classes = cases.iter().map(|case| {
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": case.id},
            "spec": {"selectors": [{"cel": {"expression": case.expression}}]},
        })
    });
    slices["items"].as_array_mut().unwrap().extend(classes);
    slices.to_string()
}

/// The results of all classes for one device.
struct Answers<'r> {
    matching: HashSet<&'r str>,
    errors: HashMap<&'r str, &'r str>,
}

fn answers(report: &Value) -> Vec<Answers<'_>> {
    let mut devices: Vec<&Value> = report["devices"].as_array().unwrap().iter().collect();
    // The recordings have the devices in the order of the file.
    let slices: Value = serde_json::from_str(include_str!("../cel-eval/devices.json")).unwrap();
    let mut order = Vec::new();
    for slice in slices["items"].as_array().unwrap() {
        for device in slice["spec"]["devices"].as_array().unwrap() {
            order.push((slice["spec"]["driver"].clone(), device["name"].clone()));
        }
    }
    assert_eq!(devices.len(), order.len());
    devices.sort_by_key(|device| {
        let id = (device["driver"].clone(), device["device"].clone());
        order.iter().position(|known| *known == id).expect("a recorded device")
    });
    devices
        .into_iter()
        .map(|device| Answers {
            matching: device["classes"].as_array().unwrap().iter().filter_map(Value::as_str).collect(),
            errors: device["classErrors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|error| (error["class"].as_str().unwrap(), error["message"].as_str().unwrap()))
                .collect(),
        })
        .collect()
}

#[derive(Default)]
struct Agreement {
    answers: usize,
    agreed: usize,
    errors: usize,
    same_texts: usize,
    differences: String,
}

impl Agreement {
    fn compare(&mut self, case: &Case, release: usize, report: &Value, devices: &[Answers<'_>]) {
        let recorded = &case.recorded[release];
        let classes = report["classes"].as_array().unwrap();
        let class = classes.iter().find(|class| class["name"] == case.id.as_str()).expect("a class");
        if let Some(error) = recorded.get("compileError") {
            self.answers += 1;
            self.errors += 1;
            let found = class.get("error");
            self.agreed += usize::from(found.is_some() && class["total"] == 0);
            self.same_texts += usize::from(found == Some(error));
            if found != Some(error) {
                _ = writeln!(self.differences, "{}: {error} but {found:?}", case.id);
            }
            return;
        }
        assert_eq!(class.get("error"), None, "{}: {}", case.id, case.expression);
        for (device, (recorded, found)) in recorded.as_array().unwrap().iter().zip(devices).enumerate() {
            self.answers += 1;
            let is_in = found.matching.contains(case.id.as_str());
            let error = found.errors.get(case.id.as_str());
            let agrees = match (recorded.as_bool(), error) {
                (Some(expected), None) => expected == is_in,
                (None, Some(_)) => !is_in,
                _ => false,
            };
            self.agreed += usize::from(agrees);
            if recorded.is_object() {
                self.errors += 1;
                self.same_texts += usize::from(error.is_some_and(|error| recorded["error"] == **error));
            }
            if !agrees {
                _ = writeln!(
                    self.differences,
                    "{} on device {device}: {recorded} but {is_in}, {error:?}",
                    case.id
                );
            }
        }
    }
}

#[test]
fn classes_have_the_devices_that_the_scheduler_gives_them() {
    let cases = cases();
    let folder = folder("devices-cel");
    let mut total = Agreement::default();
    for needs_lists in [false, true] {
        let chosen: Vec<&Case> = cases.iter().filter(|case| case.needs_lists == needs_lists).collect();
        std::fs::write(folder.join("state.json"), dump(&chosen)).unwrap();
        let report = |name: &str| {
            let lists = format!("DRAListTypeAttributes={needs_lists}");
            let release = ["--kubernetes", name, "--feature-gates", &lists];
            let arguments = [&["devices", "--state", "state.json", "-o", "json"][..], &release].concat();
            let (code, report, errors) = run(&folder, &arguments);
            assert_eq!(code, 0, "{errors}");
            serde_json::from_str(&report).unwrap()
        };
        // At the same time: some expressions are as dear as the limit allows.
        let report = &report;
        let reports: [Value; 2] = std::thread::scope(|scope| {
            let runs = ["1.36", "1.37.0"].map(|name| scope.spawn(move || report(name)));
            runs.map(|run| run.join().unwrap())
        });
        for (release, report) in reports.iter().enumerate() {
            let devices = answers(report);
            for case in &chosen {
                total.compare(case, release, report, &devices);
            }
        }
    }
    assert!(total.answers > 60_000, "{} answers", total.answers);
    assert_eq!(total.agreed, total.answers, "{}", total.differences);
    assert!(
        total.same_texts * 100 >= total.errors * 98,
        "{} of {} texts: {}",
        total.same_texts,
        total.errors,
        total.differences
    );
}
