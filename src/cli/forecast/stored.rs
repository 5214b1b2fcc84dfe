//! An object as the API server stores it, as far as a forecast depends on it.
//!
//! Kinds of `resource.k8s.io` are decoded and defaulted by the engine. For the others, what admission and defaulting
//! add and the scheduler reads is added here: tolerations for nodes that are not ready, requests from limits, and ports
//! of the host. The priority of a PriorityClass is not known. A status that a client sends is not stored, except that
//! of a node.

use tollgate_api::profile::Profile;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::source::list;
use tollgate_engine::engine::{Attributes, stored_json};
use tollgate_forecast::{ObjectKind, State};
use tollgate_formats::gofmt::json_string;

/// Taints of failed nodes, for which admission adds a toleration of five minutes to pods that have none.
const TAINTS_OF_FAILED_NODES: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The namespace and name under which an object is stored.
#[derive(Debug)]
pub(super) struct StoredName {
    /// Empty for kinds without a namespace.
    pub(super) namespace: String,
    pub(super) name: String,
    /// True if the object has only `generateName`, so that its name is made up here.
    pub(super) is_made_up: bool,
}

impl StoredName {
    /// Returns the namespace and name under which an object is stored. `number` becomes part of a made-up name, so that
    /// objects with the same `generateName` have different names.
    pub(super) fn from_object(kind: Option<ObjectKind>, object: Value<'_>, number: usize) -> StoredName {
        let metadata = object.get("metadata");
        let text = |field: &str| metadata.get(field).str().to_owned();
        let namespace = match kind {
            Some(kind) if !kind.is_namespaced() => String::new(),
            Some(_) if text("namespace").is_empty() => "default".to_owned(),
            _ => text("namespace"),
        };
        let (name, prefix) = (text("name"), text("generateName"));
        if name.is_empty() && !prefix.is_empty() {
            return StoredName { namespace, name: format!("{prefix}new-{number}"), is_made_up: true };
        }
        StoredName { namespace, name, is_made_up: false }
    }

    /// Returns namespace and name of the object: `app/web`.
    pub(super) fn namespaced_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// Returns the JSON of an object as the API server would store it. `old` is the stored object that it replaces.
    pub(super) fn stored_json(
        &self,
        kind: ObjectKind,
        request: &Attributes<'_>,
        old: Option<Value<'_>>,
        profile: &Profile,
    ) -> String {
        let decoded = if is_dra(kind) { stored_json(request, profile) } else { None };
        let decoded = decoded.unwrap_or_else(|| request.object.to_json());
        let Ok(parsed) = tollgate_document::doc::parse(&decoded) else { return decoded };
        let object = parsed.root();
        let old = old.unwrap_or(Value::absent());
        let old_status = old.get("status");
        let status = match kind {
            ObjectKind::Node if object.get("status").exists() => object.get("status"),
            _ => old_status,
        };
        let spec = match kind {
            ObjectKind::Pod => {
                Some(pod_spec_with_defaults(object.get("spec"), old.get("spec").get("nodeName")))
            }
            ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::Job => {
                Some(workload_spec_with_defaults(object.get("spec")))
            }
            _ => None,
        };
        let mut members = vec![
            ("metadata", Some(self.metadata_with_stored_fields(object.get("metadata"), old.get("metadata")))),
            ("status", status.exists().then(|| status.to_json())),
        ];
        members.extend(spec.map(|spec| ("spec", Some(spec))));
        json_with_members(object, &members)
    }

    fn metadata_with_stored_fields(&self, metadata: Value<'_>, old: Value<'_>) -> String {
        let mut members = vec![("name", Some(json_string(&self.name)))];
        if !self.namespace.is_empty() {
            members.push(("namespace", Some(json_string(&self.namespace))));
        }
        // What the client does not send stays as it is.
        for field in ["uid", "creationTimestamp", "labels", "ownerReferences"] {
            if !metadata.get(field).exists() && old.get(field).exists() {
                members.push((field, Some(old.get(field).to_json())));
            }
        }
        json_with_members(metadata, &members)
    }
}

/// Returns the JSON of a DeviceTaintRule with its effect replaced.
pub(in crate::cli) fn rule_json_with_effect(rule: Value<'_>, effect: &str) -> String {
    let spec = rule.get("spec");
    let taint = json_with_members(spec.get("taint"), &[("effect", Some(json_string(effect)))]);
    json_with_members(rule, &[("spec", Some(json_with_members(spec, &[("taint", Some(taint))])))])
}

