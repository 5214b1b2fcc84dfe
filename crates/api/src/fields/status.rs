//! Status of a ResourceClaim.

use super::claim::{ADMIN_ACCESS, OPAQUE_FIELD};
use super::meta::CONDITIONS;
use super::slice::{BINDING, BINDING_FAILURE, NODE_SELECTOR_FIELD, SKIP_OPERATIONS};
use super::taint::TOLERATIONS;
use super::{QUANTITIES, SINCE_1_34, STRINGS, api};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

pub(super) static RESULT: StructTy = api(
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
        p!("shareID", Ty::Uid, SINCE_1_34),
        f!("consumedCapacity", QUANTITIES, SINCE_1_34),
        SKIP_OPERATIONS,
    ],
);
pub(super) static ALLOCATION_CONFIG: StructTy = api(
    "DeviceAllocationConfiguration",
    &[a!("source", Ty::Named("AllocationConfigSource")), f!("requests", STRINGS), OPAQUE_FIELD],
);
pub(super) static DEVICE_ALLOCATION: StructTy = api(
    "DeviceAllocationResult",
    &[f!("results", Ty::List(&Ty::Struct(&RESULT))), f!("config", Ty::List(&Ty::Struct(&ALLOCATION_CONFIG)))],
);
/// AllocationResult, printed whole when changed.
pub static ALLOCATION: StructTy = api(
    "AllocationResult",
    &[
        f!("devices", Ty::Struct(&DEVICE_ALLOCATION)),
        NODE_SELECTOR_FIELD,
        p!("allocationTimestamp", Ty::Time, SINCE_1_34),
    ],
);
/// ResourceClaimConsumerReference, printed whole when duplicate.
pub static CONSUMER: StructTy = api(
    "ResourceClaimConsumerReference",
    &[f!("apiGroup", Ty::Str), a!("resource", Ty::Str), a!("name", Ty::Str), a!("uid", Ty::Uid)],
);
pub(super) static NETWORK_DATA: StructTy = api(
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
        p!("shareID", Ty::Str, SINCE_1_34),
        a!("conditions", CONDITIONS),
        p!("data", Ty::Raw),
        p!("networkData", Ty::Struct(&NETWORK_DATA)),
    ],
);
/// ResourceClaimStatus, whose parts are compared on updates.
pub static CLAIM_STATUS: StructTy = api(
    "ResourceClaimStatus",
    &[
        p!("allocation", Ty::Struct(&ALLOCATION)),
        f!("reservedFor", Ty::List(&Ty::Struct(&CONSUMER))),
        f!("devices", Ty::List(&Ty::Struct(&DEVICE_STATUS))),
    ],
);
