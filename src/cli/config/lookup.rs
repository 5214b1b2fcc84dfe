//! Finds configuration files: the nearest `.tollgate.yaml` in the folder of a file or above it, up to the top of its
//! repository.
//!
//! Anyone who can change the repository can change this file, so it is not trusted: it must be a regular file inside
//! the repository, and paths in it must not lead outside. A file named by `--config` is trusted.
//!
//! Invariant: each folder is searched once per run, however many files it has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::outcome::Failure;
use crate::config::{ConfigFile, LevelOverride, LocatedSetting};
use crate::files::{self, Input, PathGlobs};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::sanitize;

/// The name of configuration files.
pub(in super::super) const CONFIG_NAME: &str = ".tollgate.yaml";
/// Largest configuration file in bytes.
const MAX_CONFIG_BYTES: u64 = 256 << 10;
/// Maximum number of errors of one configuration file that are printed.
const MAX_PRINTED_ERRORS: usize = 20;

/// A configuration file that was found or named, with the folder that its relative paths start from.
#[derive(Debug)]
pub(in super::super) struct FoundConfig {
    pub(in super::super) file: ConfigFile,
    /// Its folder: absolute, without links.
    folder: PathBuf,
    /// Paths in the file must be inside of this folder, the top of the repository; `None` if the user named the
    /// file with `--config`.
    pub(super) root: Option<PathBuf>,
    exclude: PathGlobs,
    /// The paths of its overrides, in order.
    override_paths: Vec<PathGlobs>,
}

impl FoundConfig {
    /// True if the configuration excludes this input from walks.
    pub(in super::super) fn excludes(&self, input: &Input) -> bool {
        self.file.exclude.is_some()
            && input_path_with_links_resolved(input).is_some_and(|file| self.exclude.matches(&file))
    }

    /// The path of the baseline that the configuration names; `None` if it names none.
    pub(in super::super) fn baseline_path(&self) -> Result<Option<PathBuf>, Failure> {
        self.file
            .baseline
            .as_ref()
            .map(|setting| self.resolve_path_inside_repository(setting, "--baseline"))
            .transpose()
    }

    /// Returns the overrides that apply to an input, by their paths. To stdin, only overrides without paths apply.
    pub(super) fn overrides_for_input(&self, input: &Input) -> Vec<&LevelOverride> {
        if self.file.overrides.is_empty() {
            return Vec::new();
        }
        let file = input_path_with_links_resolved(input);
        let pairs = self.file.overrides.iter().zip(&self.override_paths);
        let holds = |(item, paths): &(&LevelOverride, &PathGlobs)| {
            item.paths.is_empty() || file.as_ref().is_some_and(|file| paths.matches(file))
        };
        pairs.filter(holds).map(|(item, _)| item).collect()
    }

    /// The failure for a wrong setting, with its position in the configuration file.
    pub(super) fn setting_error<T>(&self, setting: &LocatedSetting<T>, message: &str) -> Failure {
        setting_error(&self.file.name, setting, message)
    }

    /// Resolves the path in a setting, which is relative to the configuration file. Returns an error that
    /// suggests `flag` if it leads out of the repository.
    pub(super) fn resolve_path_inside_repository(
        &self,
        setting: &LocatedSetting<String>,
        flag: &str,
    ) -> Result<PathBuf, Failure> {
        let path = self.folder.join(&setting.value);
        if let Some(root) = &self.root {
            let outside = || {
                self.setting_error(
                    setting,
                    &format!("the path is outside the repository; use {flag} on the command line instead"),
                )
            };
            if !normalize_path(&path).starts_with(root) {
                return Err(outside());
            }
            let real = std::fs::canonicalize(&path).map_err(|error| {
                self.setting_error(setting, &format!("{}: {}", setting.value, files::io_reason(&error)))
            })?;
            if !real.starts_with(root) {
                return Err(outside());
            }
            // Opening a pipe would block, and a device has no end.
            if !real.is_file() && !real.is_dir() {
                return Err(self.setting_error(setting, &format!("{}: not a regular file", setting.value)));
            }
        }
        Ok(path_for_messages(&path))
    }
}

/// Finds the configuration file of each input, and reads each configuration file once.
#[derive(Debug, Default)]
pub(in super::super) struct ConfigLookup {
    /// The configuration for each folder that was searched, by its path as passed and without links; `None` if it
    /// has no configuration.
    folders: HashMap<PathBuf, Option<Arc<FoundConfig>>>,
    scope: NearestOrFixedConfig,
}

/// Which configuration file applies to an input.
#[derive(Default, Debug)]
enum NearestOrFixedConfig {
    /// The nearest one in the folder of the input or a parent folder.
    #[default]
    Nearest,
    /// The same one for all inputs (`--config`), or none (`--no-config`).
    Fixed(Option<Arc<FoundConfig>>),
}

impl ConfigLookup {
    /// Looks up the nearest file; with `--config` (`named`) or `--no-config`, the same one or none for all
    /// inputs.
    pub(in super::super) fn new(named: Option<&Path>, no_config: bool) -> Result<ConfigLookup, Failure> {
        let scope = match named {
            Some(path) => NearestOrFixedConfig::Fixed(Some(FoundConfig::load(path, true)?)),
            None if no_config => NearestOrFixedConfig::Fixed(None),
            None => NearestOrFixedConfig::Nearest,
        };
        Ok(ConfigLookup { folders: HashMap::new(), scope })
    }

