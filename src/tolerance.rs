//! Does a toleration tolerate a taint; [`coverage`]: is it inside a union of policy entries.
//!
//! The one comparison that scheduler and eviction controller share. What they make of it is theirs: both ignore
//! taints whose effect is neither NoSchedule nor NoExecute, and the eviction controller counts only tolerations
//! that say NoExecute themselves.

pub mod coverage;

use crate::api::view::{Taint, Toleration};

/// True if the toleration matches the taint. An empty key matches every key, an empty effect every effect.
// upstream v1.36 resourceclaim.ToleratesTaint
pub fn tolerates(toleration: Toleration<'_>, taint: Taint<'_>) -> bool {
    let (key, effect) = (toleration.key(), toleration.effect());
    if !effect.is_empty() && effect != taint.effect() || !key.is_empty() && key != taint.key() {
        return false;
    }
    match toleration.operator() {
        "" | "Equal" => toleration.value() == taint.value(),
        "Exists" => true,
        _ => false,
    }
}
