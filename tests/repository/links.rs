//! Links of the documents: files and headings that they name exist, and every page of the book is in its table of
//! contents, once.
#![expect(clippy::disallowed_methods, reason = "reads the documents")]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::tidy::{files, root};

/// Documents that people read. Tests have Markdown that is data.
pub(crate) fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["docs", "manifests", "policies", "examples", "certs", "crates", "src"] {
        found.extend(files(&root().join(folder), "md"));
    }
    let top = std::fs::read_dir(root()).expect("the root").map(|entry| entry.expect("an entry").path());
    found.extend(top.filter(|path| path.extension().is_some_and(|end| end == "md")));
    found
}

/// The text without code: what looks like a link there is none.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let parts = line.split('`').enumerate();
            // Between two backticks is code, which a heading keeps and a link does not have.
            let kept =
                parts.map(
                    |(index, part)| {
                        if index % 2 == 0 { part.to_owned() } else { part.replace(['[', ']', '('], "") }
                    },
                );
            out.push_str(&kept.collect::<String>());
        }
        out.push('\n');
    }
    out
}

/// Targets of links and pictures.
fn targets(prose: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (opening, closing) in [("](", ")"), ("src=\"", "\""), ("srcset=\"", "\""), ("href=\"", "\"")] {
        for (at, _) in prose.match_indices(opening) {
            let rest = prose.get(at + opening.len()..).unwrap_or_default();
            found.extend(rest.split_once(closing).map(|(target, _)| target.to_owned()));
        }
    }
    found
}

/// The anchors of a page's headings, as forges and mdBook make them.
fn anchors(prose: &str) -> BTreeSet<String> {
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let slug = |line: &str| -> String {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

fn broken_links(document: &Path, text: &str) -> Vec<String> {
    let prose = prose(text);
    let folder = document.parent().expect("a folder");
    let mut wrong = Vec::new();
    for target in targets(&prose) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
        if path.is_empty() {
            if !anchors(&prose).contains(anchor) {
                wrong.push(format!("{}: no heading {target}", document.display()));
            }
            continue;
        }
        let file = folder.join(path);
        if !file.exists() {
            wrong.push(format!("{}: no file {target}", document.display()));
        } else if !anchor.is_empty() && file.extension().is_some_and(|end| end == "md") {
            let there = std::fs::read_to_string(&file).expect("a page");
            if !anchors(&self::prose(&there)).contains(anchor) {
                wrong.push(format!("{}: no heading {target}", document.display()));
            }
        }
    }
    wrong
}

#[test]
fn links_lead_somewhere() {
    let documents = documents();
    assert!(documents.len() > 200, "{}", documents.len());
    let wrong: Vec<String> = documents
        .iter()
        .flat_map(|document| broken_links(document, &std::fs::read_to_string(document).expect("a document")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_broken_link_is_noticed() {
    let readme = root().join("README.md");
    for text in
        ["[a](nowhere.md)", "[a](SECURITY.md#nothing)", "[a](#nothing)", "<img src=\"docs/none.svg\">"]
    {
        assert_eq!(broken_links(&readme, text).len(), 1, "{text}");
    }
    for text in [
        "[a](SECURITY.md#threat-model)",
        "# A `b`, c\n[a](#a-b-c)",
        "`[a](none.md)`",
        "```\n[a](none.md)\n```",
    ] {
        assert_eq!(broken_links(&readme, text), [""; 0], "{text}");
    }
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the table of contents");
    let mut listed: Vec<PathBuf> = targets(&prose(&summary)).iter().map(|target| docs.join(target)).collect();
    let mut pages = files(&docs, "md");
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    listed.sort();
    pages.sort();
    assert_eq!(listed, pages);
}
