//! Does a toleration tolerate a taint; [`coverage`]: is it inside a union of policy entries.
//!
//! The one comparison that scheduler and eviction controller share. What they make of it is theirs: both ignore
//! taints whose effect is neither NoSchedule nor NoExecute, and the eviction controller counts only tolerations
//! that say NoExecute themselves.

pub mod coverage;

use crate::api::view::{Taint, Toleration};

/// What of a toleration is held against a taint.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// `key`
    pub key: &'a str,
    /// `operator`
    pub operator: &'a str,
    /// `value`
    pub value: &'a str,
    /// `effect`
    pub effect: &'a str,
}

/// What of a taint is held against a toleration.
#[derive(Clone, Copy, Debug)]
pub struct Mark<'a> {
    /// `key`
    pub key: &'a str,
    /// `value`
    pub value: &'a str,
    /// `effect`
    pub effect: &'a str,
}

/// True if the toleration matches the taint. An empty key matches every key, an empty effect every effect.
// upstream v1.36 resourceclaim.ToleratesTaint
pub fn matches(toleration: Terms<'_>, taint: Mark<'_>) -> bool {
    let (key, effect) = (toleration.key, toleration.effect);
    if !effect.is_empty() && effect != taint.effect || !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    }
}

/// The same for cursors into a document.
pub fn tolerates(toleration: Toleration<'_>, taint: Taint<'_>) -> bool {
    let terms = Terms {
        key: toleration.key(),
        operator: toleration.operator(),
        value: toleration.value(),
        effect: toleration.effect(),
    };
    matches(terms, Mark { key: taint.key(), value: taint.value(), effect: taint.effect() })
}
