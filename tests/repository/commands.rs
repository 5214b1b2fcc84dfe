//! The commands of the pages on installing and on day two: paths build, objects exist, flags are flags of the program.
#![cfg_attr(not(feature = "serve"), allow(dead_code, reason = "flags of `serve` are checked"))]
#![allow(clippy::disallowed_methods, reason = "reads the documents")]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use std::process::Command;

use crate::kustomize::{Files, build};

const PAGES: [&str; 3] = ["docs/guides/installation-options.md", "docs/guides/operate.md", "manifests/chart/README.md"];

/// The commands in the shell blocks of a page; a line that ends in `\` goes on.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    let joined = blocks.map(|block| block.replace("\\\n", " ")).collect::<Vec<_>>().join("\n");
    let parts = joined.lines().flat_map(|line| line.split(" #").next().unwrap_or_default().split(" | "));
    parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// What is wrong with a command.
fn faults(files: &Files, command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["kubectl", rest @ ..] => kubectl(files, rest),
        ["helm", "install" | "test" | "uninstall" | "rollback", "tollgate", rest @ ..] => {
            let path = rest.first().filter(|word| word.contains('/'));
            let path = path.filter(|path| !files.0.contains_key(&format!("{}/Chart.yaml", below(path))));
            path.map(|path| format!("{path} is not a chart")).into_iter().collect()
        }
        ["tollgate", name, rest @ ..] => flags(name, rest),
        ["grep" | "sed" | "export", ..] => Vec::new(),
        _ => vec!["not a known command".to_owned()],
    }
}

fn below(path: &str) -> &str {
    path.strip_prefix("manifests/").unwrap_or(path)
}

/// Names in the commands are those of the manifests.
fn kubectl(files: &Files, words: &[&str]) -> Vec<String> {
    const VERBS: [&str; 11] =
        ["apply", "create", "delete", "diff", "get", "label", "rollout", "scale", "set", "patch", "wait"];
    let mut faults = Vec::new();
    let mut verb = None;
    let all: String = files.0.values().map(String::as_str).collect();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        match *word {
            "-n" | "--namespace" => {
                let name = words.next().copied().unwrap_or_default();
                if name != "tollgate-system" {
                    faults.push(format!("the namespace is not {name}"));
                }
            }
            "-k" | "kustomize" => {
                let path = words.next().copied().unwrap_or_default();
                faults.extend(build(files, below(path)).err());
            }
            "-l" => {
                let label = words.next().copied().unwrap_or_default();
                if label != "app.kubernetes.io/name=tollgate" {
                    faults.push(format!("nothing has the label {label}"));
                }
            }
            "deployment" | "configmap" | "generic" | "namespace" => {
                let name = words.next().copied().unwrap_or_default();
                if !all.contains(&format!("ame: {name}")) {
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

/// Flags of the program, as its help says.
fn flags(name: &str, words: &[&str]) -> Vec<String> {
    let mut help = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let help = help.args([name, "--help"]).env("COLUMNS", "1000").output().expect("run");
    if !help.status.success() {
        return vec![format!("{name} is not a command of tollgate")];
    }
    let help = String::from_utf8_lossy(&help.stdout);
    let is_known = |flag: &str| help.split_whitespace().any(|word| word.trim_end_matches(',') == flag);
    let given = words.iter().filter(|word| word.starts_with("--"));
    given.filter(|flag| !is_known(flag)).map(|flag| format!("{flag} is not a flag of {name}")).collect()
}

#[cfg(feature = "serve")]
#[test]
fn commands_of_the_pages_name_what_exists() {
    let files = Files::of_repository();
    let mut count = 0;
    for page in PAGES {
        let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
        for command in commands(&std::fs::read_to_string(path).expect("the page")) {
            assert_eq!(faults(&files, &command), [""; 0], "{page}: {command}");
            count += 1;
        }
    }
    assert!(count > 30, "{count} commands");
}

/// An uninstall deletes the webhook configurations first, wherever it is shown.
#[test]
fn webhook_configurations_are_deleted_first() {
    let first = "kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l app.kubernetes.io/name=tollgate";
    let mut shown = 0;
    for page in PAGES.iter().chain(&["docs/reference/serving.md", "README.md"]) {
        let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
        let commands = commands(&std::fs::read_to_string(path).expect("the page"));
        for (at, _) in
            commands.iter().enumerate().filter(|(_, command)| command.starts_with("kubectl delete -k"))
        {
            assert_eq!(
                at.checked_sub(1).and_then(|before| commands.get(before)).map(String::as_str),
                Some(first),
                "{page}"
            );
            shown += 1;
        }
    }
    assert!(shown > 0);
}

#[test]
fn a_command_that_cannot_work_is_noticed() {
    let files = Files::of_repository();
    for command in [
        "kubectl apply -k manifests/overlays/nowhere",
        "kubectl -n default get configmap tollgate-policies -o yaml",
        "kubectl -n tollgate-system get configmap tollgate-policy -o yaml",
        "kubectl -n tollgate-system rollout status deployment gate",
        "kubectl delete validatingwebhookconfigurations -l app=tollgate",
        "kubectl destroy -k manifests/overlays/ha",
        "kubectl kustomize manifests/overlays/nowhere",
        "helm install tollgate manifests/base --namespace tollgate-system",
        "tollgate manifests --certs certs",
        "tollgate install",
        "docker run tollgate",
    ] {
        assert!(!faults(&files, command).is_empty(), "{command}");
    }
}
