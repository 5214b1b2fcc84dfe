//! The pools that a node can use: which slices count, whether the pool is complete and valid, and in which order their
//! devices are tried.
//!
//! Nothing here depends on allocated claims. An incomplete or invalid pool provides no devices, but it is remembered,
//! because requests with `allocationMode: All` fail because of it.

use crate::inventory::{CounterAmounts, Inventory, Slice};
use crate::node::{Node, NodeSelection};
use crate::usage::DeviceUsage;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};

/// The pools available on a node, in the order in which the allocator tries them.
#[derive(Debug)]
pub struct NodePools<'d> {
    pub(crate) node: Node<'d>,
    pub(crate) pools: Vec<NodePool<'d>>,
    /// The devices of all usable pools, in the order in which the allocator tries them.
    pub(crate) node_devices: Vec<NodeDevice>,
}

#[derive(Debug)]
pub(crate) struct NodePool<'d> {
    pub(crate) driver: &'d str,
    pub(crate) name: &'d str,
    pub(crate) state: PoolState,
    /// The pool's devices, as a range of [`NodePools::node_devices`].
    pub(crate) node_devices: std::ops::Range<usize>,
    pub(crate) counters: SharedCounters,
}

/// Whether the devices of a pool can be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PoolState {
    Usable,
    /// The number of slices differs from `resourceSliceCount`.
    Incomplete,
    /// Names are not unique, or a device consumes a counter that does not exist.
    Invalid,
}

/// A device that the search can consider on this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeDevice {
    /// Index in [`Inventory::devices`].
    pub(crate) device: usize,
    /// Index in [`NodePools::pools`].
    pub(crate) pool: usize,
    /// False if the device has its own node selection, which does not match this node.
    pub(crate) is_reachable: bool,
}

/// The shared counters of a pool, and the amounts that each device consumes.
#[derive(Default, Debug)]
pub(crate) struct SharedCounters {
    /// Published values of all counters in all counter sets.
    pub(crate) totals: Vec<i128>,
    /// By device: the indices of the counters that it consumes, with the amounts.
    pub(crate) taken: BTreeMap<usize, Vec<(usize, i128)>>,
}

impl SharedCounters {
    /// The counters and amounts that a device consumes.
    pub(crate) fn consumed_by_device(&self, device: usize) -> &[(usize, i128)] {
        self.taken.get(&device).map_or(&[], Vec::as_slice)
    }

    /// The remaining value of each counter after allocated claims; below zero if claims consume more than the
    /// slices publish.
    pub(crate) fn left_after_claims(&self, inventory: &Inventory<'_>, usage: &DeviceUsage<'_>) -> Vec<i128> {
        let mut left = self.totals.clone();
        let is_held = |device: usize| {
            inventory.devices.get(device).is_some_and(|device| usage.is_held_or_shared(device.key))
        };
        for (_, taken) in self.taken.iter().filter(|(device, _)| is_held(**device)) {
            add_counters(&mut left, taken, -1);
        }
        left
    }
}

