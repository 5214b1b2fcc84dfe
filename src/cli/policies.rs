//! `--policy PATH`: reads and compiles policy files and folders. A set that does not load stops the run.

use std::path::{Path, PathBuf};

use super::console::Console;
use super::outcome::Failure;
use crate::files::{self, MAX_FILE};
use tollgate_document::source;
use tollgate_engine::policy::{self, PolicyError, PolicyFile, PolicySet, ReadFile};

/// The policy files of some paths: texts, searched folders, and errors.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PolicyTexts {
    pub(super) files: Vec<PolicyFile>,
    pub(super) folders: Vec<PathBuf>,
    pub(super) errors: Vec<String>,
}

/// Loads the policies in these paths.
pub(super) fn load(paths: &[PathBuf]) -> Result<PolicySet, Failure> {
    load_within(paths, None)
}

/// Loads the policies in these paths. With `root`, they cannot refer to files outside of that folder.
pub(super) fn load_within(paths: &[PathBuf], root: Option<&Path>) -> Result<PolicySet, Failure> {
    if paths.is_empty() {
        return Ok(PolicySet::default());
    }
    let texts = read(paths)?;
    match root {
        None => compile(&texts),
        Some(root) => compile_with(&texts, &|path: &str| read_within(path, root)),
    }
}

/// Reads a file that a policy refers to. Errors are reported at the field that refers to the file.
pub(super) fn read_referenced(path: &str) -> Result<String, String> {
    files::read_regular(Path::new(path), MAX_FILE)
        .and_then(|bytes| source::decode(path, bytes))
        .map_err(|error| error.message)
}

/// Reads a file that an untrusted policy refers to: only files below `root` can be read.
fn read_within(path: &str, root: &Path) -> Result<String, String> {
    let real = std::fs::canonicalize(path).map_err(|error| files::io_reason(&error))?;
    if !real.starts_with(root) {
        return Err("is outside the repository".to_owned());
    }
    read_referenced(path)
}

/// The top of the repository of a file, or its folder if it is in none; `None` if the file does not exist.
fn repository_of(file: &str) -> Option<PathBuf> {
    let real = std::fs::canonicalize(file).ok()?;
    let folder = real.parent()?;
    let top = folder.ancestors().find(|folder| folder.join(".git").exists());
    Some(top.unwrap_or(folder).to_owned())
}

/// The errors of the policies in a text, each with the index of its document.
pub(super) fn errors(file: &str, text: &str) -> Vec<(usize, PolicyError)> {
    let root = repository_of(file);
    let read = |path: &str| match &root {
        Some(root) => read_within(path, root),
        None => Err("cannot be read: the policy is not in a file".to_owned()),
    };
    let file = PolicyFile { name: file.to_owned(), text: text.to_owned() };
    policy::policy_errors(&file, &read)
}

/// Compiles the texts of policy files.
pub(super) fn compile(texts: &[PolicyFile]) -> Result<PolicySet, Failure> {
    compile_with(texts, &read_referenced)
}

/// Compiles the texts of policy files; `read` reads the files to which they refer.
pub(super) fn compile_with(texts: &[PolicyFile], read: ReadFile<'_>) -> Result<PolicySet, Failure> {
    let set = PolicySet::load(texts, read).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Input(lines.join("\n"))
    })?;
    set.warnings().iter().for_each(|warning| Console::open().warning(&warning.to_string()));
    Ok(set)
}

/// Reads the policy files in these paths; fails with the first error.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<PolicyFile>, Failure> {
    let texts = read_all(paths);
    if texts.errors.is_empty() { Ok(texts.files) } else { Err(Failure::Input(texts.errors.join("\n"))) }
}

/// Reads the policy files in these paths, and collects errors instead of failing.
pub(super) fn read_all(paths: &[PathBuf]) -> PolicyTexts {
    let found = files::collect(paths).without_outside_links();
    let mut texts = PolicyTexts { folders: found.folders, ..PolicyTexts::default() };
    texts.errors.extend(found.errors.iter().map(ToString::to_string));
    for input in &found.inputs {
        match files::read(input, MAX_FILE) {
            Ok(text) => texts.files.push(PolicyFile { name: input.name(), text }),
            Err(error) => texts.errors.push(error.to_string()),
        }
    }
    texts
}