/// True for the kinds of `resource.k8s.io`, which the engine decodes.
pub(super) fn is_dra(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::DeviceClass
            | ObjectKind::ResourceSlice
            | ObjectKind::DeviceTaintRule
            | ObjectKind::ResourceClaimTemplate
            | ObjectKind::ResourceClaim
    )
}

/// Returns the JSON of an object in the state, with apiVersion and kind, which items of lists may lack; `None` if
/// it does not exist.
pub(super) fn stored_object_json(
    state: &State<'_>,
    kind: ObjectKind,
    namespace: &str,
    name: &str,
) -> Option<String> {
    let object = state.objects_of_kind(kind).get(namespace, name)?;
    let version = object.version.name();
    let api_version = if is_dra(kind) { format!("resource.k8s.io/{version}") } else { "v1".to_owned() };
    Some(
        list::with_inherited_type_if_untyped(object.value, &api_version, kind.name()).typed_value().to_json(),
    )
}

/// Returns the spec of a workload with the defaults in its pod template.
fn workload_spec_with_defaults(spec: Value<'_>) -> String {
    let template = spec.get("template");
    let pods = pod_spec_with_defaults(template.get("spec"), Value::absent());
    json_with_members(spec, &[("template", Some(json_with_members(template, &[("spec", Some(pods))])))])
}

/// Returns the spec of a pod with the fields that admission and defaulting add. `node` is the node of the stored
/// pod, if it is bound.
fn pod_spec_with_defaults(spec: Value<'_>, node: Value<'_>) -> String {
    let is_on_host = spec.get("hostNetwork").bool() == Some(true);
    let containers = |field: &str| {
        let containers: Vec<String> =
            spec.get(field).items().map(|container| container_with_defaults(container, is_on_host)).collect();
        spec.get(field).exists().then(|| format!("[{}]", containers.join(",")))
    };
    let mut members = vec![("tolerations", Some(tolerations_with_defaults(spec.get("tolerations"))))];
    for field in ["containers", "initContainers"] {
        members.extend(containers(field).map(|containers| (field, Some(containers))));
    }
    if !spec.get("nodeName").exists() && node.exists() {
        members.push(("nodeName", Some(node.to_json())));
    }
    json_with_members(spec, &members)
}

/// Returns the tolerations of a pod and the two that admission adds, for nodes that are not ready or unreachable,
/// unless the pod has its own.
fn tolerations_with_defaults(given: Value<'_>) -> String {
    let mut tolerations: Vec<String> = given.items().map(Value::to_json).collect();
    for taint in TAINTS_OF_FAILED_NODES {
        let is_about = |toleration: Value<'_>| {
            ["", taint].contains(&toleration.get("key").str())
                && ["", "NoExecute"].contains(&toleration.get("effect").str())
        };
        if !given.items().any(is_about) {
            tolerations.push(format!(
                r#"{{"key":"{taint}","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}"#
            ));
        }
    }
    format!("[{}]", tolerations.join(","))
}

/// Returns a container with defaults: requests follow from limits, and if the pod uses the network of the host,
/// ports are also host ports.
fn container_with_defaults(container: Value<'_>, is_on_host: bool) -> String {
    let mut members = Vec::new();
    let resources = container.get("resources");
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    let implied = limits.members().filter(|(name, _)| !requests.get(name.text()).exists());
    let implied: Vec<(&str, Option<String>)> =
        implied.map(|(name, value)| (name.text(), Some(value.to_json()))).collect();
    if !implied.is_empty() {
        let requests = json_with_members(requests, &implied);
        members.push(("resources", Some(json_with_members(resources, &[("requests", Some(requests))]))));
    }
    if is_on_host && container.get("ports").exists() {
        let port = |port: Value<'_>| match port.get("hostPort").int() {
            None | Some(0) => {
                json_with_members(port, &[("hostPort", Some(port.get("containerPort").to_json()))])
            }
            Some(_) => port.to_json(),
        };
        let ports: Vec<String> = container.get("ports").items().map(port).collect();
        members.push(("ports", Some(format!("[{}]", ports.join(",")))));
    }
    json_with_members(container, &members)
}

