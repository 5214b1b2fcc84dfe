//! The name of a file in messages and reports: one spelling, independent of how the user or the shell wrote the path.
//!
//! `./a.yaml`, `a.yaml` and `/the/working/folder/a.yaml` are all `a.yaml`, so that formats and runs can be compared.
//! `..` is kept: behind a symbolic link it is not the folder before it.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

/// The working folder, as the system has it and as the shell calls it.
static WORKING_FOLDERS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let Ok(folder) = std::env::current_dir() else { return Vec::new() };
    let same = |path: &PathBuf| path.is_absolute() && path.canonicalize().is_ok_and(|real| real == folder);
    let called = std::env::var_os("PWD").map(PathBuf::from).filter(same);
    std::iter::once(folder.clone()).chain(called).collect()
});

/// The path as messages show it: relative if it is below the working folder, without `.` and repeated separators.
pub fn shown_path(path: &Path) -> String {
    shown_path_relative_to(path, &WORKING_FOLDERS)
}

fn shown_path_relative_to(path: &Path, folders: &[PathBuf]) -> String {
    let below = || folders.iter().find_map(|folder| path.strip_prefix(folder).ok());
    let path = if path.is_absolute() { below().unwrap_or(path) } else { path };
    let clean: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    let name = if clean.as_os_str().is_empty() { ".".to_owned() } else { clean.display().to_string() };
    if cfg!(windows) { name.replace('\\', "/") } else { name }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::{Path, PathBuf};

    #[test]
    fn a_path_has_one_spelling() {
        let folders = [PathBuf::from("/home/me/repo"), PathBuf::from("/repo")];
        for (path, expected) in [
            ("a.yaml", "a.yaml"),
            ("./a.yaml", "a.yaml"),
            ("././b//a.yaml", "b/a.yaml"),
            ("b/./a.yaml", "b/a.yaml"),
            ("/home/me/repo/b/a.yaml", "b/a.yaml"),
            ("/home/me/repo//./b/a.yaml", "b/a.yaml"),
            ("/repo/a.yaml", "a.yaml"),
            ("/home/me/repo", "."),
            (".", "."),
            ("/home/me/repository/a.yaml", "/home/me/repository/a.yaml"),
            ("/elsewhere//a.yaml", "/elsewhere/a.yaml"),
            ("link/../a.yaml", "link/../a.yaml"),
            ("../a.yaml", "../a.yaml"),
            ("a\\b.yaml", "a\\b.yaml"),
        ] {
            assert_eq!(super::shown_path_relative_to(Path::new(path), &folders), expected, "{path}");
        }
    }
}
