//! The settings for files under one configuration file: its values, each replaced by the flag or environment variable
//! for the same key.
//!
//! Invariant: if the command line sets a key, its value in the file is ignored. If policies are given by flag, a
//! repository can neither remove nor add policies, nor change which fields and namespace labels they see.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::check::TextChecker;
use super::super::levels::LevelArgs;
use super::super::namespaces;
use super::super::outcome::Failure;
use super::super::shared::{DefaultRules, EngineArgs, FailOn, PolicyArgs, ProfileArg, parse_profile};
use super::lookup::FoundConfig;
use crate::config::{
    ConfigFile, LevelOverride, Levels, LevelsAndOverrides, LocatedSetting, StringListWithPositions,
};
use crate::files::Input;
use tollgate_api::profile::GateChoice;
use tollgate_document::source::{InputError, LineIndex};
use tollgate_engine::engine::{Engine, LoadedNamespaces};

/// The settings for files under one configuration: the flags, and the values of the configuration file where no
/// flag is set.
#[derive(Debug)]
pub(in super::super) struct MergedSettings {
    /// The flags; those not given have the values of the configuration file.
    pub(in super::super) flags: EngineArgs,
    /// Levels of the file.
    pub(in super::super) file_levels: Levels,
    /// Levels of the command line, which win.
    pub(in super::super) flag_levels: Levels,
    /// `--namespaces`
    pub(in super::super) namespaces: Option<PathBuf>,
    /// Warnings cause exit code 1.
    pub(in super::super) fails_on_warn: bool,
}

impl MergedSettings {
    /// Combines the flags with a configuration file; flags win.
    pub(in super::super) fn new(
        flags: &EngineArgs,
        fail_on: Option<FailOn>,
        levels: &LevelArgs,
        namespaces: Option<&PathBuf>,
        config: Option<&FoundConfig>,
    ) -> Result<MergedSettings, Failure> {
        let mut settings = MergedSettings {
            flags: flags.clone(),
            file_levels: Levels::default(),
            flag_levels: levels.levels(),
            namespaces: namespaces.cloned(),
            fails_on_warn: fail_on == Some(FailOn::Warn),
        };
        let Some(config) = config else { return Ok(settings) };
        let file = &config.file;
        for level in &file.levels {
            settings.file_levels.set(level.value.0, level.value.1);
        }
        if fail_on.is_none() {
            settings.fails_on_warn = file.fails_on_warn.as_ref().is_some_and(|setting| setting.value);
        }
        refuse_file_settings_that_weaken_flag_policies(flags, settings.namespaces.is_some(), config)?;
        if settings.namespaces.is_none()
            && let Some(setting) = &file.namespaces
        {
            settings.namespaces = Some(config.resolve_path_inside_repository(setting, "--namespaces")?);
        }
        let mut kubernetes = Vec::new();
        if flags.release.has_no_kubernetes_or_context_flag() {
            kubernetes = parse_profiles(config, file.kubernetes.as_ref())?;
        }
        let gates = file.feature_gates.as_ref().filter(|_| flags.release.server.gate_choice().is_none());
        let gates = gates.map(|gates| parse_gates(config, flags, gates, &kubernetes)).transpose()?;
        settings.flags.release.set_config_file_defaults(kubernetes, gates);
        if flags.policies.paths.is_empty() {
            let paths = resolve_paths_inside_repository(config, file.policies.as_ref(), "--policy")?;
            settings.flags.policies = PolicyArgs { paths, root: config.root.clone() };
        }
        if flags.classes.is_empty() {
            settings.flags.classes =
                resolve_paths_inside_repository(config, file.classes.as_ref(), "--classes")?;
        }
        Ok(settings)
    }
}

/// The engine for files under one configuration, with the levels and other settings that apply to its findings.
#[derive(Debug)]
pub(in super::super) struct ConfiguredEngine {
    pub(in super::super) settings: MergedSettings,
    pub(in super::super) engine: Engine,
    profiles: Vec<&'static str>,
    /// The namespaces in the file of `--namespaces` or of the configuration; `None` if neither is set.
    pub(in super::super) namespaces: Option<LoadedNamespaces>,
    /// The configuration file, if there is one.
    pub(in super::super) config: Option<Arc<FoundConfig>>,
}

impl ConfiguredEngine {
    /// Reads the policies, namespaces and other files that the settings name, and builds the engine. `settings` are
    /// those of the flags and of `config`.
    pub(in super::super) fn load(
        settings: MergedSettings,
        config: Option<Arc<FoundConfig>>,
    ) -> Result<ConfiguredEngine, Failure> {
        let engine = settings.flags.engine(DefaultRules::Offline)?;
        let profiles = engine.profiles.iter().map(|profile| profile.name).collect();
        let namespaces = settings.namespaces.as_deref().map(namespaces::read_file).transpose()?;
        Ok(ConfiguredEngine { settings, engine, profiles, namespaces, config })
    }

    /// Returns the overrides of the configuration file that apply to an input.
    pub(in super::super) fn overrides_for_input(&self, input: &Input) -> Vec<&LevelOverride> {
        self.config.as_ref().map(|config| config.overrides_for_input(input)).unwrap_or_default()
    }

    /// True if policies need the labels of namespaces and no file with them is given.
    pub(in super::super) fn lacks_namespace_labels(&self) -> bool {
        self.namespaces.is_none() && self.engine.policies.needs_namespace_labels()
    }

