//! Checks whether the taints of a device prevent its allocation to a request.
//!
//! This is the scheduler's side only: `tolerationSeconds` and evictions do not matter here.

use tollgate_api::view::{List, Taint, Toleration};

/// True if the tolerations match every taint with the effect NoSchedule or NoExecute. Other effects do not
/// prevent allocation.
pub fn all_blocking_taints_tolerated<'d>(
    taints: impl Iterator<Item = Taint<'d>>,
    tolerations: List<'d, Toleration<'d>>,
) -> bool {
    let mut preventing = taints.filter(|taint| matches!(taint.effect(), "NoSchedule" | "NoExecute"));
    preventing.all(|taint| {
        let (key, value, effect) = (taint.key(), taint.value(), taint.effect());
        tolerations.iter().any(|toleration| tolerates(toleration, key, value, effect))
    })
}

/// True if the toleration matches a taint with this key, value and effect. An empty key or effect in the
/// toleration matches any. The rules are the same for device and node tolerations.
// upstream v1.37 resourceclaim.ToleratesTaint, Toleration.ToleratesTaint
pub fn tolerates(toleration: Toleration<'_>, key: &str, value: &str, effect: &str) -> bool {
    let fits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
    fits(toleration.effect(), effect)
        && fits(toleration.key(), key)
        && match toleration.operator() {
            "" | "Equal" => toleration.value() == value,
            "Exists" => true,
            _ => false,
        }
}
