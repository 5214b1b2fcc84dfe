//! Checks the text of one manifest file: splits it into documents, checks each object and locates the findings.
//!
//! All commands that check texts use this module, so their results agree. It reads no file and writes no report: the
//! caller gets one [`DocumentResult`] after the other.
//!
//! A text that the user named must be a manifest. In a text that was found in a folder, documents that are not
//! manifests are skipped with a reason ([`found`]).
//!
//! Invariant: each document of the text gives at least one result, in the order of the text; the findings of a document
//! are in the order of their lines.

mod found;
mod hidden;

use std::ops::Range;

use super::{namespaces, policies, test};
use crate::config::{KnownFindings, LevelsAndOverrides, SplitFindings, Suppressions};
use crate::report::{DocumentResult, DocumentStatus, LocatedFinding, SkipReason};
pub(super) use found::FileRole;
use tollgate_document::doc::Value;
use tollgate_document::source::list::{self, DocumentObject};
use tollgate_document::source::{Document, DocumentError, InputError, LineIndex, documents, markdown, shape};
use tollgate_engine::engine::{
    Attributes, ClaimLocations, ClaimsInFiles, Diagnostic, Engine, LoadedNamespaces, Verdict,
};
use tollgate_engine::policy;
use tollgate_engine::rules::input::kind_list_duplicate_key_finding;
use tollgate_engine::rules::table::{DUPLICATE_KEY, INVALID_POLICY};

/// Where a text comes from, which decides whether documents that cannot be checked are errors or are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextSource {
    /// The user named it: what cannot be checked is an error.
    Named,
    /// It was found in a folder: documents that are not manifests are skipped.
    Found(FileRole),
    /// It is Markdown: the manifests in its code blocks are checked, as excerpts.
    Markdown {
        /// It was found in a folder.
        is_found: bool,
    },
}

impl TextSource {
    /// True if a walk found the text in a folder.
    pub(super) fn is_found_in_folder(self) -> bool {
        matches!(self, TextSource::Found(_) | TextSource::Markdown { is_found: true })
    }

    pub(super) fn is_markdown_text(self) -> bool {
        matches!(self, TextSource::Markdown { .. })
    }

    /// Returns the byte ranges of the manifests in a text: YAML and JSON code blocks in Markdown, else the whole
    /// text.
    fn manifest_ranges(self, text: &str) -> Vec<Range<usize>> {
        if self.is_markdown_text() {
            markdown::manifest_block_ranges(text)
        } else {
            std::iter::once(0..text.len()).collect()
        }
    }

    /// True if the text was found in a folder and all of its documents are skipped.
    pub(super) fn skips_all_documents(self, text: &str) -> bool {
        let TextSource::Found(role) = self else { return false };
        documents(text).all(|document| match document {
            Ok(document) => found::reason_to_skip(&document, text, role).is_some(),
            Err(error) => found::reason_to_skip_unparsable(text, &error, role).is_some(),
        })
    }
}

/// Checks the documents of a text with one engine and its settings. It has no state, so it can be used on any
/// thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextChecker<'r> {
    pub(super) engine: &'r Engine,
    pub(super) namespaces: Option<&'r LoadedNamespaces>,
    /// The claims that are checked in the same run.
    pub(super) claims: Option<&'r ClaimLocations>,
    /// The names of the engine's profiles.
    pub(super) profiles: &'r [&'static str],
    pub(super) acceptance: LevelsAndOverrides<'r>,
    pub(super) now: &'r str,
}

