//! The workflows: what actionlint and zizmor check (`make workflows`) where they are not installed, and what they
//! cannot know: the tasks of the Makefile exist, and the files of a release are those the package manifests name.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use std::collections::BTreeSet;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use crate::promql::documents;

const FILES: [&str; 2] = ["ci", "release"];

fn path(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn object(value: &Value) -> Vec<(&String, &Value)> {
    value.as_object().map(|fields| fields.iter().collect()).unwrap_or_default()
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The problems of a workflow, given parsed and as text.
fn workflow_problems(workflow: &Value, text: &str, tasks: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    if workflow["permissions"].as_object().is_none_or(|scopes| !scopes.is_empty()) {
        faults.push("the workflow has permissions: each job asks for its own".to_owned());
    }
    let pinned = Regex::new(r"^\s+- uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$")
        .expect("a pattern");
    for line in text.lines().filter(|line| line.contains("uses:") && !pinned.is_match(line)) {
        faults.push(format!("not pinned by digest, with its version: {}", line.trim()));
    }
    if text.contains("pull_request_target") || text.contains("workflow_run") {
        faults.push("runs code of strangers with rights of ours".to_owned());
    }
    for (name, job) in object(&workflow["jobs"]) {
        if !job["permissions"].is_object() || !job["timeout-minutes"].is_number() {
            faults.push(format!("{name}: no permissions or no timeout"));
        }
        for (scope, level) in object(&job["permissions"]) {
            if level != "read" && job["environment"] != "release" {
                faults.push(format!("{name}: {scope} is {level} outside of the environment `release`"));
            }
        }
        for step in steps(job) {
            let run = step["run"].as_str().unwrap_or_default();
            if run.contains("${{") {
                faults.push(format!("{name}: an expression in a script, pass it by `env`: {run}"));
            }
            let is_checkout = step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/checkout@"));
            if is_checkout && step["with"]["persist-credentials"] != false {
                faults.push(format!("{name}: the checkout keeps its credentials"));
            }
            for (at, _) in run.match_indices("make ") {
                let task: String =
                    run[at + 5..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
                if !tasks.contains(&task) {
                    faults.push(format!("{name}: there is no `make {task}`"));
                }
            }
        }
    }
    faults
}

fn tasks() -> BTreeSet<String> {
    let makefile = read("Makefile");
    makefile.lines().filter_map(|line| line.strip_prefix(".PHONY: ")).map(str::to_owned).collect()
}

fn workflow(name: &str) -> (Value, String) {
    let file = format!(".github/workflows/{name}.yml");
    (documents(&file).remove(0), read(&file))
}

#[test]
fn workflows_are_pinned_and_ask_for_little() {
    let tasks = tasks();
    for name in FILES {
        let (parsed, text) = workflow(name);
        assert_eq!(workflow_problems(&parsed, &text, &tasks), Vec::<String>::new(), "{name}");
    }
    // Planted faults are noticed.
    let (mut parsed, text) = workflow("ci");
    let unpinned =
        Regex::new("@[0-9a-f]{40} # v6.0.2").expect("a pattern").replacen(&text, 1, "@v6").into_owned();
    assert_eq!(workflow_problems(&parsed, &unpinned, &tasks).len(), 1);
    assert_eq!(
        workflow_problems(&parsed, &text.replace("pull_request:", "pull_request_target:"), &tasks).len(),
        1
    );
    parsed["jobs"]["check"]["permissions"]["contents"] = "write".into();
    parsed["jobs"]["deny"]["steps"][0]["with"]["persist-credentials"] = true.into();
    parsed["jobs"]["deny"]["steps"][1]["run"] =
        "echo ${{ github.event.head_commit.message }}; make nothing".into();
    assert_eq!(workflow_problems(&parsed, &text, &tasks).len(), 4);
}

#[test]
fn one_digest_per_version_of_an_action() {
    let uses = Regex::new(r"uses: (\S+)@([0-9a-f]{40}) # (\S+)").expect("a pattern");
    let text: String = FILES.iter().map(|name| workflow(name).1).collect();
    let pins: BTreeSet<(&str, &str, &str)> = uses
        .captures_iter(&text)
        .map(|found| {
            let [action, digest, version] = found.extract().1;
            (action, digest, version)
        })
        .collect();
    let actions: BTreeSet<&str> = pins.iter().map(|(action, ..)| *action).collect();
    assert_eq!(pins.len(), actions.len(), "{pins:?}");
}

/// CI runs the checks that contributors run.
#[test]
fn ci_runs_what_contributors_run() {
    let (parsed, text) = workflow("ci");
    for part in [
        "make check",
        "rust-version",
        "cargo deny check",
        "make package-test",
        "make static-test",
        "make monitoring",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(steps(&parsed["jobs"]["check"]).iter().any(|step| step["run"] == "make check"));
}

/// The targets that the release builds, with the ending of their archives.
fn archives(version: &str) -> BTreeSet<String> {
    let (release, _) = workflow("release");
    let targets =
        release["jobs"]["binaries"]["strategy"]["matrix"]["include"].as_array().expect("targets").clone();
    let name = |entry: &Value| {
        let target = entry["target"].as_str().expect("a target");
        let ending = if target.contains("windows") { "zip" } else { "tar.gz" };
        format!("tollgate-{version}-{target}.{ending}")
    };
    targets.iter().map(name).collect()
}

/// Runs a script of `.ci` with these checksums.
fn script_output(script: &str, checksums: &str) -> Result<String, String> {
    let file =
        std::env::temp_dir().join(format!("tollgate-{script}-{}-{}", std::process::id(), checksums.len()));
    std::fs::write(&file, checksums).expect("written");
    let output = Command::new(path(&format!(".ci/{script}")))
        .args(["1.2.3", "https://example.com/v1.2.3"])
        .arg(&file)
        .output()
        .expect("bash is there");
    std::fs::remove_file(&file).expect("removed");
    let (out, err) = (output.stdout, output.stderr);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    if output.status.success() { Ok(text(out)) } else { Err(text(err)) }
}

#[test]
#[cfg(unix)]
fn package_manifests_name_the_files_of_the_release() {
    let archives = archives("1.2.3");
    let sum = |index: usize| format!("{index:064x}");
    let checksums: Vec<String> =
        archives.iter().enumerate().map(|(index, file)| format!("{}  {file}\n", sum(index))).collect();
    let (formula, krew) =
        (script_output("homebrew", &checksums.concat()), script_output("krew", &checksums.concat()));
    let (formula, krew) = (formula.expect("a formula"), krew.expect("a manifest"));
    for (index, file) in archives.iter().enumerate() {
        for (name, text) in [("formula", &formula), ("krew", &krew)] {
            // Homebrew has no Windows.
            let is_there =
                text.contains(&format!("https://example.com/v1.2.3/{file}")) && text.contains(&sum(index));
            assert!(is_there || (name == "formula" && file.contains("windows")), "{name}: {file}\n{text}");
        }
    }
    let plugin = tollgate::documents(&krew).next().expect("a document").expect("YAML");
    let plugin: Value = serde_json::from_str(&plugin.doc.root().to_json()).expect("JSON");
    assert_eq!((&plugin["kind"], &plugin["spec"]["version"]), (&"Plugin".into(), &"v1.2.3".into()));
    let platforms = plugin["spec"]["platforms"].as_array().expect("platforms");
    assert_eq!(platforms.len(), archives.len());
    for platform in platforms {
        let from = platform["files"][0]["from"].as_str().unwrap_or_default();
        assert!(from.ends_with(platform["bin"].as_str().expect("a name")), "{platform}");
        assert!(
            platform["uri"].as_str().is_some_and(|uri| uri.contains(from.split('/').next().unwrap_or("-")))
        );
    }
    // A file that is missing in the release fails, instead of an empty checksum.
    for script in ["homebrew", "krew"] {
        let error = script_output(script, &checksums[1..].concat()).expect_err("a file is missing");
        assert!(error.contains("is not in"), "{error}");
    }
}
