//! Shared code of the tests that use the corpus: reads it, and runs the engine on one case.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot read its data has failed")]
#![allow(clippy::indexing_slicing, reason = "a constant with a bad index does not compile")]

use std::io::Read as _;

use tollgate_api::profile::{ALL, Profile};
use tollgate_document::doc::Value;
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Operation, Verdict};
use tollgate_engine::rules::RuleSet;

/// The releases whose answers the corpus holds: all but the first one. A new release without its file fails.
pub const RELEASES: [&str; RELEASE_COUNT] = {
    let mut names = [""; RELEASE_COUNT];
    let mut index = 0;
    while index < RELEASE_COUNT {
        assert!(ALL[index + 1].is_release, "releases come before drafts");
        names[index] = ALL[index + 1].name;
        index += 1;
    }
    names
};

const RELEASE_COUNT: usize = {
    let mut releases = 0;
    while ALL[releases].is_release {
        releases += 1;
    }
    releases - 1
};

/// The time at which all cases are checked.
pub const NOW: &str = "2026-01-02T03:04:05Z";

/// Reads a file of the corpus.
#[expect(clippy::disallowed_methods, reason = "reads the corpus")]
pub fn corpus(name: &str) -> String {
    let path = format!("{}/tests/conformance/{name}.gz", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("the corpus lacks {path}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .expect("the corpus is gzip and UTF-8");
    text
}

/// The exact verdict of the engine on a case, with the named rules.
pub fn judge(release: &str, rules: &str, case: Value<'_>) -> Verdict {
    let engine = Engine::new(
        vec![Profile::named(release).expect("a profile")],
        RuleSet::parse(rules).expect("origins"),
    )
    .with_api_server_verdicts();
    engine.validate(&attributes(case), LabelsIfKnown::Unknown)
}

/// The request of a test case.
pub fn attributes(case: Value<'_>) -> Attributes<'_> {
    Attributes {
        operation: if case.get("operation").str() == "CREATE" {
            Operation::Create
        } else {
            Operation::Update
        },
        subresource: case.get("subresource").str(),
        object: case.get("object"),
        old_object: case.get("oldObject").exists().then(|| case.get("oldObject")),
        namespace: "",
        user: Value::absent(),
        now: NOW.into(),
    }
}
