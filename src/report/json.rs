//! JSON for programs: `validate -o json`, and the lines of `review --findings`. The keys are a promise.
//!
//! Written piece by piece; `summary` comes last because it is known last.

use serde::Serialize;
use serde_json::value::RawValue;

use super::record::{Json, json, list, record};
use super::{DocumentResult, Report, ReportWriter, SkipReason, Summary, docs_url};
use tollgate_document::finding::BadValue;
use tollgate_document::source::{InputError, SourceLocation, TextFix};
use tollgate_engine::engine::{Diagnostic, Verdict};
use tollgate_formats::sanitize;

/// Writes `-o json`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn begin(&self, report: &Report) -> String {
        let (version, profiles) = (env!("CARGO_PKG_VERSION"), &report.profiles);
        format!("{{\"version\":{},\"profiles\":{},\n\"results\":[\n", encode(&version), encode(profiles))
    }

    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &Report) {
        let differs = !entry.profiles.is_empty() && entry.profiles != report.profiles;
        let findings: Vec<Json> = entry
            .findings
            .iter()
            .map(|located| finding_record(&located.diagnostic, Some(&located.location), located.fix.as_ref()))
            .collect();
        let document = record! {
            "file": entry.file,
            "document": entry.document,
            "line": entry.line,
            "apiVersion": entry.api_version,
            "kind": entry.kind,
            "namespace": entry.namespace,
            "name": entry.name,
            "verdict": entry.status.name(),
            // Where they differ from those of the run.
            "profiles" if differs: entry.profiles,
            "findings": findings,
            "reason" if given: entry.skipped.map(SkipReason::key),
            "error" if given: entry.error.map(error_record),
        };
        push_record(out, &document);
    }

    fn end(&self, summary: &Summary, _: &Report) -> String {
        format!("\n],\n\"summary\":{}}}\n", encode(summary))
    }
}

/// Formats one line of `review --findings`.
pub(crate) fn review_line(uid: &str, verdict: &Verdict, error: Option<&str>) -> String {
    let findings = verdict.findings().iter().map(|diagnostic| finding_record(diagnostic, None, None));
    encode(&record! {
        "uid": uid,
        "allowed": error.is_none() && verdict.allowed(),
        "findings": list(findings),
        "error" if given: error,
    })
}

/// Returns the JSON record of a finding; `location` is `None` where there is no file.
fn finding_record(diagnostic: &Diagnostic, location: Option<&SourceLocation>, fix: Option<&TextFix>) -> Json {
    let finding = &diagnostic.finding;
    let has_value = !matches!(finding.value, BadValue::Omitted);
    record! {
        "rule": finding.rule.id,
        "origin": diagnostic.origin.name(),
        "level": diagnostic.level.name(),
        "type": finding.kind.cause(),
        "field": finding.field(),
        "upstreamField" if given: finding.server_at,
        "value" if has_value: bad_value_json(&finding.value),
        "detail": finding.detail,
        "message": diagnostic.to_string(),
        "profiles": diagnostic.profiles,
        "policy" if given: diagnostic.policy.as_deref(),
        "deniedFrom" if given: finding.denied_from,
        "help" if given: finding.help,
        "docs": docs_url(finding.rule.id),
        "line" if given: location.map(|at| at.line),
        "column" if given: location.map(|at| at.column),
        "endLine" if given: location.map(|at| at.end_line),
        "endColumn" if given: location.map(|at| at.end_column),
        "fix" if given: fix.map(fix_record),
    }
}

fn fix_record(fix: &TextFix) -> Json {
    let edits = fix.edits.iter().map(|edit| {
        record! {
            "line": edit.location.line,
            "column": edit.location.column,
            "endLine": edit.location.end_line,
            "endColumn": edit.location.end_column,
            "text": edit.text,
        }
    });
    record! {
        "title": fix.title,
        "applicability": fix.applicability.name(),
        "edits": list(edits),
    }
}

fn bad_value_json(bad: &BadValue) -> Json {
    match bad {
        BadValue::Omitted | BadValue::Null => json(&()),
        BadValue::Str(text) => json(text),
        BadValue::Int(number) => json(number),
        BadValue::Excess { count, .. } => json(&i64::try_from(*count).unwrap_or(i64::MAX)),
        BadValue::Bool(value) => json(value),
        // Some releases print Go's notation here, which is no JSON: then it is a text.
        BadValue::Json(text) => RawValue::from_string(text.to_string()).unwrap_or_else(|_| json(text)),
    }
}

fn error_record(error: &InputError) -> Json {
    record! {
        "message": error.message,
        "line" if given: error.line,
        "column" if given: error.column,
    }
}

/// Precedes every item of a JSON list; removed from the first one.
pub(super) const SEPARATOR: &str = ",\n";

/// Appends a record, with the separator before it.
pub(super) fn push_record(out: &mut String, record: &Json) {
    out.push_str(SEPARATOR);
    out.push_str(&encode(record));
}

/// Serialises a value as compact JSON, in which characters that could control a terminal are escaped.
pub(super) fn encode(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|error| format!("\"{error}\""));
    sanitize::json(&text).into_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_escaped_reads_as_it_was_written() {
        let written = "a\u{9b}\u{202e}\u{e0041}\u{1b}\"\\##[error]##vso[x]\n::error::";
        let encoded = super::encode(&[written]);
        assert!(!encoded.contains("##") && encoded.is_ascii(), "{encoded}");
        let read: Vec<String> = serde_json::from_str(&encoded).expect("JSON");
        assert_eq!(read, [written]);
    }
}
