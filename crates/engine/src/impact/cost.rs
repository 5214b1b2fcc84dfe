//! How much memory a snapshot takes, object by object.
//!
//! Upper estimates: a record, its part of the indexes (twice, because a snapshot that changes while it is read is copied),
//! and the strings that came with it. Short strings that others have already are not counted again.
//!
//! Invariant: the sum over all objects is what the snapshot counts.

use super::interner::InternedStr;
use super::record::{
    AllocatedDevice, Budget, Claim, ClaimConsumer, ClassCriteria, CounterConsumption, Device, DeviceClass,
    Pod, Rule, Slice, Taint, Toleration,
};

/// Bytes that an object takes in the indexes.
const OBJECT: usize = 320;
/// Bytes that an allocation result takes in the index of its pool.
const ALLOCATION: usize = 160;
/// Bytes that a string takes besides its text: counters, and a place in the interner.
pub(super) const STRING: usize = 56;
/// Bytes of a pointer to a string.
const POINTER: usize = size_of::<InternedStr>();
/// If the strings of an object take more bytes than this, all of them count, even those that other objects share.
const UNSHARED: usize = 2 << 10;

/// Returns the bytes that count for the strings of an object: those of its `new` strings, or of `all` its strings if
/// these are large. Both arguments are bytes.
pub(super) fn string_bytes(all: usize, new: usize) -> usize {
    if all > UNSHARED { all.max(new) } else { new }
}

/// Returns the bytes that the texts take, including the overhead of each string.
fn total_text_bytes<'s>(texts: impl IntoIterator<Item = &'s InternedStr>) -> usize {
    texts.into_iter().map(|text| text.len() + STRING).sum()
}

/// Estimates the bytes that a slice takes in the snapshot; `new` is the bytes of strings that no other object had.
pub(super) fn slice_bytes(slice: &Slice, new: usize) -> usize {
    let of_devices = slice.devices.iter().map(|device| device.taints.len());
    let taints = of_devices.sum::<usize>() + slice.taints.len();
    // A place of its own for each device, in the worst case.
    let device = size_of::<Device>() + 4 * POINTER;
    let bodies = slice.bodies.as_ref().map_or(0, |bodies| bodies.len());
    // Counters are shared by devices of one shape; each could have its own in the worst case.
    let counters = slice.consumption.iter().map(|consumption| size_of_val(&*consumption.counters));
    let sets = slice.counter_sets.iter().map(|set| size_of_val(set) + size_of_val(&*set.1));
    let consumption = size_of_val::<[CounterConsumption]>(&slice.consumption);
    let details = bodies + consumption + counters.chain(sets).sum::<usize>();
    let devices = slice.devices.len() * device + taints * size_of::<Taint>();
    OBJECT + size_of::<Slice>() + devices + details + new
}

/// Estimates the bytes that a DeviceClass takes in the snapshot; `new` is the bytes of strings that no other object had.
pub(super) fn class_bytes(class: &DeviceClass, new: usize) -> usize {
    OBJECT + size_of::<DeviceClass>() + expression_bytes(&class.expressions) + new
}

/// Returns the bytes that CEL expressions take.
fn expression_bytes(expressions: &[Box<str>]) -> usize {
    expressions.iter().map(|expression| expression.len() + STRING).sum()
}

/// Estimates the bytes that a claim takes in the snapshot; `name` is the length of its name, `new` the bytes of strings
/// that no other object had.
pub(super) fn claim_bytes(claim: &Claim, name: usize, new: usize) -> usize {
    let result = |result: &AllocatedDevice| {
        let requested = result.requested.as_ref().map_or(0, |list| list.len());
        size_of::<AllocatedDevice>()
            + ALLOCATION
            + (result.copied.len() + requested) * size_of::<Toleration>()
    };
    let results: usize = claim.results.iter().flatten().map(result).sum();
    let reserved = claim.reserved.len() * (size_of::<ClaimConsumer>() + STRING);
    OBJECT + size_of::<Claim>() + name + results + reserved + new
}

/// Estimates the bytes that a pod takes in the snapshot; `new` is the bytes of strings that no other object had.
pub(super) fn pod_bytes(pod: &Pod, new: usize) -> usize {
    let pairs = pod.labels.iter().flat_map(|(key, value)| [key, value]);
    let labels = 2 * POINTER * pod.labels.len();
    // A claim that a pod names and nobody has created takes a place, too.
    let claims = pod.claims.len() * OBJECT;
    OBJECT + size_of::<Pod>() + pod.name.len() + labels + claims + string_bytes(total_text_bytes(pairs), new)
}

/// Estimates the bytes that a PodDisruptionBudget takes in the snapshot; `new` is the bytes of strings that no other
/// object had.
pub(super) fn budget_bytes(budget: &Budget, new: usize) -> usize {
    let requirements = budget.selector.as_deref().unwrap_or_default();
    let values = requirements.iter().flat_map(|requirement| &requirement.values);
    let count = values.clone().count();
    let all = total_text_bytes(values.chain(requirements.iter().map(|requirement| &requirement.key)));
    let requirements = size_of_val(requirements);
    OBJECT + size_of::<Budget>() + count * POINTER + requirements + string_bytes(all, new)
}

/// Estimates the bytes that a DeviceTaintRule takes in the snapshot.
pub(super) fn rule_bytes(rule: &Rule) -> usize {
    let selector = rule.selector.iter();
    let selected =
        selector.flat_map(|selector| [&selector.driver, &selector.pool, &selector.device]).flatten();
    let taint = [&rule.taint.key, &rule.taint.value, &rule.taint.effect, &rule.name];
    let class = rule.class_criteria().map_or(0, |criteria| {
        size_of::<ClassCriteria>()
            + total_text_bytes(&criteria.class)
            + expression_bytes(&criteria.expressions)
    });
    OBJECT + size_of::<Rule>() + total_text_bytes(selected.chain(taint)) + class
}
