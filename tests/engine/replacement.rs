//! FoundationDB: when processes on tainted nodes are replaced. The state is `tests/replacement/cluster.yaml`, the
//! example of the design document; each test changes a word of it.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads the fixture")]

use std::fmt::Write as _;

use tollgate_api::view::{FoundationDbCluster, View as _};
use tollgate_document::source::documents;
use tollgate_engine::impact::other_apis::replacement::{
    FoundationDbReplacementInput, forecast_foundationdb_replacements,
};
use tollgate_formats::gotime;

/// One line for each process group: its description, and the times at which it is detected, marked and
/// replaced.
fn describe_groups(now: &str, takes: i64, changes: &[(&str, &str)]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replacement/cluster.yaml");
    let mut text = std::fs::read_to_string(path).expect("the fixture");
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not there");
        text = text.replace(from, to);
    }
    let documents: Vec<_> = documents(&text).map(|document| document.expect("YAML")).collect();
    let of_kind = |kind: &str| -> Vec<_> {
        let roots = documents.iter().map(|document| document.doc.root());
        roots.filter(|root| root.get("kind").str() == kind).collect()
    };
    let cluster = FoundationDbCluster::of(*of_kind("FoundationDBCluster").first().expect("a cluster"));
    let now = gotime::parse_rfc3339(&format!("2026-01-01T{now}Z")).expect("a time");
    let (nodes, pods) = (of_kind("Node"), of_kind("Pod"));
    let forecast = forecast_foundationdb_replacements(FoundationDbReplacementInput {
        cluster,
        status: cluster.json().get("status"),
        nodes: &nodes,
        pods: &pods,
        now,
        replacement_seconds: takes,
    });
    let mut out = String::new();
    for group in &forecast.groups {
        let clock = |time: Option<gotime::Timestamp>| {
            let text = time.map(gotime::rfc3339);
            text.map_or("never".to_owned(), |text| {
                text.strip_prefix("2026-01-01T").unwrap_or(&text).trim_end_matches('Z').to_owned()
            })
        };
        let times = [Some(group.detected), group.replacing, group.replaced].map(clock).join(" ");
        let waits = if group.waits { " waits" } else { "" };
        let by = group.option.0;
        _ = writeln!(out, "{} {} {times} by {by}{waits}", group.id, group.condition.name());
    }
    for note in &forecast.notes {
        _ = writeln!(out, "note: {note}");
    }
    out
}

/// The line of one process group.
fn line(told: &str, id: &str) -> String {
    told.lines().find(|line| line.starts_with(id)).unwrap_or("none").to_owned()
}

const ROOM: (&str, &str) = ("maxConcurrentReplacements: 1", "maxConcurrentReplacements: 9");

#[test]
fn the_example_of_the_document_takes_3000_seconds() {
    // 12:00:00 + 1200 s = 12:20:00, + 1800 s = 12:50:00.
    for (now, condition) in [
        ("12:00:00", "NodeTaintDetected"),
        ("12:19:59", "NodeTaintDetected"),
        ("12:20:00", "NodeTaintReplacing"),
        ("12:49:59", "NodeTaintReplacing"),
    ] {
        let expected =
            format!("storage-1 {condition} 12:00:00 12:20:00 12:50:00 by example.org/disconnected");
        assert_eq!(line(&describe_groups(now, 0, &[ROOM]), "storage-1"), expected, "{now}");
    }
}

#[test]
fn an_exact_key_goes_before_the_wildcard() {
    let expected = "\
storage-1 NodeTaintDetected 12:00:00 12:20:00 12:50:00 by example.org/disconnected
storage-4 NodeTaintDetected 11:00:00 12:20:00 12:50:00 by example.org/disconnected
storage-3 NodeTaintDetected 12:00:00 13:00:00 13:30:00 by *
storage-2 NodeTaintDetected 12:00:00 14:00:00 14:30:00 by example.org/maintenance
note: pod sample-storage-6: node gone is not in the cluster state
";
    assert_eq!(describe_groups("12:00:00", 0, &[ROOM]), expected);
    // In another order, too: the wildcard first.
    let (first, last) = (
        "      - key: \"example.org/maintenance\"\n        durationInSeconds: 7200\n",
        "      - key: \"*\"\n        durationInSeconds: 3600\n",
    );
    let swapped = [ROOM, (first, ""), (last, &format!("{last}{first}"))];
    assert_eq!(describe_groups("12:00:00", 0, &swapped), expected);
}

