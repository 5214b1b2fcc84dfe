//! The scheduling requirements of all pods of a cluster, with indices, shared by all simulated runs.
//!
//! Pods with the same namespace, labels and pod affinity belong to one class; pods that differ at most in their
//! resource requests belong to one kind. This makes it cheap to count pods and to cache suitable nodes. All pods are
//! read before the first run.

#![allow(
    clippy::indexing_slicing,
    reason = "the numbers of pods, classes and topologies are places in their lists"
)]

use super::affinity::PodAffinityTerms;
use super::node::NodeInfo;
use super::pod::{PodNeeds, PodSource};
use super::resources::{ResourceId, ResourceNames, ResourcesDelegatedToDevices};
use super::selector::Labels;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_allocator::AllocatorSemantics;
use tollgate_document::doc::Value;

/// Index of a pod in a catalog.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PodId(pub(super) u32);

/// Index of a class of pods: pods with the same namespace, labels and pod affinity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PodClassId(pub(super) u32);

/// Index of a kind of pods: pods that differ at most in their resource requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PodKindExceptRequestsId(pub(super) u32);

/// Index of the node constraints of pods: kinds of pods that differ at most in class and spread constraints share them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct PodNodeConstraintsId(pub(super) u32);

/// Index of a node label that defines a topology, such as `topology.kubernetes.io/zone`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TopologyKeyId(pub(super) u32);

/// A class of pods with the same namespace, labels and pod affinity.
#[derive(Clone, Debug)]
pub(super) struct PodClass<'d> {
    pub(super) namespace: &'d str,
    pub(super) labels: Labels<'d>,
    /// True if the pod is being deleted. Topology spread constraints do not count it.
    pub(super) terminating: bool,
    pub(super) terms: PodAffinityTerms<'d>,
}

/// The scheduling requirements of all pods of a cluster.
#[derive(Debug)]
pub struct PodCatalog<'d> {
    semantics: AllocatorSemantics,
    pub(super) resources: ResourceNames<'d>,
    namespaces: HashMap<&'d str, Labels<'d>, RandomState>,
    pods: Vec<PodNeeds<'d>>,
    pub(super) classes: Vec<PodClass<'d>>,
    class_of: HashMap<String, PodClassId, RandomState>,
    classes_in: HashMap<&'d str, Vec<PodClassId>, RandomState>,
    /// The classes whose pods have affinity terms.
    classes_with_terms: Vec<PodClassId>,
    pub(super) kind_of: HashMap<String, PodKindExceptRequestsId, RandomState>,
    pub(super) shape_of: HashMap<String, PodNodeConstraintsId, RandomState>,
    pub(super) topologies: Vec<&'d str>,
}

