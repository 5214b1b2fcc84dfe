//! Rule fixtures: files a user could have written, with the expectation on the line it speaks of.
//!
//! `tests/rules/<rule-id>/<case>.yaml` is judged on each profile it names, by every rule there is. A mark at the end
//! of a line, `#~ [..1.35] taint-effect NotSupported`, names rule and kind, and the profiles if not all. Asserted
//! both ways: a finding without a mark fails, and so does a mark without a finding. A mark may go on with
//! `says <text>`, a part of what the API server prints, path and all: for releases the corpus does not have.
//!
//! The comments before the first field may say:
//! - `# profiles: 1.33..1.36`: a list of names and ranges, the end excluded; without it, every profile. Drafts come
//!   after the releases, because they build on the newest one: `1.35..` has them, `..1.35` does not.
//! - `# subresource: status`
//! - `# labels: a/b=true`: what is known of the namespace's labels; empty for "it has none". Without it, nothing is.
//! - `# state: small`: what is known of the cluster is `tests/impact/states/small.yaml`. Without it, nothing is.
//! - `# classes: a=driver`: the ResourceClasses that exist. Without it, nobody knows.
//! - `# exact:`: judged as the API server itself would, objects on their way out too.
//!
//! Documents of `tollgate.dev` are the policies that the others are judged by.
//!
//! Each other document is created. If a line says `# old:`, the document after it is what is stored, and the next one
//! updates it.
#![expect(clippy::disallowed_methods, reason = "reads the fixtures")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate::doc::{self, Doc};
use tollgate::engine::{Attributes, Engine, Labels, Operation, ResourceClasses, parse_rules};
use tollgate::impact::Snapshot;
use tollgate::policy::{PolicyFile, PolicySet};
use tollgate::profile::{self, Profile};
use tollgate::source::{Document, Lines, documents};

const ORIGINS: &str = "upstream,documented,lint,policy,decoding,strict";
const NOW: &str = "2026-01-02T03:04:05Z";

/// What is found, or expected: line, rule, kind.
type Told = (usize, String, String);

