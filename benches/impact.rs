//! What impact costs in a cluster of 50,000 devices and 20,000 pods: filling a snapshot from parsed objects, one rule
//! against it, and what it weighs.
//!
//! Times are those this thread was on the processor, where the system tells: a busy machine does not count.
//!
//! Bars: 200 ms for a rule offline after parsing (filling included); from a filled snapshot 2 ms for a rule that
//! selects up to 100 devices and 30 ms for one that selects all; 1 ms for counting the devices of 200 rules; 250 MiB.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a bench reads the clock, prints, and stops when its input is broken"
)]

use std::hint::black_box;
use std::time::Duration;

use tollgate::{Doc, ImpactQuery, Profile, ProposedChange, Snapshot, SnapshotKind, Timestamp};
use tollgate_engine::impact::{RuleTaintedDevicesQuery, impact_counts, impact_notes, violated_budgets};

const POOLS: usize = 6_250;
const DEVICES: usize = 8;
const PODS: usize = 20_000;
const NAMESPACES: usize = 200;

fn main() {
    let texts = objects();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!(
        "{} devices, {PODS} pods, {} objects, {} MiB of JSON",
        POOLS * DEVICES,
        texts.len(),
        bytes >> 20
    );
    let before = resident();
    // As a watcher does it: one object in memory at a time.
    let mut watched = Snapshot::new();
    for text in &texts {
        watched.apply(tollgate::parse_json(text).expect("JSON").root()).expect("an object that fits");
    }
    println!("  snapshot weighs                   {:>8.1} MiB   (bar: 250)", mebibytes(resident() - before));
    let copy = watched.clone();
    println!("  and a published copy beside it    {:>8.1} MiB", mebibytes(resident() - before));
    drop(copy);

    let documents: Vec<Doc<'_>> =
        texts.iter().map(|text| tollgate::parse_json(text).expect("JSON")).collect();
    let fill = best(5, || {
        let mut snapshot = Snapshot::new();
        for document in &documents {
            snapshot.apply(document.root()).expect("an object that fits");
        }
        snapshot
    });
    assert_eq!(watched.count(SnapshotKind::Pod), PODS);
    let all = ask(&watched, "{}", true);
    println!("  filling from parsed objects       {:>8.1} ms", millis(fill));
    println!("  … and one rule over everything    {:>8.1} ms    (bar: 200)", millis(fill + all));
    for (what, selector, bar) in [
        ("device", r#"{"driver":"gpu-7.example.com","pool":"node-00407","device":"gpu-3"}"#, 2),
        ("pool of 8", r#"{"driver":"gpu-7.example.com","pool":"node-00407"}"#, 2),
        ("driver of 96", r#"{"driver":"nic.example.com"}"#, 2),
        ("device name in every pool", r#"{"device":"gpu-3"}"#, 30),
        ("everything", "{}", 30),
    ] {
        println!(
            "  {what:<26} admission {:>9.4} ms    report {:>9.4} ms    (bar: {bar})",
            millis(ask(&watched, selector, false)),
            millis(ask(&watched, selector, true)),
        );
    }
    println!("  clone                             {:>8.1} ms", millis(best(5, || watched.clone())));
    for (what, selector) in [
        ("of devices", r#"{"driver":"DRIVER","pool":"POOL","device":"gpu-3"}"#),
        ("of pools", r#"{"driver":"DRIVER","pool":"POOL"}"#),
        ("of names in every pool", r#"{"driver":"DRIVER","device":"gpu-NUMBER"}"#),
        ("of names without a driver", r#"{"device":"gpu-NUMBER"}"#),
    ] {
        let time = count_together(&mut watched, selector);
        println!("  200 rules together, {what:<26} {:>9.4} ms    (bar: 1)", millis(time));
    }
}

/// 200 rules, and one more that is checked against a limit of a percentage.
fn count_together(snapshot: &mut Snapshot, selector: &str) -> Duration {
    let text = |number: usize| {
        let pool = number * 31;
        let selector = selector
            .replace("DRIVER", &driver(pool))
            .replace("POOL", &format!("node-{pool:05}"))
            .replace("NUMBER", &number.to_string());
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{{"name":"r{number}"}},"spec":{{"deviceSelector":{selector},"taint":{{"key":"example.com/drain","effect":"NoSchedule"}}}}}}"#
        )
    };
    for number in 0..200 {
        snapshot.apply(tollgate::parse_json(&text(number)).expect("JSON").root()).expect("a rule");
    }
    let new = text(200);
    let document = tollgate::parse_json(&new).expect("JSON");
    let profile = Profile::named("1.37").expect("a profile");
    let at = Timestamp::parse("2026-01-01T00:00:00Z").expect("a time");
    let snapshot = &*snapshot;
    best(9, || {
        let change =
            ProposedChange::from_rule_manifest(document.root(), None, snapshot, profile, at).expect("a rule");
        let together = RuleTaintedDevicesQuery {
            snapshot,
            profile,
            without: "r200",
            with: Some(&change),
            by_class: true,
        };
        let tainted = together.devices_tainted_by_rules();
        let drivers = snapshot.publishing_or_allocated_driver_names();
        drivers
            .map(|driver| tainted.count_for_driver(driver) + snapshot.published_device_count(driver))
            .sum::<usize>()
    })
}

/// One rule; `report`: with every pod, its reasons, budgets and differences.
fn ask(snapshot: &Snapshot, selector: &str, report: bool) -> Duration {
    let rule = format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{{"name":"drain"}},"spec":{{"deviceSelector":{selector},"taint":{{"key":"example.com/drain","effect":"NoExecute"}}}}}}"#
    );
    let document = tollgate::parse_json(&rule).expect("JSON");
    let profile = Profile::named("1.37").expect("a profile");
    let at = Timestamp::parse("2026-01-01T00:00:00Z").expect("a time");
    best(9, || {
        let change =
            ProposedChange::from_rule_manifest(document.root(), None, snapshot, profile, at).expect("a rule");
        let query = ImpactQuery { snapshot, change: &change, profile, at };
        if report {
            let impact = tollgate::assess_impact(query);
            let pods = impact.pods.len() + violated_budgets(snapshot, &impact).len();
            pods + impact_notes(query, &impact).len()
        } else {
            impact_counts(query).pods
        }
    })
}

/// The shortest of some rounds. What they made is kept until all are done: a program fills one snapshot, and does not
/// tidy up after the last one first.
fn best<R>(rounds: usize, mut run: impl FnMut() -> R) -> Duration {
    let mut kept = Vec::with_capacity(rounds);
    (0..rounds)
        .map(|_| {
            let start = on_processor();
            let made = black_box(run());
            let time = on_processor().saturating_sub(start);
            kept.push(made);
            time
        })
        .min()
        .unwrap_or_default()
}

/// How long this thread has been on the processor.
fn on_processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

/// Resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}

/// Slices, then claims and pods, budgets last: what a cluster lists.
fn objects() -> Vec<String> {
    let mut texts = Vec::new();
    for pool in 0..POOLS {
        let driver = driver(pool);
        let attributes = r#""attributes":{"model":{"string":"H100"},"uuid":{"string":"GPU-5f8f7e2c-aaaa-bbbb-cccc-0123456789ab"},"driverVersion":{"version":"1.2.3"}},"capacity":{"memory":{"value":"80Gi"}}"#;
        let devices: Vec<String> =
            (0..DEVICES).map(|device| format!(r#"{{"name":"gpu-{device}",{attributes}}}"#)).collect();
        texts.push(format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"node-{pool:05}-{driver}-abcde","uid":"{}"}},"spec":{{"driver":"{driver}","nodeName":"node-{pool:05}","pool":{{"name":"node-{pool:05}","generation":3,"resourceSliceCount":1}},"devices":[{}]}}}}"#,
            uid(pool),
            devices.join(",")
        ));
    }
    for pod in 0..PODS {
        let (namespace, uid) = (format!("team-{:03}", pod % NAMESPACES), uid(1_000_000 + pod));
        let (pool, device) = (pod * 5 / 16 % POOLS, pod % DEVICES);
        let tolerations = match pod % 4 {
            0 => "[]",
            1 => {
                r#"[{"key":"example.com/drain","operator":"Exists","effect":"NoExecute","tolerationSeconds":600}]"#
            }
            2 => r#"[{"key":"example.com/drain","operator":"Exists","effect":"NoExecute"}]"#,
            _ => {
                r#"[{"key":"example.com/other","operator":"Exists","effect":"NoExecute"},{"operator":"Exists","effect":"NoSchedule"}]"#
            }
        };
        texts.push(format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"train-{pod:05}-gpu-x7k2p","namespace":"{namespace}","ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"train-{pod:05}","uid":"{uid}","controller":true}}]}},"spec":{{"devices":{{"requests":[{{"name":"gpu","exactly":{{"deviceClassName":"gpu.example.com","allocationMode":"ExactCount","count":1,"tolerations":{tolerations}}}}}]}}}},"status":{{"allocation":{{"devices":{{"results":[{{"request":"gpu","driver":"{}","pool":"node-{pool:05}","device":"gpu-{device}","tolerations":{tolerations}}}]}}}},"reservedFor":[{{"resource":"pods","name":"train-{pod:05}","uid":"{uid}"}}]}}}}"#,
            driver(pool)
        ));
        texts.push(format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"train-{pod:05}","namespace":"{namespace}","uid":"{uid}","labels":{{"app":"train-{}","pod-template-hash":"7c9f8d6b5","team":"{namespace}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"train-7c9f8d6b5","uid":"x","controller":true}}]}},"spec":{{"nodeName":"node-{pool:05}","containers":[{{"name":"main","image":"registry.example/train:1"}}],"resourceClaims":[{{"name":"gpu","resourceClaimTemplateName":"gpu"}}]}},"status":{{"phase":"Running","resourceClaimStatuses":[{{"name":"gpu","resourceClaimName":"train-{pod:05}-gpu-x7k2p"}}]}}}}"#,
            pod % 7
        ));
    }
    for namespace in 0..NAMESPACES {
        for app in 0..7 {
            texts.push(format!(
                r#"{{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"train-{app}","namespace":"team-{namespace:03}"}},"spec":{{"selector":{{"matchLabels":{{"app":"train-{app}"}}}}}},"status":{{"disruptionsAllowed":1}}}}"#
            ));
        }
    }
    texts
}

/// Ten drivers share the pools, but for twelve pools of a small one.
fn driver(pool: usize) -> String {
    if pool < 12 { "nic.example.com".to_owned() } else { format!("gpu-{}.example.com", pool % 10) }
}

fn uid(number: usize) -> String {
    format!("5f8f7e2c-1111-4222-8333-{number:012}")
}
