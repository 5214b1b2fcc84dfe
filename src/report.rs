//! Reports for people and programs, written one document at a time in one of several formats. Checks and opens nothing.
//!
//! A report is a [`ReportRenderer::header`], one [`FileReportPart`] per file, and a [`ReportRenderer::footer`]. Workers
//! render the parts of files as text, in any order; one thread writes them in the order of the files.
//!
//! Invariant: joining the pieces of the files in order gives one well-formed report, whatever the number of threads.

mod cascade;
mod fingerprint;
mod piece;
pub(crate) mod record;
mod skip;
mod statistics;

pub(crate) use json::review_line;
pub(crate) use junit::escape as junit_escape;
pub use piece::FileReportPart;
pub use skip::{SkipCounts, SkipReason};
pub use statistics::Statistics;
pub(crate) use text::message_with_help;

use tollgate_document::finding::Applicability;
use tollgate_document::source::{InputError, SourceLocation, TextFix};
use tollgate_engine::engine::Diagnostic;
use tollgate_engine::rules::FindingLevel;
use tollgate_formats::sanitize;

/// Declares the output formats: one line each, so that `mod`, enum and table cannot drift. The name of the file is the
/// name that `-o` takes; the file has a `Writer` that implements [`ReportWriter`].
macro_rules! formats {
    ($($file:ident: $format:ident, $doc:literal;)*) => {
        $(mod $file;)*

        /// The format of a report.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Format {
            $(#[doc = $doc] $format,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: [Format; [$(Format::$format),*].len()] = [$(Format::$format),*];

            /// Name of the format, such as `json`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Format::$format => stringify!($file),)*
                }
            }

            fn writer(self) -> &'static dyn ReportWriter {
                match self {
                    $(Format::$format => &$file::Writer,)*
                }
            }
        }
    };
}

formats! {
    text: Text, "Human-readable text with source snippets.";
    concise: Concise, "One line per finding.";
    json: Json, "One JSON object.";
    sarif: Sarif, "SARIF 2.1.0, for code scanning.";
    junit: Junit, "JUnit XML, for CI servers.";
    github: Github, "GitHub Actions workflow commands.";
    gitlab: Gitlab, "GitLab code quality report.";
}

impl Format {
    /// Returns the format with that name; `None` if there is none.
    pub fn parse(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Interface of an output format. The methods are called in the order of their declaration.
trait ReportWriter {
    /// Returns the header of the report.
    fn begin(&self, report: &ReportRenderer) -> String {
        _ = report;
        String::new()
    }

    /// Adds a document to the part of its file.
    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &ReportRenderer);

    /// Returns the piece of a file in its final form; `piece` has all its documents.
    fn close(&self, piece: String, file: &str, counted: &Summary, report: &ReportRenderer) -> String {
        _ = (file, counted, report);
        piece
    }

    /// Returns what follows the last file in the report, such as closing brackets; with `--statistics`, the table of
    /// rules instead.
    fn end(&self, summary: &Summary, report: &ReportRenderer) -> String {
        report.summary_unless_quiet(summary)
    }
}

tollgate_formats::named_enum! {
    /// Whether a document is valid, invalid, skipped or unreadable.
    #[derive(Default)]
    pub enum DocumentStatus {
        /// No finding denies the document; there may be warnings.
        Valid = "valid",
        /// A finding denies the document.
        Invalid = "invalid",
        /// The document is not checked: it is of another kind, or not an object.
        #[default]
        Skipped = "skipped",
        /// The document cannot be read.
        Unreadable = "unreadable",
    }
}

/// A finding and its position in the file.
#[derive(Clone, Debug)]
pub struct LocatedFinding {
    /// The finding.
    pub diagnostic: Diagnostic,
    /// Position of the finding.
    pub location: SourceLocation,
    /// Related positions.
    pub also: Vec<SourceLocation>,
    /// The fix as edits of this text.
    pub fix: Option<TextFix>,
}

/// A finding that is accepted: counted, not reported.
#[derive(Clone, Debug)]
pub struct AcceptedFinding {
    /// The finding with its position.
    pub located: LocatedFinding,
    /// The reason why the finding is accepted.
    pub by: AcceptedBy,
}

/// What accepts a finding, so that it is not reported: a comment, a baseline or the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AcceptedBy {
    /// A comment in the file.
    Comment {
        /// The reason given in the comment.
        reason: String,
    },
    /// The finding is in the baseline.
    Baseline,
    /// An override of the configuration.
    Override {
        /// The reason given in the configuration.
        reason: String,
    },
}

