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
        let mut builder = GitignoreBuilder::new(folder);
        for (number, glob) in globs.enumerate() {
            builder.add_line(None, glob).map_err(|error| (number, error.to_string()))?;
        }
        let patterns = builder.build().map_err(|error| (0, error.to_string()))?;
        Ok(PathGlobs { folder: folder.to_owned(), patterns })
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::PathGlobs;

    #[test]
    fn globs_are_those_of_git() {
        let table: [(&[&str], &str, bool); 10] = [
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
        ];
        for (globs, file, expected) in table {
            let compiled = PathGlobs::new(Path::new("/r"), globs.iter().copied()).expect("globs");
            assert_eq!(compiled.matches(Path::new(file)), expected, "{globs:?} {file}");
        }
        assert!(matches!(PathGlobs::new(Path::new("/r"), ["a", "b[z-a]"].into_iter()), Err((1, _))));
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
