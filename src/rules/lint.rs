//! Legal, and almost surely a mistake: one file per lint of ours.

use super::Group;

/// The groups of this origin.
pub static GROUPS: &[Group] = &[];
