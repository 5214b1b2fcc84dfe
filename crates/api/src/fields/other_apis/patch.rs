//! ResourceSlicePatch of draft r1: what an admin lays over the devices that drivers publish.
//!
//! The rows are those of KEP-5027, which the draft builds on, with the draft's `taints`.

use crate::fields::claim::SELECTORS;
use crate::fields::meta::{API_VERSION, KIND, META};
use crate::fields::slice::CAPACITY;
use crate::fields::taint::TAINTS;
use crate::fields::{SINCE_1_36, STRINGS, api};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

/// DevicePatchFilter, whose selectors are compared on updates.
pub static DEVICE_PATCH_FILTER: StructTy = api(
    "DevicePatchFilter",
    &[
        p!("deviceClassName", Ty::Str),
        p!("driver", Ty::Str),
        p!("pool", Ty::Str),
        p!("device", Ty::Str),
        SELECTORS,
    ],
);
pub(in crate::fields) static NULL_VALUE: StructTy = api("NullValue", &[]);
/// DeviceAttribute with one more alternative: `null` takes the attribute away.
pub(in crate::fields) static NULLABLE_ATTRIBUTE: StructTy = api(
    "NullableDeviceAttribute",
    &[
        p!("int", Ty::Int),
        p!("bool", Ty::Bool),
        p!("string", Ty::Str),
        p!("version", Ty::Str),
        f!("ints", Ty::List(&Ty::Int), SINCE_1_36),
        f!("bools", Ty::List(&Ty::Bool), SINCE_1_36),
        f!("strings", STRINGS, SINCE_1_36),
        f!("versions", STRINGS, SINCE_1_36),
        p!("null", Ty::Struct(&NULL_VALUE)),
    ],
);
pub(in crate::fields) static DEVICE_PATCH: StructTy = api(
    "DevicePatch",
    &[
        p!("filter", Ty::Struct(&DEVICE_PATCH_FILTER)),
        p!("priority", Ty::Int),
        f!("attributes", Ty::Map { key: "FullyQualifiedName", value: &Ty::Struct(&NULLABLE_ATTRIBUTE) }),
        f!("capacity", Ty::Map { key: "FullyQualifiedName", value: &Ty::Struct(&CAPACITY) }),
        TAINTS,
    ],
);
pub(in crate::fields) static PATCH_SPEC: StructTy =
    api("ResourceSlicePatchSpec", &[a!("devices", Ty::Struct(&DEVICE_PATCH))]);
pub(in crate::fields) static PATCH: StructTy =
    api("ResourceSlicePatch", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&PATCH_SPEC))]);
