//! Limits that the API documentation or the KEP states and no server enforces.

use super::Group;

/// The groups of this origin.
pub static GROUPS: &[Group] = &[];
