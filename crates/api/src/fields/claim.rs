//! ResourceClaim and ResourceClaimTemplate: flat requests and `exactly`.

use super::meta::META;
use super::status::CLAIM_STATUS;
use super::taint::TOLERATIONS;
use super::{QUANTITY_MAP, SINCE_1_34, SINCE_1_37, STRING_LIST, api_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

pub(super) static CEL_SELECTOR: StructSchema =
    api_struct("CELDeviceSelector", &[a!("expression", FieldType::Str)]);
pub(super) static SELECTOR: StructSchema =
    api_struct("DeviceSelector", &[p!("cel", FieldType::Struct(&CEL_SELECTOR))]);
pub(super) const SELECTORS: Field = f!("selectors", FieldType::List(&FieldType::Struct(&SELECTOR)));
pub(super) static CAPACITY_REQUIREMENTS: StructSchema =
    api_struct("CapacityRequirements", &[f!("requests", QUANTITY_MAP)]);
pub(super) static DERIVED_ATTRIBUTE: StructSchema = api_struct(
    "DeviceDerivedAttribute",
    &[a!("name", FieldType::Named("FullyQualifiedName")), a!("expression", FieldType::Str)],
);
pub(super) const CLASS_NAME: Field = a!("deviceClassName", FieldType::Str);
pub(super) const ALLOCATION_MODE: Field = f!("allocationMode", FieldType::Named("DeviceAllocationMode"));
pub(super) const COUNT: Field = f!("count", FieldType::Int);
pub(super) const ADMIN_ACCESS: Field = p!("adminAccess", FieldType::Bool);
pub(super) const CAPACITY_FIELD: Field =
    p!("capacity", FieldType::Struct(&CAPACITY_REQUIREMENTS), SINCE_1_34);
pub(super) const DERIVED_ATTRIBUTES_FIELD: Field =
    f!("derivedAttributes", FieldType::List(&FieldType::Struct(&DERIVED_ATTRIBUTE)), SINCE_1_37);

pub(super) static EXACT_REQUEST: StructSchema = api_struct(
    "ExactDeviceRequest",
    &[
        CLASS_NAME,
        SELECTORS,
        ALLOCATION_MODE,
        COUNT,
        ADMIN_ACCESS,
        TOLERATIONS,
        CAPACITY_FIELD,
        DERIVED_ATTRIBUTES_FIELD,
    ],
);
/// Fields of DeviceSubRequest. The API server prints the whole element in its error about a duplicate.
pub static SUB_REQUEST: StructSchema = api_struct(
    "DeviceSubRequest",
    &[
        a!("name", FieldType::Str),
        CLASS_NAME,
        SELECTORS,
        ALLOCATION_MODE,
        COUNT,
        TOLERATIONS,
        CAPACITY_FIELD,
        DERIVED_ATTRIBUTES_FIELD,
    ],
);
pub(super) const FIRST_AVAILABLE: Field =
    f!("firstAvailable", FieldType::List(&FieldType::Struct(&SUB_REQUEST)));
/// Fields of DeviceRequest. The API server prints the whole element in its error about a duplicate.
pub static REQUEST: StructSchema = api_struct(
    "DeviceRequest",
    &[a!("name", FieldType::Str), p!("exactly", FieldType::Struct(&EXACT_REQUEST)), FIRST_AVAILABLE],
);
/// Fields of DeviceRequest in versions before v1beta2, which have no `exactly`.
pub static REQUEST_FLAT: StructSchema = api_struct(
    "DeviceRequest",
    &[
        a!("name", FieldType::Str),
        a!("deviceClassName", FieldType::Str),
        SELECTORS,
        ALLOCATION_MODE,
        COUNT,
        ADMIN_ACCESS,
        FIRST_AVAILABLE,
        TOLERATIONS,
        CAPACITY_FIELD,
        DERIVED_ATTRIBUTES_FIELD,
    ],
);
pub(super) static CONSTRAINT: StructSchema = api_struct(
    "DeviceConstraint",
    &[
        f!("requests", STRING_LIST),
        p!("matchAttribute", FieldType::Named("FullyQualifiedName")),
        p!("distinctAttribute", FieldType::Named("FullyQualifiedName"), SINCE_1_34),
    ],
);
pub(super) static OPAQUE: StructSchema = api_struct(
    "OpaqueDeviceConfiguration",
    &[a!("driver", FieldType::Str), a!("parameters", FieldType::Raw)],
);
pub(super) const OPAQUE_FIELD: Field =
    Field { embedded: Some("DeviceConfiguration"), ..p!("opaque", FieldType::Struct(&OPAQUE)) };
pub(super) static CLAIM_CONFIG: StructSchema =
    api_struct("DeviceClaimConfiguration", &[f!("requests", STRING_LIST), OPAQUE_FIELD]);
pub(super) const CONSTRAINTS: Field = f!("constraints", FieldType::List(&FieldType::Struct(&CONSTRAINT)));
pub(super) const CLAIM_CONFIGS: Field = f!("config", FieldType::List(&FieldType::Struct(&CLAIM_CONFIG)));
pub(super) static DEVICE_CLAIM: StructSchema = api_struct(
    "DeviceClaim",
    &[a!("requests", FieldType::List(&FieldType::Struct(&REQUEST))), CONSTRAINTS, CLAIM_CONFIGS],
);
pub(super) static DEVICE_CLAIM_FLAT: StructSchema = api_struct(
    "DeviceClaim",
    &[a!("requests", FieldType::List(&FieldType::Struct(&REQUEST_FLAT))), CONSTRAINTS, CLAIM_CONFIGS],
);
pub(super) static CLAIM_SPEC: StructSchema =
    api_struct("ResourceClaimSpec", &[f!("devices", FieldType::Struct(&DEVICE_CLAIM))]);
pub(super) static CLAIM_SPEC_FLAT: StructSchema =
    api_struct("ResourceClaimSpec", &[f!("devices", FieldType::Struct(&DEVICE_CLAIM_FLAT))]);

pub(super) const CLAIM_STATUS_FIELD: Field = f!("status", FieldType::Struct(&CLAIM_STATUS));
pub(super) static CLAIM: StructSchema = kind!(api_struct, "ResourceClaim", CLAIM_SPEC, CLAIM_STATUS_FIELD);
pub(super) static CLAIM_FLAT: StructSchema =
    kind!(api_struct, "ResourceClaim", CLAIM_SPEC_FLAT, CLAIM_STATUS_FIELD);
pub(super) static TEMPLATE_SPEC: StructSchema =
    api_struct("ResourceClaimTemplateSpec", &[META, f!("spec", FieldType::Struct(&CLAIM_SPEC))]);
pub(super) static TEMPLATE_SPEC_FLAT: StructSchema =
    api_struct("ResourceClaimTemplateSpec", &[META, f!("spec", FieldType::Struct(&CLAIM_SPEC_FLAT))]);
pub(super) static TEMPLATE: StructSchema = kind!(api_struct, "ResourceClaimTemplate", TEMPLATE_SPEC);
pub(super) static TEMPLATE_FLAT: StructSchema =
    kind!(api_struct, "ResourceClaimTemplate", TEMPLATE_SPEC_FLAT);
