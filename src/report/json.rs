//! JSON for programs: `validate -o json`, and the lines of `review --findings`. The keys are a stable interface.
//!
//! Written piece by piece; `summary` comes last because it is known last.

use serde::Serialize;
use serde_json::value::RawValue;

use super::record::{Json, collect_records, record, to_raw_json};
use super::{DocumentResult, ReportRenderer, ReportWriter, SkipReason, Summary, docs_url};
use tollgate_document::finding::BadValue;
use tollgate_document::source::{InputError, SourceLocation, TextFix};
use tollgate_engine::engine::{Diagnostic, Verdict};
use tollgate_formats::sanitize;

/// Writes `-o json`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn begin(&self, report: &ReportRenderer) -> String {
        let (version, profiles) = (env!("CARGO_PKG_VERSION"), &report.profiles);
        format!(
            "{{\"version\":{},\"profiles\":{},\n\"results\":[\n",
            to_escaped_json(&version),
            to_escaped_json(profiles)
        )
    }

    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &ReportRenderer) {
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
        push_separator_and_record(out, &document);
    }

    fn end(&self, summary: &Summary, _: &ReportRenderer) -> String {
        format!("\n],\n\"summary\":{}}}\n", to_escaped_json(summary))
    }
}

/// Formats one line of `review --findings`.
pub(crate) fn review_line(uid: &str, verdict: &Verdict, error: Option<&str>) -> String {
    let findings = verdict.findings().iter().map(|diagnostic| finding_record(diagnostic, None, None));
    to_escaped_json(&record! {
        "uid": uid,
        "allowed": error.is_none() && verdict.is_allowed(),
        "findings": collect_records(findings),
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
        "type": finding.kind.cause_reason(),
        "field": finding.user_path(),
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
        "edits": collect_records(edits),
    }
}

fn bad_value_json(bad: &BadValue) -> Json {
    match bad {
        BadValue::Omitted | BadValue::Null => to_raw_json(&()),
        BadValue::Str(text) => to_raw_json(text),
        BadValue::Int(number) => to_raw_json(number),
        BadValue::Excess { count, .. } => to_raw_json(&i64::try_from(*count).unwrap_or(i64::MAX)),
        BadValue::Bool(value) => to_raw_json(value),
        // Some releases print Go's notation here, which is no JSON: then it is a text.
        BadValue::Json(text) => RawValue::from_string(text.to_string()).unwrap_or_else(|_| to_raw_json(text)),
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
pub(super) const LIST_ITEM_SEPARATOR: &str = ",\n";

/// Appends a record, with the separator before it.
pub(super) fn push_separator_and_record(out: &mut String, record: &Json) {
    out.push_str(LIST_ITEM_SEPARATOR);
    out.push_str(&to_escaped_json(record));
}

/// Serialises a value as compact JSON, in which characters that could control a terminal are escaped.
pub(super) fn to_escaped_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|error| format!("\"{error}\""));
    sanitize::escape_unsafe_chars_in_json(&text).into_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_escaped_reads_as_it_was_written() {
        let written = "a\u{9b}\u{202e}\u{e0041}\u{1b}\"\\##[error]##vso[x]\n::error::";
        let encoded = super::to_escaped_json(&[written]);
        assert!(!encoded.contains("##") && encoded.is_ascii(), "{encoded}");
        let read: Vec<String> = serde_json::from_str(&encoded).expect("JSON");
        assert_eq!(read, [written]);
    }
}
