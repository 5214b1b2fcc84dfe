//! On which nodes the devices of a slice or an allocation are, as far as these name them.
//!
//! A slice states the nodes once for all of its devices, or for each device. Node selectors by label are not resolved,
//! because a snapshot contains no nodes.

use super::interner::{InternedStr, StringInterner};
use tollgate_api::profile::Version;
use tollgate_api::view::{NodeRequirement, NodeSelector, SliceSpec};

/// The nodes that can use one or several devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NodeSet {
    /// These nodes, sorted.
    Nodes(Box<[InternedStr]>),
    /// Nodes that the slice does not name: all nodes, or nodes selected by labels.
    Elsewhere,
}

/// The nodes that can use the devices of a slice.
#[derive(Debug)]
pub(super) enum SlicePlacement {
    /// The same nodes for all devices.
    Slice(NodeSet),
    /// The nodes of each device, sorted by device name.
    PerDevice(Box<[(InternedStr, NodeSet)]>),
}

impl SlicePlacement {
    /// Reads from a ResourceSlice which nodes can use its devices.
    pub(super) fn from_slice(
        spec: SliceSpec<'_>,
        version: Version,
        names: &mut StringInterner,
    ) -> SlicePlacement {
        if spec.per_device_node_selection() != Some(true) {
            return SlicePlacement::Slice(read_node_set(
                spec.node_name_if_set_in_version(version),
                spec.node_selector(),
                names,
            ));
        }
        let devices = spec.devices().iter().map(|device| {
            let body = device.body(version);
            (names.intern(device.name()), read_node_set(body.node_name(), body.node_selector(), names))
        });
        let mut devices: Vec<(InternedStr, NodeSet)> = devices.collect();
        devices.sort_by(|(one, _), (other, _)| one.cmp(other));
        SlicePlacement::PerDevice(devices.into())
    }

    /// Returns the nodes that can use a device; [`NodeSet::Elsewhere`] if the slice does not list it.
    pub(super) fn nodes_of_device(&self, device: &str) -> &NodeSet {
        match self {
            SlicePlacement::Slice(place) => place,
            SlicePlacement::PerDevice(places) => {
                let found = places.binary_search_by(|(name, _)| (**name).cmp(device));
                found.ok().and_then(|at| places.get(at)).map_or(&NodeSet::Elsewhere, |(_, place)| place)
            }
        }
    }
}

/// Returns the only node that an allocation names; `None` if there may be several.
pub(super) fn only_node_of_allocation(
    selector: Option<NodeSelector<'_>>,
    names: &mut StringInterner,
) -> Option<InternedStr> {
    match node_names_if_every_term_names_some(selector?)?.as_slice() {
        [node] => Some(names.intern(node)),
        _ => None,
    }
}

/// Returns the nodes described by a node name or node selector. The node name takes precedence.
fn read_node_set(
    node: Option<&str>,
    selector: Option<NodeSelector<'_>>,
    names: &mut StringInterner,
) -> NodeSet {
    let nodes = match (node, selector) {
        (Some(node), _) => Some(vec![node]),
        (None, Some(selector)) => node_names_if_every_term_names_some(selector),
        (None, None) => None,
    };
    let Some(mut nodes) = nodes else { return NodeSet::Elsewhere };
    nodes.sort_unstable();
    nodes.dedup();
    NodeSet::Nodes(nodes.into_iter().map(|node| names.intern(node)).collect())
}

/// Returns the nodes that a selector names. `None` if one of its terms names none, because a node has to match only one
/// term.
fn node_names_if_every_term_names_some(selector: NodeSelector<'_>) -> Option<Vec<&str>> {
    let is_name = |requirement: &NodeRequirement<'_>, key: &str| {
        requirement.key() == key && requirement.operator() == "In"
    };
    let mut nodes = Vec::new();
    for term in selector.terms().iter() {
        let by_field = term.match_fields().iter().find(|field| is_name(field, "metadata.name"));
        let by_label =
            || term.match_expressions().iter().find(|label| is_name(label, "kubernetes.io/hostname"));
        nodes.extend(by_field.or_else(by_label)?.values().iter());
    }
    (!nodes.is_empty()).then_some(nodes)
}
