//! The part of a report for one file: rendered by the worker that checks the file, written in the order of the files.
//!
//! Invariant: in a foldable report every finding is between two marks, and no other text has a mark.

use super::json::LIST_ITEM_SEPARATOR;

/// Marks the start and end of each finding in a foldable report. No other text contains it, because control
/// characters are replaced.
pub(super) const FINDING_MARK: char = '\u{1e}';

/// The part of a report for one file.
#[derive(Clone, Default, Debug)]
pub struct FileReportPart {
    pub(super) text: String,
}

impl FileReportPart {
    /// Returns the text; without its leading separator if the piece is the first of its report.
    pub fn text_without_first_separator(&self, is_first: bool) -> &str {
        if is_first { self.text.strip_prefix(LIST_ITEM_SEPARATOR).unwrap_or(&self.text) } else { &self.text }
    }

    /// Returns the findings of a foldable report and the texts between them, in order; true for a finding.
    pub(crate) fn findings_and_other_text(&self) -> impl Iterator<Item = (&str, bool)> {
        self.text.split(FINDING_MARK).enumerate().map(|(number, text)| (text, number % 2 == 1))
    }

    /// A piece with one finding.
    #[cfg(test)]
    pub(crate) fn from_finding(text: &str) -> FileReportPart {
        FileReportPart { text: format!("{FINDING_MARK}{text}{FINDING_MARK}") }
    }

    /// True if there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}
