//! The PodDisruptionBudgets of a cluster: the pods that they select, and the number of disruptions that they allow.

use crate::outcome::Budget;
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
    // upstream v1.37 registry/core/pod/storage/eviction.go canIgnorePDB, shouldEnforceResourceVersion
    pub(crate) fn budgets_checked_at_eviction(&self, pod: StoredObject<'_>) -> Vec<usize> {
        if matches!(pod.value.get("status").get("phase").str(), "Pending" | "Succeeded" | "Failed") {
            return Vec::new();
        }
        let labels = pod.value.get("metadata").get("labels");
        let own = self.budgets.iter().enumerate();
        let own = own.filter(|(_, (budget, _))| budget.namespace == pod.namespace());
        let checked: Vec<_> =
            own.filter(|(_, (_, selector))| label_selector_matches(*selector, labels)).collect();
        if let [(_, (budget, _))] = checked.as_slice()
            && budget.lets_unready_pods_go
            && !is_ready_or_unknown(pod)
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

/// True if the pod is Ready, or if its conditions are not known.
pub(crate) fn is_ready_or_unknown(pod: StoredObject<'_>) -> bool {
    let mut conditions = pod.value.get("status").get("conditions").items();
    conditions
        .find(|condition| condition.get("type").str() == "Ready")
        .is_none_or(|ready| ready.get("status").str() == "True")
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
    let lets_unready_pods_go = match spec.get("unhealthyPodEvictionPolicy").str() {
        "AlwaysAllow" => true,
        _ => match (status.get("currentHealthy").int(), status.get("desiredHealthy").int()) {
            (Some(current), Some(desired)) => desired > 0 && current >= desired,
            _ => false,
        },
    };
    Budget {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        allowed,
        allowed_at_best: at_best.max(allowed),
        lets_unready_pods_go,
        grows_with_replicas: !spec.get("maxUnavailable").exists() && spec.get("minAvailable").str() != "100%",
    }
}
