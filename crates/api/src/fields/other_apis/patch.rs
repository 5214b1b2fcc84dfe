//! ResourceSlicePatch of draft r1, with which an administrator changes devices that drivers publish.
//!
//! The rows are those of KEP-5027, which the draft builds on, with the draft's `taints`.

use crate::fields::claim::SELECTORS;
use crate::fields::slice::CAPACITY;
use crate::fields::taint::SLICE_PATCH_TAINTS;
use crate::fields::{SINCE_1_36, STRING_LIST, api_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

/// Fields of DevicePatchFilter. Used to compare its selectors on updates.
pub static DEVICE_PATCH_FILTER: StructSchema = api_struct(
    "DevicePatchFilter",
    &[
        p!("deviceClassName", FieldType::Str),
        p!("driver", FieldType::Str),
        p!("pool", FieldType::Str),
        p!("device", FieldType::Str),
        SELECTORS,
    ],
);
pub(in crate::fields) static NULL_VALUE: StructSchema = api_struct("NullValue", &[]);
/// DeviceAttribute with one more field to choose from: `null: {}` removes the attribute.
pub(in crate::fields) static NULLABLE_ATTRIBUTE: StructSchema =
    attribute!("NullableDeviceAttribute", p!("null", FieldType::Struct(&NULL_VALUE)));
pub(in crate::fields) static DEVICE_PATCH: StructSchema = api_struct(
    "DevicePatch",
    &[
        p!("filter", FieldType::Struct(&DEVICE_PATCH_FILTER)),
        p!("priority", FieldType::Int),
        f!(
            "attributes",
            FieldType::Map { key: "FullyQualifiedName", value: &FieldType::Struct(&NULLABLE_ATTRIBUTE) }
        ),
        f!("capacity", FieldType::Map { key: "FullyQualifiedName", value: &FieldType::Struct(&CAPACITY) }),
        SLICE_PATCH_TAINTS,
    ],
);
pub(in crate::fields) static SLICE_PATCH_SPEC: StructSchema =
    api_struct("ResourceSlicePatchSpec", &[a!("devices", FieldType::Struct(&DEVICE_PATCH))]);
pub(in crate::fields) static SLICE_PATCH: StructSchema =
    kind!(api_struct, "ResourceSlicePatch", SLICE_PATCH_SPEC);
