//! Why no request can get a device, whatever it asks for: nodes, pools, counters and feature gates.
//!
//! Taints, selectors, and a claim that has the device already are not looked at here: a request may tolerate a taint, and
//! who holds a device is known from the claims. A device is available if there is one node on which a search could take it.

use crate::inventory::{Device, DeviceKey, Inventory, Slice};
use crate::node::{Node, NodeSelection};
use crate::pools::{Counters, PoolState};
use crate::usage::Usage;
use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use tollgate_document::doc::Value;

/// Why no request can get a device. If nodes differ, the last of these that applies on any of them is reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Obstacle {
    /// No node can use it.
    NoNode,
    /// It needs a feature that is off.
    FeatureOff(&'static str),
    /// Its slice has compatibility groups, which the release does not support.
    CompatibilityGroups,
    /// There is a newer generation of its pool.
    Outdated,
    /// The pool has fewer slices than announced, or more.
    PoolIncomplete,
    /// The pool has a device or counter set twice, or devices that take counters that do not exist.
    PoolInvalid,
    /// Other devices have taken the shared counters that it needs.
    CountersUsedUp,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::NoNode => "no node can use it",
            Obstacle::FeatureOff(gate) => return write!(f, "the feature gate {gate} is off"),
            Obstacle::CompatibilityGroups => "compatibility groups are not supported",
            Obstacle::Outdated => "the pool has a newer generation",
            Obstacle::PoolIncomplete => "the pool is incomplete",
            Obstacle::PoolInvalid => "the pool is invalid",
            Obstacle::CountersUsedUp => "shared counters are used up",
        })
    }
}

/// From where a pool is looked at: which node selections reach.
#[derive(Clone, Copy)]
enum Viewpoint<'d> {
    Node(Node<'d>),
    /// Some node that no slice names. Node selectors count as matching.
    Elsewhere,
}

impl Viewpoint<'_> {
    fn is_reached_by(self, selection: NodeSelection<'_>) -> bool {
        match (self, selection) {
            (Viewpoint::Node(node), selection) => selection.reaches(node),
            (Viewpoint::Elsewhere, selection) => {
                matches!(selection, NodeSelection::All | NodeSelection::Selector(_))
            }
        }
    }
}

