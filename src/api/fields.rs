//! Which JSON fields each kind has, per version and release: data, in Go's declaration order.
//!
//! The order matters where the server prints a whole element. Differences between versions are different structs
//! (`basic` devices, flat requests); differences between releases are the last column. Nothing here is behaviour.

use super::schema::{Field, Home, StructTy, Ty};
use crate::profile::{ApiKind, Fields, Version};

/// The root type of a kind in a version.
pub fn root(kind: ApiKind, version: Version) -> &'static StructTy {
    match (kind, version) {
        (ApiKind::ResourceSlice, Version::V1alpha3) => &SLICE_V1ALPHA3,
        (ApiKind::ResourceSlice, Version::V1beta1) => &SLICE_V1BETA1,
        (ApiKind::ResourceSlice, _) => &SLICE,
        (ApiKind::ResourceClaim, Version::V1alpha3 | Version::V1beta1) => &CLAIM_FLAT,
        (ApiKind::ResourceClaim, _) => &CLAIM,
        (ApiKind::ResourceClaimTemplate, Version::V1alpha3 | Version::V1beta1) => &TEMPLATE_FLAT,
        (ApiKind::ResourceClaimTemplate, _) => &TEMPLATE,
        (ApiKind::DeviceTaintRule, _) => &TAINT_RULE,
        (ApiKind::DeviceClass, _) => &CLASS,
    }
}

const S34: Fields = Fields::since(34);
const S35: Fields = Fields::since(35);
const S36: Fields = Fields::since(36);
const S37: Fields = Fields::since(37);
const R2: Fields = Fields::DRAFT_R2;

/// A field left out when empty. Macros and not functions: only literals may borrow other rows in a constant.
macro_rules! f {
    ($json:literal, $ty:expr) => {
        f!($json, $ty, Fields::ALWAYS)
    };
    ($json:literal, $ty:expr, $known:expr) => {
        Field { json: $json, ty: $ty, pointer: false, always: false, known: $known }
    };
}
/// A field always printed.
macro_rules! a {
    ($json:literal, $ty:expr) => {
        Field { json: $json, ty: $ty, pointer: false, always: true, known: Fields::ALWAYS }
    };
}
/// A pointer.
macro_rules! p {
    ($json:literal, $ty:expr) => {
        p!($json, $ty, Fields::ALWAYS)
    };
    ($json:literal, $ty:expr, $known:expr) => {
        Field { json: $json, ty: $ty, pointer: true, always: false, known: $known }
    };
}
const fn api(name: &'static str, fields: &'static [Field]) -> StructTy {
    StructTy { name, home: Home::Api, fields }
}
const fn meta(name: &'static str, fields: &'static [Field]) -> StructTy {
    StructTy { name, home: Home::Meta, fields }
}
const STRINGS: Ty = Ty::List(&Ty::Str);
const QUANTITIES: Ty = Ty::Map { key: "QualifiedName", value: &Ty::Quantity };

// — metadata —

static OWNER_REFERENCE: StructTy = meta(
    "OwnerReference",
    &[
        a!("apiVersion", Ty::Str),
        a!("kind", Ty::Str),
        a!("name", Ty::Str),
        a!("uid", Ty::Uid),
        p!("controller", Ty::Bool),
        p!("blockOwnerDeletion", Ty::Bool),
    ],
);
static MANAGED_FIELDS: StructTy = meta(
    "ManagedFieldsEntry",
    &[
        f!("manager", Ty::Str),
        f!("operation", Ty::Str),
        f!("apiVersion", Ty::Str),
        p!("time", Ty::Time),
        f!("fieldsType", Ty::Str),
        p!("fieldsV1", Ty::Raw),
        f!("subresource", Ty::Str),
    ],
);
static OBJECT_META: StructTy = meta(
    "ObjectMeta",
    &[
        f!("name", Ty::Str),
        f!("generateName", Ty::Str),
        f!("namespace", Ty::Str),
        f!("selfLink", Ty::Str),
        f!("uid", Ty::Uid),
        f!("resourceVersion", Ty::Str),
        f!("generation", Ty::Int),
        f!("creationTimestamp", Ty::Time),
        p!("deletionTimestamp", Ty::Time),
        p!("deletionGracePeriodSeconds", Ty::Int),
        f!("labels", Ty::Map { key: "string", value: &Ty::Str }),
        f!("annotations", Ty::Map { key: "string", value: &Ty::Str }),
        f!("ownerReferences", Ty::List(&Ty::Struct(&OWNER_REFERENCE))),
        f!("finalizers", STRINGS),
        f!("managedFields", Ty::List(&Ty::Struct(&MANAGED_FIELDS))),
    ],
);
static CONDITION: StructTy = meta(
    "Condition",
    &[
        a!("type", Ty::Str),
        a!("status", Ty::Str),
        f!("observedGeneration", Ty::Int),
        a!("lastTransitionTime", Ty::Time),
        a!("reason", Ty::Str),
        a!("message", Ty::Str),
    ],
);
const CONDITIONS: Ty = Ty::List(&Ty::Struct(&CONDITION));
const META: Field = f!("metadata", Ty::Struct(&OBJECT_META));
const API_VERSION: Field = f!("apiVersion", Ty::Str);
const KIND: Field = f!("kind", Ty::Str);