impl<'d> Inventory<'d> {
    /// The pools that are available on a node.
    // upstream v1.36, v1.37 GatherPools
    pub fn pools_for(&self, node: Node<'d>) -> NodePools<'d> {
        let mut found = Vec::new();
        let mut current: HashMap<usize, usize, RandomState> = HashMap::default();
        let named = self.by_node.get(node.name).map_or(&[][..], Vec::as_slice);
        for &index in named.iter().chain(&self.shared) {
            let reaches = |selection: NodeSelection<'_>| selection.includes(node);
            let Some(slice) = self.slices.get(index).filter(|slice| self.considers_slice(slice, &reaches))
            else {
                continue;
            };
            let at = *current.entry(slice.pool).or_insert_with(|| {
                found.push(Vec::new());
                found.len() - 1
            });
            if let Some(slices) = found.get_mut(at) {
                self.add_and_keep_newest_generation(slices, index, slice.generation);
            }
        }
        let mut pools: Vec<UnsortedPool> =
            found.iter().filter_map(|slices| self.build_pool_unless_outdated(slices)).collect();
        pools.sort_by(|one, other| one.sort_key(self).cmp(&other.sort_key(self)));
        self.merge_into_node_pools(node, pools)
    }

    /// True if the slice is considered on the nodes for which `reaches` returns true.
    pub(crate) fn considers_slice(
        &self,
        slice: &Slice<'_>,
        reaches: &dyn Fn(NodeSelection<'_>) -> bool,
    ) -> bool {
        if self.needs_disabled_partitionable_devices(slice) {
            return false;
        }
        let has_counters_for_all = self.slice_reaches_every_node(&slice.counters);
        !self.ignores_for_compatibility_groups(slice)
            && (has_counters_for_all
                || reaches(slice.nodes)
                || slice.has_nodes_per_device() && {
                    let mut devices = self.devices.get(slice.devices.clone()).into_iter().flatten();
                    devices.any(|device| reaches(device.nodes))
                })
    }

    /// True if the slice uses DRAPartitionableDevices and this feature gate is disabled.
    pub(crate) fn needs_disabled_partitionable_devices(&self, slice: &Slice<'_>) -> bool {
        let is_on = self.semantics.features.partitionable_devices;
        !is_on && (slice.per_device.is_some() || !slice.counters.is_empty())
    }

    /// True if the release ignores the slice, because it has compatibility groups.
    pub(crate) fn ignores_for_compatibility_groups(&self, slice: &Slice<'_>) -> bool {
        self.semantics.ignores_compatibility_groups && slice.has_compatibility_groups
    }

    /// Adds a slice to `slices`, which then has only slices of the newest generation seen so far.
    pub(crate) fn add_and_keep_newest_generation(
        &self,
        slices: &mut Vec<usize>,
        index: usize,
        generation: i64,
    ) {
        let current = slices.first().and_then(|&first| self.slices.get(first)).map(|slice| slice.generation);
        match current {
            Some(current) if generation < current => {}
            Some(current) if generation > current => *slices = vec![index],
            _ => slices.push(index),
        }
    }

    /// The slices of a pool that are not available on the node, if their counters matter.
    // upstream v1.37 checkSlicesInPool
    fn other_nodes_counter_slices_if_complete(
        &self,
        first: &Slice<'_>,
        reaching: &[usize],
    ) -> CounterSlicesOrPoolDefect {
        let is_complete = |count: usize| i64::try_from(count) == Ok(first.announced_slices);
        if is_complete(reaching.len()) {
            return CounterSlicesOrPoolDefect::Slices(Vec::new());
        }
        if self.semantics.slices_stand_alone {
            return CounterSlicesOrPoolDefect::Missing;
        }
        let slices = self.pools.get(first.pool).map_or(&[][..], |pool| &pool.slices);
        let slices = || slices.iter().filter_map(|&index| Some((index, self.slices.get(index)?)));
        if slices().any(|(_, slice)| slice.generation > first.generation) {
            return CounterSlicesOrPoolDefect::Replaced;
        }
        let counted = |slice: &Slice<'_>| {
            slice.generation == first.generation && !self.ignores_for_compatibility_groups(slice)
        };
        if !is_complete(slices().filter(|(_, slice)| counted(slice)).count()) {
            return CounterSlicesOrPoolDefect::Missing;
        }
        let mut known = reaching.to_vec();
        known.sort_unstable();
        let matters = |slice: &Slice<'_>| slice.takes_counters || !slice.counters.is_empty();
        let others = slices()
            .filter(|(index, slice)| counted(slice) && matters(slice) && known.binary_search(index).is_err());
        CounterSlicesOrPoolDefect::Slices(others.map(|(index, _)| index).collect())
    }

    /// Builds a pool from its slices that are available on the node. Returns `None` if a newer generation
    /// exists that is not available on the node.
    pub(crate) fn build_pool_unless_outdated(&self, reaching: &[usize]) -> Option<UnsortedPool> {
        let first = reaching.first().and_then(|&first| self.slices.get(first))?;
        let others = match self.other_nodes_counter_slices_if_complete(first, reaching) {
            CounterSlicesOrPoolDefect::Slices(others) => others,
            CounterSlicesOrPoolDefect::Missing => {
                return Some(UnsortedPool::unusable(first.pool, PoolState::Incomplete));
            }
            CounterSlicesOrPoolDefect::Replaced => return None,
        };
        let mut reaching = reaching.to_vec();
        reaching.sort_by_key(|&index| self.slices.get(index).map(|slice| slice.name));
        let has_counters =
            |index: &usize| self.slices.get(*index).is_some_and(|slice| !slice.counters.is_empty());
        let (sets, reaching) = if self.semantics.slices_stand_alone {
            (reaching.clone(), reaching)
        } else {
            reaching.into_iter().partition(has_counters)
        };
        let (more_sets, others): (Vec<usize>, Vec<usize>) = others.into_iter().partition(has_counters);
        let sets = sets.into_iter().chain(more_sets);
        let sets =
            sets.filter_map(|index| Some((self.slice_if_counters_per_slice(index), self.slices.get(index)?)));
        let devices = self.devices_in_slices(&reaching);
        let counters = self.pool_counters_if_valid(sets, &devices, &self.devices_in_slices(&others));
        match counters.filter(|_| self.names_are_unique(&devices)) {
            None => Some(UnsortedPool::unusable(first.pool, PoolState::Invalid)),
            Some(counters) => {
                let late = |&index: &usize| {
                    self.devices.get(index).is_some_and(|device| device.has_binding_conditions)
                };
                let is_late = devices.iter().any(late);
                Some(UnsortedPool { pool: first.pool, state: PoolState::Usable, devices, counters, is_late })
            }
        }
    }

    fn devices_in_slices(&self, slices: &[usize]) -> Vec<usize> {
        let slices = slices.iter().filter_map(|&index| self.slices.get(index));
        slices.flat_map(|slice| slice.devices.clone()).collect()
    }

    fn names_are_unique(&self, devices: &[usize]) -> bool {
        let names = devices.iter().filter_map(|&index| self.devices.get(index)).map(|device| device.key);
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.is_sorted_by(|one, other| one < other)
    }

    /// The slice within which the counters of a slice are shared; `None` if the whole pool shares them.
    fn slice_if_counters_per_slice(&self, slice: usize) -> Option<usize> {
        self.semantics.slices_stand_alone.then_some(slice)
    }

    /// The counters of a pool. Returns `None` if a counter set is duplicated or a device consumes a counter
    /// that does not exist.
    fn pool_counters_if_valid<'a>(
        &'a self,
        slices: impl Iterator<Item = (Option<usize>, &'a Slice<'d>)>,
        devices: &[usize],
        others: &[usize],
    ) -> Option<SharedCounters>
    where
        'd: 'a,
    {
        let mut known: HashMap<_, HashMap<&str, usize, RandomState>, RandomState> = HashMap::default();
        let mut counters = SharedCounters::default();
        if !self.semantics.features.partitionable_devices {
            return Some(counters);
        }
        let sets = slices.flat_map(|(scope, slice)| slice.counters.iter().map(move |set| (scope, set)));
        for (scope, set) in sets {
            let mut numbers = HashMap::default();
            for &(name, value) in &set.counters {
                numbers.insert(name, counters.totals.len());
                counters.totals.push(value);
            }
            if known.insert((scope, set.name), numbers).is_some() {
                return None;
            }
        }
        for &index in devices.iter().chain(others) {
            let Some(device) = self.devices.get(index).filter(|device| !device.consumes.is_empty()) else {
                continue;
            };
            let mut taken = Vec::new();
            for CounterAmounts { name, counters } in &device.consumes {
                let numbers = known.get(&(self.slice_if_counters_per_slice(device.slice), *name))?;
                for (name, amount) in counters {
                    taken.push((*numbers.get(name)?, *amount));
                }
            }
            counters.taken.insert(index, taken);
        }
        Some(counters)
    }

