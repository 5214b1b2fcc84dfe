//! Limits the findings per folder in a report that is printed on a terminal. Hiding the other findings of a folder is
//! called folding it.
//!
//! A folder with test data must not hide the findings in the rest of a repository. A folder with more than
//! [`MAX_FINDINGS_IN_FOLDER`] findings is folded: only the first ones are shown. If several such folders have the same
//! parent, findings are shown only for the first, since they are probably parts of one set of test data. Folders with
//! fewer findings are shown completely, up to [`MAX_FINDINGS_IN_SIBLINGS`] findings per parent.
//!
//! Invariant: hidden findings are counted and their folders are named at the end; the summary and the exit code include
//! them. At most [`MAX_FINDINGS_IN_FOLDER`] findings are buffered until their folder is complete; text between findings
//! is always printed.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::console::quote_for_shell;
use crate::files;
use crate::report::FileReportPart;
use tollgate_formats::count::count_with_noun;
use tollgate_formats::sanitize;

/// Maximum number of findings shown of one folder.
const MAX_FINDINGS_IN_FOLDER: usize = 20;
/// Maximum number of findings shown of all folders with the same parent that have at most [`MAX_FINDINGS_IN_FOLDER`]
/// each.
const MAX_FINDINGS_IN_SIBLINGS: usize = 100;
/// Maximum number of folded folders that are named at the end.
const MAX_NAMED_FOLDERS: usize = 5;

/// Decides which findings of a report on a terminal are shown, and counts shown and hidden findings by folder.
#[derive(Default, Debug)]
pub(super) struct FolderFindingLimiter {
    /// The folders that the user named. They are folded, but cannot be excluded.
    roots: Vec<PathBuf>,
    folders: BTreeMap<PathBuf, FolderCounts>,
    /// By parent folder: the first folded subfolder, and the number of findings shown for the others.
    parents: HashMap<PathBuf, FoldedSubfolderAndShownCount>,
    /// The folder whose files come now, and its first findings with the texts between them.
    current: Option<PathBuf>,
    held: Vec<(String, bool)>,
}

#[derive(Clone, Copy, Default, Debug)]
struct FolderCounts {
    found: usize,
    shown: usize,
}

impl FolderCounts {
    fn hidden_count(self) -> usize {
        self.found - self.shown
    }
}

#[derive(Clone, Default, Debug)]
struct FoldedSubfolderAndShownCount {
    folded: Option<PathBuf>,
    shown: usize,
}

impl FolderFindingLimiter {
    pub(super) fn new(roots: &[PathBuf]) -> FolderFindingLimiter {
        FolderFindingLimiter { roots: roots.to_vec(), ..FolderFindingLimiter::default() }
    }

    /// Adds the part of a file to the report, and returns what to print now. `folder` is `None` for a file that
    /// the user named, which is shown whole.
    pub(super) fn add_file(&mut self, folder: Option<&Path>, piece: &FileReportPart) -> String {
        let mut out = String::new();
        if self.current.as_deref() != folder {
            out = self.complete_folder();
            self.current = folder.map(Path::to_owned);
        }
        let Some(folder) = folder else {
            out.extend(piece.findings_and_other_text().map(|(text, _)| text));
            return out;
        };
        let counts = self.folders.entry(folder.to_owned()).or_default();
        for (text, is_finding) in piece.findings_and_other_text() {
            counts.found += usize::from(is_finding);
            if !is_finding || counts.found <= MAX_FINDINGS_IN_FOLDER {
                self.held.push((text.to_owned(), is_finding));
            }
        }
        out
    }

    /// Ends the current folder, and returns what to print of it.
    fn complete_folder(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let findings = held.iter().filter(|(_, is_finding)| *is_finding).count();
        let current = self.current.take();
        let Some((folder, counts)) =
            current.and_then(|folder| Some((folder.clone(), self.folders.get_mut(&folder)?)))
        else {
            return String::new();
        };
        let parent = self.parents.entry(folder.parent().unwrap_or(&folder).to_owned()).or_default();
        let is_root = |path: &Path| self.roots.iter().any(|root| root == path);
        let is_shown = if counts.found > MAX_FINDINGS_IN_FOLDER {
            parent.folded.get_or_insert_with(|| folder.clone()) == &folder
        } else {
            parent.shown += findings;
            parent.shown <= MAX_FINDINGS_IN_SIBLINGS
                || folder.parent().is_none_or(is_root)
                || is_root(&folder)
        };
        counts.shown += if is_shown { findings } else { 0 };
        held.into_iter().filter(|(_, is_finding)| is_shown || !is_finding).map(|(text, _)| text).collect()
    }

