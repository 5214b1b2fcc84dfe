//! Decoding as four real API servers do it: unknown and duplicate fields, the first decode error, the defaults.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use super::support::{NOW, RELEASES, corpus, judge};
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_engine::engine::{DecodedObject, TypeClassification, classify_type};

/// Runs `check`, which returns the differences, on every case of every release.
fn every_case(check: impl Fn(&'static str, Value<'_>, Value<'_>) -> Result<bool, String>) -> usize {
    let cases = corpus("cases.jsonl");
    let (mut compared, mut failures) = (0, Vec::new());
    for release in RELEASES {
        let expected = corpus(&format!("expected-{release}.jsonl"));
        for (case, expected) in cases.lines().zip(expected.lines()) {
            let (case, expected) = (doc::parse(case).expect("JSON"), doc::parse(expected).expect("JSON"));
            match check(release, case.root(), expected.root()) {
                Ok(applied) => compared += usize::from(applied),
                Err(difference) => {
                    failures.push(format!("{release} {}: {difference}", case.root().get("id").str()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    compared
}

#[test]
fn unknown_and_duplicate_fields_are_those_the_server_names() {
    let compared = every_case(|release, case, expected| {
        if expected.get("decodeError").exists() {
            return Ok(false);
        }
        let want: Vec<&str> = expected.get("strictErrors").items().map(Value::str).collect();
        let verdict = judge(release, "strict", case);
        let mut got: Vec<String> =
            verdict.findings().iter().map(|diagnostic| diagnostic.finding.detail.to_string()).collect();
        let (mut new, _): (Vec<&str>, Vec<&str>) =
            want.iter().partition(|text| !text.starts_with("oldObject: "));
        got.sort();
        new.sort_unstable();
        if got == new { Ok(!want.is_empty()) } else { Err(format!("expected {new:?}, found {got:?}")) }
    });
    assert!(compared > 300, "only {compared} cases with strict errors were compared");
}

#[test]
fn the_first_decode_error_has_the_servers_words() {
    let compared = every_case(|release, case, expected| {
        let want = expected.get("decodeError").str();
        // Refusals of a whole type name the server's scheme; type errors name the field.
        if !want.starts_with("json:") && !want.starts_with("parsing time") && !want.starts_with("quantities")
        {
            return Ok(false);
        }
        let verdict = judge(release, "decoding", case);
        let found = verdict.findings().iter().any(|diagnostic| diagnostic.finding.detail == want);
        if found { Ok(true) } else { Err(format!("expected {want}, found {:?}", texts(&verdict))) }
    });
    assert!(compared > 200, "only {compared} decode errors were compared");
}

#[test]
fn a_kind_that_is_no_string_is_named_by_the_type_of_the_wrong_value() {
    for (members, expected) in [
        (r#""apiVersion":"v1","kind":"ResourceClaim","kind":true"#, "bool into Go struct field .kind "),
        (r#""apiVersion":"v1","kind":[],"kind":"ResourceClaim""#, "array into Go struct field .kind "),
        (
            r#""apiVersion":{},"apiVersion":"v1","kind":"ResourceClaim""#,
            "object into Go struct field .apiVersion ",
        ),
        (r#""apiVersion":"v1","kind":7"#, "number into Go struct field .kind "),
    ] {
        let case = format!(r#"{{"operation":"CREATE","object":{{{members}}}}}"#);
        let found = texts(&judge("1.37", "decoding", doc::parse(&case).expect("JSON").root()));
        assert!(found.iter().any(|text| text.contains(expected)), "{members}: {found:?}");
    }
}

fn texts(verdict: &tollgate_engine::engine::Verdict) -> Vec<String> {
    verdict.findings().iter().map(|diagnostic| diagnostic.finding.detail.to_string()).collect()
}

/// Fields whose defaults must equal the server's.
const DEFAULTED: [&str; 4] = ["operator", "allocationMode", "count", "timeAdded"];

#[test]
fn defaults_are_the_servers() {
    let compared = every_case(|release, case, expected| {
        let want = expected.get("defaulted");
        if want.kind() != ValueKind::Object || case.get("subresource").exists() {
            return Ok(false);
        }
        let profile = Profile::named(release).expect("a profile");
        let TypeClassification::Ours { api_version, kind } = classify_type(case.get("object")) else {
            return Err("not ours".to_owned());
        };
        let version = Version::parse(api_version.rsplit('/').next().unwrap_or_default()).expect("a version");
        let kind = ApiKind::parse_dra_kind(kind).expect("a kind");
        let new = DecodedObject::decode(case.get("object"), kind, version, profile);
        // The corpus has what decoding fills in; what the strategy does on update is tested below.
        let ready = new.defaulted_if_changed(None, profile, NOW);
        compare(want, new.view_of_defaulted(ready.as_ref()).value(), "")
    });
    assert!(compared > 1_000, "only {compared} defaulted objects were compared");
}

/// Checks that every defaulted field of `want` is the same in `got`.
fn compare(want: Value<'_>, got: Value<'_>, at: &str) -> Result<bool, String> {
    match want.kind() {
        ValueKind::Object => {
            for (key, member) in want.members() {
                let (name, other) = (key.text(), got.get(key.text()));
                let here = format!("{at}.{name}");
                if DEFAULTED.contains(&name) && !matches!(member.kind(), ValueKind::Object | ValueKind::Array)
                {
                    let (text, found) = (member.text(), if other.exists() { other.text() } else { "absent" });
                    let same = match text {
                        "<now>" => found == NOW,
                        // Go's zero time is kept as given and printed as null.
                        "null" => found == "0001-01-01T00:00:00Z",
                        _ => same_scalar(text, found),
                    };
                    if !same {
                        return Err(format!("{here}: expected {text}, found {found}"));
                    }
                } else if name != "metadata" {
                    compare(member, other, &here)?;
                }
            }
        }
        ValueKind::Array => {
            for (index, item) in want.items().enumerate() {
                compare(item, got.item(index), &format!("{at}[{index}]"))?;
            }
        }
        _ => {}
    }
    Ok(true)
}

/// True if both scalars are equal. Times may differ in offset and fraction, because the server normalizes
/// them.
fn same_scalar(want: &str, got: &str) -> bool {
    let time = |text: &str| tollgate_formats::gotime::parse_rfc3339(text).map(|time| time.seconds).ok();
    want == got || time(want).is_some() && time(want) == time(got)
}

#[test]
fn a_rule_whose_effect_changes_under_an_unchanged_time_gets_a_new_one() {
    // (profile, old effect, new effect, new time, expected time); the stored time is always 2024.
    let table = [
        ("1.35", "None", "NoExecute", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1.36", "None", "NoExecute", "2024-01-01T00:00:00Z", NOW),
        ("1.36", "None", "NoExecute", "2024-01-01T02:00:00+02:00", NOW),
        ("1.37", "None", "None", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1.37", "None", "NoExecute", "2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("kep-5055", "None", "NoExecute", "2024-01-01T00:00:00Z", NOW),
        ("kep-5055-r3", "None", "NoExecute", "2024-01-01T00:00:00Z", NOW),
        ("kep-5055-r2", "None", "NoExecute", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
    ];
    for (name, old_effect, effect, time, expected) in table {
        let profile = Profile::named(name).expect("a profile");
        let rule = |effect: &str, time: &str| {
            format!(r#"{{"spec":{{"taint":{{"key":"k","effect":"{effect}","timeAdded":"{time}"}}}}}}"#)
        };
        let (old, new) = (rule(old_effect, "2024-01-01T00:00:00Z"), rule(effect, time));
        let (old, new) = (doc::parse(&old).expect("JSON"), doc::parse(&new).expect("JSON"));
        let read = |value| DecodedObject::decode(value, ApiKind::DeviceTaintRule, Version::V1alpha3, profile);
        let (old, new) = (read(old.root()), read(new.root()));
        let old_ready = old.defaulted_if_changed(None, profile, NOW);
        let ready = new.defaulted_if_changed(Some(old.view_of_defaulted(old_ready.as_ref())), profile, NOW);
        let found = new.view_of_defaulted(ready.as_ref()).value().get("spec").get("taint").get("timeAdded");
        assert_eq!(found.str(), expected, "{name} {old_effect} → {effect} with {time}");
    }
}
