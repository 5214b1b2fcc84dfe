//! Checks one file: reads it, checks its text and renders the results. Stateless; runs on any thread.

use std::path::{Path, PathBuf};

use super::super::check::{TextChecker, TextSource};
use super::claims::RunClaims;
use super::fix::{FixMode, recount_fixable_by_trying_fixes};
use super::settings::{CheckSettings, InputWithSettings, name_in_baseline};
use crate::config::KnownFindings;
use crate::files::{self, Input};
use crate::report::{
    DocumentResult, DocumentStatus, FileReportPart, Format, ReportRenderer, SkipReason, Statistics, Summary,
    UncheckedMentionCounts,
};
use tollgate_document::source::{InputError, shape};
use tollgate_engine::engine::LoadedNamespaces;

/// API group that Tollgate checks. Files that contain it and are not checked are counted in the report.
const CHECKED_API_GROUP: &str = "resource.k8s.io";
/// Maximum size in bytes of a Markdown file that is searched for objects.
const MAX_SEARCHED_MARKDOWN_BYTES: u64 = 4 << 20;

/// An input of a run: a file to check, or a Markdown file that is only searched for objects.
#[derive(Debug)]
pub(in super::super) enum WorkItem {
    /// An argument that cannot be read.
    InputError(InputError),
    /// An input to read.
    Read(Input, TextSource),
    /// A Markdown file that is not checked, but searched, to report whether it contains objects.
    Search(PathBuf),
}

impl WorkItem {
    pub(super) fn name(&self) -> String {
        match self {
            WorkItem::InputError(error) => error.file.clone(),
            WorkItem::Read(input, _) => input.name(),
            WorkItem::Search(path) => files::shown_path(path),
        }
    }

    /// Returns the input to read, if it is a manifest; `None` for Markdown and other work.
    pub(in super::super) fn manifest_input(&self) -> Option<&Input> {
        match self {
            WorkItem::Read(input, source) if !source.is_markdown_text() => Some(input),
            _ => None,
        }
    }

    /// Returns the path of the file to read; `None` for stdin and other work.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            WorkItem::Read(Input::File(path), _) => Some(path),
            _ => None,
        }
    }
}

/// The result of a file: its part of each report, and its counts.
#[derive(Default, Debug)]
pub(super) struct FileOutput {
    pub(super) pieces: Vec<FileReportPart>,
    /// Path of the file.
    pub(super) path: Option<PathBuf>,
    /// True if a walk found it in a folder.
    pub(super) is_found: bool,
    pub(super) summary: Summary,
    pub(super) statistics: Statistics,
    /// Other output for stdout: a patch, or the fixed text of standard input.
    pub(super) printed: String,
    /// Messages for stderr.
    pub(super) errors: Vec<String>,
    /// True if warnings in this file cause exit code 1.
    pub(super) fails_on_warn: bool,
    /// The file's name in the baseline, and its findings for a new baseline.
    pub(super) baseline: Option<(String, KnownFindings)>,
}

impl FileOutput {
    /// Returns the folder in which a walk found the file; `None` for a file that the user named.
    pub(super) fn walked_folder(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.is_found)?.parent()
    }

    pub(super) fn prints_anything(&self) -> bool {
        !self.printed.is_empty()
            || !self.errors.is_empty()
            || self.pieces.first().is_some_and(|piece| !piece.is_empty())
    }
}

/// Reads the files of a run, applies fixes and checks them.
#[derive(Debug)]
pub(super) struct FileChecker<'r> {
    pub(super) settings: &'r [CheckSettings],
    pub(super) namespaces: Option<&'r LoadedNamespaces>,
    pub(super) claims: &'r RunClaims<'r>,
    pub(super) now: &'r str,
    /// The folder of the new baseline; `None` if none is written.
    pub(super) new_baseline: Option<&'r Path>,
    pub(super) reports: &'r [ReportRenderer],
    pub(super) limit: u64,
    pub(super) fixes: Option<FixMode>,
}

