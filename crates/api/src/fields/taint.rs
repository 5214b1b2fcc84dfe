//! Taints and tolerations, which are the same in every version, and the fields that draft r2 adds to them.

use super::{DRAFT_R2, api_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

/// Fields of DeviceTaint.
pub(super) static TAINT: StructSchema = api_struct(
    "DeviceTaint",
    &[
        a!("key", FieldType::Str),
        f!("value", FieldType::Str),
        a!("effect", FieldType::Named("DeviceTaintEffect")),
        p!("timeAdded", FieldType::Time),
        f!("description", FieldType::Str, DRAFT_R2),
        p!("data", FieldType::Raw, DRAFT_R2),
        p!("evictionsPerSecond", FieldType::Int, DRAFT_R2),
    ],
);
/// Fields of DeviceToleration.
pub(super) static TOLERATION: StructSchema = api_struct(
    "DeviceToleration",
    &[
        f!("key", FieldType::Str),
        f!("operator", FieldType::Named("DeviceTolerationOperator")),
        f!("value", FieldType::Str),
        f!("effect", FieldType::Named("DeviceTaintEffect")),
        p!("tolerationSeconds", FieldType::Int),
    ],
);
/// Field `taints` of a device. Not in the second draft of KEP-5055, which has taints in slices of their own: "this
/// struct no longer contains taints".
pub(super) const DEVICE_TAINTS: Field = f!(
    "taints",
    FieldType::List(&FieldType::Struct(&TAINT)),
    Availability::ALWAYS.except(Availability::DRAFT_R2_ALONE.or(DRAFT_R2))
);
/// Field `taints` of a ResourceSlicePatch.
pub(super) const SLICE_PATCH_TAINTS: Field = f!("taints", FieldType::List(&FieldType::Struct(&TAINT)));
pub(super) const TOLERATIONS: Field = f!("tolerations", FieldType::List(&FieldType::Struct(&TOLERATION)));

/// Draft r2's SliceDeviceTaint. The KEP leaves the JSON open: nested in `taint`, or inlined.
pub(super) static SLICE_TAINT: StructSchema = api_struct(
    "SliceDeviceTaint",
    &[
        a!("device", FieldType::Str),
        p!("taint", FieldType::Struct(&TAINT)),
        f!("key", FieldType::Str),
        f!("value", FieldType::Str),
        f!("effect", FieldType::Named("DeviceTaintEffect")),
        p!("timeAdded", FieldType::Time),
        f!("description", FieldType::Str),
        p!("data", FieldType::Raw),
        p!("evictionsPerSecond", FieldType::Int),
    ],
);
