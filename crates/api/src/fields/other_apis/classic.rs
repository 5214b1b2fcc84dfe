//! Classic DRA (KEP-3063), group `cdi.k8s.io`: ResourceClass, ResourceClaim, and the template inside of a Pod.

use crate::fields::meta::{API_VERSION, KIND, META, NODE_SELECTOR_TYPE, OWNER_REFERENCE};
use crate::fields::{STRING_LIST, api_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

pub(in crate::fields) static CLASSIC_CLASS: StructSchema = api_struct(
    "ResourceClass",
    &[API_VERSION, KIND, META, a!("driverName", FieldType::Str), f!("parameters", FieldType::Raw)],
);

pub(in crate::fields) const CLASS_NAME: Field = a!("resourceClassName", FieldType::Str);
pub(in crate::fields) const PARAMETERS: Field = f!("parameters", FieldType::Raw);
pub(in crate::fields) const CLASSIC_ALLOCATION_MODE_FIELD: Field =
    f!("allocationMode", FieldType::Named("AllocationMode"));
pub(in crate::fields) static CLAIM_SPEC: StructSchema =
    api_struct("ResourceClaimSpec", &[CLASS_NAME, PARAMETERS, CLASSIC_ALLOCATION_MODE_FIELD]);

pub(in crate::fields) static SCHEDULER_STATUS: StructSchema = api_struct(
    "SchedulerSchedulingStatus",
    &[f!("selectedNode", FieldType::Str), f!("potentialNodes", STRING_LIST)],
);
pub(in crate::fields) static DRIVER_STATUS: StructSchema = api_struct(
    "DriverSchedulingStatus",
    &[f!("unsuitableNodes", STRING_LIST), p!("availableOnNodes", NODE_SELECTOR_TYPE)],
);
pub(in crate::fields) static SCHEDULING: StructSchema = api_struct(
    "SchedulingStatus",
    &[f!("scheduler", FieldType::Struct(&SCHEDULER_STATUS)), f!("driver", FieldType::Struct(&DRIVER_STATUS))],
);
pub(in crate::fields) static CLAIM_STATUS: StructSchema = api_struct(
    "ResourceClaimStatus",
    &[
        f!("phase", FieldType::Named("ResourceClaimPhase")),
        f!("driverName", FieldType::Str),
        p!("scheduling", FieldType::Struct(&SCHEDULING)),
        f!("attributes", FieldType::Map { key: "string", value: &FieldType::Str }),
        f!("userLimit", FieldType::Int),
        f!("reservedFor", FieldType::List(&FieldType::Struct(&OWNER_REFERENCE))),
    ],
);
pub(in crate::fields) static CLASSIC_CLAIM: StructSchema =
    kind!(api_struct, "ResourceClaim", CLAIM_SPEC, f!("status", FieldType::Struct(&CLAIM_STATUS)));
/// Fields of a classic ResourceClaimTemplate. The KEP's type has a spec; its example omits it and writes the
/// fields of the spec directly.
pub(in crate::fields) static CLAIM_TEMPLATE: StructSchema = api_struct(
    "ResourceClaimTemplate",
    &[
        META,
        p!("spec", FieldType::Struct(&CLAIM_SPEC)),
        p!("resourceClassName", FieldType::Str),
        PARAMETERS,
        p!("allocationMode", FieldType::Named("AllocationMode")),
    ],
);
