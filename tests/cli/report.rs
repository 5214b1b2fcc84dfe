//! Properties of each report format that do not depend on its content; the snapshots are in
//! `tests/fixtures/reports.rs`.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![allow(clippy::disallowed_methods, reason = "writes what is checked")]

use std::process::Command;

use tollgate::{Value, ValueKind};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report");
/// Rules that the corpus is about, so that a new lint does not change the snapshots.
const RULES: &str = "upstream,decoding,strict,blanket-toleration";

fn report(format: &str, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .current_dir(FOLDER)
        // Named one by one: in folders what cannot be read is skipped if it is no manifest.
        .args(["validate", "corpus/claim.yaml", "corpus/empty.yaml", "corpus/mixed.yaml"])
        .args(["--rules", RULES, "-o", format])
        .args(more)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{format}");
    assert!(output.stderr.is_empty(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn texts<'d>(value: Value<'d>, field: &str) -> Vec<&'d str> {
    value.items().map(|item| item.get(field).str()).collect()
}

#[test]
fn json_has_the_promised_keys() {
    let text = report("json", &["--kubernetes", "1.37"]);
    let doc = tollgate::parse_json(&text).expect("JSON");
    let root = doc.root();
    assert_eq!(root.get("profiles").to_json(), r#"["1.37"]"#);
    let keys =
        |value: Value<'_>| -> Vec<String> { value.members().map(|(key, _)| key.text().to_owned()).collect() };
    assert_eq!(
        keys(root.get("summary")),
        [
            "files",
            "documents",
            "checked",
            "skipped",
            "valid",
            "invalid",
            "unreadable",
            "denied",
            "warned",
            "allowed",
            "suppressed",
            "baselined",
            "staleBaseline",
            "skippedBy",
            "notRead"
        ]
    );
    assert_eq!(
        texts(root.get("results"), "verdict"),
        ["invalid", "unreadable", "skipped", "valid", "unreadable", "invalid"]
    );
    for result in root.get("results").items() {
        let first =
            ["file", "document", "line", "apiVersion", "kind", "namespace", "name", "verdict", "findings"];
        assert_eq!(keys(result).get(..9).expect("nine keys"), first);
        for finding in result.get("findings").items() {
            let message = finding.get("message").str();
            assert!(message.starts_with(finding.get("field").str()), "{message}");
            for key in ["rule", "origin", "level", "type", "field", "detail", "message"] {
                assert_eq!(finding.get(key).kind(), ValueKind::String, "{key}");
            }
            for key in ["line", "column", "endLine", "endColumn"] {
                assert!(finding.get(key).int().is_some_and(|number| number > 0), "{key}");
            }
            assert!(finding.get("profiles").len() == 1);
        }
    }
}

#[test]
fn sarif_refers_to_its_own_rules() {
    let text = report("sarif", &[]);
    let doc = tollgate::parse_json(&text).expect("JSON");
    assert_eq!(doc.root().get("version").str(), "2.1.0");
    let run = doc.root().get("runs").item(0);
    let rules = run.get("tool").get("driver").get("rules");
    for rule in rules.items() {
        for text in [
            rule.get("help").get("text"),
            rule.get("help").get("markdown"),
            rule.get("shortDescription").get("text"),
        ] {
            assert!(!text.str().is_empty(), "{}", rule.get("id").str());
        }
    }
    assert!(run.get("results").len() >= 4);
    for result in run.get("results").items() {
        let index =
            result.get("ruleIndex").int().and_then(|index| usize::try_from(index).ok()).expect("an index");
        assert_eq!(rules.item(index).get("id").str(), result.get("ruleId").str());
        assert!(["error", "warning", "note"].contains(&result.get("level").str()));
        let location = result.get("locations").item(0).get("physicalLocation");
        assert!(location.get("artifactLocation").get("uri").str().starts_with("corpus/"));
        let region = location.get("region");
        assert!(region.is_null_or_absent() || region.get("startLine").int().is_some_and(|line| line > 0));
    }
}

#[test]
fn junit_is_well_formed() {
    let text = report("junit", &[]);
    let mut open: Vec<&str> = Vec::new();
    for tag in text.split('<').skip(2).map(|rest| rest.split('>').next().unwrap_or_default()) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or_default());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(text.matches("<testcase ").count(), 6, "one case per document");
}

#[test]
fn github_commands_are_one_line_each() {
    let text = report("github", &[]);
    let (last, commands) =
        text.lines().collect::<Vec<_>>().split_last().map(|(last, rest)| (*last, rest.to_vec())).unwrap();
    assert!(last.contains("documents: "));
    for command in commands {
        assert!(
            command.starts_with("::error file=corpus/") || command.starts_with("::warning file=corpus/"),
            "{command}"
        );
        assert_eq!(command.matches("::").count(), 2, "{command}");
    }
}

/// A path is written in the same way in all formats.
#[test]
fn every_format_spells_paths_alike() {
    let absolute = format!("{FOLDER}/corpus/claim.yaml");
    for format in tollgate::Format::ALL {
        let reports: Vec<String> = ["corpus/claim.yaml", "./corpus//./claim.yaml", &absolute]
            .iter()
            .map(|path| {
                let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
                    .current_dir(FOLDER)
                    .args(["validate", path, "--rules", RULES, "-o", format.name()])
                    .output()
                    .expect("it runs");
                String::from_utf8(output.stdout).expect("UTF-8")
            })
            .collect();
        assert!(reports[0].contains("corpus/claim.yaml"), "{format:?}: {}", reports[0]);
        assert_eq!((&reports[1], &reports[2]), (&reports[0], &reports[0]), "{format:?}");
    }
}

/// GitLab identifies findings by their fingerprints, so they must be unique and independent of line numbers.
#[test]
fn fingerprints_are_unique_and_do_not_depend_on_lines() {
    let rule = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: a}\nspec: {deviceSelector: \
                {driver: d, pool: p}, taint: {key: k, effect: X}}\n";
    let other = rule.replace("name: a", "name: b");
    let fingerprints = |text: &str| -> Vec<(String, i64)> {
        let folder = std::env::temp_dir().join(format!("tollgate-gitlab-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("rules.yaml"), text).expect("a file");
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .current_dir(&folder)
            .args(["validate", "rules.yaml", "--rules", "upstream", "-o", "gitlab"])
            .output()
            .expect("it runs");
        std::fs::remove_dir_all(&folder).expect("removed");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let doc = tollgate::parse_json(&text).expect("JSON");
        let issues = doc.root().items();
        issues
            .map(|issue| {
                assert_eq!(issue.get("check_name").str(), "taint-effect");
                assert_eq!(issue.get("location").get("path").str(), "rules.yaml");
                let line = issue.get("location").get("lines").get("begin").int().expect("a line");
                (issue.get("fingerprint").str().to_owned(), line)
            })
            .collect()
    };
    let before = fingerprints(&format!("{rule}---\n{other}"));
    let moved = fingerprints(&format!("# One more line\n\n{other}---\n{rule}"));
    assert_eq!(before.len(), 2);
    assert_eq!((&before[0].0, &before[1].0), (&moved[1].0, &moved[0].0), "they moved and are the same");
    assert_ne!(before[0].1, moved[1].1, "they moved");
    let twice = fingerprints(&format!("{rule}---\n{rule}---\n{rule}"));
    let unique: std::collections::BTreeSet<&String> =
        twice.iter().map(|(fingerprint, _)| fingerprint).collect();
    assert_eq!((twice.len(), unique.len()), (3, 3), "equal objects have fingerprints of their own");
    assert!(unique.contains(&before[0].0));
}