    /// Lists the devices of all pools one after another, and marks those that the node cannot use.
    fn merge_into_node_pools(&self, node: Node<'d>, gathered: Vec<UnsortedPool>) -> NodePools<'d> {
        let mut node_devices = Vec::new();
        let mut pools = Vec::with_capacity(gathered.len());
        for UnsortedPool { pool, state, devices, counters, .. } in gathered {
            let Some(known) = self.pools.get(pool) else { continue };
            let first = node_devices.len();
            for device in devices {
                let owns_selection = |index: usize| {
                    let device = self.devices.get(index)?;
                    self.slices.get(device.slice)?.has_nodes_per_device().then_some(device.nodes)
                };
                let is_reachable = owns_selection(device).is_none_or(|nodes| nodes.includes(node));
                node_devices.push(NodeDevice { device, pool: pools.len(), is_reachable });
            }
            let node_devices = first..node_devices.len();
            pools.push(NodePool { driver: known.driver, name: known.name, state, node_devices, counters });
        }
        NodePools { node, pools, node_devices }
    }
}

/// The slices of a pool that are not available on the node, or the reason why the pool cannot be used.
enum CounterSlicesOrPoolDefect {
    Slices(Vec<usize>),
    /// The number of slices differs from `resourceSliceCount`.
    Missing,
    /// A newer generation exists.
    Replaced,
}

/// A pool with its devices, before the pools of the node are sorted.
pub(crate) struct UnsortedPool {
    pool: usize,
    pub(crate) state: PoolState,
    pub(crate) devices: Vec<usize>,
    pub(crate) counters: SharedCounters,
    /// True if a device has binding conditions. Such pools are tried last.
    is_late: bool,
}

impl UnsortedPool {
    fn unusable(pool: usize, state: PoolState) -> UnsortedPool {
        UnsortedPool { pool, state, devices: Vec::new(), counters: SharedCounters::default(), is_late: false }
    }

    /// The key by which pools are sorted: pools with binding conditions come last, others by driver and name.
    fn sort_key<'d>(&self, inventory: &Inventory<'d>) -> (bool, &'d str, &'d str) {
        let pool = inventory.pools.get(self.pool);
        (self.is_late, pool.map_or("", |pool| pool.driver), pool.map_or("", |pool| pool.name))
    }
}

/// Adds the amounts that a device consumes to the sums of counters, or subtracts them if `sign` is -1.
pub(crate) fn add_counters(sums: &mut [i128], taken: &[(usize, i128)], sign: i128) {
    for &(index, amount) in taken {
        if let Some(sum) = sums.get_mut(index) {
            *sum = sum.saturating_add(amount.saturating_mul(sign));
        }
    }
}
