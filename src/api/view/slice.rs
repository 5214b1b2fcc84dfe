//! ResourceSlice, flat and `basic` devices, and draft r2's slice taints.

use super::{NodeSelector, ObjectMeta, Taint, View, view};
use crate::field::{Path, Segment};
use crate::profile::Version;

view! {
    /// ResourceSlice.
    Slice {
        /// `metadata`
        metadata: one<ObjectMeta> = "metadata",
        /// `spec`
        spec: one<SliceSpec> = "spec",
    }
}

view! {
    /// ResourceSliceSpec.
    SliceSpec {
        /// `driver`
        driver: str = "driver",
        /// `pool`
        pool: one<Pool> = "pool",
        /// `nodeName`
        node_name: opt_str = "nodeName",
        /// `nodeSelector`
        node_selector: opt<NodeSelector> = "nodeSelector",
        /// `allNodes`
        all_nodes: opt_bool = "allNodes",
        /// `devices`
        devices: list<Device> = "devices",
        /// `perDeviceNodeSelection`
        per_device_node_selection: opt_bool = "perDeviceNodeSelection",
        /// `sharedCounters`
        shared_counters: list<CounterSet> = "sharedCounters",
        /// `partitionTypeAttribute`
        partition_type_attribute: opt_str = "partitionTypeAttribute",
        /// `skipNodeOperations`
        skip_node_operations: strings = "skipNodeOperations",
        /// `taints` (draft r2)
        taints: list<SliceTaint> = "taints",
    }
}

view! {
    /// ResourcePool.
    Pool {
        /// `name`
        name: str = "name",
        /// `generation`
        generation: int = "generation",
        /// `resourceSliceCount`
        resource_slice_count: int = "resourceSliceCount",
    }
}

view! {
    /// Device: its name, and a body that is flat or in `basic`.
    Device {
        /// `name`
        name: str = "name",
    }
}

impl<'d> SliceSpec<'d> {
    /// The devices that are checked one by one, with their indexes: all but those that are known to be clean.
    pub(crate) fn devices_to_check(self) -> impl Iterator<Item = (usize, Device<'d>)> {
        self.devices().iter().enumerate().filter(|(_, device)| !device.is_known_clean())
    }
}

impl<'d> Device<'d> {
    /// True if the same bytes were found clean before.
    pub(crate) fn is_known_clean(self) -> bool {
        self.0.is_known_clean()
    }

    /// Everything but the name, wherever the version keeps it.
    pub(crate) fn body(self, version: Version) -> DeviceBody<'d> {
        DeviceBody(if version.is_flat() { self.0.get("basic") } else { self.0 })
    }

    /// The path of [`Device::body`], given the device's own.
    pub(crate) fn body_at<'p>(at: &'p Path<'p>, version: Version) -> Path<'p> {
        if version.is_flat() { at.then(Segment::WireField("basic")) } else { *at }
    }
}

view! {
    /// The body of a device.
    DeviceBody {
        /// `attributes`
        attributes: map<Attribute> = "attributes",
        /// `capacity`
        capacity: map<Capacity> = "capacity",
        /// `consumesCounters`
        consumes_counters: list<Consumption> = "consumesCounters",
        /// `nodeName`
        node_name: opt_str = "nodeName",
        /// `nodeSelector`
        node_selector: opt<NodeSelector> = "nodeSelector",
        /// `allNodes`
        all_nodes: opt_bool = "allNodes",
        /// `taints`
        taints: list<Taint> = "taints",
        /// `bindingConditions`
        binding_conditions: strings = "bindingConditions",
        /// `bindingFailureConditions`
        binding_failure_conditions: strings = "bindingFailureConditions",
        /// `allowMultipleAllocations`
        allow_multiple_allocations: opt_bool = "allowMultipleAllocations",
        /// `nodeAllocatableResourceMappings` (1.36)
        node_resource_mappings: map<NodeResourceMapping> = "nodeAllocatableResourceMappings",
        /// `nodeAllocatableResources` (1.37)
        node_resources: map<NodeResource> = "nodeAllocatableResources",
    }
}

