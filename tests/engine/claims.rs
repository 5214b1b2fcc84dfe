//! Claims, templates and classes where the corpus is silent: 1.33, parts that an update leaves unchanged, odd values.
//!
//! Each line is a release, an object (and a stored one), and what the server prints. The texts follow from the
//! sources of that release.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use tollgate_api::profile::Profile;
use tollgate_document::doc;
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Operation};
use tollgate_engine::rules::RuleSet;

fn reported_messages(release: &str, object: &str, old: Option<&str>) -> Vec<String> {
    let engine = Engine::new(
        vec![Profile::named(release).expect("a profile")],
        RuleSet::parse("upstream,decoding").expect("origins"),
    )
    .with_api_server_verdicts();
    let (object, old) = (doc::parse(object).expect("JSON"), old.map(|old| doc::parse(old).expect("JSON")));
    let verdict = engine.validate(
        &Attributes {
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            subresource: "",
            object: object.root(),
            old_object: old.as_ref().map(doc::Doc::root),
            namespace: "",
            user: doc::Value::absent(),
            now: "2026-01-02T03:04:05Z".into(),
        },
        LabelsIfKnown::Unknown,
    );
    let findings = verdict.findings().iter().map(|diagnostic| &diagnostic.finding);
    let spec = findings.filter(|finding| finding.server_path().starts_with("spec"));
    spec.map(|finding| format!("{}: {}", finding.server_path(), finding.server_message_without_path()))
        .collect()
}

fn claim(version: &str, devices: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/{version}","kind":"ResourceClaim","metadata":{{"name":"c","namespace":"n"}},"spec":{{"devices":{devices}}}}}"#
    )
}

fn template(version: &str, devices: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/{version}","kind":"ResourceClaimTemplate","metadata":{{"name":"t","namespace":"n"}},"spec":{{"spec":{{"devices":{devices}}}}}}}"#
    )
}

fn begins(said: &[String], expected: &[&str]) {
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
}

