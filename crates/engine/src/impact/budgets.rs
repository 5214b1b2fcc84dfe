//! PodDisruptionBudgets that evictions violate: the controller deletes pods and ignores budgets.

use super::{Impact, Snapshot};

/// A PodDisruptionBudget that allows fewer evictions than will happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ViolatedBudget<'s> {
    pub namespace: &'s str,
    pub name: &'s str,
    /// Number of evictions that exceed the budget.
    pub violated_by: usize,
}

/// Returns the PodDisruptionBudgets that the evictions of an impact violate, sorted by namespace and name. Pods that the
/// Eviction API would let go count as no violation, such as broken pods if the budget allows that. The eviction
/// controller ignores budgets, so these are for information.
pub fn violated_budgets<'s>(snapshot: &'s Snapshot, impact: &Impact<'s>) -> Vec<ViolatedBudget<'s>> {
    let mut evicted: Vec<_> = impact.pods.iter().filter(|pod| pod.outcome.is_evicted()).collect();
    evicted.sort_by_key(|pod| pod.namespace);
    let mut violated = Vec::new();
    for pods in evicted.chunk_by(|one, other| one.namespace == other.namespace) {
        let namespace = pods.first().map_or("", |pod| pod.namespace);
        let selecting: Vec<usize> = pods
            .iter()
            .map(|pod| {
                snapshot.budgets(namespace).filter(|budget| budget.selects(&pod.record.labels)).count()
            })
            .collect();
        for budget in snapshot.budgets(namespace) {
            let covered = pods.iter().zip(&selecting).filter(|(pod, selecting)| {
                budget.selects(&pod.record.labels)
                    && pod.record.protection.is_protected_by(budget, **selecting)
            });
            let covered = covered.count();
            let allowed = usize::try_from(budget.allowed).unwrap_or_default();
            if covered > allowed {
                violated.push(ViolatedBudget {
                    namespace,
                    name: &budget.name,
                    violated_by: covered - allowed,
                });
            }
        }
    }
    violated
}
