//! Walks the folder of a repository: finds manifests by their names, in order, without hidden and ignored paths.
//!
//! It also records Helm charts and kustomizations, on which the meaning of other files depends. No file is parsed here.
//!
//! Invariant: see [`super`]: no link out of the folder is followed. A folder is read once, however many links lead to
//! it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;

use super::ignore_files::{Excludes, IgnoreFiles};
use super::{
    Input, InputError, has_manifest_extension, has_markdown_extension, is_link_out_of_root,
    path_without_links, unreadable_file,
};

/// Names of a kustomization, as kustomize looks for them.
pub const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
const CHART_FILE: &str = "Chart.yaml";

/// Which files a walk excludes, and whether Markdown files are inputs.
#[derive(Clone, Debug, Default)]
pub struct WalkOptions {
    /// Patterns of excluded paths.
    pub excludes: Vec<Excludes>,
    /// True to disregard `.gitignore` and `.ignore`.
    pub no_ignore: bool,
    /// True to include Markdown files as inputs.
    pub markdown: bool,
}

/// The files that a walk found.
#[derive(Debug, Default)]
pub struct FolderWalkResult {
    /// Files with a manifest's extension, including dangling links.
    pub inputs: Vec<Input>,
    /// Markdown files that are not inputs.
    pub markdown: Vec<PathBuf>,
    /// Errors for files and folders that cannot be read.
    pub errors: Vec<InputError>,
    /// Links to targets outside of the folder, which are not followed.
    pub outside: Vec<PathBuf>,
    /// Number of manifests and folders that an ignore file excludes.
    pub ignored: usize,
    /// Number of manifests and folders that `--exclude` excludes.
    pub excluded: usize,
    /// Folders with a Helm chart, including parent folders of the walk.
    pub charts: Vec<PathBuf>,
    /// Kustomization files, including those in parent folders of the walk.
    pub kustomizations: Vec<PathBuf>,
}

/// Finds the manifests in a folder and its subfolders.
pub fn find_manifests(folder: &Path, options: &WalkOptions) -> FolderWalkResult {
    let mut found = FolderWalkResult::default();
    let roots = std::fs::canonicalize(folder).and_then(|root| Ok((root, std::path::absolute(folder)?)));
    let (root, absolute) = match roots {
        Ok(roots) => roots,
        Err(error) => {
            found.errors.push(unreadable_file(folder, &error));
            return found;
        }
    };
    // Without the `..` of `../other`: ignore files are looked for in the real folders above.
    let absolute = if absolute.components().any(|part| part == std::path::Component::ParentDir) {
        root.clone()
    } else {
        absolute
    };
    add_charts_and_kustomizations_above(&absolute, &mut found);
    let ignore_files = if options.no_ignore {
        IgnoreFiles::default()
    } else {
        IgnoreFiles::read_ignore_files_above(&absolute, &root, &mut found)
    };
    let excludes =
        options.excludes.iter().flat_map(|excludes| excludes.compile_for_walk(&absolute)).collect();
    let (no_ignore, markdown) = (options.no_ignore, options.markdown);
    let mut walker = Walker {
        folder,
        absolute: &absolute,
        root,
        no_ignore,
        markdown,
        excludes,
        ignore_files,
        entered: HashSet::new(),
        found,
    };
    walker.walk_folder(folder, &absolute);
    walker.found
}

/// The kustomizations in the folders above a file, up to the top of its repository.
pub fn kustomizations_above(file: &Path) -> Vec<PathBuf> {
    let mut found = FolderWalkResult::default();
    if let Ok(absolute) = std::path::absolute(file) {
        add_charts_and_kustomizations_above(&absolute, &mut found);
    }
    found.kustomizations
}

/// Adds the charts and kustomizations above the walked folder, which may be a part of one. Does not follow links, which
/// may lead out of the repository.
fn add_charts_and_kustomizations_above(folder: &Path, found: &mut FolderWalkResult) {
    for above in folder.ancestors() {
        if above != folder {
            let kustomizations = KUSTOMIZATIONS.map(|name| above.join(name)).into_iter();
            let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
            found.kustomizations.extend(kustomizations.filter(is_file));
            found.charts.extend(above.join(CHART_FILE).exists().then(|| above.to_owned()));
        }
        if above.join(".git").exists() {
            break;
        }
    }
}

