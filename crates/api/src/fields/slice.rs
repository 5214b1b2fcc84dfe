//! ResourceSlice in all versions: since v1beta2 the fields of a device are in the device itself, before in `basic`, and
//! in v1alpha3 a capacity is a quantity instead of an object.

use super::meta::NODE_SELECTOR_TYPE;
use super::taint::{DEVICE_TAINTS, SLICE_TAINT};
use super::{DRAFT_R2, QUANTITY_MAP, SINCE_1_34, SINCE_1_36, SINCE_1_37, STRING_LIST, api_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

pub(super) static POOL: StructSchema = api_struct(
    "ResourcePool",
    &[a!("name", FieldType::Str), a!("generation", FieldType::Int), a!("resourceSliceCount", FieldType::Int)],
);
pub(super) static COUNTER: StructSchema = api_struct("Counter", &[a!("value", FieldType::Quantity)]);
pub(super) const COUNTERS: Field =
    f!("counters", FieldType::Map { key: "string", value: &FieldType::Struct(&COUNTER) });
/// Fields of CounterSet. The API server prints the whole element in its error about a duplicate.
pub static COUNTER_SET: StructSchema = api_struct("CounterSet", &[a!("name", FieldType::Str), COUNTERS]);
/// Fields of DeviceCounterConsumption. The API server prints the whole element in its error about a duplicate.
pub static COUNTER_CONSUMPTION: StructSchema = api_struct(
    "DeviceCounterConsumption",
    &[a!("counterSet", FieldType::Str), COUNTERS, f!("compatibilityGroups", STRING_LIST, SINCE_1_37)],
);
/// The fields of DeviceAttribute.
pub static ATTRIBUTE: StructSchema = attribute!("DeviceAttribute");
pub(super) static POLICY_RANGE: StructSchema = api_struct(
    "CapacityRequestPolicyRange",
    &[p!("min", FieldType::Quantity), p!("max", FieldType::Quantity), p!("step", FieldType::Quantity)],
);
pub(super) static REQUEST_POLICY: StructSchema = api_struct(
    "CapacityRequestPolicy",
    &[
        p!("default", FieldType::Quantity),
        f!("validValues", FieldType::List(&FieldType::Quantity)),
        p!("validRange", FieldType::Struct(&POLICY_RANGE)),
    ],
);
pub(super) static CAPACITY: StructSchema = api_struct(
    "DeviceCapacity",
    &[a!("value", FieldType::Quantity), p!("requestPolicy", FieldType::Struct(&REQUEST_POLICY), SINCE_1_34)],
);
pub(super) static NODE_RESOURCE_1_36: StructSchema = api_struct(
    "NodeAllocatableResourceMapping",
    &[p!("capacityKey", FieldType::Named("QualifiedName")), p!("allocationMultiplier", FieldType::Quantity)],
);
pub(super) static NODE_RESOURCE_MAPPING: StructSchema = api_struct(
    "NodeAllocatableMapping",
    &[
        p!("capacityKey", FieldType::Named("QualifiedName")),
        p!("capacityMultiplier", FieldType::Quantity),
        p!("deviceMultiplier", FieldType::Quantity),
    ],
);
pub(super) static NODE_RESOURCE_OVERHEAD: StructSchema = api_struct(
    "NodeAllocatableOverhead",
    &[p!("perPod", FieldType::Quantity), p!("perContainer", FieldType::Quantity)],
);
pub(super) static NODE_RESOURCE: StructSchema = api_struct(
    "NodeAllocatableResource",
    &[
        p!("mapping", FieldType::Struct(&NODE_RESOURCE_MAPPING)),
        p!("overhead", FieldType::Struct(&NODE_RESOURCE_OVERHEAD)),
    ],
);
pub(super) const ATTRIBUTES: Field =
    f!("attributes", FieldType::Map { key: "QualifiedName", value: &FieldType::Struct(&ATTRIBUTE) });
pub(super) const CAPACITIES: Field =
    f!("capacity", FieldType::Map { key: "QualifiedName", value: &FieldType::Struct(&CAPACITY) });
pub(super) const CONSUMES_COUNTERS: Field =
    f!("consumesCounters", FieldType::List(&FieldType::Struct(&COUNTER_CONSUMPTION)));
pub(super) const BINDING_CONDITIONS: Field = f!("bindingConditions", STRING_LIST, SINCE_1_34);
pub(super) const BINDING_FAILURE: Field = f!("bindingFailureConditions", STRING_LIST, SINCE_1_34);
pub(super) const NODE_RESOURCE_MAPPINGS_1_36: Field = f!(
    "nodeAllocatableResourceMappings",
    FieldType::Map { key: "v1.ResourceName", value: &FieldType::Struct(&NODE_RESOURCE_1_36) },
    Availability::release(36)
);
pub(super) const NODE_RESOURCES: Field = f!(
    "nodeAllocatableResources",
    FieldType::Map { key: "v1.ResourceName", value: &FieldType::Struct(&NODE_RESOURCE) },
    SINCE_1_37
);

/// Declares a device struct: the fields in `$own`, and those that devices of every version have.
macro_rules! device {
    ($name:literal, $($own:expr)?) => {
        api_struct(
            $name,
            &[
                $($own,)?
                ATTRIBUTES,
                CAPACITIES,
                CONSUMES_COUNTERS,
                p!("nodeName", FieldType::Str),
                p!("nodeSelector", NODE_SELECTOR_TYPE),
                p!("allNodes", FieldType::Bool),
                DEVICE_TAINTS,
                p!("bindsToNode", FieldType::Bool, SINCE_1_34),
                BINDING_CONDITIONS,
                BINDING_FAILURE,
                p!("allowMultipleAllocations", FieldType::Bool, SINCE_1_34),
                NODE_RESOURCE_MAPPINGS_1_36,
                NODE_RESOURCES,
            ],
        )
    };
}
pub(super) static DEVICE: StructSchema = device!("Device", a!("name", FieldType::Str));
pub(super) static BASIC_DEVICE: StructSchema = device!("BasicDevice",);
/// Fields of BasicDevice in v1alpha3 (Kubernetes 1.33), in which a capacity is a quantity instead of an object.
pub(super) static BASIC_DEVICE_V1ALPHA3: StructSchema = api_struct(
    "BasicDevice",
    &[
        ATTRIBUTES,
        f!("capacity", QUANTITY_MAP),
        CONSUMES_COUNTERS,
        p!("nodeName", FieldType::Str),
        p!("nodeSelector", NODE_SELECTOR_TYPE),
        p!("allNodes", FieldType::Bool),
        DEVICE_TAINTS,
    ],
);
pub(super) static DEVICE_V1BETA1: StructSchema =
    api_struct("Device", &[a!("name", FieldType::Str), p!("basic", FieldType::Struct(&BASIC_DEVICE))]);
pub(super) static DEVICE_V1ALPHA3: StructSchema = api_struct(
    "Device",
    &[a!("name", FieldType::Str), p!("basic", FieldType::Struct(&BASIC_DEVICE_V1ALPHA3))],
);

pub(super) const NODE_SELECTOR_FIELD: Field = p!("nodeSelector", NODE_SELECTOR_TYPE);
pub(super) const PARTITION_TYPE: Field =
    p!("partitionTypeAttribute", FieldType::Named("FullyQualifiedName"), SINCE_1_37);
pub(super) const SKIP_OPERATIONS: Field =
    f!("skipNodeOperations", FieldType::List(&FieldType::Named("SkipNodeOperation")), SINCE_1_37);

/// The spec of a slice: how a version declares its node and its devices, and the fields that only some versions have.
macro_rules! slice_spec {
    ($node_name:expr, $all_nodes:expr, $device:ident $(, $more:expr)*) => {
        api_struct(
            "ResourceSliceSpec",
            &[
                a!("driver", FieldType::Str),
                a!("pool", FieldType::Struct(&POOL)),
                $node_name,
                NODE_SELECTOR_FIELD,
                $all_nodes,
                f!("devices", FieldType::List(&FieldType::Struct(&$device))),
                p!("perDeviceNodeSelection", FieldType::Bool),
                f!("sharedCounters", FieldType::List(&FieldType::Struct(&COUNTER_SET))),
                $($more,)*
                f!("taints", FieldType::List(&FieldType::Struct(&SLICE_TAINT)), DRAFT_R2),
            ],
        )
    };
}
pub(super) static SLICE_SPEC: StructSchema = slice_spec!(
    p!("nodeName", FieldType::Str),
    p!("allNodes", FieldType::Bool),
    DEVICE,
    PARTITION_TYPE,
    SKIP_OPERATIONS
);
pub(super) static SLICE_SPEC_V1BETA1: StructSchema = slice_spec!(
    f!("nodeName", FieldType::Str),
    f!("allNodes", FieldType::Bool),
    DEVICE_V1BETA1,
    PARTITION_TYPE,
    SKIP_OPERATIONS
);
pub(super) static SLICE_SPEC_V1ALPHA3: StructSchema =
    slice_spec!(f!("nodeName", FieldType::Str), f!("allNodes", FieldType::Bool), DEVICE_V1ALPHA3);
pub(super) static SLICE: StructSchema = kind!(api_struct, "ResourceSlice", SLICE_SPEC);
pub(super) static SLICE_V1BETA1: StructSchema = kind!(api_struct, "ResourceSlice", SLICE_SPEC_V1BETA1);
pub(super) static SLICE_V1ALPHA3: StructSchema = kind!(api_struct, "ResourceSlice", SLICE_SPEC_V1ALPHA3);
