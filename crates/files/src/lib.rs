//! Finds, reads and replaces the files that the user names. `tollgate-document` parses their contents.
//!
//! A file given by the user is read whatever its name; a folder is searched for manifests, in the order of names,
//! without hidden folders. Files are read one at a time, by the caller. There are two searches: [`collect`] is for
//! input that must be complete (policies, dumps) and leaves nothing out; `walk` is for repositories and obeys
//! `.gitignore`.
//!
//! Invariant: searching a folder reads no manifest outside of it. A symbolic link is followed if its target is
//! inside, as in the volumes of a kubelet (`..data`); others are listed, for the caller to report or to reject.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the door to the file system that the others go through"
)]

mod ignore_files;
mod name;
mod path_globs;
mod replace;
mod walk;

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use ignore_files::Excludes;
pub use name::shown_path;
pub use path_globs::PathGlobs;
pub use replace::{create_new_file_in_folder, replace_if_unchanged, write_atomic_or_in_place};
use tollgate_document::source::{self, InputError};
use tollgate_formats::sanitize;
pub use walk::{FolderWalkResult, KUSTOMIZATIONS, WalkOptions, find_manifests, kustomizations_above};

/// Default maximum size of a file in bytes.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 64 << 20;

/// An input to check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file, by path.
    File(PathBuf),
}

impl Input {
    /// The name of the input in messages and reports: `<stdin>`, or the path relative to the working folder.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "<stdin>".to_owned(),
            Input::File(path) => shown_path(path),
        }
    }

    /// The byte order mark of UTF-8, which [`read`] removes, if the file starts with it; otherwise empty. A patch
    /// repeats it, because it is part of the first line.
    pub fn byte_order_mark(&self) -> &'static str {
        match self {
            Input::File(path) if replace::has_byte_order_mark(path) => "\u{feff}",
            _ => "",
        }
    }

    /// False for standard input and pipes (such as `<(…)` of a shell).
    pub fn can_be_read_twice(&self) -> bool {
        match self {
            Input::Stdin => false,
            Input::File(path) => std::fs::metadata(path).is_ok_and(|meta| meta.is_file()),
        }
    }
}

/// The inputs of the arguments, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inputs {
    /// The inputs to read.
    pub inputs: Vec<Input>,
    /// The folders that were searched.
    pub folders: Vec<PathBuf>,
    /// Arguments that cannot be read.
    pub errors: Vec<InputError>,
    /// Links to targets outside of their folder, which are not followed.
    pub outside: Vec<PathBuf>,
}

impl Inputs {
    /// Turns links that lead out of their folder into errors, for commands whose input must be complete.
    pub fn turn_outside_links_into_errors(mut self) -> Inputs {
        let message =
            "a symbolic link to a target outside the folder is not followed; pass the target instead";
        let outside = std::mem::take(&mut self.outside);
        self.errors.extend(outside.iter().map(|path| InputError::for_whole_file(&shown_path(path), message)));
        self
    }
}

/// A note about links that lead out of their folder; `None` if there are none.
pub fn outside_links_note(outside: &[PathBuf]) -> Option<String> {
    let first = outside.first()?.display().to_string();
    let count = outside.len();
    let what = match count {
        1 => "1 symbolic link to a target outside its folder was".to_owned(),
        _ => format!("{count} symbolic links to targets outside their folders were"),
    };
    Some(format!(
        "{what} not followed: {}{}",
        sanitize::sanitize_as_line(&first),
        if count > 1 { ", …" } else { "" }
    ))
}

/// The inputs of the arguments; an error if any of them cannot be read, or if a link is not followed.
pub fn collect_all_or_fail(arguments: &[PathBuf]) -> Result<Vec<Input>, InputError> {
    let found = collect(arguments).turn_outside_links_into_errors();
    found.errors.into_iter().next().map_or(Ok(found.inputs), Err)
}

/// Reads all inputs of these arguments, in their order, and returns the name and the text of each.
pub fn read_all_or_fail(arguments: &[PathBuf], limit: u64) -> Result<Vec<(String, String)>, InputError> {
    collect_all_or_fail(arguments)?.iter().map(|input| Ok((input.name(), read(input, limit)?))).collect()
}

