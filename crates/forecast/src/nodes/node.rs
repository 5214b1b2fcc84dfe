//! Nodes in the scheduler's order, and their allocatable resources.

#![allow(clippy::indexing_slicing, reason = "the numbers of nodes are places in the list")]

use super::images;
use super::resources::{ResourceAmounts, ResourceId, ResourceNames, ResourceVector};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_allocator::Node;
use tollgate_api::view::{Taint, View};
use tollgate_document::doc::Value;

/// Index of a node in [`Nodes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeIndex(pub(super) u32);

impl NodeIndex {
    /// Position in the scheduler's order of nodes.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// A node with its capacity, taints and images.
#[derive(Clone, Debug)]
pub struct NodeInfo<'d> {
    /// Name and labels of the node.
    pub node: Node<'d>,
    pub taints: Vec<Taint<'d>>,
    /// `spec.unschedulable`: the node is cordoned.
    pub unschedulable: bool,
    pub allocatable: ResourceVector,
    /// Maximum number of pods on the node.
    pub max_pods: i64,
    /// Names and sizes of the images on the node.
    pub(super) images: Vec<(&'d str, i64)>,
}

impl<'d> NodeInfo<'d> {
    pub(super) fn read(object: Value<'d>, names: &mut ResourceNames<'d>) -> NodeInfo<'d> {
        let spec = object.get("spec");
        let allocatable = ResourceAmounts::read(object.get("status").get("allocatable"));
        NodeInfo {
            node: Node::from_object(object),
            taints: spec.get("taints").items().map(Taint::of).collect(),
            unschedulable: spec.get("unschedulable").bool() == Some(true),
            max_pods: allocatable.whole_units("pods"),
            images: images::images_on_node(object.get("status")),
            allocatable: ResourceVector::from_amounts(&allocatable, names),
        }
    }

    /// The value of a label, if the node has it.
    pub fn label(&self, key: &str) -> Option<&'d str> {
        let label = self.node.labels.get(key);
        label.exists().then(|| label.str())
    }

    /// Region and zone. The scheduler's order alternates between zones.
    // upstream v1.37 GetZoneKey
    fn region_and_zone(&self) -> (&'d str, &'d str) {
        let first = |keys: [&str; 2]| keys.into_iter().find_map(|key| self.label(key)).unwrap_or_default();
        (
            first(["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"]),
            first(["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"]),
        )
    }
}

/// The nodes of a cluster at one time.
#[derive(Clone, Default, Debug)]
pub struct Nodes<'d> {
    infos: Vec<NodeInfo<'d>>,
    by_name: HashMap<&'d str, NodeIndex, RandomState>,
    /// Column of each resource in `scalars`, by resource index; `None` if no node offers it.
    columns: Vec<Option<usize>>,
    column_count: usize,
    /// Allocatable amounts of these resources, node by node.
    pub(super) scalars: Vec<i64>,
}

impl<'d> Nodes<'d> {
    /// Creates the list from nodes in the order in which the scheduler learned of them, which is by name when
    /// it starts.
    pub fn new(infos: impl IntoIterator<Item = NodeInfo<'d>>) -> Nodes<'d> {
        let infos = interleave_zones(infos.into_iter().collect());
        let mut nodes = Nodes::default();
        for info in &infos {
            for &(resource, _) in &info.allocatable.scalars {
                let place = resource.0 as usize;
                if nodes.columns.len() <= place {
                    nodes.columns.resize(place + 1, None);
                }
                if nodes.columns[place].is_none() {
                    nodes.columns[place] = Some(nodes.column_count);
                    nodes.column_count += 1;
                }
            }
        }
        nodes.scalars = vec![0; nodes.column_count * infos.len()];
        for (place, info) in infos.iter().enumerate() {
            let index = NodeIndex(u32::try_from(place).unwrap_or(u32::MAX));
            nodes.by_name.insert(info.node.name, index);
            for &(resource, amount) in &info.allocatable.scalars {
                if let Some(cell) = nodes.resource_cell_index(index, resource) {
                    nodes.scalars[cell] = amount;
                }
            }
        }
        nodes.infos = infos;
        nodes
    }

    pub fn len(&self) -> usize {
        self.infos.len()
    }

    pub fn is_empty(&self) -> bool {
        self.infos.is_empty()
    }

    /// Looks up a node by name.
    pub fn find(&self, name: &str) -> Option<NodeIndex> {
        self.by_name.get(name).copied()
    }

    /// The node with this index.
    pub fn get(&self, node: NodeIndex) -> &NodeInfo<'d> {
        &self.infos[node.get()]
    }

    /// Iterates over all nodes in the scheduler's order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeIndex, &NodeInfo<'d>)> {
        (0..).map(NodeIndex).zip(&self.infos)
    }

    /// Index of the amount of a resource on a node in the resource tables; `None` if no node offers the resource.
    pub(super) fn resource_cell_index(&self, node: NodeIndex, resource: ResourceId) -> Option<usize> {
        let column = (*self.columns.get(resource.0 as usize)?)?;
        Some(node.get() * self.column_count + column)
    }

    /// The allocatable amount of a resource on the node.
    pub(super) fn allocatable_amount(&self, node: NodeIndex, resource: ResourceId) -> i64 {
        self.resource_cell_index(node, resource).map_or(0, |cell| self.scalars[cell])
    }

    /// Groups the nodes by the value of a label.
    pub(super) fn group_by_label(&self, key: &str) -> TopologyDomains {
        let mut numbers: HashMap<&str, u32, RandomState> = HashMap::default();
        let of_node = self.infos.iter().map(|info| {
            let value = info.label(key)?;
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            Some(*numbers.entry(value).or_insert(next))
        });
        let of_node = of_node.collect();
        TopologyDomains { of_node, count: numbers.len() }
    }
}

/// The nodes grouped by the value of one label (topology domains).
#[derive(Debug)]
pub(super) struct TopologyDomains {
    /// Index of the domain of each node; `None` if the node does not have the label.
    of_node: Vec<Option<u32>>,
    pub(super) count: usize,
}

impl TopologyDomains {
    /// Index of the topology domain of a node; `None` if the node does not have the label.
    pub(super) fn domain_of_node(&self, node: NodeIndex) -> Option<usize> {
        self.of_node[node.get()].map(|domain| domain as usize)
    }
}

/// Takes one node of each zone in turn, with zones in the order of their first node.
// upstream v1.37 nodeTree.list
fn interleave_zones(infos: Vec<NodeInfo<'_>>) -> Vec<NodeInfo<'_>> {
    let mut zones: HashMap<(&str, &str), (usize, usize), RandomState> = HashMap::default();
    let mut placed: Vec<((usize, usize), NodeInfo<'_>)> = Vec::with_capacity(infos.len());
    for info in infos {
        let next = zones.len();
        let (zone, count) = zones.entry(info.region_and_zone()).or_insert((next, 0));
        placed.push(((*count, *zone), info));
        *count += 1;
    }
    placed.sort_by_key(|&(place, _)| place);
    placed.into_iter().map(|(_, info)| info).collect()
}
