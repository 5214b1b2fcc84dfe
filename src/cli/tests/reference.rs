//! The reference pages of the book, as far as the code knows them: commands, rules, fields of files, releases.
//!
//! Only compiled for tests. The tables stand in `docs/reference` and the README between two comments; a test compares
//! them with the definitions that the program itself uses, and `make docs` writes them anew. Metrics are compared where
//! a server runs (`tests/cluster/monitoring.rs`).

mod commands;
mod fields;
#[path = "../../../tests/support/generated.rs"]
mod generated;
mod releases;
mod rules;

use std::path::{Path, PathBuf};

/// A generated part and what makes it.
type Part = (&'static str, fn() -> String);

/// Every part that is generated here.
const PARTS: [Part; 10] = [
    ("commands", commands::commands),
    ("shared options", commands::shared_options),
    ("rules", rules::rules),
    ("rule pages", rules::pages),
    ("policy fields", fields::policies),
    ("policy test fields", fields::policy_tests),
    ("configuration fields", fields::configuration),
    ("profiles", releases::profiles),
    ("releases", releases::side_by_side),
    ("defaults of releases", releases::defaults),
];

/// Parts that other tests compare.
const ELSEWHERE: [&str; 1] = ["metrics"];

fn part(name: &str) -> Option<String> {
    PARTS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())
}

#[expect(clippy::disallowed_methods, reason = "reads the documents")]
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "reads the documents")]
fn generated_parts_of_the_book_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    documents(&root.join("docs"), &mut pages);
    let mut seen = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let names = generated::names(&text);
        for name in &names {
            let is_known = PARTS.iter().any(|(known, _)| known == name) || ELSEWHERE.contains(name);
            assert!(is_known, "{}: nothing generates {name}", page.display());
        }
        seen.extend(names.iter().map(|name| (*name).to_owned()));
        if !names.is_empty() {
            generated::check(&page, part);
        }
    }
    seen.sort();
    let mut expected: Vec<&str> = PARTS.iter().map(|(name, _)| *name).chain(ELSEWHERE).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected, "each part stands on one page");
}
