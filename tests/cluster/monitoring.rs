//! `manifests/monitoring` against the metrics of a running server: what rules and dashboard name exists, with these
//! labels, and the dashboard shows every metric there is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::double::Double;
use crate::generated;
use crate::promql::{Selector, documents, expressions, selectors};
use crate::webhook::Webhook;

/// Metrics of the API server, as in its documentation of stable and alpha metrics, with the labels that the
/// dashboard selects.
const OF_API_SERVERS: [(&str, &[&str]); 2] = [
    (
        "apiserver_admission_webhook_rejection_count",
        &["name", "type", "operation", "error_type", "rejection_code"],
    ),
    ("apiserver_admission_webhook_fail_open_count", &["name", "type"]),
];

/// Labels that a scrape adds.
const OF_SCRAPES: [&str; 4] = ["namespace", "pod", "instance", "job"];

/// The samples of an exposition by name, each with the labels that occur.
type Exposed = BTreeMap<String, BTreeSet<String>>;

/// The samples of an exposition, and the names of its metrics, which have several samples if they are histograms.
fn exposed(text: &str) -> (Exposed, Vec<String>) {
    let (mut samples, mut metrics) = (Exposed::new(), Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            metrics.push(rest.split(' ').next().unwrap_or_default().to_owned());
        } else if !line.starts_with('#') {
            let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a sample"));
            let labels = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
            let names = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
            samples.entry(name.to_owned()).or_default().extend(names);
        }
    }
    (samples, metrics)
}

/// The selectors that match no known metric.
fn unknown(named: &[Selector], samples: &Exposed, recorded: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for Selector { metric, labels } in named {
        let of_server = OF_API_SERVERS.iter().find(|(name, _)| name == metric);
        let known: BTreeSet<&str> = match (samples.get(metric), of_server) {
            (Some(known), _) => known.iter().map(String::as_str).chain(OF_SCRAPES).collect(),
            (None, Some((_, known))) => known.iter().copied().collect(),
            (None, None) if recorded.contains(metric) && labels.is_empty() => continue,
            (None, None) => {
                faults.push(format!("there is no {metric}"));
                continue;
            }
        };
        faults.extend(
            labels
                .iter()
                .filter(|label| !known.contains(label.as_str()))
                .map(|label| format!("{metric} has no {label}")),
        );
    }
    faults
}

/// Metrics that no query of the dashboard uses.
fn not_shown(shown: &[Selector], metrics: &[String]) -> Vec<String> {
    let is_shown = |metric: &&String| {
        let parts = ["", "_total", "_info", "_bucket"].map(|suffix| format!("{metric}{suffix}"));
        !shown.iter().any(|selector| parts.contains(&selector.metric))
    };
    metrics.iter().filter(is_shown).cloned().collect()
}

/// The result of [`exposition`], shared by all tests.
static EXPOSITION: LazyLock<String> = LazyLock::new(exposition);

/// The metrics of a server that is registered, watches the cluster, has policies, and has sent every kind of
/// response.
fn exposition() -> String {
    let double = Double::start("monitoring");
    let resources = ["resourceslices", "resourceclaims", "devicetaintrules"]
        .map(|name| format!("/apis/resource.k8s.io/v1/{name}"));
    let others =
        [VALIDATING, MUTATING, "/api/v1/pods", "/api/v1/namespaces", "/apis/policy/v1/poddisruptionbudgets"];
    for collection in resources.iter().map(String::as_str).chain(others) {
        double.serves(collection);
    }
    double.install_policies();
    let arguments = [
        "--register",
        "https://localhost:8443",
        "--register-delay",
        "0s",
        "--cluster",
        "--policy-source",
        "files,cluster",
    ];
    let policy = include_str!("wide.yaml");
    let webhook = Webhook::start("monitoring", &double, Some(policy), &arguments);
    double.until("registered", |double| double.object(VALIDATING, "tollgate").is_some());
    webhook.until_ready();
    let rule = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "a"},
        "spec": {"taint": {"key": "a b", "effect": "NoExec"}}});
    let kind = json!({"group": "resource.k8s.io", "version": "v1", "kind": "DeviceTaintRule"});
    let resource = json!({"group": "resource.k8s.io", "version": "v1", "resource": "devicetaintrules"});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request":
        {"uid": "u", "kind": kind, "resource": resource, "name": "a", "operation": "CREATE", "object": rule}});
    assert_eq!(webhook.send_review(review.to_string().as_bytes())["allowed"], false);
    webhook.process.get("/metrics").text()
}

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

