//! Comparisons of policy sets: pairs with a known effect, and random pairs held against requests.
#![allow(clippy::indexing_slicing, reason = "the dice know how many sides there are")]
#![allow(clippy::disallowed_macros, clippy::print_stdout, reason = "numbers for people, with --nocapture")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

mod limits;
mod pairs;
mod requests;

use tollgate_engine::policy::{PolicyDiff, PolicyFile, PolicySet};
use tollgate_formats::gotime;

/// The current time of all comparisons.
const NOW: &str = "2026-11-17T12:00:00Z";

/// Loads the policies of a text.
fn load(text: &str) -> PolicySet {
    let files = [PolicyFile { name: "p.yaml".to_owned(), text: text.to_owned() }];
    PolicySet::load(&files, &|_| Err("no files".to_owned())).unwrap_or_else(|errors| {
        panic!("{}\n{text}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// Compares two sets in all namespaces.
fn diff(old: &PolicySet, new: &PolicySet) -> PolicyDiff {
    old.diff(new, None, gotime::parse_rfc3339(NOW).unwrap())
}
