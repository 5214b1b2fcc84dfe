//! Names of features of a pod that are not simulated.

use super::catalog::PodCatalog;
use super::pod::PodSource;
use tollgate_document::doc::Value;

/// Volume types that do not affect scheduling, because no scheduler filter checks them.
const VOLUMES_WITHOUT_FILTER: [&str; 10] = [
    "configMap",
    "downwardAPI",
    "emptyDir",
    "gitRepo",
    "hostPath",
    "image",
    "name",
    "nfs",
    "projected",
    "secret",
];

/// Short names of the features of a pod that make its scheduling unpredictable.
pub(super) fn unmodelled_features(catalog: &PodCatalog<'_>, source: &PodSource<'_>) -> Vec<&'static str> {
    let spec = source.spec;
    let mut names = Vec::new();
    let mut add = |uses: bool, name| {
        if uses {
            names.push(name);
        }
    };
    let is_harmless =
        |volume: Value<'_>| volume.members().all(|(key, _)| VOLUMES_WITHOUT_FILTER.contains(&key.text()));
    add(!spec.get("volumes").items().all(is_harmless), "volumes");
    let scheduler = spec.get("schedulerName").str();
    add(!scheduler.is_empty() && scheduler != super::DEFAULT_SCHEDULER, "schedulerName");
    let compares = |toleration: Value<'_>| matches!(toleration.get("operator").str(), "Gt" | "Lt");
    add(spec.get("tolerations").items().any(compares), "tolerations with operator Gt or Lt");
    add(needs_node_declared_features(spec), "features that nodes declare");
    add(spec.get("schedulingGroup").exists(), "schedulingGroup");
    add(spec.get("workloadRef").exists(), "workloadRef");
    // Admission adds the overhead, the node selector and the tolerations of the runtime class to stored pods.
    let is_stored = source.metadata.get("uid").exists();
    add(!is_stored && spec.get("runtimeClassName").exists(), "runtimeClassName");
    let needs_namespaces = spec.get("affinity").self_and_descendants().any(|value| {
        let selector = value.get("namespaceSelector");
        selector.exists() && !selector.is_empty()
    });
    add(needs_namespaces && !catalog.knows_namespaces(), "namespaceSelector without Namespaces");
    names
}

/// True if the scheduler requires nodes that declare a feature that the pod uses.
// upstream v1.37 nodedeclaredfeatures.InferForScheduling
fn needs_node_declared_features(spec: Value<'_>) -> bool {
    let containers = || spec.get("containers").items().chain(spec.get("initContainers").items());
    let restarts_all = |container: Value<'_>| {
        let mut rules = container.get("restartPolicyRules").items();
        rules.any(|rule| rule.get("action").str() == "RestartAllContainers")
    };
    let has_bind_options = |container: Value<'_>| {
        container.get("volumeMounts").items().any(|mount| !mount.get("bindMountOptions").is_empty())
    };
    let on_host_network = spec.get("hostNetwork").bool() == Some(true);
    (on_host_network && spec.get("hostUsers").bool() == Some(false))
        || containers().any(restarts_all)
        || containers().any(has_bind_options)
}
