//! Reports for the pages: recorded ones of the examples, and made-up ones.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tollgate_picture::pages::{self, DrainCommands, ReportJson};
use tollgate_picture::{ReportProvenance, SafeText};

use crate::hostile;

/// The documentation that pages link to.
pub(crate) const DOCS: &str = "https://docs.example.com/tollgate";

/// What pages say besides the report.
pub(crate) fn page(command: &str, incomplete: &[&str]) -> ReportProvenance {
    ReportProvenance {
        source: SafeText::from("context production (https://production.example.com:6443)"),
        taken: Some(SafeText::from("2026-11-16T08:50:00Z")),
        incomplete: incomplete.iter().map(|what| SafeText::from(*what)).collect(),
        command: SafeText::from(command),
        version: SafeText::from("0.1.0"),
        docs: SafeText::from(DOCS),
        is_part: false,
    }
}

/// A report that was recorded from the program, from `crates/picture/tests/reports`.
fn recorded(name: &str) -> String {
    let file = format!("{}/tests/reports/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{file}: {why}"))
}

/// The pages of recorded reports, with their names.
pub(crate) fn recorded_pages() -> Vec<(&'static str, String)> {
    let page = |command: &str| page(&format!("tollgate {command} -o html"), &[]);
    let (impact, capacity) = (recorded("impact.jsonl"), recorded("capacity.json"));
    let impacts: Vec<ReportJson<'_>> =
        impact.lines().map(|json| ReportJson { json, capacity: Some(capacity.as_str()) }).collect();
    let (forecast, drain) = (recorded("forecast.json"), recorded("drain.json"));
    let record = |json| ReportJson { json, capacity: Some(capacity.as_str()) };
    let commands = DrainCommands {
        run: SafeText::from("tollgate drain node/gpu-node-03 --context production"),
        undo: SafeText::from("tollgate undrain node/gpu-node-03 --context production"),
        is_for_dump: true,
    };
    [
        ("devices", pages::devices(&recorded("devices.json"), &page("devices"))),
        ("impact", pages::impact(&impacts, &page("impact"))),
        ("forecast", pages::forecast(&[record(&forecast)], &page("forecast"))),
        ("drain", pages::drain(&record(&drain), Some(&commands), &page("drain"))),
        ("audit", pages::audit(&recorded("audit.json"), "2026-11-16T09:30:00Z", &page("audit"))),
    ]
    .map(|(name, page)| (name, page.expect("a page")))
    .into()
}

/// The page of a forecast in which all pods fit, made 38 hours after the state was read.
pub(crate) fn old_forecast() -> String {
    let json = json!({"profile": "1.37", "at": "2026-11-17T22:50:00Z", "samples": 64,
        "applied": [{"kind": "DeviceTaintRule", "namespace": "", "name": "maintenance"}],
        "pods": [{"namespace": "inference", "origin": "replacement", "replaces": "chat-0", "outcome": "fits", "fits": 64,
            "placements": [{"node": "gpu-node-05", "courses": 48}, {"node": "gpu-node-07", "courses": 16}]}],
        "totals": {"fits": 1}});
    let record = ReportJson { json: &json.to_string(), capacity: None };
    pages::forecast(&[record], &page("tollgate forecast -o html", &[])).expect("a page")
}

