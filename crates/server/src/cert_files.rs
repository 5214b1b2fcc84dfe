//! Certificate files that change while the server runs: read together, applied if their content changed.
//!
//! A kubelet replaces a Secret by swapping a symlink, so certificate and key are read through one resolved directory,
//! and their content decides whether anything changed. Files that do not parse or do not match are reported (log,
//! metric, `readyz?verbose`), and the last good ones stay in use. Only regular files are read, up to a size limit.
#![expect(clippy::disallowed_methods, reason = "the shell reads certificate files here")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;

use super::UnusableSettings;
use super::metrics::Metrics;

/// The contents of the certificate files, in the order of their paths.
pub(super) type FileContents = Vec<Vec<u8>>;
/// Reads the current certificate files.
type ReadFiles = Box<dyn Fn() -> anyhow::Result<FileContents> + Send + Sync>;
/// Uses new contents of the certificate files, or returns what is wrong with them. Returns their expiry in seconds
/// since 1970.
type ApplyFilesReturningExpiry = Box<dyn Fn(&FileContents) -> anyhow::Result<i64> + Send + Sync>;

/// Certificate files that are reloaded when they change, with the function that applies new contents.
pub(super) struct CertificateSource {
    /// Name of the source in messages and as a metric label: `server` or `client-ca`.
    pub(super) name: &'static str,
    /// Directories that are watched for changes of the files.
    pub(super) directories: Vec<PathBuf>,
    read: ReadFiles,
    apply: ApplyFilesReturningExpiry,
    metrics: Arc<Metrics>,
    state: Mutex<CertificateState>,
}

/// The contents of the certificate files that are in use, and when they expire; if the contents that were read last cannot
/// be used, also these and the reason.
#[derive(Default)]
struct CertificateState {
    in_use: FileContents,
    rejected: Option<FileContents>,
    fault: Option<String>,
    expires: i64,
}

/// The status of the certificate files of one source, for `readyz?verbose`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CertificateStatus {
    /// Why the current files are not in use.
    pub(super) fault: Option<String>,
    /// Expiry of the certificates in use, seconds since 1970.
    pub(super) expires: i64,
}

impl CertificateSource {
    /// A source of files that another process writes.
    pub(super) fn from_files(
        name: &'static str,
        directories: Vec<PathBuf>,
        metrics: Arc<Metrics>,
        read: ReadFiles,
        apply: ApplyFilesReturningExpiry,
    ) -> anyhow::Result<CertificateSource> {
        CertificateSource::load_and_apply(name, directories, metrics, read, apply)
            .map_err(|error| UnusableSettings::certificates(&error))
    }

    /// A source of one file that another process writes. Errors name the file.
    pub(super) fn from_file(
        name: &'static str,
        file: PathBuf,
        metrics: Arc<Metrics>,
        apply: ApplyFilesReturningExpiry,
    ) -> anyhow::Result<CertificateSource> {
        let directories = vec![parent_directory(&file).to_owned()];
        let shown = file.display().to_string();
        let apply = Box::new(move |contents: &FileContents| apply(contents).with_context(|| shown.clone()));
        let read = Box::new(move || read_same_generation(std::slice::from_ref(&file)));
        CertificateSource::from_files(name, directories, metrics, read, apply)
    }

    /// Reads and applies the files for the first time; an error if they cannot be used.
    pub(super) fn load_and_apply(
        name: &'static str,
        directories: Vec<PathBuf>,
        metrics: Arc<Metrics>,
        read: ReadFiles,
        apply: ApplyFilesReturningExpiry,
    ) -> anyhow::Result<CertificateSource> {
        let source = CertificateSource { name, directories, read, apply, metrics, state: Mutex::default() };
        source.reload_if_changed();
        match source.status().fault {
            Some(fault) => anyhow::bail!("{name} certificate: {fault}"),
            None => Ok(source),
        }
    }

    /// Returns the current status of the certificate.
    pub(super) fn status(&self) -> CertificateStatus {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        CertificateStatus { fault: state.fault.clone(), expires: state.expires }
    }

    /// Reads the certificate files again, and uses them if they changed and are valid.
    pub(super) fn reload_if_changed(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = match (self.read)() {
            Ok(contents) => contents,
            Err(error) => return self.record_failure(&mut state, None, &error),
        };
        if contents == state.in_use {
            if state.fault.take().is_some() {
                state.rejected = None;
                self.metrics.record_certificate_reload(self.name, true, state.expires);
                tracing::info!(certificate = self.name, "the files match the certificate in use again");
            }
            return;
        }
        // What was rejected is tried again: a certificate that is not valid yet is valid later.
        match (self.apply)(&contents) {
            Ok(expires) => {
                *state = CertificateState { in_use: contents, rejected: None, fault: None, expires };
                self.metrics.record_certificate_reload(self.name, true, expires);
                tracing::info!(certificate = self.name, expires, "certificate in use");
            }
            Err(error) => self.record_failure(&mut state, Some(contents), &error),
        }
    }

