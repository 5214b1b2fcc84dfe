//! What a repository and the command line say about findings: levels of rules.
//!
//! Pure: the shells find and read the files. Nothing here checks an object; diagnostics come from the engine, and leave
//! with another level, or are counted instead of reported.
//!
//! Invariant: what cannot be attributed to a rule, such as findings that were left out, is never lowered.

mod levels;

pub(crate) use levels::{LevelSetting, LevelTarget, Levels};
