//! The resources that bound pods use on each node.
//!
//! Adding and removing a pod costs a few additions, and a clone copies flat tables: each simulated run has its own
//! occupancy, which starts as a clone of a shared one.

#![allow(
    clippy::indexing_slicing,
    reason = "pods and nodes are numbered by the catalog and the nodes of the occupancy"
)]

use super::catalog::{PodCatalog, PodClassId, PodId};
use super::node::{NodeIndex, Nodes};
use super::pod::HostPort;
use super::resources::ResourceId;

/// Resources used by the pods on one node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct NodeUsage {
    pub(super) milli_cpu: i64,
    pub(super) memory: i64,
    pub(super) ephemeral_storage: i64,
    /// Cpu and memory, including the scheduler's defaults for containers without requests.
    pub(super) counted: [i64; 2],
    pub(super) pods: i64,
}

/// A pod that is bound to a node, and the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BoundPod {
    pub(super) node: NodeIndex,
    pub(super) pod: PodId,
}

/// A bound pod, linked to the previous one of its class.
#[derive(Clone, Copy, Debug)]
struct LinkedBoundPod {
    bound: BoundPod,
    before: u32,
    is_removed: bool,
}

/// The index that marks the end of a linked list of bound pods.
const END_OF_LIST: u32 = u32::MAX;

/// The pods bound to each node, and the resources and ports that they use.
#[derive(Clone, Debug)]
pub struct Occupancy<'c, 'd> {
    catalog: &'c PodCatalog<'d>,
    nodes: &'c Nodes<'d>,
    usage: Vec<NodeUsage>,
    /// Used amounts of other resources, by [`Nodes::resource_cell_index`].
    scalars: Vec<i64>,
    /// For each class, the index of its last bound pod, which links to the others. A flat list, because there
    /// can be as many classes as pods.
    last_of_class: Vec<u32>,
    bound: Vec<LinkedBoundPod>,
    ports: Vec<(NodeIndex, HostPort<'d>)>,
}

impl<'c, 'd> Occupancy<'c, 'd> {
    /// Creates an occupancy without pods.
    pub fn new(catalog: &'c PodCatalog<'d>, nodes: &'c Nodes<'d>) -> Occupancy<'c, 'd> {
        Occupancy {
            catalog,
            nodes,
            usage: vec![NodeUsage::default(); nodes.len()],
            scalars: vec![0; nodes.scalars.len()],
            last_of_class: vec![END_OF_LIST; catalog.classes.len()],
            bound: Vec::new(),
            ports: Vec::new(),
        }
    }

    /// Moves the pods to a changed set of nodes. Pods on removed nodes are dropped.
    pub fn with_nodes(&self, nodes: &'c Nodes<'d>) -> Occupancy<'c, 'd> {
        let mut moved = Occupancy::new(self.catalog, nodes);
        for bound in self.bound_pods() {
            if let Some(node) = nodes.find(self.nodes.get(bound.node).node.name) {
                moved.add_pod(node, bound.pod);
            }
        }
        moved
    }

    pub fn catalog(&self) -> &'c PodCatalog<'d> {
        self.catalog
    }

    pub fn nodes(&self) -> &'c Nodes<'d> {
        self.nodes
    }

    /// Binds a pod to a node.
    pub fn add_pod(&mut self, node: NodeIndex, pod: PodId) {
        self.count_pod(node, pod, 1);
        let needs = self.catalog.pod_needs(pod);
        let last = &mut self.last_of_class[needs.class.0 as usize];
        self.bound.push(LinkedBoundPod { bound: BoundPod { node, pod }, before: *last, is_removed: false });
        *last = u32::try_from(self.bound.len() - 1).unwrap_or(END_OF_LIST);
        self.ports.extend(needs.host_ports.iter().map(|&port| (node, port)));
    }

    /// Removes a pod from its node. Returns false if it is not there.
    pub fn remove_pod(&mut self, node: NodeIndex, pod: PodId) -> bool {
        let needs = self.catalog.pod_needs(pod);
        let mut after = None;
        let mut place = self.last_of_class[needs.class.0 as usize];
        while place != END_OF_LIST && self.bound[place as usize].bound != (BoundPod { node, pod }) {
            after = Some(place);
            place = self.bound[place as usize].before;
        }
        if place == END_OF_LIST {
            return false;
        }
        let entry = &mut self.bound[place as usize];
        entry.is_removed = true;
        let before = entry.before;
        match after {
            Some(after) => self.bound[after as usize].before = before,
            None => self.last_of_class[needs.class.0 as usize] = before,
        }
        for &port in &needs.host_ports {
            if let Some(place) = self.ports.iter().position(|&used| used == (node, port)) {
                self.ports.swap_remove(place);
            }
        }
        self.count_pod(node, pod, -1);
        true
    }

    /// Adds the pod to the usage of its node, or subtracts it if `sign` is -1.
    fn count_pod(&mut self, node: NodeIndex, pod: PodId, sign: i64) {
        let needs = self.catalog.pod_needs(pod);
        let usage = &mut self.usage[node.get()];
        // Sums wrap around as upstream's do, so that a removed pod always leaves what was there before.
        let add = |sum: &mut i64, amount: i64| *sum = sum.wrapping_add(amount.wrapping_mul(sign));
        add(&mut usage.milli_cpu, needs.resources.taken.milli_cpu);
        add(&mut usage.memory, needs.resources.taken.memory);
        add(&mut usage.ephemeral_storage, needs.resources.taken.ephemeral_storage);
        for (sum, amount) in usage.counted.iter_mut().zip(needs.resources.counted) {
            add(sum, amount);
        }
        add(&mut usage.pods, 1);
        for &(resource, amount) in &needs.resources.taken.scalars {
            if let Some(cell) = self.nodes.resource_cell_index(node, resource) {
                add(&mut self.scalars[cell], amount);
            }
        }
    }

    pub(super) fn usage(&self, node: NodeIndex) -> NodeUsage {
        self.usage[node.get()]
    }

    /// The used amount of a resource on the node; 0 if no node offers it.
    pub(super) fn used_amount(&self, node: NodeIndex, resource: ResourceId) -> i64 {
        self.nodes.resource_cell_index(node, resource).map_or(0, |cell| self.scalars[cell])
    }

    /// The bound pods of a class.
    pub(super) fn pods_of_class(&self, class: PodClassId) -> impl Iterator<Item = BoundPod> {
        let entry = |place: u32| self.bound.get(place as usize);
        let last = entry(self.last_of_class[class.0 as usize]);
        std::iter::successors(last, move |last| entry(last.before)).map(|entry| entry.bound)
    }

    /// All bound pods, in the order in which they were bound.
    pub(super) fn bound_pods(&self) -> impl Iterator<Item = BoundPod> {
        self.bound.iter().filter(|entry| !entry.is_removed).map(|entry| entry.bound)
    }

    /// The nodes on which one of the host ports is in use, sorted.
    pub(super) fn nodes_where_ports_are_in_use(&self, ports: &[HostPort<'_>]) -> Vec<NodeIndex> {
        if ports.is_empty() {
            return Vec::new();
        }
        let busy = self.ports.iter().filter(|&&(_, used)| ports.iter().any(|port| port.conflicts_with(used)));
        let mut nodes: Vec<NodeIndex> = busy.map(|&(node, _)| node).collect();
        nodes.sort_unstable();
        nodes
    }
}
