//! Globs of a configuration file, in the language of `.gitignore`, relative to the folder of that file.
//!
//! Invariant: matching takes linear time, whatever the patterns are.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Compiled glob patterns for paths.
#[derive(Clone, Debug)]
pub struct PathGlobs {
    folder: PathBuf,
    patterns: Gitignore,
}

impl PathGlobs {
    /// Compiles globs relative to a folder, which is an absolute path. The error is the number of the first glob that
    /// is wrong, and why.
    pub fn new<'g>(
        folder: &Path,
        globs: impl Iterator<Item = &'g str>,
    ) -> Result<PathGlobs, (usize, String)> {
        Ok(PathGlobs { folder: folder.to_owned(), patterns: compile_globs(folder, globs)? })
    }

    /// True if a glob matches the file or a folder that it is in. `file` is an absolute path; one outside of the folder
    /// is not matched.
    pub fn matches(&self, file: &Path) -> bool {
        !self.patterns.is_empty()
            && file
                .strip_prefix(&self.folder)
                .is_ok_and(|below| self.patterns.matched_path_or_any_parents(below, false).is_ignore())
    }
}

/// Compiles globs that a user wrote for paths in a folder, which is an absolute path. A glob may start with `./` or with
/// that folder. The error is the number of the first glob that is wrong, and why.
pub(super) fn compile_globs<'g>(
    folder: &Path,
    globs: impl Iterator<Item = &'g str>,
) -> Result<Gitignore, (usize, String)> {
    let mut builder = GitignoreBuilder::new(folder);
    // In a file git reads `a[` as it stands; here it is a slip.
    builder.allow_unclosed_class(false);
    let is_rest_of_path = |rest: &&str| rest.starts_with('/');
    for (number, glob) in globs.enumerate() {
        let in_folder = folder.to_str().and_then(|folder| glob.strip_prefix(folder)).filter(is_rest_of_path);
        let glob = in_folder.or_else(|| glob.strip_prefix('.').filter(is_rest_of_path)).unwrap_or(glob);
        // As in git, the folder itself is not matched.
        if glob != "/" {
            builder.add_line(None, glob).map_err(|error| (number, error.to_string()))?;
        }
    }
    builder.build().map_err(|error| (0, error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::PathGlobs;

    #[test]
    fn globs_are_those_of_git() {
        let table: [(&[&str], &str, bool); 14] = [
            (&["vendor/"], "/r/vendor/a.yaml", true),
            (&["vendor/"], "/r/x/vendor/y/a.yaml", true),
            (&["/vendor"], "/r/x/vendor/a.yaml", false),
            (&["*.gen.yaml"], "/r/x/a.gen.yaml", true),
            (&["charts/**/*.yaml"], "/r/charts/a/b/c.yaml", true),
            (&["charts/*.yaml"], "/r/charts/a/c.yaml", false),
            (&["*.yaml", "!keep.yaml"], "/r/keep.yaml", false),
            (&["*.yaml"], "/elsewhere/a.yaml", false),
            (&[], "/r/a.yaml", false),
            (&["# a comment", ""], "/r/a.yaml", false),
            (&["/"], "/r/a.yaml", false),
            (&["./a.yaml"], "/r/a.yaml", true),
            (&["./a.yaml"], "/r/x/a.yaml", false),
            (&["/r/x/*.yaml"], "/r/x/a.yaml", true),
        ];
        for (globs, file, expected) in table {
            let compiled = PathGlobs::new(Path::new("/r"), globs.iter().copied()).expect("globs");
            assert_eq!(compiled.matches(Path::new(file)), expected, "{globs:?} {file}");
        }
        for wrong in ["b[z-a]", "dep[", "[", "[!]"] {
            assert!(
                matches!(PathGlobs::new(Path::new("/r"), ["a", wrong].into_iter()), Err((1, _))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_hostile_glob_is_matched_in_linear_time() {
        let globs = PathGlobs::new(Path::new("/r"), [&*"a*".repeat(500)].into_iter());
        // Either it is too large to be compiled, or it is matched at once.
        if let Ok(globs) = globs {
            assert!(!globs.matches(&Path::new("/r").join("a".repeat(200) + "b/c")));
        }
    }
}
