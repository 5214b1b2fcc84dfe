//! Estimates the memory that each object of a snapshot uses.
//!
//! These are upper bounds: a record, its share of the indexes (twice, because a snapshot that changes while it is
//! read is copied), and its strings. Short strings that other objects share are not counted again.
//!
//! Invariant: the sum over all objects equals the total of the snapshot.

use super::interner::InternedStr;
use super::record::{
    AllocatedDevice, Budget, Claim, ClaimUser, ClassCriteria, CounterConsumption, Device, DeviceClass, Pod,
    Rule, Slice, Taint, Toleration,
};

/// Bytes that an object takes in the indexes.
const OBJECT_INDEX_BYTES: usize = 320;
/// Bytes that an allocation result takes in the index of its pool.
const ALLOCATION_INDEX_BYTES: usize = 160;
/// Overhead of a stored string in bytes: reference counters and its entry in the interner.
pub(super) const STRING_OVERHEAD_BYTES: usize = 56;
/// Bytes of a pointer to a string.
const STRING_POINTER_BYTES: usize = size_of::<InternedStr>();
/// If the strings of an object exceed this number of bytes, all of them are counted, including strings shared
/// with other objects.
const MAX_SHARED_STRING_BYTES: usize = 2 << 10;

/// Returns the bytes to count for the strings of an object. Usually `new`, the bytes of strings that no other object
/// has; `all` if that is large, so that no object can hide many bytes behind shared strings.
pub(super) fn string_bytes_charged_to_object(all: usize, new: usize) -> usize {
    if all > MAX_SHARED_STRING_BYTES { all.max(new) } else { new }
}

/// Returns the bytes that the texts take, including the overhead of each string.
fn text_bytes<'s>(texts: impl IntoIterator<Item = &'s InternedStr>) -> usize {
    texts.into_iter().map(|text| text.len() + STRING_OVERHEAD_BYTES).sum()
}

/// Estimates the bytes that a slice takes in the snapshot; `new` is the bytes of strings that no other object had.
pub(super) fn slice_bytes(slice: &Slice, new: usize) -> usize {
    let of_devices = slice.devices.iter().map(|device| size_of_val::<[Taint]>(&device.taints));
    let taints = of_devices.sum::<usize>() + size_of_val(&*slice.taints);
    // A place of its own for each device, in the worst case.
    let device = size_of::<Device>() + 4 * STRING_POINTER_BYTES;
    let bodies = slice.bodies.as_ref().map_or(0, |bodies| bodies.len());
    // Counters are shared by devices of one shape; each could have its own in the worst case.
    let counters = slice.consumption.iter().map(|consumption| size_of_val(&*consumption.counters));
    let sets = slice.counter_sets.iter().map(|set| size_of_val(set) + size_of_val(&*set.1));
    let consumption = size_of_val::<[CounterConsumption]>(&slice.consumption);
    let details = bodies + consumption + counters.chain(sets).sum::<usize>();
    let devices = slice.devices.len() * device + taints;
    OBJECT_INDEX_BYTES + size_of::<Slice>() + devices + details + new
}

/// Estimates the bytes that a DeviceClass takes in the snapshot; `new` is the bytes of strings that no other
/// object had.
pub(super) fn class_bytes(class: &DeviceClass, new: usize) -> usize {
    OBJECT_INDEX_BYTES + size_of::<DeviceClass>() + expression_bytes(&class.expressions) + new
}

/// Returns the bytes that CEL expressions take.
fn expression_bytes(expressions: &[Box<str>]) -> usize {
    expressions.iter().map(|expression| expression.len() + STRING_OVERHEAD_BYTES).sum()
}

/// Estimates the bytes that a claim takes in the snapshot; `name` is the length of its name, `new` the bytes of strings
/// that no other object had.
pub(super) fn claim_bytes(claim: &Claim, name: usize, new: usize) -> usize {
    let result = |result: &AllocatedDevice| {
        let requested = result.requested.as_ref().map_or(0, |list| list.len());
        size_of::<AllocatedDevice>()
            + ALLOCATION_INDEX_BYTES
            + (result.copied.len() + requested) * size_of::<Toleration>()
    };
    let results: usize = claim.results.iter().flatten().map(result).sum();
    let reserved = claim.reserved.len() * (size_of::<ClaimUser>() + STRING_OVERHEAD_BYTES);
    OBJECT_INDEX_BYTES + size_of::<Claim>() + name + results + reserved + new
}

/// Estimates the bytes that a pod takes in the snapshot; `new` is the bytes of strings that no other object had.
pub(super) fn pod_bytes(pod: &Pod, new: usize) -> usize {
    let pairs = pod.labels.iter().flat_map(|(key, value)| [key, value]);
    let labels = 2 * STRING_POINTER_BYTES * pod.labels.len();
    // A claim that a pod names and nobody has created takes a place, too.
    let claims = pod.claims.len() * OBJECT_INDEX_BYTES;
    OBJECT_INDEX_BYTES
        + size_of::<Pod>()
        + pod.name.len()
        + labels
        + claims
        + string_bytes_charged_to_object(text_bytes(pairs), new)
}

/// Estimates the bytes that a PodDisruptionBudget takes in the snapshot; `new` is the bytes of strings that no other
/// object had.
pub(super) fn budget_bytes(budget: &Budget, new: usize) -> usize {
    let requirements = budget.selector.as_deref().unwrap_or_default();
    let values = requirements.iter().flat_map(|requirement| &requirement.values);
    let count = values.clone().count();
    let all = text_bytes(values.chain(requirements.iter().map(|requirement| &requirement.key)));
    let requirements = size_of_val(requirements);
    OBJECT_INDEX_BYTES
        + size_of::<Budget>()
        + count * STRING_POINTER_BYTES
        + requirements
        + string_bytes_charged_to_object(all, new)
}

/// Estimates the bytes that a DeviceTaintRule takes in the snapshot.
pub(super) fn rule_bytes(rule: &Rule) -> usize {
    let selector = rule.selector.iter();
    let selected =
        selector.flat_map(|selector| [&selector.driver, &selector.pool, &selector.device]).flatten();
    let taint = [&rule.taint.key, &rule.taint.value, &rule.taint.effect, &rule.name];
    let class = rule.class_criteria().map_or(0, |criteria| {
        size_of::<ClassCriteria>() + text_bytes(&criteria.class) + expression_bytes(&criteria.expressions)
    });
    OBJECT_INDEX_BYTES + size_of::<Rule>() + text_bytes(selected.chain(taint)) + class
}