#[test]
fn there_is_room_for_so_many_at_once() {
    // One at a time, each takes ten minutes.
    let one = describe_groups("12:00:00", 600, &[]);
    assert_eq!(
        line(&one, "storage-1"),
        "storage-1 NodeTaintDetected 12:00:00 12:20:00 12:50:00 by example.org/disconnected"
    );
    assert_eq!(
        line(&one, "storage-4"),
        "storage-4 NodeTaintDetected 11:00:00 12:20:00 13:00:00 by example.org/disconnected waits"
    );
    assert_eq!(line(&one, "storage-3"), "storage-3 NodeTaintDetected 12:00:00 13:00:00 13:30:00 by *");
    let two =
        describe_groups("12:00:00", 600, &[("maxConcurrentReplacements: 1", "maxConcurrentReplacements: 2")]);
    assert_eq!(
        line(&two, "storage-4"),
        "storage-4 NodeTaintDetected 11:00:00 12:20:00 12:50:00 by example.org/disconnected"
    );
    // How long they take is not known: then it is said that they wait, and for what.
    let unknown = describe_groups("12:00:00", 0, &[]);
    assert!(line(&unknown, "storage-4").ends_with("12:50:00 by example.org/disconnected waits"), "{unknown}");
    assert!(unknown.contains("note: at most 1 at a time"), "{unknown}");
    // Nobody says how many: one.
    assert_eq!(describe_groups("12:00:00", 600, &[("      maxConcurrentReplacements: 1\n", "")]), one);
}

#[test]
fn what_is_overdue_is_replaced_now() {
    let late = describe_groups("15:00:00", 0, &[ROOM]);
    assert_eq!(
        line(&late, "storage-1"),
        "storage-1 NodeTaintReplacing 12:00:00 12:20:00 15:00:00 by example.org/disconnected"
    );
}

#[test]
fn what_the_operator_wrote_down_counts() {
    // Marked at 12:30, because the operator reconciled late; another is being replaced already.
    let marked = (
        "spec:\n  automationOptions:",
        "status:\n  processGroups:\n  - processGroupID: storage-1\n    \
                   processGroupConditions: [{type: NodeTaintReplacing, timestamp: 1767270600}]\nspec:\n  automationOptions:",
    );
    let found = describe_groups("12:31:00", 0, &[ROOM, marked]);
    assert_eq!(
        line(&found, "storage-1"),
        "storage-1 NodeTaintReplacing 12:00:00 12:30:00 13:00:00 by example.org/disconnected"
    );
    let removed = (
        "spec:\n  automationOptions:",
        "status:\n  processGroups:\n  - processGroupID: log-1\n    \
                    removalTimestamp: \"2026-01-01T12:00:00Z\"\nspec:\n  automationOptions:",
    );
    let found = describe_groups("12:45:00", 600, &[removed]);
    assert_eq!(
        line(&found, "storage-1"),
        "storage-1 NodeTaintReplacing 12:00:00 12:20:00 12:55:00 by example.org/disconnected waits"
    );
}

