//! Command lines that people copy: usage lines and the examples in help texts and documents. All of them parse.
#![expect(clippy::disallowed_methods, reason = "reads the documents")]

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use crate::cli::Arguments;

/// Every command, followed by its subcommands, each with the words that lead to it.
pub(super) fn commands() -> Vec<(Vec<String>, clap::Command)> {
    let mut root = Arguments::command();
    root.build();
    let mut found = vec![(vec!["tollgate".to_owned()], root)];
    let mut at = 0;
    while let Some((words, command)) = found.get(at).cloned() {
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        let below = below.map(|below| {
            let words = words.iter().cloned().chain([below.get_name().to_owned()]).collect();
            (words, below.clone())
        });
        at += 1;
        found.splice(at..at, below);
    }
    found
}

/// A word that may stand for a placeholder of a usage line.
fn sample(placeholder: &str) -> &'static str {
    match placeholder {
        "DRIVER/POOL/DEVICE" => "d.example.com/p/d",
        "SHELL" => "bash",
        "WHAT" => "policy",
        "PROFILE" => "1.37",
        "NAMESPACE" => "default",
        "FORM" => "vap",
        "TOLERATION" => "example.com/a:NoSchedule",
        name if name.starts_with("KEY") => "example.com/a",
        _ => "word.yaml",
    }
}

/// The words of a line as a shell would split it, up to a pipe, a redirection or a comment.
fn split(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut inside) = (None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                if !std::mem::replace(&mut inside, true) {
                    words.push(String::new());
                }
            }
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if !inside => break,
            (None, ' ') => inside = false,
            _ => {
                if !std::mem::replace(&mut inside, true) {
                    words.push(String::new());
                }
                words.last_mut().expect("a word").push(letter);
            }
        }
    }
    words
}

