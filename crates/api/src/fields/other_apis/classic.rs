//! Classic DRA (KEP-3063), group `cdi.k8s.io`: ResourceClass, ResourceClaim, and the template inside of a Pod.

use crate::fields::meta::{API_VERSION, KIND, META, NODES, OWNER_REFERENCE};
use crate::fields::{STRINGS, api};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

pub(in crate::fields) static CLASSIC_CLASS: StructTy =
    api("ResourceClass", &[API_VERSION, KIND, META, a!("driverName", Ty::Str), f!("parameters", Ty::Raw)]);

pub(in crate::fields) const CLASS_NAME: Field = a!("resourceClassName", Ty::Str);
pub(in crate::fields) const PARAMETERS: Field = f!("parameters", Ty::Raw);
pub(in crate::fields) const MODE: Field = f!("allocationMode", Ty::Named("AllocationMode"));
pub(in crate::fields) static CLAIM_SPEC: StructTy = api("ResourceClaimSpec", &[CLASS_NAME, PARAMETERS, MODE]);

pub(in crate::fields) static SCHEDULER_STATUS: StructTy =
    api("SchedulerSchedulingStatus", &[f!("selectedNode", Ty::Str), f!("potentialNodes", STRINGS)]);
pub(in crate::fields) static DRIVER_STATUS: StructTy =
    api("DriverSchedulingStatus", &[f!("unsuitableNodes", STRINGS), p!("availableOnNodes", NODES)]);
pub(in crate::fields) static SCHEDULING: StructTy = api(
    "SchedulingStatus",
    &[f!("scheduler", Ty::Struct(&SCHEDULER_STATUS)), f!("driver", Ty::Struct(&DRIVER_STATUS))],
);
pub(in crate::fields) static CLAIM_STATUS: StructTy = api(
    "ResourceClaimStatus",
    &[
        f!("phase", Ty::Named("ResourceClaimPhase")),
        f!("driverName", Ty::Str),
        p!("scheduling", Ty::Struct(&SCHEDULING)),
        f!("attributes", Ty::Map { key: "string", value: &Ty::Str }),
        f!("userLimit", Ty::Int),
        f!("reservedFor", Ty::List(&Ty::Struct(&OWNER_REFERENCE))),
    ],
);
pub(in crate::fields) static CLASSIC_CLAIM: StructTy = api(
    "ResourceClaim",
    &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLAIM_SPEC)), f!("status", Ty::Struct(&CLAIM_STATUS))],
);
/// Fields of a classic ResourceClaimTemplate. The KEP's type has a spec; its example omits it and writes the
/// fields of the spec directly.
pub(in crate::fields) static CLAIM_TEMPLATE: StructTy = api(
    "ResourceClaimTemplate",
    &[
        META,
        p!("spec", Ty::Struct(&CLAIM_SPEC)),
        p!("resourceClassName", Ty::Str),
        PARAMETERS,
        p!("allocationMode", Ty::Named("AllocationMode")),
    ],
);