// — node selectors —

static NODE_REQUIREMENT: StructTy = meta(
    "NodeSelectorRequirement",
    &[a!("key", Ty::Str), a!("operator", Ty::Named("NodeSelectorOperator")), f!("values", STRINGS)],
);
static NODE_TERM: StructTy = meta(
    "NodeSelectorTerm",
    &[
        f!("matchExpressions", Ty::List(&Ty::Struct(&NODE_REQUIREMENT))),
        f!("matchFields", Ty::List(&Ty::Struct(&NODE_REQUIREMENT))),
    ],
);
static NODE_SELECTOR: StructTy =
    meta("NodeSelector", &[a!("nodeSelectorTerms", Ty::List(&Ty::Struct(&NODE_TERM)))]);
const NODES: Ty = Ty::Struct(&NODE_SELECTOR);

// — taints and tolerations: the same in every version —

/// DeviceTaint.
pub static TAINT: StructTy = api(
    "DeviceTaint",
    &[
        a!("key", Ty::Str),
        f!("value", Ty::Str),
        a!("effect", Ty::Named("DeviceTaintEffect")),
        p!("timeAdded", Ty::Time),
        f!("description", Ty::Str, R2),
        p!("data", Ty::Raw, R2),
        p!("evictionsPerSecond", Ty::Int, R2),
    ],
);
/// DeviceToleration.
pub static TOLERATION: StructTy = api(
    "DeviceToleration",
    &[
        f!("key", Ty::Str),
        f!("operator", Ty::Named("DeviceTolerationOperator")),
        f!("value", Ty::Str),
        f!("effect", Ty::Named("DeviceTaintEffect")),
        p!("tolerationSeconds", Ty::Int),
    ],
);
const TAINTS: Field = f!("taints", Ty::List(&Ty::Struct(&TAINT)));
const TOLERATIONS: Field = f!("tolerations", Ty::List(&Ty::Struct(&TOLERATION)));

/// Draft r2's SliceDeviceTaint. The KEP leaves the JSON open: nested in `taint`, or inlined.
static SLICE_TAINT: StructTy = api(
    "SliceDeviceTaint",
    &[
        a!("device", Ty::Str),
        p!("taint", Ty::Struct(&TAINT)),
        f!("key", Ty::Str),
        f!("value", Ty::Str),
        f!("effect", Ty::Named("DeviceTaintEffect")),
        p!("timeAdded", Ty::Time),
        f!("description", Ty::Str),
        p!("data", Ty::Raw),
        p!("evictionsPerSecond", Ty::Int),
    ],
);

// — slices —

static POOL: StructTy =
    api("ResourcePool", &[a!("name", Ty::Str), a!("generation", Ty::Int), a!("resourceSliceCount", Ty::Int)]);
