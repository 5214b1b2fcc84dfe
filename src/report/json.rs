//! JSON for programs: `validate -o json`, and the lines of `review --findings`. The keys are a promise.
//!
//! Written piece by piece; `summary` comes last because it is known last.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{DocumentResult, LocatedFinding, Report, ReportWriter, SEPARATOR, SkipReason, Summary, docs_url};
use tollgate_document::finding::BadValue;
use tollgate_document::source::{InputError, SourceLocation};
use tollgate_engine::engine::{Diagnostic, Verdict};
use tollgate_formats::sanitize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    file: &'a str,
    #[serde(rename = "document")]
    index: usize,
    line: usize,
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    verdict: &'static str,
    /// Where they differ from those of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    profiles: Option<&'a [&'static str]>,
    findings: Vec<Finding<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Unreadable<'a>>,
}

#[derive(Serialize)]
struct Unreadable<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    line: usize,
    #[serde(skip_serializing_if = "is_zero")]
    column: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding<'a> {
    rule: &'static str,
    origin: &'static str,
    level: &'static str,
    r#type: &'static str,
    field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value<'a>>,
    detail: &'a str,
    message: String,
    profiles: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    denied_from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    docs: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<Fix<'a>>,
}

#[derive(Serialize)]
struct Fix<'a> {
    title: &'a str,
    applicability: &'static str,
    edits: Vec<Edit<'a>>,
}

#[derive(Serialize)]
struct Edit<'a> {
    #[serde(flatten)]
    position: Position,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value<'a> {
    Null(()),
    Str(&'a str),
    Int(i64),
    Bool(bool),
    Json(Box<RawValue>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Position {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

/// `-o json`
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn begin(&self, report: &Report) -> String {
        let (version, profiles) = (env!("CARGO_PKG_VERSION"), &report.profiles);
        format!("{{\"version\":{},\"profiles\":{},\n\"results\":[\n", encode(&version), encode(profiles))
    }

    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &Report) {
        let differs = !entry.profiles.is_empty() && entry.profiles != report.profiles;
        let document = Document {
            file: entry.file,
            index: entry.document,
            line: entry.line,
            api_version: entry.api_version,
            kind: entry.kind,
            namespace: entry.namespace,
            name: entry.name,
            verdict: entry.status.name(),
            profiles: differs.then_some(entry.profiles),
            findings: entry.findings.iter().map(located_finding).collect(),
            reason: entry.skipped.map(SkipReason::key),
            error: entry.error.map(unreadable),
        };
        out.push_str(SEPARATOR);
        out.push_str(&encode(&document));
    }

    fn end(&self, summary: &Summary, _: &Report) -> String {
        format!("\n],\n\"summary\":{}}}\n", encode(summary))
    }
}

/// One line of `review --findings`.
pub(crate) fn review_line(uid: &str, verdict: &Verdict, error: Option<&str>) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        uid: &'a str,
        allowed: bool,
        findings: Vec<Finding<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
    let findings = verdict.findings().iter().map(|diagnostic| finding_record(diagnostic, None)).collect();
    encode(&Line { uid, allowed: error.is_none() && verdict.allowed(), findings, error })
}

/// The record of a finding with its positions and its fix.
fn located_finding(located: &LocatedFinding) -> Finding<'_> {
    let fix = located.fix.as_ref().map(|fix| Fix {
        title: &fix.title,
        applicability: fix.applicability.name(),
        edits: fix
            .edits
            .iter()
            .map(|edit| Edit { position: position(&edit.location), text: &edit.text })
            .collect(),
    });
    Finding { fix, ..finding_record(&located.diagnostic, Some(&located.location)) }
}

/// The record of a finding; `location` is `None` where there is no file.
fn finding_record<'a>(diagnostic: &'a Diagnostic, location: Option<&SourceLocation>) -> Finding<'a> {
    let finding = &diagnostic.finding;
    Finding {
        rule: finding.rule.id,
        origin: diagnostic.origin.name(),
        level: diagnostic.level.name(),
        r#type: finding.kind.cause(),
        field: finding.field(),
        upstream_field: finding.server_at.as_deref(),
        value: value(&finding.value),
        detail: &finding.detail,
        message: diagnostic.to_string(),
        profiles: &diagnostic.profiles,
        policy: diagnostic.policy.as_deref(),
        denied_from: diagnostic.finding.denied_from.as_deref(),
        help: finding.help.as_deref(),
        docs: docs_url(finding.rule.id),
        position: location.map(position),
        fix: None,
    }
}

fn position(location: &SourceLocation) -> Position {
    Position {
        line: location.line,
        column: location.column,
        end_line: location.end_line,
        end_column: location.end_column,
    }
}

fn value(bad: &BadValue) -> Option<Value<'_>> {
    Some(match bad {
        BadValue::Omitted => return None,
        BadValue::Null => Value::Null(()),
        BadValue::Str(text) => Value::Str(text),
        BadValue::Int(number) => Value::Int(*number),
        BadValue::Excess { count, .. } => Value::Int(i64::try_from(*count).unwrap_or(i64::MAX)),
        BadValue::Bool(value) => Value::Bool(*value),
        // Some releases print Go's notation here, which is no JSON: then it is a text.
        BadValue::Json(text) => RawValue::from_string(text.to_string()).map_or(Value::Str(text), Value::Json),
    })
}

fn unreadable(error: &InputError) -> Unreadable<'_> {
    Unreadable { message: &error.message, line: error.line, column: error.column }
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
