//! The real kustomize and the real Helm, where they are on the PATH: they must give the objects that the tests check.
//!
//! Without them the tests say so and pass: what they would find is then found by `kustomize.rs` and `chart.rs` alone.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "builds JSON, and says what was not run"
)]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use std::process::Command;

use serde_json::Value;

use crate::kustomize::{Files, build, id, normalized};
use crate::{chart, yaml};

/// The output of a program; `None` if it is not on the PATH.
fn program_output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    // Neither may connect to anything.
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env("KUBECONFIG", "/dev/null");
    let output = command.output().ok()?;
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

fn comparable(objects: &[Value]) -> Vec<Value> {
    let mut objects: Vec<Value> = objects.iter().map(normalized).collect();
    objects.sort_by_key(id);
    objects
}

#[test]
fn kustomize_builds_the_same_objects() {
    let files = Files::of_repository();
    let mut tools = Vec::new();
    for (program, arguments) in [("kustomize", "build"), ("kubectl", "kustomize")] {
        for overlay in files.folders("overlays") {
            let folder = format!("manifests/overlays/{overlay}");
            let Some(text) = program_output(program, &[arguments, &folder]) else { continue };
            let ours = build(&files, &format!("overlays/{overlay}")).expect("it builds");
            let theirs = yaml::documents(&text);
            assert_eq!(comparable(&theirs), comparable(&ours), "{program} {overlay}");
            let order = |objects: &[Value]| objects.iter().map(id).collect::<Vec<_>>();
            // kustomize alone keeps the order of the files.
            assert!(program == "kustomize" || order(&theirs) == order(&ours), "{program} {overlay}");
            tools.push(program);
        }
    }
    if tools.is_empty() {
        println!("neither kustomize nor kubectl is on the PATH: not compared");
    }
}

#[test]
fn helm_renders_the_same_objects() {
    let files = Files::of_repository();
    for overlay in files.folders("overlays") {
        let values = format!("manifests/chart/values/{overlay}.yaml");
        let arguments = [
            "template",
            "tollgate",
            "manifests/chart",
            "--namespace",
            "tollgate-system",
            "--values",
            &values,
        ];
        let Some(text) = program_output("helm", &[&arguments[..], &["--kube-version", "1.36.0"]].concat())
        else {
            return println!("helm is not on the PATH: not compared");
        };
        let values = files.0.get(&format!("chart/values/{overlay}.yaml")).map(String::as_str);
        let ours = chart::render(&files, values, "tollgate-system").expect("it renders");
        let theirs: Vec<Value> =
            yaml::documents(&text).into_iter().filter(|object| !object.is_null()).collect();
        let without_text = |objects: &[Value]| {
            // A claim in a text: YAML of the same claim may differ in its white space.
            let mut objects = comparable(objects);
            objects.retain(|object| object["kind"] != "ConfigMap");
            objects
        };
        assert_eq!(without_text(&theirs), without_text(&ours), "{overlay}");
        assert_eq!(theirs.len(), ours.len(), "{overlay}");
    }
}
