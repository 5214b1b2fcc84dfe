//! The shell commands of documents, as far as they can be checked without a cluster: paths exist and build, objects are
//! those of the manifests and examples, flags are flags of the program, targets are those of the Makefile.
//!
//! Commands of Tollgate whose output is shown run in `tests/fixtures/transcripts.rs`.
#![cfg_attr(not(feature = "online"), allow(dead_code, reason = "flags of `serve` are checked"))]
#![allow(clippy::disallowed_methods, reason = "reads the documents")]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use std::process::Command;

use crate::kustomize::{Files, build};
use crate::links::documents;

/// The commands in the shell blocks of a page. Lines that end in `\` are continued.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    let joined = blocks.map(|block| block.replace("\\\n", " ")).collect::<Vec<_>>().join("\n");
    let lines = joined.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let parts = lines.flat_map(|line| unquoted_parts(line.split(" #").next().unwrap_or_default()));
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The commands of a pipeline. A bar in quotes is part of a program for jq.
fn unquoted_parts(line: &str) -> Vec<String> {
    let (mut parts, mut quoted) = (vec![String::new()], false);
    for word in line.split(' ') {
        if word == "|" && !quoted {
            parts.push(String::new());
            continue;
        }
        quoted ^= word.matches('\'').count() % 2 == 1;
        if let Some(part) = parts.last_mut() {
            part.push(' ');
            part.push_str(word);
        }
    }
    parts
}

/// The objects that commands may name: those of the manifests, the examples and the page itself.
struct KnownObjects<'f> {
    files: &'f Files,
    text: String,
}

impl<'f> KnownObjects<'f> {
    fn on(page: &str, files: &'f Files) -> KnownObjects<'f> {
        let mut text: String = files.0.values().map(String::as_str).collect();
        for example in crate::tidy::files(&crate::tidy::root().join("examples"), "yaml") {
            text.push_str(&std::fs::read_to_string(example).expect("an example"));
        }
        text.push_str(page);
        KnownObjects { files, text }
    }

    /// An object has this name.
    fn has(&self, name: &str) -> bool {
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '.');
        let key = format!("ame: {name}");
        self.text.match_indices(&key).any(|(at, _)| ends(self.text.get(at + key.len()..).unwrap_or_default()))
            || self.text.contains(&format!("create namespace {name}\n"))
            || self.text.contains(&format!("create namespace {name} "))
    }
}

/// Programs whose arguments do not refer to this repository.
const OTHERS: [&str; 16] = [
    "grep",
    "sed",
    "export",
    "jq",
    "curl",
    "gh",
    "sha256sum",
    "flux",
    "kustomize",
    "ln",
    "mkdir",
    "for",
    "do",
    "done",
    "git",
    "brew",
];

/// The problems of a command.
fn command_problems(named: &KnownObjects<'_>, command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().skip_while(|word| word.contains('=')).collect();
    let mut faults = missing_paths(&words);
    faults.extend(match words.as_slice() {
        ["kubectl", "tollgate", name, rest @ ..] | ["tollgate", name, rest @ ..] => flags(name, rest),
        ["kubectl", rest @ ..] => kubectl(named, rest),
        ["helm", "install" | "upgrade" | "test" | "uninstall" | "rollback" | "template", _, rest @ ..] => {
            let path = rest.first().filter(|word| word.contains("manifests/"));
            let path =
                path.filter(|path| !named.files.0.contains_key(&format!("{}/Chart.yaml", below(path))));
            path.map(|path| format!("{path} is not a chart")).into_iter().collect()
        }
        ["cargo", ..] => cargo(&words),
        ["make", target, ..] => {
            let makefile = include_str!("../../Makefile");
            let is_known = makefile.contains(&format!("\n{target}:"));
            (!is_known).then(|| format!("no target {target}")).into_iter().collect()
        }
        [other, ..] if OTHERS.contains(other) => Vec::new(),
        _ => vec!["not a known command".to_owned()],
    });
    faults
}

fn below(path: &str) -> &str {
    path.strip_prefix("manifests/").unwrap_or(path)
}

/// Paths of this repository that do not exist.
fn missing_paths(words: &[&str]) -> Vec<String> {
    let folders = ["examples/", "policies/", "manifests/", "docs/", "tests/"];
    let paths = words.iter().map(|word| word.trim_matches(['"', '\'']));
    let paths = paths.filter(|word| folders.iter().any(|folder| word.starts_with(folder)));
    let missing = paths.filter(|path| !path.contains('*') && !crate::tidy::root().join(path).exists());
    missing.map(|path| format!("there is no {path}")).collect()
}

fn cargo(words: &[&str]) -> Vec<String> {
    let example = words.iter().skip_while(|word| **word != "--example").nth(1);
    let missing = example.filter(|name| {
        let root = crate::tidy::root().join("examples");
        !root.join(format!("{name}.rs")).exists() && !root.join(name).is_dir()
    });
    missing.map(|name| format!("no example {name}")).into_iter().collect()
}

