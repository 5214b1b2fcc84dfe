//! Checks one file: reads it, splits it into documents, checks and renders them. Stateless; runs on any thread.

use std::fmt::Write as _;

use super::super::policies;
use crate::doc::Value;
use crate::engine::{Attributes, Diagnostic, Engine, NamespaceLookup as _, Namespaces, Verdict};
use crate::files::{self, Input};
use crate::policy::PolicyError;
use crate::report::{DocumentResult, DocumentStatus, LocatedFinding, Piece, Report, Summary};
use crate::source::list::{self, ListedObject};
use crate::source::{Document, InputError, Lines, documents};

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
    pub(super) engine: &'r Engine,
    pub(super) reports: &'r [Report],
    pub(super) namespaces: Option<&'r Namespaces>,
    pub(super) now: &'r str,
    pub(super) limit: u64,
}

impl FileChecker<'_> {
    /// Checks one file.
    pub(super) fn check(&self, work: &WorkItem) -> FileOutput {
        let file = work.name();
        let mut reporter = FileReporter {
            checker: self,
            output: FileOutput {
                pieces: vec![Piece::default(); self.reports.len()],
                summary: Summary { files: 1, ..Summary::default() },
            },
        };
        let text = match work {
            WorkItem::InputError(error) => Err(error.clone()),
            WorkItem::Read(input) => files::read(input, self.limit),
        };
        match text {
            Err(error) => reporter.report(&DocumentResult::unreadable(&error, "", 0)),
            Ok(text) => reporter.report_text(&file, &text),
        }
        for (report, piece) in self.reports.iter().zip(&mut reporter.output.pieces) {
            report.close(piece, &file, &reporter.output.summary);
        }
        reporter.output
    }

    fn validate<'d>(&self, item: &'d ListedObject<'d>) -> Verdict {
        let object = item.value();
        let namespace = object.get("metadata").get("namespace").str();
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let labels = self.namespaces.labels(namespace);
        self.engine.validate(&Attributes::create(object, "", self.now), labels)
    }
}

struct FileReporter<'r> {
    checker: &'r FileChecker<'r>,
    output: FileOutput,
}

impl FileReporter<'_> {
    fn report_text(&mut self, file: &str, text: &str) {
        let lines = Lines::of(text);
        let mut is_empty = true;
        let mut broken = None;
        for document in documents(text) {
            is_empty = false;
            let document = match document {
                Ok(document) => document,
                Err(fault) => {
                    self.report(&DocumentResult::unreadable(
                        &fault.input_error(file, &lines),
                        text,
                        fault.index,
                    ));
                    continue;
                }
            };
            if let Some(error) = document.not_an_object(file, &lines) {
                self.report(&DocumentResult::unreadable(&error, text, document.index));
                continue;
            }
            if is_policy(document.doc.root()) {
                let all = broken.get_or_insert_with(|| policies::errors(file, text));
                let ours: Vec<PolicyError> = all
                    .iter()
                    .filter(|(of, _)| *of == document.index)
                    .map(|(_, error)| error.clone())
                    .collect();
                if !ours.is_empty() {
                    self.report_policy(file, text, &lines, document.index, &ours);
                    continue;
                }
            }
            for item in list::objects(document.doc.root()) {
                self.report_item(file, text, &lines, &document, &item);
            }
        }
        // kubectl rejects such a file too; in a pipeline, a manifest was probably lost.
        if is_empty {
            let error =
                InputError::of_file(file, "there is no object in this file, only comments or nothing");
            self.report(&DocumentResult::unreadable(&error, text, 0));
        }
    }

    /// Reports a policy that does not load as unreadable input, as with `--policy`.
    fn report_policy(
        &mut self,
        file: &str,
        text: &str,
        lines: &Lines<'_>,
        index: usize,
        errors: &[PolicyError],
    ) {
        let Some(first) = errors.first() else { return };
        let mut message = first.message.clone();
        for other in errors.iter().skip(1) {
            _ = write!(message, "; {}:{}: {}", other.line, other.column, other.message);
        }
        let line = lines.line(first.line);
        let letters = text.get(line.clone()).unwrap_or_default().char_indices();
        let at = letters.skip(1).nth(first.column.saturating_sub(2)).filter(|_| first.column > 1);
        let error = InputError {
            file: file.to_owned(),
            line: first.line,
            column: first.column,
            at: line.start + at.map_or(0, |(at, _)| at),
            message,
        };
        self.report(&DocumentResult::unreadable(&error, text, index));
    }

    fn report_item(
        &mut self,
        file: &str,
        text: &str,
        lines: &Lines<'_>,
        document: &Document<'_>,
        item: &ListedObject<'_>,
    ) {
        let verdict = self.checker.validate(item);
        let status = match (&verdict, verdict.allowed()) {
            (Verdict::Skipped, _) => DocumentStatus::Skipped,
            (_, true) => DocumentStatus::Valid,
            (_, false) => DocumentStatus::Invalid,
        };
        let findings: Vec<LocatedFinding> = match verdict {
            Verdict::Skipped => Vec::new(),
            Verdict::Checked(findings) => {
                findings.into_iter().map(|diagnostic| locate(diagnostic, lines, document, item)).collect()
            }
        };
        let value = item.value();
        let metadata = value.get("metadata");
        let name = [metadata.get("name").str(), metadata.get("generateName").str()];
        self.report(&DocumentResult {
            file,
            text,
            document: document.index,
            line: lines.position(document.offset + value.span().start as usize).0,
            api_version: value.get("apiVersion").str(),
            kind: value.get("kind").str(),
            namespace: metadata.get("namespace").str(),
            name: name.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
            status,
            findings: &findings,
            error: None,
        });
    }

    fn report(&mut self, entry: &DocumentResult<'_>) {
        self.output.summary.add(entry);
        for (report, piece) in self.checker.reports.iter().zip(&mut self.output.pieces) {
            report.add(piece, entry);
        }
    }
}

/// The document is a policy.
fn is_policy(root: Value<'_>) -> bool {
    root.get("apiVersion").str().starts_with("tollgate.dev/")
}

/// Locates a finding about an item in the file.
fn locate(
    mut diagnostic: Diagnostic,
    lines: &Lines<'_>,
    document: &Document<'_>,
    item: &ListedObject<'_>,
) -> LocatedFinding {
    let finding = &mut diagnostic.finding;
    if !item.indexes.is_empty() {
        finding.server_at.get_or_insert_with(|| finding.at.print(crate::field::PathStyle::User));
        finding.at = item.within(std::mem::take(&mut finding.at));
        for also in &mut finding.also {
            *also = item.within(std::mem::take(also));
        }
    }
    let location = document.locate(lines, &finding.at, finding.on_key);
    let also = finding.also.iter().map(|path| document.locate(lines, path, finding.on_key)).collect();
    LocatedFinding { diagnostic, location, also }
}
