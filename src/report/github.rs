//! Workflow commands of GitHub Actions: one annotation per finding.
//!
//! Invariant: nothing of a value can end a command or begin another, or write to a terminal; `%`, line breaks and, in
//! properties, `:` and `,` are escaped.

use std::fmt::Write as _;

use super::text::message_with_help;
use super::{DocumentResult, LocatedFinding, ReportRenderer, ReportWriter, docs_url, profiles_if_several};
use tollgate_engine::rules::FindingLevel;
use tollgate_formats::sanitize;

/// Writes `-o github`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &ReportRenderer) {
        if let Some(error) = entry.error {
            _ = write!(out, "::error file={}", escape_property(entry.file));
            if error.line > 0 {
                _ = write!(out, ",line={},col={}", error.line, error.column);
            }
            _ = writeln!(out, ",title=unreadable::{}", escape_data(&error.message));
        }
        for located in entry.findings {
            push_annotation(out, entry, located, report);
        }
    }
}

/// Appends the workflow command that annotates a finding.
fn push_annotation(
    out: &mut String,
    entry: &DocumentResult<'_>,
    located: &LocatedFinding,
    report: &ReportRenderer,
) {
    let (diagnostic, location) = (&located.diagnostic, &located.location);
    let command = match diagnostic.level {
        FindingLevel::Deny => "error",
        FindingLevel::Warn => "warning",
        // Not for the author of the manifest: the summary counts them.
        FindingLevel::Audit => return,
    };
    _ = write!(
        out,
        "::{command} file={},line={},endLine={}",
        escape_property(entry.file),
        location.line,
        location.end_line
    );
    // GitHub takes columns only for annotations of one line.
    if location.line == location.end_line {
        _ = write!(out, ",col={},endColumn={}", location.column, location.end_column);
    }
    let mut text = message_with_help(diagnostic, "\nhelp: ");
    if let Some(profiles) = profiles_if_several(located, report) {
        _ = write!(text, "\nprofiles: {profiles}");
    }
    _ = write!(text, "\ndocs: {}", docs_url(diagnostic.finding.rule.id));
    _ = writeln!(out, ",title={}::{}", escape_property(diagnostic.finding.rule.id), escape_data(&text));
}

/// The message of a workflow command, escaped.
fn escape_data(text: &str) -> String {
    sanitize::replace_unsafe_except_line_breaks(text).replace('%', "%25").replace('\n', "%0A")
}

/// The value of a property in a workflow command, escaped.
fn escape_property(text: &str) -> String {
    // A name is one line, and what is escaped here cannot be a command.
    escape_data(text).replace("%0A", "\u{fffd}").replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_ends_a_command_early() {
        assert_eq!(super::escape_data("50%\r\n::error::x\u{1b}"), "50%25\u{fffd}%0A::error::x\u{fffd}");
        assert_eq!(super::escape_property("a,b:c"), "a%2Cb%3Ac");
        assert_eq!(super::escape_property("a\n%0A::b\r"), "a\u{fffd}%250A%3A%3Ab\u{fffd}");
    }
}
