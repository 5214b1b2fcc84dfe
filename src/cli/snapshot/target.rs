//! The output of a snapshot: stdout, or a file that is created only when the snapshot is complete.
//!
//! The text is written to a hidden file in the same folder, which is renamed at the end. If the run fails, the hidden
//! file is removed; if the process is killed, it stays, under a name that no command reads. Symbolic links and
//! permissions are kept. A pipe or device is written directly.
//!
//! Invariant: the file of `--output` is either unchanged or complete.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::files;

/// The open file or stream that a snapshot is written to.
pub(super) enum SnapshotTarget {
    Stdout,
    /// A pipe or a device.
    Stream(BufWriter<std::fs::File>, PathBuf),
    File(UnfinishedFile),
}

/// A file that is not complete yet; it is removed if it is dropped before it is finished.
pub(super) struct UnfinishedFile {
    file: BufWriter<std::fs::File>,
    temporary: PathBuf,
    /// The file to replace, with links followed.
    target: PathBuf,
    /// As the user named it.
    name: PathBuf,
}

impl SnapshotTarget {
    /// Opens the target, `-` for stdout.
    pub(super) fn open(output: &Path) -> Result<SnapshotTarget, Failure> {
        if output.as_os_str() == "-" {
            return Ok(SnapshotTarget::Stdout);
        }
        open_temporary_file_or_stream(output).map_err(|error| {
            Failure::Usage(format!("--output {}: {}", output.display(), files::io_reason(&error)))
        })
    }

    pub(super) fn write(&mut self, console: &mut Console, text: &str) -> Result<(), Failure> {
        match self {
            SnapshotTarget::Stdout => Ok(console.write_data_sanitized_for_terminal(text)?),
            SnapshotTarget::Stream(file, _) => Ok(file.write_all(text.as_bytes())?),
            SnapshotTarget::File(unfinished) => Ok(unfinished.file.write_all(text.as_bytes())?),
        }
    }

    /// Completes the output, and replaces the file. Returns its path; `None` for stdout.
    pub(super) fn finish(self, console: &mut Console) -> Result<Option<PathBuf>, Failure> {
        match self {
            SnapshotTarget::Stdout => {
                console.flush_stdout()?;
                Ok(None)
            }
            SnapshotTarget::Stream(mut file, path) => {
                file.flush()?;
                Ok(Some(path))
            }
            SnapshotTarget::File(mut unfinished) => {
                unfinished.file.flush()?;
                unfinished.file.get_ref().sync_all()?;
                std::fs::rename(&unfinished.temporary, &unfinished.target)?;
                Ok(Some(unfinished.name.clone()))
            }
        }
    }
}

fn open_temporary_file_or_stream(output: &Path) -> std::io::Result<SnapshotTarget> {
    let target = match std::fs::canonicalize(output) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => output.to_owned(),
        resolved => resolved?,
    };
    let existing = std::fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|meta| !meta.is_file()) || target.file_name().is_none() {
        let file = std::fs::OpenOptions::new().write(true).open(&target)?;
        return Ok(SnapshotTarget::Stream(BufWriter::new(file), output.to_owned()));
    }
    if existing.is_some() {
        // Who may not write the file may not replace it either.
        std::fs::OpenOptions::new().write(true).open(&target)?;
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = target.with_file_name(format!(".{name}.{}.tollgate-snapshot", std::process::id()));
    // Never through a link that another user created there.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let unfinished =
        UnfinishedFile { file: BufWriter::new(file), temporary, target, name: output.to_owned() };
    if let Some(meta) = existing {
        unfinished.file.get_ref().set_permissions(meta.permissions())?;
    }
    Ok(SnapshotTarget::File(unfinished))
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove.
        _ = std::fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::SnapshotTarget;
    use crate::cli::console::Console;

    #[expect(clippy::disallowed_methods, reason = "reads what was written")]
    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[cfg(unix)]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "reads what was written")]
    fn a_file_is_replaced_when_it_is_whole() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("tollgate-target-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (file, link) = (folder.join("keep.yaml"), folder.join("link.yaml"));
        std::fs::write(&file, "old").expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("set");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let console = &mut Console::open();
        let read = || std::fs::read_to_string(&file).expect("readable");
        let long = "new\n".repeat(10_000);
        let mut target = SnapshotTarget::open(&link).expect("opened");
        target.write(console, &long).expect("written");
        assert_eq!(read(), "old", "whoever is killed here leaves the file as it was");
        let hidden: Vec<String> = names(&folder).into_iter().filter(|name| name.starts_with('.')).collect();
        assert!(
            hidden.len() == 1
                && hidden.iter().all(|name| Path::new(name).extension() != Some("yaml".as_ref())),
            "{hidden:?}"
        );
        drop(target);
        assert_eq!((read().as_str(), names(&folder)), ("old", vec!["keep.yaml".into(), "link.yaml".into()]));
        let mut target = SnapshotTarget::open(&link).expect("opened");
        target.write(console, &long).expect("written");
        assert_eq!(target.finish(console).expect("finished").as_deref(), Some(link.as_path()));
        assert_eq!((read(), names(&folder)), (long, vec!["keep.yaml".into(), "link.yaml".into()]));
        assert!(link.is_symlink());
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        // What is no regular file is not replaced.
        let target = SnapshotTarget::open(Path::new("/dev/null")).expect("opened");
        assert!(matches!(target, SnapshotTarget::Stream(..)));
        assert!(
            SnapshotTarget::open(&folder).is_err() && SnapshotTarget::open(&folder.join("no/x")).is_err()
        );
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
