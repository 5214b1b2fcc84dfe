//! ResourceSlice: flat devices, `basic` devices, and v1alpha3's bare capacities.

use super::meta::{API_VERSION, KIND, META, NODES};
use super::taint::{DEVICE_TAINTS, SLICE_TAINT};
use super::{DRAFT_R2, QUANTITIES, SINCE_1_34, SINCE_1_36, SINCE_1_37, STRINGS, api};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

pub(super) static POOL: StructTy =
    api("ResourcePool", &[a!("name", Ty::Str), a!("generation", Ty::Int), a!("resourceSliceCount", Ty::Int)]);
pub(super) static COUNTER: StructTy = api("Counter", &[a!("value", Ty::Quantity)]);
pub(super) const COUNTERS: Field = f!("counters", Ty::Map { key: "string", value: &Ty::Struct(&COUNTER) });
/// CounterSet, printed whole when duplicate.
pub static COUNTER_SET: StructTy = api("CounterSet", &[a!("name", Ty::Str), COUNTERS]);
/// DeviceCounterConsumption, printed whole when duplicate.
pub static CONSUMPTION: StructTy = api(
    "DeviceCounterConsumption",
    &[a!("counterSet", Ty::Str), COUNTERS, f!("compatibilityGroups", STRINGS, SINCE_1_37)],
);
/// The fields of DeviceAttribute.
pub static ATTRIBUTE: StructTy = api(
    "DeviceAttribute",
    &[
        p!("int", Ty::Int),
        p!("bool", Ty::Bool),
        p!("string", Ty::Str),
        p!("version", Ty::Str),
        f!("ints", Ty::List(&Ty::Int), SINCE_1_36),
        f!("bools", Ty::List(&Ty::Bool), SINCE_1_36),
        f!("strings", STRINGS, SINCE_1_36),
        f!("versions", STRINGS, SINCE_1_36),
    ],
);
pub(super) static POLICY_RANGE: StructTy = api(
    "CapacityRequestPolicyRange",
    &[p!("min", Ty::Quantity), p!("max", Ty::Quantity), p!("step", Ty::Quantity)],
);
pub(super) static REQUEST_POLICY: StructTy = api(
    "CapacityRequestPolicy",
    &[
        p!("default", Ty::Quantity),
        f!("validValues", Ty::List(&Ty::Quantity)),
        p!("validRange", Ty::Struct(&POLICY_RANGE)),
    ],
);
pub(super) static CAPACITY: StructTy = api(
    "DeviceCapacity",
    &[a!("value", Ty::Quantity), p!("requestPolicy", Ty::Struct(&REQUEST_POLICY), SINCE_1_34)],
);
pub(super) static NODE_RESOURCE_1_36: StructTy = api(
    "NodeAllocatableResourceMapping",
    &[p!("capacityKey", Ty::Named("QualifiedName")), p!("allocationMultiplier", Ty::Quantity)],
);
pub(super) static NODE_RESOURCE_MAPPING: StructTy = api(
    "NodeAllocatableMapping",
    &[
        p!("capacityKey", Ty::Named("QualifiedName")),
        p!("capacityMultiplier", Ty::Quantity),
        p!("deviceMultiplier", Ty::Quantity),
    ],
);
pub(super) static NODE_RESOURCE_OVERHEAD: StructTy =
    api("NodeAllocatableOverhead", &[p!("perPod", Ty::Quantity), p!("perContainer", Ty::Quantity)]);
pub(super) static NODE_RESOURCE: StructTy = api(
    "NodeAllocatableResource",
    &[p!("mapping", Ty::Struct(&NODE_RESOURCE_MAPPING)), p!("overhead", Ty::Struct(&NODE_RESOURCE_OVERHEAD))],
);
pub(super) const ATTRIBUTES: Field =
    f!("attributes", Ty::Map { key: "QualifiedName", value: &Ty::Struct(&ATTRIBUTE) });
pub(super) const CAPACITIES: Field =
    f!("capacity", Ty::Map { key: "QualifiedName", value: &Ty::Struct(&CAPACITY) });
pub(super) const CONSUMES: Field = f!("consumesCounters", Ty::List(&Ty::Struct(&CONSUMPTION)));
pub(super) const BINDS_TO_NODE: Field = p!("bindsToNode", Ty::Bool, SINCE_1_34);
pub(super) const BINDING: Field = f!("bindingConditions", STRINGS, SINCE_1_34);
pub(super) const BINDING_FAILURE: Field = f!("bindingFailureConditions", STRINGS, SINCE_1_34);
pub(super) const MULTIPLE: Field = p!("allowMultipleAllocations", Ty::Bool, SINCE_1_34);
pub(super) const NODE_MAPPINGS: Field = f!(
    "nodeAllocatableResourceMappings",
    Ty::Map { key: "v1.ResourceName", value: &Ty::Struct(&NODE_RESOURCE_1_36) },
    Availability::release(36)
);
pub(super) const NODE_RESOURCES: Field = f!(
    "nodeAllocatableResources",
    Ty::Map { key: "v1.ResourceName", value: &Ty::Struct(&NODE_RESOURCE) },
    SINCE_1_37
);