/// Checks that the names in a kubectl command exist in the manifests and examples.
fn kubectl(named: &KnownObjects<'_>, words: &[&str]) -> Vec<String> {
    const VERBS: [&str; 19] = [
        "apply",
        "annotate",
        "auth",
        "create",
        "delete",
        "describe",
        "diff",
        "drain",
        "events",
        "get",
        "label",
        "logs",
        "patch",
        "port-forward",
        "rollout",
        "scale",
        "set",
        "uncordon",
        "wait",
    ];
    let mut faults = Vec::new();
    let mut verb = None;
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        match *word {
            "-n" | "--namespace" => {
                let name = words.next().copied().unwrap_or_default();
                if !named.has(name) {
                    faults.push(format!("no namespace {name}"));
                }
            }
            "-k" | "kustomize" => {
                verb = verb.or(Some("apply"));
                let path = words.next().copied().unwrap_or_default();
                // The one with a generator, which the builder of these tests does not have.
                if path == "manifests/monitoring" {
                    continue;
                }
                if path.starts_with("manifests/") {
                    faults.extend(build(named.files, below(path)).err());
                } else if !crate::tidy::root().join(path).join("kustomization.yaml").exists() {
                    faults.push(format!("{path} is not a kustomization"));
                }
            }
            "-l" => {
                let label = words.next().copied().unwrap_or_default();
                let (key, value) = label.split_once('=').unwrap_or((label, ""));
                if !named.text.contains(&format!("{key}: {value}")) {
                    faults.push(format!("nothing has the label {label}"));
                }
            }
            "deployment" | "configmap" | "generic" | "namespace" | "devicetaintrule" => {
                let name = words.peek().copied().copied().unwrap_or_default();
                if !name.is_empty() && !name.starts_with(['-', '$']) && !named.has(name) {
                    faults.push(format!("no {word} {name}"));
                }
            }
            word if verb.is_none() => {
                verb = Some(word);
                if !VERBS.contains(&word) {
                    faults.push(format!("{word} is not a verb of kubectl that is known here"));
                }
            }
            _ => {}
        }
    }
    faults
}

/// Checks the flags of a command against the program's help.
fn flags(name: &str, words: &[&str]) -> Vec<String> {
    let mut help = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    // `policy` has commands of its own.
    let inner = words.iter().find(|word| !word.starts_with('-')).filter(|_| name == "policy");
    let help = help.arg(name).args(inner).arg("--help").env("COLUMNS", "1000").output().expect("run");
    if !help.status.success() {
        return vec![format!("{name} is not a command of tollgate")];
    }
    let help = String::from_utf8_lossy(&help.stdout);
    let is_known = |flag: &str| {
        let flag = flag.split('=').next().unwrap_or_default();
        help.split_whitespace().any(|word| word.split(['[', ',']).next() == Some(flag))
    };
    let given = words.iter().filter(|word| word.starts_with("--"));
    given.filter(|flag| !is_known(flag)).map(|flag| format!("{flag} is not a flag of {name}")).collect()
}

#[cfg(feature = "online")]
#[test]
fn commands_of_documents_name_what_exists() {
    let files = Files::of_repository();
    let (mut count, mut wrong) = (0, Vec::new());
    for page in documents() {
        let text = std::fs::read_to_string(&page).expect("the page");
        let named = KnownObjects::on(&text, &files);
        for command in commands(&text) {
            let faults = command_problems(&named, &command);
            wrong.extend(faults.iter().map(|fault| format!("{}: {command}: {fault}", page.display())));
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "{count} commands");
}

/// An uninstall deletes the webhook configurations first, wherever it is shown.
#[test]
fn webhook_configurations_are_deleted_first() {
    let first = "kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l app.kubernetes.io/name=tollgate";
    let mut shown = 0;
    for page in documents() {
        let commands = commands(&std::fs::read_to_string(&page).expect("the page"));
        let uninstalls = |command: &String| command.starts_with("kubectl delete -k manifests/");
        for (at, _) in commands.iter().enumerate().filter(|(_, command)| uninstalls(command)) {
            let before = at.checked_sub(1).and_then(|before| commands.get(before)).map(String::as_str);
            assert_eq!(before, Some(first), "{}", page.display());
            shown += 1;
        }
    }
    assert!(shown > 0);
}

#[test]
fn a_command_that_cannot_work_is_noticed() {
    let files = Files::of_repository();
    let named = KnownObjects::on("", &files);
    for command in [
        "kubectl apply -k manifests/overlays/nowhere",
        "kubectl apply -k examples/nowhere",
        "kubectl apply -f examples/nowhere.yaml",
        "kubectl -n nowhere get configmap tollgate-policies -o yaml",
        "kubectl -n tollgate-system get configmap tollgate-policy -o yaml",
        "kubectl -n tollgate-system rollout status deployment gate",
        "kubectl delete devicetaintrule nothing",
        "kubectl delete validatingwebhookconfigurations -l app=tollgate",
        "kubectl destroy -k manifests/overlays/ha",
        "kubectl kustomize manifests/overlays/nowhere",
        "helm install tollgate manifests/base --namespace tollgate-system",
        "tollgate manifests --certs certs",
        "tollgate validate examples/nowhere.yaml",
        "kubectl tollgate install",
        "tollgate install",
        "make nothing",
        "cargo run --example nothing",
        "docker run tollgate",
    ] {
        assert!(!command_problems(&named, command).is_empty(), "{command}");
    }
}

/// Most clusters run an older release than 1.37, so a page whose examples need it must state what to change
/// for others.
#[test]
fn pages_with_examples_for_the_newest_release_name_the_others() {
    let mut checked = 0;
    for path in documents() {
        let page = std::fs::read_to_string(&path).expect("a document");
        let newest =
            |line: &str| line.trim_start().starts_with("$ tollgate") && line.contains("--kubernetes 1.37");
        if page.lines().any(newest) {
            assert!(page.contains("releases.md") || page.contains("#kubernetes-136"), "{}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 5, "examples for 1.37 were found on {checked} pages only");
}