impl<'d> Inventory<'d> {
    /// Why no request can get each device, by its number; `None` for those that a request can get, or that a claim has.
    /// Where the nodes are not known, each node that a slice names counts as one, and each node selector as matching some
    /// node.
    pub fn obstacles(&self, usage: &Usage<'d>, nodes: Option<&[Node<'d>]>) -> Vec<Option<Obstacle>> {
        let by_name: HashMap<&str, Node<'d>, RandomState> =
            nodes.into_iter().flatten().map(|&node| (node.name, node)).collect();
        let mut found = vec![Some(Obstacle::NoNode); self.devices.len()];
        for pool in &self.pools {
            let slices: Vec<(usize, &Slice<'d>)> =
                pool.slices.iter().filter_map(|&index| Some((index, self.slices.get(index)?))).collect();
            let selections = || slices.iter().flat_map(|(_, slice)| self.selections(slice));
            let is_wide = |selection| matches!(selection, NodeSelection::All | NodeSelection::Selector(_));
            let has_wide = selections().any(is_wide);
            let named = selections().filter_map(|selection| match selection {
                NodeSelection::Name(name) => Some(name),
                _ => None,
            });
            let named: BTreeSet<&str> = named.collect();
            let viewpoints: Vec<Viewpoint<'d>> = match nodes {
                None => {
                    let named = named.into_iter().map(|name| Node { name, labels: Value::absent() });
                    named.map(Viewpoint::Node).chain(has_wide.then_some(Viewpoint::Elsewhere)).collect()
                }
                Some(nodes) if has_wide => nodes.iter().copied().map(Viewpoint::Node).collect(),
                Some(_) => {
                    let known = named.into_iter().filter_map(|name| by_name.get(name).copied());
                    known.map(Viewpoint::Node).collect()
                }
            };
            self.note_refused(&slices, &mut found);
            for viewpoint in viewpoints {
                self.look_at_pool(&slices, viewpoint, usage, &mut found);
                let mut devices = slices.iter().flat_map(|(_, slice)| slice.devices.clone());
                if devices.all(|device| found.get(device).is_none_or(Option::is_none)) {
                    break;
                }
            }
        }
        found
    }

    /// The node selections of a slice and, where they have their own, of its devices.
    fn selections<'s>(&'s self, slice: &'s Slice<'d>) -> impl Iterator<Item = NodeSelection<'d>> + 's {
        let devices = if slice.selects_per_device() { slice.devices.clone() } else { 0..0 };
        let devices = self.devices.get(devices).into_iter().flatten().map(|device| device.nodes);
        std::iter::once(slice.nodes).chain(devices)
    }

    /// Notes slices that are not looked at on any node.
    fn note_refused(&self, slices: &[(usize, &Slice<'d>)], found: &mut [Option<Obstacle>]) {
        for (_, slice) in slices {
            let obstacle = if self.needs_partitionable_devices(slice) {
                Obstacle::FeatureOff("DRAPartitionableDevices")
            } else if self.is_ignored(slice) {
                Obstacle::CompatibilityGroups
            } else {
                continue;
            };
            note(found, slice.devices.clone(), Some(obstacle));
        }
    }

    /// Notes for the devices of a pool what keeps them from being taken on a node.
    fn look_at_pool(
        &self,
        slices: &[(usize, &Slice<'d>)],
        viewpoint: Viewpoint<'d>,
        usage: &Usage<'d>,
        found: &mut [Option<Obstacle>],
    ) {
        let reaches = |selection: NodeSelection<'_>| viewpoint.is_reached_by(selection);
        let reaching: Vec<(usize, &Slice<'d>)> =
            slices.iter().copied().filter(|(_, slice)| self.is_relevant(slice, &reaches)).collect();
        let mut newest = Vec::new();
        for (index, slice) in &reaching {
            self.keep_newest(&mut newest, *index, slice.generation);
        }
        let old = reaching.iter().filter(|(index, _)| !newest.contains(index));
        old.for_each(|(_, slice)| note(found, slice.devices.clone(), Some(Obstacle::Outdated)));
        let pool = self.build_pool(&newest);
        let unusable = match pool.as_ref().map(|pool| pool.state) {
            None => Obstacle::Outdated,
            Some(PoolState::Incomplete) => Obstacle::PoolIncomplete,
            Some(PoolState::Invalid) => Obstacle::PoolInvalid,
            Some(PoolState::Usable) => {
                let Some(pool) = pool else { return };
                let left = CountersLeft::new(self, &pool.counters, usage);
                for index in pool.devices {
                    let Some(device) = self.devices.get(index) else { continue };
                    let owns_selection = self.slices.get(device.slice).is_some_and(Slice::selects_per_device);
                    if !owns_selection || reaches(device.nodes) {
                        let obstacle = self.obstacle_of(index, device, &left, usage);
                        note(found, index..index + 1, obstacle);
                    }
                }
                return;
            }
        };
        let current = reaching.iter().filter(|(index, _)| newest.contains(index));
        current.for_each(|(_, slice)| note(found, slice.devices.clone(), Some(unusable)));
    }

    /// What keeps a device of a usable pool from being taken.
    // upstream v1.37 allocateDevice, isSelectable
    fn obstacle_of(
        &self,
        index: usize,
        device: &Device<'d>,
        left: &CountersLeft<'_>,
        usage: &Usage<'d>,
    ) -> Option<Obstacle> {
        let features = self.semantics.features;
        if device.has_binding_conditions && !features.binding_conditions {
            return Some(Obstacle::FeatureOff("DRADeviceBindingConditions"));
        }
        if device.consumes.is_empty() || usage.is_taken(device.key) {
            return None;
        }
        if !features.partitionable_devices {
            return Some(Obstacle::FeatureOff("DRAPartitionableDevices"));
        }
        let is_share = device.is_shareable && features.consumable_capacity;
        let holds_counters = is_share && self.has_taken_counters(device.key, usage);
        (!holds_counters && !left.suffice_for(index)).then_some(Obstacle::CountersUsedUp)
    }

    fn has_taken_counters(&self, device: DeviceKey, usage: &Usage<'d>) -> bool {
        usage.is_shared(device, self.semantics.bare_share_holds_counters)
    }
}

/// The shared counters of a pool that allocated devices leave.
struct CountersLeft<'c> {
    counters: &'c Counters,
    left: Vec<i128>,
    /// Allocated devices have taken more of some counter than there is.
    is_overdrawn: bool,
}

impl<'c> CountersLeft<'c> {
    fn new(inventory: &Inventory<'_>, counters: &'c Counters, usage: &Usage<'_>) -> CountersLeft<'c> {
        let left = counters.left_by(inventory, usage);
        CountersLeft { counters, is_overdrawn: left.iter().any(|left| *left < 0), left }
    }

    /// Whether no counter of the pool is below zero after the device has taken its own.
    // upstream v1.37 checkAvailableCounters
    fn suffice_for(&self, device: usize) -> bool {
        let taken = self.counters.taken_by(device);
        let sum = |counter: usize| -> i128 {
            taken.iter().filter(|(number, _)| *number == counter).map(|(_, amount)| *amount).sum()
        };
        let suffices = |counter: usize| self.left.get(counter).is_some_and(|left| *left >= sum(counter));
        !self.is_overdrawn && taken.iter().all(|(counter, _)| suffices(*counter))
    }
}

/// Notes what was found about devices on one node. What a request can get on any node stays available.
fn note(found: &mut [Option<Obstacle>], devices: std::ops::Range<usize>, obstacle: Option<Obstacle>) {
    for known in found.get_mut(devices).into_iter().flatten() {
        // `None` is the least.
        *known = match (*known, obstacle) {
            (Some(known), Some(obstacle)) => Some(known.max(obstacle)),
            _ => None,
        };
    }
}
