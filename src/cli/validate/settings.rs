//! The settings with which files are checked: one engine per configuration, built once and shared by all threads.
//!
//! Invariant: every file has the settings of its nearest configuration file, and of no other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::config::{
    ConfigArgs, ConfigLookup, ConfiguredEngine, FoundConfig, MergedSettings, path_with_folder_links_resolved,
};
use super::super::outcome::Failure;
use super::Arguments;
use super::check::WorkItem;
use crate::config::{Baseline, MAX_BASELINE_BYTES};
use crate::files::{self, Input};
use tollgate_engine::impact::Snapshot;
use tollgate_formats::count::count_with_noun;

/// The settings of the files under one configuration.
#[derive(Debug)]
pub(super) struct CheckSettings {
    pub(super) configured: ConfiguredEngine,
    pub(super) baseline: Option<LoadedBaseline>,
}

/// A baseline, and the folder that its paths are relative to.
#[derive(Debug)]
pub(super) struct LoadedBaseline {
    pub(super) known: Baseline,
    pub(super) folder: PathBuf,
}

impl LoadedBaseline {
    fn read(path: &Path) -> Result<LoadedBaseline, Failure> {
        let name = path.display().to_string();
        if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            return Err(Failure::Input(format!("{name}: not a regular file")));
        }
        let text = files::read_text(path, MAX_BASELINE_BYTES)?;
        let known = Baseline::parse(&name, &text).map_err(|errors| {
            let first = errors.first().map(ToString::to_string).unwrap_or_default();
            let others = match errors.len() {
                0 | 1 => String::new(),
                count => format!("; {}", count_with_noun(count - 1, "more error")),
            };
            Failure::Input(format!("{first}{others}"))
        })?;
        Ok(LoadedBaseline { known, folder: baseline_folder(path)? })
    }
}

/// Returns the folder that the paths of a baseline are relative to: its own, without links.
pub(super) fn baseline_folder(path: &Path) -> Result<PathBuf, Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::canonicalize(folder)
        .map_err(|error| Failure::Usage(format!("{}: {}", path.display(), files::io_reason(&error))))
}

/// Returns the name of an input in a baseline: its path relative to `folder`; `-` for stdin.
pub(super) fn name_in_baseline(input: &Input, folder: &Path) -> String {
    let Input::File(path) = input else { return "-".to_owned() };
    let real = path_with_folder_links_resolved(path).unwrap_or_else(|| path.clone());
    let shared = real.components().zip(folder.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(shared).map(|_| "..".to_owned());
    let down = real.components().skip(shared).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

impl CheckSettings {
    /// Loads the settings for the files under a configuration, with those of the command line, which override it.
    fn load(
        config: Option<&Arc<FoundConfig>>,
        given: &Arguments,
        state: Option<&Arc<Snapshot>>,
    ) -> Result<CheckSettings, Failure> {
        let settings = MergedSettings::new(
            &given.engine,
            given.exit.fail_on.fail_on,
            &given.config.levels,
            given.namespaces.as_ref(),
            config.map(Arc::as_ref),
        )?;
        let mut configured = ConfiguredEngine::load(settings, config.cloned())?;
        if let Some(state) = state {
            configured.engine = configured.engine.with_snapshot(Arc::clone(state));
        }
        let baseline = match (given.baseline.clone(), config) {
            // A new baseline has all findings, also those of the existing one.
            _ if given.write_baseline.is_some() => None,
            (None, Some(config)) => config.baseline_path()?,
            (path, _) => path,
        };
        let baseline = baseline.as_deref().map(LoadedBaseline::read).transpose()?;
        Ok(CheckSettings { configured, baseline })
    }
}

/// An input with the index of its settings.
#[derive(Debug)]
pub(super) struct InputWithSettings {
    pub(super) item: WorkItem,
    pub(super) settings: usize,
}

/// The configuration files of the inputs of a run.
#[derive(Debug)]
pub(super) struct InputConfigurations {
    lookup: ConfigLookup,
    /// The configurations that inputs use, in the order of their first input.
    used: Vec<Option<Arc<FoundConfig>>>,
}

impl InputConfigurations {
    pub(super) fn new(arguments: &ConfigArgs) -> Result<InputConfigurations, Failure> {
        Ok(InputConfigurations { lookup: arguments.lookup()?, used: Vec::new() })
    }

    /// Assigns to each input the index of its settings. Also returns how many inputs were left out because a
    /// configuration excludes them.
    pub(super) fn assign_settings_and_count_excluded(
        &mut self,
        work: Vec<WorkItem>,
    ) -> Result<(Vec<InputWithSettings>, usize), Failure> {
        let mut assigned = Vec::with_capacity(work.len());
        let mut excluded = 0;
        for item in work {
            let number = match &item {
                WorkItem::InputError(_) => Some(0),
                WorkItem::Read(input, source) => {
                    self.settings_index_unless_excluded(input, source.is_found_in_folder())?
                }
                WorkItem::Search(path) => {
                    self.settings_index_unless_excluded(&Input::File(path.clone()), true)?
                }
            };
            match number {
                Some(settings) => assigned.push(InputWithSettings { item, settings }),
                None => excluded += 1,
            }
        }
        Ok((assigned, excluded))
    }

    /// Returns the index of the settings of an input; `None` if its configuration excludes it and a walk found it
    /// (`is_walked`).
    fn settings_index_unless_excluded(
        &mut self,
        input: &Input,
        is_walked: bool,
    ) -> Result<Option<usize>, Failure> {
        let found = self.lookup.find_for_input(input)?;
        if is_walked && found.as_ref().is_some_and(|config| config.excludes(input)) {
            return Ok(None);
        }
        let is_same = |used: &Option<Arc<FoundConfig>>| {
            used.as_ref().map(Arc::as_ptr) == found.as_ref().map(Arc::as_ptr)
        };
        if let Some(number) = self.used.iter().position(is_same) {
            return Ok(Some(number));
        }
        self.used.push(found);
        Ok(Some(self.used.len() - 1))
    }

    /// Loads the settings of all used configurations, in the order of their indexes. Without inputs, loads those
    /// of the working directory, because a broken policy is an error in any case.
    pub(super) fn load_settings(
        &mut self,
        given: &Arguments,
        state: Option<&Arc<Snapshot>>,
    ) -> Result<Vec<CheckSettings>, Failure> {
        if self.used.is_empty() {
            self.used.push(self.lookup.find_for_input(&Input::Stdin)?);
        }
        self.used.iter().map(|config| CheckSettings::load(config.as_ref(), given, state)).collect()
    }
}
