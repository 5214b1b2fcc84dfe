//! Updates and status requests beyond the corpus: what the server takes from the stored object, and how it counts.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use super::support;
use tollgate_document::doc;

/// The sorted messages, each with the user's path, that a release reports for a case with `object`, `old` and
/// `status`.
fn texts(release: &str, case: &str) -> Vec<String> {
    let doc = doc::parse(case).expect("JSON");
    let verdict = support::judge(release, "upstream,decoding", doc.root());
    let mut texts: Vec<String> = verdict
        .findings()
        .iter()
        .map(|diagnostic| {
            let finding = &diagnostic.finding;
            format!(
                "{} | {}: {}",
                finding.user_path(),
                finding.server_path(),
                finding.server_message_without_path()
            )
        })
        .collect();
    texts.sort();
    texts
}

fn claim(operation: &str, subresource: &str, new: &str, old: &str) -> String {
    let head = r#""apiVersion":"resource.k8s.io/v1beta2","kind":"ResourceClaim""#;
    let spec = r#""spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}"#;
    let old = if old.is_empty() { String::new() } else { format!(r#","oldObject":{{{head},{spec},{old}}}"#) };
    format!(
        r#"{{"operation":"{operation}","subresource":"{subresource}","object":{{{head},{spec},{new}}}{old}}}"#
    )
}

const NAMED: &str = r#""metadata":{"name":"a"}"#;

fn status(new: &str, old: &str) -> String {
    claim(
        "UPDATE",
        "status",
        &format!(r#"{NAMED},"status":{{{new}}}"#),
        &format!(r#"{NAMED},"status":{{{old}}}"#),
    )
}

fn allocation(devices: &[&str]) -> String {
    let results: Vec<String> = devices
        .iter()
        .map(|device| format!(r#"{{"request":"r","driver":"d.example","pool":"p","device":"{device}"}}"#))
        .collect();
    format!(r#""allocation":{{"devices":{{"results":[{}]}}}}"#, results.join(","))
}

fn entry(device: &str, more: &str) -> String {
    format!(r#"{{"driver":"d.example","pool":"p","device":"{device}"{more}}}"#)
}

#[test]
fn entries_of_deallocated_devices_are_gone_and_the_rest_moves_up() {
    let old = allocation(&["x", "y"]);
    let new = format!(r#""devices":[{},{}]"#, entry("x", ""), entry("z", ""));
    assert_eq!(
        texts("1.36", &status(&new, &old)),
        [
            r#"status.devices[1] | status.devices[0]: Invalid value: {"Driver":"d.example","Pool":"p","Device":"z","ShareID":""}: must be an allocated device in the claim"#
        ]
    );
    assert_eq!(
        texts("1.33", &status(&new, &old)),
        [
            "status.devices[1] | status.devices[0]: Invalid value: d.example/p/z: must be an allocated device in the claim"
        ]
    );
}

#[test]
fn declarative_words_are_for_what_changed() {
    let bad = entry("x", r#","shareID":"X""#);
    let old = format!(r#"{},"devices":[{bad}]"#, allocation(&["x"]));
    let own = "status.devices[0].shareID | status.devices[0].shareID: Invalid value: \"X\": ";
    let has = |texts: Vec<String>, detail: &str| texts.contains(&format!("{own}{detail}"));
    let old_words = "error validating uid: invalid UUID length: 1";
    assert!(has(texts("1.37", &status(&old, &old)), old_words));
    assert!(has(
        texts("1.37", &status(&old, &allocation(&["x"]))),
        "must be a lowercase UUID in 8-4-4-4-12 format"
    ));
    assert!(has(texts("1.36", &status(&old, &allocation(&["x"]))), old_words));

    let twice = r#""reservedFor":[{"resource":"pods","name":"p","uid":"1"},{"resource":"pods","name":"q","uid":"1"}]"#;
    let (new, old) = (format!("{},{twice}", allocation(&["x"])), allocation(&["x"]));
    let at = "status.reservedFor[1] | status.reservedFor[1]: Duplicate value: ";
    assert_eq!(texts("1.37", &status(&new, &new)), [format!("{at}\"1\"")]);
    assert_eq!(
        texts("1.37", &status(&new, &old)),
        [format!(r#"{at}{{"resource":"pods","name":"q","uid":"1"}}"#)]
    );
    assert_eq!(
        texts("1.34", &status(&new, &old)),
        [r#"status.reservedFor[1].uid | status.reservedFor[1].uid: Duplicate value: "1""#]
    );
}

#[test]
fn an_allocation_is_judged_once_and_then_compared() {
    let bad = allocation(&["X"]);
    assert_eq!(texts("1.37", &status(&bad, &bad)), Vec::<String>::new());
    assert_eq!(
        texts("1.37", &status(&bad, &allocation(&["x"]))),
        ["status.allocation | status.allocation: Invalid value: null: field cannot be modified once set"]
    );
    assert_eq!(texts("1.36", &status("", &bad)), Vec::<String>::new());
    let admin = allocation(&["x"]).replace(r#""device":"x""#, r#""device":"x","adminAccess":true"#);
    assert_eq!(texts("1.36", &status(&admin, "")).len(), 1);
    assert_eq!(texts("1.36", &status(&admin, &admin)), Vec::<String>::new());
}

#[test]
fn a_status_request_keeps_the_stored_metadata() {
    let bad = r#""metadata":{"name":"a","labels":{"k":"b c"},"finalizers":["nodomain"]}"#;
    assert_eq!(texts("1.36", &claim("UPDATE", "status", bad, NAMED)), Vec::<String>::new());
    // What is stored is checked all the same: with the generic rules, and those of finalizers.
    let stored = texts("1.36", &claim("UPDATE", "status", NAMED, bad));
    assert_eq!(stored.len(), 2, "{stored:?}");
    assert!(stored[0].starts_with("metadata.finalizers[0] | metadata.finalizers[0]: "), "{stored:?}");
    assert!(stored[1].starts_with("metadata.labels[k] | metadata.labels: "), "{stored:?}");
}

#[test]
fn what_an_update_may_not_change() {
    for (new, old, expected) in [
        (r#""uid":"1""#, "", r#"metadata.uid | metadata.uid: Invalid value: "1": field is immutable"#),
        ("", r#""uid":"1""#, ""),
        (
            r#""deletionTimestamp":"2024-01-01T01:00:00+01:00""#,
            "",
            r#"metadata.deletionTimestamp | metadata.deletionTimestamp: Invalid value: "2024-01-01T00:00:00Z": field is immutable"#,
        ),
        ("", r#""deletionTimestamp":"2024-01-01T01:00:00Z","deletionGracePeriodSeconds":3"#, ""),
        (r#""creationTimestamp":"2020-01-01T00:00:00Z","generation":7,"resourceVersion":"9""#, "", ""),
        (
            r#""namespace":"b""#,
            "",
            r#"metadata.namespace | metadata.namespace: Invalid value: "b": field is immutable"#,
        ),
        ("", r#""namespace":"default""#, ""),
    ] {
        let meta = |more: &str| {
            let comma = if more.is_empty() { "" } else { "," };
            format!(r#""metadata":{{"name":"a"{comma}{more}}}"#)
        };
        for release in ["1.34", "1.37"] {
            let found = texts(release, &claim("UPDATE", "", &meta(new), &meta(old)));
            assert_eq!(found.join("\n"), expected, "{release}");
        }
    }
}

#[test]
fn generated_names_are_checked_as_they_will_be() {
    let generated =
        |prefix: &str| claim("CREATE", "", &format!(r#""metadata":{{"generateName":"{prefix}"}}"#), "");
    let long = "x".repeat(254);
    for good in ["gpu-", "a.", "gpu", &format!("{}.", "x".repeat(57))] {
        let found = texts("1.36", &generated(good));
        assert!(found.iter().all(|text| !text.contains("<rand>")), "{good}: {found:?}");
    }
    assert_eq!(
        texts("1.36", &generated(&long)),
        [format!(
            "metadata.generateName | metadata.generateName: Invalid value: \"{long}\": must be no more than 253 characters"
        )]
    );
    // One `a` takes the place of the last two bytes, so only the name itself is refused.
    let found = texts("1.36", &generated("A-"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found.iter().all(|text| text.starts_with(
        r#"metadata.generateName | metadata.name: Invalid value: "A-<rand>": a lowercase RFC 1123 subdomain"#
    )));
    // The cut may be in the middle of a character.
    let found = texts("1.36", &generated(&format!("{}é", "x".repeat(57))));
    assert!(found.iter().any(|text| text.contains(r#"xxx\xc3<rand>""#)), "{found:?}");
}

#[test]
fn a_bad_key_of_a_map_is_shown_at_the_key() {
    let slice = r#"{"operation":"CREATE","object":{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",
        "metadata":{"name":"s","labels":{"-bad":"x","good":"-bad"},"annotations":{"-bad":""}},
        "spec":{"driver":"d.example.com","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},
        "devices":[{"name":"a","attributes":{"a-b":{"int":1}},"capacity":{"c-d":{"value":"1"}}}]}}}"#;
    let doc = doc::parse(slice).expect("JSON");
    for release in support::RELEASES {
        let verdict = support::judge(release, "upstream", doc.root());
        let on_key = |field: &str| {
            let found = verdict.findings().iter().find(|diagnostic| diagnostic.finding.user_path() == field);
            found.unwrap_or_else(|| panic!("{release}: no finding at {field}")).finding.on_key
        };
        assert!(on_key("metadata.labels[-bad]"), "{release}");
        assert!(!on_key("metadata.labels[good]"), "{release}");
        assert!(on_key("metadata.annotations[-bad]"), "{release}");
        assert!(on_key("spec.devices[0].attributes[a-b]"), "{release}");
        assert!(on_key("spec.devices[0].capacity[c-d]"), "{release}");
    }
}
