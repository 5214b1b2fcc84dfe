//! The scheduling requirements of a pod, read once.

use super::affinity::PodAffinityTerms;
use super::catalog::{PodCatalog, PodClass, PodClassId, PodKindExceptRequestsId, PodNodeConstraintsId};
use super::images;
use super::resources::{PodRequests, is_sidecar};
use super::selector::{Labels, Selector};
use super::spread::SpreadConstraint;
use super::unmodelled;
use std::borrow::Cow;
use std::fmt::Write as _;
use tollgate_api::view::{List, NodeSelector, NodeTerm, Toleration, View};
use tollgate_document::doc::Value;

/// The objects from which the requirements of a pod are read.
#[derive(Clone, Debug)]
pub struct PodSource<'d> {
    pub namespace: &'d str,
    /// `metadata` of the pod or pod template.
    pub metadata: Value<'d>,
    pub spec: Value<'d>,
    /// `status` of the pod; absent for a template.
    pub status: Value<'d>,
    /// `spec.selector` of the ReplicaSet, ReplicationController or StatefulSet that controls the pod. The
    /// scheduler spreads its pods over nodes and zones, unless the pod has its own constraints.
    pub controller_selector: Option<Value<'d>>,
    /// Priority of a pod whose spec does not have it, because it is read from a template.
    pub priority: Option<i64>,
    /// True if the pod does not exist yet, so that the node name and deletion in the source are ignored.
    pub is_new: bool,
}

impl<'d> PodSource<'d> {
    /// Reads a Pod object whose controller, if any, does not affect spreading.
    pub fn from_object(pod: Value<'d>) -> PodSource<'d> {
        let namespace = pod.get("metadata").get("namespace").str();
        PodSource { status: pod.get("status"), ..PodSource::from_template(namespace, pod) }
    }

    /// A pod created from a template, such as `spec.template` of a Deployment.
    pub fn from_template(namespace: &'d str, template: Value<'d>) -> PodSource<'d> {
        PodSource {
            namespace,
            metadata: template.get("metadata"),
            spec: template.get("spec"),
            status: Value::absent(),
            controller_selector: None,
            priority: None,
            is_new: false,
        }
    }
}

/// A host port of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPort<'d> {
    /// Host IP; `0.0.0.0` for all addresses.
    pub address: &'d str,
    pub protocol: &'d str,
    pub port: i64,
}

impl HostPort<'_> {
    /// True if pods with these host ports cannot run on the same node.
    // upstream v1.37 HostPortInfo.CheckConflict
    pub(super) fn conflicts_with(self, other: HostPort<'_>) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address || self.address == ANY_ADDRESS || other.address == ANY_ADDRESS)
    }
}

const ANY_ADDRESS: &str = "0.0.0.0";

/// The requirements of a pod that decide on which nodes it can be scheduled.
#[derive(Clone, Debug)]
pub struct PodNeeds<'d> {
    pub(super) class: PodClassId,
    pub(super) kind: PodKindExceptRequestsId,
    pub(super) shape: PodNodeConstraintsId,
    pub(crate) resources: PodRequests,
    pub host_ports: Vec<HostPort<'d>>,
    /// `spec.nodeName`. Set if the pod is bound.
    pub node_name: &'d str,
    pub(super) node_selector: Value<'d>,
    /// `requiredDuringSchedulingIgnoredDuringExecution` of the node affinity.
    pub(super) node_affinity: Option<NodeSelector<'d>>,
    pub(super) preferred_nodes: Vec<(i64, NodeTerm<'d>)>,
    pub(super) tolerations: List<'d, Toleration<'d>>,
    pub(super) images: Vec<Cow<'d, str>>,
    pub(super) spread: Vec<SpreadConstraint<'d>>,
    /// True if the constraints are the scheduler's defaults for pods without constraints.
    pub(super) has_default_spread: bool,
    /// Priority of the pod; `None` if it depends on an unknown PriorityClass.
    pub priority: Option<i64>,
    /// False for `preemptionPolicy: Never`.
    pub preempts: bool,
    /// Names of scheduling gates. A pod with a gate is not scheduled.
    pub scheduling_gates: Vec<&'d str>,
    /// Short names of features of the pod that are not simulated, which make its outcome unknown.
    pub unmodelled: Vec<&'static str>,
}

