//! The finding about the impact of a DeviceTaintRule, reported by the engine if it has the state of the cluster.
//!
//! Nothing is checked here: `impact` counts and the engine reports. This file declares the rule.

use super::{Check, Group, rules};

rules! { Lint, Warn;
    /// What a DeviceTaintRule will do.
    TAINT_RULE_IMPACT = "taint-rule-impact",
}

/// The groups of this file.
pub static GROUPS: &[Group] = &[Group { rules: RULES, check: Check::Engine }];