impl<'d> PodCatalog<'d> {
    /// Creates an empty catalog for a cluster with these Namespace objects.
    pub fn new(
        semantics: AllocatorSemantics,
        namespaces: impl IntoIterator<Item = Value<'d>>,
    ) -> PodCatalog<'d> {
        let labelled = namespaces.into_iter().map(|namespace| {
            let metadata = namespace.get("metadata");
            let name = metadata.get("name").str();
            (name, Labels::read(metadata.get("labels"), &[(NAMESPACE_NAME_LABEL, name)]))
        });
        PodCatalog {
            semantics,
            resources: ResourceNames::default(),
            namespaces: labelled.collect(),
            pods: Vec::new(),
            classes: Vec::new(),
            class_of: HashMap::default(),
            classes_in: HashMap::default(),
            classes_with_terms: Vec::new(),
            kind_of: HashMap::default(),
            shape_of: HashMap::default(),
            topologies: Vec::new(),
        }
    }

    /// Adds a pod. Every pod that is bound, pending or will be created is added once.
    pub fn add_pod(&mut self, source: &PodSource<'d>) -> PodId {
        let id = PodId(next_index(self.pods.len()));
        let needs = PodNeeds::read(self, source);
        self.pods.push(needs);
        id
    }

    /// Adds a second entry for a pod, which replaces the first one while the pod is being deleted: topology spread
    /// constraints ignore it.
    pub fn add_terminating_copy_of_pod(&mut self, pod: PodId) -> PodId {
        let needs = self.pod_needs(pod).clone();
        let class = PodClass { terminating: true, ..self.class(needs.class).clone() };
        let class = self.intern_class(format!("{}\0deleted", needs.class.0), |_| class);
        let id = PodId(next_index(self.pods.len()));
        self.pods.push(PodNeeds { class, ..needs });
        id
    }

    /// Reads the labels, taints and allocatable resources of a Node object.
    pub fn read_node(&mut self, node: Value<'d>) -> NodeInfo<'d> {
        NodeInfo::read(node, &mut self.resources)
    }

    /// The extended resources that pods in this catalog request and these DeviceClasses provide.
    pub fn resources_delegated_to_devices<'v>(
        &self,
        classes: impl IntoIterator<Item = Value<'v>>,
    ) -> ResourcesDelegatedToDevices {
        ResourcesDelegatedToDevices::of_classes(&self.resources, classes)
    }

    /// The scheduling requirements of a pod.
    pub fn pod_needs(&self, pod: PodId) -> &PodNeeds<'d> {
        &self.pods[pod.0 as usize]
    }

    /// True if the scheduler treats both pods equally, apart from their claims.
    pub fn are_scheduled_alike(&self, one: PodId, other: PodId) -> bool {
        let (one, other) = (self.pod_needs(one), self.pod_needs(other));
        one.kind == other.kind
            && one.shape == other.shape
            && one.resources.requested == other.resources.requested
            && one.host_ports == other.host_ports
            && one.priority == other.priority
            && one.scheduling_gates == other.scheduling_gates
    }

    /// Name of a resource, such as `example.com/gpu`.
    pub fn resource_name(&self, resource: ResourceId) -> &'d str {
        self.resources.name(resource)
    }

    pub(super) fn semantics(&self) -> &AllocatorSemantics {
        &self.semantics
    }

    pub(super) fn class(&self, class: PodClassId) -> &PodClass<'d> {
        &self.classes[class.0 as usize]
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = (PodClassId, &PodClass<'d>)> {
        self.classes.iter().enumerate().map(|(place, class)| (PodClassId(next_index(place)), class))
    }

    /// The labels of a namespace. For an unknown namespace, only the label that every namespace has.
    pub(super) fn namespace_labels(&self, namespace: &'d str) -> Labels<'d> {
        let known = self.namespaces.get(namespace).cloned();
        known.unwrap_or_else(|| Labels::read(Value::absent(), &[(NAMESPACE_NAME_LABEL, namespace)]))
    }

    pub(super) fn knows_namespaces(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// The classes of pods in a namespace.
    pub(super) fn classes_in(&self, namespace: &str) -> impl Iterator<Item = (PodClassId, &PodClass<'d>)> {
        let classes = self.classes_in.get(namespace).map_or(&[][..], Vec::as_slice);
        classes.iter().map(|&class| (class, self.class(class)))
    }

    pub(super) fn classes_with_affinity(&self) -> impl Iterator<Item = (PodClassId, &PodClass<'d>)> {
        self.classes_with_terms.iter().map(|&class| (class, self.class(class)))
    }

    pub(super) fn topology_key(&self, topology: TopologyKeyId) -> &'d str {
        self.topologies[topology.0 as usize]
    }

    /// The index of a topology label, which is added if new. A linear search suffices because there are few.
    pub(super) fn intern_topology(&mut self, key: &'d str) -> TopologyKeyId {
        let place = self.topologies.iter().position(|&known| known == key).unwrap_or_else(|| {
            self.topologies.push(key);
            self.topologies.len() - 1
        });
        TopologyKeyId(next_index(place))
    }

    /// The index of the class with this key, which is added if new.
    pub(super) fn intern_class(
        &mut self,
        key: String,
        class: impl FnOnce(&mut PodCatalog<'d>) -> PodClass<'d>,
    ) -> PodClassId {
        if let Some(&known) = self.class_of.get(&key) {
            return known;
        }
        let class = class(self);
        let id = PodClassId(next_index(self.classes.len()));
        if !class.terms.is_empty() {
            self.classes_with_terms.push(id);
        }
        self.classes_in.entry(class.namespace).or_default().push(id);
        self.classes.push(class);
        self.class_of.insert(key, id);
        id
    }

    /// The index of the node constraints with this key, which are added if new.
    pub(super) fn intern_node_constraints(&mut self, key: String) -> PodNodeConstraintsId {
        let id = PodNodeConstraintsId(next_index(self.shape_of.len()));
        *self.shape_of.entry(key).or_insert(id)
    }

    /// The index of the kind with this key, which is added if new.
    pub(super) fn intern_pod_kind_except_requests(&mut self, key: String) -> PodKindExceptRequestsId {
        let id = PodKindExceptRequestsId(next_index(self.kind_of.len()));
        *self.kind_of.entry(key).or_insert(id)
    }
}

const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Converts a length to the next index. No cluster has four billion pods.
fn next_index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
