//! The settings of a repository and of the command line about findings: configuration files, levels, overrides,
//! suppression comments and baselines.
//!
//! This module does no I/O; its callers find and read the files. It checks no objects: it changes the levels of
//! diagnostics from the engine, or counts them instead of reporting them.
//!
//! Invariant: files, comments and baselines of the repository can silence only lints. They cannot lower the finding
//! that says how many findings were left out, because those may be of any rule.

mod acceptance;
mod baseline;
mod fields;
mod file;
mod levels;
mod suppression;

pub(crate) use acceptance::{LevelsAndOverrides, SplitFindings};
pub(crate) use baseline::{Baseline, KnownFindings, MAX_BASELINE_BYTES};
pub(crate) use fields::{CONFIG_SCHEMA, rule_and_origin_names};
pub(crate) use file::{
    ConfigFile, LevelOverride, LocatedSetting, StringListWithPositions, scalar_text_as_written,
};
pub(crate) use levels::{LevelSetting, LevelTarget, Levels};
pub use suppression::Suppressions;
