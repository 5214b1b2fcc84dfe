//! Reasons why a device cannot be allocated to any request: nodes, pools, counters and feature gates.
//!
//! Taints, selectors and existing allocations are not considered here: a request can tolerate a taint, and the claims
//! show which devices are held. A device is available if the allocator could allocate it on at least one node.

use crate::inventory::{Device, Inventory, Slice};
use crate::node::{Node, NodeSelection};
use crate::pools::{PoolState, SharedCounters};
use crate::usage::DeviceUsage;
use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use tollgate_document::doc::Value;

/// Reason why no request can be allocated a device. If the reason differs between nodes, the last variant in
/// this order is reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DeviceObstacle {
    /// No node can use the device.
    NoNode,
    /// The device needs the named feature gate, which is disabled.
    FeatureOff(&'static str),
    /// The ResourceSlice has compatibility groups, which the release does not support.
    CompatibilityGroups,
    /// A newer generation of the device's pool exists.
    Outdated,
    /// The number of slices in the pool differs from `resourceSliceCount`.
    PoolIncomplete,
    /// The pool contains duplicate device or counter set names, or a device consumes a counter that does not
    /// exist.
    PoolInvalid,
    /// Allocated devices have used up the shared counters that this device needs.
    CountersUsedUp,
}

impl fmt::Display for DeviceObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceObstacle::NoNode => "no node can use it",
            DeviceObstacle::FeatureOff(gate) => return write!(f, "the feature gate {gate} is off"),
            DeviceObstacle::CompatibilityGroups => "compatibility groups are not supported",
            DeviceObstacle::Outdated => "the pool has a newer generation",
            DeviceObstacle::PoolIncomplete => "the pool is incomplete",
            DeviceObstacle::PoolInvalid => "the pool is invalid",
            DeviceObstacle::CountersUsedUp => "shared counters are used up",
        })
    }
}

/// True if the selection can match nodes that it does not name: all nodes, or those that a node selector matches.
fn may_match_unnamed_nodes(selection: NodeSelection<'_>) -> bool {
    matches!(selection, NodeSelection::All | NodeSelection::Selector(_))
}

impl<'d> Inventory<'d> {
    /// For each device of the inventory, the reason why no request can be allocated it. `None` means that a
    /// request can get the device, or that a claim already holds it. If `nodes` is `None`, every node named
    /// by a slice is assumed to exist, and every node selector to match some node.
    pub fn obstacles_other_than_holders_and_taints(
        &self,
        usage: &DeviceUsage<'d>,
        nodes: Option<&[Node<'d>]>,
    ) -> Vec<Option<DeviceObstacle>> {
        let by_name: HashMap<&str, Node<'d>, RandomState> =
            nodes.into_iter().flatten().map(|&node| (node.name, node)).collect();
        let mut found = vec![Some(DeviceObstacle::NoNode); self.devices.len()];
        for pool in &self.pools {
            let slices: Vec<(usize, &Slice<'d>)> =
                pool.slices.iter().filter_map(|&index| Some((index, self.slices.get(index)?))).collect();
            let selections =
                || slices.iter().flat_map(|(_, slice)| self.slice_and_device_node_selections(slice));
            let has_wide = selections().any(may_match_unnamed_nodes);
            let has_selector = selections().any(|selection| matches!(selection, NodeSelection::Selector(_)));
            let named = selections().filter_map(|selection| match selection {
                NodeSelection::Name(name) => Some(name),
                _ => None,
            });
            let named: BTreeSet<&str> = named.collect();
            let checked_nodes: Vec<Option<Node<'d>>> = match nodes {
                None => {
                    let named = named.into_iter().map(|name| Some(Node { name, labels: Value::absent() }));
                    named.chain(has_wide.then_some(None)).collect()
                }
                Some(nodes) if has_selector => nodes.iter().copied().map(Some).collect(),
                Some(nodes) => {
                    // For slices of all nodes, those that no slice names are all the same: one stands for them.
                    let unnamed = nodes.iter().copied().find(|node| has_wide && !named.contains(node.name));
                    let named = named.into_iter().filter_map(|name| by_name.get(name).copied());
                    named.chain(unnamed).map(Some).collect()
                }
            };
            self.record_ignored_slices(&slices, &mut found);
            for checked_node in checked_nodes {
                self.record_pool_obstacles(&slices, checked_node, usage, &mut found);
                let mut devices = slices.iter().flat_map(|(_, slice)| slice.devices.clone());
                if devices.all(|device| found.get(device).is_none_or(Option::is_none)) {
                    break;
                }
            }
        }
        found
    }

    /// The node selections of a slice and of those devices that have their own.
    fn slice_and_device_node_selections<'s>(
        &'s self,
        slice: &'s Slice<'d>,
    ) -> impl Iterator<Item = NodeSelection<'d>> + 's {
        let devices = if slice.has_nodes_per_device() { slice.devices.clone() } else { 0..0 };
        let devices = self.devices.get(devices).into_iter().flatten().map(|device| device.nodes);
        std::iter::once(slice.nodes).chain(devices)
    }

