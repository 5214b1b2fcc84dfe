//! The PodDisruptionBudgets of a cluster: the pods that they select, and the number of disruptions that they allow.

use crate::outcome::Budget;
use tollgate_api::view::{self, View as _};
use tollgate_document::doc::Value;
use tollgate_forecast::nodes::label_selector_matches;
use tollgate_forecast::{ObjectKind, State, StoredObject};

/// The PodDisruptionBudgets (PDBs) of a cluster.
pub(crate) struct Budgets<'d> {
    budgets: Vec<(Budget, Value<'d>)>,
}

impl<'d> Budgets<'d> {
    pub(crate) fn from_state(state: &State<'d>) -> Budgets<'d> {
        let budgets = state.objects_of_kind(ObjectKind::PodDisruptionBudget).iter();
        let mut budgets: Vec<_> =
            budgets.map(|object| (read_budget(object), object.value.get("spec").get("selector"))).collect();
        budgets.sort_by(|(one, _), (other, _)| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        Budgets { budgets }
    }

    /// The PDBs without the pods that they select, for tests.
    #[cfg(test)]
    pub(crate) fn without_selectors(budgets: Vec<Budget>) -> Budgets<'d> {
        Budgets { budgets: budgets.into_iter().map(|budget| (budget, Value::absent())).collect() }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Budget> {
        self.budgets.get(index).map(|(budget, _)| budget)
    }

    /// Indices of the PDBs that the Eviction API checks when it evicts the pod: those in its namespace whose selector
    /// matches its labels, sorted by name. Empty for a pod that is Pending, Succeeded or Failed, and for one that is not
    /// Ready if its only PDB lets such pods go.
    pub(crate) fn budgets_checked_at_eviction(&self, pod: StoredObject<'_>) -> Vec<usize> {
        let read = view::Pod::of(pod.value);
        if read.is_evicted_despite_budgets() {
            return Vec::new();
        }
        let labels = pod.value.get("metadata").get("labels");
        let own = self.budgets.iter().enumerate();
        let own = own.filter(|(_, (budget, _))| budget.namespace == pod.namespace());
        let checked: Vec<_> =
            own.filter(|(_, (_, selector))| label_selector_matches(*selector, labels)).collect();
        if let [(_, (budget, _))] = checked.as_slice()
            && budget.lets_unready_pods_go
            && !read.is_ready_or_unknown()
        {
            return Vec::new();
        }
        checked.into_iter().map(|(index, _)| index).collect()
    }
}

impl Budget {
    /// Namespace and name, such as `inference/chat`.
    pub(crate) fn namespaced_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Maximum number of pods of this PDB in one wave. If the PDB currently allows no disruption, its pods are evicted
    /// one at a time.
    pub(crate) fn max_pods_in_wave(&self) -> usize {
        usize::try_from(self.allowed.max(1).min(self.allowed_at_best)).unwrap_or_default()
    }
}

/// Reads the fields of a PodDisruptionBudget that a drain needs.
fn read_budget(object: StoredObject<'_>) -> Budget {
    let status = object.value.get("status");
    let allowed = status.get("disruptionsAllowed").int().unwrap_or(0);
    // Dumps of earlier releases of Tollgate have only the current number.
    let at_best = match (status.get("expectedPods").int(), status.get("desiredHealthy").int()) {
        (Some(expected), Some(desired)) => expected.saturating_sub(desired),
        _ => allowed,
    };
    let spec = object.value.get("spec");
    let mut conditions = status.get("conditions").items();
    // upstream v1.37 policy/v1 SyncFailedReason
    let failed = conditions.find(|condition| condition.get("reason").text_is("SyncFailed"));
    Budget {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        allowed,
        allowed_at_best: if failed.is_some() { 0 } else { at_best.max(allowed) },
        lets_unready_pods_go: view::Budget::of(object.value).lets_unready_pods_go(),
        grows_with_replicas: !spec.get("maxUnavailable").exists() && spec.get("minAvailable").str() != "100%",
        sync_failure: failed.map(|condition| condition.get("message").str().to_owned()),
    }
}
