//! Findings as objects of openreports.io/v1alpha1: a Report for each namespace, a ClusterReport for the rest.
//!
//! A namespace without findings gets a report as well, so that applying the reports of a later audit removes findings
//! that have been fixed. `kubectl apply` keeps a copy of an object in an annotation of limited size, so many results
//! are split into several reports with numbered names.
//!
//! Invariant: the summary of a report counts its own results; what could not be read is a result `error`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::{DocumentResult, DocumentStatus};
use tollgate_engine::policy::PolicyLocation;
use tollgate_engine::rules::FindingLevel;
use tollgate_formats::gofmt;
use tollgate_formats::gotime;
use tollgate_formats::sanitize;

/// Maximum bytes of the results of one report. `kubectl apply` copies the report to an annotation, and all
/// annotations of an object have at most 262,144 bytes.
const MAX_RESULTS_BYTES: usize = 200_000;
/// Maximum number of characters of a message in a report.
const MAX_MESSAGE_CHARS: usize = 1000;

const API_VERSION: &str = "openreports.io/v1alpha1";
const REPORT_SOURCE: &str = "tollgate";
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Label with the time of the audit. It selects reports of earlier audits, which `kubectl apply` does not delete.
const AUDIT_TIME_LABEL: &str = "tollgate.dev/audit-time";

/// Collects the results of an audit by namespace; results of cluster-scoped objects have the empty namespace.
#[derive(Debug)]
pub(super) struct OpenReports {
    timestamp: Timestamp,
    /// The only namespace that is audited; empty if all are.
    audited: String,
    namespaces: BTreeMap<String, NamespaceReport>,
}

#[derive(Default, Debug)]
struct NamespaceReport {
    /// Objects without findings.
    passed: usize,
    skipped: usize,
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

#[derive(Clone, Copy, Default, Debug, Serialize)]
struct Timestamp {
    seconds: i64,
    nanos: i32,
}

#[derive(Default, Debug, Serialize)]
struct ReportResult {
    source: &'static str,
    policy: String,
    rule: &'static str,
    category: &'static str,
    severity: &'static str,
    timestamp: Timestamp,
    result: &'static str,
    scored: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<ObjectReference>,
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
    metadata: ReportMetadata<'a>,
    source: &'static str,
    summary: ReportSummary,
    results: Vec<&'a ReportResult>,
}

#[derive(Serialize)]
struct ReportMetadata<'a> {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    labels: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportList<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<ReportObject<'a>>,
}

impl OpenReports {
    /// Starts without results; `now` is the time of the audit, `namespace` the only one that is audited, if any.
    pub(super) fn new(now: &str, namespace: Option<&str>) -> OpenReports {
        let seconds = gotime::parse_rfc3339(now).map(|time| time.seconds).unwrap_or_default();
        OpenReports {
            timestamp: Timestamp { seconds, nanos: 0 },
            audited: namespace.unwrap_or_default().to_owned(),
            namespaces: BTreeMap::new(),
        }
    }

    /// Adds a result `error` for something that could not be read.
    pub(super) fn add_error(&mut self, rule: &'static str, message: &str) {
        let result = ReportResult {
            source: REPORT_SOURCE,
            policy: REPORT_SOURCE.to_owned(),
            rule,
            category: "input",
            severity: "high",
            timestamp: self.timestamp,
            result: "error",
            message: gofmt::shorten(message, MAX_MESSAGE_CHARS).into_owned(),
            ..ReportResult::default()
        };
        self.namespaces.entry(self.audited.clone()).or_default().results.push(result);
    }

