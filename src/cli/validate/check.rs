//! Checks one file: reads it, checks its text and renders the results. Stateless; runs on any thread.

use super::super::check::TextChecker;
use super::fix::{FixMode, Outcome};
use crate::files::{self, Input};
use crate::report::{DocumentResult, Piece, Report, Statistics, Summary};
use crate::source::InputError;

/// One input to check.
#[derive(Debug)]
pub(super) enum WorkItem {
    /// An argument that cannot be read.
    InputError(InputError),
    /// An input to read.
    Read(Input),
}

impl WorkItem {
    pub(super) fn name(&self) -> String {
        match self {
            WorkItem::InputError(error) => error.file.clone(),
            WorkItem::Read(input) => input.name(),
        }
    }
}

/// The result of a file: its part of each report, and its counts.
#[derive(Debug)]
pub(super) struct FileOutput {
    pub(super) pieces: Vec<Piece>,
    pub(super) summary: Summary,
    pub(super) statistics: Statistics,
    /// What goes to stdout beside the report: a patch, or the fixed text of standard input.
    pub(super) printed: String,
    /// Messages for stderr.
    pub(super) errors: Vec<String>,
}

impl FileOutput {
    pub(super) fn has_text(&self) -> bool {
        !self.printed.is_empty()
            || !self.errors.is_empty()
            || self.pieces.first().is_some_and(|piece| !piece.is_empty())
    }
}

/// Checks files.
#[derive(Debug)]
pub(super) struct FileChecker<'r> {
    pub(super) texts: TextChecker<'r>,
    pub(super) reports: &'r [Report],
    pub(super) limit: u64,
    pub(super) fixes: Option<FixMode>,
}

impl FileChecker<'_> {
    /// Checks one file.
    pub(super) fn check(&self, work: &WorkItem) -> FileOutput {
        let file = work.name();
        let mut output = FileOutput {
            pieces: vec![Piece::default(); self.reports.len()],
            summary: Summary { files: 1, ..Summary::default() },
            statistics: Statistics::default(),
            printed: String::new(),
            errors: Vec::new(),
        };
        let text = match work {
            WorkItem::InputError(error) => Err(error.clone()),
            WorkItem::Read(input) => files::read(input, self.limit),
        };
        let fixed = self.fix(work, text.as_deref().unwrap_or_default());
        let mut report = |entry: &DocumentResult<'_>| {
            output.summary.add(entry);
            output.statistics.add(entry);
            for (report, piece) in self.reports.iter().zip(&mut output.pieces) {
                report.add(piece, entry);
            }
        };
        match &text {
            Err(error) => report(&DocumentResult::unreadable(error, "", 0)),
            Ok(text) => {
                let text = fixed.as_ref().and_then(|fixed| fixed.text.as_ref()).unwrap_or(text);
                self.texts.check(&file, text, &mut report);
            }
        }
        if let Some((mode, fixed)) = self.fixes.zip(fixed) {
            mode.count(&mut output.summary, &fixed);
            if let Some(reason) = &fixed.error {
                output.summary.unreadable += 1;
                output.errors.push(format!("cannot fix {file}: {reason}"));
            }
            output.printed = fixed.printed;
        }
        for (report, piece) in self.reports.iter().zip(&mut output.pieces) {
            report.close(piece, &file, &output.summary);
        }
        output
    }

    /// Fixes an input that could be read, if that was asked for.
    fn fix(&self, work: &WorkItem, text: &str) -> Option<Outcome> {
        let (mode, WorkItem::Read(input)) = (self.fixes?, work) else { return None };
        (!text.is_empty()).then(|| mode.apply(input, text, self.texts))
    }
}