/// Finds the inputs that the arguments of a command name: files, the manifests of folders, and `-` for standard input.
pub fn collect(arguments: &[PathBuf]) -> Inputs {
    let mut found = Inputs::default();
    for argument in arguments {
        if argument.as_os_str() == "-" {
            if !found.inputs.contains(&Input::Stdin) {
                found.inputs.push(Input::Stdin);
            }
            continue;
        }
        match std::fs::metadata(argument) {
            Ok(meta) if meta.is_dir() => {
                let before = (found.inputs.len(), found.errors.len());
                match std::fs::canonicalize(argument) {
                    Ok(root) => {
                        add_manifests(argument, (argument.as_path(), &root), &mut HashSet::new(), &mut found)
                    }
                    Err(error) => found.errors.push(unreadable_file(argument, &error)),
                }
                if before == (found.inputs.len(), found.errors.len()) {
                    let name = shown_path(argument);
                    found.errors.push(InputError::for_whole_file(
                        &name,
                        "no .yaml, .yml or .json files in this folder",
                    ));
                }
            }
            Ok(_) => found.inputs.push(Input::File(argument.clone())),
            Err(error) => found.errors.push(unreadable_file(argument, &error)),
        }
    }
    found
}

/// Adds the manifests of a folder below `top` to `found`; `root` is `top` with links resolved. A folder is searched once,
/// however many links lead to it.
fn add_manifests(
    folder: &Path,
    (top, root): (&Path, &Path),
    entered: &mut HashSet<PathBuf>,
    found: &mut Inputs,
) {
    let entries = std::fs::canonicalize(folder).and_then(|real| Ok((real, std::fs::read_dir(folder)?)));
    let entries = match entries {
        Ok((real, _)) if !entered.insert(real.clone()) => return,
        Ok((_, entries)) => entries,
        Err(error) => return found.errors.push(unreadable_file(folder, &error)),
    };
    found.folders.push(folder.to_owned());
    let mut paths = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => paths.push(entry.path()),
            Err(error) => found.errors.push(unreadable_file(folder, &error)),
        }
    }
    paths.sort();
    for path in paths {
        let is_folder = path.is_dir();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        // Links are checked only for manifests: system calls for fifty thousand files take long.
        if if is_folder { is_hidden } else { !has_manifest_extension(&path) } {
            continue;
        }
        if is_link_out_of_root(&path, root) {
            found.outside.push(path);
        } else if is_folder {
            let real = if path.is_symlink() { path_without_links(&path, top, root) } else { None };
            add_manifests(real.as_ref().unwrap_or(&path), (top, root), entered, found);
        } else {
            // Opening a pipe would block; a broken link is reported when it is read.
            match std::fs::metadata(&path) {
                Ok(meta) if !meta.is_file() => {
                    let name = shown_path(&path);
                    found.errors.push(InputError::for_whole_file(&name, "not a regular file"));
                }
                _ => found.inputs.push(Input::File(path)),
            }
        }
    }
}

/// The path below `top` to which a path leads; `root` is `top` with links resolved. Files are named as in the repository:
/// a path through a link is no file there, so that a CI system cannot show a finding beside it.
fn path_without_links(path: &Path, top: &Path, root: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(path).ok()?;
    Some(top.join(real.strip_prefix(root).ok()?))
}

/// True for a link to a target that is not below `root`. A broken link is reported when it is read.
fn is_link_out_of_root(path: &Path, root: &Path) -> bool {
    path.is_symlink() && path.canonicalize().is_ok_and(|target| !target.starts_with(root))
}

/// True if the name ends in `.yaml`, `.yml` or `.json`.
fn has_manifest_extension(path: &Path) -> bool {
    has_extension(path, &["yaml", "yml", "json"])
}

