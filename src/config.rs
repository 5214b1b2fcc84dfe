//! What a repository and the command line say about findings: configuration files, levels, overrides, comments that
//! suppress, baselines.
//!
//! Pure: the shells find and read the files. Nothing here checks an object; diagnostics come from the engine, and leave
//! with another level, or are counted instead of reported.
//!
//! Invariant: what belongs to the repository (files, comments, baselines) can silence lints only, and what cannot be
//! attributed to a rule, such as findings that were left out, is never lowered.

mod acceptance;
mod baseline;
mod fields;
mod file;
mod levels;
mod suppression;

pub(crate) use acceptance::{Acceptance, ObjectName, SplitFindings};
pub(crate) use baseline::{Baseline, KnownFindings, MAX_BASELINE_BYTES};
pub(crate) use fields::{CONFIG_SCHEMA, rules_and_origins};
pub(crate) use file::{ConfigFile, Override, Setting, StringSettings};
pub(crate) use levels::{LevelSetting, LevelTarget, Levels};
pub use suppression::Suppressions;