/// The result of checking one document, with its findings and position, as reports print it.
#[derive(Default, Debug)]
pub struct DocumentResult<'a> {
    /// The file name as given by the user.
    pub file: &'a str,
    /// The file's text, empty if it could not be read.
    pub text: &'a str,
    /// Number of the document in the file, from 0.
    pub document: usize,
    /// The line of its start; 0 if unknown.
    pub line: usize,
    /// `apiVersion` of the object.
    pub api_version: &'a str,
    /// `kind` of the object.
    pub kind: &'a str,
    /// `metadata.namespace` of the object.
    pub namespace: &'a str,
    /// `metadata.name`, or `generateName` without a name.
    pub name: &'a str,
    /// Result of the check.
    pub status: DocumentStatus,
    /// The findings, in order.
    pub findings: &'a [LocatedFinding],
    /// Errors that the API server reports only after one of the findings is fixed; for people.
    pub hidden: &'a [LocatedFinding],
    /// Findings that are accepted, in order.
    pub accepted: &'a [AcceptedFinding],
    /// Findings of rules whose level is `allow`: counted, not reported.
    pub allowed: usize,
    /// The profiles it was checked against.
    pub profiles: &'a [&'static str],
    /// The error, if the document cannot be read.
    pub error: Option<&'a InputError>,
    /// The reason, if the document is skipped.
    pub skipped: Option<SkipReason>,
}

impl<'a> DocumentResult<'a> {
    /// Creates the result for an input that cannot be read.
    pub fn unreadable(error: &'a InputError, text: &'a str, document: usize) -> DocumentResult<'a> {
        DocumentResult {
            file: &error.file,
            text,
            document,
            line: error.line,
            status: DocumentStatus::Unreadable,
            error: Some(error),
            ..DocumentResult::default()
        }
    }

    /// Creates the result for a document that is skipped before its object is read.
    pub fn skipped(file: &'a str, document: usize, line: usize, reason: SkipReason) -> DocumentResult<'a> {
        DocumentResult { file, document, line, skipped: Some(reason), ..DocumentResult::default() }
    }

    /// Returns kind and name of the object, such as `DeviceTaintRule ml/r1`, or the number of the document if it
    /// has neither.
    fn object_label(&self) -> String {
        let name = if self.namespace.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}/{}", self.namespace, self.name)
        };
        match (self.kind, name.as_str()) {
            ("", "") => format!("document {}", self.document),
            ("", name) => name.to_owned(),
            (kind, "") => kind.to_owned(),
            (kind, name) => format!("{kind} {name}"),
        }
    }
}

/// Numbers of files, documents and findings of a run, for the summary of a report and the exit code.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Number of inputs.
    pub files: usize,
    /// Documents; each item of a list counts.
    pub documents: usize,
    /// Number of checked documents.
    pub checked: usize,
    /// Documents that were not checked.
    pub skipped: usize,
    /// Documents without denials.
    pub valid: usize,
    /// Documents with denials.
    pub invalid: usize,
    /// Inputs and documents that cannot be read.
    pub unreadable: usize,
    /// Findings of level deny.
    pub denied: usize,
    /// Findings of level warn.
    pub warned: usize,
    /// Findings that are not reported because the level of their rule is `allow`.
    pub allowed: usize,
    /// Findings that are not reported because something in the repository accepts them.
    pub suppressed: usize,
    /// Findings that are not reported because a baseline has them.
    pub baselined: usize,
    /// Known findings of baselines that were not found any more.
    #[serde(rename = "staleBaseline")]
    pub stale: usize,
    /// Skipped documents by reason.
    pub skipped_by: SkipCounts,
    /// Paths in folders that were not read.
    pub not_read: UnreadPathCounts,
    /// Files that were not checked and mention `resource.k8s.io`.
    #[serde(skip_serializing_if = "UncheckedMentionCounts::is_empty")]
    pub mentions: UncheckedMentionCounts,
    /// Valid documents with warnings; for people only.
    #[serde(skip)]
    pub warned_documents: usize,
    /// Findings of level audit, which do not affect the exit code; for people only.
    #[serde(skip)]
    pub audited: usize,
    /// Findings that `--fix` would fix; for people only.
    #[serde(skip)]
    pub fixable: usize,
    /// Findings that only `--unsafe-fixes` would fix; for people only.
    #[serde(skip)]
    pub fixable_unsafely: usize,
    /// Findings that were fixed; for people only.
    #[serde(skip)]
    pub fixed: usize,
    /// Files in which something was fixed; for people only.
    #[serde(skip)]
    pub fixed_files: usize,
    /// True if fixes were shown and not applied; for people only.
    #[serde(skip)]
    pub is_diff: bool,
}