static COUNTER: StructTy = api("Counter", &[a!("value", Ty::Quantity)]);
const COUNTERS: Field = f!("counters", Ty::Map { key: "string", value: &Ty::Struct(&COUNTER) });
/// CounterSet, printed whole when duplicate.
pub static COUNTER_SET: StructTy = api("CounterSet", &[a!("name", Ty::Str), COUNTERS]);
/// DeviceCounterConsumption, printed whole when duplicate.
pub static CONSUMPTION: StructTy = api(
    "DeviceCounterConsumption",
    &[a!("counterSet", Ty::Str), COUNTERS, f!("compatibilityGroups", STRINGS, S37)],
);
static ATTRIBUTE: StructTy = api(
    "DeviceAttribute",
    &[
        p!("int", Ty::Int),
        p!("bool", Ty::Bool),
        p!("string", Ty::Str),
        p!("version", Ty::Str),
        f!("ints", Ty::List(&Ty::Int), S36),
        f!("bools", Ty::List(&Ty::Bool), S36),
        f!("strings", STRINGS, S36),
        f!("versions", STRINGS, S36),
    ],
);
static POLICY_RANGE: StructTy = api(
    "CapacityRequestPolicyRange",
    &[p!("min", Ty::Quantity), p!("max", Ty::Quantity), p!("step", Ty::Quantity)],
);
static REQUEST_POLICY: StructTy = api(
    "CapacityRequestPolicy",
    &[
        p!("default", Ty::Quantity),
        f!("validValues", Ty::List(&Ty::Quantity)),
        p!("validRange", Ty::Struct(&POLICY_RANGE)),
    ],
);
static CAPACITY: StructTy = api(
    "DeviceCapacity",
    &[a!("value", Ty::Quantity), p!("requestPolicy", Ty::Struct(&REQUEST_POLICY), S34)],
);
static NODE_RESOURCE_1_36: StructTy = api(
    "NodeAllocatableResourceMapping",
    &[p!("capacityKey", Ty::Named("QualifiedName")), p!("allocationMultiplier", Ty::Quantity)],
);
static NODE_RESOURCE_MAPPING: StructTy = api(
    "NodeAllocatableResourceMapping",
    &[
        p!("capacityKey", Ty::Named("QualifiedName")),
        p!("capacityMultiplier", Ty::Quantity),
        p!("deviceMultiplier", Ty::Quantity),
    ],
);
static NODE_RESOURCE_OVERHEAD: StructTy =
    api("NodeAllocatableResourceOverhead", &[p!("perPod", Ty::Quantity), p!("perContainer", Ty::Quantity)]);
static NODE_RESOURCE: StructTy = api(
    "NodeAllocatableResource",
    &[p!("mapping", Ty::Struct(&NODE_RESOURCE_MAPPING)), p!("overhead", Ty::Struct(&NODE_RESOURCE_OVERHEAD))],
);
const ATTRIBUTES: Field = f!("attributes", Ty::Map { key: "QualifiedName", value: &Ty::Struct(&ATTRIBUTE) });
const CAPACITIES: Field = f!("capacity", Ty::Map { key: "QualifiedName", value: &Ty::Struct(&CAPACITY) });
const CONSUMES: Field = f!("consumesCounters", Ty::List(&Ty::Struct(&CONSUMPTION)));
const BINDS_TO_NODE: Field = p!("bindsToNode", Ty::Bool, S34);
const BINDING: Field = f!("bindingConditions", STRINGS, S34);
const BINDING_FAILURE: Field = f!("bindingFailureConditions", STRINGS, S34);
const MULTIPLE: Field = p!("allowMultipleAllocations", Ty::Bool, S34);
const NODE_MAPPINGS: Field = f!(
    "nodeAllocatableResourceMappings",
    Ty::Map { key: "string", value: &Ty::Struct(&NODE_RESOURCE_1_36) },
    Fields::release(36)
);
const NODE_RESOURCES: Field =
    f!("nodeAllocatableResources", Ty::Map { key: "string", value: &Ty::Struct(&NODE_RESOURCE) }, S37);

static DEVICE: StructTy = api(
    "Device",
    &[
        a!("name", Ty::Str),
        ATTRIBUTES,
        CAPACITIES,
        CONSUMES,
        p!("nodeName", Ty::Str),
        p!("nodeSelector", NODES),
        p!("allNodes", Ty::Bool),
        TAINTS,
        BINDS_TO_NODE,
        BINDING,
        BINDING_FAILURE,
        MULTIPLE,
        NODE_MAPPINGS,
        NODE_RESOURCES,
    ],
);
static BASIC_DEVICE: StructTy = api(
    "BasicDevice",
    &[
        ATTRIBUTES,
        CAPACITIES,
        CONSUMES,
        p!("nodeName", Ty::Str),
        p!("nodeSelector", NODES),
        p!("allNodes", Ty::Bool),
        TAINTS,
        BINDS_TO_NODE,
        BINDING,
        BINDING_FAILURE,
        MULTIPLE,
        NODE_MAPPINGS,
        NODE_RESOURCES,
    ],
);
/// v1alpha3 of 1.33: a capacity is a bare quantity.
static BASIC_DEVICE_V1ALPHA3: StructTy = api(
    "BasicDevice",
    &[
        ATTRIBUTES,
        f!("capacity", QUANTITIES),
        CONSUMES,
        p!("nodeName", Ty::Str),
        p!("nodeSelector", NODES),
        p!("allNodes", Ty::Bool),
        TAINTS,
    ],
);
static DEVICE_V1BETA1: StructTy =
    api("Device", &[a!("name", Ty::Str), p!("basic", Ty::Struct(&BASIC_DEVICE))]);
