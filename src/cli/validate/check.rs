//! Checks one file: reads it, checks its text and renders the results. Stateless; runs on any thread.

use super::super::check::TextChecker;
use crate::files::{self, Input};
use crate::report::{DocumentResult, Piece, Report, Summary};
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
}

impl FileOutput {
    pub(super) fn has_text(&self) -> bool {
        self.pieces.first().is_some_and(|piece| !piece.is_empty())
    }
}

/// Checks files.
#[derive(Debug)]
pub(super) struct FileChecker<'r> {
    pub(super) texts: TextChecker<'r>,
    pub(super) reports: &'r [Report],
    pub(super) limit: u64,
}

impl FileChecker<'_> {
    /// Checks one file.
    pub(super) fn check(&self, work: &WorkItem) -> FileOutput {
        let file = work.name();
        let mut output = FileOutput {
            pieces: vec![Piece::default(); self.reports.len()],
            summary: Summary { files: 1, ..Summary::default() },
        };
        let mut report = |entry: &DocumentResult<'_>| {
            output.summary.add(entry);
            for (report, piece) in self.reports.iter().zip(&mut output.pieces) {
                report.add(piece, entry);
            }
        };
        let text = match work {
            WorkItem::InputError(error) => Err(error.clone()),
            WorkItem::Read(input) => files::read(input, self.limit),
        };
        match text {
            Err(error) => report(&DocumentResult::unreadable(&error, "", 0)),
            Ok(text) => self.texts.check(&file, &text, &mut report),
        }
        for (report, piece) in self.reports.iter().zip(&mut output.pieces) {
            report.close(piece, &file, &output.summary);
        }
        output
    }
}
