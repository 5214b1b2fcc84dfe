//! Finds configuration files: the nearest `.tollgate.yaml` in the folder of a file or above it, up to the top of its
//! repository.
//!
//! The file belongs to those who can change the repository, not to those who run the check: it must be a regular file
//! inside the repository, and what it names is read from there only. A file named by `--config` is trusted.
//!
//! Invariant: a folder is looked at once in a run, however many files it has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::outcome::Failure;
use crate::config::{ConfigFile, Override, Setting};
use crate::files::{self, Input, PathGlobs};
use tollgate_formats::sanitize;

/// The name of configuration files.
pub(in super::super) const CONFIG_NAME: &str = ".tollgate.yaml";
/// Largest configuration file in bytes.
const MAX_CONFIG: u64 = 256 << 10;
/// Maximum number of errors of one configuration file that are printed.
const MAX_FAULTS: usize = 20;

/// A configuration file, with the folder whose files it configures.
#[derive(Debug)]
pub(in super::super) struct FoundConfig {
    pub(in super::super) file: ConfigFile,
    /// Its folder: absolute, without links.
    folder: PathBuf,
    /// Nothing outside of this folder is read; none for a trusted file.
    pub(super) root: Option<PathBuf>,
    exclude: PathGlobs,
    /// The paths of its overrides, in order.
    override_paths: Vec<PathGlobs>,
}

impl FoundConfig {
    /// True if the configuration excludes this file from walks.
    pub(in super::super) fn excludes(&self, file: &Path) -> bool {
        self.exclude.matches(file)
    }

    /// The path of the baseline that the configuration names; `None` if it names none.
    pub(in super::super) fn baseline(&self) -> Result<Option<PathBuf>, Failure> {
        self.file.baseline.as_ref().map(|setting| self.path(setting, "--baseline")).transpose()
    }

    /// The overrides that hold for a file. For stdin, which is `None`, only those without paths hold.
    pub(in super::super) fn overrides(&self, file: Option<&Path>) -> Vec<&Override> {
        let pairs = self.file.overrides.iter().zip(&self.override_paths);
        let holds = |(item, paths): &(&Override, &PathGlobs)| {
            item.paths.is_empty() || file.is_some_and(|file| paths.matches(file))
        };
        pairs.filter(holds).map(|(item, _)| item).collect()
    }

    /// The failure for a wrong setting, with its position in the configuration file.
    pub(super) fn fault<T>(&self, setting: &Setting<T>, message: &str) -> Failure {
        fault(&self.file.name, setting, message)
    }

    /// The path that a setting names, relative to the configuration file. An error if it leads out of the repository.
    pub(super) fn path(&self, setting: &Setting<String>, flag: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join(&setting.value);
        if let Some(root) = &self.root {
            let outside = || {
                self.fault(
                    setting,
                    &format!("the path is outside the repository; use {flag} on the command line instead"),
                )
            };
            if !normalize_path(&path).starts_with(root) {
                return Err(outside());
            }
            let real = std::fs::canonicalize(&path).map_err(|error| {
                self.fault(setting, &format!("{}: {}", setting.value, files::io_reason(&error)))
            })?;
            if !real.starts_with(root) {
                return Err(outside());
            }
            // Opening a pipe would block, and a device has no end.
            if !real.is_file() && !real.is_dir() {
                return Err(self.fault(setting, &format!("{}: not a regular file", setting.value)));
            }
        }
        Ok(shown(&path))
    }
}

/// Finds the configuration of files.
#[derive(Debug, Default)]
pub(in super::super) struct ConfigLookup {
    found: Vec<FoundConfig>,
    /// By folder as it is and as it was asked for.
    folders: HashMap<PathBuf, Option<usize>>,
    scope: LookupScope,
}

/// Which configuration file applies to an input.
#[derive(Clone, Copy, Default, Debug)]
enum LookupScope {
    /// The nearest one.
    #[default]
    Nearest,
    /// This one holds for all files, or none does.
    Fixed(Option<usize>),
}

impl ConfigLookup {
    /// A lookup of the nearest file, or of `named` for everything (`--config`), or of none (`--no-config`).
    pub(in super::super) fn new(named: Option<&Path>, no_config: bool) -> Result<ConfigLookup, Failure> {
        let mut lookup = ConfigLookup::default();
        match named {
            Some(path) => lookup.scope = LookupScope::Fixed(Some(lookup.load(path, true)?)),
            None if no_config => lookup.scope = LookupScope::Fixed(None),
            None => {}
        }
        Ok(lookup)
    }

    /// The configuration with that number; `None` for `None`.
    pub(in super::super) fn get(&self, number: Option<usize>) -> Option<&FoundConfig> {
        self.found.get(number?)
    }

