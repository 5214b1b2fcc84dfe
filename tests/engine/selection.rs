//! Tests the devices that a rule with a class or CEL expressions selects, as in the slice tracker of 1.33 and 1.34,
//! and the partitions of selected devices that stay allocatable.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use tollgate_api::profile::Profile;
use tollgate_document::source::documents;
use tollgate_engine::impact::{self, DetailsToStore, ImpactQuery, ProposedChange, Snapshot};
use tollgate_formats::gotime;

const ALL: DetailsToStore = DetailsToStore { attributes: true, counters: true };

fn snapshot(details: DetailsToStore, text: &str) -> Snapshot {
    let mut snapshot = Snapshot::with_details(details);
    for document in documents(text) {
        snapshot.apply(document.expect("YAML").doc.root()).expect("an object that fits");
    }
    snapshot
}

/// The number of selected devices, whether it is an upper bound, the partitions that stay allocatable, and the notes.
fn assess(state: &Snapshot, rule: &str, profile: &str) -> (usize, bool, Vec<String>, Vec<String>) {
    let profile = Profile::named(profile).expect("a profile");
    let at = gotime::parse_rfc3339("2026-01-01T00:00:00Z").expect("a time");
    let document = documents(rule).next().expect("a document").expect("YAML");
    let change = ProposedChange::from_rule_manifest(document.doc.root(), None, state, profile, at)
        .expect("a rule that fits");
    let query = ImpactQuery { snapshot: state, change: &change, profile, at };
    let impact = impact::assess(query);
    assert_eq!(impact::impact_counts(query), impact.counts, "{rule}");
    assert_eq!(query.is_upper_bound(), impact.is_upper_bound, "{rule}");
    let partitions = impact.partitions.iter().map(|partition| partition.device.to_owned()).collect();
    (impact.counts.published, impact.is_upper_bound, partitions, impact::impact_notes(query, &impact))
}

fn rule(selector: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nmetadata: {{name: r}}\nspec:\n  deviceSelector: \
         {selector}\n  taint: {{key: example.com/t, effect: NoExecute}}\n"
    )
}

const CLASSES: &str = r#"
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: all}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fast}
spec: {selectors: [{cel: {expression: 'device.attributes["d.example.com"].speed > 5'}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: broken}
spec: {selectors: [{cel: {expression: 'device.attributes["d.example.com"].speed > 8'}}, {cel: {expression: 'no.such(thing'}}]}
---
"#;

const SLICES: &str = r#"
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: old}
spec:
  driver: d.example.com
  pool: {name: one, generation: 1, resourceSliceCount: 1}
  nodeName: n-1
  devices: [{name: gone, attributes: {speed: {int: 9}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: one}
spec:
  driver: d.example.com
  pool: {name: one, generation: 2, resourceSliceCount: 1}
  nodeName: n-1
  devices:
  - {name: z-fast, attributes: {speed: {int: 9}}, capacity: {memory: {value: 8Gi}}}
  - {name: a-slow, attributes: {speed: {int: 1}}}
  - {name: m-bare}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: two}
spec:
  driver: d.example.com
  pool: {name: two, generation: 1, resourceSliceCount: 1}
  nodeName: n-1
  devices:
  - {name: z-fast, attributes: {speed: {int: 6}}, allowMultipleAllocations: true}
"#;

#[test]
fn classes_and_expressions_select_what_the_tracker_selects() {
    let state = snapshot(ALL, &format!("{CLASSES}{SLICES}"));
    let cel = |expression: &str| format!("selectors: [{{cel: {{expression: '{expression}'}}}}]");
    let fails = |what: &str| format!("an expression fails for {what}");
    let fast = r#"device.attributes["d.example.com"].speed > 5"#;
    let memory = r#"device.capacity["d.example.com"].memory.isGreaterThan(quantity("1Gi"))"#;
    for (selector, selected, note) in [
        ("{deviceClassName: all}".to_owned(), 4, None),
        ("{deviceClassName: fast}".to_owned(), 2, Some(fails("1 device, so"))),
        ("{deviceClassName: fast, pool: two}".to_owned(), 1, None),
        ("{deviceClassName: fast, pool: one, device: a-slow}".to_owned(), 0, None),
        ("{deviceClassName: missing}".to_owned(), 0, Some("DeviceClass `missing` does not exist".to_owned())),
        (format!("{{{}}}", cel(fast)), 2, Some(fails("1 device, so"))),
        (format!("{{{}}}", cel(memory)), 1, Some(fails("3 devices, so"))),
        (format!("{{deviceClassName: fast, {}}}", cel(memory)), 1, Some(fails("2 devices, so"))),
        (format!("{{deviceClassName: missing, {}}}", cel("true")), 0, Some("does not exist".to_owned())),
        // The tracker gives up on slice `one`, where a device gets as far as the broken expression, and not on `two`.
        (
            "{deviceClassName: broken}".to_owned(),
            0,
            Some("DeviceTaintRule to 1 ResourceSlice (the first is one".to_owned()),
        ),
        ("{deviceClassName: broken, pool: two}".to_owned(), 0, None),
        ("{driver: other.example.com, deviceClassName: all}".to_owned(), 0, None),
    ] {
        for profile in ["1.33", "1.34", "kep-5055-r2", "kep-5055"] {
            let (published, is_upper_bound, _, notes) = assess(&state, &rule(&selector), profile);
            assert_eq!((published, is_upper_bound), (selected, false), "{profile} {selector}: {notes:?}");
            match &note {
                Some(note) => assert!(notes.iter().any(|text| text.contains(note)), "{selector}: {notes:?}"),
                None => {
                    assert!(!notes.iter().any(|text| text.contains("expression")), "{selector}: {notes:?}")
                }
            }
        }
    }
    // The tracker does not tell expressions whether a device allows multiple allocations.
    let shared = rule(&format!("{{{}}}", cel("device.allowMultipleAllocations")));
    assert_eq!(assess(&state, &shared, "kep-5055").0, 0);
}

#[test]
fn without_classes_or_attributes_the_numbers_are_upper_bounds() {
    let by_class = rule("{deviceClassName: fast}");
    let by_expression = rule("{selectors: [{cel: {expression: 'false'}}]}");
    let no_classes = snapshot(ALL, SLICES);
    assert_eq!(assess(&no_classes, &by_class, "1.34").0, 4);
    assert!(assess(&no_classes, &by_class, "1.34").1);
    assert_eq!(assess(&no_classes, &by_expression, "1.34").0, 0);
    let no_attributes = snapshot(DetailsToStore::default(), &format!("{CLASSES}{SLICES}"));
    for rule in [&by_class, &by_expression] {
        let (published, is_upper_bound, _, notes) = assess(&no_attributes, rule, "1.34");
        assert_eq!((published, is_upper_bound), (4, true));
        assert_eq!(
            notes,
            ["deviceClassName and selectors are not evaluated, so the numbers are upper bounds"]
        );
    }
}

/// A slice of devices with what each consumes of one counter set.
fn consuming(devices: &[(&str, &str)]) -> String {
    let devices: Vec<String> = devices
        .iter()
        .map(|(name, counters)| {
            format!("  - {{name: {name}, consumesCounters: [{{counterSet: s, counters: {{{counters}}}}}]}}\n")
        })
        .collect();
    format!(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: devices}}\nspec:\n  driver: \
         d.example.com\n  pool: {{name: one, generation: 1, resourceSliceCount: 2}}\n  nodeName: n-1\n  devices:\n{}",
        devices.concat()
    )
}