/// Returns the JSON of an object with some members replaced or added, or removed if their new value is `None`.
/// Anything but an object counts as one without members.
fn json_with_members(object: Value<'_>, changes: &[(&str, Option<String>)]) -> String {
    let is_kept = |key: &str| !changes.iter().any(|(changed, _)| *changed == key);
    let mut members: Vec<String> = Vec::new();
    if object.kind() == ValueKind::Object {
        let kept = object.members().filter(|(key, _)| is_kept(key.text()));
        members.extend(kept.map(|(key, value)| format!("{}:{}", json_string(key.text()), value.to_json())));
    }
    let added =
        changes.iter().filter_map(|(key, value)| Some(format!("{}:{}", json_string(key), value.as_ref()?)));
    members.extend(added);
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::StoredName;
    use tollgate_api::profile::Profile;
    use tollgate_document::doc;
    use tollgate_engine::engine::Attributes;
    use tollgate_forecast::ObjectKind;

    /// Kind, object, stored object that it replaces, and how it is stored.
    const STORED: [(ObjectKind, &str, &str, &str); 5] = [
        (
            ObjectKind::Pod,
            r#"{"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"limits":{"cpu":"2","a":"1"},"requests":{"cpu":"1"}}}],"tolerations":[{"operator":"Exists"}]},"status":{"phase":"Running"}}"#,
            "",
            r#"{"metadata":{"name":"p","namespace":"default"},"spec":{"tolerations":[{"operator":"Exists"}],"containers":[{"resources":{"limits":{"a":"1","cpu":"2"},"requests":{"cpu":"1","a":"1"}}}]}}"#,
        ),
        (
            ObjectKind::Pod,
            r#"{"metadata":{"name":"p","namespace":"n"},"spec":{"hostNetwork":true,"containers":[{"ports":[{"containerPort":80},{"containerPort":1,"hostPort":2}]}],"tolerations":[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]}}"#,
            r#"{"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}"#,
            r#"{"metadata":{"name":"p","namespace":"n","uid":"u"},"status":{"phase":"Running"},"spec":{"hostNetwork":true,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready"},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"containers":[{"ports":[{"containerPort":80,"hostPort":80},{"containerPort":1,"hostPort":2}]}],"nodeName":"n1"}}"#,
        ),
        (
            ObjectKind::Node,
            r#"{"metadata":{"name":"n"},"spec":{"unschedulable":true}}"#,
            r#"{"metadata":{"name":"n","labels":{"a":"b"}},"status":{"allocatable":{"cpu":"1"}}}"#,
            r#"{"spec":{"unschedulable":true},"metadata":{"name":"n","labels":{"a":"b"}},"status":{"allocatable":{"cpu":"1"}}}"#,
        ),
        (
            ObjectKind::Node,
            r#"{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2"}}}"#,
            r#"{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"1"}}}"#,
            r#"{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2"}}}"#,
        ),
        (
            ObjectKind::DeviceTaintRule,
            r#"{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"r"},"spec":{"taint":{"key":"k","effect":"NoExecute"}}}"#,
            "",
            r#"{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","spec":{"taint":{"effect":"NoExecute","key":"k","timeAdded":"2026-01-01T00:00:00Z"}},"metadata":{"name":"r"}}"#,
        ),
    ];

    #[test]
    fn objects_are_stored_as_the_api_server_does() {
        let profile = Profile::named("1.37").expect("a release");
        for (kind, object, old, expected) in STORED {
            let object = doc::parse(object).expect("JSON");
            let old = (!old.is_empty()).then(|| doc::parse(old).expect("JSON"));
            let old = old.as_ref().map(doc::Doc::root);
            let form = StoredName::from_object(Some(kind), object.root(), 0);
            let request = Attributes {
                old_object: old,
                ..Attributes::for_create(object.root(), "", "2026-01-01T00:00:00Z")
            };
            let stored = form.stored_json(kind, &request, old, profile);
            let canonical = |text: &str| doc::parse(text).expect("JSON").root().to_json();
            assert_eq!(canonical(&stored), canonical(expected));
        }
        let generated = doc::parse(r#"{"metadata":{"generateName":"web-"}}"#).expect("JSON");
        let form = StoredName::from_object(Some(ObjectKind::Pod), generated.root(), 3);
        assert_eq!((form.namespaced_name().as_str(), form.is_made_up), ("default/web-new-3", true));
    }
}