static DEVICE_V1ALPHA3: StructTy =
    api("Device", &[a!("name", Ty::Str), p!("basic", Ty::Struct(&BASIC_DEVICE_V1ALPHA3))]);

const DRIVER: Field = a!("driver", Ty::Str);
const POOL_FIELD: Field = a!("pool", Ty::Struct(&POOL));
const NODE_SELECTOR_FIELD: Field = p!("nodeSelector", NODES);
const PER_DEVICE: Field = p!("perDeviceNodeSelection", Ty::Bool);
const SHARED_COUNTERS: Field = f!("sharedCounters", Ty::List(&Ty::Struct(&COUNTER_SET)));
const PARTITION_TYPE: Field = p!("partitionTypeAttribute", Ty::Named("FullyQualifiedName"), S37);
const SKIP_OPERATIONS: Field = f!("skipNodeOperations", Ty::List(&Ty::Named("SkipNodeOperation")), S37);
const SLICE_TAINTS: Field = f!("taints", Ty::List(&Ty::Struct(&SLICE_TAINT)), R2);

static SLICE_SPEC: StructTy = api(
    "ResourceSliceSpec",
    &[
        DRIVER,
        POOL_FIELD,
        p!("nodeName", Ty::Str),
        NODE_SELECTOR_FIELD,
        p!("allNodes", Ty::Bool),
        f!("devices", Ty::List(&Ty::Struct(&DEVICE))),
        PER_DEVICE,
        SHARED_COUNTERS,
        PARTITION_TYPE,
        SKIP_OPERATIONS,
        SLICE_TAINTS,
    ],
);
static SLICE_SPEC_V1BETA1: StructTy = api(
    "ResourceSliceSpec",
    &[
        DRIVER,
        POOL_FIELD,
        f!("nodeName", Ty::Str),
        NODE_SELECTOR_FIELD,
        f!("allNodes", Ty::Bool),
        f!("devices", Ty::List(&Ty::Struct(&DEVICE_V1BETA1))),
        PER_DEVICE,
        SHARED_COUNTERS,
        PARTITION_TYPE,
        SKIP_OPERATIONS,
        SLICE_TAINTS,
    ],
);
static SLICE_SPEC_V1ALPHA3: StructTy = api(
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
static SLICE: StructTy =
    api("ResourceSlice", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&SLICE_SPEC))]);
static SLICE_V1BETA1: StructTy =
    api("ResourceSlice", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&SLICE_SPEC_V1BETA1))]);
static SLICE_V1ALPHA3: StructTy =
    api("ResourceSlice", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&SLICE_SPEC_V1ALPHA3))]);

// — claims —

static CEL_SELECTOR: StructTy = api("CELDeviceSelector", &[a!("expression", Ty::Str)]);
static SELECTOR: StructTy = api("DeviceSelector", &[p!("cel", Ty::Struct(&CEL_SELECTOR))]);
const SELECTORS: Field = f!("selectors", Ty::List(&Ty::Struct(&SELECTOR)));
static CAPACITY_REQUIREMENTS: StructTy = api("CapacityRequirements", &[f!("requests", QUANTITIES)]);
static DERIVED: StructTy =
    api("DeviceDerivedAttribute", &[a!("name", Ty::Named("FullyQualifiedName")), a!("expression", Ty::Str)]);
const CLASS_NAME: Field = a!("deviceClassName", Ty::Str);
const MODE: Field = f!("allocationMode", Ty::Named("DeviceAllocationMode"));
const COUNT: Field = f!("count", Ty::Int);
const ADMIN_ACCESS: Field = p!("adminAccess", Ty::Bool);
const CAPACITY_FIELD: Field = p!("capacity", Ty::Struct(&CAPACITY_REQUIREMENTS), S34);
const DERIVED_FIELD: Field = f!("derivedAttributes", Ty::List(&Ty::Struct(&DERIVED)), S37);