    /// Adds the findings of an object; without findings it counts as passed.
    pub(super) fn add_object_result(&mut self, entry: &DocumentResult<'_>, uid: &str) {
        if let Some(error) = entry.error {
            return self.add_error("unreadable", &error.to_string());
        }
        let timestamp = self.timestamp;
        let report = self.namespaces.entry(entry.namespace.to_owned()).or_default();
        match entry.status {
            DocumentStatus::Skipped => report.skipped += 1,
            _ if entry.findings.is_empty() => report.passed += 1,
            _ => {}
        }
        for located in entry.findings {
            let diagnostic = &located.diagnostic;
            let (finding, origin) = (&diagnostic.finding, diagnostic.origin.name());
            let (result, severity) = match diagnostic.level {
                FindingLevel::Deny => ("fail", "high"),
                FindingLevel::Warn => ("warn", "medium"),
                FindingLevel::Audit => ("warn", "info"),
            };
            let policy = diagnostic.policy.as_ref().map_or(origin, PolicyLocation::name);
            report.results.push(ReportResult {
                source: REPORT_SOURCE,
                policy: policy.to_owned(),
                rule: finding.rule.id,
                category: origin,
                severity,
                timestamp,
                result,
                scored: diagnostic.level == FindingLevel::Deny,
                resources: vec![ObjectReference {
                    api_version: entry.api_version.to_owned(),
                    kind: entry.kind.to_owned(),
                    namespace: entry.namespace.to_owned(),
                    name: entry.name.to_owned(),
                    uid: uid.to_owned(),
                }],
                message: gofmt::shorten(&diagnostic.to_string(), MAX_MESSAGE_CHARS).into_owned(),
                properties: [
                    ("field", finding.user_path()),
                    ("level", diagnostic.level.name().to_owned()),
                    ("releases", diagnostic.profiles.join(",")),
                ]
                .into_iter()
                // Policies of different kinds can have the same name.
                .chain(diagnostic.policy.iter().map(|policy| ("policy", policy.kind_and_name().to_owned())))
                .collect(),
            });
        }
    }

    /// Returns the kubectl command that deletes the reports of earlier audits.
    pub(super) fn prune_command(&self, kubectl: &str) -> String {
        let what = match self.audited.as_str() {
            "" => "reports.openreports.io,clusterreports.openreports.io -A".to_owned(),
            namespace => format!("reports.openreports.io -n {namespace}"),
        };
        let (owner, time) = (format!("{MANAGED_BY_LABEL}={REPORT_SOURCE}"), self.timestamp.seconds);
        format!("{kubectl} delete {what} -l '{owner},{AUDIT_TIME_LABEL}!={time}'")
    }

    /// Returns all reports as one JSON List, for `kubectl apply -f -`.
    pub(super) fn to_list_json(&self) -> String {
        let mut items = Vec::new();
        for (namespace, report) in &self.namespaces {
            let kind = if namespace.is_empty() { "ClusterReport" } else { "Report" };
            for (index, results) in split_into_reports(&report.results).into_iter().enumerate() {
                let number = if index == 0 { String::new() } else { format!("-{}", index + 1) };
                let count = |name| results.iter().filter(|result| result.result == name).count();
                let summary = ReportSummary {
                    pass: if index == 0 { report.passed } else { 0 },
                    fail: count("fail"),
                    warn: count("warn"),
                    error: count("error"),
                    skip: if index == 0 { report.skipped } else { 0 },
                };
                items.push(ReportObject {
                    api_version: API_VERSION,
                    kind,
                    metadata: ReportMetadata {
                        name: format!("tollgate-audit{number}"),
                        namespace,
                        labels: BTreeMap::from([
                            (MANAGED_BY_LABEL, REPORT_SOURCE.to_owned()),
                            (AUDIT_TIME_LABEL, self.timestamp.seconds.to_string()),
                        ]),
                    },
                    source: REPORT_SOURCE,
                    summary,
                    results,
                });
            }
        }
        let list = ReportList { api_version: "v1", kind: "List", items };
        let text = serde_json::to_string_pretty(&list).unwrap_or_default();
        format!("{}\n", sanitize::escape_unsafe_chars_in_json(&text))
    }
}

/// Splits results so that each report stays below [`MAX_RESULTS_BYTES`]. Without results there is one empty report.
fn split_into_reports(results: &[ReportResult]) -> Vec<Vec<&ReportResult>> {
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for result in results {
        let size = size_in_annotation(result);
        if bytes + size > MAX_RESULTS_BYTES && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        bytes += size;
        part.push(result);
    }
    parts.push(part);
    parts
}

/// Bytes of a result in the annotation of `kubectl apply`: compact JSON, in which Go escapes `<`, `>` and `&` with six
/// characters.
fn size_in_annotation(result: &ReportResult) -> usize {
    let text = serde_json::to_string(result).unwrap_or_default();
    let escaped = text.bytes().filter(|byte| b"<>&".contains(byte)).count();
    text.len() + 5 * escaped + 1
}
