//! Compares the matching of taints and tolerations, which scheduler and eviction controller share, with upstream's
//! results.
#![expect(clippy::disallowed_methods, reason = "reads the corpus")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::io::Read as _;

use tollgate_api::view::{Taint, Toleration, View as _};
use tollgate_document::doc;
use tollgate_engine::tolerance::tolerates;

#[test]
fn agrees_with_upstream_on_every_pair() {
    let path = format!("{}/tests/conformance/tolerates.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).expect("the corpus is in the tree");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip of UTF-8");
    let mut pairs = 0;
    for line in text.lines() {
        let case = doc::parse(line).expect("JSON");
        let case = case.root();
        let (toleration, taint) = (Toleration::of(case.get("toleration")), Taint::of(case.get("taint")));
        assert_eq!(Some(tolerates(toleration, taint)), case.get("tolerates").bool(), "{line}");
        pairs += 1;
    }
    assert!(pairs > 0, "the corpus is empty");
}
