//! Notes for the user about a drain, besides the pods.

use std::collections::BTreeSet;
use tollgate_forecast::{ObjectKind, State, StoredObject, is_node_not_ready};

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

/// A note about the nodes of these pods that are not Ready: a pod there ends only when the kubelet is back.
pub(crate) fn unready_nodes_note<'n>(
    state: &State<'_>,
    nodes_of_pods: impl Iterator<Item = &'n str>,
) -> Option<String> {
    let nodes: BTreeSet<&str> = nodes_of_pods.filter(|name| is_node_not_ready(state, name)).collect();
    let names: Vec<&str> = nodes.into_iter().collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!(
            "node {name} is not Ready; evicted pods stay there as Terminating until its kubelet is back"
        )),
        _ => Some(format!(
            "nodes {} are not Ready; evicted pods stay there as Terminating until their kubelets are back",
            names.join(", ")
        )),
    }
}