#[test]
fn every_fixture_says_what_its_marks_say() {
    let mut wrong = Vec::new();
    let mut fired: BTreeMap<String, bool> = BTreeMap::new();
    for file in fixtures() {
        let text = std::fs::read_to_string(&file).expect("a fixture is UTF-8");
        let rule = folder_name(&file);
        let marks = marks(&text);
        *fired.entry(rule.clone()).or_default() |= marks.iter().any(|mark| mark.told.1 == rule);
        check_rule_file(&file, &text, &marks, &mut wrong);
    }
    wrong.extend(
        fired.into_iter().filter(|(_, fires)| !fires).map(|(rule, _)| format!("{rule}: no fixture fires")),
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_missing_mark_a_silent_mark_and_a_wrong_line_fail() {
    let text = |on_effect: &str, on_key: &str| {
        format!(
            "# profiles: 1.36\napiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {{name: a}}\nspec:\n  \
             deviceSelector: {{driver: a}}\n  taint:\n    key: a {on_key}\n    effect: Odd {on_effect}\n"
        )
    };
    let wrong = |on_effect: &str, on_key: &str| {
        let (text, mut wrong) = (text(on_effect, on_key), Vec::new());
        check_rule_file(Path::new("a.yaml"), &text, &marks(&text), &mut wrong);
        wrong.len()
    };
    let mark = "#~ taint-effect NotSupported";
    assert_eq!(wrong(mark, ""), 0);
    assert_eq!(wrong("#~ [..1.36] taint-key Invalid | [1.35..1.37] taint-effect NotSupported", ""), 0);
    assert_eq!(wrong("", ""), 1, "unmarked");
    assert_eq!(wrong("#~ taint-effect NotSupported #~ taint-key Invalid", ""), 1, "silent");
    assert_eq!(wrong("", mark), 2, "on the wrong line");
    assert_eq!(wrong("#~ taint-effect Required", ""), 2, "of the wrong kind");
}

fn check_rule_file(file: &Path, text: &str, marks: &[Mark], wrong: &mut Vec<String>) {
    let name = file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(file).display();
    for profile in profiles(header(text, "profiles").unwrap_or("1.33..")) {
        let marks: Vec<&Mark> = marks
            .iter()
            .filter(|mark| mark.profiles.iter().any(|named| named.name == profile.name))
            .collect();
        let found = judge(text, profile);
        for (told, messages) in &found {
            if !marks.iter().any(|mark| mark.told == *told) {
                let ((line, rule, kind), messages) = (told, messages.join("; "));
                wrong.push(format!("{name}:{line}: [{}] unmarked: {rule} {kind} ({messages})", profile.name));
            }
        }
        for mark in marks {
            let (line, rule, kind) = &mark.told;
            let messages = found.get(&mark.told).map(Vec::as_slice).unwrap_or_default();
            if messages.is_empty() {
                wrong.push(format!("{name}:{line}: [{}] silent: {rule} {kind}", profile.name));
            } else if !messages.iter().any(|message| message.contains(&mark.says)) {
                let (says, messages) = (&mark.says, messages.join("; "));
                wrong.push(format!("{name}:{line}: [{}] does not say {says}: {messages}", profile.name));
            }
        }
    }
}

/// What the engine tells about the documents of a file, in the API server's words.
fn judge(text: &str, profile: &'static Profile) -> BTreeMap<Told, Vec<String>> {
    let exact = header(text, "exact").is_some();
    let engine = Engine::new(vec![profile], parse_rules(ORIGINS).expect("origins"));
    let engine = if exact { engine.exactly() } else { engine };
    let engine = match header(text, "state") {
        Some(name) => engine.with_snapshot(Arc::new(state(name))),
        None => engine,
    };
    let lines = Lines::of(text);
    let labels = header(text, "labels").map(labels);
    let mut documents: Vec<Document<'_>> =
        documents(text).map(|document| document.expect("a fixture is YAML")).collect();
    documents.retain(|document| !is_policy(document.doc.root().get("apiVersion").str()));
    let engine = engine.with_policies(policies(text)).with_classes(header(text, "classes").map(classes));
    let old = header(text, "old").map(|_| documents.remove(0));
    let mut found: BTreeMap<Told, Vec<String>> = BTreeMap::new();
    for document in &documents {
        let judgement = engine.validate(
            &Attributes {
                operation: if old.is_some() { Operation::Update } else { Operation::Create },
                subresource: header(text, "subresource").unwrap_or_default(),
                object: document.doc.root(),
                old_object: old.as_ref().map(|old| old.doc.root()),
                namespace: "",
                user: doc::Value::absent(),
                now: NOW.into(),
            },
            labels.as_ref().map_or(Labels::Unknown, |labels| Labels::Known(labels.root())),
        );
        for judged in judgement.findings() {
            let finding = &judged.finding;
            let line = document.place(&lines, &finding.at, finding.on_key).line;
            let told = (line, finding.rule.0.to_owned(), format!("{:?}", finding.kind));
            found.entry(told).or_default().push(format!("{}: {}", finding.server_field(), finding.body()));
        }
    }
    found
}

/// A state of a cluster.
fn state(name: &str) -> Snapshot {
    let path = format!("{}/tests/impact/states/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a state");
    let mut snapshot = Snapshot::new();
    for document in documents(&text).map(|document| document.expect("a state is YAML")) {
        let kept = snapshot.apply(document.doc.root()).expect("an object that fits");
        assert!(kept.is_some(), "an object that is no part of a state");
    }
    snapshot
}

fn is_policy(api_version: &str) -> bool {
    api_version.starts_with("tollgate.dev/")
}

/// The policies of a fixture.
fn policies(text: &str) -> Arc<PolicySet> {
    let parts: Vec<&str> =
        text.split("\n---\n").filter(|part| part.contains("apiVersion: tollgate.dev/")).collect();
    let files = [PolicyFile { name: "fixture.yaml".to_owned(), text: parts.join("\n---\n") }];
    Arc::new(PolicySet::load(&files, &|_| Err("no files".to_owned())).expect("policies that load"))
}

struct Mark {
    told: Told,
    says: String,
    profiles: Vec<&'static Profile>,
}

/// The marks of a file: `#~ [profiles] rule Kind says text`, several of them separated by ` | `.
fn marks(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for mark in line.split("#~").skip(1).flat_map(|marks| marks.split(" | ")) {
            let (mark, says) = mark.split_once(" says ").unwrap_or((mark, ""));
            let words: Vec<&str> = mark.split_whitespace().collect();
            let (range, words) = match words.as_slice() {
                [range, words @ ..] if range.starts_with('[') => (range.trim_matches(['[', ']']), words),
                words => ("1.33..", words),
            };
            let [rule, kind] = words else { panic!("line {}: a mark is `rule Kind`: {line}", index + 1) };
            assert!(tollgate::rules::find(rule).is_some(), "line {}: no rule `{rule}`", index + 1);
            let told = (index + 1, (*rule).to_owned(), (*kind).to_owned());
            marks.push(Mark { told, says: says.trim().to_owned(), profiles: profiles(range) });
        }
    }
    marks
}

/// The value of a comment `# name: value`; its first word, because an explanation may follow.
fn header<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut comments = text.lines().filter_map(|line| line.strip_prefix("# "));
    let value = comments.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.split_whitespace().next().unwrap_or_default())
}