/// Lines of code blocks that call the program.
fn examples(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.replace("\\\n", " ").lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.trim_start().trim_start_matches("$ ");
            // Usage lines, which the reference repeats, have a test of their own.
            let is_usage = line.contains("[OPTIONS]");
            // A dependency in a Cargo.toml.
            let is_dependency = line.starts_with("tollgate = ");
            let is_example = line.starts_with("tollgate ") && !is_usage && !is_dependency;
            found.extend(is_example.then(|| line.to_owned()));
        }
    }
    found
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn fault(words: &[String]) -> Option<String> {
    match Arguments::try_parse_from(words) {
        Ok(_) => None,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// A flag that takes several values would take the arguments after it as well.
#[test]
fn usage_lines_parse_as_they_are_printed() {
    for (words, mut command) in commands() {
        for option in command.get_opts() {
            let most = option.get_num_args().map_or(1, |range| range.max_values());
            assert!(most <= 1, "{words:?}: {option} takes {most} values");
        }
        if command.has_subcommands() {
            continue;
        }
        let usage = command.render_usage().to_string();
        for line in usage.lines() {
            let line: Vec<String> = line
                .trim_start_matches("Usage: ")
                .trim_start()
                .split(' ')
                .filter(|word| *word != "[OPTIONS]")
                .map(|word| match word.trim_end_matches("...").trim_matches(['<', '>', '[', ']']) {
                    name if name == word => word.to_owned(),
                    name => sample(name).to_owned(),
                })
                .collect();
            assert_eq!(fault(&line), None, "{usage}");
        }
    }
}

/// `-h` fits on a screen; `--help` has every flag.
#[test]
fn short_help_is_short_and_long_help_is_complete() {
    for (words, mut command) in commands() {
        let words = words.join(" ");
        let short = command.render_help().to_string();
        let lines = short.lines().count();
        assert!(lines <= 50, "{words} -h has {lines} lines");
        assert!(short.lines().all(|line| line.chars().count() <= 100), "{words} -h:\n{short}");
        let long = command.render_long_help().to_string();
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let name = arg.get_long().unwrap_or_default();
            assert!(long.contains(&format!("--{name}")), "{words} --help lacks --{name}");
        }
    }
}

/// The groups of shared flags that each command has, and why it needs them.
#[test]
fn commands_have_only_the_shared_flags_that_they_use() {
    /// The feature gates and the cluster that is asked.
    const SERVER: &[&str] = &["feature-gates", "context", "kubeconfig"];
    const CLUSTER: &[&str] = &["context", "kubeconfig"];
    const RELEASE: &[&str] = &["kubernetes"];
    const POLICY: &[&str] = &["policy"];
    const RULES: &[&str] = &["rules", "classes"];
    const EXIT_ZERO: &[&str] = &["exit-zero"];
    const FAIL_ON: &[&str] = &["fail-on"];
    let table: &[(&str, &[&[&str]])] = &[
        ("serve", &[RELEASE, SERVER, RULES, POLICY]),
        ("validate", &[RELEASE, SERVER, RULES, POLICY, FAIL_ON, EXIT_ZERO]),
        // Defaults come from releases and policies; its rules are fixed.
        ("mutate", &[RELEASE, SERVER, POLICY]),
        ("review", &[RELEASE, SERVER, RULES, POLICY, FAIL_ON, EXIT_ZERO]),
        ("manifests", &[RELEASE, SERVER, RULES, POLICY]),
        ("test", &[EXIT_ZERO]),
        ("impact", &[RELEASE, SERVER, EXIT_ZERO]),
        ("forecast", &[RELEASE, SERVER, EXIT_ZERO]),
        ("devices", &[RELEASE, SERVER]),
        ("drain", &[RELEASE, SERVER]),
        ("undrain", &[RELEASE, SERVER]),
        ("ui", &[RELEASE, SERVER]),
        ("audit", &[RELEASE, SERVER, RULES, POLICY, FAIL_ON, EXIT_ZERO]),
        // It records the feature gates that the server reports.
        ("snapshot", &[CLUSTER]),
        ("taint", &[RELEASE, SERVER]),
        ("untaint", &[RELEASE, SERVER]),
        ("policy check", &[RELEASE, SERVER, POLICY]),
        // It fails on a wider change, not on a level.
        ("policy diff", &[RELEASE, SERVER, FAIL_ON]),
        ("policy export", &[RELEASE, SERVER, POLICY]),
        // Its releases are written to a file.
        ("init", &[RELEASE]),
        ("lsp", &[RELEASE, SERVER, RULES, POLICY]),
        // The release is that of the state, or an argument of a call.
        ("mcp", &[CLUSTER, POLICY]),
        // It shows what these flags change.
        ("config", &[RELEASE, SERVER, RULES, POLICY, FAIL_ON]),
        // Releases are its arguments.
        ("profiles", &[SERVER]),
        // The release is that of the cluster.
        ("conformance", &[SERVER, EXIT_ZERO]),
    ];
    let shared = crate::cli::placement::shared_flags();
    let shared: Vec<&str> = shared.get_arguments().filter_map(clap::Arg::get_long).collect();
    for (words, command) in commands().into_iter().skip(1) {
        let name = words.get(1..).unwrap_or_default().join(" ");
        let row = table.iter().find(|(known, _)| *known == name);
        let mut expected: Vec<&str> = row
            .into_iter()
            .flat_map(|(_, groups)| groups.iter().flat_map(|group| group.iter().copied()))
            .collect();
        let own = command.get_arguments().filter_map(clap::Arg::get_long);
        let mut found: Vec<&str> = own.filter(|flag| shared.contains(flag)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn examples_in_help_texts_and_documents_parse() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    documents(&root.join("docs"), &mut files);
    let mut count = 0;
    let mut wrong = String::new();
    let mut check = |place: &str, line: &str| {
        count += 1;
        // A variable that the reader's shell replaces.
        if let Some(fault) = fault(&split(&line.replace("$REGISTRY", "registry.example.com"))) {
            wrong = format!("{wrong}{place}: {line}\n{fault}\n");
        }
    };
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a document");
        for line in examples(&text) {
            check(&file.display().to_string(), &line);
        }
    }
    for (words, mut command) in commands() {
        let help = command.render_long_help().to_string();
        let lines = help.lines().map(|line| line.trim_start().trim_start_matches("$ "));
        // Usage lines have a test of their own.
        let is_example = |line: &&str| line.starts_with("tollgate ") && !line.contains("[OPTIONS]");
        for line in lines.filter(is_example) {
            check(&words.join(" "), line);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 15, "only {count} examples");
}

#[test]
fn the_dump_and_the_rule_may_come_in_any_order() {
    for line in [
        "tollgate impact --state state.json drain.yaml",
        "tollgate impact drain.yaml --state state.json",
        "tollgate impact --state a.json --state b.json drain.yaml other.yaml",
        "tollgate impact --state=a.json drain.yaml",
    ] {
        assert_eq!(fault(&split(line)), None, "{line}");
    }
}
