//! `tollgate mutate`: prints objects with the server's defaults filled in.
//!
//! Comments, order and layout are kept: defaults are inserted into the text. Only where that is not possible the whole
//! object is printed again. Objects that do not decode are not changed, with a note; `validate` says why.

pub(super) mod print;
mod rewrite;

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::check::TextSource;
use super::clock;
use super::console::Console;
use super::diff::{self, HunkHeaderLineCounts};
use super::namespaces;
use super::outcome::{ExitCounts, Failure};
use super::shared::{PolicyArgs, ReleaseArgs};
use super::to_safe_json;
use super::units;
use super::validate::{WorkItem, inputs, paths_or_stdin};
use crate::files::{self, DEFAULT_MAX_FILE_BYTES, Input, WalkOptions};
use crate::report::record::record;
use tollgate_document::field::{Path, PathAudience};
use tollgate_document::finding::{Finding, MessageStyle};
use tollgate_document::source::list::{self, DocumentObject};
use tollgate_document::source::{Document, InputError, LineIndex, documents};
use tollgate_engine::defaults::Edit;
use tollgate_engine::engine::{Attributes, Engine, LoadedNamespaces, Verdict, json_patch};
use tollgate_engine::rules::RuleSet;
use tollgate_engine::rules::table::POLICY_LOOKUP;
use tollgate_formats::count::count_with_noun;
use tollgate_formats::sanitize;

/// Print manifests with defaults filled in
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Files, folders (searched for .yaml, .yml and .json files), or `-` for stdin (default: stdin)
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Instead of the manifests, print one JSON object per line, with the JSON Patch (RFC 6902) for an object and its
    /// file, document and name
    #[arg(long)]
    patch: bool,

    /// Print a unified diff instead of the manifests
    #[arg(long, conflicts_with = "patch")]
    diff: bool,

    /// Maximum size of an input file, in bytes
    #[arg(long, value_name = "BYTES", env = "TOLLGATE_MAX_FILE", default_value_t = DEFAULT_MAX_FILE_BYTES)]
    #[arg(hide_short_help = true, value_parser = units::parse_file_size)]
    max_file: u64,

    /// YAML or JSON file with Namespace objects
    ///
    /// Namespaces that are not in the file are treated as having no labels other than kubernetes.io/metadata.name.
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    release: ReleaseArgs,

    #[command(flatten)]
    policies: PolicyArgs,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let found = inputs::find_inputs(&paths_or_stdin(&self.paths)?, &WalkOptions::default(), console);
        let rules = RuleSet::parse("decoding").map_err(Failure::Usage)?;
        let decoding = Engine::new(self.release.profiles()?, rules).with_policies(self.policies.load(&[])?);
        let given = self.namespaces.as_deref().map(namespaces::read_file).transpose()?;
        let read = || found.work.iter().filter_map(WorkItem::manifest_input);
        let among = || namespaces::collect_from_readable_inputs(read());
        let namespaces = given.or_else(|| decoding.policies.needs_namespace_labels().then(among).flatten());
        let now = self.clock.now();
        let mut mutator = Mutator {
            arguments: self,
            engine: decoding,
            namespaces,
            now,
            console,
            tally: ExitCounts::default(),
            is_json: read()
                .all(|input| PathBuf::from(input.name()).extension().is_some_and(|end| end == "json")),
            printed: false,
            skipped_files: 0,
        };
        for item in &found.work {
            match item {
                WorkItem::InputError(error) => mutator.report_and_count_unreadable(error),
                WorkItem::Read(input, source) => mutator.print_file_with_defaults(input, *source)?,
                WorkItem::Search(_) => {}
            }
        }
        if mutator.skipped_files > 0 {
            let files = count_with_noun(mutator.skipped_files, "file");
            let note = "not printed (no Kubernetes objects, or an unrendered template)";
            mutator.console.note(&format!("{files} {note}"));
        }
        Ok(mutator.tally)
    }
}

/// Adds defaults to input files and prints them.
struct Mutator<'r> {
    arguments: &'r Arguments,
    engine: Engine,
    namespaces: Option<LoadedNamespaces>,
    now: String,
    console: &'r mut Console,
    tally: ExitCounts,
    /// True if all inputs are JSON files, whose objects need no `---` between them.
    is_json: bool,
    /// True if an object was already printed.
    printed: bool,
    /// Number of files that were found in folders and are no manifests.
    skipped_files: usize,
}

/// A document, and the defaults that the API server would add to it, as edits.
struct DocumentWithDefaultEdits<'a> {
    document: Document<'a>,
    /// The defaults as edits, with paths from the root of the document.
    edits: Vec<Edit>,
}