    /// Records an obstacle for the devices of slices that the allocator ignores on every node.
    fn record_ignored_slices(&self, slices: &[(usize, &Slice<'d>)], found: &mut [Option<DeviceObstacle>]) {
        for (_, slice) in slices {
            let obstacle = if self.needs_disabled_partitionable_devices(slice) {
                DeviceObstacle::FeatureOff("DRAPartitionableDevices")
            } else if self.ignores_for_compatibility_groups(slice) {
                DeviceObstacle::CompatibilityGroups
            } else {
                continue;
            };
            merge_obstacle_keeping_available(found, slice.devices.clone(), Some(obstacle));
        }
    }

    /// Records for each device of a pool why it cannot be allocated on the given node; `None` is any node that no slice
    /// names, which every node selector is assumed to match.
    fn record_pool_obstacles(
        &self,
        slices: &[(usize, &Slice<'d>)],
        checked_node: Option<Node<'d>>,
        usage: &DeviceUsage<'d>,
        found: &mut [Option<DeviceObstacle>],
    ) {
        let reaches = |selection: NodeSelection<'_>| {
            checked_node.map_or_else(|| may_match_unnamed_nodes(selection), |node| selection.includes(node))
        };
        let reaching: Vec<(usize, &Slice<'d>)> =
            slices.iter().copied().filter(|(_, slice)| self.considers_slice(slice, &reaches)).collect();
        let mut newest = Vec::new();
        for (index, slice) in &reaching {
            self.add_and_keep_newest_generation(&mut newest, *index, slice.generation);
        }
        let old = reaching.iter().filter(|(index, _)| !newest.contains(index));
        old.for_each(|(_, slice)| {
            merge_obstacle_keeping_available(found, slice.devices.clone(), Some(DeviceObstacle::Outdated))
        });
        let pool = self.build_pool_unless_outdated(&newest);
        let unusable = match pool.as_ref().map(|pool| pool.state) {
            None => DeviceObstacle::Outdated,
            Some(PoolState::Incomplete) => DeviceObstacle::PoolIncomplete,
            Some(PoolState::Invalid) => DeviceObstacle::PoolInvalid,
            Some(PoolState::Usable) => {
                let Some(pool) = pool else { return };
                let left = CountersLeft::new(self, &pool.counters, usage);
                for index in pool.devices {
                    let Some(device) = self.devices.get(index) else { continue };
                    let owns_selection =
                        self.slices.get(device.slice).is_some_and(Slice::has_nodes_per_device);
                    if !owns_selection || reaches(device.nodes) {
                        let obstacle = self.obstacle_in_usable_pool(index, device, &left, usage);
                        merge_obstacle_keeping_available(found, index..index + 1, obstacle);
                    }
                }
                return;
            }
        };
        let current = reaching.iter().filter(|(index, _)| newest.contains(index));
        current.for_each(|(_, slice)| {
            merge_obstacle_keeping_available(found, slice.devices.clone(), Some(unusable))
        });
    }

    /// The reason why a device of a complete and valid pool cannot be allocated.
    // upstream v1.37 allocateDevice, isSelectable
    fn obstacle_in_usable_pool(
        &self,
        index: usize,
        device: &Device<'d>,
        left: &CountersLeft<'_>,
        usage: &DeviceUsage<'d>,
    ) -> Option<DeviceObstacle> {
        let features = self.semantics.features;
        if device.has_binding_conditions && !features.binding_conditions {
            return Some(DeviceObstacle::FeatureOff("DRADeviceBindingConditions"));
        }
        if device.consumes.is_empty() || usage.is_held_exclusively(device.key) {
            return None;
        }
        if !features.partitionable_devices {
            return Some(DeviceObstacle::FeatureOff("DRAPartitionableDevices"));
        }
        let is_share = device.is_shareable && features.consumable_capacity;
        let bare_share_counts = self.semantics.bare_share_holds_counters;
        let holds_counters = is_share && usage.has_shares_holding_counters(device.key, bare_share_counts);
        (!holds_counters && !left.suffice_for(index)).then_some(DeviceObstacle::CountersUsedUp)
    }
}

/// The shared counters of a pool, less the amounts that allocated devices consume.
struct CountersLeft<'c> {
    counters: &'c SharedCounters,
    left: Vec<i128>,
    /// Allocated devices consume more of some counter than the slices publish.
    is_overdrawn: bool,
}

impl<'c> CountersLeft<'c> {
    fn new(
        inventory: &Inventory<'_>,
        counters: &'c SharedCounters,
        usage: &DeviceUsage<'_>,
    ) -> CountersLeft<'c> {
        let left = counters.left_after_claims(inventory, usage);
        CountersLeft { counters, is_overdrawn: left.iter().any(|left| *left < 0), left }
    }

    /// True if no counter of the pool drops below zero when the device is allocated.
    // upstream v1.37 checkAvailableCounters
    fn suffice_for(&self, device: usize) -> bool {
        let taken = self.counters.consumed_by_device(device);
        let sum = |counter: usize| -> i128 {
            taken.iter().filter(|(number, _)| *number == counter).map(|(_, amount)| *amount).sum()
        };
        let suffices = |counter: usize| self.left.get(counter).is_some_and(|left| *left >= sum(counter));
        !self.is_overdrawn && taken.iter().all(|(counter, _)| suffices(*counter))
    }
}

/// Merges the obstacle that these devices have on one node into `found`. `None` means available; a device that is
/// available on any node stays available.
fn merge_obstacle_keeping_available(
    found: &mut [Option<DeviceObstacle>],
    devices: std::ops::Range<usize>,
    obstacle: Option<DeviceObstacle>,
) {
    for known in found.get_mut(devices).into_iter().flatten() {
        // `None` is the least.
        *known = match (*known, obstacle) {
            (Some(known), Some(obstacle)) => Some(known.max(obstacle)),
            _ => None,
        };
    }
}