impl FileChecker<'_> {
    /// Returns the name of an input in the baseline, and its known findings; `None` without a baseline.
    fn name_and_findings_in_baseline(
        &self,
        settings: &CheckSettings,
        input: &Input,
    ) -> Option<(String, KnownFindings)> {
        if let Some(folder) = self.new_baseline {
            return Some((name_in_baseline(input, folder), KnownFindings::for_new_baseline()));
        }
        let baseline = settings.baseline.as_ref()?;
        let name = name_in_baseline(input, &baseline.folder);
        let known = baseline.known.known_in_file(&name);
        Some((name, known))
    }

    /// Reads an input, applies fixes if requested, checks it, and returns its part of the reports.
    pub(super) fn fix_if_requested_and_check_input(&self, work: &InputWithSettings) -> FileOutput {
        let file = work.item.name();
        let mut output = FileOutput {
            pieces: vec![FileReportPart::default(); self.reports.len()],
            path: work.item.path().map(Path::to_owned),
            summary: Summary { files: 1, ..Summary::default() },
            ..FileOutput::default()
        };
        match &work.item {
            WorkItem::InputError(error) => {
                self.report(&mut output, &DocumentResult::unreadable(error, "", 0), true);
            }
            WorkItem::Search(path) => {
                let markdown = usize::from(mentions_checked_api_group(path));
                let mentions = UncheckedMentionCounts { markdown, templates: 0 };
                return FileOutput { summary: Summary { mentions, ..Summary::default() }, ..output };
            }
            WorkItem::Read(input, source) => {
                output.is_found = source.is_found_in_folder();
                let settings = self.settings.get(work.settings);
                match (files::read_or_suggest_max_file(input, self.limit), settings) {
                    (Ok(text), Some(settings)) => {
                        self.fix_and_check_text(&mut output, input, *source, settings, &text);
                    }
                    (Ok(_), None) => {}
                    (Err(error), _) => {
                        let result = match self.reason_to_skip_unreadable(input, *source) {
                            Some(reason) => DocumentResult::skipped(&file, 0, 0, reason),
                            None => DocumentResult::unreadable(&error, "", 0),
                        };
                        self.report(&mut output, &result, true);
                    }
                }
            }
        }
        for (report, piece) in self.reports.iter().zip(&mut output.pieces) {
            report.finish_file(piece, &file, &output.summary);
        }
        output
    }

    /// Adds a result to the reports and counts its findings, and the document itself if it was not counted before.
    fn report(&self, output: &mut FileOutput, entry: &DocumentResult<'_>, is_new_document: bool) {
        if is_new_document {
            output.summary.count_document(entry);
        }
        output.statistics.count_findings(entry);
        for (report, piece) in self.reports.iter().zip(&mut output.pieces) {
            report.append_document(piece, entry);
        }
    }

    /// Applies fixes to a text if requested, and checks what it is then.
    fn fix_and_check_text(
        &self,
        output: &mut FileOutput,
        input: &Input,
        source: TextSource,
        settings: &CheckSettings,
        text: &str,
    ) {
        let (file, is_markdown) = (input.name(), source.is_markdown_text());
        let overrides = settings.configured.overrides_for_input(input);
        let claims = if is_markdown { None } else { self.claims.claims_for(input, text) };
        let checker = TextChecker {
            claims: claims.as_deref(),
            ..settings.configured.checker(self.namespaces, self.now, &overrides)
        };
        let fixes = self.fixes.filter(|_| !is_markdown && !text.is_empty());
        let fixed = fixes.map(|mode| mode.fix_input(input, text, source, checker)).unwrap_or_default();
        let new_text = fixed.text.as_deref().unwrap_or(text);
        let mut baseline = self.name_and_findings_in_baseline(settings, input);
        let mut none = KnownFindings::default();
        let known = baseline.as_mut().map_or(&mut none, |(_, known)| known);
        let mut unreadable = None;
        checker.check_against_baseline(known, &file, new_text, source, &mut |entry| {
            // Several errors about one document are one document.
            let document = (entry.status == DocumentStatus::Unreadable).then_some(entry.document);
            self.report(output, entry, document.is_none() || document != unreadable);
            unreadable = document;
        });
        let is_template = |(reason, _)| reason == SkipReason::Template;
        if output.summary.skipped_by.nonzero_counts().any(is_template) && text.contains(CHECKED_API_GROUP) {
            output.summary.mentions.templates = 1;
        }
        if self.needs_fixable_count() {
            recount_fixable_by_trying_fixes(&mut output.summary, checker, source, &file, new_text);
        }
        output.summary.stale += known.stale_count(&settings.configured.engine.rules);
        output.fails_on_warn = settings.configured.settings.fails_on_warn;
        output.baseline = baseline;
        if let Some(mode) = fixes {
            mode.count_fixed_and_clear_fixable(&mut output.summary, &fixed);
            if let Some(reason) = &fixed.error {
                output.summary.unreadable += 1;
                output.errors.push(format!("cannot fix {file}: {reason}"));
            }
            output.printed = fixed.printed;
        }
        if *input == Input::Stdin && self.fixes.is_none() {
            // There is no file in which to fix anything.
            (output.summary.fixable, output.summary.fixable_unsafely) = (0, 0);
        }
    }

    /// True if a report states the number of fixable findings.
    fn needs_fixable_count(&self) -> bool {
        let counts =
            |report: &ReportRenderer| report.format == Format::Text && !report.quiet && !report.statistics;
        self.reports.iter().any(counts)
    }

    /// Returns why an unreadable file is skipped: it was found in a folder and is no manifest. `None` if it is an
    /// error.
    fn reason_to_skip_unreadable(&self, input: &Input, source: TextSource) -> Option<SkipReason> {
        let Input::File(path) = input else { return None };
        if !source.is_found_in_folder() {
            return None;
        }
        if files::is_dangling_link(path) {
            return Some(SkipReason::DanglingLink);
        }
        let text = files::read_lossy(path, self.limit)?;
        if text.trim().is_empty() {
            return Some(SkipReason::Empty);
        }
        // kubectl repairs or converts the encoding, in which every second byte can be zero.
        let is_manifest = shape::may_contain_words(&text.replace('\0', ""), &["apiversion"]);
        (source.is_markdown_text() || !is_manifest).then_some(SkipReason::NotParsable)
    }
}

/// True if the Markdown file contains [`CHECKED_API_GROUP`]; false if it cannot be read.
fn mentions_checked_api_group(path: &Path) -> bool {
    let text = files::read_regular(path, MAX_SEARCHED_MARKDOWN_BYTES);
    text.is_ok_and(|text| memchr::memmem::find(&text, CHECKED_API_GROUP.as_bytes()).is_some())
}
