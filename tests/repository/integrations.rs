//! The ways into CI, run as far as they go without a network: the scripts of the GitHub Action and of the GitLab job,
//! the hooks of pre-commit, and the commands of the page. The program is the one that was built; downloads and
//! renderers are played by scripts in the PATH.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "reads and writes files, reads JSON"
)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::promql::documents;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const BAD: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: drain}\nspec:\n  deviceSelector: \
                   {driver: gpu.example.com, pool: a}\n  taint: {key: gpu.example.com/drain, effect: Evict}\n";

/// A small repository of manifests in a temporary folder, and a folder for programs.
struct Sample {
    folder: PathBuf,
    programs: PathBuf,
}

impl Sample {
    fn new(name: &str) -> Sample {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ci-{name}"));
        _ = std::fs::remove_dir_all(&root);
        let sample = Sample { folder: root.join("repository"), programs: root.join("bin") };
        std::fs::create_dir_all(sample.folder.join("deploy")).expect("a folder");
        std::fs::create_dir_all(&sample.programs).expect("a folder");
        sample.write("deploy/rule.yaml", BAD);
        sample.write("deploy/fine.yaml", &BAD.replace("Evict", "NoSchedule"));
        sample
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A program in the PATH.
    fn program(&self, name: &str, script: &str) {
        let path = self.programs.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a program");
        let mut command = Command::new("chmod");
        assert!(command.arg("+x").arg(&path).status().expect("chmod").success());
    }

    fn with_tollgate(self) -> Sample {
        self.program("tollgate", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_tollgate")));
        self
    }

    fn run(&self, shell: &[&str], script: &str, environment: &[(&str, &str)]) -> Output {
        let path = format!("{}:{}", self.programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(script).current_dir(&self.folder).env("PATH", path);
        for (name, value) in environment {
            command.env(name, value);
        }
        command.output().expect("a shell")
    }
}

/// The command with which GitHub runs `shell: bash`.
const BASH: [&str; 5] = ["bash", "--noprofile", "--norc", "-eo", "pipefail"];

fn bash(sample: &Sample, script: &str, environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = sample.run(&[&BASH[..], &["-c"]].concat(), script, environment);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

fn action() -> Value {
    documents("action.yml").remove(0)
}

fn script(name: &str) -> String {
    let action = action();
    let steps = action["runs"]["steps"].as_array().expect("steps");
    let step = steps.iter().find(|step| step["name"] == name).expect("the step");
    step["run"].as_str().expect("a script").to_owned()
}

/// The defaults of the inputs, as the step `check` gets them.
fn inputs<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![
        ("PROGRAM", "tollgate"),
        ("INPUT_PATHS", "."),
        ("INPUT_KUBERNETES", ""),
        ("INPUT_POLICY", ""),
        ("INPUT_FAIL_ON", ""),
        ("INPUT_ARGS", ""),
        ("INPUT_SARIF_FILE", "tollgate.sarif"),
    ];
    all.extend_from_slice(changes);
    all
}

#[test]
fn the_action_is_pinned_and_passes_inputs_by_environment() {
    let action = action();
    let text = std::fs::read_to_string(format!("{ROOT}/action.yml")).expect("the action");
    let pinned = regex::Regex::new(r"^\s+- uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$")
        .expect("a pattern");
    let uses: Vec<&str> = text.lines().filter(|line| line.contains("uses:")).collect();
    assert!(!uses.is_empty() && uses.iter().all(|line| pinned.is_match(line)), "{uses:?}");
    for step in action["runs"]["steps"].as_array().expect("steps") {
        let run = step["run"].as_str().unwrap_or_default();
        assert!(!run.contains("${{"), "an expression in a script: {run}");
        assert!(run.is_empty() || step["shell"] == "bash", "{run}");
    }
    // Every input is used, and none is used that does not exist.
    let expression = regex::Regex::new(r"inputs\.([a-z-]+)").expect("a pattern");
    let mut used: Vec<&str> =
        expression.captures_iter(&text).filter_map(|found| found.get(1)).map(|name| name.as_str()).collect();
    used.sort_unstable();
    used.dedup();
    let mut declared: Vec<&str> =
        action["inputs"].as_object().expect("inputs").keys().map(String::as_str).collect();
    declared.sort_unstable();
    assert_eq!(used, declared);
    let page = std::fs::read_to_string(format!("{ROOT}/docs/guides/ci.md")).expect("the page");
    for input in declared {
        assert!(page.contains(&format!("`{input}`")), "docs/guides/ci.md does not name the input {input}");
    }
}

#[test]
fn the_action_annotates_and_writes_sarif() {
    let sample = Sample::new("action").with_tollgate();
    let (code, out) = bash(&sample, &script("check"), &inputs(&[("INPUT_KUBERNETES", "1.37")]));
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("::error file=deploy/rule.yaml,line=6,"), "{out}");
    let sarif: Value = serde_json::from_str(&sample.read("tollgate.sarif")).expect("SARIF");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "deploy/rule.yaml");
    assert!(results[0]["partialFingerprints"].is_object());
    // Several paths, flags and a release that does not serve v1.
    let more = [
        ("INPUT_PATHS", "deploy/fine.yaml\n\ndeploy/rule.yaml\n"),
        ("INPUT_ARGS", "--quiet\n--rules\nupstream"),
        ("INPUT_FAIL_ON", "warn"),
    ];
    let (code, out) = bash(&sample, &script("check"), &inputs(&more));
    assert_eq!((code, out.lines().count()), (Some(1), 1), "{out}");
    let fine = ("INPUT_PATHS", "deploy/fine.yaml");
    let (code, out) = bash(&sample, &script("check"), &inputs(&[fine]));
    assert_eq!(code, Some(0), "{out}");
    // Without the input `fail-on`, the configuration file decides.
    sample.write(".tollgate.yaml", "failOn: warn\n");
    sample.write(
        "deploy/fine.yaml",
        &format!("# tollgate: allow(blanket-toleration) unused\n{}", sample.read("deploy/fine.yaml")),
    );
    let (code, out) = bash(&sample, &script("check"), &inputs(&[fine]));
    assert_eq!(code, Some(1), "{out}");
    let (code, out) = bash(&sample, &script("check"), &inputs(&[fine, ("INPUT_FAIL_ON", "deny")]));
    assert_eq!(code, Some(0), "{out}");
}

/// Titles and branch names, which anyone can choose, may become inputs of the action.
#[test]
fn inputs_of_the_action_are_not_commands() {
    let sample = Sample::new("injection").with_tollgate();
    let hostile = "$(touch pwned); `touch pwned` && touch pwned #\" ' ";
    for name in ["INPUT_PATHS", "INPUT_KUBERNETES", "INPUT_POLICY", "INPUT_FAIL_ON", "INPUT_ARGS"] {
        let (code, out) = bash(&sample, &script("check"), &inputs(&[(name, hostile)]));
        assert!(matches!(code, Some(1..=3)), "{name}: {code:?} {out}");
    }
    // A path that looks like a flag is a path.
    let (code, out) = bash(&sample, &script("check"), &inputs(&[("INPUT_PATHS", "--exit-zero")]));
    assert_eq!(code, Some(3), "{out}");
    assert!(!sample.folder.join("pwned").exists());
}

#[test]
fn the_action_installs_only_what_has_the_checksum() {
    let sample = Sample::new("install");
    let name = "tollgate-0.1.0-x86_64-unknown-linux-musl";
    let release = sample.programs.parent().expect("a folder").join("release");
    std::fs::create_dir_all(release.join(name)).expect("a folder");
    std::fs::write(release.join(name).join("tollgate"), "#!/bin/sh\necho installed\n").expect("a program");
    let pack = format!(
        "cd {0} && chmod +x {name}/tollgate && tar -czf {name}.tar.gz {name} && sha256sum {name}.tar.gz > checksums.txt",
        release.display()
    );
    assert_eq!(bash(&sample, &pack, &[]).0, Some(0));
    // Plays the download: the last word is the address.
    sample.program(
        "curl",
        &format!(
            "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n\
             case $1 in https://example.com/releases/v0.1.0/*) cp \"{}/${{1##*/}}\" \"$out\" ;; *) exit 22 ;; esac",
            release.display()
        ),
    );
    let temporary = sample.folder.display().to_string();
    let outputs = sample.folder.join("outputs").display().to_string();
    let install = |changes: &[(&str, &str)]| {
        let mut environment = vec![
            ("TOLLGATE_VERSION", "v0.1.0"),
            ("TOLLGATE_CHECKSUM", ""),
            ("TOLLGATE_DOWNLOADS", "https://example.com/releases"),
            ("RUNNER_OS", "Linux"),
            ("RUNNER_ARCH", "X64"),
            ("RUNNER_TEMP", temporary.as_str()),
            ("GITHUB_OUTPUT", outputs.as_str()),
        ];
        environment.extend_from_slice(changes);
        bash(&sample, &script("install"), &environment)
    };
    assert_eq!(install(&[]), (Some(0), String::new()));
    let installed = sample.read("outputs");
    let program = installed.trim().strip_prefix("program=").expect("an output");
    let output = Command::new(program).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "installed\n");
    for (changes, code) in [
        (&[("TOLLGATE_CHECKSUM", "0000")][..], 2),
        (&[("TOLLGATE_VERSION", "main")], 2),
        (&[("TOLLGATE_VERSION", "0.1.0; touch pwned")], 2),
        (&[("RUNNER_OS", "Windows")], 2),
        (&[("TOLLGATE_VERSION", "9.9.9")], 22),
    ] {
        let (found, out) = install(changes);
        assert_eq!(found, Some(code), "{changes:?}: {out}");
    }
    std::fs::write(release.join("checksums.txt"), "").expect("a file");
    assert_eq!(install(&[]).0, Some(2), "a release without the checksum");
    assert_eq!(sample.read("outputs"), installed, "nothing else was installed");
    assert!(!sample.folder.join("pwned").exists());
}

