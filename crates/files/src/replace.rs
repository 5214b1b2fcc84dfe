//! Replaces the text of a file atomically.
//!
//! The new text is written beside the file and renamed onto it, so that no reader sees a partial file. A symbolic
//! link stays one: its target is replaced. Owner, permissions and the byte order mark are kept.
//!
//! Invariant: a file that has changed since it was checked is not modified.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{DEFAULT_MAX_FILE_BYTES, io_reason};
use tollgate_document::source;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Replaces the whole text of a file with `new`. Returns an error message if the text is not `old`, because the file
/// has changed since it was read, or if it cannot be written.
pub fn replace_if_unchanged(path: &Path, old: &str, new: &str) -> Result<(), String> {
    let target = std::fs::canonicalize(path).map_err(|error| io_reason(&error))?;
    let meta = std::fs::metadata(&target).map_err(|error| io_reason(&error))?;
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    if meta.permissions().readonly() {
        return Err("the file is read-only".to_owned());
    }
    let bytes =
        super::read_bytes(&target, DEFAULT_MAX_FILE_BYTES.max(meta.len())).map_err(|error| error.message)?;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err("cannot write UTF-16; save the file as UTF-8".to_owned());
    }
    let mark = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { b"" };
    let is_same = source::decode_by_byte_order_mark("", bytes).is_ok_and(|text| text == old);
    if !is_same {
        return Err("the file has changed since it was read".to_owned());
    }
    write_and_rename(&target, &[mark, new.as_bytes()].concat(), Some(&meta))
        .map_err(|error| io_reason(&error))
}

/// True if the file starts with the byte order mark of UTF-8; false if it cannot be read.
pub(super) fn has_byte_order_mark(path: &Path) -> bool {
    let mut start = [0; BYTE_ORDER_MARK.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == BYTE_ORDER_MARK
}

/// Writes a file atomically. If that is not possible (a device, a mounted file, a folder that is not
/// writable), writes it in place.
pub fn write_atomic_or_in_place(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let is_special = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    let written = match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() && meta.permissions().readonly() => {
            return Err(ErrorKind::PermissionDenied.into());
        }
        Ok(meta) if meta.is_file() && !is_special => {
            write_and_rename(&std::fs::canonicalize(path)?, bytes, Some(&meta))
        }
        Err(_) if !is_special && !path.is_symlink() => write_and_rename(path, bytes, None),
        _ => return File::create(path)?.write_all(bytes),
    };
    match written.as_ref().map_err(std::io::Error::kind) {
        Err(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::ResourceBusy) => {
            File::create(path)?.write_all(bytes)
        }
        _ => written,
    }
}

/// Creates a file in `folder` or below it, with the folders above it. An error of the kind `AlreadyExists` if
/// there is a file or a link; an error if a link leads out of the folder.
pub fn create_new_file_in_folder(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let above = path.parent().unwrap_or(folder);
    // Before folders are created: they must not be created elsewhere, either.
    let existing = above.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok()).unwrap_or(folder);
    if !std::fs::canonicalize(existing)?.starts_with(std::fs::canonicalize(folder)?) {
        return Err(std::io::Error::other("a link leads out of the folder"));
    }
    std::fs::create_dir_all(above)?;
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

/// Writes a new file and renames it to `target`. It gets the permissions and the owner of `replaced`, the file that is
/// there.
fn write_and_rename(target: &Path, bytes: &[u8], replaced: Option<&Metadata>) -> std::io::Result<()> {
    let (temporary, mut file) = create_temp_beside(target)?;
    let mut write = || {
        if let Some(replaced) = replaced {
            copy_owner(&file, replaced);
            file.set_permissions(replaced.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, target)
    };
    write().inspect_err(|_| _ = std::fs::remove_file(&temporary))
}

/// Creates a new file in the same folder, with a hidden name that no walk takes for a manifest and no other thread
/// uses.
fn create_temp_beside(path: &Path) -> std::io::Result<(PathBuf, File)> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_file_name(format!(".{name}.{}-{number}.tollgate-fix", std::process::id()));
        // Never through a link that somebody put there.
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&beside) {
            // Left behind by a process of the same number that was killed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 1_000_000 => {}
            created => return created.map(|file| (beside, file)),
        }
    }
}

/// Sets the owner of a file to that of the file that it replaces. Has an effect only for root.
#[cfg(unix)]
fn copy_owner(file: &File, replaced: &Metadata) {
    use std::os::unix::fs::MetadataExt as _;
    _ = std::os::unix::fs::fchown(file, Some(replaced.uid()), Some(replaced.gid()));
}

#[cfg(not(unix))]
fn copy_owner(_: &File, _: &Metadata) {}

#[cfg(test)]
mod tests {
    use super::replace_if_unchanged;

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_marks_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = std::env::temp_dir().join(format!("tollgate-replace-{}", std::process::id()));
        std::fs::create_dir_all(root.join("real")).unwrap();
        let (file, link) = (root.join("real/a.yaml"), root.join("link.yaml"));
        std::fs::write(&file, b"\xef\xbb\xbfa: 1\r\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real/a.yaml", &link).unwrap();
        replace_if_unchanged(&link, "a: 1\r\n", "a: 2\r\n").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"\xef\xbb\xbfa: 2\r\n");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(root.join("real")).unwrap().count(), 1, "nothing is left behind");
        let changed = replace_if_unchanged(&file, "a: 1\r\n", "a: 3\r\n");
        assert_eq!(changed.unwrap_err(), "the file has changed since it was read");
        std::fs::write(&file, b"\xff\xfea\0").unwrap();
        assert!(replace_if_unchanged(&file, "a", "b").unwrap_err().contains("UTF-16"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(replace_if_unchanged(&file, "a", "b").unwrap_err(), "the file is read-only");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