const COUNTERS: &str = "
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: counters}
spec:
  driver: d.example.com
  pool: {name: one, generation: 1, resourceSliceCount: 2}
  nodeName: n-1
  sharedCounters: [{name: s, counters: {memory: {value: 40Gi}, left: {value: '1'}, right: {value: '1'}}}]
";

#[test]
fn partitions_are_parts_of_the_same_hardware() {
    let devices = consuming(&[
        ("whole", "memory: {value: 40Gi}, left: {value: '1'}, right: {value: '1'}"),
        ("left", "memory: {value: 20Gi}, left: {value: '1'}"),
        ("left-small", "memory: {value: 10Gi}, left: {value: '1'}"),
        ("right", "memory: {value: 20Gi}, right: {value: '1'}"),
        ("memory", "memory: {value: 5Gi}"),
        ("nothing", "left: {value: '0'}"),
        ("other", "fans: {value: '1'}"),
    ]);
    let (known, unknown) = (snapshot(ALL, &format!("{devices}{COUNTERS}")), snapshot(ALL, &devices));
    for (device, parts, parts_without_sets) in [
        (
            "whole",
            &["left", "left-small", "memory", "right"][..],
            &["left", "left-small", "memory", "right"][..],
        ),
        ("left", &["left-small"], &["left-small", "memory"]),
        ("right", &[], &["memory"]),
        ("memory", &[], &[]),
        ("nothing", &[], &[]),
        ("other", &[], &[]),
    ] {
        let rule = rule(&format!("{{driver: d.example.com, pool: one, device: {device}}}"));
        assert_eq!(assess(&known, &rule, "1.37").2, parts, "{device}");
        assert_eq!(assess(&unknown, &rule, "1.37").2, parts_without_sets, "{device} without counter sets");
    }
    assert!(assess(&known, &rule("{driver: d.example.com}"), "1.37").2.is_empty(), "all are selected");
}

#[test]
fn partitions_that_another_rule_taints_are_not_listed() {
    let devices = consuming(&[("whole", "memory: {value: 40Gi}"), ("half", "memory: {value: 20Gi}")]);
    let whole = rule("{driver: d.example.com, pool: one, device: whole}");
    let stored = |effect: &str| {
        let text = rule("{device: half}").replace("name: r", "name: stored").replace("NoExecute", effect);
        snapshot(ALL, &format!("{devices}{COUNTERS}---\n{text}"))
    };
    for (effect, expected) in [("NoSchedule", &[][..]), ("NoExecute", &[]), ("None", &["half"])] {
        assert_eq!(assess(&stored(effect), &whole, "1.37").2, expected, "{effect}");
    }
}
