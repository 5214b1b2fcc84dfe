//! The devices of a cluster: ResourceSlices with the taints of DeviceTaintRules, read once and indexed.
//!
//! Nothing here depends on a node or on who holds a device, so one inventory serves all allocations between two
//! changes of slices or rules. Slices are kept in the given order. Upstream's order is random, which matters only for
//! pools whose slices have different values of `resourceSliceCount`.

use crate::capacity::Capacity;
use crate::node::NodeSelection;
use crate::selector::Candidate;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::ops::Range;
use tollgate_api::profile::AllocatorSemantics;
use tollgate_api::profile::Version;
use tollgate_api::view::{self, DeviceBody, Taint, TaintRule, TaintSelector};
use tollgate_formats::quantity::Quantity;

/// Identifies a device by driver, pool and name, as allocation results do. Two slices for different nodes can
/// publish the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceKey(u32);

/// All devices that ResourceSlices publish, with their pools and taints.
#[derive(Debug)]
pub struct Inventory<'d> {
    pub(crate) semantics: AllocatorSemantics,
    pub(crate) slices: Vec<Slice<'d>>,
    pub(crate) devices: Vec<Device<'d>>,
    /// The pools, each with its slices.
    pub(crate) pools: Vec<Pool<'d>>,
    /// Indices of the slices with `spec.nodeName`, by node.
    pub(crate) by_node: HashMap<&'d str, Vec<usize>, RandomState>,
    /// Indices of all other slices.
    pub(crate) shared: Vec<usize>,
    keys: HashMap<(&'d str, &'d str, &'d str), DeviceKey, RandomState>,
}

/// A pool of devices: its driver and name, and the indices of its slices.
#[derive(Debug)]
pub(crate) struct Pool<'d> {
    pub(crate) driver: &'d str,
    pub(crate) name: &'d str,
    pub(crate) slices: Vec<usize>,
}

/// A ResourceSlice with the fields that the allocator reads.
#[derive(Debug)]
pub(crate) struct Slice<'d> {
    pub(crate) name: &'d str,
    /// Index in [`Inventory::pools`].
    pub(crate) pool: usize,
    pub(crate) generation: i64,
    /// `resourceSliceCount`: the number of slices that the pool has according to this slice.
    pub(crate) announced_slices: i64,
    pub(crate) nodes: NodeSelection<'d>,
    /// `spec.perDeviceNodeSelection`, if set.
    pub(crate) per_device: Option<bool>,
    pub(crate) devices: Range<usize>,
    pub(crate) counters: Vec<CounterAmounts<'d>>,
    /// True if any device of the slice consumes shared counters.
    pub(crate) takes_counters: bool,
    pub(crate) has_compatibility_groups: bool,
}

/// A counter set of a slice, or the counters of a set that a device consumes.
#[derive(Debug)]
pub(crate) struct CounterAmounts<'d> {
    pub(crate) name: &'d str,
    pub(crate) counters: Vec<(&'d str, i128)>,
}

