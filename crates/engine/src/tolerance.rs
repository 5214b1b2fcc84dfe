//! Matching of taints and tolerations, and of tolerations and policy entries ([`coverage`]).
//!
//! The scheduler and the eviction controller share this comparison, but use the result differently: both ignore
//! taints with effects other than NoSchedule and NoExecute, and the eviction controller considers only tolerations
//! with the effect NoExecute.

pub mod coverage;

use tollgate_api::view::{Taint, Toleration};

/// The fields of a toleration that are compared with a taint.
#[derive(Clone, Copy, Debug)]
pub struct TolerationFields<'a> {
    pub key: &'a str,
    pub operator: &'a str,
    pub value: &'a str,
    pub effect: &'a str,
}

/// The fields of a taint that are compared with a toleration.
#[derive(Clone, Copy, Debug)]
pub struct TaintFields<'a> {
    pub key: &'a str,
    pub value: &'a str,
    pub effect: &'a str,
}

/// True if the toleration matches the taint. An empty key matches every key, an empty effect every effect.
// upstream v1.36 resourceclaim.ToleratesTaint
pub fn matches(toleration: TolerationFields<'_>, taint: TaintFields<'_>) -> bool {
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

/// True if the toleration matches the taint, as [`matches()`] does for plain fields.
pub fn tolerates(toleration: Toleration<'_>, taint: Taint<'_>) -> bool {
    let terms = TolerationFields {
        key: toleration.key(),
        operator: toleration.operator(),
        value: toleration.value(),
        effect: toleration.effect(),
    };
    matches(terms, TaintFields { key: taint.key(), value: taint.value(), effect: taint.effect() })
}
