//! The files that a walk excludes: `.gitignore`, `.ignore` and `--exclude`.
//!
//! The rules are those of git: the nearest file decides, `.ignore` before `.gitignore`, from the folder of a path up to
//! the top of its repository. A user's global excludes are not read, so that CI and a workstation get the same result.
//!
//! These files are as untrusted as the manifests of the repository, so they must be regular files inside the repository
//! and of limited size. A file that cannot be used is reported, and everything that it would ignore is checked.
//!
//! Invariant: all paths here are absolute, so that rules of the folders above a walk hold too.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::path_globs::compile_globs;
use super::walk::FolderWalkResult;
use super::{InputError, is_link_out_of_root, read_regular, shown_path};

const GITIGNORE: &str = ".gitignore";
const IGNORE: &str = ".ignore";
/// Maximum total size of the ignore files that apply to one folder, including those of parent folders.
/// Compiled patterns take up to 750 times the memory of their text.
const MAX_ACTIVE_IGNORE_BYTES: u64 = 256 << 10;
/// Maximum number of patterns that apply to one folder, including those of parent folders. A compiled pattern
/// takes up to 12 KiB of memory.
const MAX_ACTIVE_PATTERNS: u64 = 10_000;

/// The patterns of the ignore files from the top of a repository down to a folder.
#[derive(Debug, Default)]
pub(super) struct IgnoreFiles {
    ignore: Vec<IgnoreFile>,
    gitignore: Vec<IgnoreFile>,
    depth: usize,
    /// The top of the repository, or the walked folder if it is in none: links to targets outside are not followed.
    top: PathBuf,
}

/// The patterns of one ignore file.
#[derive(Debug)]
struct IgnoreFile {
    /// Number of folders above the folder of the ignore file, by which it is forgotten when the walk leaves that
    /// folder.
    depth: usize,
    bytes: u64,
    patterns: Gitignore,
}

impl IgnoreFiles {
    /// Reads the ignore files of the folders above a folder, up to the top of its repository; reads none if it is in no
    /// repository. `real` is the folder with links resolved.
    pub(super) fn read_ignore_files_above(
        folder: &Path,
        real: &Path,
        found: &mut FolderWalkResult,
    ) -> IgnoreFiles {
        let mut files = IgnoreFiles { top: real.to_owned(), ..IgnoreFiles::default() };
        let mut above: Vec<&Path> = Vec::new();
        for ancestor in folder.ancestors() {
            above.push(ancestor);
            // A file in linked worktrees and submodules.
            if ancestor.join(".git").exists() {
                files.top = std::fs::canonicalize(ancestor).unwrap_or_else(|_| real.to_owned());
                for ancestor in above.into_iter().skip(1).rev() {
                    let names = [GITIGNORE, IGNORE].iter().map(OsStr::new);
                    files.enter_folder(
                        ancestor,
                        names.filter(|name| ancestor.join(name).is_symlink() || ancestor.join(name).exists()),
                        found,
                    );
                }
                break;
            }
        }
        files
    }

    /// Reads the ignore files among the entries of a folder that is entered.
    pub(super) fn enter_folder<'n>(
        &mut self,
        folder: &Path,
        names: impl Iterator<Item = &'n OsStr>,
        found: &mut FolderWalkResult,
    ) {
        self.depth += 1;
        for name in names.filter(|name| [GITIGNORE, IGNORE].map(OsStr::new).contains(name)) {
            let path = folder.join(name);
            if is_link_out_of_root(&path, &self.top) {
                found.outside.push(path);
                continue;
            }
            match self.read_and_compile(folder, &path) {
                Ok(file) if file.patterns.is_empty() => {}
                Ok(file) if name == OsStr::new(GITIGNORE) => self.gitignore.push(file),
                Ok(file) => self.ignore.push(file),
                Err(error) => found.errors.push(error),
            }
        }
    }

    /// Reads one ignore file and compiles its patterns; an error if it is too large or has too many.
    fn read_and_compile(&self, folder: &Path, path: &Path) -> Result<IgnoreFile, InputError> {
        let refused = |reason: &str| {
            let remedy = "shorten the file, or use --no-ignore to check ignored files too";
            InputError::for_whole_file(&shown_path(path), format!("{reason}; {remedy}"))
        };
        let active = || self.ignore.iter().chain(&self.gitignore);
        let bytes = read_regular(path, MAX_ACTIVE_IGNORE_BYTES).map_err(|error| refused(&error.message))?;
        if active().map(|file| file.bytes).sum::<u64>() + bytes.len() as u64 > MAX_ACTIVE_IGNORE_BYTES {
            return Err(refused(&format!(
                "more than {MAX_ACTIVE_IGNORE_BYTES} bytes of patterns in this folder and above"
            )));
        }
        let count = |file: &IgnoreFile| file.patterns.num_ignores() + file.patterns.num_whitelists();
        let mut patterns: u64 = active().map(count).sum();
        let mut builder = GitignoreBuilder::new(folder);
        let text = String::from_utf8_lossy(&bytes);
        for line in text.trim_start_matches('\u{feff}').lines() {
            patterns += u64::from(!line.trim().is_empty() && !line.starts_with('#'));
            if patterns > MAX_ACTIVE_PATTERNS {
                return Err(refused(&format!(
                    "more than {MAX_ACTIVE_PATTERNS} patterns in this folder and above"
                )));
            }
            // A pattern that is none is passed over, as git does.
            _ = builder.add_line(None, line);
        }
        let patterns = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Ok(IgnoreFile { depth: self.depth, bytes: bytes.len() as u64, patterns })
    }

    /// Forgets the ignore files of the folder that was entered last.
    pub(super) fn leave_folder(&mut self) {
        for files in [&mut self.ignore, &mut self.gitignore] {
            while files.last().is_some_and(|file| file.depth == self.depth) {
                files.pop();
            }
        }
        self.depth -= 1;
    }

    /// True if no ignore file has a pattern.
    pub(super) fn is_empty(&self) -> bool {
        self.ignore.is_empty() && self.gitignore.is_empty()
    }

    /// True if an ignore file excludes the path.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let nearest_first = self.ignore.iter().rev().chain(self.gitignore.iter().rev());
        for file in nearest_first {
            match file.patterns.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// Patterns of `--exclude`, in the language of `.gitignore`.
#[derive(Clone, Debug)]
pub struct Excludes {
    base: PathBuf,
    globs: Vec<String>,
}

impl Excludes {
    /// Compiles patterns relative to `base`; an error if one of them is not a glob.
    pub fn new(base: &Path, globs: &[String]) -> Result<Excludes, String> {
        let excludes = Excludes { base: base.to_owned(), globs: globs.to_vec() };
        excludes.compile(base)?;
        Ok(excludes)
    }

    /// Compiles the patterns relative to a folder.
    fn compile(&self, base: &Path) -> Result<Gitignore, String> {
        compile_globs(base, self.globs.iter().map(String::as_str)).map_err(|(number, error)| {
            self.globs.get(number).map_or_else(|| error.clone(), |glob| format!("`{glob}`: {error}"))
        })
    }

    /// The patterns for a walk of a folder: relative to their own folder and to the one that is walked.
    pub(super) fn compile_for_walk(&self, folder: &Path) -> Vec<Gitignore> {
        let mut bases = vec![self.base.as_path()];
        if folder != self.base {
            bases.push(folder);
        }
        bases.into_iter().filter_map(|base| self.compile(base).ok()).filter(|all| !all.is_empty()).collect()
    }
}