view! {
    /// DeviceAttribute.
    Attribute {
        /// `string`
        string: opt_str = "string",
        /// `version`
        version: opt_str = "version",
        /// `strings`
        strings: strings = "strings",
        /// `versions`
        versions: strings = "versions",
    }
}

view! {
    /// DeviceCapacity. In v1alpha3 the value itself is the quantity.
    Capacity {
        /// `value`
        quantity: quantity = "value",
        /// `requestPolicy`
        request_policy: opt<RequestPolicy> = "requestPolicy",
    }
}

view! {
    /// CapacityRequestPolicy.
    RequestPolicy {
        /// `default`
        default: quantity = "default",
        /// `validValues`, the list behind it
        valid_values: raw = "validValues",
        /// `validRange`
        valid_range: opt<PolicyRange> = "validRange",
    }
}

view! {
    /// CapacityRequestPolicyRange.
    PolicyRange {
        /// `min`
        min: quantity = "min",
        /// `max`
        max: quantity = "max",
        /// `step`
        step: quantity = "step",
    }
}

view! {
    /// CounterSet.
    CounterSet {
        /// `name`
        name: str = "name",
        /// `counters`
        counters: map<Counter> = "counters",
    }
}

view! {
    /// Counter.
    Counter {
    }
}

view! {
    /// DeviceCounterConsumption.
    Consumption {
        /// `counterSet`
        counter_set: str = "counterSet",
        /// `counters`
        counters: map<Counter> = "counters",
        /// `compatibilityGroups`
        compatibility_groups: strings = "compatibilityGroups",
    }
}

view! {
    /// NodeAllocatableResource (1.37).
    NodeResource {
        /// `mapping`
        mapping: opt<NodeResourceMapping> = "mapping",
        /// `overhead`
        overhead: opt<NodeResourceOverhead> = "overhead",
    }
}

view! {
    /// NodeAllocatableResourceMapping, both forms.
    NodeResourceMapping {
        /// `capacityKey`
        capacity_key: opt_str = "capacityKey",
        /// `allocationMultiplier` (1.36)
        allocation_multiplier: quantity = "allocationMultiplier",
        /// `capacityMultiplier` (1.37)
        capacity_multiplier: quantity = "capacityMultiplier",
        /// `deviceMultiplier` (1.37)
        device_multiplier: quantity = "deviceMultiplier",
    }
}

view! {
    /// NodeAllocatableResourceOverhead (1.37).
    NodeResourceOverhead {
        /// `perPod`
        per_pod: quantity = "perPod",
        /// `perContainer`
        per_container: quantity = "perContainer",
    }
}

view! {
    /// SliceDeviceTaint of draft r2: a device's name, and its taint nested or inlined.
    SliceTaint {
        /// `device`
        device: str = "device",
    }
}

impl<'d> SliceTaint<'d> {
    /// The taint, wherever it was written.
    pub(crate) fn taint(self) -> Taint<'d> {
        let nested = self.0.get("taint");
        Taint::of(if nested.is_null() { self.0 } else { nested })
    }

    /// The path of [`SliceTaint::taint`], given the entry's own.
    pub(crate) fn taint_at<'p>(self, at: &'p Path<'p>) -> Path<'p> {
        if self.0.get("taint").is_null() { *at } else { at.field("taint") }
    }
}

impl<'d> SliceSpec<'d> {
    /// The device of that name, the first of several.
    // upstream v1.36 lookupDevice
    pub(crate) fn device_named(self, name: &str) -> Option<Device<'d>> {
        self.devices().iter().find(|device| device.name() == name)
    }

    /// `nodeName`, where an empty one counts as unset in the versions whose field is no pointer.
    pub(crate) fn node_name_in(self, version: Version) -> Option<&'d str> {
        self.node_name().filter(|name| !(version.is_flat() && name.is_empty()))
    }

    /// `allNodes`, likewise.
    pub(crate) fn all_nodes_in(self, version: Version) -> Option<bool> {
        self.all_nodes().filter(|all| !version.is_flat() || *all)
    }
}
