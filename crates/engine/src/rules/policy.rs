//! Rules that the admin's policies speak through: origin `policy`.
//!
//! Nothing is checked here; `policy` does, and says how serious it is. This file gives the findings their names.

use super::{Check, Group, rules};

rules! { Policy, Deny;
    /// A toleration that policy does not allow.
    POLICY_TOLERATION = "policy-toleration",
    /// A taint that policy does not allow.
    POLICY_TAINT = "policy-taint",
    /// Data of a taint that does not fit its schema.
    POLICY_TAINT_DATA = "policy-taint-data",
    /// A DeviceTaintRule that is too dangerous.
    POLICY_TAINT_RULE = "policy-taint-rule",
    /// Opaque parameters that do not fit their schema.
    POLICY_PARAMETERS = "policy-parameters",
    /// An expression of a policy that is not true, or cannot be evaluated.
    POLICY_VALIDATION = "policy-validation",
    /// A policy that cannot be judged because something is not known.
    POLICY_LOOKUP = "policy-lookup",
}

/// The groups of this file.
pub static GROUPS: &[Group] = &[Group { rules: RULES, check: Check::Engine }];
