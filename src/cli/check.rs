//! Checks the text of one manifest file: splits it into documents, judges each object and locates the findings.
//!
//! Every command that judges texts goes this way, so all of them say the same. It reads no file and writes no report:
//! the caller gets one [`DocumentResult`] after the other.
//!
//! Invariant: each document of the text gives at least one result, in the order of the text.

use std::fmt::Write as _;

use super::policies;
use crate::config::{Acceptance, KnownFindings, ObjectName, SortedFindings, Suppressions};
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
    /// The names of the engine's profiles.
    pub(super) profiles: &'r [&'static str],
    pub(super) acceptance: Acceptance<'r>,
    pub(super) now: &'r str,
}

impl TextChecker<'_> {
    /// Checks the documents of a text and passes each result on.
    pub(super) fn check(&self, file: &str, text: &str, emit: &mut dyn FnMut(&DocumentResult<'_>)) {
        self.check_against(&mut KnownFindings::default(), file, text, emit);
    }

    /// The same, with the findings of the text that a baseline has. Those that are left in the end are not there any more.
    pub(super) fn check_against(
        &self,
        known: &mut KnownFindings,
        file: &str,
        text: &str,
        emit: &mut dyn FnMut(&DocumentResult<'_>),
    ) {
        let lines = Lines::of(text);
        let suppressions = Suppressions::of(text, &lines);
        TextRun { checker: self, known, suppressions, emit }.check(file, text, &lines);
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
    known: &'r mut KnownFindings,
    suppressions: Suppressions,
    emit: &'r mut dyn FnMut(&DocumentResult<'_>),
}

impl TextRun<'_> {
    fn check(&mut self, file: &str, text: &str, lines: &Lines<'_>) {
        let mut is_empty = true;
        let mut broken = None;
        for document in documents(text) {
            is_empty = false;
            let document = match document {
                Ok(document) => document,
                Err(fault) => {
                    self.report(&DocumentResult::unreadable(
                        &fault.input_error(file, lines),
                        text,
                        fault.index,
                    ));
                    continue;
                }
            };
            if let Some(error) = document.not_an_object(file, lines) {
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
                    self.report_policy(file, text, lines, document.index, &ours);
                    continue;
                }
            }
            // What is about something before this document was not checked.
            self.suppressions.skip(|| lines.position(document.offset).0.saturating_sub(1));
            let mut items = list::objects(document.doc.root()).peekable();
            while let Some(item) = items.next() {
                let is_last = items.peek().is_none();
                self.report_item(file, text, lines, &document, &item, is_last);
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
        is_last: bool,
    ) {
        let value = item.value();
        let metadata = value.get("metadata");
        let names = [metadata.get("name").str(), metadata.get("generateName").str()];
        let object = ObjectName {
            kind: value.get("kind").str(),
            namespace: metadata.get("namespace").str(),
            name: names.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        };
        let first_line = lines.position(document.offset + value.span().start as usize).0;
        let (status, sorted) = match self.checker.validate(item) {
            Verdict::Skipped => {
                self.suppressions.skip(|| lines.position(document.offset + value.span().end as usize).0);
                (DocumentStatus::Skipped, SortedFindings::default())
            }
            Verdict::Checked(found) => {
                let located = found.into_iter().map(|diagnostic| locate(diagnostic, lines, document, item));
                let (mut located, suppressed) = self.suppressions.sift(located.collect(), first_line);
                // Comments behind the last object of a document are about nothing.
                let end = if is_last { document.doc.source().len() } else { value.span().end as usize };
                let (rules, profiles) = (&self.checker.engine.rules, self.checker.profiles);
                let last_line = || lines.position(document.offset + end).0;
                located.extend(self.suppressions.faults(lines, last_line, rules, profiles));
                let mut sorted = self.checker.acceptance.sort(object, located, self.known);
                sorted.accepted.extend(suppressed);
                let is_denied = sorted.is_denied();
                (if is_denied { DocumentStatus::Invalid } else { DocumentStatus::Valid }, sorted)
            }
        };
        self.report(&DocumentResult {
            file,
            text,
            document: document.index,
            line: first_line,
            api_version: value.get("apiVersion").str(),
            kind: object.kind,
            namespace: object.namespace,
            name: object.name,
            status,
            findings: &sorted.reported,
            accepted: &sorted.accepted,
            allowed: sorted.allowed,
            profiles: self.checker.profiles,
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