    /// Returns the rest of the report, and the text about hidden findings that follows its summary.
    pub(super) fn finish_report(mut self) -> (String, String) {
        let rest = self.complete_folder();
        let mut folded = self.folders_with_hidden();
        // The largest first: that one is the reason.
        folded.sort_by_key(|(_, hidden)| std::cmp::Reverse(*hidden));
        let mut out = String::new();
        for (folder, hidden) in folded.iter().take(MAX_NAMED_FOLDERS) {
            let name = files::shown_path(folder);
            let exclude =
                self.exclude_glob(folder).map(|glob| format!("; leave it out with `--exclude {glob}`"));
            let (name, exclude) = (sanitize::sanitize_as_line(&name), exclude.unwrap_or_default());
            _ = writeln!(out, "Not shown: {} in {name}{exclude}.", count_with_noun(*hidden, "finding"));
        }
        let others = folded.get(MAX_NAMED_FOLDERS..).unwrap_or_default();
        if !others.is_empty() {
            let hidden: usize = others.iter().map(|(_, hidden)| hidden).sum();
            _ = writeln!(out, "Not shown: {hidden} findings in {} more folders.", others.len());
        }
        if !folded.is_empty() {
            out.push_str("To list all findings, use `-o concise`.\n");
        }
        (rest, out)
    }

    /// Returns the folders with hidden findings, and the number of each. Several folders are replaced by their
    /// parent if it has no others.
    fn folders_with_hidden(&self) -> Vec<(PathBuf, usize)> {
        let mut by_parent: BTreeMap<&Path, Vec<(&Path, usize)>> = BTreeMap::new();
        for (folder, counts) in self.folders.iter().filter(|(_, counts)| counts.hidden_count() > 0) {
            let parent = folder.parent().unwrap_or(folder);
            by_parent.entry(parent).or_default().push((folder, counts.hidden_count()));
        }
        let mut named = Vec::new();
        for (parent, folders) in by_parent {
            let is_outside = self.roots.iter().any(|root| root.starts_with(parent));
            if folders.len() > 1 && !is_outside && self.reports_parent_instead_of_folders(parent) {
                named.push((parent.to_owned(), folders.iter().map(|(_, hidden)| hidden).sum()));
            } else {
                named.extend(folders.into_iter().map(|(folder, hidden)| (folder.to_owned(), hidden)));
            }
        }
        named
    }

    /// True if one line at the end names `parent` instead of each folder below it: its folders with few findings have
    /// more than [`MAX_FINDINGS_IN_SIBLINGS`] together, or every folder below it has more than
    /// [`MAX_FINDINGS_IN_FOLDER`].
    fn reports_parent_instead_of_folders(&self, parent: &Path) -> bool {
        let mut below =
            self.folders.range(parent.to_owned()..).take_while(|(folder, _)| folder.starts_with(parent));
        self.parents.get(parent).is_some_and(|counts| counts.shown > MAX_FINDINGS_IN_SIBLINGS)
            || below.all(|(_, counts)| counts.found > MAX_FINDINGS_IN_FOLDER)
    }