/// A device of a ResourceSlice, with its nodes, capacities, counters and taints.
#[derive(Debug)]
pub(crate) struct Device<'d> {
    pub(crate) key: DeviceKey,
    pub(crate) slice: usize,
    pub(crate) name: &'d str,
    pub(crate) body: DeviceBody<'d>,
    pub(crate) nodes: NodeSelection<'d>,
    pub(crate) capacities: Box<[Capacity<'d>]>,
    /// The shared counters that the device consumes.
    pub(crate) consumes: Box<[CounterAmounts<'d>]>,
    /// The taints from the slice, followed by the taints from DeviceTaintRules.
    pub(crate) taints: Vec<Taint<'d>>,
    /// Names of the DeviceTaintRules that added the last taints in `taints`, in the same order.
    pub(crate) tainting_rules: Vec<&'d str>,
    pub(crate) is_shareable: bool,
    pub(crate) has_binding_conditions: bool,
    pub(crate) binds_to_node: bool,
}

impl<'d> Inventory<'d> {
    /// Builds an inventory from ResourceSlices, each with its API version, and the DeviceTaintRules that
    /// taint their devices.
    pub fn new(
        semantics: AllocatorSemantics,
        slices: impl IntoIterator<Item = (Version, view::Slice<'d>)>,
        rules: impl IntoIterator<Item = TaintRule<'d>>,
    ) -> Inventory<'d> {
        Inventory::with_class_and_cel_rules(semantics, slices, rules, |_, _| true)
    }

    /// Like [`Inventory::new`], for releases whose DeviceTaintRules can select devices by class and by CEL.
    /// `selects` evaluates those selectors, for devices that match the rule's driver, pool and device.
    pub fn with_class_and_cel_rules(
        semantics: AllocatorSemantics,
        slices: impl IntoIterator<Item = (Version, view::Slice<'d>)>,
        rules: impl IntoIterator<Item = TaintRule<'d>>,
        mut selects: impl FnMut(TaintSelector<'d>, Candidate<'d>) -> bool,
    ) -> Inventory<'d> {
        let mut inventory = Inventory {
            semantics,
            slices: Vec::new(),
            devices: Vec::new(),
            pools: Vec::new(),
            by_node: HashMap::default(),
            shared: Vec::new(),
            keys: HashMap::default(),
        };
        let mut pools = HashMap::with_hasher(RandomState::default());
        for (version, slice) in slices {
            let id = (slice.spec().driver(), slice.spec().pool().name());
            let pool = *pools.entry(id).or_insert_with(|| {
                inventory.pools.push(Pool { driver: id.0, name: id.1, slices: Vec::new() });
                inventory.pools.len() - 1
            });
            inventory.add_slice(version, slice, pool);
        }
        if semantics.features.device_taint_rules {
            rules.into_iter().for_each(|rule| inventory.add_rule_taint(rule, &mut selects));
        }
        inventory
    }

    /// The behaviors of the Kubernetes release.
    pub fn semantics(&self) -> &AllocatorSemantics {
        &self.semantics
    }

    /// The pools that only one node can use, as driver, pool name and node. All slices of such a pool name
    /// this node.
    pub fn single_node_pools(&self) -> impl Iterator<Item = (&'d str, &'d str, &'d str)> {
        self.pools.iter().filter_map(|pool| {
            let mut nodes = pool.slices.iter().map(|&slice| match self.slices.get(slice)?.nodes {
                NodeSelection::Name(name) => Some(name),
                _ => None,
            });
            let node = nodes.next()??;
            nodes.all(|other| other == Some(node)).then_some((pool.driver, pool.name, node))
        })
    }

    /// Looks up a device by name. Returns `None` if no slice publishes it.
    pub fn device_key(&self, driver: &str, pool: &str, device: &str) -> Option<DeviceKey> {
        self.keys.get(&(driver, pool, device)).copied()
    }

    fn add_slice(&mut self, version: Version, slice: view::Slice<'d>, pool: usize) {
        let spec = slice.spec();
        let index = self.slices.len();
        let first = self.devices.len();
        for device in spec.devices().iter() {
            let id = (spec.driver(), spec.pool().name(), device.name());
            let next = DeviceKey(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
            let key = *self.keys.entry(id).or_insert(next);
            self.devices.push(Device::new(key, index, device.name(), device.body(version)));
        }
        let groups = |device: &Device<'_>| {
            device.body.consumes_counters().iter().any(|taken| !taken.compatibility_groups().is_empty())
        };
        let has_compatibility_groups = self.devices.iter().skip(first).any(groups);
        let takes_counters = self.devices.iter().skip(first).any(|device| !device.consumes.is_empty());
        let counters: Vec<CounterAmounts<'_>> = spec
            .shared_counters()
            .iter()
            .map(|set| CounterAmounts { name: set.name(), counters: counter_amounts(set.counters()) })
            .collect();
        let nodes = NodeSelection::new(
            spec.node_name_if_set_in_version(version),
            spec.all_nodes_if_set_in_version(version),
            spec.node_selector(),
        );
        match nodes {
            NodeSelection::Name(_) if self.slice_reaches_every_node(&counters) => self.shared.push(index),
            NodeSelection::Name(name) => self.by_node.entry(name).or_default().push(index),
            _ => self.shared.push(index),
        }
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.slices.push(index);
        }
        self.slices.push(Slice {
            name: slice.metadata().name(),
            pool,
            generation: spec.pool().generation(),
            announced_slices: spec.pool().resource_slice_count(),
            nodes,
            per_device: spec.per_device_node_selection(),
            devices: first..self.devices.len(),
            counters,
            takes_counters,
            has_compatibility_groups,
        });
    }

    /// True if a slice with these counter sets is treated as available on every node.
    pub(crate) fn slice_reaches_every_node(&self, counters: &[CounterAmounts<'_>]) -> bool {
        self.semantics.counter_slices_reach_every_node && !counters.is_empty()
    }

    /// Adds the taint of a DeviceTaintRule to every device that the rule selects.
    // upstream v1.37 Tracker.applyPatches
    fn add_rule_taint(
        &mut self,
        rule: TaintRule<'d>,
        selects: &mut impl FnMut(TaintSelector<'d>, Candidate<'d>) -> bool,
    ) {
        let spec = rule.spec();
        let selector = spec.device_selector();
        if selector.is_none() && !self.semantics.rule_without_selector_taints_all {
            return;
        }
        let names = selector.map_or((None, None, None), |by| (by.driver(), by.pool(), by.device()));
        let fits = |wanted: Option<&str>, is: &str| wanted.is_none_or(|wanted| wanted == is);
        for slice in &self.slices {
            let Some(pool) = self.pools.get(slice.pool) else { continue };
            if !fits(names.0, pool.driver) || !fits(names.1, pool.name) {
                continue;
            }
            let devices = self.devices.get_mut(slice.devices.clone()).into_iter().flatten();
            for (index, device) in slice.devices.clone().zip(devices) {
                let candidate = || device.candidate(pool, index);
                if fits(names.2, device.name) && selector.is_none_or(|by| selects(by, candidate())) {
                    device.taints.push(spec.taint());
                    device.tainting_rules.push(rule.metadata().name());
                }
            }
        }
    }

    /// The device at this index, in the form that selectors are evaluated against.
    pub(crate) fn candidate(&self, index: usize) -> Option<Candidate<'d>> {
        let device = self.devices.get(index)?;
        let pool = self.pools.get(self.slices.get(device.slice)?.pool)?;
        Some(device.candidate(pool, index))
    }
}