impl TextChecker<'_> {
    /// Checks the documents of a text, and calls `emit` with each result.
    pub(super) fn check_text(
        &self,
        file: &str,
        text: &str,
        source: TextSource,
        emit: &mut dyn FnMut(&DocumentResult<'_>),
    ) {
        self.check_against_baseline(&mut KnownFindings::default(), file, text, source, emit);
    }

    /// Checks a text like [`Self::check_text`], and accepts the findings in `known`, which are those of the baseline.
    /// Removes each accepted one from `known`; what is left there no longer occurs in the text.
    pub(super) fn check_against_baseline(
        &self,
        known: &mut KnownFindings,
        file: &str,
        text: &str,
        source: TextSource,
        emit: &mut dyn FnMut(&DocumentResult<'_>),
    ) {
        let lines = LineIndex::from_text(text);
        let (mut suppressions, mut own_namespaces) = (Suppressions::default(), None);
        if !source.is_markdown_text() {
            suppressions = Suppressions::parse_text(text, &lines);
            // `adminAccess` is allowed only in namespaces with a certain label.
            if self.namespaces.is_none() && text.contains("adminAccess") {
                own_namespaces = namespaces::from_texts([text]);
            }
        }
        TextCheckState {
            checker: self,
            file,
            text,
            known,
            suppressions,
            lines,
            source,
            own_namespaces,
            policy_errors: None,
            emit,
        }
        .check_documents();
    }

    fn validate(&self, file: &str, object: Value<'_>, own: Option<&LoadedNamespaces>) -> Verdict {
        let labels = namespaces::labels_for_object(object, self.namespaces.or(own));
        let claims = self.claims.map(|known| ClaimsInFiles { known, file });
        self.engine.validate_with_claims(&Attributes::for_create(object, "", self.now), labels, claims)
    }
}

/// State of the check of one text.
struct TextCheckState<'r> {
    checker: &'r TextChecker<'r>,
    file: &'r str,
    text: &'r str,
    lines: LineIndex<'r>,
    known: &'r mut KnownFindings,
    suppressions: Suppressions,
    source: TextSource,
    /// The Namespace objects in the text itself, if they are needed and no others were given.
    own_namespaces: Option<LoadedNamespaces>,
    /// The errors of all policies in the text, with the index of their document; found on first use.
    policy_errors: Option<Vec<(usize, InputError)>>,
    emit: &'r mut dyn FnMut(&DocumentResult<'_>),
}

