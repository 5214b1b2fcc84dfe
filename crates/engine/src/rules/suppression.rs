//! Rules about comments that suppress lints. Nothing is checked here: `config::suppression` reads the comments; this file
//! declares the rules. Only texts have comments, so a webhook never reports these.

use super::{Check, Group, rules};

rules! { Lint, Warn;
    /// A suppression of something that is not found.
    UNUSED_SUPPRESSION = "unused-suppression",
    /// A suppression that cannot be one.
    INVALID_SUPPRESSION = "invalid-suppression",
}

/// The groups of this file.
pub static GROUPS: &[Group] = &[Group { rules: RULES, check: Check::Engine }];