    /// Returns the glob for `--exclude` that leaves out a folder, quoted for a shell; `None` for a folder that
    /// the user named.
    fn exclude_glob(&self, folder: &Path) -> Option<String> {
        let below = |root: &PathBuf| folder.strip_prefix(root).ok().map(Path::to_owned);
        let below_root = self.roots.iter().filter_map(below).min_by_key(|path| path.components().count())?;
        if below_root.as_os_str().is_empty() {
            return None;
        }
        // A glob is relative to the working folder, or else to the folder that was named.
        let shown = files::shown_path(folder);
        let is_below_here = !shown.starts_with("..") && Path::new(&shown).is_relative();
        let path = if is_below_here { shown } else { below_root.to_str()?.to_owned() };
        let mut glob = String::from("/");
        for letter in path.chars() {
            if "\\*?[]{}".contains(letter) {
                glob.push('\\');
            }
            glob.push(letter);
        }
        Some(quote_for_shell(&format!("{glob}/")))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::FolderFindingLimiter;
    use crate::report::FileReportPart;

    /// The numbers of findings shown by folder, and the end.
    fn fold(roots: &[&str], findings: &[(&str, usize)]) -> (Vec<(String, usize)>, String) {
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        let mut folds = FolderFindingLimiter::new(&roots);
        let mut out = String::new();
        for (folder, count) in findings {
            for _ in 0..*count {
                let piece = FileReportPart::from_finding(&format!("{folder}\n"));
                out += &folds.add_file(Some(Path::new(folder)), &piece);
            }
        }
        let (rest, end) = folds.finish_report();
        out += &rest;
        let mut shown: Vec<(String, usize)> = Vec::new();
        for line in out.lines() {
            match shown.last_mut() {
                Some((last, count)) if last == line => *count += 1,
                _ => shown.push((line.to_owned(), 1)),
            }
        }
        (shown, end)
    }

    fn owned(shown: &[(&str, usize)]) -> Vec<(String, usize)> {
        shown.iter().map(|&(folder, count)| (folder.to_owned(), count)).collect()
    }

    const LIST_ALL: &str = "To list all findings, use `-o concise`.\n";

    #[test]
    fn a_folder_is_folded_beyond_its_limit() {
        let (shown, end) = fold(&["."], &[("./apps", 20), ("./testdata", 21), ("./z", 1)]);
        assert_eq!(shown, owned(&[("./apps", 20), ("./testdata", 20), ("./z", 1)]));
        assert_eq!(
            end,
            format!(
                "Not shown: 1 finding in testdata; leave it out with `--exclude /testdata/`.\n{LIST_ALL}"
            )
        );
        assert_eq!(fold(&["."], &[("./apps", 20), ("./b", 20)]).1, "");
    }

    #[test]
    fn files_of_a_folder_before_and_after_a_subfolder_are_counted_together() {
        let (shown, end) = fold(&["."], &[("./t", 15), ("./t/s", 2), ("./t", 15)]);
        assert_eq!(shown, owned(&[("./t", 15), ("./t/s", 2), ("./t", 5)]));
        assert!(end.starts_with("Not shown: 10 findings in t;"), "{end}");
    }

    #[test]
    fn test_data_in_several_folders_is_one_thing() {
        let found = [("./a", 1), ("./x/data/1", 50), ("./x/data/2", 60), ("./x/y", 2)];
        let (shown, end) = fold(&["."], &found);
        assert_eq!(shown, owned(&[("./a", 1), ("./x/data/1", 20), ("./x/y", 2)]));
        assert!(
            end.starts_with("Not shown: 90 findings in x/data; leave it out with `--exclude /x/data/`"),
            "{end}"
        );
        // Another folder beside them is not to be left out.
        let found = [("./x/data/1", 50), ("./x/data/2", 60), ("./x/data/real", 2)];
        let (shown, end) = fold(&["."], &found);
        assert_eq!(shown, owned(&[("./x/data/1", 20), ("./x/data/real", 2)]));
        assert!(
            end.contains("60 findings in x/data/2; leave") && end.contains("30 findings in x/data/1; leave"),
            "{end}"
        );
    }

    #[test]
    fn many_folders_with_few_findings_each_are_folded_as_one() {
        let names: Vec<String> = (100..400).map(|number| format!("./t/{number}")).collect();
        let found: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 3)).collect();
        let (shown, end) = fold(&["."], &[&found[..], &[("./z", 1)]].concat());
        assert_eq!(shown.len(), 34);
        assert_eq!(shown.last(), Some(&("./z".to_owned(), 1)));
        assert!(end.starts_with("Not shown: 801 findings in t; leave it out with `--exclude /t/`"), "{end}");
        // The folders of the repository itself are not test data.
        let roots: Vec<String> = (100..400).map(|number| format!("./{number}")).collect();
        let found: Vec<(&str, usize)> = roots.iter().map(|name| (name.as_str(), 3)).collect();
        assert_eq!(fold(&["."], &found).1, "");
    }

    #[test]
    fn the_glob_leaves_out_that_folder_only() {
        for (root, folder, expected) in [
            (".", "./a b/c", " `--exclude '/a b/c/'`"),
            (".", "./a[1]/{b}*", r" `--exclude '/a\[1\]/\{b\}\*/'`"),
            ("sub", "sub/x", " `--exclude /sub/x/`"),
            ("/elsewhere/repo", "/elsewhere/repo/x/y", " `--exclude /x/y/`"),
            ("../repo", "../repo/x", " `--exclude /x/`"),
        ] {
            let (_, end) = fold(&[root], &[(folder, 30)]);
            assert!(end.lines().next().is_some_and(|line| line.contains(expected)), "{root}: {end}");
        }
        // What the user named cannot be left out.
        for folder in [".", "sub", "/elsewhere"] {
            let (shown, end) = fold(&[folder], &[(folder, 30)]);
            assert_eq!((shown.len(), end.contains("--exclude")), (1, false), "{end}");
            assert!(end.starts_with("Not shown: 10 findings in "), "{end}");
        }
    }
}
