//! The code quality report of GitLab: a JSON list, which a merge request shows beside the changed lines.
//!
//! GitLab compares the fingerprints of two reports to show which findings a merge request adds and which it fixes.
//!
//! Invariant: no fingerprint occurs twice, GitLab would show one of them.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::json::{LIST_ITEM_SEPARATOR, push_separator_and_record};
use super::record::record;
use super::text::shortened_message;
use super::{DocumentResult, LocatedFinding, ReportRenderer, ReportWriter, Summary, docs_url, fingerprint};
use tollgate_engine::rules::FindingLevel;

/// Writes `-o gitlab`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn begin(&self, _: &ReportRenderer) -> String {
        "[\n".to_owned()
    }

    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, _: &ReportRenderer) {
        // The fingerprint is the first member: `close` looks for it there.
        if let Some(error) = entry.error {
            let issue = record! {
                "fingerprint": fingerprint::of_error(error),
                "type": "issue",
                "check_name": "unreadable",
                "description": error.message,
                "severity": "blocker",
                "location": record! {
                    "path": entry.file,
                    "lines": record! { "begin": error.line.max(1) },
                },
            };
            push_separator_and_record(out, &issue);
        }
        for located in entry.findings {
            let finding = &located.diagnostic.finding;
            let mut description = shortened_message(&located.diagnostic);
            if let Some(help) = &finding.help {
                _ = write!(description, " (help: {help})");
            }
            let (begin, end) = (located.location.line.max(1), located.location.end_line);
            let issue = record! {
                "fingerprint": fingerprint::of_finding(entry, located),
                "type": "issue",
                "check_name": finding.rule.id,
                "description": description,
                "severity": severity(located.diagnostic.level),
                "content": record! { "body": issue_body(located) },
                "location": record! {
                    "path": entry.file,
                    "lines": record! { "begin": begin, "end": end.max(begin) },
                },
            };
            push_separator_and_record(out, &issue);
        }
    }

    /// Returns the issues of a file with fingerprints that differ: repetitions get a new one.
    fn close(&self, piece: String, _: &str, _: &Summary, _: &ReportRenderer) -> String {
        let mut times: HashMap<&str, usize> = HashMap::new();
        let mut out = String::with_capacity(piece.len());
        for issue in piece.split_inclusive(LIST_ITEM_SEPARATOR) {
            let Some((before, rest)) = issue.split_at_checked(ISSUE_PREFIX.len()) else {
                out.push_str(issue);
                continue;
            };
            let (own, after) = rest.split_at_checked(fingerprint::FINGERPRINT_DIGITS).unwrap_or((rest, ""));
            let count = times.entry(own).or_default();
            let repeated = (*count > 0).then(|| fingerprint::of_repetition(own, *count));
            out.extend([before, repeated.as_deref().unwrap_or(own), after]);
            *count += 1;
        }
        out
    }

    fn end(&self, _: &Summary, _: &ReportRenderer) -> String {
        "\n]\n".to_owned()
    }
}

/// The JSON with which every issue begins, before its fingerprint.
const ISSUE_PREFIX: &str = "{\"fingerprint\":\"";

/// Returns the severity of a level in GitLab.
fn severity(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Deny => "critical",
        FindingLevel::Warn => "minor",
        FindingLevel::Audit => "info",
    }
}

/// Returns the releases and the documentation of a finding, as Markdown.
fn issue_body(located: &LocatedFinding) -> String {
    let (rule, profiles) = (located.diagnostic.finding.rule.id, located.diagnostic.profiles.join(", "));
    format!("Profiles: {profiles}\n\nDocumentation: [{rule}]({})", docs_url(rule))
}
