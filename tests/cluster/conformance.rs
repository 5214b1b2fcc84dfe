//! `tollgate conformance --cluster`: what is sent, what is counted, and when it stops.
//!
//! The double accepts whatever has no planned answer, so most of what Tollgate refuses is a difference here.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::double::Double;
use crate::program::{folder, tollgate};
use crate::running::until;

const KINDS: [&str; 4] = ["ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"];

/// A double of a 1.36 API server that serves nearly all kinds.
fn double(name: &str) -> Double {
    let double = Double::start(name);
    double.release("36");
    double.report_gates(&[("DRADeviceTaints", true)]);
    for version in ["v1", "v1beta1", "v1beta2"] {
        double.serve_kinds(version, &KINDS);
    }
    double.serve_kinds("v1alpha3", &["DeviceTaintRule"]);
    double.put("/api/v1/namespaces", json!({"metadata": {"name": "default"}}));
    double
}

fn command(double: &Double, folder: &Path, arguments: &[&str]) -> Command {
    let arguments = [&["conformance", "--cluster"], arguments].concat();
    let mut command = tollgate(folder, &arguments);
    command.env("KUBECONFIG", double.kubeconfig());
    command
}

/// Runs a command. Returns the exit code, stdout and stderr.
fn run_command(double: &Double, folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = command(double, folder, arguments).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

fn status(reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "reason": reason, "message": message})
}

const FAST: [&str; 5] = ["--yes", "--rate", "1000", "-o", "json"];