#[test]
fn rules_and_dashboard_agree_with_the_metrics_of_a_server() {
    let (samples, metrics) = exposed(&EXPOSITION);
    assert!(metrics.len() > 25, "{metrics:?}");
    let rules = documents("manifests/monitoring/rules.yaml");
    let dashboard = documents("manifests/monitoring/dashboard.json");
    let of = |documents: &[Value]| -> Vec<Selector> {
        documents.iter().flat_map(expressions).flat_map(|expression| selectors(&expression)).collect()
    };
    let (in_rules, shown) = (of(&rules), of(&dashboard));
    let recorded: Vec<String> = rules
        .iter()
        .flat_map(|rules| rules["groups"].as_array().expect("groups"))
        .flat_map(|group| group["rules"].as_array().expect("rules"))
        .filter_map(|rule| rule["record"].as_str().map(str::to_owned))
        .collect();
    let all: Vec<Selector> = in_rules.iter().chain(&shown).cloned().collect();
    assert_eq!(unknown(&all, &samples, &recorded), Vec::<String>::new());
    // What a recording rule reads is shown through it.
    let through = |selector: &Selector| {
        let record = rules.iter().flat_map(|rules| rules["groups"][0]["rules"].as_array().expect("rules"));
        let read = record.filter(|rule| rule["record"] == selector.metric.as_str());
        read.flat_map(|rule| selectors(rule["expr"].as_str().unwrap_or_default())).collect::<Vec<_>>()
    };
    let shown: Vec<Selector> = shown.iter().flat_map(through).chain(shown.iter().cloned()).collect();
    assert_eq!(not_shown(&shown, &metrics), Vec::<String>::new());

    // The same checks find what is planted.
    let planted = selectors(
        r#"rate(tollgate_request_total[5m]) + tollgate_http_errors_total{status="503"} + tollgate:no:rate5m"#,
    );
    let faults = unknown(&planted, &samples, &recorded);
    assert_eq!(
        faults,
        [
            "there is no tollgate_request_total",
            "tollgate_http_errors_total has no status",
            "there is no tollgate:no:rate5m"
        ]
    );
    assert_eq!(not_shown(&shown, &["tollgate_new".to_owned()]), ["tollgate_new"]);
}

/// A row for each metric of an exposition: name, type, labels, help.
fn metrics_table(text: &str) -> String {
    let (samples, metrics) = exposed(text);
    let about = |metric: &str, word: &str| {
        let start = format!("# {word} {metric} ");
        text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default().to_owned()
    };
    let row = |metric: &String| {
        let kind = about(metric, "TYPE");
        // A counter's sample has another name than its metric.
        let name = match kind.as_str() {
            "counter" => format!("{metric}_total"),
            "info" => format!("{metric}_info"),
            _ => metric.clone(),
        };
        let sample = if kind == "histogram" { format!("{metric}_bucket") } else { name.clone() };
        let labels = samples.get(&sample).cloned().unwrap_or_default();
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        vec![format!("`{name}`"), kind, labels.join(", "), generated::cell(&about(metric, "HELP"))]
    };
    let mut rows: Vec<Vec<String>> = metrics.iter().map(row).collect();
    rows.sort();
    generated::table(&["metric", "type", "labels", "meaning"], &rows)
}

#[test]
fn reference_of_metrics_is_current() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/metrics.md");
    let table = metrics_table(&EXPOSITION);
    assert!(table.lines().count() > 25, "{table}");
    generated::check(page.as_ref(), |name| (name == "metrics").then(|| table.clone()));
}