/// Paths in folders that were not read: manifests by their name, and whole folders.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, serde::Serialize)]
pub struct UnreadPathCounts {
    /// Number of files excluded by `.gitignore` or `.ignore`.
    pub ignored: usize,
    /// Number of files excluded by `--exclude`.
    pub excluded: usize,
    /// Symbolic links that lead out of their folder.
    pub outside: usize,
}

/// Files in folders that were not checked and mention `resource.k8s.io`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, serde::Serialize)]
pub struct UncheckedMentionCounts {
    /// Number of Markdown files.
    pub markdown: usize,
    /// Files with unrendered templates.
    pub templates: usize,
}

impl UncheckedMentionCounts {
    fn is_empty(&self) -> bool {
        *self == UncheckedMentionCounts::default()
    }
}

impl Summary {
    /// Adds a document to the totals.
    pub fn count_document(&mut self, entry: &DocumentResult<'_>) {
        let of = |level| entry.findings.iter().filter(|placed| placed.diagnostic.level == level).count();
        let warned = of(FindingLevel::Warn);
        self.warned += warned;
        self.denied += of(FindingLevel::Deny);
        self.audited += of(FindingLevel::Audit);
        self.allowed += entry.allowed;
        for fix in entry.findings.iter().filter_map(|located| located.fix.as_ref()) {
            match fix.applicability {
                Applicability::Safe => self.fixable += 1,
                Applicability::Unsafe => self.fixable_unsafely += 1,
            }
        }
        let known = entry.accepted.iter().filter(|accepted| accepted.by == AcceptedBy::Baseline).count();
        self.baselined += known;
        self.suppressed += entry.accepted.len() - known;
        self.documents += 1;
        match entry.status {
            DocumentStatus::Valid => self.valid += 1,
            DocumentStatus::Invalid => self.invalid += 1,
            DocumentStatus::Skipped => {
                self.skipped += 1;
                self.skipped_by.count_document(entry.skipped.unwrap_or(SkipReason::OtherKind));
            }
            DocumentStatus::Unreadable => self.unreadable += 1,
        }
        self.warned_documents += usize::from(entry.status == DocumentStatus::Valid && warned > 0);
        self.checked = self.valid + self.invalid;
    }

    /// Adds the counts of another part of the run.
    pub fn merge(&mut self, other: &Summary) {
        self.files += other.files;
        self.documents += other.documents;
        self.checked += other.checked;
        self.skipped += other.skipped;
        self.valid += other.valid;
        self.invalid += other.invalid;
        self.unreadable += other.unreadable;
        self.denied += other.denied;
        self.warned += other.warned;
        self.allowed += other.allowed;
        self.suppressed += other.suppressed;
        self.baselined += other.baselined;
        self.stale = self.stale.saturating_add(other.stale);
        self.skipped_by.merge(&other.skipped_by);
        self.not_read.ignored += other.not_read.ignored;
        self.not_read.excluded += other.not_read.excluded;
        self.not_read.outside += other.not_read.outside;
        self.mentions.markdown += other.mentions.markdown;
        self.mentions.templates += other.mentions.templates;
        self.warned_documents += other.warned_documents;
        self.audited += other.audited;
        self.fixable += other.fixable;
        self.fixable_unsafely += other.fixable_unsafely;
        self.fixed += other.fixed;
        self.fixed_files += other.fixed_files;
        self.is_diff |= other.is_diff;
    }
}

