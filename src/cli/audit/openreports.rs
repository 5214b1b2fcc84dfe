//! Findings as objects of openreports.io/v1alpha1: a Report for each namespace, a ClusterReport for the rest.
//!
//! A namespace without findings gets a report as well, so that applying the reports again clears what was mended. An
//! object of Kubernetes has a limited size, so a report has a limited number of results and further ones have a number.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gotime;
use crate::report::{DocumentResult, DocumentStatus};
use crate::rules::Level;
use crate::sanitize;

/// Results per report: at 1 KiB each they stay well below the 1.5 MiB of etcd.
const MAX_RESULTS: usize = 500;
/// Characters of a message.
const MAX_MESSAGE: usize = 1000;

const API_VERSION: &str = "openreports.io/v1alpha1";
const SOURCE: &str = "tollgate";

/// The reports while they are collected, by namespace; the empty one is the cluster's.
#[derive(Debug)]
pub(super) struct OpenReports {
    timestamp: Timestamp,
    namespaces: BTreeMap<String, NamespaceReport>,
}

#[derive(Default, Debug)]
struct NamespaceReport {
    summary: ReportSummary,
    results: Vec<ReportResult>,
}

#[derive(Clone, Copy, Default, Debug, Serialize)]
struct ReportSummary {
    pass: usize,
    fail: usize,
    warn: usize,
    error: usize,
    skip: usize,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Timestamp {
    seconds: i64,
    nanos: i32,
}

#[derive(Debug, Serialize)]
struct ReportResult {
    source: &'static str,
    policy: String,
    rule: &'static str,
    category: &'static str,
    severity: &'static str,
    timestamp: Timestamp,
    result: &'static str,
    scored: bool,
    resources: [ObjectReference; 1],
    message: String,
    properties: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReference {
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportObject<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    source: &'static str,
    summary: ReportSummary,
    results: &'a [ReportResult],
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    labels: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<ReportObject<'a>>,
}

impl OpenReports {
    /// No reports yet; `now` is the time of the audit.
    pub(super) fn new(now: &str) -> OpenReports {
        let seconds = gotime::parse(now).map(|time| time.seconds).unwrap_or_default();
        OpenReports { timestamp: Timestamp { seconds, nanos: 0 }, namespaces: BTreeMap::new() }
    }

    /// Adds an object.
    pub(super) fn add(&mut self, entry: &DocumentResult<'_>, uid: &str) {
        let timestamp = self.timestamp;
        let report = match self.namespaces.get_mut(entry.namespace) {
            Some(report) => report,
            None => self.namespaces.entry(entry.namespace.to_owned()).or_default(),
        };
        match entry.status {
            DocumentStatus::Skipped => report.summary.skip += 1,
            DocumentStatus::Unreadable => report.summary.error += 1,
            _ if entry.findings.is_empty() => report.summary.pass += 1,
            _ => {}
        }
        for located in entry.findings {
            let diagnostic = &located.diagnostic;
            let (finding, origin) = (&diagnostic.finding, diagnostic.origin.name());
            let (result, severity, count) = match diagnostic.level {
                Level::Deny => ("fail", "high", &mut report.summary.fail),
                Level::Warn => ("warn", "medium", &mut report.summary.warn),
                Level::Audit => ("warn", "info", &mut report.summary.warn),
            };
            *count += 1;
            // `file:line name` of a policy: where it was loaded from does not matter in a cluster.
            let policy =
                diagnostic.policy.as_deref().and_then(|policy| policy.rsplit(' ').next()).unwrap_or(origin);
            let mut message: String = finding.to_string();
            if let Some((at, _)) = message.char_indices().nth(MAX_MESSAGE) {
                message.truncate(at);
                message.push('…');
            }
            report.results.push(ReportResult {
                source: SOURCE,
                policy: policy.to_owned(),
                rule: finding.rule.0,
                category: origin,
                severity,
                timestamp,
                result,
                scored: diagnostic.level == Level::Deny,
                resources: [ObjectReference {
                    api_version: entry.api_version.to_owned(),
                    kind: entry.kind.to_owned(),
                    namespace: entry.namespace.to_owned(),
                    name: entry.name.to_owned(),
                    uid: uid.to_owned(),
                }],
                message,
                properties: BTreeMap::from([
                    ("field", finding.field()),
                    ("level", diagnostic.level.name().to_owned()),
                    ("releases", diagnostic.profiles.join(",")),
                ]),
            });
        }
    }

    /// All reports as one list, for `kubectl apply -f -`.
    pub(super) fn list(&self) -> String {
        let mut items = Vec::new();
        for (namespace, report) in &self.namespaces {
            let kind = if namespace.is_empty() { "ClusterReport" } else { "Report" };
            let parts =
                report.results.chunks(MAX_RESULTS).chain(report.results.is_empty().then_some(&[][..]));
            for (index, results) in parts.enumerate() {
                let number = if index == 0 { String::new() } else { format!("-{}", index + 1) };
                let summary = if index == 0 { report.summary } else { ReportSummary::default() };
                items.push(ReportObject {
                    api_version: API_VERSION,
                    kind,
                    metadata: Metadata {
                        name: format!("tollgate-audit{number}"),
                        namespace,
                        labels: BTreeMap::from([("app.kubernetes.io/managed-by", SOURCE)]),
                    },
                    source: SOURCE,
                    summary,
                    results,
                });
            }
        }
        let list = List { api_version: "v1", kind: "List", items };
        let text = serde_json::to_string_pretty(&list).unwrap_or_default();
        format!("{}\n", sanitize::json(&text))
    }
}