    /// Records that the files cannot be used, and logs it unless the same was logged before. The last valid ones stay
    /// in use.
    fn record_failure(&self, state: &mut CertificateState, bad: Option<FileContents>, error: &anyhow::Error) {
        let fault = format!("{error:#}");
        // At start none is in use: the caller reports the fault and stops.
        if state.in_use.is_empty() {
            state.fault = Some(fault);
            return;
        }
        if state.fault.as_ref() != Some(&fault) || state.rejected != bad {
            self.metrics.record_certificate_reload(self.name, false, state.expires);
            tracing::warn!(
                certificate = self.name,
                fault,
                "cannot use the new certificate; the last valid certificate stays in use"
            );
        }
        state.rejected = bad;
        state.fault = Some(fault);
    }
}

pub(super) fn parent_directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Reads the files. If a volume is swapped meanwhile, all of them are read again, so that they are of one generation
/// and a swap is never reported as an error.
pub(super) fn read_same_generation(files: &[PathBuf]) -> anyhow::Result<FileContents> {
    let generations =
        || files.iter().map(|file| volume_generation(parent_directory(file))).collect::<Vec<PathBuf>>();
    let mut before = generations();
    for _ in 0..MAX_SWAP_RETRIES {
        let contents = read_through_resolved_directories(files);
        let after = generations();
        if before == after {
            return contents;
        }
        before = after;
    }
    read_through_resolved_directories(files)
}

/// Number of times that files are read again because their volume was swapped meanwhile; after that, the next file
/// event triggers a reload.
const MAX_SWAP_RETRIES: usize = 8;

/// Reads the files; a directory is resolved once for all its files.
fn read_through_resolved_directories(files: &[PathBuf]) -> anyhow::Result<FileContents> {
    let mut resolved: Vec<(&Path, PathBuf)> = Vec::new();
    let mut contents = Vec::with_capacity(files.len());
    for file in files {
        let directory = parent_directory(file);
        if !resolved.iter().any(|(known, _)| *known == directory) {
            resolved.push((directory, volume_generation(directory)));
        }
        let base = resolved.iter().find(|(known, _)| *known == directory).map_or(directory, |(_, base)| base);
        let name = file.file_name().with_context(|| format!("{} is not a file", file.display()))?;
        // Files next to `..data` need not be in it.
        let held = base.join(name);
        let path = if held.exists() { held } else { file.clone() };
        contents.push(
            read_regular_file_up_to_limit(&path)
                .with_context(|| format!("cannot read {}", file.display()))?,
        );
    }
    Ok(contents)
}

/// Largest file with certificates or keys.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads a regular file up to the size limit.
pub(super) fn read_regular_file_up_to_limit(path: &Path) -> std::io::Result<Vec<u8>> {
    let refuse = |why: &str| Err(std::io::Error::other(why.to_owned()));
    // Checked before it is opened: opening a pipe blocks until another process writes.
    if !std::fs::metadata(path)?.is_file() {
        return refuse("not a regular file");
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES { refuse("larger than 1 MiB") } else { Ok(bytes) }
}

/// The directory that the kubelet's `..data` link points to now, or the directory itself if it has no such link.
fn volume_generation(directory: &Path) -> PathBuf {
    let resolved = directory.join("..data").canonicalize().or_else(|_| directory.canonicalize());
    resolved.unwrap_or_else(|_| directory.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    use super::{CertificateSource, MAX_FILE_BYTES, Metrics, read_regular_file_up_to_limit};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("created");
        folder
    }

    #[test]
    fn only_regular_files_of_a_sensible_size_are_read() {
        let folder = folder("cert-size");
        let refused = |name: &str| {
            read_regular_file_up_to_limit(&folder.join(name)).expect_err("not readable").to_string()
        };
        assert_eq!(refused(""), "not a regular file");
        let large = usize::try_from(MAX_FILE_BYTES).expect("small") + 1;
        std::fs::write(folder.join("large"), vec![b'x'; large]).expect("written");
        assert_eq!(refused("large"), "larger than 1 MiB");
        assert!(read_regular_file_up_to_limit(&folder.join("missing")).is_err());
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn files_that_are_not_valid_do_not_replace_those_in_use() {
        let folder = folder("cert-reload");
        let file = folder.join("tls.crt");
        let write = |text: &str| std::fs::write(&file, text).expect("written");
        let applied = Arc::new(Mutex::new(Vec::new()));
        let log = applied.clone();
        let apply = Box::new(move |contents: &super::FileContents| {
            let text = String::from_utf8(contents.concat()).expect("text");
            anyhow::ensure!(text != "bad", "not a certificate");
            log.lock().expect("one user").push(text);
            Ok(7)
        });
        write("good");
        let open = CertificateSource::from_file("server", file.clone(), Arc::new(Metrics::new()), apply);
        let source = open.expect("it is good");
        write("bad");
        source.reload_if_changed();
        let expected = format!("{}: not a certificate", file.display());
        assert_eq!(source.status().fault, Some(expected));
        assert_eq!(source.status().expires, 7, "that of the certificate in use");
        write("good");
        source.reload_if_changed();
        assert_eq!(source.status().fault, None);
        std::fs::remove_file(&file).expect("removed");
        source.reload_if_changed();
        assert!(source.status().fault.is_some_and(|fault| fault.starts_with("cannot read ")));
        write("better");
        source.reload_if_changed();
        assert_eq!(*applied.lock().expect("one user"), ["good", "better"], "applied only when it changed");
        let _ = std::fs::remove_dir_all(folder);
    }
}
