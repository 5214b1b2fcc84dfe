//! The files of `manifests/monitoring` among themselves: both forms of the rules, a test and a section for every alert,
//! a PodMonitor that finds the pods. `tests/cluster/monitoring.rs` compares them with the metrics of a server.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::promql::{documents, expressions, selectors};

const FOLDER: &str = "manifests/monitoring";

fn one(file: &str) -> Value {
    let mut all = documents(&format!("{FOLDER}/{file}"));
    assert_eq!(all.len(), 1, "{file}");
    all.remove(0)
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().unwrap_or_else(|| panic!("{field} of {value:#}"))
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn alerts(rules: &Value) -> Vec<&Value> {
    list(rules, "groups")
        .iter()
        .flat_map(|group| list(group, "rules"))
        .filter(|rule| rule["alert"].is_string())
        .collect()
}

/// The tests of alerts: name of the alert, whether it must fire.
fn tested_alerts() -> BTreeSet<(String, bool)> {
    let mut tested_alerts = BTreeSet::new();
    for file in ["availability", "calm", "certificates", "cluster", "policies", "policy-source"] {
        for test in list(&one(&format!("tests/{file}.test.yaml")), "tests") {
            for check in list(test, "alert_rule_test") {
                tested_alerts
                    .insert((text(check, "alertname").to_owned(), !list(check, "exp_alerts").is_empty()));
            }
        }
    }
    tested_alerts
}

/// The problems of the alerting rules.
fn alert_problems(rules: &Value, tested_alerts: &BTreeSet<(String, bool)>, page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for alert in alerts(rules) {
        let name = text(alert, "alert");
        for (fires, what) in [(true, "firing"), (false, "quiet")] {
            if !tested_alerts.contains(&(name.to_owned(), fires)) {
                faults.push(format!("{name}: no test has it {what}"));
            }
        }
        if !page.contains(&format!("\n### {name}\n")) {
            faults.push(format!("{name}: no section in README.md"));
        }
        let runbook = format!("{FOLDER}/README.md#{}", name.to_lowercase());
        if text(&alert["annotations"], "runbook") != runbook {
            faults.push(format!("{name}: runbook is not {runbook}"));
        }
        if !["critical", "warning", "info"].contains(&text(&alert["labels"], "severity")) {
            faults.push(format!("{name}: no severity"));
        }
        for field in ["summary", "description"] {
            if text(&alert["annotations"], field).is_empty() {
                faults.push(format!("{name}: no {field}"));
            }
        }
    }
    faults
}

fn page() -> String {
    std::fs::read_to_string(format!("{}/{FOLDER}/README.md", env!("CARGO_MANIFEST_DIR"))).expect("the page")
}

#[test]
fn every_alert_is_played_firing_and_quiet_and_explained() {
    let (mut rules, tested_alerts, page) = (one("rules.yaml"), tested_alerts(), page());
    assert_eq!(alert_problems(&rules, &tested_alerts, &page), Vec::<String>::new());
    let names: BTreeSet<&str> = alerts(&rules).iter().map(|alert| text(alert, "alert")).collect();
    assert_eq!(names.len(), alerts(&rules).len(), "names are unique");
    for name in tested_alerts.iter().map(|(name, _)| name.as_str()) {
        assert!(names.contains(name), "the tests play {name}, which is no alert");
    }
    let sections = page.lines().filter_map(|line| line.strip_prefix("### "));
    assert_eq!(sections.collect::<BTreeSet<_>>(), names);
    // An alert that nobody plays or explains is found.
    rules["groups"][1]["rules"][0]["alert"] = "TollgateNew".into();
    assert_eq!(alert_problems(&rules, &tested_alerts, &page).len(), 4);
}

#[test]
fn both_forms_of_the_rules_are_the_same() {
    let resource = one("prometheusrule.yaml");
    assert_eq!(resource["spec"]["groups"], one("rules.yaml")["groups"]);
    assert!(!list(&resource["spec"], "groups").is_empty());
}

#[test]
fn the_pod_monitor_finds_the_pods() {
    let (monitor, deployment) =
        (one("podmonitor.yaml"), documents("manifests/base/deployment.yaml").remove(0));
    let template = &deployment["spec"]["template"];
    for (name, value) in monitor["spec"]["selector"]["matchLabels"].as_object().expect("labels") {
        assert_eq!(template["metadata"]["labels"][name], *value, "{name}");
    }
    assert_eq!(monitor["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    let ports = list(&template["spec"]["containers"][0], "ports");
    for endpoint in list(&monitor["spec"], "podMetricsEndpoints") {
        assert!(ports.iter().any(|port| port["name"] == endpoint["port"]), "{endpoint}");
        assert_eq!(endpoint["path"], "/metrics");
    }
    let kustomization = one("kustomization.yaml");
    assert_eq!(list(&kustomization, "resources"), ["podmonitor.yaml", "prometheusrule.yaml"]);
    assert_eq!(kustomization["configMapGenerator"][0]["files"][0], "tollgate.json=dashboard.json");
}

#[test]
fn every_panel_of_the_dashboard_has_a_query_and_a_description() {
    let dashboard = one("dashboard.json");
    let (mut ids, mut panels) = (BTreeSet::new(), 0);
    for panel in list(&dashboard, "panels") {
        assert!(ids.insert(panel["id"].to_string()), "{}: its id is taken", panel["title"]);
        if panel["type"] == "row" {
            continue;
        }
        panels += 1;
        assert!(!text(panel, "description").is_empty(), "{}", panel["title"]);
        let queries = expressions(panel);
        assert!(
            !queries.is_empty() && queries.iter().all(|query| !selectors(query).is_empty()),
            "{}",
            panel["title"]
        );
    }
    assert!(panels > 20, "only {panels} panels");
}