/// `1.33..1.36,kep-5055`: names and ranges. Panics on what is not a profile: a fixture must not be silently skipped.
fn profiles(list: &str) -> Vec<&'static Profile> {
    let position = |name: &str| {
        let found = profile::ALL.iter().position(|profile| profile.name == name);
        found.unwrap_or_else(|| panic!("no profile `{name}`"))
    };
    let mut found = Vec::new();
    for word in list.split(',') {
        let range = match word.split_once("..") {
            Some((first, end)) => {
                let first = if first.is_empty() { 0 } else { position(first) };
                first..if end.is_empty() { profile::ALL.len() } else { position(end) }
            }
            None => position(word)..position(word) + 1,
        };
        found.extend(profile::ALL.get(range).unwrap_or_default());
    }
    assert!(!found.is_empty(), "`{list}` names no profile");
    found
}

/// Classes and their drivers from `a=b,c=d`.
fn classes(list: &str) -> Arc<ResourceClasses> {
    let pairs = list.split(',').map(|word| word.split_once('=').expect("a class is `name=driver`"));
    Arc::new(ResourceClasses(pairs.map(|(name, driver)| (name.into(), driver.into())).collect()))
}

/// A labels object from `a=b,c=d`.
fn labels(list: &str) -> Doc<'static> {
    let members: Vec<String> = list
        .split(',')
        .filter(|word| !word.is_empty())
        .map(|word| word.split_once('=').expect("a label is `key=value`"))
        .map(|(key, value)| format!("{key:?}:{value:?}"))
        .collect();
    let json: &'static str = Box::leak(format!("{{{}}}", members.join(",")).into_boxed_str());
    doc::parse(json).expect("labels are JSON")
}

fn fixtures() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let folders = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules"));
    for folder in folders.into_iter().filter(|entry| entry.is_dir()) {
        files.extend(
            entries(&folder).into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "yaml")),
        );
    }
    assert!(!files.is_empty(), "there are no fixtures");
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).expect("a folder of fixtures");
    let mut found: Vec<PathBuf> = found.map(|entry| entry.expect("an entry").path()).collect();
    found.sort();
    found
}

fn folder_name(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}
