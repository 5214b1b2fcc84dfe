//! What holds for files under one configuration: the file, with the flags and the environment over it, key by key.
//!
//! Invariant: a key that the command line sets is not read from the file. A repository can neither remove policies that
//! are given by flag nor add to them.

use std::path::PathBuf;

use super::super::levels::LevelArgs;
use super::super::outcome::Failure;
use super::super::shared::{FailOn, FileDefaults, GlobalArgs, ProfileArg, parse_profile};
use super::lookup::FoundConfig;
use crate::config::{Levels, Setting, Strings};
use crate::profile::GateChoice;

/// What holds.
#[derive(Debug)]
pub(in super::super) struct Settings {
    /// The flags, with what the file sets where there are none.
    pub(in super::super) shared: GlobalArgs,
    /// Levels of the file.
    pub(in super::super) file_levels: Levels,
    /// Levels of the command line, which win.
    pub(in super::super) flag_levels: Levels,
    /// `--namespaces`
    pub(in super::super) namespaces: Option<PathBuf>,
    /// Warnings cause exit code 1.
    pub(in super::super) fails_on_warn: bool,
}

impl Settings {
    /// The flags over a file.
    pub(in super::super) fn new(
        shared: &GlobalArgs,
        levels: &LevelArgs,
        namespaces: Option<&PathBuf>,
        config: Option<&FoundConfig>,
    ) -> Result<Settings, Failure> {
        let mut settings = Settings {
            shared: shared.clone(),
            file_levels: Levels::default(),
            flag_levels: levels.levels(),
            namespaces: namespaces.cloned(),
            fails_on_warn: shared.fail_on == Some(FailOn::Warn),
        };
        let Some(config) = config else { return Ok(settings) };
        let file = &config.file;
        for level in &file.levels {
            settings.file_levels.set(level.value.0, level.value.1);
        }
        if shared.fail_on.is_none() {
            settings.fails_on_warn = file.fails_on_warn.as_ref().is_some_and(|setting| setting.value);
        }
        if settings.namespaces.is_none()
            && let Some(setting) = &file.namespaces
        {
            settings.namespaces = Some(config.path(setting, "--namespaces")?);
        }
        let mut defaults = FileDefaults { root: config.root.clone(), ..FileDefaults::default() };
        if shared.takes_profiles_from_file() {
            defaults.kubernetes = profiles(config, file.kubernetes.as_ref())?;
        }
        if shared.gate_choice().is_none()
            && let Some(gates) = &file.feature_gates
        {
            defaults.feature_gates = Some(choice(config, shared, gates, &defaults.kubernetes)?);
        }
        if shared.policy.is_empty() {
            defaults.policies = paths(config, file.policies.as_ref(), "--policy")?;
        }
        if !shared.has_classes() {
            defaults.classes = paths(config, file.classes.as_ref(), "--classes")?;
        }
        settings.shared = shared.over(defaults);
        Ok(settings)
    }
}

fn profiles(config: &FoundConfig, names: Option<&Strings>) -> Result<Vec<ProfileArg>, Failure> {
    let names = names.map(|names| names.value.as_slice()).unwrap_or_default();
    let parse =
        |name: &Setting<String>| match parse_profile(&name.value) {
            // Whoever can change the repository must not make others connect to their clusters.
            Ok(ProfileArg::Cluster) => Err(config
                .fault(name, "`cluster` can be named on the command line only: use --kubernetes cluster")),
            Ok(profile) => Ok(profile),
            Err(message) => Err(config.fault(name, &message)),
        };
    names.iter().map(parse).collect()
}

/// The gates, which must be possible in the profiles that they are for.
fn choice(
    config: &FoundConfig,
    shared: &GlobalArgs,
    gates: &Setting<String>,
    profiles: &[ProfileArg],
) -> Result<GateChoice, Failure> {
    let choice = GateChoice::parse(&gates.value).map_err(|message| config.fault(gates, &message))?;
    for profile in if profiles.is_empty() { shared.profile_args() } else { profiles } {
        if let ProfileArg::Named(profile) = profile {
            profile.with_gates(&choice).map_err(|message| config.fault(gates, &message))?;
        }
    }
    Ok(choice)
}

fn paths(config: &FoundConfig, list: Option<&Strings>, flag: &str) -> Result<Vec<PathBuf>, Failure> {
    let list = list.map(|list| list.value.as_slice()).unwrap_or_default();
    list.iter().map(|path| config.path(path, flag)).collect()
}