/// A walk of a folder: its options, the ignore files that apply, and the files found so far.
struct Walker<'w> {
    /// The folder as the user named it.
    folder: &'w Path,
    /// Its absolute path.
    absolute: &'w Path,
    /// The folder with links resolved.
    root: PathBuf,
    no_ignore: bool,
    markdown: bool,
    excludes: Vec<Gitignore>,
    ignore_files: IgnoreFiles,
    entered: HashSet<PathBuf>,
    found: FolderWalkResult,
}

/// A file or subfolder in a folder that is walked.
struct FolderEntry {
    name: OsString,
    is_link: bool,
    is_folder: bool,
    is_file: bool,
}

impl Walker<'_> {
    /// Adds the manifests of a folder and its subfolders; `absolute` is its absolute path.
    fn walk_folder(&mut self, folder: &Path, absolute: &Path) {
        match std::fs::canonicalize(folder).map(|real| self.entered.insert(real)) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.found.errors.push(unreadable_file(folder, &error)),
        }
        let entries = self.read_entries(folder);
        if !self.no_ignore {
            let names = entries.iter().map(|entry| entry.name.as_os_str());
            self.ignore_files.enter_folder(absolute, names, &mut self.found);
        }
        for entry in &entries {
            self.visit_entry(folder, absolute, entry);
        }
        if !self.no_ignore {
            self.ignore_files.leave_folder();
        }
    }

    /// Reads the entries of a folder, sorted by name. Their types come with their names: a system call for each of
    /// fifty thousand files would take long.
    fn read_entries(&mut self, folder: &Path) -> Vec<FolderEntry> {
        let mut entries = Vec::new();
        let listed = match std::fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) => {
                self.found.errors.push(unreadable_file(folder, &error));
                return entries;
            }
        };
        for entry in listed {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) => {
                    let is_link = kind.is_symlink();
                    let is_folder = if is_link { entry.path().is_dir() } else { kind.is_dir() };
                    let is_file = if is_link { entry.path().is_file() } else { kind.is_file() };
                    entries.push(FolderEntry { name: entry.file_name(), is_link, is_folder, is_file });
                }
                Err(error) => self.found.errors.push(unreadable_file(folder, &error)),
            }
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries
    }

    /// Handles one entry: walks a folder, and adds a file that is an input, chart or kustomization.
    fn visit_entry(&mut self, folder: &Path, absolute: &Path, entry: &FolderEntry) {
        let name = entry.name.as_os_str();
        let is_kustomization = KUSTOMIZATIONS.iter().any(|known| name == OsStr::new(known));
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if !entry.is_folder && has_markdown_extension(Path::new(name)) && !self.markdown {
            return self.note_markdown(folder, absolute, entry);
        }
        let is_input = |path: &Path| has_manifest_extension(path) || has_markdown_extension(path);
        if is_hidden || !entry.is_folder && !is_kustomization && !is_input(Path::new(name)) {
            return;
        }
        if self.count_if_left_out(absolute, entry) {
            return;
        }
        let path = folder.join(name);
        if entry.is_link && is_link_out_of_root(&path, &self.root) {
            return self.found.outside.push(path);
        }
        if entry.is_folder {
            let real = if entry.is_link { self.real_path_unless_left_out(&path) } else { None };
            return self.walk_folder(real.as_ref().unwrap_or(&path), &absolute.join(name));
        }
        if is_kustomization {
            if entry.is_file {
                self.found.kustomizations.push(path.clone());
            }
            if !has_manifest_extension(&path) {
                return;
            }
        } else if name == OsStr::new(CHART_FILE) {
            self.found.charts.push(folder.to_owned());
        }
        // Opening a pipe would block. A dangling link is neither a file nor anything else.
        if entry.is_file || entry.is_link && !path.exists() {
            self.found.inputs.push(Input::File(path));
        } else {
            self.found
                .errors
                .push(InputError::for_whole_file(&path.display().to_string(), "not a regular file"));
        }
    }

    /// The path below the walked folder to which a link leads; `None` if an exclude or an ignore file leaves that path out,
    /// so that the files have only the path of the link.
    fn real_path_unless_left_out(&self, link: &Path) -> Option<PathBuf> {
        let real = path_without_links(link, self.folder, &self.root)?;
        let below = real.strip_prefix(self.folder).ok()?;
        let is_left_out = |folder: &Path| {
            let path = self.absolute.join(folder);
            let is_excluded = self.excludes.iter().any(|all| all.matched(&path, true).is_ignore());
            is_excluded || self.ignore_files.ignores(&path, true)
        };
        (!below.ancestors().any(is_left_out)).then_some(real)
    }

    /// Adds a Markdown file that is not an input, unless it is hidden, left out or a link.
    fn note_markdown(&mut self, folder: &Path, absolute: &Path, entry: &FolderEntry) {
        let is_hidden = entry.name.as_encoded_bytes().starts_with(b".");
        if !is_hidden
            && entry.is_file
            && !entry.is_link
            && self.is_excluded_or_ignored(absolute, entry) == (false, false)
        {
            self.found.markdown.push(folder.join(&entry.name));
        }
    }

    /// True if an exclude or an ignore file leaves the path out; counts it in that case.
    fn count_if_left_out(&mut self, absolute: &Path, entry: &FolderEntry) -> bool {
        let (is_excluded, is_ignored) = self.is_excluded_or_ignored(absolute, entry);
        self.found.excluded += usize::from(is_excluded);
        self.found.ignored += usize::from(is_ignored);
        is_excluded || is_ignored
    }

    /// Returns whether an exclude pattern, and whether an ignore file, excludes the path. At most one of them
    /// is true.
    fn is_excluded_or_ignored(&self, absolute: &Path, entry: &FolderEntry) -> (bool, bool) {
        if self.excludes.is_empty() && self.ignore_files.is_empty() {
            return (false, false);
        }
        let path = absolute.join(&entry.name);
        let is_excluded = self.excludes.iter().any(|all| all.matched(&path, entry.is_folder).is_ignore());
        (is_excluded, !is_excluded && self.ignore_files.ignores(&path, entry.is_folder))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Excludes, FolderWalkResult, WalkOptions, find_manifests};

    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tollgate-walk-{name}-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        root
    }

    fn names(found: &FolderWalkResult, root: &Path) -> Vec<String> {
        found.inputs.iter().map(|input| input.name().replace(&format!("{}/", root.display()), "")).collect()
    }

    #[test]
    fn ignore_files_hold_below_their_folder_and_the_nearest_decides() {
        let root = tree(
            "ignore",
            &[
                (".git/config", ""),
                (".gitignore", "*.json\n/build/\n!keep.json\n"),
                ("a.yaml", ""),
                ("a.json", ""),
                ("keep.json", ""),
                ("build/x.yaml", ""),
                ("sub/build/y.yaml", ""),
                ("sub/.ignore", "!b.json\n"),
                ("sub/b.json", ""),
                ("sub/.gitignore", "secret.yaml\n"),
                ("sub/secret.yaml", ""),
                ("other/secret.yaml", ""),
                (".hidden.yaml", ""),
                (".hidden/x.yaml", ""),
            ],
        );
        let found = find_manifests(&root, &WalkOptions::default());
        let expected = ["a.yaml", "keep.json", "other/secret.yaml", "sub/b.json", "sub/build/y.yaml"];
        assert_eq!((names(&found, &root), found.ignored), (expected.map(str::to_owned).to_vec(), 3));
        // A folder below the top of the repository obeys the files above it.
        let found = find_manifests(&root.join("sub"), &WalkOptions::default());
        assert_eq!((names(&found, &root).len(), found.ignored), (2, 1));
        let all = find_manifests(&root, &WalkOptions { no_ignore: true, ..WalkOptions::default() });
        assert_eq!((all.inputs.len(), all.ignored), (8, 0));
        std::fs::remove_dir_all(&root).expect("cleared");
    }

    #[test]
    fn excludes_are_relative_to_their_folder_or_the_walk() {
        let root = tree("exclude", &[("a/x.yaml", ""), ("a/b/y.yaml", ""), ("b/z.yaml", ""), ("w.yml", "")]);
        let absolute = root.join("a/b").display().to_string();
        for (globs, left) in [
            (&["b"][..], &["a/x.yaml", "w.yml"][..]),
            (&["./b"], &["a/b/y.yaml", "a/x.yaml", "w.yml"]),
            (&[&absolute], &["a/x.yaml", "b/z.yaml", "w.yml"]),
            (&["/b"], &["a/b/y.yaml", "a/x.yaml", "w.yml"]),
            (&["a/**"], &["b/z.yaml", "w.yml"]),
            (&["*.yaml", "!x.yaml"], &["a/x.yaml", "w.yml"]),
        ] {
            let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
            for base in [root.as_path(), Path::new("/")] {
                let excludes = vec![Excludes::new(base, &globs).expect("globs")];
                let found = find_manifests(&root, &WalkOptions { excludes, ..WalkOptions::default() });
                assert_eq!(names(&found, &root), left, "{globs:?}");
                assert!(found.excluded > 0);
            }
        }
        assert!(Excludes::new(&root, &["a[".to_owned()]).is_err());
        std::fs::remove_dir_all(&root).expect("cleared");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_inside_only_and_never_twice() {
        use std::os::unix::fs::symlink;
        let root = tree("links", &[("in/a.yaml", ""), ("in/b/c.yaml", ""), ("out/d.yaml", "")]);
        symlink("b", root.join("in/again")).expect("a link");
        symlink("..", root.join("in/b/loop")).expect("a link");
        symlink("../out", root.join("in/out")).expect("a link");
        symlink("../out/d.yaml", root.join("in/d.yaml")).expect("a link");
        symlink("nowhere", root.join("in/dangling.yaml")).expect("a link");
        let found = find_manifests(&root.join("in"), &WalkOptions::default());
        assert_eq!(names(&found, &root), ["in/a.yaml", "in/b/c.yaml", "in/dangling.yaml"]);
        let excludes = vec![Excludes::new(&root.join("in"), &["b".to_owned()]).expect("a glob")];
        let left_out = find_manifests(&root.join("in"), &WalkOptions { excludes, ..WalkOptions::default() });
        assert_eq!(names(&left_out, &root), ["in/a.yaml", "in/again/c.yaml", "in/dangling.yaml"]);
        assert_eq!((found.outside.len(), found.errors.len()), (2, 0));
        std::fs::remove_dir_all(&root).expect("cleared");
    }

    #[cfg(unix)]
    #[test]
    fn ignore_files_are_bounded_regular_files_of_the_repository() {
        use std::os::unix::fs::symlink;
        let large = format!("{}\na.yaml\n", "#".repeat(256 << 10));
        let many = "a.yaml\n".repeat(10_001);
        let half = format!("{}\nb.yaml\n", "#".repeat(140 << 10));
        let files = [
            (".git/config", ""),
            ("large/.gitignore", large.as_str()),
            ("deep/.gitignore", &half),
            ("deep/er/.ignore", &half),
            ("many/.ignore", &many),
            ("inside/real", "a.yaml\n"),
            ("device/x", ""),
            ("folder/.gitignore/x", ""),
            ("top/x", ""),
        ];
        let root = tree("bounded", &files);
        for folder in ["large", "many", "inside", "device", "folder"] {
            std::fs::write(root.join(folder).join("a.yaml"), "").expect("a file");
        }
        symlink("real", root.join("inside/.gitignore")).expect("a link");
        symlink("/dev/zero", root.join("device/.gitignore")).expect("a link");
        let found = find_manifests(&root, &WalkOptions::default());
        // What an unused file would ignore is checked.
        let checked = ["device/a.yaml", "folder/a.yaml", "large/a.yaml", "many/a.yaml"];
        assert_eq!((names(&found, &root), found.ignored), (checked.map(str::to_owned).to_vec(), 1));
        assert_eq!(found.outside, [root.join("device/.gitignore")]);
        let reasons: Vec<&str> = found.errors.iter().map(|error| error.message.as_str()).collect();
        let remedy = "shorten the file, or use --no-ignore to check ignored files too";
        let expected = [
            "more than 262144 bytes of patterns in this folder and above; ",
            "not a regular file; ",
            "larger than 262144 bytes; ",
            "more than 10000 patterns in this folder and above; ",
        ];
        assert_eq!(reasons, expected.map(|reason| format!("{reason}{remedy}")));
        // A link above the walk leads out of the repository, too.
        symlink("/dev/zero", root.join(".ignore")).expect("a link");
        assert_eq!(
            find_manifests(&root.join("top"), &WalkOptions::default()).outside,
            [root.join(".ignore")]
        );
        std::fs::remove_dir_all(&root).expect("cleared");
    }

    /// A kustomization never names a file that would block or never end when read.
    #[cfg(unix)]
    #[test]
    fn kustomizations_above_are_regular_files() {
        use std::os::unix::fs::symlink;
        let root =
            tree("above", &[(".git/config", ""), ("base/kustomization.yml", ""), ("base/a/x.yaml", "")]);
        symlink("/dev/zero", root.join("base/Kustomization")).expect("a link");
        let found = find_manifests(&root.join("base/a"), &WalkOptions::default());
        assert_eq!(found.kustomizations, [root.join("base/kustomization.yml")]);
        std::fs::remove_dir_all(&root).expect("cleared");
    }
}
