//! The house, checked: module edges, file sizes, rules ↔ pages ↔ fixtures, words that must not occur.
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

fn sources() -> Vec<(String, String)> {
    let src = root().join("src");
    files(&src, "rs")
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&src).expect("below src").to_string_lossy().replace('\\', "/");
            (name, std::fs::read_to_string(&path).expect("UTF-8"))
        })
        .collect()
}

/// Who may use whom: "module: what it may use". The table is the architecture.
const EDGES: &[(&str, &[&str])] = &[
    ("field", &[]),
    ("gofmt", &[]),
    ("gotime", &["gofmt"]),
    ("netaddr", &[]),
    ("quantity", &["gofmt"]),
    // What others wrote, made safe to show: whoever shows something uses it.
    ("sanitize", &[]),
    ("names", &["gofmt"]),
    ("cel", &["gofmt", "gotime"]),
    ("doc", &["gofmt"]),
    ("finding", &["field", "gofmt"]),
    ("profile", &["names", "cel"]),
    ("api", &["doc", "field", "finding", "gofmt", "gotime", "profile", "quantity"]),
    // What the engine is asked; the state of a cluster is part of what is known around a request.
    ("admission", &["api", "cel", "doc", "gotime", "impact", "names", "profile"]),
    ("site", &["api", "admission", "doc", "field", "profile"]),
    ("tolerance", &["api"]),
    // Times of taints and evictions are Go's, so is their arithmetic.
    ("impact", &["api", "doc", "field", "gotime", "profile", "tolerance"]),
    (
        "rules",
        &[
            "api",
            "admission",
            "cel",
            "doc",
            "field",
            "finding",
            "gofmt",
            "gotime",
            "names",
            "netaddr",
            "profile",
            "quantity",
            "site",
            "tolerance",
        ],
    ),
    ("defaults", &["api", "doc", "field", "profile"]),
    // YAML and JSON as people write them; positions.
    ("source", &["api", "doc", "field", "finding", "gofmt", "sanitize"]),
    (
        "policy",
        &[
            "api",
            "admission",
            "cel",
            "defaults",
            "doc",
            "field",
            "finding",
            "gofmt",
            "gotime",
            "impact",
            // The CEL library of Kubernetes has quantities and semantic versions.
            "names",
            "profile",
            "quantity",
            "rules",
            "sanitize",
            "site",
            "source",
            "tolerance",
        ],
    ),
    (
        "engine",
        &[
            "api",
            "admission",
            "cel",
            "defaults",
            "doc",
            "field",
            "finding",
            "gofmt",
            "gotime",
            "impact",
            "policy",
            "profile",
            "rules",
        ],
    ),
    // Which webhook entries an engine needs, and their manifests.
    ("registration", &["doc", "engine", "policy", "profile", "rules", "source"]),
    // A server's verdict and the engine's, compared.
    ("conformance", &["doc", "engine", "profile", "rules"]),
    // Texts of the API server are read with `doc`; what it hands on is asked for by `cli`.
    ("cluster", &["doc", "files", "gotime", "impact", "profile", "registration", "source"]),
    ("server", &["api", "doc", "engine", "gotime", "sanitize"]),
    // — shells —
    ("files", &["sanitize", "source"]),
    // Configuration files, levels, overrides: what is reported, and how. Its fields are rows like those of policies.
    (
        "config",
        &["doc", "engine", "field", "finding", "gofmt", "policy", "profile", "report", "rules", "source"],
    ),
    ("report", &["api", "engine", "field", "finding", "profile", "rules", "sanitize", "source"]),
    (
        "cli",
        &[
            "api",
            "cluster",
            "config",
            "conformance",
            "defaults",
            "doc",
            "engine",
            "field",
            "files",
            "finding",
            "gofmt",
            "gotime",
            "impact",
            "names",
            "policy",
            "profile",
            "registration",
            "report",
            "rules",
            "sanitize",
            "server",
            "source",
        ],
    ),
];

#[test]
fn modules_use_only_what_the_architecture_allows() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let module = file.split(['/', '.']).next().unwrap_or_default();
        if matches!(module, "lib" | "main") {
            continue;
        }
        let allowed = EDGES.iter().find(|(name, _)| *name == module);
        let Some((_, allowed)) = allowed else {
            wrong.push(format!("{file}: module `{module}` is not in the table"));
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in used_modules(line) {
                if used != module
                    && EDGES.iter().any(|(name, _)| *name == used)
                    && !allowed.contains(&used.as_str())
                {
                    wrong.push(format!("{file}:{}: `{module}` may not use `{used}`", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names after `crate::` in a line, groups included.
fn used_modules(line: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let inner = group.split('}').next().unwrap_or_default();
            used.extend(inner.split(',').map(|name| first_word(name.trim())));
        } else {
            used.push(first_word(rest));
        }
    }
    used
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
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
            if !file.starts_with("profile") && compares.iter().any(|pattern| code.contains(pattern)) {
                wrong.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "a release is data, name the behaviour:\n{}", wrong.join("\n"));
}

#[test]
fn only_reports_and_reviews_serialise() {
    let allowed = ["report", "api/review", "cli", "policy/json_schema"];
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
        .filter(|(file, _)| file.starts_with("rules/lint/") || file.starts_with("policy"))
        .filter(|(_, text)| {
            [".taints()", ".tolerations()", ".device_selector()"].iter().any(|call| text.contains(call))
        })
        .map(|(file, _)| file)
        .collect();
    assert!(wrong.is_empty(), "only `site` knows where taints live: {wrong:?}");
}

#[test]
fn every_rule_has_a_page_and_fixtures_and_every_page_a_rule() {
    let ids: BTreeSet<&str> = tollgate::Rule::all().map(|rule| rule.id.0).collect();
    assert_eq!(ids.len(), tollgate::Rule::all().count(), "rule ids are unique");
    let mut wrong = Vec::new();
    for rule in tollgate::Rule::all() {
        let id = rule.id.0;
        if !id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
            wrong.push(format!("{id}: not kebab-case"));
        }
        if !rule.doc.starts_with(&format!("# {id}\n")) || rule.doc.lines().count() < 8 {
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
