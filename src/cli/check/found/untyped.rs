//! Documents without apiVersion or kind that have the shape of an object that Tollgate checks.
//!
//! In a folder, most documents without apiVersion or kind are something else: values, patches, snippets, unrelated
//! JSON. So a document must have what the API server requires of a complete object: a name, and the required fields of
//! the kind.

use tollgate_api::profile::ApiKind;
use tollgate_document::doc::{Value, ValueKind};

/// Path to the containers in the pod template of a workload.
const WORKLOAD_CONTAINERS: &[&str] = &["spec", "template", "spec", "containers"];
const CRON_JOB_CONTAINERS: &[&str] = &["spec", "jobTemplate", "spec", "template", "spec", "containers"];

/// True if the document lacks apiVersion or kind, and has the fields of a kind that Tollgate checks.
pub(super) fn has_shape_of_checked_kind(root: Value<'_>) -> bool {
    let metadata = root.get("metadata");
    let has_name = ["name", "generateName"].iter().any(|name| !metadata.get(name).str().is_empty());
    let (api_version, written) = (root.get("apiVersion").str(), root.get("kind").str());
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    has_name
        && ApiKind::ALL.into_iter().any(|kind| {
            let is_meant = match (api_version.is_empty(), written.is_empty()) {
                (true, false) => kind.name() == written,
                (false, true) => kind.group() == group,
                // Pods, and what is nearly empty, look like many things.
                _ => kind.has_full_schema() && kind != ApiKind::DeviceClass,
            };
            is_meant && has_required_fields(root, kind)
        })
}

/// True if the object has the fields that every object of the kind has.
fn has_required_fields(root: Value<'_>, kind: ApiKind) -> bool {
    let at = |path: &[&str]| path.iter().fold(root, |value, name| value.get(name));
    let has = |path: &[&str]| !at(path).is_null_or_absent();
    let has_pods = |path: &[&str]| are_complete_containers(at(path));
    match kind {
        ApiKind::ResourceClaim => has(&["spec", "devices", "requests"]),
        ApiKind::ResourceClaimTemplate => has(&["spec", "spec", "devices"]),
        ApiKind::ResourceSlice => has(&["spec", "driver"]) && has(&["spec", "pool"]),
        ApiKind::DeviceTaintRule => has(&["spec", "taint", "key"]) && has(&["spec", "taint", "effect"]),
        ApiKind::DeviceClass => has(&["spec"]),
        ApiKind::ResourceSlicePatch => has(&["spec", "devices", "filter"]),
        ApiKind::ClassicClass => has(&["driverName"]),
        ApiKind::ClassicClaim => has(&["spec", "resourceClassName"]),
        ApiKind::Pod => has_pods(&["spec", "containers"]),
        ApiKind::Deployment | ApiKind::StatefulSet | ApiKind::DaemonSet | ApiKind::ReplicaSet => {
            has(&["spec", "selector"]) && has_pods(WORKLOAD_CONTAINERS)
        }
        ApiKind::Job => has_pods(WORKLOAD_CONTAINERS),
        ApiKind::CronJob => has(&["spec", "schedule"]) && has_pods(CRON_JOB_CONTAINERS),
        ApiKind::FoundationDbCluster => has(&["spec", "version"]),
    }
}

/// True for a list of containers that all have a name and an image. In a patch, containers have only the changed
/// fields.
fn are_complete_containers(list: Value<'_>) -> bool {
    let is_whole =
        |item: Value<'_>| !item.get("name").str().is_empty() && !item.get("image").str().is_empty();
    list.kind() == ValueKind::Array && !list.is_empty() && list.items().all(is_whole)
}

#[cfg(test)]
mod tests {
    use super::has_shape_of_checked_kind;
    use tollgate_document::doc;

    #[test]
    fn whole_objects_are_recognised_and_fragments_are_not() {
        let pod = r#""metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}"#;
        let claim = r#""metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"gpu"}]}}"#;
        let table = [
            (format!(r#"{{"kind":"Pod",{pod}}}"#), true),
            (format!(r#"{{"apiVersion":"v1",{pod}}}"#), true),
            (format!(r#"{{{pod}}}"#), false),
            (format!(r#"{{"kind":"pod",{pod}}}"#), false),
            (format!(r#"{{"kind":"Sidecar",{pod}}}"#), false),
            (format!(r#"{{"kind":"ResourceClaim",{claim}}}"#), true),
            (format!(r#"{{"apiVersion":"resource.k8s.io/v1",{claim}}}"#), true),
            (format!(r#"{{"apiVersion":"example.com/v1",{claim}}}"#), false),
            (format!(r#"{{{claim}}}"#), true),
            // Values of a chart, and patches.
            (r#"{"kind":"Deployment","metadata":{"labels":{}},"spec":{"replicas":2}}"#.to_owned(), false),
            (
                r#"{"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}"#.to_owned(),
                false,
            ),
            (
                r#"{"kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":
                [{"name":"c","image":"i"}]}}}}"#
                    .to_owned(),
                false,
            ),
            (r#"{"kind":"ResourceClaim","metadata":{"name":"c"}}"#.to_owned(), false),
            (r#"{"kind":"ResourceClaim","spec":{"devices":{"requests":[]}}}"#.to_owned(), false),
        ];
        for (text, expected) in table {
            let doc = doc::parse(&text).expect("JSON");
            assert_eq!(has_shape_of_checked_kind(doc.root()), expected, "{text}");
        }
    }
}