/// A report format, with the settings that rendering needs.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the user, and they combine freely")]
pub struct ReportRenderer {
    /// The output format.
    pub format: Format,
    /// The selected profiles, of all documents.
    pub profiles: Vec<&'static str>,
    /// True if colors may be used.
    pub styled: bool,
    /// True to print only findings, without a summary.
    pub quiet: bool,
    /// True to report counts per rule instead of findings.
    pub statistics: bool,
    /// True to list skipped documents in reports for people.
    pub show_skipped: bool,
    /// True if the documents are objects of a cluster and the reader is the author of the policies. Text
    /// reports then count objects and show audit findings.
    pub of_cluster: bool,
    /// True if findings in a text report can be omitted individually: see `FileReportPart::findings_and_other_text`.
    pub foldable: bool,
}

impl ReportRenderer {
    /// Returns the header of the report.
    pub fn header(&self) -> String {
        if self.statistics { String::new() } else { self.format.writer().begin(self) }
    }

    /// Adds a document to the part of its file.
    pub fn append_document(&self, piece: &mut FileReportPart, entry: &DocumentResult<'_>) {
        if !self.statistics {
            self.format.writer().add(&mut piece.text, entry, self);
        }
    }

    /// Completes the part of a file.
    pub fn finish_file(&self, piece: &mut FileReportPart, file: &str, counted: &Summary) {
        if !self.statistics {
            piece.text = self.format.writer().close(std::mem::take(&mut piece.text), file, counted, self);
        }
    }

    /// Returns the footer of the report, which includes the summary.
    pub fn footer(&self, summary: &Summary, statistics: &Statistics) -> String {
        if self.statistics {
            statistics.render(self, summary)
        } else {
            self.format.writer().end(summary, self)
        }
    }

    /// Returns the summary for people, such as the number of files and findings; empty with `--quiet`.
    pub(crate) fn summary_unless_quiet(&self, summary: &Summary) -> String {
        if self.quiet { String::new() } else { text::summary_line(summary, self) }
    }
}

/// Returns the URL of the page about a rule.
pub(crate) fn docs_url(rule: &str) -> String {
    format!("{}/blob/main/docs/rules/{rule}.md", env!("CARGO_PKG_REPOSITORY"))
}

/// Returns the releases and drafts that a finding applies to; `None` if only one was checked.
fn profiles_if_several(located: &LocatedFinding, report: &ReportRenderer) -> Option<String> {
    (report.profiles.len() > 1).then(|| located.diagnostic.profiles.join(", "))
}

/// Replaces characters that could control a terminal: see [`sanitize`].
pub(crate) fn replace_control_chars(text: &str) -> String {
    sanitize::sanitize_multiline_text(text).into_owned()
}

/// Returns the first sentence of the page about a rule, which follows `**origin · level**`.
pub(crate) fn first_sentence(page: &str) -> String {
    let lines = page.lines().skip(1).skip_while(|line| line.trim().is_empty());
    let paragraph = lines.map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let text = paragraph.rsplit_once("**").map_or(paragraph.as_str(), |(_, text)| text).trim();
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text.get(..end).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_cannot_write_to_the_terminal() {
        let shown = super::replace_control_chars("a\u{1b}[2J\u{202e}b\u{9b}\nc");
        assert_eq!(shown, "a\u{fffd}[2J\u{fffd}b\u{fffd}\nc");
    }

    #[test]
    fn the_first_sentence_of_a_page_says_what_it_is_about() {
        let page = "# some-rule\n\n**lint · warn** Something is\nodd. And more.\n\nWhy.\n";
        assert_eq!(super::first_sentence(page), "Something is odd.");
        assert_eq!(super::first_sentence("# some-rule\n"), "");
    }
}
