//! Server and command line on the same policy cases: same verdict, same findings.
//!
//! The cases of `support/parity.rs`, once as AdmissionReviews through `engine::admit` and `tollgate review`, once as
//! manifests through `tollgate validate`. `tests/serve/policies.rs` sends the same reviews over HTTPS.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_macros, reason = "numbers for people, with --nocapture")]
#![allow(clippy::disallowed_types, reason = "reads reports as any program would")]
#![expect(clippy::disallowed_methods, reason = "writes the inputs of the program")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tollgate::Endpoint;

use super::parity::{NAMESPACES, NOW, POLICIES, RULES, admitted, cases, reviews};
use super::program::folder;

fn tollgate(folder: &Path, arguments: &[&str]) -> String {
    let common =
        ["--policy", "policies.yaml", "--namespaces", "namespaces.yaml", "--rules", RULES, "--now", NOW];
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .current_dir(folder)
        .args(arguments)
        .args(common)
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A finding without its position in the file, which a review does not have.
fn without_position(finding: &Value) -> Value {
    let mut finding = finding.clone();
    for key in ["line", "column", "endLine", "endColumn"] {
        finding.as_object_mut().unwrap().remove(key);
    }
    finding
}

#[test]
fn server_and_command_line_say_the_same() {
    let folder = folder("policy-parity");
    let cases = cases();
    std::fs::write(folder.join("policies.yaml"), POLICIES).unwrap();
    std::fs::write(folder.join("namespaces.yaml"), NAMESPACES).unwrap();
    let objects: Vec<String> = cases.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("objects.json"), objects.join("\n")).unwrap();
    let texts = reviews(&cases);
    std::fs::write(folder.join("reviews.json"), texts.join("\n")).unwrap();

    let validated: Value =
        serde_json::from_str(&tollgate(&folder, &["validate", "objects.json", "-o", "json"])).unwrap();
    let reviewed = tollgate(&folder, &["review", "--findings", "reviews.json"]);
    let reviewed: Vec<Value> = reviewed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let served: Vec<Value> = admitted("policies.yaml", &texts, Endpoint::Validate)
        .iter()
        .map(|answer| serde_json::from_slice(answer).unwrap())
        .collect();

    let mut verdicts = [0usize; 2];
    for (index, object) in cases.iter().enumerate() {
        let offline = &validated["results"][index];
        let findings: Vec<Value> =
            offline["findings"].as_array().unwrap().iter().map(without_position).collect();
        assert_eq!(&Value::from(findings.clone()), &reviewed[index]["findings"], "{object}");
        let allowed = offline["verdict"] == "valid";
        assert_eq!(reviewed[index]["allowed"], allowed, "{object}");
        let response = &served[index]["response"];
        assert_eq!(response["allowed"], allowed, "{object}");
        // The server's answer has a cause for each denial, and nothing else.
        let denied: Vec<&Value> = findings.iter().filter(|finding| finding["level"] == "deny").collect();
        let causes = response["status"]["details"]["causes"].as_array().cloned().unwrap_or_default();
        let told: Vec<String> = causes
            .iter()
            .map(|cause| {
                format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())
            })
            .collect();
        let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
        let expected: Vec<String> = denied
            .iter()
            .map(|finding| format!("{} [{}]", text(finding, "message"), text(finding, "rule")))
            .collect();
        assert_eq!(told, expected, "{object}");
        if !allowed {
            assert_eq!(
                (&response["status"]["code"], &response["status"]["reason"]),
                (&json!(403), &json!("Forbidden"))
            );
        }
        verdicts[usize::from(allowed)] += 1;
    }
    println!("{} cases: {} refused, {} admitted", cases.len(), verdicts[0], verdicts[1]);
    assert!(cases.len() >= 200 && verdicts.iter().all(|count| *count > 20), "{verdicts:?}");
}
