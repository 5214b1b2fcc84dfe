//! Status of a ResourceClaim.

use super::claim::{ADMIN_ACCESS, OPAQUE_FIELD};
use super::meta::CONDITIONS;
use super::slice::{BINDING_CONDITIONS, BINDING_FAILURE, NODE_SELECTOR_FIELD, SKIP_OPERATIONS};
use super::taint::TOLERATIONS;
use super::{QUANTITY_MAP, SINCE_1_34, STRING_LIST, api_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

pub(super) static REQUEST_ALLOCATION_RESULT: StructSchema = api_struct(
    "DeviceRequestAllocationResult",
    &[
        a!("request", FieldType::Str),
        a!("driver", FieldType::Str),
        a!("pool", FieldType::Str),
        a!("device", FieldType::Str),
        ADMIN_ACCESS,
        TOLERATIONS,
        BINDING_CONDITIONS,
        BINDING_FAILURE,
        p!("shareID", FieldType::Uid, SINCE_1_34),
        f!("consumedCapacity", QUANTITY_MAP, SINCE_1_34),
        SKIP_OPERATIONS,
    ],
);
pub(super) static ALLOCATION_CONFIG: StructSchema = api_struct(
    "DeviceAllocationConfiguration",
    &[a!("source", FieldType::Named("AllocationConfigSource")), f!("requests", STRING_LIST), OPAQUE_FIELD],
);
pub(super) static DEVICE_ALLOCATION: StructSchema = api_struct(
    "DeviceAllocationResult",
    &[
        f!("results", FieldType::List(&FieldType::Struct(&REQUEST_ALLOCATION_RESULT))),
        f!("config", FieldType::List(&FieldType::Struct(&ALLOCATION_CONFIG))),
    ],
);
/// Fields of AllocationResult. The API server prints the whole value in its error about a change.
pub static ALLOCATION: StructSchema = api_struct(
    "AllocationResult",
    &[
        f!("devices", FieldType::Struct(&DEVICE_ALLOCATION)),
        NODE_SELECTOR_FIELD,
        p!("allocationTimestamp", FieldType::Time, SINCE_1_34),
    ],
);
/// Fields of ResourceClaimConsumerReference. The API server prints the whole element in its error about a duplicate.
pub static CONSUMER: StructSchema = api_struct(
    "ResourceClaimConsumerReference",
    &[
        f!("apiGroup", FieldType::Str),
        a!("resource", FieldType::Str),
        a!("name", FieldType::Str),
        a!("uid", FieldType::Uid),
    ],
);
pub(super) static NETWORK_DATA: StructSchema = api_struct(
    "NetworkDeviceData",
    &[f!("interfaceName", FieldType::Str), f!("ips", STRING_LIST), f!("hardwareAddress", FieldType::Str)],
);
/// Fields of AllocatedDeviceStatus. The API server prints the whole element in its error about a duplicate.
pub static DEVICE_STATUS: StructSchema = api_struct(
    "AllocatedDeviceStatus",
    &[
        a!("driver", FieldType::Str),
        a!("pool", FieldType::Str),
        a!("device", FieldType::Str),
        p!("shareID", FieldType::Str, SINCE_1_34),
        a!("conditions", CONDITIONS),
        p!("data", FieldType::Raw),
        p!("networkData", FieldType::Struct(&NETWORK_DATA)),
    ],
);
/// Fields of ResourceClaimStatus. Used to compare them on updates.
pub static CLAIM_STATUS: StructSchema = api_struct(
    "ResourceClaimStatus",
    &[
        p!("allocation", FieldType::Struct(&ALLOCATION)),
        f!("reservedFor", FieldType::List(&FieldType::Struct(&CONSUMER))),
        f!("devices", FieldType::List(&FieldType::Struct(&DEVICE_STATUS))),
    ],
);
