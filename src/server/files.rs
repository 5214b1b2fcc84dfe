//! Files that change while we serve: read together, applied by content, the last good ones kept.
//!
//! A kubelet replaces a Secret by swapping a symlink, so both halves of a pair are read through one resolved
//! directory, and it is the content that decides whether anything changed. What does not parse or does not match is
//! told (log, metric, `readyz?verbose`) and changes nothing else. No file is read that is not a regular one, or larger
//! than any certificate is.
#![expect(clippy::disallowed_methods, reason = "the shell reads certificate files here")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;

use super::metrics::Metrics;

/// Contents of the files, in the order given.
pub(super) type Contents = Vec<Vec<u8>>;
/// Fetches what is there now.
type Read = Box<dyn Fn() -> anyhow::Result<Contents> + Send + Sync>;
/// Puts new contents to use, or says what is wrong with them; returns when they expire (seconds since 1970).
type Apply = Box<dyn Fn(&Contents) -> anyhow::Result<i64> + Send + Sync>;

/// Something that changes, and what becomes of it.
pub(super) struct Source {
    /// `server`, `client-ca`: for people and as label.
    pub(super) which: &'static str,
    /// Where a change shows.
    pub(super) directories: Vec<PathBuf>,
    read: Read,
    apply: Apply,
    metrics: Arc<Metrics>,
    seen: Mutex<Seen>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("which", &self.which).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Seen {
    good: Contents,
    bad: Option<Contents>,
    fault: Option<String>,
    expires: i64,
}

/// How a source stands, for `readyz?verbose`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Standing {
    /// Why the files as they are now are not in use.
    pub(super) fault: Option<String>,
    /// When what is in use expires, seconds since 1970.
    pub(super) expires: i64,
}

impl Source {
    /// Files that others write.
    pub(super) fn files(
        which: &'static str,
        files: Vec<PathBuf>,
        metrics: Arc<Metrics>,
        apply: Apply,
    ) -> anyhow::Result<Source> {
        let directories = files.iter().map(|file| directory(file).to_owned()).collect();
        Source::open(which, directories, metrics, Box::new(move || read(&files)), apply)
    }

    /// Reads for the first time; at start a fault is fatal.
    pub(super) fn open(
        which: &'static str,
        directories: Vec<PathBuf>,
        metrics: Arc<Metrics>,
        read: Read,
        apply: Apply,
    ) -> anyhow::Result<Source> {
        let source = Source { which, directories, read, apply, metrics, seen: Mutex::default() };
        source.reload();
        match source.standing().fault {
            Some(fault) => anyhow::bail!("{which} certificate: {fault}"),
            None => Ok(source),
        }
    }

    /// How it stands.
    pub(super) fn standing(&self) -> Standing {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Standing { fault: seen.fault.clone(), expires: seen.expires }
    }

    /// Looks again, and uses what is new and good.
    pub(super) fn reload(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let contents = match (self.read)() {
            Ok(contents) => contents,
            Err(error) => return self.fail(&mut seen, None, &error),
        };
        if contents == seen.good {
            if seen.fault.take().is_some() {
                seen.bad = None;
                self.metrics.reloaded(self.which, true, seen.expires);
                tracing::info!(certificate = self.which, "the files are again those in use");
            }
            return;
        }
        if seen.bad.as_ref() == Some(&contents) {
            return;
        }
        match (self.apply)(&contents) {
            Ok(expires) => {
                *seen = Seen { good: contents, bad: None, fault: None, expires };
                self.metrics.reloaded(self.which, true, expires);
                tracing::info!(certificate = self.which, expires, "certificate in use");
            }
            Err(error) => self.fail(&mut seen, Some(contents), &error),
        }
    }

    fn fail(&self, seen: &mut Seen, bad: Option<Contents>, error: &anyhow::Error) {
        let fault = format!("{error:#}");
        if seen.fault.as_ref() != Some(&fault) || seen.bad != bad {
            self.metrics.reloaded(self.which, false, seen.expires);
            tracing::warn!(
                certificate = self.which,
                fault,
                "certificate not usable, the last good one stays"
            );
        }
        seen.bad = bad;
        seen.fault = Some(fault);
    }
}

fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Reads the files. A volume may be swapped in between, and its old generation deleted: then it is read again, so that
/// all files are of one generation and a swap is never taken for a fault.
fn read(files: &[PathBuf]) -> anyhow::Result<Contents> {
    let generations = || files.iter().map(|file| generation(directory(file))).collect::<Vec<PathBuf>>();
    let mut before = generations();
    for _ in 0..SWAPS {
        let contents = read_once(files);
        let after = generations();
        if before == after {
            return contents;
        }
        before = after;
    }
    read_once(files)
}

/// A volume that is swapped more often than this while it is read is looked at again by the next event.
const SWAPS: usize = 8;

/// Reads the files; those of one directory through one resolution of it.
fn read_once(files: &[PathBuf]) -> anyhow::Result<Contents> {
    let mut resolved: Vec<(&Path, PathBuf)> = Vec::new();
    let mut contents = Vec::with_capacity(files.len());
    for file in files {
        let place = directory(file);
        if !resolved.iter().any(|(known, _)| *known == place) {
            resolved.push((place, generation(place)));
        }
        let base = resolved.iter().find(|(known, _)| *known == place).map_or(place, |(_, base)| base);
        let name = file.file_name().with_context(|| format!("{} is not a file", file.display()))?;
        // Files beside `..data` need not be in it.
        let held = base.join(name);
        let path = if held.exists() { held } else { file.clone() };
        contents.push(read_file(&path).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(contents)
}

/// Bytes of a file with certificates or keys.
const MOST: u64 = 1 << 20;

/// The bytes of one file, not more than certificates and keys have.
pub(super) fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let refuse = |why: &str| Err(std::io::Error::other(why.to_owned()));
    // Looked at before it is opened: opening a pipe waits for somebody to write.
    if !std::fs::metadata(path)?.is_file() {
        return refuse("not a regular file");
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST { refuse("larger than 1 MiB") } else { Ok(bytes) }
}

/// The directory the kubelet's `..data` points to now, or the directory itself.
fn generation(directory: &Path) -> PathBuf {
    let resolved = directory.join("..data").canonicalize().or_else(|_| directory.canonicalize());
    resolved.unwrap_or_else(|_| directory.to_owned())
}