static EXACT: StructTy = api(
    "ExactDeviceRequest",
    &[CLASS_NAME, SELECTORS, MODE, COUNT, ADMIN_ACCESS, TOLERATIONS, CAPACITY_FIELD, DERIVED_FIELD],
);
/// DeviceSubRequest, printed whole when duplicate.
pub static SUB_REQUEST: StructTy = api(
    "DeviceSubRequest",
    &[a!("name", Ty::Str), CLASS_NAME, SELECTORS, MODE, COUNT, TOLERATIONS, CAPACITY_FIELD, DERIVED_FIELD],
);
const FIRST_AVAILABLE: Field = f!("firstAvailable", Ty::List(&Ty::Struct(&SUB_REQUEST)));
/// DeviceRequest, printed whole when duplicate.
pub static REQUEST: StructTy =
    api("DeviceRequest", &[a!("name", Ty::Str), p!("exactly", Ty::Struct(&EXACT)), FIRST_AVAILABLE]);
/// DeviceRequest before v1beta2.
pub static REQUEST_FLAT: StructTy = api(
    "DeviceRequest",
    &[
        a!("name", Ty::Str),
        f!("deviceClassName", Ty::Str),
        SELECTORS,
        MODE,
        COUNT,
        ADMIN_ACCESS,
        FIRST_AVAILABLE,
        TOLERATIONS,
        CAPACITY_FIELD,
        DERIVED_FIELD,
    ],
);
static CONSTRAINT: StructTy = api(
    "DeviceConstraint",
    &[
        f!("requests", STRINGS),
        p!("matchAttribute", Ty::Named("FullyQualifiedName")),
        p!("distinctAttribute", Ty::Named("FullyQualifiedName"), S34),
    ],
);
static OPAQUE: StructTy =
    api("OpaqueDeviceConfiguration", &[a!("driver", Ty::Str), a!("parameters", Ty::Raw)]);
const OPAQUE_FIELD: Field = p!("opaque", Ty::Struct(&OPAQUE));
static CLAIM_CONFIG: StructTy = api("DeviceClaimConfiguration", &[f!("requests", STRINGS), OPAQUE_FIELD]);
const CONSTRAINTS: Field = f!("constraints", Ty::List(&Ty::Struct(&CONSTRAINT)));
const CLAIM_CONFIGS: Field = f!("config", Ty::List(&Ty::Struct(&CLAIM_CONFIG)));
static DEVICE_CLAIM: StructTy =
    api("DeviceClaim", &[f!("requests", Ty::List(&Ty::Struct(&REQUEST))), CONSTRAINTS, CLAIM_CONFIGS]);
static DEVICE_CLAIM_FLAT: StructTy =
    api("DeviceClaim", &[f!("requests", Ty::List(&Ty::Struct(&REQUEST_FLAT))), CONSTRAINTS, CLAIM_CONFIGS]);
static CLAIM_SPEC: StructTy = api("ResourceClaimSpec", &[f!("devices", Ty::Struct(&DEVICE_CLAIM))]);
static CLAIM_SPEC_FLAT: StructTy = api("ResourceClaimSpec", &[f!("devices", Ty::Struct(&DEVICE_CLAIM_FLAT))]);

