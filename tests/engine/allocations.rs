//! Measures the allocations for a valid object: the rules check a ResourceSlice of 400 KB with every field set
//! without allocating.
#![allow(clippy::disallowed_macros, clippy::print_stdout, reason = "numbers for people, with --nocapture")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use super::support::{self, NOW};
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_document::doc;
use tollgate_document::finding::Findings;
use tollgate_engine::admission::{AdminAccess, Attributes, Context, LabelsIfKnown};
use tollgate_engine::engine::DecodedObject;
use tollgate_engine::rules::RuleSet;

/// 64 devices with 16 taints and 32 attributes and capacities each, clean in 1.36 and 1.37.
fn large_slice() -> String {
    use std::fmt::Write as _;
    let mut devices = String::new();
    for device in 0..64 {
        let mut taints = String::new();
        for taint in 0..16 {
            let comma = if taint > 0 { "," } else { "" };
            let key = format!(
                "health-of-the-device.gpu.vendor.example.com/condition-{taint}-reported-by-the-driver"
            );
            _ = write!(
                taints,
                r#"{comma}{{"key":"{key}","value":"value-{device}-{taint}-with-some-length-to-it-and-a-few-more-letters","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}}"#
            );
        }
        let mut attributes = String::new();
        for attribute in 0..24 {
            let comma = if attribute > 0 { "," } else { "" };
            let value = match attribute % 4 {
                0 => format!(
                    r#"{{"string":"a string value of attribute {attribute} that is not short at all"}}"#
                ),
                1 => format!(r#"{{"int":{attribute}}}"#),
                2 => r#"{"bool":true}"#.to_owned(),
                _ => format!(r#"{{"version":"1.{attribute}.0-rc.1+build.{device}"}}"#),
            };
            _ = write!(
                attributes,
                r#"{comma}"resource.some-long-name.gpu.vendor.example.com/attribute_{attribute}":{value}"#
            );
        }
        let mut capacity = String::new();
        for index in 0..8 {
            let comma = if index > 0 { "," } else { "" };
            _ = write!(
                capacity,
                r#"{comma}"resource.some-long-name.gpu.vendor.example.com/capacity_{index}":{{"value":"80Gi"}}"#
            );
        }
        let comma = if device > 0 { "," } else { "" };
        _ = write!(
            devices,
            r#"{comma}{{"name":"gpu-{device}","attributes":{{{attributes}}},"capacity":{{{capacity}}},"taints":[{taints}]}}"#
        );
    }
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"node-1-gpu","labels":{{"app":"gpu"}}}},"spec":{{"driver":"gpu.vendor.example.com","pool":{{"name":"node-1","generation":1,"resourceSliceCount":1}},"nodeName":"node-1","devices":[{devices}]}}}}"#
    )
}

#[test]
fn a_clean_slice_costs_the_rules_nothing() {
    let text = large_slice();
    assert!(text.len() > 390_000, "{} bytes", text.len());
    for name in ["1.36", "1.37", "kep-5055"] {
        let profile = Profile::named(name).expect("a profile");
        let rules = RuleSet::parse("upstream,documented,lint,decoding").expect("origins");
        let mut total = 0;
        let mut in_rules = 0;
        let all = allocation_counter::measure(|| {
            let doc = doc::parse(&text).expect("JSON");
            let new = DecodedObject::decode(doc.root(), ApiKind::ResourceSlice, Version::V1, profile);
            assert!(!new.has_fatal_errors() && new.strict.is_empty());
            let ready = new.defaulted_if_changed(None, profile, NOW);
            let admission = Attributes::for_create(new.view_of_defaulted(ready.as_ref()), "default", "");
            let context = Context {
                profile,
                labels: LabelsIfKnown::Unknown,
                admin_access: AdminAccess::Unknown,
                cluster: None,
                classes: None,
                claims: None,
                from_review: false,
                is_stored: false,
                cel: &tollgate_cel::UncachedChecker,
            };
            let mut findings = Findings::default();
            in_rules = allocation_counter::measure(|| {
                rules.run_with_ratcheting(&admission, &context, &mut findings)
            })
            .count_total;
            let is_empty = findings.kept().is_empty() && !findings.has_omitted_where(|_| true);
            assert!(is_empty, "{name}: {findings:?}");
            total = doc.root().get("spec").get("devices").len();
        });
        assert_eq!(total, 64);
        println!(
            "{name}: {} bytes, {} allocations, {in_rules} of them in the rules",
            text.len(),
            all.count_total
        );
        assert_eq!(in_rules, 0, "{name}: allocations in the rules");
        assert!(all.count_total <= 1_000, "{name}: {} allocations in decode and rules", all.count_total);
    }
}

/// Breaks one field of the slice at a time, at every depth, and expects a finding each time.
#[test]
fn every_part_of_the_large_slice_is_checked() {
    let text = large_slice();
    let table = [
        (r#""name":"gpu-63""#, r#""name":"gpu_63""#),
        ("condition-15-reported", "condition 15-reported"),
        ("value-63-15-with", "value 63-15-with"),
        (r#""effect":"NoSchedule""#, r#""effect":"NoScheduled""#),
        ("attribute_23", "attribute-23"),
        ("1.23.0-rc.1+build.63", "1.23-rc.1+build.63"),
        ("capacity_7", "capacity-7"),
        (r#""driver":"gpu.vendor.example.com""#, r#""driver":"gpu_vendor""#),
        (r#""generation":1"#, r#""generation":-1"#),
        (r#""resourceSliceCount":1"#, r#""resourceSliceCount":0"#),
        (r#""nodeName":"node-1""#, r#""nodeName":"node_1""#),
        (r#""app":"gpu""#, r#""app":"gpu!""#),
        (r#""name":"node-1-gpu""#, r#""name":"node_1""#),
    ];
    for (good, bad) in table {
        assert!(text.contains(good), "{good}");
        let at = text.rfind(good).expect("found");
        let broken = format!("{}{bad}{}", &text[..at], &text[at + good.len()..]);
        let case = format!(r#"{{"operation":"CREATE","object":{broken}}}"#);
        let doc = doc::parse(&case).expect("JSON");
        let verdict = support::judge("1.37", "upstream", doc.root());
        assert!(!verdict.is_allowed(), "{bad} was not noticed");
    }
}
