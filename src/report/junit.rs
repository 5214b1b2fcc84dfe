//! JUnit XML: one suite per file, one case per document.
//!
//! Invariant: well-formed XML 1.0 whatever the values are; characters that XML cannot hold are replaced.

use std::fmt::Write as _;

use super::text::shortened_message;
use super::{
    DocumentResult, DocumentStatus, ReportRenderer, ReportWriter, SkipReason, Summary, docs_url,
    profiles_if_several,
};
use tollgate_engine::rules::FindingLevel;
use tollgate_formats::sanitize;

/// Writes `-o junit`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn begin(&self, _: &ReportRenderer) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tollgate\">\n".to_owned()
    }

    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &ReportRenderer) {
        _ = write!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\"",
            escape(&entry.object_label()),
            escape(entry.file),
            escape(entry.file)
        );
        if entry.line > 0 {
            _ = write!(out, " line=\"{}\"", entry.line);
        }
        let texts = |level: FindingLevel| {
            let mut text = String::new();
            for located in entry.findings.iter().filter(|located| located.diagnostic.level == level) {
                let finding = &located.diagnostic.finding;
                let (line, column) = (located.location.line, located.location.column);
                let message = shortened_message(&located.diagnostic);
                _ = writeln!(text, "{}:{line}:{column}: {message} [{}]", entry.file, finding.rule);
                if let Some(help) = &finding.help {
                    _ = writeln!(text, "  help: {help}");
                }
                if let Some(profiles) = profiles_if_several(located, report) {
                    _ = writeln!(text, "  profiles: {profiles}");
                }
                _ = writeln!(text, "  docs: {}", docs_url(finding.rule.id));
            }
            text
        };
        let (denied, warned) = (texts(FindingLevel::Deny), texts(FindingLevel::Warn));
        out.push_str(">\n");
        match (entry.status, entry.error) {
            (DocumentStatus::Skipped, _) => {
                let reason = entry.skipped.unwrap_or(SkipReason::OtherKind).text();
                _ = writeln!(out, "      <skipped message=\"{}\"/>", escape(reason));
            }
            (DocumentStatus::Unreadable, error) => {
                let text = error.map(ToString::to_string).unwrap_or_default();
                _ = writeln!(out, "      <error type=\"unreadable\" message=\"{}\"/>", escape(&text));
            }
            (DocumentStatus::Invalid, _) => {
                let first =
                    entry.findings.iter().find(|located| located.diagnostic.level == FindingLevel::Deny);
                let (rule, first) = first.map_or(("", String::new()), |located| {
                    (located.diagnostic.finding.rule.id, shortened_message(&located.diagnostic))
                });
                let (first, denied) = (escape(&first), escape(&denied));
                _ = writeln!(out, "      <failure type=\"{rule}\" message=\"{first}\">{denied}</failure>");
            }
            (DocumentStatus::Valid, _) => {}
        }
        if !warned.is_empty() {
            _ = writeln!(out, "      <system-out>{}</system-out>", escape(&warned));
        }
        out.push_str("    </testcase>\n");
    }

    /// Returns the suite of a file, which contains its cases.
    fn close(&self, cases: String, file: &str, counted: &Summary, report: &ReportRenderer) -> String {
        let profiles = report.profiles.join(", ");
        let properties = format!(
            "    <properties>\n      <property name=\"profiles\" value=\"{profiles}\"/>\n    </properties>\n"
        );
        format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{properties}{cases}  </testsuite>\n",
            escape(file),
            counted.documents,
            counted.invalid,
            counted.unreadable,
            counted.skipped
        )
    }

    fn end(&self, _: &Summary, _: &ReportRenderer) -> String {
        "</testsuites>\n".to_owned()
    }
}

/// Escapes a text for XML elements and attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            // The second one: `##[` begins a command for a CI server that shows the report.
            '#' if out.ends_with('#') => out.push_str("&#35;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // As references: a parser would turn them into blanks in an attribute.
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ if sanitize::is_unsafe(letter) => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_stays_text() {
        assert_eq!(super::escape("<a b=\"c\">&\u{1}\n"), "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}&#10;");
        assert_eq!(super::escape("##[error]\u{9b}\u{202e}"), "#&#35;[error]\u{fffd}\u{fffd}");
    }
}
