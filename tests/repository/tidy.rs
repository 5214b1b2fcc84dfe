//! The house, checked: file sizes, rules ↔ pages ↔ fixtures, words that must not occur.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads the source tree")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn files(under: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(under) else { return found };
    for entry in entries.map(|entry| entry.expect("a directory entry").path()) {
        if entry.is_dir() {
            found.extend(files(&entry, extension));
        } else if entry.extension().is_some_and(|found| found == extension) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// The sources of every crate: `cli/taint.rs` of the program, `engine/rules.rs` of the crate in `crates/engine`.
fn sources() -> Vec<(String, String)> {
    let mut all = files(&root().join("src"), "rs");
    all.extend(files(&root().join("crates"), "rs"));
    all.into_iter()
        .map(|path| {
            let name =
                path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
            let name =
                name.trim_start_matches("crates/").trim_start_matches("src/").replacen("/src/", "/", 1);
            (name, std::fs::read_to_string(&path).expect("UTF-8"))
        })
        .collect()
}

#[test]
fn files_stay_small_and_say_what_they_are() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let lines = text.lines().count();
        if lines > 500 {
            wrong.push(format!("{file}: {lines} lines"));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("{file}: no `//!` header"));
        }
        if file.ends_with("mod.rs") {
            wrong.push(format!("{file}: `foo.rs` + `foo/`, never `mod.rs`"));
        }
        let stem = file.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        if ["utils", "util", "common", "helpers", "manager", "misc"].contains(&stem) {
            wrong.push(format!("{file}: name the thing, not the drawer"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_rule_compares_releases() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let compares = ["release >", "release <", "release ==", ".name == \"1.", "minor >", "minor <"];
            if !file.starts_with("api/profile") && compares.iter().any(|pattern| code.contains(pattern)) {
                wrong.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "a release is data, name the behaviour:\n{}", wrong.join("\n"));
}

#[test]
fn only_reports_and_reviews_serialise() {
    let allowed = [
        "report",
        "api/review",
        "cli",
        "engine/policy/json_schema",
        "engine/policy/export/tests",
        "picture",
        "ui",
    ];
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|(file, text)| {
            (text.contains("serde::") || text.contains("serde_json::"))
                && !allowed.iter().any(|prefix| file.starts_with(prefix))
        })
        .map(|(file, _)| file)
        .collect();
    assert!(wrong.is_empty(), "serde outside of the shells: {wrong:?}");
}

#[test]
fn lints_take_taints_and_tolerations_from_sites() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|(file, _)| file.starts_with("engine/rules/lint/") || file.starts_with("engine/policy"))
        .filter(|(_, text)| {
            [".taints()", ".tolerations()", ".device_selector()"].iter().any(|call| text.contains(call))
        })
        .map(|(file, _)| file)
        .collect();
    assert!(wrong.is_empty(), "only `site` knows where taints live: {wrong:?}");
}

#[test]
fn every_rule_has_a_page_and_fixtures_and_every_page_a_rule() {
    let ids: BTreeSet<&str> = tollgate_engine::rules::all().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), tollgate_engine::rules::all().count(), "rule ids are unique");
    let mut wrong = Vec::new();
    for rule in tollgate_engine::rules::all() {
        let id = rule.id;
        if !id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
            wrong.push(format!("{id}: not kebab-case"));
        }
        let page = tollgate::pages::rule_page(rule);
        if !page.starts_with(&format!("# {id}\n")) || page.lines().count() < 8 {
            wrong.push(format!("{id}: its page does not begin with its name, or says too little"));
        }
        if files(&root().join("tests/rules").join(id), "yaml").is_empty() {
            wrong.push(format!("{id}: no fixture in tests/rules/{id}/"));
        }
    }
    for page in files(&root().join("docs/rules"), "md") {
        let stem = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem != "README" && !ids.contains(stem.as_str()) {
            wrong.push(format!("docs/rules/{stem}.md: no such rule"));
        }
    }
    for folder in std::fs::read_dir(root().join("tests/rules")).into_iter().flatten() {
        let name = folder.expect("an entry").file_name().to_string_lossy().into_owned();
        if name != "README.md" && !ids.contains(name.as_str()) {
            wrong.push(format!("tests/rules/{name}: no such rule"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