impl<'d> PodNeeds<'d> {
    pub(super) fn read(catalog: &mut PodCatalog<'d>, source: &PodSource<'d>) -> PodNeeds<'d> {
        let &PodSource { metadata, spec, status, .. } = source;
        let labels = Labels::read(metadata.get("labels"), &[]);
        let node_affinity = spec.get("affinity").get("nodeAffinity");
        let required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items();
        let preferred_nodes = preferred
            .map(|term| (term.get("weight").int().unwrap_or(0), NodeTerm::of(term.get("preference"))))
            .collect();
        let resources = PodRequests::read(spec, status, &mut catalog.resources);
        let class = intern_pod_class(catalog, source, &labels);
        let images = images::images_of_pod(spec);
        let (shape, kind) = intern_node_constraints_and_kind(catalog, source, class, &images);
        PodNeeds {
            class,
            kind,
            shape,
            resources,
            host_ports: host_ports(spec),
            node_name: if source.is_new { "" } else { spec.get("nodeName").str() },
            node_selector: spec.get("nodeSelector"),
            node_affinity: required.exists().then(|| NodeSelector::of(required)),
            preferred_nodes,
            tolerations: List::from_json(spec.get("tolerations")),
            images,
            spread: own_or_default_spread_constraints(catalog, source, &labels),
            has_default_spread: spec.get("topologySpreadConstraints").is_empty(),
            priority: source.priority.or_else(|| priority_if_known(spec)),
            preempts: spec.get("preemptionPolicy").str() != "Never",
            scheduling_gates: spec
                .get("schedulingGates")
                .items()
                .map(|gate| gate.get("name").str())
                .collect(),
            unmodelled: unmodelled::unmodelled_features(catalog, source),
        }
    }

    /// True if the pod has ended, so that the scheduler does not count it on its node.
    pub fn is_finished(pod: Value<'_>) -> bool {
        matches!(pod.get("status").get("phase").str(), "Succeeded" | "Failed")
    }
}

fn intern_pod_class<'d>(
    catalog: &mut PodCatalog<'d>,
    source: &PodSource<'d>,
    labels: &Labels<'d>,
) -> PodClassId {
    let affinity = source.spec.get("affinity");
    let (near, apart) = (affinity.get("podAffinity"), affinity.get("podAntiAffinity"));
    let terminating = !source.is_new && source.metadata.get("deletionTimestamp").exists();
    let mut key = format!("{}\0{terminating}\0{}\0{}", source.namespace, near.raw_json(), apart.raw_json());
    for (name, value) in labels.iter() {
        let _ = write!(key, "\0{name}\0{value}");
    }
    catalog.intern_class(key, |catalog| PodClass {
        namespace: source.namespace,
        labels: labels.clone(),
        terminating,
        terms: PodAffinityTerms::read(catalog, source.namespace, affinity, labels),
    })
}

fn intern_node_constraints_and_kind<'d>(
    catalog: &mut PodCatalog<'d>,
    source: &PodSource<'d>,
    class: PodClassId,
    images: &[Cow<'_, str>],
) -> (PodNodeConstraintsId, PodKindExceptRequestsId) {
    let spec = source.spec;
    let mut key = format!("{}\0{}", source.is_new, spec.get("affinity").get("nodeAffinity").raw_json());
    for field in ["nodeName", "nodeSelector", "tolerations"] {
        let _ = write!(key, "\0{}", spec.get(field).raw_json());
    }
    for image in images {
        let _ = write!(key, "\0{image}");
    }
    let shape = catalog.intern_node_constraints(key);
    let constraints = spec.get("topologySpreadConstraints").raw_json();
    let controller = source.controller_selector.unwrap_or(Value::absent()).raw_json();
    let key = format!("{}\0{}\0{constraints}\0{controller}", class.0, shape.0);
    (shape, catalog.intern_pod_kind_except_requests(key))
}

/// The pod's topology spread constraints, or the scheduler's defaults for pods of a controller.
fn own_or_default_spread_constraints<'d>(
    catalog: &mut PodCatalog<'d>,
    source: &PodSource<'d>,
    labels: &Labels<'d>,
) -> Vec<SpreadConstraint<'d>> {
    let own = source.spec.get("topologySpreadConstraints");
    let selector = source.controller_selector.map(Selector::read);
    match selector.filter(|selector| own.is_empty() && !selector.selects_everything()) {
        Some(selector) => SpreadConstraint::default_constraints(catalog, &selector),
        None => own.items().map(|constraint| SpreadConstraint::read(catalog, constraint, labels)).collect(),
    }
}

/// The host ports that the pod uses while it runs.
fn host_ports(spec: Value<'_>) -> Vec<HostPort<'_>> {
    let on_host_network = spec.get("hostNetwork").bool() == Some(true);
    let sidecars = spec.get("initContainers").items().filter(|&container| is_sidecar(container));
    let containers = sidecars.chain(spec.get("containers").items());
    let ports = containers.flat_map(|container| container.get("ports").items()).map(|port| {
        let (host, own) = (port.get("hostPort").int().unwrap_or(0), port.get("containerPort").int());
        HostPort {
            address: or_if_empty(port.get("hostIP").str(), ANY_ADDRESS),
            protocol: or_if_empty(port.get("protocol").str(), "TCP"),
            // The API server fills in the port of a pod on the host's network.
            port: if host == 0 && on_host_network { own.unwrap_or(0) } else { host },
        }
    });
    ports.filter(|port| port.port > 0).collect()
}

/// The text, or `default` if it is empty.
fn or_if_empty<'d>(text: &'d str, default: &'d str) -> &'d str {
    if text.is_empty() { default } else { text }
}

/// The priority, if it is known without PriorityClasses.
fn priority_if_known(spec: Value<'_>) -> Option<i64> {
    spec.get("priority").int().or(match spec.get("priorityClassName").str() {
        "" => Some(0),
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    })
}