impl TextCheckState<'_> {
    fn check_documents(&mut self) {
        let mut count = 0;
        for part in self.source.manifest_ranges(self.text) {
            let text = self.text.get(part.clone()).unwrap_or_default();
            if self.source.is_markdown_text() && shape::has_shortcode(text) {
                let line = self.lines.line_and_column(part.start).0;
                (self.emit)(&DocumentResult::skipped(self.file, count, line, SkipReason::Template));
                count += 1;
                continue;
            }
            for document in documents(text) {
                match document {
                    Ok(mut document) => {
                        document.index = count;
                        document.offset += part.start;
                        self.check_document(&document);
                    }
                    Err(mut fault) => {
                        fault.index = count;
                        fault.at += part.start;
                        self.report_unparsable(&fault);
                    }
                }
                count += 1;
            }
        }
        if count == 0 {
            self.report_text_without_documents();
        }
    }

    fn check_document(&mut self, document: &Document<'_>) {
        let root = document.doc.root();
        if self.source.is_markdown_text() {
            return match found::reason_to_skip_in_markdown(root) {
                Some(reason) => self.report_skipped(document, reason),
                None if is_policy(root) => self.report_skipped(document, SkipReason::OtherKind),
                None if document.non_object_or_broken_list_error(self.file, &self.lines).is_some() => {
                    self.report_skipped(document, SkipReason::NotKubernetes)
                }
                None => self.check_objects_in_document(document),
            };
        }
        if let TextSource::Found(role) = self.source
            && let Some(reason) = found::reason_to_skip(document, self.text, role)
            && !self.is_policy_test(root)
        {
            return self.report_skipped(document, reason);
        }
        let list_error = document
            .non_object_or_broken_list_error(self.file, &self.lines)
            .or_else(|| document.nested_list_error(self.file, &self.lines));
        if let Some(error) = list_error {
            return (self.emit)(&DocumentResult::unreadable(&error, self.text, document.index));
        }
        // What is about something before this document was not checked.
        self.suppressions
            .forget_up_to_line(|| self.lines.line_and_column(document.offset).0.saturating_sub(1));
        // The errors that would keep a test from running, or a policy from loading with `--policy`.
        let is_test = self.is_policy_test(root);
        let mut errors = if is_test {
            test::errors_in_test_file(self.file, document, &self.lines)
        } else if is_policy(root) {
            self.policy_errors(document.index)
        } else {
            Vec::new()
        };
        if errors.is_empty() && is_test {
            self.report_skipped(document, SkipReason::PolicyTest);
        } else if errors.is_empty() {
            self.check_objects_in_document(document);
        }
        errors.sort_by(|one, other| {
            (one.line, one.column, &one.message).cmp(&(other.line, other.column, &other.message))
        });
        for error in errors {
            (self.emit)(&DocumentResult::unreadable(&error, self.text, document.index));
        }
    }

    /// Checks and reports the object of a document, or each object of a list.
    fn check_objects_in_document(&mut self, document: &Document<'_>) {
        self.report_duplicate_keys_of_list(document);
        let mut items = list::objects(document.doc.root()).peekable();
        while let Some(item) = items.next() {
            let is_last = items.peek().is_none();
            self.check_and_report_object(document, &item, is_last);
        }
    }

    /// Reports the keys that a list has twice, such as a second `items`, of which the last one counts.
    fn report_duplicate_keys_of_list(&mut self, document: &Document<'_>) {
        let duplicates = list::duplicate_type_or_items_keys_of_lists(document.doc.root());
        if duplicates.is_empty() || !self.checker.engine.rules.has(DUPLICATE_KEY) {
            return;
        }
        let locate = |at| {
            let finding = kind_list_duplicate_key_finding(at);
            let location = document.locate(&self.lines, &finding.at, true);
            let diagnostic = Diagnostic::new(finding, self.checker.profiles.to_vec());
            LocatedFinding { diagnostic, location, also: Vec::new(), fix: None }
        };
        let located = duplicates.into_iter().map(locate).collect();
        let result = result_without_verdict(
            self.file,
            document.index,
            document.first_line_number(&self.lines),
            document.doc.root(),
        );
        let sorted = self.checker.acceptance.split_accepted(&result, located, self.known);
        self.report_object_findings(&result, &sorted, &[], None);
    }

    /// True if the document is a policy test: by the name of its file, unless it has an apiVersion.
    fn is_policy_test(&self, root: Value<'_>) -> bool {
        let has_tests = self.source == TextSource::Named
            || root.get("tests").exists() && !policy::is_test_of_another_tool(root);
        policy::is_test_file(self.file) && !root.get("apiVersion").exists() && has_tests
    }

    /// Reports a document that cannot be parsed: as an error, or as skipped if a file in a folder need not be a
    /// manifest.
    fn report_unparsable(&mut self, fault: &DocumentError) {
        let error = fault.input_error(self.file, &self.lines);
        let reason = match self.source {
            // An excerpt often leaves something out with a mark that is no YAML.
            TextSource::Markdown { .. } => Some(SkipReason::NotParsable),
            TextSource::Found(role) => found::reason_to_skip_unparsable(self.text, fault, role),
            TextSource::Named => None,
        };
        (self.emit)(&match reason {
            Some(reason) => DocumentResult::skipped(self.file, fault.index, error.line, reason),
            None => DocumentResult::unreadable(&error, self.text, fault.index),
        });
    }

    /// Reports a text without documents: an error if the user named it, as in kubectl, else skipped.
    fn report_text_without_documents(&mut self) {
        if self.source != TextSource::Named {
            return (self.emit)(&DocumentResult::skipped(self.file, 0, 0, SkipReason::Empty));
        }
        let error = InputError::for_whole_file(
            self.file,
            "the file contains no objects: it is empty or contains only comments",
        );
        (self.emit)(&DocumentResult::unreadable(&error, self.text, 0));
    }

    fn report_skipped(&mut self, document: &Document<'_>, reason: SkipReason) {
        let root = document.doc.root();
        let line = document.first_line_number(&self.lines);
        (self.emit)(&DocumentResult {
            text: self.text,
            status: DocumentStatus::Skipped,
            skipped: Some(reason),
            ..result_without_verdict(self.file, document.index, line, root)
        });
    }

    /// Returns the errors of the policies in the document with this index.
    fn policy_errors(&mut self, index: usize) -> Vec<InputError> {
        let all = self
            .policy_errors
            .get_or_insert_with(|| policies::policy_errors_by_document_index(self.file, self.text));
        all.iter().filter(|(of, _)| *of == index).map(|(_, error)| error.clone()).collect()
    }

    fn check_and_report_object(&mut self, document: &Document<'_>, item: &DocumentObject<'_>, is_last: bool) {
        let value = item.typed_value();
        let line = self.lines.line_and_column(document.offset + value.span().start as usize).0;
        let result = result_without_verdict(self.file, document.index, line, value);
        // Comments behind the last object of a document are about nothing.
        let end = if is_last { document.doc.source().len() } else { value.span().end as usize };
        let last_line = || self.lines.line_and_column(document.offset + end).0;
        let Verdict::Checked(mut found) =
            self.checker.validate(self.file, value, self.own_namespaces.as_ref())
        else {
            self.suppressions.forget_up_to_line(last_line);
            let (none, reason) = (SplitFindings::default(), Some(SkipReason::OtherKind));
            return self.report_object_findings(&result, &none, &[], reason);
        };
        // A policy file loaded without errors, although a resource might not, for example with a `schemaFile`.
        if is_policy(document.doc.root()) {
            found.retain(|found| found.finding.rule != INVALID_POLICY);
        }
        let locate = |found| locate_finding(found, &self.lines, document, item);
        let hidden = hidden::errors_hidden_by_missing_exactly(self.checker, self.file, item, &found);
        let hidden: Vec<LocatedFinding> = hidden.into_iter().map(locate).collect();
        let mut located: Vec<LocatedFinding> = found.into_iter().map(locate).collect();
        let mut skipped = None;
        if self.source != TextSource::Named
            && found::drop_findings_on_placeholders(&mut located, document, self.text)
        {
            skipped = located.is_empty().then_some(SkipReason::Template);
        }
        if self.source.is_markdown_text() {
            found::retain_findings_for_excerpt(&mut located, document, self.text);
        }
        let (mut located, suppressed) = self.suppressions.split_suppressed(located, line);
        let (rules, profiles) = (&self.checker.engine.rules, self.checker.profiles);
        located.extend(self.suppressions.take_problems_up_to_line(&self.lines, last_line, rules, profiles));
        located.sort_by_key(|finding| (finding.location.line, finding.location.column));
        let mut sorted = self.checker.acceptance.split_accepted(&result, located, self.known);
        sorted.accepted.extend(suppressed);
        self.report_object_findings(&result, &sorted, &hidden, skipped);
    }

    /// Reports an object with its findings: those to report, those accepted by a baseline or suppression, and
    /// those hidden behind `exactly`.
    fn report_object_findings(
        &mut self,
        result: &DocumentResult<'_>,
        sorted: &SplitFindings,
        hidden: &[LocatedFinding],
        skipped: Option<SkipReason>,
    ) {
        let status = match (skipped, sorted.is_denied()) {
            (Some(_), _) => DocumentStatus::Skipped,
            (None, false) => DocumentStatus::Valid,
            (None, true) => DocumentStatus::Invalid,
        };
        (self.emit)(&DocumentResult {
            text: self.text,
            status,
            findings: &sorted.reported,
            hidden,
            accepted: &sorted.accepted,
            allowed: sorted.allowed,
            profiles: self.checker.profiles,
            skipped,
            ..*result
        });
    }
}

