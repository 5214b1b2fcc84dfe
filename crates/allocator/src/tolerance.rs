//! Whether the taints of a device keep a request from getting it.
//!
//! Only the scheduler's side: `tolerationSeconds` and eviction do not matter here.

use tollgate_api::view::{List, Taint, Toleration};

/// True if every taint that prevents allocation is tolerated. Taints with other effects than NoSchedule and NoExecute
/// prevent nothing.
pub(crate) fn all_tolerated(taints: &[Taint<'_>], tolerations: List<'_, Toleration<'_>>) -> bool {
    let mut preventing = taints.iter().filter(|taint| matches!(taint.effect(), "NoSchedule" | "NoExecute"));
    preventing.all(|&taint| tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// An empty key or effect fits every key or effect.
// upstream v1.37 resourceclaim.ToleratesTaint
fn tolerates(toleration: Toleration<'_>, taint: Taint<'_>) -> bool {
    let fits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
    fits(toleration.effect(), taint.effect())
        && fits(toleration.key(), taint.key())
        && match toleration.operator() {
            "" | "Equal" => toleration.value() == taint.value(),
            "Exists" => true,
            _ => false,
        }
}
