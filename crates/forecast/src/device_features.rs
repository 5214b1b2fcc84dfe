//! Features of devices and requests that the allocator does not model, for pods that could depend on them.
//!
//! A feature matters only if the release enables its gate: otherwise the API server drops the fields, or the
//! allocator handles them. Whether a pod gets such a device is not decided here: it is sufficient that the selectors
//! of its class and its request match.

use crate::eras::DevicesInEra;
use crate::held::ClaimAllocation;
use crate::tables::NumberedClaimSpec;
use foldhash::fast::RandomState;
use std::collections::HashSet;
use tollgate_allocator::{Candidate, Inventory};
use tollgate_api::profile::{Gate, Profile};
use tollgate_api::view::{Class, List, Selector};

const COMPATIBILITY_GROUPS: &str = "compatibility groups";
const DERIVED_ATTRIBUTES: &str = "derived attributes";
const NODE_ALLOCATABLE_RESOURCES: &str = "node-allocatable resources";

/// A device whose allocation depends on a feature that is not simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnmodelledDevice<'d> {
    candidate: Candidate<'d>,
    /// Name of the feature in reports.
    feature: &'static str,
}

/// The devices of an inventory whose allocation depends on features that are not simulated.
///
/// Compatibility groups restrict which devices of a counter set can be allocated together. They affect every
/// device that consumes counters in a pool where some device has groups.
pub(crate) fn unmodelled_devices<'d>(
    inventory: &Inventory<'d>,
    profile: &Profile,
) -> Vec<UnmodelledDevice<'d>> {
    let has_groups = profile.is_gate_on_by_setting_or_default(Gate::DRADeviceCompatibilityGroups);
    let has_node_resources = profile.is_gate_on_by_setting_or_default(Gate::DRANodeAllocatableResources);
    if !has_groups && !has_node_resources {
        return Vec::new();
    }
    let candidates = || inventory.published_devices().map(|device| device.candidate);
    let is_grouped = |device: &Candidate<'d>| {
        device.body.consumes_counters().iter().any(|taken| !taken.compatibility_groups().is_empty())
    };
    let grouped = candidates().filter(|device| has_groups && is_grouped(device));
    let grouped_pools: HashSet<(&str, &str), RandomState> =
        grouped.map(|device| (device.driver, device.pool)).collect();
    let mut devices = Vec::new();
    for candidate in candidates() {
        let body = candidate.body;
        if !body.consumes_counters().is_empty() && grouped_pools.contains(&(candidate.driver, candidate.pool))
        {
            devices.push(UnmodelledDevice { candidate, feature: COMPATIBILITY_GROUPS });
        }
        let maps_resources = !body.node_resources().is_empty() || !body.node_resource_mappings().is_empty();
        if has_node_resources && maps_resources {
            devices.push(UnmodelledDevice { candidate, feature: NODE_ALLOCATABLE_RESOURCES });
        }
    }
    devices
}

/// Names of the features that the allocation of these claims may depend on. `class` looks up a DeviceClass by
/// name. `may_match` returns true if the selectors match the device or fail for it.
pub(crate) fn unmodelled_claim_features<'d>(
    specs: &[NumberedClaimSpec<'d>],
    devices: &[UnmodelledDevice<'d>],
    profile: &Profile,
    class: impl Fn(&str) -> Option<Class<'d>>,
    may_match: impl Fn(List<'d, Selector<'d>>, Candidate<'d>) -> bool,
) -> Vec<&'static str> {
    let mut features = Vec::new();
    let mut add = |feature| {
        if !features.contains(&feature) {
            features.push(feature);
        }
    };
    for request in specs.iter().flat_map(|spec| spec.requests_and_alternatives()) {
        if profile.is_gate_on_by_setting_or_default(Gate::DRADerivedAttributes)
            && !request.derived_attributes().is_empty()
        {
            add(DERIVED_ATTRIBUTES);
        }
        let Some(class) = class(request.device_class_name()) else { continue };
        for device in devices {
            if may_match(class.spec().selectors(), device.candidate)
                && may_match(request.selectors(), device.candidate)
            {
                add(device.feature);
            }
        }
    }
    features
}

/// Name of the feature that matters for a pod with an existing allocation, if any. The devices are already
/// chosen, so only the node resources that they consume matter.
pub(crate) fn unmodelled_allocation_feature(
    held: &ClaimAllocation<'_>,
    era: &DevicesInEra<'_>,
) -> Option<&'static str> {
    let takes_from_node = |device: &UnmodelledDevice<'_>| {
        let id = (device.candidate.driver, device.candidate.pool, device.candidate.name);
        device.feature == NODE_ALLOCATABLE_RESOURCES
            && held.devices.iter().any(|held| (held.driver, held.pool, held.device) == id)
    };
    era.unmodelled.iter().any(takes_from_node).then_some(NODE_ALLOCATABLE_RESOURCES)
}