/// True if the name is that of a Markdown file.
pub fn has_markdown_extension(path: &Path) -> bool {
    has_extension(path, &["md", "markdown"])
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    let extension = path.extension().unwrap_or_default();
    known.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Reads the text of an input; an error if it has more than `limit` bytes.
pub fn read(input: &Input, limit: u64) -> Result<String, InputError> {
    read_input(input, limit, "")
}

/// Reads the text of an input for a command whose `--max-file` is `limit`. The error for a larger one also names the
/// limit for one document, so that raising the first limit does not lead to the second.
pub fn read_or_suggest_max_file(input: &Input, limit: u64) -> Result<String, InputError> {
    let documents = source::MAX_DOCUMENT_BYTES >> 20;
    let remedy = format!(
        "; raise the limit with --max-file (each document in the file can have at most {documents} MiB)"
    );
    read_input(input, limit, &remedy)
}

/// Reads the text of an input; `remedy` is added to the error for a larger one.
fn read_input(input: &Input, limit: u64, remedy: &str) -> Result<String, InputError> {
    let bytes = match input {
        Input::Stdin => read_one_past_limit(std::io::stdin().lock(), limit, 0),
        Input::File(path) => std::fs::File::open(path).and_then(|file| {
            // A file of known length is rejected before it is read; the length of a pipe is not known.
            let length = file.metadata()?.len();
            if length > limit {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            read_one_past_limit(file, limit, usize::try_from(length).unwrap_or_default())
        }),
    };
    let name = input.name();
    let bytes = bytes_within_limit(&name, bytes, limit, remedy)?;
    source::decode_by_byte_order_mark(&name, bytes)
}

/// The bytes that were read; an error if they could not be read, or are more than `limit`.
fn bytes_within_limit(
    name: &str,
    bytes: std::io::Result<Vec<u8>>,
    limit: u64,
    remedy: &str,
) -> Result<Vec<u8>, InputError> {
    match bytes {
        Ok(bytes) if bytes.len() as u64 <= limit => Ok(bytes),
        Err(error) if error.kind() != std::io::ErrorKind::FileTooLarge => {
            Err(InputError::for_whole_file(name, io_reason(&error)))
        }
        _ => Err(InputError::for_whole_file(name, format!("larger than {limit} bytes{remedy}"))),
    }
}

/// Reads the text of a file, which may be empty; an error if it has more than `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> Result<String, InputError> {
    let bytes = read_bytes(path, limit)?;
    if bytes.trim_ascii().is_empty() {
        return Ok(String::new());
    }
    source::decode_by_byte_order_mark(&path.display().to_string(), bytes)
}

/// True for a folder that can be read and contains no manifests.
pub fn is_folder_without_manifests(path: &Path) -> bool {
    let mut found = Inputs::default();
    let root = if path.is_dir() { std::fs::canonicalize(path).ok() } else { None };
    let Some(root) = root else { return false };
    add_manifests(path, (path, &root), &mut HashSet::new(), &mut found);
    found.inputs.is_empty() && found.errors.is_empty() && found.outside.is_empty()
}

/// True for a symbolic link whose target does not exist.
pub fn is_dangling_link(path: &Path) -> bool {
    path.is_symlink() && !path.exists()
}

/// Reads a file whose encoding [`read`] rejects, with replacement characters, to guess its content. Returns
/// `None` if it cannot be read.
pub fn read_lossy(path: &Path, limit: u64) -> Option<String> {
    let bytes = read_bytes(path, limit).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Maximum size in bytes of a file with certificates or keys.
pub const MAX_PEM: u64 = 1 << 20;

/// Reads a file named by another file or found by a walk. Fails if it has more than `limit` bytes or is not a
/// regular file, because pipes can block and devices may never end. Only the command line may name such
/// files.
pub fn read_regular(path: &Path, limit: u64) -> Result<Vec<u8>, InputError> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => {
            Err(InputError::for_whole_file(&shown_path(path), "not a regular file"))
        }
        _ => read_bytes(path, limit),
    }
}

/// Reads a file; an error if it has more than `limit` bytes.
pub fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, InputError> {
    let bytes = std::fs::File::open(path).and_then(|file| read_one_past_limit(file, limit, 0));
    bytes_within_limit(&shown_path(path), bytes, limit, "")
}

/// Reads to the end, or the first `limit` + 1 bytes of what is longer. `length` is the expected number of bytes, or 0.
fn read_one_past_limit(source: impl Read, limit: u64, length: usize) -> std::io::Result<Vec<u8>> {
    // With less space than this after the text, the standard library begins with small reads.
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length.saturating_add(32))?;
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The error for a file that cannot be read.
fn unreadable_file(path: &Path, error: &std::io::Error) -> InputError {
    InputError::for_whole_file(&shown_path(path), io_reason(error))
}

/// A short reason why a file cannot be read, for users.
pub fn io_reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        // Without the number of the error.
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn folders_are_searched_in_order_and_links_do_not_loop() {
        let root = std::env::temp_dir().join(format!("tollgate-files-{}", std::process::id()));
        let inner = root.join("b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join("empty")).unwrap();
        for name in ["z.yaml", "a.YML", "b/m.json", "notes.txt", ".git/x.yaml", "big.json"] {
            std::fs::write(root.join(name), "a: 1\n").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(&root, inner.join("loop")).unwrap();
        let found =
            super::collect(&[root.clone(), root.join("notes.txt"), root.join("empty"), root.join("gone")]);
        let names: Vec<String> =
            found.inputs.iter().map(|input| input.name().replace(&root.display().to_string(), "")).collect();
        assert_eq!(names, ["/a.YML", "/b/m.json", "/big.json", "/z.yaml", "/notes.txt"]);
        let errors: Vec<&str> = found.errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(errors, ["no .yaml, .yml or .json files in this folder", "no such file or folder"]);
        assert_eq!(super::read(&found.inputs[0], super::DEFAULT_MAX_FILE_BYTES).unwrap(), "a: 1\n");
        assert_eq!(super::read(&found.inputs[0], 3).unwrap_err().message, "larger than 3 bytes");
        let error = super::read_or_suggest_max_file(&found.inputs[0], 3).unwrap_err();
        assert_eq!(
            error.message,
            "larger than 3 bytes; raise the limit with --max-file (each document in the file can have at most 8 MiB)"
        );
        std::fs::remove_dir_all(&root).unwrap();
    }
}
