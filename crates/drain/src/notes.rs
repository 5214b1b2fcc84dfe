//! Notes for the user about a drain, besides the pods.

use tollgate_forecast::{ObjectKind, State, StoredObject};

/// Notes for the user about autoscalers, and about PDBs that are missing from the state.
pub(crate) fn autoscaler_and_pdb_notes(state: &State<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let is_autoscaler = |deployment: &StoredObject<'_>| {
        ["cluster-autoscaler", "karpenter"].iter().any(|name| deployment.name().contains(name))
    };
    let deployment = state.objects_of_kind(ObjectKind::Deployment).iter().find(is_autoscaler);
    let is_provisioned = |node: &StoredObject<'_>| {
        let mut labels = node.value.get("metadata").get("labels").members();
        labels.any(|(key, _)| key.text().starts_with("karpenter.sh/"))
    };
    let autoscaler = match deployment {
        Some(found) => Some(format!("Deployment {}/{}", found.namespace(), found.name())),
        None => state
            .objects_of_kind(ObjectKind::Node)
            .iter()
            .any(|node| is_provisioned(&node))
            .then(|| "Karpenter".to_owned()),
    };
    if let Some(autoscaler) = autoscaler {
        notes.push(format!(
            "{autoscaler} can remove a node after its pods have moved, and adds no node because of DeviceTaintRules"
        ));
    }
    // A dump that does not say what was listed may be of a cluster without PDBs.
    let says_what_was_listed = state.is_listed(ObjectKind::Pod);
    if says_what_was_listed && !state.is_listed(ObjectKind::PodDisruptionBudget) {
        notes.push(
            "PodDisruptionBudgets are not known; if the cluster has some, more pods can stay".to_owned(),
        );
    }
    notes
}
