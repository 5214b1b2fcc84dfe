//! The problems of an open document, as diagnostics of the protocol.
//!
//! Findings come from `check`, as those of every command; here they get severities, ranges and links.
//!
//! Invariant: the number of diagnostics of a document has a limit.

use std::ops::Range;

use super::text::{Encoding, Text};
use crate::report::record::{Json, collect_records, record};
use crate::report::{self, DocumentResult, LocatedFinding};
use tollgate_document::source::{InputError, LineIndex, TextFix};
use tollgate_engine::rules::{EditorTag, FindingLevel, RuleId};

/// Maximum number of diagnostics of a document. The editor has to draw all of them.
pub(super) const MAX_PROBLEMS: usize = 1000;

/// Code of the diagnostic for text that cannot be parsed, as in reports.
const UNREADABLE: &str = "unreadable";

/// Severity of a diagnostic, with the numbers of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Severity {
    Error = 1,
    Warning = 2,
    Information = 3,
}

/// A finding or an error in an open document, to be shown in the editor.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// Byte range that the editor marks, within one line.
    pub(super) bytes: Range<usize>,
    pub(super) severity: Severity,
    /// The rule; `None` if the document cannot be read.
    pub(super) rule: Option<RuleId>,
    pub(super) message: String,
    /// The fix, if there is one.
    pub(super) fix: Option<TextFix>,
    /// Byte ranges of related values, such as the first definition of a duplicate.
    also: Vec<Range<usize>>,
}

/// Adds the problems of a document to `problems`, up to [`MAX_PROBLEMS`] of them.
pub(super) fn add_problems_up_to_limit(result: &DocumentResult<'_>, problems: &mut Vec<Problem>) {
    if let Some(error) = result.error {
        problems.push(problem_of_parse_error(error, result.text));
    }
    let room = MAX_PROBLEMS.saturating_sub(problems.len());
    problems.extend(result.findings.iter().take(room).map(problem_of_finding));
}

fn problem_of_finding(located: &LocatedFinding) -> Problem {
    let diagnostic = &located.diagnostic;
    let finding = &diagnostic.finding;
    Problem {
        bytes: located.location.shown.clone(),
        severity: match diagnostic.level {
            FindingLevel::Deny => Severity::Error,
            FindingLevel::Warn => Severity::Warning,
            FindingLevel::Audit => Severity::Information,
        },
        rule: Some(finding.rule),
        message: report::replace_control_chars(&report::message_with_help(diagnostic, "\nhelp: ")),
        fix: located.fix.clone(),
        also: located.also.iter().map(|also| also.shown.clone()).collect(),
    }
}

/// Returns the problem for text that cannot be parsed, from the byte at which parsing stopped to the end of the
/// line.
pub(super) fn problem_of_parse_error(error: &InputError, text: &str) -> Problem {
    let rest = text.get(error.at..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default().trim_end();
    Problem::without_rule(
        error.at..error.at + line.len(),
        Severity::Error,
        report::replace_control_chars(&error.message),
    )
}

impl Problem {
    pub(super) fn without_rule(bytes: Range<usize>, severity: Severity, message: String) -> Problem {
        Problem { bytes, severity, rule: None, message, fix: None, also: Vec::new() }
    }

    /// The problem for an error in a configuration file.
    pub(super) fn config_error(text: &str, error: &InputError) -> Problem {
        let line = LineIndex::from_text(text).line_range(error.line);
        let letters = text.get(line.clone()).unwrap_or_default().char_indices();
        let at = letters.map(|(at, _)| at).nth(error.column.saturating_sub(1)).unwrap_or(line.len());
        let rest = text.get(line.start + at..line.end).unwrap_or_default();
        // The key or word that it is about.
        let length = rest.find([':', ' ', ',', ']', '}']).unwrap_or(rest.len());
        let start = line.start + at;
        Problem::without_rule(
            start..start + length,
            Severity::Error,
            report::replace_control_chars(&error.message),
        )
    }

    /// Converts the problem to a diagnostic of the protocol. `uri` is the URI of the document, which also
    /// contains the related positions.
    pub(super) fn to_diagnostic(&self, uri: &str, text: &Text, encoding: Encoding) -> Json {
        let tag = |tag| match tag {
            EditorTag::Unnecessary => 1,
            EditorTag::Deprecated => 2,
        };
        let related = self.also.iter().map(|bytes| {
            record! {
                "location": record! { "uri": uri, "range": text.range(bytes, encoding) },
                "message": "related value",
            }
        });
        let tags: Vec<u8> = self.rule.and_then(|rule| rule.tag).map(tag).into_iter().collect();
        let page = self.rule.map(|rule| record! { "href": report::docs_url(rule.id) });
        record! {
            "range": text.range(&self.bytes, encoding),
            "severity": self.severity as u8,
            "code": self.rule.map_or(UNREADABLE, |rule| rule.id),
            "codeDescription" if given: page,
            "source": "tollgate",
            "message": self.message,
            "tags" if given: tags,
            "relatedInformation" if given: collect_records(related),
        }
    }
}
