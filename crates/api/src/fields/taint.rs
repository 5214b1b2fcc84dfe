//! Taints and tolerations, the same in every version; draft r2's additions.

use super::{DRAFT_R2, api};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

/// Fields of DeviceTaint.
pub(super) static TAINT: StructTy = api(
    "DeviceTaint",
    &[
        a!("key", Ty::Str),
        f!("value", Ty::Str),
        a!("effect", Ty::Named("DeviceTaintEffect")),
        p!("timeAdded", Ty::Time),
        f!("description", Ty::Str, DRAFT_R2),
        p!("data", Ty::Raw, DRAFT_R2),
        p!("evictionsPerSecond", Ty::Int, DRAFT_R2),
    ],
);
/// Fields of DeviceToleration.
pub(super) static TOLERATION: StructTy = api(
    "DeviceToleration",
    &[
        f!("key", Ty::Str),
        f!("operator", Ty::Named("DeviceTolerationOperator")),
        f!("value", Ty::Str),
        f!("effect", Ty::Named("DeviceTaintEffect")),
        p!("tolerationSeconds", Ty::Int),
    ],
);
/// Field `taints` of a device. Not in the second draft of KEP-5055, which has taints in slices of their own: "this
/// struct no longer contains taints".
pub(super) const DEVICE_TAINTS: Field = f!(
    "taints",
    Ty::List(&Ty::Struct(&TAINT)),
    Availability::ALWAYS.except(Availability::DRAFT_R2_ALONE.or(DRAFT_R2))
);
/// Field `taints` of a ResourceSlicePatch.
pub(super) const TAINTS: Field = f!("taints", Ty::List(&Ty::Struct(&TAINT)));
pub(super) const TOLERATIONS: Field = f!("tolerations", Ty::List(&Ty::Struct(&TOLERATION)));

/// Draft r2's SliceDeviceTaint. The KEP leaves the JSON open: nested in `taint`, or inlined.
pub(super) static SLICE_TAINT: StructTy = api(
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
