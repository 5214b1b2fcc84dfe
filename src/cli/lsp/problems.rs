//! What is wrong with an open document, and how the protocol says it.
//!
//! Findings come from `check`, as those of every command; here they get severities, ranges and links.
//!
//! Invariant: the number of diagnostics of a document has a limit.

use std::ops::Range;

use serde::Serialize;

use super::text::{Encoding, PositionRange, Text};
use crate::report::{self, DocumentResult, LocatedFinding};
use tollgate_document::source::{InputError, Lines, TextFix};
use tollgate_engine::rules::{self, Level};

/// Diagnostics of a document at most: more cannot be read, and the editor has to draw them all.
pub(super) const MAX_PROBLEMS: usize = 1000;

/// The code of what cannot be read, as in reports.
const UNREADABLE: &str = "unreadable";

/// How bad it is, in the protocol's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Severity {
    Error = 1,
    Warning = 2,
    Information = 3,
}

/// A problem of a text.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// The bytes that it is about, on one line.
    pub(super) bytes: Range<usize>,
    pub(super) severity: Severity,
    /// The rule, or `unreadable`.
    pub(super) code: &'static str,
    pub(super) message: String,
    /// How to mend it.
    pub(super) fix: Option<TextFix>,
    /// Related bytes: "first defined here".
    also: Vec<Range<usize>>,
}

/// Adds the problems of a document to those of its file.
pub(super) fn collect(result: &DocumentResult<'_>, problems: &mut Vec<Problem>) {
    if let Some(error) = result.error {
        problems.push(unreadable(error, result.text));
    }
    let room = MAX_PROBLEMS.saturating_sub(problems.len());
    problems.extend(result.findings.iter().take(room).map(of_finding));
}

fn of_finding(located: &LocatedFinding) -> Problem {
    let diagnostic = &located.diagnostic;
    let finding = &diagnostic.finding;
    let mut message = report::message(diagnostic);
    if let Some(help) = &finding.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    Problem {
        bytes: located.location.shown.clone(),
        severity: match diagnostic.level {
            Level::Deny => Severity::Error,
            Level::Warn => Severity::Warning,
            Level::Audit => Severity::Information,
        },
        code: finding.rule.0,
        message: report::printable(&message),
        fix: located.fix.clone(),
        also: located.also.iter().map(|also| also.shown.clone()).collect(),
    }
}

/// From the byte at which reading stopped to the end of the line.
fn unreadable(error: &InputError, text: &str) -> Problem {
    let rest = text.get(error.at..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default().trim_end();
    Problem {
        bytes: error.at..error.at + line.len(),
        severity: Severity::Error,
        code: UNREADABLE,
        message: report::printable(&error.message),
        fix: None,
        also: Vec::new(),
    }
}

/// Diagnostic of the protocol.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Diagnostic {
    range: PositionRange,
    severity: u8,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_description: Option<CodeDescription>,
    source: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_information: Vec<RelatedInformation>,
}

#[derive(Serialize)]
struct CodeDescription {
    href: String,
}

#[derive(Serialize)]
struct RelatedInformation {
    location: Location,
    message: &'static str,
}

#[derive(Serialize)]
struct Location {
    uri: String,
    range: PositionRange,
}

/// Rules about what has no effect where it is: editors show it faded.
const UNNECESSARY: &[&str] = &[
    "dropped-field",
    "duplicate-taint",
    "duplicate-toleration",
    "ignored-replacement-field",
    "rate-without-noexecute",
    "redundant-taint-option",
    "rule-without-effect",
    "seconds-without-noexecute",
];
/// Rules about what newer releases do not have: editors strike it through.
const DEPRECATED: &[&str] = &["classic-pod-claim", "removed-selector-field", "version-off-by-default"];

impl Problem {
    /// A note at the start of a text that is not checked.
    pub(super) fn not_checked(message: String) -> Problem {
        Problem {
            bytes: 0..0,
            severity: Severity::Information,
            code: UNREADABLE,
            message,
            fix: None,
            also: Vec::new(),
        }
    }

    /// An error of a configuration file.
    pub(super) fn at(text: &str, error: &InputError) -> Problem {
        let line = Lines::of(text).line(error.line);
        let letters = text.get(line.clone()).unwrap_or_default().char_indices();
        let at = letters.map(|(at, _)| at).nth(error.column.saturating_sub(1)).unwrap_or(line.len());
        let rest = text.get(line.start + at..line.end).unwrap_or_default();
        // The key or word that it is about.
        let length = rest.find([':', ' ', ',', ']', '}']).unwrap_or(rest.len());
        Problem {
            bytes: line.start + at..line.start + at + length,
            severity: Severity::Error,
            code: UNREADABLE,
            message: report::printable(&error.message),
            fix: None,
            also: Vec::new(),
        }
    }

    /// The diagnostic. Related places are in the same document, whose address is `uri`.
    pub(super) fn diagnostic(&self, uri: &str, text: &Text, encoding: Encoding) -> Diagnostic {
        let mut tags = Vec::new();
        if UNNECESSARY.contains(&self.code) {
            tags.push(1);
        }
        if DEPRECATED.contains(&self.code) {
            tags.push(2);
        }
        let related = |bytes: &Range<usize>| RelatedInformation {
            location: Location { uri: uri.to_owned(), range: text.range(bytes, encoding) },
            message: "related value",
        };
        Diagnostic {
            range: text.range(&self.bytes, encoding),
            severity: self.severity as u8,
            code: self.code,
            code_description: rules::find(self.code)
                .map(|rule| CodeDescription { href: report::docs_url(rule.id.0) }),
            source: "tollgate",
            message: self.message.clone(),
            tags,
            related_information: self.also.iter().map(related).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn tagged_rules_exist() {
        for rule in super::UNNECESSARY.iter().chain(super::DEPRECATED) {
            assert!(tollgate_engine::rules::find(rule).is_some(), "{rule}");
        }
    }
}
