//! Differences between the allocators of the releases, as data.
//!
//! Each release is a constant, written as its difference from the previous one. The allocator reads the named behaviors
//! and compares no releases. [`AllocatorSemantics::with_gates`] applies feature gates. Messages and the search order,
//! which all releases share, are in the allocator.

use super::{Gate, GateSet};

/// The behaviours of one release's allocator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each one is a behaviour that a release has or has not")]
pub struct AllocatorSemantics {
    /// A slice with shared counters is treated as available on every node, regardless of its node selection.
    pub counter_slices_reach_every_node: bool,
    /// Devices and their counters are in one slice and share them with no other slice, and only the slices
    /// available on a node must exist. Otherwise counters belong to the pool, and all its slices must exist.
    pub slices_stand_alone: bool,
    /// The values that a `distinctAttribute` constraint compares a device with.
    pub distinct_memory: DistinctComparedValues,
    /// Requests with `allocationMode: All` omit shareable devices with too little capacity left. Otherwise
    /// such a request fails.
    pub all_skips_used_up_shares: bool,
    /// A stored share without consumed capacity has consumed the device's counters. Otherwise the next share
    /// consumes them again.
    pub bare_share_holds_counters: bool,
    /// Ranges of request policies are computed in thousandths. Otherwise all numbers are rounded up to whole
    /// ones first.
    pub fractional_ranges: bool,
    /// A request that the arithmetic of a range cannot represent ends the search with an error. Otherwise the numbers
    /// wrap around.
    pub unrepresentable_request_is_error: bool,
    /// An amount rounded to a step is written in the unit of the step. Otherwise it is written in binary units.
    pub rounded_in_unit_of_step: bool,
    /// A slice whose devices have compatibility groups is ignored, and its pool is incomplete. Otherwise the
    /// allocator ignores the groups.
    pub ignores_compatibility_groups: bool,
    /// A request with derived attributes is an error. Otherwise the allocator ignores them.
    pub refuses_derived_attributes: bool,
    /// The error of a selector names the device, and has a hint where a key is missing.
    pub selector_errors_name_device: bool,
    /// A DeviceTaintRule without `deviceSelector` taints every device. Otherwise it taints none.
    pub rule_without_selector_taints_all: bool,
    /// A `namespaceSelector` of the pod being scheduled is also compared with an empty label set.
    pub namespace_selector_sees_no_labels: bool,
    /// The message for a pod that does not fit states what the plugin did after filtering.
    pub message_has_post_filter: bool,
    /// The enabled features.
    pub features: AllocatorFeatures,
}

/// The values with which a `distinctAttribute` constraint compares the next device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DistinctComparedValues {
    /// The last value of each request, and no value after a device of that request was released.
    LastOfEachRequest,
    /// The values of all devices.
    All,
}

/// The feature gates of the scheduler that change allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each one is a gate")]
pub struct AllocatorFeatures {
    /// Feature gate DRAAdminAccess.
    pub admin_access: bool,
    /// DRAPrioritizedList: `firstAvailable`
    pub prioritized_list: bool,
    /// DRAPartitionableDevices: shared counters and node selection per device
    pub partitionable_devices: bool,
    /// DRADeviceTaints: without it, taints do not matter
    pub device_taints: bool,
    /// DRADeviceTaintRules: without it, only taints in slices count
    pub device_taint_rules: bool,
    /// DRADeviceBindingConditions and DRAResourceClaimDeviceStatus
    pub binding_conditions: bool,
    /// Feature gate DRAConsumableCapacity.
    pub consumable_capacity: bool,
    /// DRAExtendedResource: the scheduler makes claims for extended resources
    pub extended_resources: bool,
}

impl AllocatorFeatures {
    /// All optional features of the allocator enabled.
    pub const ALL: AllocatorFeatures = AllocatorFeatures {
        admin_access: true,
        prioritized_list: true,
        partitionable_devices: true,
        device_taints: true,
        device_taint_rules: true,
        binding_conditions: true,
        consumable_capacity: true,
        extended_resources: true,
    };