/// A device: the rows that are its own, and those of every version.
macro_rules! device {
    ($name:literal, $($own:expr)?) => {
        api(
            $name,
            &[
                $($own,)?
                ATTRIBUTES,
                CAPACITIES,
                CONSUMES,
                p!("nodeName", Ty::Str),
                p!("nodeSelector", NODES),
                p!("allNodes", Ty::Bool),
                DEVICE_TAINTS,
                BINDS_TO_NODE,
                BINDING,
                BINDING_FAILURE,
                MULTIPLE,
                NODE_MAPPINGS,
                NODE_RESOURCES,
            ],
        )
    };
}
pub(super) static DEVICE: StructTy = device!("Device", a!("name", Ty::Str));
pub(super) static BASIC_DEVICE: StructTy = device!("BasicDevice",);
/// v1alpha3 of 1.33: a capacity is a bare quantity.
pub(super) static BASIC_DEVICE_V1ALPHA3: StructTy = api(
    "BasicDevice",
    &[
        ATTRIBUTES,
        f!("capacity", QUANTITIES),
        CONSUMES,
        p!("nodeName", Ty::Str),
        p!("nodeSelector", NODES),
        p!("allNodes", Ty::Bool),
        DEVICE_TAINTS,
    ],
);
pub(super) static DEVICE_V1BETA1: StructTy =
    api("Device", &[a!("name", Ty::Str), p!("basic", Ty::Struct(&BASIC_DEVICE))]);
pub(super) static DEVICE_V1ALPHA3: StructTy =
    api("Device", &[a!("name", Ty::Str), p!("basic", Ty::Struct(&BASIC_DEVICE_V1ALPHA3))]);

pub(super) const DRIVER: Field = a!("driver", Ty::Str);
pub(super) const POOL_FIELD: Field = a!("pool", Ty::Struct(&POOL));
pub(super) const NODE_SELECTOR_FIELD: Field = p!("nodeSelector", NODES);
pub(super) const PER_DEVICE: Field = p!("perDeviceNodeSelection", Ty::Bool);
pub(super) const SHARED_COUNTERS: Field = f!("sharedCounters", Ty::List(&Ty::Struct(&COUNTER_SET)));
pub(super) const PARTITION_TYPE: Field =
    p!("partitionTypeAttribute", Ty::Named("FullyQualifiedName"), SINCE_1_37);
pub(super) const SKIP_OPERATIONS: Field =
    f!("skipNodeOperations", Ty::List(&Ty::Named("SkipNodeOperation")), SINCE_1_37);
pub(super) const SLICE_TAINTS: Field = f!("taints", Ty::List(&Ty::Struct(&SLICE_TAINT)), DRAFT_R2);

/// The spec of a slice: how a version declares its node and its devices.
macro_rules! slice_spec {
    ($node_name:expr, $all_nodes:expr, $device:ident) => {
        api(
            "ResourceSliceSpec",
            &[
                DRIVER,
                POOL_FIELD,
                $node_name,
                NODE_SELECTOR_FIELD,
                $all_nodes,
                f!("devices", Ty::List(&Ty::Struct(&$device))),
                PER_DEVICE,
                SHARED_COUNTERS,
                PARTITION_TYPE,
                SKIP_OPERATIONS,
                SLICE_TAINTS,
            ],
        )
    };
}
pub(super) static SLICE_SPEC: StructTy =
    slice_spec!(p!("nodeName", Ty::Str), p!("allNodes", Ty::Bool), DEVICE);
pub(super) static SLICE_SPEC_V1BETA1: StructTy =
    slice_spec!(f!("nodeName", Ty::Str), f!("allNodes", Ty::Bool), DEVICE_V1BETA1);
pub(super) static SLICE_SPEC_V1ALPHA3: StructTy = api(
    "ResourceSliceSpec",
    &[
        DRIVER,
        POOL_FIELD,
        f!("nodeName", Ty::Str),
        NODE_SELECTOR_FIELD,
        f!("allNodes", Ty::Bool),
        f!("devices", Ty::List(&Ty::Struct(&DEVICE_V1ALPHA3))),
        PER_DEVICE,
        SHARED_COUNTERS,
        SLICE_TAINTS,
    ],
);
pub(super) static SLICE: StructTy =
    api("ResourceSlice", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&SLICE_SPEC))]);
pub(super) static SLICE_V1BETA1: StructTy =
    api("ResourceSlice", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&SLICE_SPEC_V1BETA1))]);
pub(super) static SLICE_V1ALPHA3: StructTy =
    api("ResourceSlice", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&SLICE_SPEC_V1ALPHA3))]);