#[test]
fn the_oldest_release_has_its_own_words() {
    let both =
        r#"{"requests":[{"name":"r","exactly":{"deviceClassName":"c"},"firstAvailable":[{"name":"S"}]}]}"#;
    begins(
        &reported_messages("1.33", &claim("v1beta2", both), None),
        &[
            "spec.devices.requests[0]: Invalid value: \"null\": exactly one of `exactly` or `firstAvailable`",
            "spec.devices.requests[0].firstAvailable[0].deviceClassName: Required value",
            "spec.devices.requests[0].firstAvailable[0].name: Invalid value: \"S\": a lowercase RFC 1123 label",
        ],
    );
    begins(
        &reported_messages("1.33", &claim("v1beta1", r#"{"constraints":[{}]}"#), None),
        &["spec.devices.constraints[0].matchAttribute: Required value"],
    );
    begins(
        &reported_messages(
            "1.33",
            &claim("v1beta1", r#"{"config":[{"opaque":{"driver":"d","parameters":1}}]}"#),
            None,
        ),
        &[
            "spec.devices.config[0].opaque.parameters: Invalid value: \"<value omitted>\": parameters must be a valid",
        ],
    );
}

#[test]
fn declarative_validation_skips_what_an_update_left_unchanged() {
    let stored = r#"{"requests":[{"name":"a","deviceClassName":"c","tolerations":[{"operator":"X"}]},{"name":"a","deviceClassName":"c"}],
        "constraints":[{"matchAttribute":"/b"}],"config":[{"opaque":{"driver":"A_","parameters":{}}}]}"#;
    let old = template("v1beta1", stored);
    let new = template("v1beta1", &stored.replace("/b", "/c"));
    let create = reported_messages("1.37", &old, None);
    begins(
        &create,
        &[
            "spec.spec.devices.config[0].opaque.driver: Invalid value: \"A_\": an RFC 1123 subdomain",
            "spec.spec.devices.constraints[0].matchAttribute: Invalid value: \"\": prefix must not be empty",
            "spec.spec.devices.requests[0].tolerations[0].operator: Unsupported value: \"X\"",
            "spec.spec.devices.requests[1]: Duplicate value: {\"name\":\"a\",",
        ],
    );
    begins(
        &reported_messages("1.37", &old, Some(&old)),
        &[
            "spec.spec.devices.config[0].opaque.driver: Invalid value: \"A_\": a lowercase RFC 1123 subdomain",
            "spec.spec.devices.constraints[0].matchAttribute: Invalid value: \"\": the domain must not be empty",
            "spec.spec.devices.requests[0].exactly.tolerations[0].operator: Unsupported value: \"X\"",
            "spec.spec.devices.requests[1]: Duplicate value: \"a\"",
        ],
    );
    begins(
        &reported_messages("1.37", &new, Some(&old)),
        &[
            "spec: Invalid value: {\"Spec\":{\"Devices\":{\"Requests\":[{\"Name\":\"a\",\"Exactly\":{",
            "spec.spec.devices.config[0].opaque.driver: Invalid value: \"A_\": a lowercase RFC 1123 subdomain",
            "spec.spec.devices.constraints[0].matchAttribute: Invalid value: \"\": prefix must not be empty",
            "spec.spec.devices.requests[0].exactly.tolerations[0].operator: Unsupported value: \"X\"",
            "spec.spec.devices.requests[1]: Duplicate value: \"a\"",
        ],
    );
    // A changed request has fields that are unchanged.
    let stored =
        r#"{"requests":[{"name":"a","deviceClassName":"c","count":1,"tolerations":[{"operator":"X"}]}]}"#;
    for (old, new, path) in [
        (r#""count":1"#, r#""count":2"#, "requests[0].exactly.tolerations[0]"),
        (r#""operator":"X""#, r#""operator":"X","key":"a/b""#, "requests[0].tolerations[0]"),
    ] {
        let changed = template("v1beta1", &stored.replace(old, new));
        begins(
            &reported_messages("1.37", &changed, Some(&template("v1beta1", stored))),
            &[
                "spec: Invalid value: {\"Spec\":{\"Devices\":{\"Requests\":[{\"Name\":\"a\",\"Exactly\":{",
                &format!("spec.spec.devices.{path}.operator: Unsupported value: \"X\""),
            ],
        );
    }
}

#[test]
fn odd_values_are_judged_as_go_does() {
    let config = |driver: &str, parameters: &str| {
        format!(r#"{{"config":[{{"opaque":{{"driver":"{driver}","parameters":{parameters}}}}}]}}"#)
    };
    begins(
        &reported_messages("1.36", &claim("v1", &config("d", r#"{"a":[1,1e999]}"#)), None),
        &[
            "spec.devices.config[0].opaque.parameters: Invalid value: \"<value omitted>\": error parsing data as \
           JSON: json: cannot unmarshal number 1e999 into Go value of type float64",
        ],
    );
    // The long s is matched by the case-insensitive expression and is no letter of a lowered name.
    begins(
        &reported_messages("1.37", &claim("v1", &config("\u{17f}", "{}")), None),
        &["spec.devices.config[0].opaque.driver: Invalid value: \"\u{17f}\": a lowercase RFC 1123 subdomain"],
    );
    let long = "é".repeat(40);
    begins(
        &reported_messages("1.37", &claim("v1", &config(&long, "{}")), None),
        &[
            "spec.devices.config[0].opaque.driver: Invalid value: ",
            "spec.devices.config[0].opaque.driver: Too long: may not be more than 63 bytes",
        ],
    );
    // A flat request without a class gets no mode, and only hand-written validation minds.
    begins(
        &reported_messages(
            "1.37",
            &claim("v1beta1", r#"{"requests":[{"name":"r","tolerations":[]}]}"#),
            None,
        ),
        &[
            "spec.devices.requests[0].exactly.allocationMode: Unsupported value: \"\": supported values: \"All\"",
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ],
    );
}

#[test]
fn long_lists_are_judged_like_short_ones() {
    let requests: Vec<String> =
        (0..100).map(|n| format!(r#"{{"name":"r{n}","exactly":{{"deviceClassName":"c"}}}}"#)).collect();
    let devices = format!(
        r#"{{"requests":[{},{}],"constraints":[{{"requests":["r99","r98/x","nope"],"matchAttribute":"a/b"}}]}}"#,
        requests.join(","),
        requests[7]
    );
    begins(
        &reported_messages("1.34", &claim("v1", &devices), None),
        &[
            "spec.devices.constraints[0].requests[1]: Invalid value: \"r98/x\": must be the name of a request",
            "spec.devices.constraints[0].requests[2]: Invalid value: \"nope\": must be the name of a request",
            "spec.devices.requests: Too many: 101: must have at most 32 items",
            "spec.devices.requests[100].name: Duplicate value: \"r7\"",
        ],
    );
    begins(
        &reported_messages("1.35", &claim("v1", &devices), None),
        &[
            "spec.devices.constraints[0].requests[1]: Invalid value: \"r98/x\": must be the name of a request",
            "spec.devices.constraints[0].requests[2]: Invalid value: \"nope\": must be the name of a request",
            "spec.devices.requests: Too many: 101: must have at most 32 items",
        ],
    );
}

#[test]
fn derived_attributes_must_be_used_by_their_own_request() {
    let requests = r#""requests":[{"name":"a","firstAvailable":[
        {"name":"s","deviceClassName":"c","derivedAttributes":[{"name":"d/x","expression":"device.driver"}]}]}]"#;
    for (constraint, fine) in [
        (r#"{"matchAttribute":"d/x"}"#, true),
        (r#"{"distinctAttribute":"d/x","requests":["a"]}"#, true),
        (r#"{"matchAttribute":"d/x","requests":["a/s"]}"#, true),
        (r#"{"matchAttribute":"d/y"}"#, false),
    ] {
        let few = claim("v1", &format!(r#"{{{requests},"constraints":[{constraint}]}}"#));
        assert_eq!(reported_messages("1.37", &few, None).is_empty(), fine, "{constraint}");
        // More references than are searched one by one.
        let many = vec![r#"{"matchAttribute":"d/z","requests":["a","a/s"]}"#; 31].join(",");
        let many = claim("v1", &format!(r#"{{{requests},"constraints":[{constraint},{many}]}}"#));
        assert_eq!(reported_messages("1.37", &many, None).is_empty(), fine, "{constraint}");
    }
}