static RESULT: StructTy = api(
    "DeviceRequestAllocationResult",
    &[
        a!("request", Ty::Str),
        a!("driver", Ty::Str),
        a!("pool", Ty::Str),
        a!("device", Ty::Str),
        ADMIN_ACCESS,
        TOLERATIONS,
        BINDING,
        BINDING_FAILURE,
        p!("shareID", Ty::Uid, S34),
        f!("consumedCapacity", QUANTITIES, S34),
        SKIP_OPERATIONS,
    ],
);
static ALLOCATION_CONFIG: StructTy = api(
    "DeviceAllocationConfiguration",
    &[a!("source", Ty::Named("AllocationConfigSource")), f!("requests", STRINGS), OPAQUE_FIELD],
);
static DEVICE_ALLOCATION: StructTy = api(
    "DeviceAllocationResult",
    &[f!("results", Ty::List(&Ty::Struct(&RESULT))), f!("config", Ty::List(&Ty::Struct(&ALLOCATION_CONFIG)))],
);
static ALLOCATION: StructTy = api(
    "AllocationResult",
    &[
        f!("devices", Ty::Struct(&DEVICE_ALLOCATION)),
        NODE_SELECTOR_FIELD,
        p!("allocationTimestamp", Ty::Time, S34),
    ],
);
/// ResourceClaimConsumerReference, printed whole when duplicate.
pub static CONSUMER: StructTy = api(
    "ResourceClaimConsumerReference",
    &[f!("apiGroup", Ty::Str), a!("resource", Ty::Str), a!("name", Ty::Str), a!("uid", Ty::Uid)],
);
static NETWORK_DATA: StructTy = api(
    "NetworkDeviceData",
    &[f!("interfaceName", Ty::Str), f!("ips", STRINGS), f!("hardwareAddress", Ty::Str)],
);
/// AllocatedDeviceStatus, printed whole when duplicate.
pub static DEVICE_STATUS: StructTy = api(
    "AllocatedDeviceStatus",
    &[
        a!("driver", Ty::Str),
        a!("pool", Ty::Str),
        a!("device", Ty::Str),
        p!("shareID", Ty::Str, S34),
        a!("conditions", CONDITIONS),
        p!("data", Ty::Raw),
        p!("networkData", Ty::Struct(&NETWORK_DATA)),
    ],
);
static CLAIM_STATUS: StructTy = api(
    "ResourceClaimStatus",
    &[
        p!("allocation", Ty::Struct(&ALLOCATION)),
        f!("reservedFor", Ty::List(&Ty::Struct(&CONSUMER))),
        f!("devices", Ty::List(&Ty::Struct(&DEVICE_STATUS))),
    ],
);
const CLAIM_STATUS_FIELD: Field = f!("status", Ty::Struct(&CLAIM_STATUS));
static CLAIM: StructTy =
    api("ResourceClaim", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLAIM_SPEC)), CLAIM_STATUS_FIELD]);
static CLAIM_FLAT: StructTy = api(
    "ResourceClaim",
    &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLAIM_SPEC_FLAT)), CLAIM_STATUS_FIELD],
);
static TEMPLATE_SPEC: StructTy =
    api("ResourceClaimTemplateSpec", &[META, f!("spec", Ty::Struct(&CLAIM_SPEC))]);
static TEMPLATE_SPEC_FLAT: StructTy =
    api("ResourceClaimTemplateSpec", &[META, f!("spec", Ty::Struct(&CLAIM_SPEC_FLAT))]);
static TEMPLATE: StructTy =
    api("ResourceClaimTemplate", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&TEMPLATE_SPEC))]);
static TEMPLATE_FLAT: StructTy =
    api("ResourceClaimTemplate", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&TEMPLATE_SPEC_FLAT))]);

// — classes and rules —

static CLASS_CONFIG: StructTy = api("DeviceClassConfiguration", &[OPAQUE_FIELD]);
static CLASS_SPEC: StructTy = api(
    "DeviceClassSpec",
    &[
        SELECTORS,
        f!("config", Ty::List(&Ty::Struct(&CLASS_CONFIG))),
        p!("extendedResourceName", Ty::Str, S34),
    ],
);
static CLASS: StructTy = api("DeviceClass", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLASS_SPEC))]);

/// Selection by class and CEL shipped in 1.33 and 1.34 and is part of draft r2.
const BY_CLASS: Fields = Fields::between(33, 34).or(R2);
static TAINT_SELECTOR: StructTy = api(
    "DeviceTaintSelector",
    &[
        p!("deviceClassName", Ty::Str, BY_CLASS),
        p!("driver", Ty::Str),
        p!("pool", Ty::Str),
        p!("device", Ty::Str),
        Field { known: BY_CLASS, ..SELECTORS },
    ],
);
static RULE_SPEC: StructTy = api(
    "DeviceTaintRuleSpec",
    &[p!("deviceSelector", Ty::Struct(&TAINT_SELECTOR)), f!("taint", Ty::Struct(&TAINT))],
);
static RULE_STATUS: StructTy = api("DeviceTaintRuleStatus", &[f!("conditions", CONDITIONS)]);
static TAINT_RULE: StructTy = api(
    "DeviceTaintRule",
    &[
        API_VERSION,
        KIND,
        META,
        f!("spec", Ty::Struct(&RULE_SPEC)),
        f!("status", Ty::Struct(&RULE_STATUS), S35),
    ],
);
