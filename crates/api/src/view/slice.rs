//! ResourceSlice, flat and `basic` devices, and draft r2's slice taints.

use super::{NodeSelector, ObjectMeta, Taint, View, view};
use crate::profile::Version;
use tollgate_document::field::{Path, Segment};

view! {
    /// ResourceSlice.
    Slice {
        metadata: one<ObjectMeta> = "metadata",
        spec: one<SliceSpec> = "spec",
    }

    /// ResourceSliceSpec.
    SliceSpec {
        driver: str = "driver",
        pool: one<Pool> = "pool",
        node_name: opt_str = "nodeName",
        node_selector: opt<NodeSelector> = "nodeSelector",
        all_nodes: opt_bool = "allNodes",
        devices: list<Device> = "devices",
        per_device_node_selection: opt_bool = "perDeviceNodeSelection",
        shared_counters: list<CounterSet> = "sharedCounters",
        partition_type_attribute: opt_str = "partitionTypeAttribute",
        skip_node_operations: strings = "skipNodeOperations",
        /// `taints` (draft r2)
        taints: list<SliceTaint> = "taints",
    }

    /// ResourcePool.
    Pool {
        name: str = "name",
        generation: int = "generation",
        resource_slice_count: int = "resourceSliceCount",
    }

    /// Device: its name, and a body that is flat or in `basic`.
    Device {
        name: str = "name",
    }
}

impl<'d> Device<'d> {
    /// All fields except the name; their position depends on the version.
    pub fn body(self, version: Version) -> DeviceBody<'d> {
        DeviceBody(if version.is_v1alpha3_or_v1beta1() { self.0.get("basic") } else { self.0 })
    }

    /// Returns the path of [`Device::body`]; `at` is the path of the device.
    pub fn body_path<'p>(at: &'p Path<'p>, version: Version) -> Path<'p> {
        if version.is_v1alpha3_or_v1beta1() { at.with_segment(Segment::WireField("basic")) } else { *at }
    }
}

view! {
    /// The fields of a device except its name.
    DeviceBody {
        attributes: map<Attribute> = "attributes",
        capacity: map<Capacity> = "capacity",
        consumes_counters: list<Consumption> = "consumesCounters",
        node_name: opt_str = "nodeName",
        node_selector: opt<NodeSelector> = "nodeSelector",
        all_nodes: opt_bool = "allNodes",
        taints: list<Taint> = "taints",
        binding_conditions: strings = "bindingConditions",
        binding_failure_conditions: strings = "bindingFailureConditions",
        allow_multiple_allocations: opt_bool = "allowMultipleAllocations",
        /// `nodeAllocatableResourceMappings` (1.36)
        node_resource_mappings: map<NodeResourceMapping> = "nodeAllocatableResourceMappings",
        /// `nodeAllocatableResources` (1.37)
        node_resources: map<NodeResource> = "nodeAllocatableResources",
    }

    /// DeviceAttribute.
    Attribute {
        string: opt_str = "string",
        version: opt_str = "version",
        strings: strings = "strings",
        versions: strings = "versions",
    }

    /// DeviceCapacity. In v1alpha3 the value itself is the quantity.
    Capacity {
        quantity: quantity = "value",
        request_policy: opt<RequestPolicy> = "requestPolicy",
    }

    /// CapacityRequestPolicy.
    RequestPolicy {
        default: quantity = "default",
        /// `validValues`, as a JSON list
        valid_values: raw = "validValues",
        valid_range: opt<PolicyRange> = "validRange",
    }

    /// CapacityRequestPolicyRange.
    PolicyRange {
        min: quantity = "min",
        max: quantity = "max",
        step: quantity = "step",
    }

    /// CounterSet.
    CounterSet {
        name: str = "name",
        counters: map<Counter> = "counters",
    }

    /// Counter.
    Counter {
    }

    /// DeviceCounterConsumption.
    Consumption {
        counter_set: str = "counterSet",
        counters: map<Counter> = "counters",
        compatibility_groups: strings = "compatibilityGroups",
    }

    /// NodeAllocatableResource (1.37).
    NodeResource {
        mapping: opt<NodeResourceMapping> = "mapping",
        overhead: opt<NodeResourceOverhead> = "overhead",
    }

    /// NodeAllocatableResourceMapping, both forms.
    NodeResourceMapping {
        capacity_key: opt_str = "capacityKey",
        /// `allocationMultiplier` (1.36)
        allocation_multiplier: quantity = "allocationMultiplier",
        /// `capacityMultiplier` (1.37)
        capacity_multiplier: quantity = "capacityMultiplier",
        /// `deviceMultiplier` (1.37)
        device_multiplier: quantity = "deviceMultiplier",
    }

    /// NodeAllocatableResourceOverhead (1.37).
    NodeResourceOverhead {
        per_pod: quantity = "perPod",
        per_container: quantity = "perContainer",
    }

    /// SliceDeviceTaint of draft r2: a device's name, and its taint nested or inlined.
    SliceTaint {
        device: str = "device",
    }
}

impl<'d> SliceTaint<'d> {
    /// Returns the taint of an entry: its member `taint`, or the entry itself if the taint is inlined.
    pub fn nested_or_inlined_taint(self) -> Taint<'d> {
        let nested = self.0.get("taint");
        Taint::of(if nested.is_null_or_absent() { self.0 } else { nested })
    }

    /// Returns the path of [`SliceTaint::nested_or_inlined_taint`]; `at` is the path of the entry.
    pub fn nested_or_inlined_taint_path<'p>(self, at: &'p Path<'p>) -> Path<'p> {
        if self.0.get("taint").is_null_or_absent() { *at } else { at.field("taint") }
    }
}

impl<'d> SliceSpec<'d> {
    /// `nodeName`; an empty one is `None` in the flat versions, whose field is not a pointer.
    pub fn node_name_if_set_in_version(self, version: Version) -> Option<&'d str> {
        self.node_name().filter(|name| !(version.is_v1alpha3_or_v1beta1() && name.is_empty()))
    }

    /// `allNodes`; false is `None` in the flat versions, whose field is not a pointer.
    pub fn all_nodes_if_set_in_version(self, version: Version) -> Option<bool> {
        self.all_nodes().filter(|all| !version.is_v1alpha3_or_v1beta1() || *all)
    }
}
