//! Checks the text of one manifest file: splits it into documents, judges each object and locates the findings.
//!
//! Every command that judges texts goes this way, so all of them say the same. It reads no file and writes no report:
//! the caller gets one [`DocumentResult`] after the other.
//!
//! Invariant: each document of the text gives at least one result, in the order of the text.

use std::fmt::Write as _;

use super::policies;
use crate::config::Levels;
use crate::doc::Value;
use crate::engine::{Attributes, Diagnostic, Engine, NamespaceLookup as _, Namespaces, Verdict};
use crate::policy::PolicyError;
use crate::report::{DocumentResult, DocumentStatus, LocatedFinding};
use crate::source::list::{self, ListedObject};
use crate::source::{Document, InputError, Lines, documents};

/// Checks texts. Stateless; runs on any thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextChecker<'r> {
    pub(super) engine: &'r Engine,
    pub(super) namespaces: Option<&'r Namespaces>,
    pub(super) levels: &'r Levels,
    pub(super) now: &'r str,
}

impl TextChecker<'_> {
    /// Checks the documents of a text and passes each result on.
    pub(super) fn check(&self, file: &str, text: &str, emit: &mut dyn FnMut(&DocumentResult<'_>)) {
        TextRun { checker: self, emit }.check(file, text);
    }

    fn validate<'d>(&self, item: &'d ListedObject<'d>) -> Verdict {
        let object = item.value();
        let namespace = object.get("metadata").get("namespace").str();
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let labels = self.namespaces.labels(namespace);
        self.engine.validate(&Attributes::create(object, "", self.now), labels)
    }
}

/// One text being checked.
struct TextRun<'r> {
    checker: &'r TextChecker<'r>,
    emit: &'r mut dyn FnMut(&DocumentResult<'_>),
}

impl TextRun<'_> {
    fn check(&mut self, file: &str, text: &str) {
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
        let mut verdict = self.checker.validate(item);
        let mut allowed = 0;
        if let Verdict::Checked(diagnostics) = &mut verdict {
            let found = diagnostics.len();
            diagnostics.retain_mut(|diagnostic| self.checker.levels.apply(diagnostic));
            allowed = found - diagnostics.len();
        }
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
            allowed,
            error: None,
        });
    }

    fn report(&mut self, entry: &DocumentResult<'_>) {
        (self.emit)(entry);
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
        if let Some(fix) = &mut finding.fix {
            fix.relocate(|path| item.within(path));
        }
    }
    let location = document.locate(lines, &finding.at, finding.on_key);
    let also = finding.also.iter().map(|path| document.locate(lines, path, finding.on_key)).collect();
    let fix = finding.fix.as_ref().and_then(|fix| document.text_fix(lines, fix));
    LocatedFinding { diagnostic, location, also, fix }
}
