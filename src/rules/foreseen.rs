//! What the state of the cluster says about a rule: findings of the engine, where it is given that state.
//!
//! Nothing is checked here; `impact` counts and the engine tells. This file gives the finding its name.

use super::{Check, Group, rules};

rules! { Lint, Warn;
    /// What a DeviceTaintRule will do.
    TAINT_RULE_IMPACT = "taint-rule-impact",
}

/// The groups of this file.
pub(crate) static GROUPS: &[Group] = &[Group { rules: RULES, check: Check::Engine }];