#[test]
fn a_taint_without_a_time_counts_from_its_detection() {
    let timeless = ("effect: NoSchedule, timeAdded: \"2026-01-01T12:00:00Z\"", "effect: NoSchedule");
    // Nobody has detected it yet: now, at the earliest.
    assert_eq!(
        line(&describe_groups("12:10:00", 0, &[ROOM, timeless]), "storage-1"),
        "storage-1 NodeTaintDetected 12:10:00 12:30:00 13:00:00 by example.org/disconnected"
    );
    let status = |conditions: &str| {
        let status = "status:\n  processGroups:\n  - processGroupID: storage-1\n    processGroupConditions:";
        format!("{status} [{conditions}]\nspec:\n  automationOptions:")
    };
    let told_with = |conditions: &str| {
        let status = status(conditions);
        line(
            &describe_groups("12:31:00", 0, &[ROOM, timeless, ("spec:\n  automationOptions:", &status)]),
            "storage-1",
        )
    };
    // 12:05:00, and marked at 12:30:00.
    let (detected, marked) = (
        "{type: NodeTaintDetected, timestamp: 1767269100}",
        "{type: NodeTaintReplacing, timestamp: 1767270600}",
    );
    assert_eq!(
        told_with(&format!("{detected}, {marked}")),
        "storage-1 NodeTaintReplacing 12:05:00 12:30:00 13:00:00 by example.org/disconnected"
    );
    assert_eq!(
        told_with(detected),
        "storage-1 NodeTaintReplacing 12:05:00 12:25:00 12:55:00 by example.org/disconnected"
    );
    assert_eq!(
        told_with(marked),
        "storage-1 NodeTaintReplacing 12:30:00 12:30:00 13:00:00 by example.org/disconnected"
    );
    // A condition without a time holds all the same.
    assert_eq!(
        told_with("{type: NodeTaintReplacing}"),
        "storage-1 NodeTaintReplacing 12:31:00 12:31:00 13:01:00 by example.org/disconnected"
    );
}

#[test]
fn never_is_never() {
    let ignored = ("durationInSeconds: 1200", "durationInSeconds: 9223372036854775807");
    let found = describe_groups("12:00:00", 0, &[ROOM, ignored]);
    assert_eq!(
        line(&found, "storage-1"),
        "storage-1 NodeTaintDetected 12:00:00 never never by example.org/disconnected"
    );
    // Of two taints the sooner one decides, and never is not sooner.
    assert_eq!(
        line(&found, "storage-4"),
        "storage-4 NodeTaintDetected 11:00:00 13:00:00 13:30:00 by example.org/maintenance"
    );
    let off = describe_groups("12:00:00", 0, &[ROOM, ("enabled: true", "enabled: false")]);
    assert_eq!(
        line(&off, "storage-1"),
        "storage-1 NodeTaintDetected 12:00:00 12:20:00 never by example.org/disconnected"
    );
    assert!(off.contains("note: automatic replacements are off"), "{off}");
    let none =
        describe_groups("12:00:00", 0, &[("maxConcurrentReplacements: 1", "maxConcurrentReplacements: 0")]);
    assert!(
        none.contains("12:20:00 never") && none.contains("note: maxConcurrentReplacements is 0"),
        "{none}"
    );
    // Negative options are passed over: the wildcard holds then.
    let negative =
        describe_groups("12:00:00", 0, &[ROOM, ("durationInSeconds: 1200", "durationInSeconds: -1")]);
    assert_eq!(line(&negative, "storage-1"), "storage-1 NodeTaintDetected 12:00:00 13:00:00 13:30:00 by *");
}

#[test]
fn without_options_the_feature_is_off() {
    let found = describe_groups("12:00:00", 0, &[("taintReplacementOptions", "otherOptions")]);
    assert_eq!(found, "note: not enabled: taintReplacementOptions is not set\n");
}

#[test]
fn a_cluster_may_label_its_pods_otherwise() {
    let labels = (
        "spec:\n  automationOptions:",
        "spec:\n  labels: {matchLabels: {foundationdb.org/fdb-cluster-name: other}, \
                   processGroupIDLabels: [foundationdb.org/fdb-process-group-id]}\n  automationOptions:",
    );
    let found = describe_groups("12:00:00", 0, &[ROOM, labels]);
    assert_eq!(found.lines().count(), 1, "{found}");
    assert_eq!(
        line(&found, "storage-1"),
        "storage-1 NodeTaintDetected 12:00:00 12:20:00 12:50:00 by example.org/disconnected"
    );
}
