//! DeviceClass and DeviceTaintRule.

use super::claim::{OPAQUE_FIELD, SELECTORS};
use super::meta::{API_VERSION, CONDITIONS, KIND, META};
use super::taint::TAINT;
use super::{DRAFT_R2, SINCE_1_34, SINCE_1_35, api};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

pub(super) static CLASS_CONFIG: StructTy = api("DeviceClassConfiguration", &[OPAQUE_FIELD]);
/// DeviceClassSpec, whose lists are compared on updates.
pub static CLASS_SPEC: StructTy = api(
    "DeviceClassSpec",
    &[
        SELECTORS,
        f!("config", Ty::List(&Ty::Struct(&CLASS_CONFIG))),
        p!("extendedResourceName", Ty::Str, SINCE_1_34),
    ],
);
pub(super) static CLASS: StructTy =
    api("DeviceClass", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLASS_SPEC))]);

/// DeviceTaintRules can select devices by device class and CEL expression in Kubernetes 1.33 and 1.34, and in the
/// second draft of KEP-5055 (profile `kep-5055-r2`).
pub(super) const BY_CLASS: Availability = Availability::between(33, 34).or(DRAFT_R2);
/// DeviceTaintSelector, whose list is compared on updates.
pub static TAINT_SELECTOR: StructTy = api(
    "DeviceTaintSelector",
    &[
        p!("deviceClassName", Ty::Str, BY_CLASS),
        p!("driver", Ty::Str),
        p!("pool", Ty::Str),
        p!("device", Ty::Str),
        Field { known: BY_CLASS, ..SELECTORS },
    ],
);
pub(super) static RULE_SPEC: StructTy = api(
    "DeviceTaintRuleSpec",
    &[p!("deviceSelector", Ty::Struct(&TAINT_SELECTOR)), f!("taint", Ty::Struct(&TAINT))],
);
pub(super) static RULE_STATUS: StructTy = api("DeviceTaintRuleStatus", &[f!("conditions", CONDITIONS)]);
pub(super) static TAINT_RULE: StructTy = api(
    "DeviceTaintRule",
    &[
        API_VERSION,
        KIND,
        META,
        f!("spec", Ty::Struct(&RULE_SPEC)),
        f!("status", Ty::Struct(&RULE_STATUS), SINCE_1_35),
    ],
);
