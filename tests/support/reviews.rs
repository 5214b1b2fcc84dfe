//! The recorded AdmissionReviews, and the checks an API server makes on the answers.
#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "reads the recordings")]

use std::io::Read as _;

use base64::Engine as _;
use tollgate::{Endpoint, Value, ValueKind};

/// The recordings, one JSON object per line with `name` and `review`.
pub(crate) fn recordings() -> String {
    unpacked("recordings/reviews.jsonl.gz")
}

/// Reads a compressed file of the tests.
pub(crate) fn unpacked(name: &str) -> String {
    let path = format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).expect("it is in the tree");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip and UTF-8");
    text
}

/// The parts of a response that the API server would reject or silently drop.
pub(crate) fn faults(uid: &str, endpoint: Endpoint, answer: &str) -> Vec<String> {
    let answer = match tollgate::parse_json(answer) {
        Ok(answer) => answer,
        Err(error) => return vec![format!("not JSON: {error}")],
    };
    let (review, response) = (answer.root(), answer.root().get("response"));
    let mut faults = Vec::new();
    let mut check = |holds: bool, fault: &str| {
        if !holds {
            faults.push(fault.to_owned());
        }
    };
    check(response.exists(), "response was absent");
    check(response.get("uid").str() == uid, "another uid");
    check(review.get("apiVersion").str() == "admission.k8s.io/v1", "another apiVersion");
    check(review.get("kind").str() == "AdmissionReview", "another kind");
    check(response.get("allowed").bool().is_some(), "allowed is no bool");
    let (patch, patch_type) = (response.get("patch"), response.get("patchType"));
    check(patch.exists() == patch_type.exists(), "patch and patchType must come together");
    check(endpoint == Endpoint::Mutate || !patch.exists(), "a validating webhook may not return a patch");
    if patch.exists() {
        check(patch_type.str() == "JSONPatch", "unsupported patch type");
        let bytes = base64::engine::general_purpose::STANDARD.decode(patch.str()).unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap_or_default();
        let operations = tollgate::parse_json(&text);
        check(operations.is_ok_and(|patch| patch.root().items().count() > 0), "undecodable or empty patch");
    }
    if response.get("allowed").bool() == Some(false) {
        let status = response.get("status");
        check(status.get("code").int().is_some_and(|code| code >= 400), "a refusal needs a code");
        check(!status.get("message").str().is_empty(), "denied without explanation");
    } else {
        check(!response.get("status").exists(), "status is ignored when allowed");
    }
    let warnings: Vec<&str> = response.get("warnings").items().map(Value::str).collect();
    check(warnings.len() <= 8, "too many warnings");
    for (index, warning) in warnings.iter().enumerate() {
        check(!warning.is_empty() && warning.chars().count() <= 120, "an empty or long warning");
        check(!warning.chars().any(char::is_control), "a warning with control characters is dropped");
        check(!warnings.iter().take(index).any(|earlier| earlier == warning), "a warning given twice");
    }
    for (key, value) in response.get("auditAnnotations").members() {
        let key = key.text();
        let ends = key.starts_with(|c: char| c.is_ascii_alphanumeric())
            && key.ends_with(|c: char| c.is_ascii_alphanumeric());
        let inner = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        check(ends && inner && key.len() <= 63, "an audit key that the server drops");
        check(value.kind() == ValueKind::String, "an audit value that is no string");
    }
    faults
}
