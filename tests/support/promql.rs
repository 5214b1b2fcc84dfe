//! Finds the metrics in PromQL expressions, and the labels by which they are selected. It scans words and is not a
//! parser: `promtool` checks the syntax (`make monitoring`).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

/// A metric and the labels it is selected by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Selector {
    pub(crate) metric: String,
    pub(crate) labels: BTreeSet<String>,
}

/// The metrics of Tollgate and of API servers that an expression names, recorded ones (`tollgate:…`) included.
pub(crate) fn selectors(expression: &str) -> Vec<Selector> {
    let pattern = r#"\b((?:tollgate|apiserver)[_:][a-z0-9_:]+)(?:\{([^}]*)\})?"#;
    let (metrics, label) =
        (Regex::new(pattern).expect("a pattern"), Regex::new(r#"(\w+)\s*(?:=~|!~|!=|=)\s*""#));
    let label = label.expect("a pattern");
    let labels = |text: &str| label.captures_iter(text).map(|found| found[1].to_owned()).collect();
    metrics
        .captures_iter(expression)
        .map(|found| Selector {
            metric: found[1].to_owned(),
            labels: found.get(2).map(|group| labels(group.as_str())).unwrap_or_default(),
        })
        .collect()
}

/// Every value of a field `expr`, wherever it is.
pub(crate) fn expressions(document: &Value) -> Vec<String> {
    match document {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) if name == "expr" => vec![text.clone()],
                value => expressions(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

/// The documents of a file of the repository.
pub(crate) fn documents(path: &str) -> Vec<Value> {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    tollgate::documents(&text)
        .map(|document| {
            let document = document.unwrap_or_else(|fault| panic!("{path}: {fault:?}"));
            serde_json::from_str(&document.doc.root().to_json()).expect("JSON")
        })
        .collect()
}
