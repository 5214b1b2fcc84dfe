//! The inputs of `tollgate validate`: named files, stdin, and what walks of folders find.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::super::check::{FileRole, TextSource};
use super::super::config::path_with_folder_links_resolved;
use super::super::console::Console;
use super::super::outcome::Failure;
use super::check::WorkItem;
use super::layout::ChartsAndPatches;
use crate::files::{self, Excludes, FolderWalkResult, Input, WalkOptions};
use crate::report::UnreadPathCounts;
use tollgate_formats::sanitize;

/// Flags for searching folders.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the user, and they combine freely")]
pub(super) struct WalkArgs {
    /// Paths to skip in folders, as a .gitignore pattern relative to the working directory or to the folder; can be
    /// repeated
    #[arg(long, value_name = "GLOB", help_heading = "Folders")]
    exclude: Vec<String>,

    /// Also check files that .gitignore or .ignore excludes
    #[arg(long, help_heading = "Folders")]
    #[arg(hide_short_help = true)]
    no_ignore: bool,

    /// Also check YAML and JSON code blocks in .md files
    ///
    /// Code blocks are often excerpts: unknown fields, wrong types and wrong values are reported, missing fields are
    /// not. --fix does not change .md files.
    #[arg(long, help_heading = "Folders")]
    #[arg(hide_short_help = true)]
    markdown: bool,

    /// Fail with exit code 3 if there is nothing to check, for example because of a wrong path
    #[arg(long, help_heading = "Folders")]
    pub(super) require_objects: bool,

    /// List skipped documents and the reason for each
    #[arg(long, help_heading = "Folders")]
    pub(super) show_skipped: bool,
}

impl WalkArgs {
    pub(super) fn walk_options(&self) -> Result<WalkOptions, Failure> {
        let base = std::env::current_dir().unwrap_or_default();
        let excludes = Excludes::new(&base, &self.exclude)
            .map_err(|error| Failure::Usage(format!("--exclude {error}")))?;
        let (no_ignore, markdown) = (self.no_ignore, self.markdown);
        Ok(WalkOptions { excludes: vec![excludes], no_ignore, markdown })
    }
}

/// The inputs to check, and the paths that the search ignored.
#[derive(Debug, Default)]
pub(in super::super) struct FoundInputs {
    pub(in super::super) work: Vec<WorkItem>,
    pub(super) not_read: UnreadPathCounts,
    /// Markdown files in folders that are not checked.
    markdown: Vec<PathBuf>,
    /// The kustomization files in the folders of the command line and in all folders above the inputs, up to the top of
    /// the repository.
    pub(super) kustomizations: Vec<PathBuf>,
}

/// Finds the inputs of the paths on the command line, in order: named files, stdin, and the manifests in folders.
pub(in super::super) fn find_inputs(
    paths: &[PathBuf],
    options: &WalkOptions,
    console: &mut Console,
) -> FoundInputs {
    let mut found = FoundInputs::default();
    for path in paths {
        if path.as_os_str() != "-" && path.is_dir() {
            found.add_folder(path, files::find_manifests(path, options), console);
        } else {
            found.add_named(path);
        }
    }
    found
}

impl FoundInputs {
    /// Prepares the inputs for a command that reads Markdown. Files with such a name become Markdown, and
    /// unchecked files are searched for objects.
    pub(super) fn with_markdown_read_or_searched(mut self) -> FoundInputs {
        for item in &mut self.work {
            if let WorkItem::Read(Input::File(path), source @ TextSource::Named) = item
                && files::has_markdown_extension(path)
            {
                *source = TextSource::Markdown { is_found: false };
            }
        }
        self.work.extend(std::mem::take(&mut self.markdown).into_iter().map(WorkItem::Search));
        self
    }

    /// Removes files that an earlier path on the command line led to. Of a file that is named and in a folder, the named
    /// one is kept, because more of it is checked.
    pub(super) fn keep_each_file_once(&mut self) {
        // Most files share their folder with others.
        let mut folders: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
        let mut file = |item: &WorkItem| {
            let WorkItem::Read(Input::File(path), source) = item else { return None };
            let folder = path.parent().unwrap_or(Path::new(""));
            if !folders.contains_key(folder) {
                folders.insert(folder.to_owned(), path_with_folder_links_resolved(path));
            }
            let resolved = folders.get(folder).cloned().flatten();
            let same = resolved.map(|other| other.with_file_name(path.file_name().unwrap_or_default()));
            Some((same.unwrap_or_else(|| path.clone()), *source == TextSource::Named))
        };
        let files: Vec<Option<(PathBuf, bool)>> = self.work.iter().map(&mut file).collect();
        let named: HashSet<&Path> = files
            .iter()
            .flatten()
            .filter(|(_, is_named)| *is_named)
            .map(|(path, _)| path.as_path())
            .collect();
        let mut kept = HashSet::new();
        let mut is_kept = files.iter().map(|file| match file {
            Some((path, is_named)) => {
                (*is_named || !named.contains(path.as_path())) && kept.insert(path.as_path())
            }
            None => true,
        });
        self.work.retain(|_| is_kept.next().unwrap_or(true));
    }

    fn add_named(&mut self, path: &Path) {
        let found = files::collect(&[path.to_owned()]);
        // Standard input can be read only once.
        let again = |input: &Input| {
            *input == Input::Stdin
                && self.work.iter().any(|work| matches!(work, WorkItem::Read(Input::Stdin, _)))
        };
        let inputs: Vec<Input> = found.inputs.into_iter().filter(|input| !again(input)).collect();
        if path.as_os_str() != "-" {
            self.kustomizations.extend(files::kustomizations_above(path));
        }
        self.work.extend(inputs.into_iter().map(|input| WorkItem::Read(input, TextSource::Named)));
        self.work.extend(found.errors.into_iter().map(WorkItem::InputError));
    }

    fn add_folder(&mut self, folder: &Path, walk: FolderWalkResult, console: &mut Console) {
        if let Some(note) = files::outside_links_note(&walk.outside) {
            console.note(&note);
        }
        self.not_read.ignored += walk.ignored;
        self.not_read.excluded += walk.excluded;
        self.not_read.outside += walk.outside.len();
        if walk.inputs.is_empty() && walk.errors.is_empty() {
            console.note(&no_manifests_note(folder, &walk));
        }
        let layout = ChartsAndPatches::from_walk(&walk);
        self.kustomizations.extend_from_slice(&walk.kustomizations);
        self.work.extend(walk.inputs.into_iter().map(|input| {
            let source = match &input {
                Input::File(path) if files::has_markdown_extension(path) => {
                    TextSource::Markdown { is_found: true }
                }
                Input::File(path) => TextSource::Found(layout.role_of(path)),
                Input::Stdin => TextSource::Found(FileRole::Plain),
            };
            WorkItem::Read(input, source)
        }));
        self.markdown.extend(walk.markdown);
        self.work.extend(walk.errors.into_iter().map(WorkItem::InputError));
    }
}

/// Returns the note about a folder without manifests. It is not an error, because a repository may have none yet.
fn no_manifests_note(folder: &Path, walk: &FolderWalkResult) -> String {
    let folder = folder.display().to_string();
    let hint = if walk.ignored > 0 { "; use --no-ignore to include ignored files" } else { "" };
    format!("{}: contains no .yaml, .yml or .json files to check{hint}", sanitize::sanitize_as_line(&folder))
}
