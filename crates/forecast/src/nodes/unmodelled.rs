//! Names of what a pod uses that the filters here do not know.

use super::catalog::Catalog;
use super::pod::PodSource;
use tollgate_document::doc::Value;

/// Volumes that no filter looks at.
const HARMLESS_VOLUMES: [&str; 10] = [
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

/// Short names of everything that makes the outcome of scheduling the pod unknown.
pub(super) fn names(catalog: &Catalog<'_>, source: &PodSource<'_>) -> Vec<&'static str> {
    let spec = source.spec;
    let mut names = Vec::new();
    let mut add = |uses: bool, name| {
        if uses {
            names.push(name);
        }
    };
    let is_harmless =
        |volume: Value<'_>| volume.members().all(|(key, _)| HARMLESS_VOLUMES.contains(&key.text()));
    add(!spec.get("volumes").items().all(is_harmless), "volumes");
    let scheduler = spec.get("schedulerName").str();
    add(!scheduler.is_empty() && scheduler != super::DEFAULT_SCHEDULER, "schedulerName");
    let compares = |toleration: Value<'_>| matches!(toleration.get("operator").str(), "Gt" | "Lt");
    add(spec.get("tolerations").items().any(compares), "tolerations with operator Gt or Lt");
    add(spec.get("schedulingGroup").exists(), "schedulingGroup");
    add(spec.get("workloadRef").exists(), "workloadRef");
    // Admission adds the overhead, the node selector and the tolerations of the runtime class to stored pods.
    let is_stored = source.metadata.get("uid").exists();
    add(!is_stored && spec.get("runtimeClassName").exists(), "runtimeClassName");
    let needs_namespaces = spec.get("affinity").descendants().any(|value| {
        let selector = value.get("namespaceSelector");
        selector.exists() && !selector.is_empty()
    });
    add(needs_namespaces && !catalog.knows_namespaces(), "namespaceSelector without Namespaces");
    names
}