    /// Returns the configuration that applies to an input; `None` if there is none. The configuration of stdin is
    /// that of the working directory.
    pub(in super::super) fn find_for_input(
        &mut self,
        input: &Input,
    ) -> Result<Option<Arc<FoundConfig>>, Failure> {
        match input {
            Input::Stdin => self.find_for_folder(Path::new(".")),
            Input::File(path) => self.find_for_folder(path.parent().unwrap_or(Path::new("."))),
        }
    }

    /// Returns the configuration that applies to the files of a folder; `None` if there is none.
    pub(super) fn find_for_folder(&mut self, folder: &Path) -> Result<Option<Arc<FoundConfig>>, Failure> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if let NearestOrFixedConfig::Fixed(config) = &self.scope {
            return Ok(config.clone());
        }
        if let Some(known) = self.folders.get(folder) {
            return Ok(known.clone());
        }
        // A folder that cannot be entered is reported where its files are read.
        let config = match std::fs::canonicalize(folder) {
            Ok(real) => self.search_upwards(&real)?,
            Err(_) => None,
        };
        self.folders.insert(folder.to_owned(), config.clone());
        Ok(config)
    }

    /// Searches a folder and its parents, up to the top of the repository, and remembers the result for each.
    fn search_upwards(&mut self, folder: &Path) -> Result<Option<Arc<FoundConfig>>, Failure> {
        let mut passed = Vec::new();
        let mut config = None;
        for above in folder.ancestors() {
            if let Some(known) = self.folders.get(above) {
                config.clone_from(known);
                break;
            }
            passed.push(above.to_owned());
            let path = above.join(CONFIG_NAME);
            if path.symlink_metadata().is_ok() {
                config = Some(FoundConfig::load(&path, false)?);
                break;
            }
            if is_repository_root(above) {
                break;
            }
        }
        self.folders.extend(passed.into_iter().map(|folder| (folder, config.clone())));
        Ok(config)
    }
}

impl FoundConfig {
    /// Reads a configuration file. One that is not trusted must be inside its repository.
    fn load(path: &Path, is_trusted: bool) -> Result<Arc<FoundConfig>, Failure> {
        let name = path_for_messages(path).display().to_string();
        let name = sanitize::sanitize_as_line(&name).into_owned();
        let refused = |message: &str| Failure::Input(format!("{name}: {message}"));
        let failed = |error: std::io::Error| refused(&files::io_reason(&error));
        // Opening a pipe would block, and a device has no end.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(refused("not a regular file"));
        }
        let real = std::fs::canonicalize(path).map_err(failed)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(folder).map_err(failed)?;
        let top = folder.ancestors().find(|above| is_repository_root(above)).unwrap_or(&folder);
        if !is_trusted && !real.starts_with(top) {
            return Err(refused("symbolic links to files outside the repository are not followed"));
        }
        let root = (!is_trusted).then(|| top.to_owned());
        let text = files::read_text(path, MAX_CONFIG_BYTES)?;
        let file = ConfigFile::parse(&name, &text).map_err(|faults| {
            let mut shown: Vec<String> =
                faults.iter().take(MAX_PRINTED_ERRORS).map(ToString::to_string).collect();
            if faults.len() > MAX_PRINTED_ERRORS {
                let more = faults.len() - MAX_PRINTED_ERRORS;
                shown.push(format!("{name}: {}", count_with_noun(more, "more error")));
            }
            Failure::Inputs(shown)
        })?;
        let globs = |list: &[LocatedSetting<String>]| {
            PathGlobs::new(&folder, list.iter().map(|glob| glob.value.as_str())).map_err(|(index, reason)| {
                list.get(index).map_or_else(|| refused(&reason), |glob| setting_error(&name, glob, &reason))
            })
        };
        let exclude = globs(file.exclude.as_ref().map(|all| all.value.as_slice()).unwrap_or_default())?;
        let override_paths =
            file.overrides.iter().map(|item| globs(&item.paths)).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Arc::new(FoundConfig { file, folder, root, exclude, override_paths }))
    }
}

/// The failure for a wrong setting, with its position in the configuration file.
fn setting_error<T>(name: &str, setting: &LocatedSetting<T>, message: &str) -> Failure {
    Failure::Input(format!("{name}:{}:{}: {message}", setting.line, setting.column))
}

/// True if the folder is the top of a git repository. `.git` is a file in linked worktrees and submodules.
fn is_repository_root(folder: &Path) -> bool {
    folder.join(".git").exists()
}

/// The absolute path of a file, with the links of its folder resolved; `None` if the folder does not exist.
pub(in super::super) fn path_with_folder_links_resolved(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(std::fs::canonicalize(folder).ok()?.join(file.file_name()?))
}

/// The absolute path of an input, with the links of its folder resolved; `None` for stdin.
fn input_path_with_links_resolved(input: &Input) -> Option<PathBuf> {
    match input {
        Input::File(path) => path_with_folder_links_resolved(path),
        Input::Stdin => None,
    }
}

/// Returns the path for messages: relative to the working directory if it is inside of it.
fn path_for_messages(path: &Path) -> PathBuf {
    let current = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    match path.strip_prefix(&current) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => path.to_owned(),
    }
}

/// The absolute path without `.` and `..`; links are not resolved.
pub(in super::super) fn normalized_absolute_path(path: &Path) -> PathBuf {
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