/// Pages in which every text is hostile, one after the other.
pub(crate) fn hostile_pages() -> Vec<(&'static str, String)> {
    let mut place = 0;
    let mut name = || {
        place += 1;
        hostile::NAMES[place % hostile::NAMES.len()]
    };
    let mut rows = |row: &dyn Fn(&mut dyn FnMut() -> &'static str) -> Value| -> Vec<Value> {
        hostile::NAMES.iter().map(|_| row(&mut name)).collect()
    };
    let devices = rows(&|name| {
        json!({"driver": name(), "pool": name(), "device": name(), "node": name(), "states": ["allocated", "tainted"],
            "blockedBy": name(), "taints": [{"key": name(), "value": name(), "effect": name(),
            "source": {"kind": name(), "name": name()}}],
            "holders": [{"claim": {"namespace": name(), "name": name()}, "pod": {"namespace": name(), "name": name()}}]})
    });
    let classes =
        rows(&|name| json!({"name": name(), "total": 3, "allocated": 1, "free": 1, "error": name()}));
    let capacity = Value::from(rows(
        &|name| json!({"before": {"name": name(), "total": 2, "free": 2}, "after": {"name": name(), "total": 2, "free": 1}}),
    ));
    let devices = json!({"profile": hostile::NAMES[0], "at": hostile::NAMES[1], "devices": devices, "classes": classes});
    let pods = rows(&|name| {
        json!({"namespace": name(), "name": name(), "owner": {"kind": name(), "name": name()}, "outcome": "evicted-at",
            "at": "2026-11-16T10:00:00Z", "because": [name()]})
    });
    let budgets = rows(&|name| json!({"namespace": name(), "name": name(), "violatedBy": 1}));
    let restarts =
        rows(&|name| json!({"kind": name(), "namespace": name(), "name": name(), "effect": name()}));
    let texts = rows(&|name| name().into());
    let impact = json!({"rule": hostile::NAMES[5], "at": "2026-11-16T09:00:00Z", "pods": pods, "budgets": budgets,
        "restarts": restarts, "differences": texts, "noEffect": hostile::NAMES[6]});
    let pods = rows(&|name| {
        json!({"namespace": name(), "name": name(), "origin": "replacement", "replaces": name(), "outcome": name(),
            "workload": {"kind": name(), "name": name()}, "placements": [{"node": name(), "courses": 1}],
            "explanation": name(), "notModelled": [name()]})
    });
    let evicted = rows(&|name| json!({"namespace": name(), "name": name(), "at": "2026-11-16T09:00:05Z"}));
    let refused = rows(
        &|name| json!({"file": name(), "kind": name(), "namespace": name(), "name": name(), "findings": [{"message": name()}]}),
    );
    let applied = rows(&|name| json!({"kind": name(), "namespace": name(), "name": name()}));
    let forecast = json!({"at": "2026-11-16T09:00:00Z", "samples": 1, "applied": applied, "pods": pods, "evicted": evicted,
        "refused": refused});
    let rules = rows(
        &|name| json!({"name": name(), "driver": name(), "pool": name(), "device": name(), "published": 1}),
    );
    let pods = rows(&|name| {
        json!({"namespace": name(), "name": name(), "node": name(), "workload": {"kind": name(), "name": name()},
            "devices": [{"driver": name(), "pool": name(), "device": name()}], "budgets": [name()], "fate": "moves",
            "wave": 1, "nodes": [name()]})
    });
    let drain = json!({"targets": [hostile::NAMES[2]], "key": hostile::NAMES[3], "verdict": hostile::NAMES[4],
        "rules": rules, "pods": pods, "waves": [{"limitedBy": hostile::NAMES[5], "restarts": texts}], "notes": texts,
        "dominatedBy": hostile::NAMES[7]});
    let results = rows(&|name| {
        json!({"kind": name(), "namespace": name(), "name": name(), "error": {"message": name()},
            "findings": [{"rule": name(), "level": "deny", "message": name(), "policy": name(), "help": name(),
            "docs": name()}]})
    });
    let by_rule: serde_json::Map<String, Value> =
        hostile::NAMES.iter().map(|name| ((*name).to_owned(), json!({"denied": 1}))).collect();
    let audit = json!({"profiles": texts, "results": results, "audit": {"byRule": by_rule, "byNamespace": by_rule,
        "notServed": texts}});
    let command = format!("tollgate devices {}", hostile::NAMES.join(" "));
    let mut page = page(&command, &hostile::NAMES);
    page.source = SafeText::from(hostile::NAMES.concat());
    let (capacity, impact, forecast, drain) =
        (capacity.to_string(), impact.to_string(), forecast.to_string(), drain.to_string());
    let record = |json| ReportJson { json, capacity: Some(capacity.as_str()) };
    let joined = SafeText::from(hostile::NAMES.join(" "));
    let commands = DrainCommands { run: joined.clone(), undo: joined, is_for_dump: true };
    [
        ("devices", pages::devices(&devices.to_string(), &page)),
        ("impact", pages::impact(&[record(&impact)], &page)),
        ("forecast", pages::forecast(&[record(&forecast)], &page)),
        ("drain", pages::drain(&record(&drain), Some(&commands), &page)),
        ("audit", pages::audit(&audit.to_string(), "2026-11-16T09:00:00Z", &page)),
    ]
    .map(|(name, page)| (name, page.expect("a page")))
    .into()
}

/// The page of so many devices, eight on each node.
pub(crate) fn many_devices(count: usize) -> String {
    let mut json = String::from(r#"{"profile":"1.37","at":"2026-11-16T09:00:00Z","devices":["#);
    for index in 0..count {
        let separator = if index == 0 { "" } else { "," };
        let node = index / 8;
        let pod = format!(
            r#"{{"claim":{{"namespace":"team-{0}","name":"train-{index}-gpu-x7k2p"}},"pod":{{"namespace":"team-{0}","name":"train-{index}-abcde"}}}}"#,
            index % 40
        );
        let (states, taints, holders) = match index % 10 {
            0..4 => (r#""allocated""#, "", pod),
            4 => (
                r#""allocated","tainted""#,
                r#"{"key":"gpu.example.com/degraded","effect":"NoExecute","source":{"kind":"DeviceTaintRule","name":"xid-79"}}"#,
                pod,
            ),
            _ => (r#""free""#, "", String::new()),
        };
        _ = write!(
            json,
            r#"{separator}{{"driver":"gpu.example.com","pool":"gpu-node-{node:05}","device":"gpu-{}","node":"gpu-node-{node:05}","states":[{states}],"taints":[{taints}],"holders":[{holders}]}}"#,
            index % 8
        );
    }
    _ = write!(json, r#"],"classes":[],"totals":{{"devices":{count}}}}}"#);
    pages::devices(&json, &page("tollgate devices -o html", &[])).expect("a page")
}

/// The page of an impact on so many pods.
pub(crate) fn many_pods(count: usize) -> String {
    let pods: Vec<String> = (0..count)
        .map(|index| {
            format!(
                r#"{{"namespace":"team-{}","name":"train-{index}-abcde","owner":{{"kind":"Job","name":"train-{index}"}},"outcome":"evicted-at","at":"2026-11-16T{:02}:{:02}:00Z","because":["claim team/train-{index}-gpu-x7k2p, device gpu.example.com/gpu-node-{index:05}/gpu-0: taint gpu.example.com/degraded:NoExecute, toleration for 3600 s"]}}"#,
                index % 40,
                9 + index % 12,
                index % 60
            )
        })
        .collect();
    let json = format!(
        r#"{{"rule":"large","profile":"1.37","at":"2026-11-16T09:00:00Z","totals":{{"evicted":{count}}},"pods":[{}]}}"#,
        pods.join(",")
    );
    pages::impact(&[ReportJson { json: &json, capacity: None }], &page("tollgate impact -o html", &[]))
        .expect("a page")
}