impl Mutator<'_> {
    fn print_file_with_defaults(&mut self, input: &Input, source: TextSource) -> Result<(), Failure> {
        let name = input.name();
        let text = match files::read_or_suggest_max_file(input, self.arguments.max_file) {
            Ok(text) => text,
            Err(error) => {
                self.report_and_count_unreadable(&error);
                return Ok(());
            }
        };
        if source.skips_all_documents(&text) {
            self.skipped_files += 1;
            return Ok(());
        }
        let lines = LineIndex::from_text(&text);
        let mut all = Vec::new();
        let mut broken = false;
        for document in documents(&text) {
            match document {
                Err(fault) => {
                    broken = true;
                    self.report_and_count_unreadable(&fault.input_error(&name, &lines));
                }
                Ok(document) => {
                    if let Some(error) = document.non_object_or_broken_list_error(&name, &lines) {
                        broken = true;
                        self.report_and_count_unreadable(&error);
                    } else {
                        all.push(self.find_defaults_and_print_patches(&name, &lines, document)?);
                    }
                }
            }
        }
        // An incomplete file would look complete.
        if broken || self.arguments.patch {
            return Ok(());
        }
        let filled = rewrite::rewrite_file(&text, &all);
        if self.arguments.diff {
            let marked = |text: &str| input.byte_order_mark().to_owned() + text;
            let diff = diff::unified_diff(
                &sanitize::sanitize_as_line(&name),
                &marked(&text),
                &marked(&filled),
                HunkHeaderLineCounts::Always,
            );
            return Ok(self.console.write_data_sanitized_for_terminal(&diff)?);
        }
        self.print_with_document_separator(&filled)
    }

    fn print_with_document_separator(&mut self, filled: &str) -> Result<(), Failure> {
        let is_opened = filled.trim_start().starts_with("---");
        if std::mem::replace(&mut self.printed, true) && !self.is_json && !is_opened {
            self.console.write_all(b"---\n")?;
        }
        self.console.write_data_sanitized_for_terminal(filled)?;
        if !filled.ends_with('\n') {
            self.console.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Returns the defaults that the API server and policies would add to a document; prints patches, and notes
    /// about objects that cannot be defaulted.
    fn find_defaults_and_print_patches<'a>(
        &mut self,
        name: &str,
        lines: &LineIndex<'_>,
        document: Document<'a>,
    ) -> Result<DocumentWithDefaultEdits<'a>, Failure> {
        let mut edits = Vec::new();
        for item in list::objects(document.doc.root()) {
            let admission = Attributes::for_create(item.typed_value(), "", &self.now);
            let labels = namespaces::labels_for_object(item.typed_value(), self.namespaces.as_ref());
            let verdict = self.engine.validate(&admission, labels);
            let position = |finding: &Finding| {
                let at = item.path_in_document(finding.at.clone());
                let location = document.locate(lines, &at, finding.on_key);
                format!("{}:{}", location.line, location.column)
            };
            for diagnostic in verdict.findings() {
                let (name, at) = (sanitize::sanitize_as_line(name), position(&diagnostic.finding));
                self.console.note(&format!("{name}:{at}: defaults not added: {diagnostic}"));
            }
            let found = self.engine.mutate(&admission, labels).edits;
            // Policies that may add tolerations, depending on data that is not available: the printed object may
            // differ from the stored one.
            for mut finding in self.engine.undecided_toleration_defaults(&admission, labels) {
                let at = position(&finding);
                finding.at = item.path_in_document(std::mem::take(&mut finding.at));
                let how = if finding.rule == POLICY_LOOKUP { "; pass --namespaces FILE" } else { "" };
                let why = finding.message_with_path(MessageStyle::Plain);
                self.tally.unreadable += 1;
                self.console.error(&format!("{name}:{at}: default tolerations not added: {why}{how}"));
            }
            if self.arguments.patch && !matches!(verdict, Verdict::Skipped) {
                let line = patch_line(name, document.index, &item, json_patch(&found))?;
                writeln!(self.console, "{line}")?;
            }
            edits.extend(found.into_iter().map(|edit| Edit { at: item.path_in_document(edit.at), ..edit }));
        }
        Ok(DocumentWithDefaultEdits { document, edits })
    }

    fn report_and_count_unreadable(&mut self, error: &InputError) {
        self.tally.unreadable += 1;
        self.console.error(&error.to_string());
    }
}

/// Returns the line of JSON for the patch of an object, with its file, position and name.
fn patch_line(
    file: &str,
    document: usize,
    item: &DocumentObject<'_>,
    patch: String,
) -> Result<String, Failure> {
    let value = item.typed_value();
    let metadata = value.get("metadata");
    let name = [metadata.get("name").str(), metadata.get("generateName").str()];
    let patch = RawValue::from_string(patch).map_err(|error| Failure::Internal(error.into()))?;
    to_safe_json(&record! {
        "file": file,
        "document": document,
        // Where the object is in a list, as `items[2]`.
        "item" if given: item.path_in_document(Path::ROOT.owned()).print(PathAudience::User),
        "apiVersion": value.get("apiVersion").str(),
        "kind": value.get("kind").str(),
        "namespace": metadata.get("namespace").str(),
        "name": name.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        "patch": patch,
    })
}
