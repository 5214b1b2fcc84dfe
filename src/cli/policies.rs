//! `--policy PATH`: policy files and folders, read and compiled. A set that does not load stops the run.

use std::path::PathBuf;

use super::outcome::Failure;
use crate::files::{self, Input, MAX_FILE};
use crate::policy::{self, PolicyError, PolicyFile, PolicySet};

/// What the paths name: texts, where they were looked for, and what could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Texts {
    pub(super) files: Vec<PolicyFile>,
    pub(super) folders: Vec<PathBuf>,
    pub(super) errors: Vec<String>,
}

/// The policies that the paths name.
pub(super) fn load(paths: &[PathBuf]) -> Result<PolicySet, Failure> {
    if paths.is_empty() {
        return Ok(PolicySet::default());
    }
    compile(&read(paths)?)
}

/// A file that a policy names.
fn named(path: &str) -> Result<String, String> {
    files::read(&Input::File(PathBuf::from(path)), MAX_FILE).map_err(|error| error.message)
}

/// What is wrong with the policies in a file, with the index of their document.
pub(super) fn errors(file: &str, text: &str) -> Vec<(usize, PolicyError)> {
    let file = PolicyFile { name: file.to_owned(), text: text.to_owned() };
    policy::policy_errors(&file, &named)
}

/// The policies of these texts.
pub(super) fn compile(texts: &[PolicyFile]) -> Result<PolicySet, Failure> {
    PolicySet::load(texts, &named).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Input(lines.join("\n"))
    })
}

/// The texts of the files that the paths name.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<PolicyFile>, Failure> {
    let texts = texts(paths);
    if texts.errors.is_empty() { Ok(texts.files) } else { Err(Failure::Input(texts.errors.join("\n"))) }
}

/// Reads everything that the paths name.
pub(super) fn texts(paths: &[PathBuf]) -> Texts {
    let found = files::collect(paths).whole();
    let mut texts = Texts { folders: found.folders, ..Texts::default() };
    texts.errors.extend(found.errors.iter().map(ToString::to_string));
    for input in &found.inputs {
        match files::read(input, MAX_FILE) {
            Ok(text) => texts.files.push(PolicyFile { name: input.name(), text }),
            Err(error) => texts.errors.push(error.to_string()),
        }
    }
    texts
}
