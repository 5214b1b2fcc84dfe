//! Partitions of devices: devices that consume shared counters of others, such as the MIG partitions of a GPU.
//!
//! A taint on a GPU leaves its partitions allocatable, because the scheduler compares taints device by device. A device
//! is a partition of selected devices of its pool if
//!
//! - it consumes only counters that they consume, and of each no more than one of them: a GPU is not a partition of its
//!   partitions;
//! - it cannot be allocated together with one of them, because some counter is too small for both: partitions that use
//!   different parts of a GPU are not partitions of each other. Without the counter sets, this is not checked.
//!
//! Invariant: time is linear in the number of counters that devices consume.
// kubernetes-sigs/dra-driver-nvidia-gpu#1316

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::details::is_blocking_effect;
use super::record::{CounterConsumption, Rule, Slice};
use super::selection::DevicesByRule;
use super::slots::Slot;
use super::snapshot::{Pool, Snapshot};
use super::target::DeviceNameSelector;
use super::{ChangedSlice, ImpactQuery, ProposedChange};

/// A device that is a part of another one, such as a MIG partition of a GPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Partition<'s> {
    pub driver: &'s str,
    pub pool: &'s str,
    pub device: &'s str,
}

/// Writes `driver/pool/device`.
impl std::fmt::Display for Partition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// Maximum number of partitions that a sentence names.
const MAX_NAMED_PARTITIONS: usize = 5;

/// Returns the partitions of the devices that the change taints, except partitions that are tainted as well.
pub(super) fn partitions_left_untainted_by_change<'s>(
    query: ImpactQuery<'s>,
    selections: &DevicesByRule<'s>,
) -> Vec<Partition<'s>> {
    let snapshot = query.snapshot;
    let stored: Vec<&Rule> = snapshot
        .rules()
        .filter(|rule| is_blocking_effect(&rule.taint.effect))
        .filter(|rule| !matches!(query.change, ProposedChange::Rule(proposed) if proposed.name == rule.name))
        .collect();
    let stored_selections = DevicesByRule::new(snapshot, &stored, query.profile);
    let is_tainted_by_rule = |slot: Slot, partition: &Partition<'_>| {
        let by = |rule: &&Rule| rule_applies_to_device(rule, &stored_selections, slot, partition);
        stored.iter().any(|rule| by(rule) && !stored_selections.has_unevaluated_criteria(rule))
    };
    let is_selected = |slot: Slot, device: &CounterConsumingDevice<'_>| match query.change {
        ProposedChange::Rule(rule) => rule_applies_to_device(rule, selections, slot, &device.names),
        ProposedChange::Slice(change) => is_tainted_by_change(change, device),
    };
    find_partitions(snapshot, is_selected, |slot, device| {
        device.is_tainted || is_tainted_by_rule(slot, &device.names)
    })
}

/// Returns the devices that are parts of the devices with these names, such as the MIG partitions of a GPU, tainted or
/// not. The named devices are not among them. For a named partition, neither its GPU nor the other partitions of that
/// GPU are returned.
pub(super) fn partitions_of_selected_devices<'s>(
    snapshot: &'s Snapshot,
    targets: &[DeviceNameSelector],
) -> Vec<Partition<'s>> {
    let is_selected = |_: Slot, device: &CounterConsumingDevice<'_>| {
        let Partition { driver, pool, device } = device.names;
        targets.iter().any(|names| names.matches(driver, pool, device))
    };
    find_partitions(snapshot, is_selected, |_, _| false)
}

/// Returns a sentence that names the first partitions that stay allocatable; `None` if there are none.
pub(super) fn partitions_note(query: ImpactQuery<'_>, partitions: &[Partition<'_>]) -> Option<String> {
    let (selected, is_blocking) = match query.change {
        ProposedChange::Rule(rule) => ("selected", is_blocking_effect(&rule.taint.effect)),
        ProposedChange::Slice(_) => ("tainted", true),
    };
    let (subject, verb) = match partitions.len() {
        0 => return None,
        1 => ("1 partition".to_owned(), "stays"),
        count => (format!("{count} partitions"), "stay"),
    };
    let stay = if is_blocking {
        format!("{verb} allocatable")
    } else {
        "would stay allocatable with effect NoSchedule or NoExecute".to_owned()
    };
    let named: Vec<String> = partitions.iter().take(MAX_NAMED_PARTITIONS).map(ToString::to_string).collect();
    let more = match partitions.len().saturating_sub(MAX_NAMED_PARTITIONS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{subject} of the {selected} devices {stay}: {}{more}; `tollgate taint --with-partitions` prints rules that \
         include partitions",
        named.join(", ")
    ))
}

/// A device that consumes shared counters, and what it consumes.
struct CounterConsumingDevice<'s> {
    /// Driver, pool and name of the device.
    names: Partition<'s>,
    slice: &'s str,
    /// True if its slice taints it.
    is_tainted: bool,
    consumption: &'s [CounterConsumption],
}