    /// Returns a checker for the text of a file to which these overrides apply. `found` are the namespaces among
    /// the inputs, used if policies need labels and no file has them.
    pub(in super::super) fn checker<'r>(
        &'r self,
        found: Option<&'r LoadedNamespaces>,
        now: &'r str,
        overrides: &'r [&'r LevelOverride],
    ) -> TextChecker<'r> {
        TextChecker {
            engine: &self.engine,
            namespaces: self.namespaces.as_ref().or_else(|| found.filter(|_| self.lacks_namespace_labels())),
            claims: None,
            profiles: &self.profiles,
            acceptance: LevelsAndOverrides {
                file_levels: &self.settings.file_levels,
                flag_levels: &self.settings.flag_levels,
                overrides,
            },
            now,
        }
    }
}

/// Returns an error if policies are given by flag and the configuration file sets what decides where they apply
/// or which fields they see: that must come from the command line too.
fn refuse_file_settings_that_weaken_flag_policies(
    flags: &EngineArgs,
    has_namespaces: bool,
    config: &FoundConfig,
) -> Result<(), Failure> {
    if flags.policies.paths.is_empty() {
        return Ok(());
    }
    let message = |flag: &str| {
        format!("cannot be combined with --policy; set {flag} on the command line, or use --no-config")
    };
    let file = &config.file;
    if let Some(setting) = file.namespaces.as_ref().filter(|_| !has_namespaces) {
        return Err(config.setting_error(setting, &message("--namespaces")));
    }
    if let Some(setting) =
        file.feature_gates.as_ref().filter(|_| flags.release.server.gate_choice().is_none())
    {
        return Err(config.setting_error(setting, &message("--feature-gates")));
    }
    if let Some(setting) = file.classes.as_ref().filter(|_| flags.classes.is_empty()) {
        return Err(config.setting_error(setting, &message("--classes")));
    }
    Ok(())
}

/// Parses the releases that the configuration file names; an error names the position of an unknown one.
fn parse_profiles(
    config: &FoundConfig,
    names: Option<&StringListWithPositions>,
) -> Result<Vec<ProfileArg>, Failure> {
    let names = names.map(|names| names.value.as_slice()).unwrap_or_default();
    let parse = |name: &LocatedSetting<String>| {
        parse_profile_except_cluster(&name.value).map_err(|message| config.setting_error(name, &message))
    };
    names.iter().map(parse).collect()
}

/// Parses the name of a release in a configuration file, where `cluster` is not allowed.
fn parse_profile_except_cluster(name: &str) -> Result<ProfileArg, String> {
    match parse_profile(name)? {
        // Whoever can change the repository must not make others connect to their clusters.
        ProfileArg::Cluster => {
            Err("`cluster` is allowed only on the command line: use --kubernetes cluster".to_owned())
        }
        named @ ProfileArg::Named(_) => Ok(named),
    }
}

/// Returns all errors of a configuration file by position, also in releases and feature gates, which only
/// commands resolve. For editors.
pub(in super::super) fn config_file_errors(name: &str, text: &str) -> Vec<InputError> {
    let (file, mut errors) = match ConfigFile::parse_with_errors(name, text) {
        Ok(read) => read,
        Err(errors) => return errors,
    };
    let lines = LineIndex::from_text(text);
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    let mut profiles = Vec::new();
    for name in file.kubernetes.iter().flat_map(|names| &names.value) {
        match parse_profile_except_cluster(&name.value) {
            Ok(ProfileArg::Named(profile)) => profiles.push(profile),
            Ok(ProfileArg::Cluster) => {}
            Err(message) => found.push((name.line, name.column, message)),
        }
    }
    if let Some(gates) = &file.feature_gates {
        let choice = GateChoice::parse(&gates.value);
        let checked = choice.and_then(|choice| {
            profiles.iter().try_for_each(|profile| profile.with_gates(&choice).map(|_| ()))
        });
        found.extend(checked.err().map(|message| (gates.line, gates.column, message)));
    }
    for (line, column, message) in found {
        if errors.iter().all(|known| (known.line, known.column) != (line, column)) {
            errors.push(InputError::at_position(name, &lines, (line, column), message));
        }
    }
    errors.sort_by_key(|error| (error.line, error.column));
    errors
}

/// Parses the feature gates of the file; an error if one of the profiles does not have them.
fn parse_gates(
    config: &FoundConfig,
    flags: &EngineArgs,
    gates: &LocatedSetting<String>,
    profiles: &[ProfileArg],
) -> Result<GateChoice, Failure> {
    let choice = GateChoice::parse(&gates.value).map_err(|message| config.setting_error(gates, &message))?;
    for profile in if profiles.is_empty() { flags.release.profile_args_or_default() } else { profiles } {
        if let ProfileArg::Named(profile) = profile {
            profile.with_gates(&choice).map_err(|message| config.setting_error(gates, &message))?;
        }
    }
    Ok(choice)
}

/// Resolves a list of paths, which are relative to the configuration file; errors suggest `flag` instead.
fn resolve_paths_inside_repository(
    config: &FoundConfig,
    list: Option<&StringListWithPositions>,
    flag: &str,
) -> Result<Vec<PathBuf>, Failure> {
    let list = list.map(|list| list.value.as_slice()).unwrap_or_default();
    list.iter().map(|path| config.resolve_path_inside_repository(path, flag)).collect()
}