#[test]
fn the_gitlab_job_writes_its_reports() {
    let sample = Sample::new("gitlab").with_tollgate();
    let job = documents("examples/ci/gitlab.yml").remove(0);
    let lines = |key: &str| -> String {
        let lines = job["tollgate"][key].as_array().expect("a script");
        lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    };
    let script = format!("{}\n{}", lines("before_script"), lines("script"));
    let environment: Vec<(String, String)> = job["variables"]
        .as_object()
        .expect("variables")
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned()))
        .collect();
    let mut environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let output = sample.run(&["sh", "-c"], &script, &environment);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.starts_with("deploy/rule.yaml:6:"), "{out}");
    let reports = &job["tollgate"]["artifacts"]["reports"];
    let report: Value =
        serde_json::from_str(&sample.read(reports["codequality"].as_str().expect("a name"))).expect("JSON");
    let issues = report.as_array().expect("a list");
    assert_eq!(issues.len(), 1);
    for key in ["description", "check_name", "fingerprint", "severity"] {
        assert!(issues[0][key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
    }
    assert_eq!(issues[0]["location"]["path"], "deploy/rule.yaml");
    assert_eq!(issues[0]["location"]["lines"]["begin"], 6);
    assert!(sample.read(reports["junit"].as_str().expect("a name")).contains("<failure "));
    // v1 is not served by that release: both rules are wrong.
    environment.push(("TOLLGATE_KUBERNETES", "1.34"));
    let output = sample.run(&["sh", "-c"], &script, &environment);
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 invalid (checked against 1.34)"));
}

#[test]
fn the_hooks_of_pre_commit_check_the_repository() {
    let sample = Sample::new("pre-commit").with_tollgate();
    let hooks = documents(".pre-commit-hooks.yaml").remove(0);
    let hooks = hooks.as_array().expect("hooks").clone();
    assert_eq!(hooks.len(), 2);
    for hook in hooks {
        assert_eq!(
            hook["pass_filenames"], false,
            "a file that is named must be a manifest; a folder need not"
        );
        let arguments = hook["args"].as_array().expect("args").iter().filter_map(Value::as_str);
        let command: Vec<&str> = hook["entry"].as_str().expect("entry").split(' ').chain(arguments).collect();
        let (code, out) = bash(&sample, &command.join(" "), &[]);
        assert!(code == Some(1) && out.contains("deploy/rule.yaml:6:"), "{code:?} {out}");
        sample.write("deploy/rule.yaml", &BAD.replace("Evict", "NoExecute"));
        assert_eq!(bash(&sample, &command.join(" "), &[]), (Some(0), String::new()));
        sample.write("deploy/rule.yaml", BAD);
    }
}

/// The shell blocks of the page, in a repository of Argo CD or Flux; renderers print a manifest.
#[test]
fn the_commands_of_the_page_work() {
    let sample = Sample::new("page").with_tollgate();
    for renderer in ["kustomize", "helm", "flux"] {
        sample.program(renderer, &format!("cat '{}'", sample.folder.join("deploy/rule.yaml").display()));
    }
    for folder in ["apps/training", "apps/serving", "policies"] {
        std::fs::create_dir_all(sample.folder.join(folder)).expect("a folder");
    }
    for name in ["reserved-keys.yaml", "reserved-keys.test.yaml"] {
        let text = std::fs::read_to_string(format!("{ROOT}/policies/{name}")).expect("a policy");
        sample.write(&format!("policies/{name}"), &text);
    }
    let page = std::fs::read_to_string(format!("{ROOT}/docs/guides/ci.md")).expect("the page");
    let mut count = 0;
    for block in page.split("```sh\n").skip(1).filter_map(|block| block.split("```").next()) {
        for line in block.lines() {
            let (code, out) = bash(&sample, line, &[]);
            let expected = i32::from(line.contains("tollgate validate"));
            assert_eq!(code, Some(expected), "{line}: {out}");
            count += 1;
        }
    }
    assert!(count >= 8, "{count}");
    assert_eq!(std::fs::read_dir(sample.folder.join("rendered")).expect("a folder").count(), 2);
}