impl Slice<'_> {
    /// True if each device of the slice has its own node selection.
    pub(crate) fn has_nodes_per_device(&self) -> bool {
        self.per_device == Some(true)
    }
}

impl<'d> Device<'d> {
    fn candidate(&self, pool: &Pool<'d>, index: usize) -> Candidate<'d> {
        Candidate { driver: pool.driver, pool: pool.name, name: self.name, body: self.body, index }
    }

    fn new(key: DeviceKey, slice: usize, name: &'d str, body: DeviceBody<'d>) -> Device<'d> {
        let consumed = body.consumes_counters().iter();
        Device {
            key,
            slice,
            name,
            body,
            nodes: NodeSelection::new(body.node_name(), body.all_nodes(), body.node_selector()),
            capacities: body.capacity().iter().map(|(name, value)| Capacity::new(name, value)).collect(),
            consumes: consumed
                .map(|taken| CounterAmounts {
                    name: taken.counter_set(),
                    counters: counter_amounts(taken.counters()),
                })
                .collect(),
            taints: body.taints().iter().collect(),
            tainting_rules: Vec::new(),
            is_shareable: body.allow_multiple_allocations() == Some(true),
            has_binding_conditions: !body.binding_conditions().is_empty(),
            binds_to_node: body.0.get("bindsToNode").bool() == Some(true),
        }
    }
}

fn counter_amounts<'d>(counters: view::Map<'d, view::Counter<'d>>) -> Vec<(&'d str, i128)> {
    let amount = |counter: view::Counter<'d>| {
        view::quantity(counter.0.get("value")).map_or(0, |amount: Quantity<'_>| amount.nano_value())
    };
    counters.iter().map(|(name, counter)| (name, amount(counter))).collect()
}