/// True if the scheduler applies the rule to the device; a rule without a selector applies to every device.
fn rule_applies_to_device(
    rule: &Rule,
    selections: &DevicesByRule<'_>,
    slot: Slot,
    device: &Partition<'_>,
) -> bool {
    rule.selector.as_ref().is_none_or(|selector| {
        selector.matches_driver_pool_device(device.driver, device.pool, device.device)
            && selections.criteria_may_select_device(rule, slot, device.device)
    })
}

/// True if a changed slice taints the device: as its driver publishes it, or through the patch that changes it.
fn is_tainted_by_change(change: &ChangedSlice, device: &CounterConsumingDevice<'_>) -> bool {
    *change.name == *device.slice
        && match &change.patch {
            None => device.is_tainted,
            Some(patch) => patch.devices.iter().any(|name| **name == *device.names.device),
        }
}

/// Returns the partitions of selected devices that are neither selected nor `excluded`, sorted, each once.
fn find_partitions<'s>(
    snapshot: &'s Snapshot,
    is_selected: impl Fn(Slot, &CounterConsumingDevice<'s>) -> bool,
    excluded: impl Fn(Slot, &CounterConsumingDevice<'s>) -> bool,
) -> Vec<Partition<'s>> {
    let mut found = BTreeSet::new();
    for slot in snapshot.drivers.values().flat_map(|pools| pools.values()) {
        let Some(pool) = snapshot.pools.get_even_if_free(*slot) else { continue };
        let (selected, others): (Vec<CounterConsumingDevice<'s>>, Vec<_>) =
            counter_consuming_devices(pool).partition(|device| is_selected(*slot, device));
        if selected.is_empty() || others.is_empty() {
            continue;
        }
        let (most, available) = (max_consumption_per_counter(&selected), shared_counter_totals(pool));
        let is_partition = |device: &&CounterConsumingDevice<'_>| {
            consumes_at_most(device, &most) && cannot_be_allocated_together(device, &most, &available)
        };
        let partitions = others.iter().filter(is_partition);
        found.extend(partitions.filter(|device| !excluded(*slot, device)).map(|device| device.names));
    }
    found.into_iter().collect()
}

/// Returns the devices of a pool that consume counters, with all that each consumes.
fn counter_consuming_devices(pool: &Pool) -> impl Iterator<Item = CounterConsumingDevice<'_>> {
    pool.current_slices().flat_map(|slice: &Slice| {
        slice.consumption.chunk_by(|one, other| one.device == other.device).filter_map(|consumption| {
            let first = consumption.first()?;
            let device = slice.devices.get(first.device)?;
            Some(CounterConsumingDevice {
                names: Partition { driver: &slice.driver, pool: &slice.pool, device: &device.name },
                slice: &slice.name,
                is_tainted: first.is_tainted,
                consumption,
            })
        })
    })
}

/// Amounts of shared counters in billionths, by counter set and counter.
type CounterAmounts<'s> = HashMap<(&'s str, &'s str), i128, RandomState>;

/// Returns the maximum amount of each counter that any of the devices consumes.
fn max_consumption_per_counter<'s>(devices: &[CounterConsumingDevice<'s>]) -> CounterAmounts<'s> {
    let mut most = CounterAmounts::default();
    for (counter, amount) in devices.iter().flat_map(consumed_counters) {
        let known = most.entry(counter).or_default();
        *known = amount.max(*known);
    }
    most
}

/// Returns the size of each shared counter of a pool.
fn shared_counter_totals(pool: &Pool) -> CounterAmounts<'_> {
    let sets = pool.current_slices().flat_map(|slice| &*slice.counter_sets);
    sets.flat_map(|(set, counters)| counters.iter().map(move |(name, amount)| ((&**set, &**name), *amount)))
        .collect()
}

/// True if the device consumes only counters in `most`, and of none more than stated there.
fn consumes_at_most(device: &CounterConsumingDevice<'_>, most: &CounterAmounts<'_>) -> bool {
    consumed_counters(device).all(|(counter, amount)| most.get(&counter).is_some_and(|most| amount <= *most))
}

/// True if the device cannot be allocated together with a device that consumes `most`, because some counter is too
/// small for both, or if the size of a counter is not known.
fn cannot_be_allocated_together(
    device: &CounterConsumingDevice<'_>,
    most: &CounterAmounts<'_>,
    available: &CounterAmounts<'_>,
) -> bool {
    consumed_counters(device).any(|(counter, amount)| {
        let most = most.get(&counter).copied().unwrap_or_default();
        available.get(&counter).is_none_or(|available| amount.saturating_add(most) > *available)
    })
}

/// Returns the shared counters that a device consumes: counter set, counter and amount.
fn consumed_counters<'s>(
    device: &CounterConsumingDevice<'s>,
) -> impl Iterator<Item = ((&'s str, &'s str), i128)> + use<'s> {
    device.consumption.iter().flat_map(|consumption| {
        let counters = consumption.counters.iter();
        counters.map(|(name, amount)| ((&*consumption.counter_set, &**name), *amount))
    })
}
