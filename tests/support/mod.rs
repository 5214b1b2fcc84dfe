//! What the tests over the corpus share: reading it and asking the engine about one case.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use std::io::Read as _;

use tollgate::doc::Value;
use tollgate::engine::{Attributes, Engine, Judgement, Labels, Operation, parse_rules};
use tollgate::profile::Profile;

/// The releases whose answers the corpus holds.
pub const RELEASES: [&str; 4] = ["1.34", "1.35", "1.36", "1.37"];

/// The moment all judgements are made.
pub const NOW: &str = "2026-01-02T03:04:05Z";

/// One file of the corpus.
#[expect(clippy::disallowed_methods, reason = "reads the corpus")]
pub fn corpus(name: &str) -> String {
    let path = format!("{}/tests/conformance/{name}.gz", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).expect("the corpus is in the tree");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .expect("the corpus is gzip and UTF-8");
    text
}

/// The engine's exact answer to a case, by the rules named.
pub fn judge(release: &str, rules: &str, case: Value<'_>) -> Judgement {
    let engine =
        Engine::new(vec![Profile::named(release).expect("a profile")], parse_rules(rules).expect("origins"))
            .exactly();
    engine.validate(&attributes(case), Labels::Unknown)
}

/// What a case asks.
pub fn attributes(case: Value<'_>) -> Attributes<'_, Value<'_>> {
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
