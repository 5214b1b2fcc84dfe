//! What a walk leaves out: `.gitignore`, `.ignore` and `--exclude`.
//!
//! The files count as git reads them: the nearest one decides, `.ignore` before `.gitignore`, from the folder of a path
//! up to the top of its repository. A user's global excludes do not count: a run in CI and one at a desk say the same.
//!
//! Invariant: all paths here are absolute, so that rules of the folders above a walk hold too.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

const GITIGNORE: &str = ".gitignore";
const IGNORE: &str = ".ignore";

/// The patterns of the ignore files from the top of a repository down to a folder.
#[derive(Debug, Default)]
pub(super) struct IgnoreFiles {
    /// Per ignore file, with the depth of its folder.
    ignore: Vec<(usize, Gitignore)>,
    gitignore: Vec<(usize, Gitignore)>,
    depth: usize,
}

impl IgnoreFiles {
    /// The ignore files above a folder, up to the top of its repository; none if it is in no repository.
    pub(super) fn above(folder: &Path) -> IgnoreFiles {
        let mut files = IgnoreFiles::default();
        let mut above: Vec<&Path> = Vec::new();
        for ancestor in folder.ancestors() {
            above.push(ancestor);
            // A file in linked worktrees and submodules.
            if ancestor.join(".git").exists() {
                for ancestor in above.into_iter().skip(1).rev() {
                    files.enter(ancestor, [GITIGNORE, IGNORE].iter().map(OsStr::new));
                }
                break;
            }
        }
        files
    }

    /// Reads the ignore files among the entries of a folder that is entered.
    pub(super) fn enter<'n>(&mut self, folder: &Path, names: impl Iterator<Item = &'n OsStr>) {
        self.depth += 1;
        for name in names {
            let files = match name.to_str() {
                Some(GITIGNORE) => &mut self.gitignore,
                Some(IGNORE) => &mut self.ignore,
                _ => continue,
            };
            let mut builder = GitignoreBuilder::new(folder);
            // A pattern that is none is passed over, as git does.
            _ = builder.add(folder.join(name));
            if let Ok(patterns) = builder.build()
                && !patterns.is_empty()
            {
                files.push((self.depth, patterns));
            }
        }
    }

    /// Forgets the ignore files of the folder that was entered last.
    pub(super) fn leave(&mut self) {
        for files in [&mut self.ignore, &mut self.gitignore] {
            while files.last().is_some_and(|(depth, _)| *depth == self.depth) {
                files.pop();
            }
        }
        self.depth -= 1;
    }

    /// There is no pattern.
    pub(super) fn is_empty(&self) -> bool {
        self.ignore.is_empty() && self.gitignore.is_empty()
    }

    /// The path is ignored.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let nearest_first = self.ignore.iter().rev().chain(self.gitignore.iter().rev());
        for (_, patterns) in nearest_first {
            match patterns.matched(path, is_folder) {
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
pub(crate) struct Excludes {
    base: PathBuf,
    globs: Vec<String>,
}

impl Excludes {
    /// Patterns relative to a folder. A glob that is none is an error.
    pub(crate) fn new(base: &Path, globs: &[String]) -> Result<Excludes, String> {
        let excludes = Excludes { base: base.to_owned(), globs: globs.to_vec() };
        excludes.compile(base)?;
        Ok(excludes)
    }

    fn compile(&self, base: &Path) -> Result<Gitignore, String> {
        let mut builder = GitignoreBuilder::new(base);
        // In a file git reads `a[` as it stands; on a command line it is a slip.
        builder.allow_unclosed_class(false);
        for glob in &self.globs {
            builder.add_line(None, glob).map_err(|error| format!("`{glob}`: {error}"))?;
        }
        builder.build().map_err(|error| error.to_string())
    }

    /// The patterns for a walk of a folder: relative to their own folder and to the one that is walked.
    pub(super) fn for_walk(&self, folder: &Path) -> Vec<Gitignore> {
        let mut bases = vec![self.base.as_path()];
        if folder != self.base {
            bases.push(folder);
        }
        bases.into_iter().filter_map(|base| self.compile(base).ok()).filter(|all| !all.is_empty()).collect()
    }
}