#[test]
fn answers_are_compared_and_counted_by_class() {
    let (double, folder) = (double("conformance"), folder("conformance"));
    // The first cases of the corpus, by name: valid slices and rules.
    double.plan(
        "flint-ember-0",
        403,
        status("Forbidden", r#"admission webhook "a.b" denied the request: no"#),
    );
    double.plan("delta-north-2", 503, status("ServiceUnavailable", "busy"));
    let causes = json!([{"reason": "FieldValueRequired", "field": "spec.x", "message": "Required value"}]);
    let mut invalid = status("Invalid", "no");
    invalid["details"] = json!({"causes": causes});
    double.plan("jade-raven-1", 422, invalid);
    let (code, out, note) =
        run_command(&double, &folder, &[&FAST[..], &["--out", "differences.jsonl"]].concat());
    assert_eq!(code, 1, "{note}");
    assert!(note.contains("objects will be sent as dry-run create requests to namespace default"), "{note}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let total = &report["total"];
    let count = |name: &str| total[name].as_u64().unwrap_or_else(|| panic!("{name}: {total}"));
    assert_eq!((report["release"].as_str(), report["profile"].as_str()), (Some("1.36"), Some("1.36")));
    assert_eq!((&report["context"], &report["gatesRead"]), (&json!("double"), &json!(true)));
    assert_eq!((&report["complete"], &report["updatesNotAsked"]), (&json!(true), &json!(253)));
    assert_eq!([count("otherAdmission"), count("failed"), count("notAllowed")], [1, 1, 0]);
    // v1beta2 rules are known to 1.36 and not served here; v1 rules are not known to it.
    assert!(count("notServed") > 100, "{total}");
    let sent = double.count("POST ") as u64;
    assert_eq!(sent, count("compared") + 2, "{total}");
    // The double accepts everything: what Tollgate accepts agrees, and the rest differs.
    assert!(count("sameVerdict") > 300 && count("sameVerdict") < count("compared"), "{total}");
    assert_eq!(count("compared") - count("sameVerdict"), count("differing"), "{total}");
    let file = std::fs::read_to_string(folder.join("differences.jsonl")).expect("written");
    assert_eq!(file.lines().count() as u64, count("differing"));
    let planned = file.lines().find(|line| line.contains("jade-raven-1\"")).expect("the planned refusal");
    let planned: Value = serde_json::from_str(planned).expect("JSON");
    assert_eq!(planned["differs"], json!(["verdict", "fields", "texts"]));
    assert_eq!(planned["server"], json!({"allowed": false, "errors": ["spec.x: Required value"]}));
    assert_eq!(
        (&planned["tollgate"]["allowed"], &planned["kind"]),
        (&json!(true), &json!("DeviceTaintRule"))
    );
    // Nothing is stored, and nothing is sent that could be.
    assert_eq!(double.count("dryRun=All&fieldValidation=Ignore"), double.count("POST "));
    assert_eq!(double.count("/namespaces/default"), double.count("/namespaces/"));
    assert!(double.object("/apis/resource.k8s.io/v1/resourceslices", "flint-ember-4").is_none());
}

#[test]
fn the_table_is_for_people() {
    let (double, folder) = (double("conformance-text"), folder("conformance-text"));
    double.refuse(&[("/metrics", 403)]);
    let (_, out, note) = run_command(&double, &folder, &["--yes", "--rate", "1000"]);
    assert!(out.starts_with("context    double\n"), "{out}");
    assert!(out.contains("gates      not read from the API server: the defaults of 1.36; off: "), "{out}");
    assert!(out.contains("\nKIND                   VERSION   COMPARED  VERDICT"), "{out}");
    assert!(out.contains("\nResourceSlice          v1beta1   141 "), "{out}");
    assert!(out.contains("\nnot sent: 253 updates, which require stored objects\n"), "{out}");
    assert!(note.contains("cannot read the feature gates (/metrics: the API server returned 403"), "{note}");
    assert!(note.contains("add --out FILE to write the differences to a file"), "{note}");
}

#[test]
fn nothing_is_sent_without_consent() {
    let (double, folder) = (double("conformance-consent"), folder("conformance-consent"));
    let (code, _, error) = run_command(&double, &folder, &[]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("stdin is not a terminal; add --yes to send"), "{error}");
    let output = tollgate(&folder, &["conformance", "--yes"]).env("KUBECONFIG", double.kubeconfig()).output();
    assert_eq!(output.expect("it runs").status.code(), Some(2));
    let (code, _, error) = run_command(&double, &folder, &["--yes", "--kubernetes", "1.36"]);
    assert_eq!(code, 2, "{error}");
    assert_eq!(double.count(""), 0, "not even the release is asked for");
    let (code, _, error) = run_command(&double, &folder, &["--yes", "--namespace", "nowhere"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("namespace nowhere does not exist"), "{error}");
    assert_eq!(double.count("POST "), 0);
}

#[test]
fn a_kind_that_is_not_allowed_is_not_asked_for_again() {
    let (double, folder) = (double("conformance-rights"), folder("conformance-rights"));
    let message =
        r#"resourceslices.resource.k8s.io is forbidden: User "us" cannot create resource "resourceslices""#;
    double.plan("flint-ember-0", 403, status("Forbidden", message));
    let (code, out, _) = run_command(&double, &folder, &FAST);
    assert_eq!(code, 1, "the others differ");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert!(report["total"]["notAllowed"].as_u64().is_some_and(|count| count > 500), "{report}");
    let slices = double.count("/resourceslices?dryRun");
    assert!((1..=8).contains(&slices), "{slices}: those that were in flight");
}

#[test]
fn a_server_that_fails_is_left_alone() {
    let (double, folder) = (double("conformance-fails"), folder("conformance-fails"));
    double.refuse(&[("POST ", 503)]);
    let (code, out, error) = run_command(&double, &folder, &FAST);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("stopped after 20 consecutive failures; the last failure: 503: "), "{error}");
    let report: Value = serde_json::from_str(&out).expect("the table so far");
    assert_eq!((&report["complete"], &report["total"]["compared"]), (&json!(false), &json!(0)));
    assert!(double.count("POST ") < 40);
}

#[test]
fn a_server_that_stores_what_it_should_not_ends_the_run() {
    let (double, folder) = (double("conformance-stores"), folder("conformance-stores"));
    double.plan("flint-ember-0", 201, json!({"metadata": {"name": "flint-ember-0", "resourceVersion": "7"}}));
    let (code, _, error) = run_command(&double, &folder, &FAST);
    assert_eq!(code, 3, "{error}");
    assert!(
        error.contains("stored the ResourceSlice of case v-taint-key-0001 despite dryRun=All"),
        "{error}"
    );
    assert!(double.count("POST ") < 20);
}

#[test]
fn an_interrupt_ends_with_the_table_so_far() {
    let (double, folder) = (double("conformance-interrupt"), folder("conformance-interrupt"));
    let mut command = command(&double, &folder, &["--yes", "--rate", "20"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    until("some were sent", || double.count("POST ") > 5);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    let output = child.wait_with_output().expect("ended");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!([Some(1), Some(3)].contains(&output.status.code()), "{error}");
    assert!(
        out.contains("\nall ")
            && error.contains("interrupted; the table covers only the responses received so far"),
        "{out}{error}"
    );
    assert!(double.count("POST ") < 1_000);
}
