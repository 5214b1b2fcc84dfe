//! Parts of documents that are generated: between `<!-- generated: NAME -->` and `<!-- end -->`, on lines of their own.
//!
//! A test compares each part with what the code says now. `make docs` (`SNAPSHOTS=overwrite`) writes them anew.
#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "reads documents; without them a test has failed"
)]

use std::fmt::Write as _;
use std::path::Path;

use snapbox::data::DataFormat;
use snapbox::{Assert, Data};

const END: &str = "<!-- end -->";

/// The names of the parts of a document, in order.
pub(crate) fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(name).collect()
}

fn name(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- generated: ")?.strip_suffix(" -->")
}

/// The document with its generated parts replaced. Parts that `part` does not know stay.
pub(crate) fn replaced(text: &str, part: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        out.push_str(line);
        let Some(new) = name(line.trim_end()).and_then(&part) else { continue };
        let closed = lines.by_ref().any(|line| line.trim_end() == END);
        assert!(closed, "{line} has no {END}");
        _ = write!(out, "\n{}\n\n{END}\n", new.trim());
    }
    out
}

/// Checks that the generated parts of a document are up to date.
#[track_caller]
pub(crate) fn check(document: &Path, part: impl Fn(&str) -> Option<String>) {
    let text = std::fs::read_to_string(document).expect("the document");
    let expected = Data::read_from(document, Some(DataFormat::Text)).raw();
    let assert = Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV);
    assert.eq(Data::text(replaced(&text, part)), expected);
}

/// A cell of a table: one line, and no bar that would end it.
pub(crate) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

/// Formats a Markdown table.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(header.len()));
    std::iter::once(line(&header)).chain([rule]).chain(rows.iter().map(|row| line(row))).collect()
}