    /// Disables the features whose gates are not in `on`. Features that the release does not have stay
    /// disabled.
    #[must_use]
    const fn with_gates(self, on: GateSet) -> AllocatorFeatures {
        let device_taints = self.device_taints && on.has(Gate::DRADeviceTaints);
        AllocatorFeatures {
            admin_access: self.admin_access && on.has(Gate::DRAAdminAccess),
            prioritized_list: self.prioritized_list && on.has(Gate::DRAPrioritizedList),
            partitionable_devices: self.partitionable_devices && on.has(Gate::DRAPartitionableDevices),
            device_taints,
            device_taint_rules: self.device_taint_rules && device_taints && on.has(Gate::DRADeviceTaintRules),
            binding_conditions: self.binding_conditions
                && on.has(Gate::DRADeviceBindingConditions)
                && on.has(Gate::DRAResourceClaimDeviceStatus),
            consumable_capacity: self.consumable_capacity && on.has(Gate::DRAConsumableCapacity),
            extended_resources: self.extended_resources && on.has(Gate::DRAExtendedResource),
        }
    }
}

impl AllocatorSemantics {
    /// Behaviors of the scheduler's allocator in Kubernetes 1.33.
    pub const V1_33: AllocatorSemantics = AllocatorSemantics {
        features: AllocatorFeatures {
            binding_conditions: false,
            consumable_capacity: false,
            extended_resources: false,
            ..AllocatorFeatures::ALL
        },
        ..AllocatorSemantics::V1_34
    };

    /// Behaviors of the scheduler's allocator in Kubernetes 1.34.
    pub const V1_34: AllocatorSemantics = AllocatorSemantics {
        counter_slices_reach_every_node: false,
        slices_stand_alone: true,
        ..AllocatorSemantics::V1_35
    };

    /// Kubernetes 1.35. It checks pools and slices in random order; the order of 1.36 is one of the possible
    /// orders.
    pub const V1_35: AllocatorSemantics = AllocatorSemantics::V1_36;

    /// Behaviors of the scheduler's allocator in Kubernetes 1.36 (seen in 1.36.4).
    pub const V1_36: AllocatorSemantics = AllocatorSemantics {
        counter_slices_reach_every_node: true,
        slices_stand_alone: false,
        distinct_memory: DistinctComparedValues::LastOfEachRequest,
        all_skips_used_up_shares: true,
        bare_share_holds_counters: false,
        fractional_ranges: false,
        unrepresentable_request_is_error: false,
        rounded_in_unit_of_step: false,
        ignores_compatibility_groups: false,
        refuses_derived_attributes: false,
        selector_errors_name_device: false,
        rule_without_selector_taints_all: true,
        namespace_selector_sees_no_labels: true,
        message_has_post_filter: true,
        features: AllocatorFeatures::ALL,
    };

    /// Behaviors of the scheduler's allocator in Kubernetes 1.37.0 (seen in 1.37.0-rc.1).
    pub const V1_37_0: AllocatorSemantics = AllocatorSemantics {
        counter_slices_reach_every_node: false,
        distinct_memory: DistinctComparedValues::All,
        all_skips_used_up_shares: false,
        bare_share_holds_counters: true,
        fractional_ranges: true,
        unrepresentable_request_is_error: true,
        rounded_in_unit_of_step: true,
        ignores_compatibility_groups: true,
        refuses_derived_attributes: true,
        selector_errors_name_device: true,
        namespace_selector_sees_no_labels: false,
        message_has_post_filter: false,
        ..AllocatorSemantics::V1_36
    };

    /// Behaviors of the scheduler's allocator in Kubernetes 1.37 after 1.37.0 (kubernetes/kubernetes#141998).
    pub const V1_37: AllocatorSemantics =
        AllocatorSemantics { rule_without_selector_taints_all: false, ..AllocatorSemantics::V1_37_0 };

    /// The behaviours with these gates on.
    #[must_use]
    pub const fn with_gates(self, on: GateSet) -> AllocatorSemantics {
        AllocatorSemantics {
            fractional_ranges: self.fractional_ranges && on.has(Gate::DRAFractionalCapacityRange),
            ignores_compatibility_groups: self.ignores_compatibility_groups
                && !on.has(Gate::DRADeviceCompatibilityGroups),
            refuses_derived_attributes: self.refuses_derived_attributes
                && !on.has(Gate::DRADerivedAttributes),
            features: self.features.with_gates(on),
            ..self
        }
    }
}