/// Returns a result with type, namespace and name of an object, to which the caller adds the verdict.
fn result_without_verdict<'a>(
    file: &'a str,
    document: usize,
    line: usize,
    object: Value<'a>,
) -> DocumentResult<'a> {
    let metadata = object.get("metadata");
    let name = [metadata.get("name").str(), metadata.get("generateName").str()];
    DocumentResult {
        api_version: list::last_member(object, "apiVersion").str(),
        kind: list::last_member(object, "kind").str(),
        namespace: metadata.get("namespace").str(),
        name: name.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        skipped: None,
        ..DocumentResult::skipped(file, document, line, SkipReason::OtherKind)
    }
}

/// True if the document is a policy, by its apiVersion.
fn is_policy(root: Value<'_>) -> bool {
    list::last_member(root, "apiVersion").str().starts_with("tollgate.dev/")
}

/// Adds to a finding its position in the file. Its paths are changed to start at the document, not at the list item.
fn locate_finding(
    mut diagnostic: Diagnostic,
    lines: &LineIndex<'_>,
    document: &Document<'_>,
    item: &DocumentObject<'_>,
) -> LocatedFinding {
    let finding = &mut diagnostic.finding;
    if !item.indexes.is_empty() {
        finding
            .server_at
            .get_or_insert_with(|| finding.at.print(tollgate_document::field::PathAudience::User));
        finding.at = item.path_in_document(std::mem::take(&mut finding.at));
        for also in &mut finding.also {
            *also = item.path_in_document(std::mem::take(also));
        }
        if let Some(fix) = &mut finding.fix {
            fix.map_paths(|path| item.path_in_document(path));
        }
    }
    let location = document.locate(lines, &finding.at, finding.on_key);
    let also = finding.also.iter().map(|path| document.locate(lines, path, finding.on_key)).collect();
    let fix = finding.fix.as_ref().and_then(|fix| document.text_fix(lines, fix));
    LocatedFinding { diagnostic, location, also, fix }
}
