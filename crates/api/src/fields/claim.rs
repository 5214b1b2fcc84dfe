//! ResourceClaim and ResourceClaimTemplate: flat requests and `exactly`.

use super::meta::{API_VERSION, KIND, META};
use super::status::CLAIM_STATUS;
use super::taint::TOLERATIONS;
use super::{QUANTITIES, SINCE_1_34, SINCE_1_37, STRINGS, api};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

pub(super) static CEL_SELECTOR: StructTy = api("CELDeviceSelector", &[a!("expression", Ty::Str)]);
pub(super) static SELECTOR: StructTy = api("DeviceSelector", &[p!("cel", Ty::Struct(&CEL_SELECTOR))]);
pub(super) const SELECTORS: Field = f!("selectors", Ty::List(&Ty::Struct(&SELECTOR)));
pub(super) static CAPACITY_REQUIREMENTS: StructTy =
    api("CapacityRequirements", &[f!("requests", QUANTITIES)]);
pub(super) static DERIVED: StructTy =
    api("DeviceDerivedAttribute", &[a!("name", Ty::Named("FullyQualifiedName")), a!("expression", Ty::Str)]);
pub(super) const CLASS_NAME: Field = a!("deviceClassName", Ty::Str);
pub(super) const MODE: Field = f!("allocationMode", Ty::Named("DeviceAllocationMode"));
pub(super) const COUNT: Field = f!("count", Ty::Int);
pub(super) const ADMIN_ACCESS: Field = p!("adminAccess", Ty::Bool);
pub(super) const CAPACITY_FIELD: Field = p!("capacity", Ty::Struct(&CAPACITY_REQUIREMENTS), SINCE_1_34);
pub(super) const DERIVED_FIELD: Field = f!("derivedAttributes", Ty::List(&Ty::Struct(&DERIVED)), SINCE_1_37);

pub(super) static EXACT: StructTy = api(
    "ExactDeviceRequest",
    &[CLASS_NAME, SELECTORS, MODE, COUNT, ADMIN_ACCESS, TOLERATIONS, CAPACITY_FIELD, DERIVED_FIELD],
);
/// DeviceSubRequest, printed whole when duplicate.
pub static SUB_REQUEST: StructTy = api(
    "DeviceSubRequest",
    &[a!("name", Ty::Str), CLASS_NAME, SELECTORS, MODE, COUNT, TOLERATIONS, CAPACITY_FIELD, DERIVED_FIELD],
);
pub(super) const FIRST_AVAILABLE: Field = f!("firstAvailable", Ty::List(&Ty::Struct(&SUB_REQUEST)));
/// DeviceRequest, printed whole when duplicate.
pub static REQUEST: StructTy =
    api("DeviceRequest", &[a!("name", Ty::Str), p!("exactly", Ty::Struct(&EXACT)), FIRST_AVAILABLE]);
/// Fields of DeviceRequest in versions before v1beta2, which have no `exactly`.
pub static REQUEST_FLAT: StructTy = api(
    "DeviceRequest",
    &[
        a!("name", Ty::Str),
        a!("deviceClassName", Ty::Str),
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
pub(super) static CONSTRAINT: StructTy = api(
    "DeviceConstraint",
    &[
        f!("requests", STRINGS),
        p!("matchAttribute", Ty::Named("FullyQualifiedName")),
        p!("distinctAttribute", Ty::Named("FullyQualifiedName"), SINCE_1_34),
    ],
);
pub(super) static OPAQUE: StructTy =
    api("OpaqueDeviceConfiguration", &[a!("driver", Ty::Str), a!("parameters", Ty::Raw)]);
pub(super) const OPAQUE_FIELD: Field =
    Field { embedded: Some("DeviceConfiguration"), ..p!("opaque", Ty::Struct(&OPAQUE)) };
pub(super) static CLAIM_CONFIG: StructTy =
    api("DeviceClaimConfiguration", &[f!("requests", STRINGS), OPAQUE_FIELD]);
pub(super) const CONSTRAINTS: Field = f!("constraints", Ty::List(&Ty::Struct(&CONSTRAINT)));
pub(super) const CLAIM_CONFIGS: Field = f!("config", Ty::List(&Ty::Struct(&CLAIM_CONFIG)));
pub(super) static DEVICE_CLAIM: StructTy =
    api("DeviceClaim", &[f!("requests", Ty::List(&Ty::Struct(&REQUEST))), CONSTRAINTS, CLAIM_CONFIGS]);
pub(super) static DEVICE_CLAIM_FLAT: StructTy =
    api("DeviceClaim", &[f!("requests", Ty::List(&Ty::Struct(&REQUEST_FLAT))), CONSTRAINTS, CLAIM_CONFIGS]);
pub(super) static CLAIM_SPEC: StructTy =
    api("ResourceClaimSpec", &[f!("devices", Ty::Struct(&DEVICE_CLAIM))]);
pub(super) static CLAIM_SPEC_FLAT: StructTy =
    api("ResourceClaimSpec", &[f!("devices", Ty::Struct(&DEVICE_CLAIM_FLAT))]);

pub(super) const CLAIM_STATUS_FIELD: Field = f!("status", Ty::Struct(&CLAIM_STATUS));
pub(super) static CLAIM: StructTy =
    api("ResourceClaim", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLAIM_SPEC)), CLAIM_STATUS_FIELD]);
pub(super) static CLAIM_FLAT: StructTy = api(
    "ResourceClaim",
    &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLAIM_SPEC_FLAT)), CLAIM_STATUS_FIELD],
);
pub(super) static TEMPLATE_SPEC: StructTy =
    api("ResourceClaimTemplateSpec", &[META, f!("spec", Ty::Struct(&CLAIM_SPEC))]);
pub(super) static TEMPLATE_SPEC_FLAT: StructTy =
    api("ResourceClaimTemplateSpec", &[META, f!("spec", Ty::Struct(&CLAIM_SPEC_FLAT))]);
pub(super) static TEMPLATE: StructTy =
    api("ResourceClaimTemplate", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&TEMPLATE_SPEC))]);
pub(super) static TEMPLATE_FLAT: StructTy =
    api("ResourceClaimTemplate", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&TEMPLATE_SPEC_FLAT))]);