    /// The number of the configuration that holds for an input; `None` if there is none. Stdin is in the working
    /// folder.
    pub(in super::super) fn of_input(&mut self, input: &Input) -> Result<Option<usize>, Failure> {
        match input {
            Input::Stdin => self.of_folder(Path::new(".")),
            Input::File(path) => self.of_folder(path.parent().unwrap_or(Path::new("."))),
        }
    }

    /// The number of the configuration that holds in a folder; `None` if there is none.
    pub(in super::super) fn of_folder(&mut self, folder: &Path) -> Result<Option<usize>, Failure> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if let LookupScope::Fixed(number) = self.scope {
            return Ok(number);
        }
        if let Some(known) = self.folders.get(folder) {
            return Ok(*known);
        }
        // A folder that cannot be entered is reported where its files are read.
        let number = match std::fs::canonicalize(folder) {
            Ok(real) => self.search_upwards(&real)?,
            Err(_) => None,
        };
        self.folders.insert(folder.to_owned(), number);
        Ok(number)
    }

    /// Searches a folder and its parents, up to the top of the repository, and remembers the result for each.
    fn search_upwards(&mut self, folder: &Path) -> Result<Option<usize>, Failure> {
        let mut passed = Vec::new();
        let mut number = None;
        for above in folder.ancestors() {
            if let Some(known) = self.folders.get(above) {
                number = *known;
                break;
            }
            passed.push(above.to_owned());
            let path = above.join(CONFIG_NAME);
            if path.symlink_metadata().is_ok() {
                number = Some(self.load(&path, false)?);
                break;
            }
            if is_repository(above) {
                break;
            }
        }
        self.folders.extend(passed.into_iter().map(|folder| (folder, number)));
        Ok(number)
    }

    /// Reads a configuration file and returns its number.
    fn load(&mut self, path: &Path, is_trusted: bool) -> Result<usize, Failure> {
        let name = shown(path).display().to_string();
        let name = sanitize::line(&name).into_owned();
        let refused = |message: &str| Failure::Input(format!("{name}: {message}"));
        let failed = |error: std::io::Error| refused(&files::io_reason(&error));
        // Opening a pipe would block, and a device has no end.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(refused("not a regular file"));
        }
        let real = std::fs::canonicalize(path).map_err(failed)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(folder).map_err(failed)?;
        let top = folder.ancestors().find(|above| is_repository(above)).unwrap_or(&folder);
        if !is_trusted && !real.starts_with(top) {
            return Err(refused("symbolic links to files outside the repository are not followed"));
        }
        let root = (!is_trusted).then(|| top.to_owned());
        let text = files::read_text(path, MAX_CONFIG)?;
        let file = ConfigFile::read(&name, &text).map_err(|faults| {
            let mut shown: Vec<String> = faults.iter().take(MAX_FAULTS).map(ToString::to_string).collect();
            if faults.len() > MAX_FAULTS {
                shown.push(format!("{name}: {} more errors", faults.len() - MAX_FAULTS));
            }
            Failure::Input(shown.join("\n"))
        })?;
        let globs = |list: &[Setting<String>]| {
            PathGlobs::new(&folder, list.iter().map(|glob| glob.value.as_str())).map_err(|(index, reason)| {
                list.get(index).map_or_else(|| refused(&reason), |glob| fault(&name, glob, &reason))
            })
        };
        let exclude = globs(file.exclude.as_ref().map(|all| all.value.as_slice()).unwrap_or_default())?;
        let override_paths =
            file.overrides.iter().map(|item| globs(&item.paths)).collect::<Result<Vec<_>, Failure>>()?;
        self.found.push(FoundConfig { file, folder, root, exclude, override_paths });
        Ok(self.found.len() - 1)
    }
}

/// The failure for a wrong setting, with its position in the configuration file.
fn fault<T>(name: &str, setting: &Setting<T>, message: &str) -> Failure {
    Failure::Input(format!("{name}:{}:{}: {message}", setting.line, setting.column))
}

/// True for the top of a repository. `.git` is a file in linked worktrees and submodules.
fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
}

/// The absolute path of a file, with the links of its folder resolved; `None` if the folder does not exist.
pub(in super::super) fn real_path(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(std::fs::canonicalize(folder).ok()?.join(file.file_name()?))
}

/// Returns the path for messages: relative to the working directory if it is inside of it.
fn shown(path: &Path) -> PathBuf {
    let current = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    match path.strip_prefix(&current) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => path.to_owned(),
    }
}

/// The absolute path without `.` and `..`; links are not resolved.
pub(in super::super) fn normal_absolute(path: &Path) -> PathBuf {
    normalize_path(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// Removes `.` and `..` from a path without looking at the file system.
fn normalize_path(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}
