//! One line per finding, for people who know the rules, and for editors and grep:
//! `path:line:column: error[rule] message (help: …)`. With `--show-skipped`, a skipped document is
//! `path:line:column: skipped[reason] …`.
//!
//! Invariant: a finding is one line, whatever its values are.

use std::fmt::Write as _;

use super::text::{shortened_message, skip_message};
use super::{DocumentResult, ReportRenderer, ReportWriter, profiles_if_several};
use tollgate_engine::rules::FindingLevel;
use tollgate_formats::sanitize;

/// Writes `-o concise`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &ReportRenderer) {
        if let Some(error) = entry.error {
            let place = position_prefix(entry.file, error.line, error.column, report);
            let label = level_and_rule("error", "unreadable", report);
            _ = writeln!(out, "{place} {label} {}", sanitize::sanitize_as_line(&error.message));
        }
        if let Some(reason) = entry.skipped.filter(|_| report.show_skipped) {
            let place = position_prefix(entry.file, entry.line, 1, report);
            let message = skip_message(entry, reason);
            _ = writeln!(out, "{place} skipped[{}] {}", reason.key(), sanitize::sanitize_as_line(&message));
        }
        for located in entry.findings {
            let level = match located.diagnostic.level {
                FindingLevel::Deny => "error",
                FindingLevel::Warn => "warning",
                FindingLevel::Audit if report.of_cluster => FindingLevel::Audit.name(),
                // Not for the author of the manifest: the summary counts them.
                FindingLevel::Audit => continue,
            };
            let finding = &located.diagnostic.finding;
            let place = position_prefix(entry.file, located.location.line, located.location.column, report);
            let label = level_and_rule(level, finding.rule.id, report);
            _ = write!(
                out,
                "{place} {label} {}",
                sanitize::sanitize_as_line(&shortened_message(&located.diagnostic))
            );
            if let Some(help) = &finding.help {
                _ = write!(out, " (help: {})", sanitize::sanitize_as_line(help));
            }
            if let Some(profiles) = profiles_if_several(located, report) {
                _ = write!(out, " (profiles: {profiles})");
            }
            out.push('\n');
        }
    }
}

/// Returns the position at the start of a line, such as `a.yaml:3:5:`.
fn position_prefix(file: &str, line: usize, column: usize, report: &ReportRenderer) -> String {
    let file = sanitize::sanitize_as_line(file);
    let (on, off) = if report.styled { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    if line == 0 { format!("{on}{file}{off}:") } else { format!("{on}{file}{off}:{line}:{column}:") }
}

/// Returns the level and rule of a finding, such as `error[taint-effect]`.
fn level_and_rule(level: &str, rule: &str, report: &ReportRenderer) -> String {
    let (on, off) = match (report.styled, level) {
        (false, _) => ("", ""),
        (true, "error") => ("\x1b[1;31m", "\x1b[0m"),
        (true, _) => ("\x1b[1;33m", "\x1b[0m"),
    };
    format!("{on}{level}[{rule}]{off}")
}
