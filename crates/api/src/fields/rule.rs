//! DeviceClass and DeviceTaintRule.

use super::claim::{OPAQUE_FIELD, SELECTORS};
use super::meta::CONDITIONS;
use super::taint::TAINT;
use super::{DRAFT_R2, SINCE_1_34, SINCE_1_35, api_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

pub(super) static CLASS_CONFIG: StructSchema = api_struct("DeviceClassConfiguration", &[OPAQUE_FIELD]);
/// Fields of DeviceClassSpec. Used to compare its lists on updates.
pub static CLASS_SPEC: StructSchema = api_struct(
    "DeviceClassSpec",
    &[
        SELECTORS,
        f!("config", FieldType::List(&FieldType::Struct(&CLASS_CONFIG))),
        p!("extendedResourceName", FieldType::Str, SINCE_1_34),
    ],
);
pub(super) static CLASS: StructSchema = kind!(api_struct, "DeviceClass", CLASS_SPEC);

/// DeviceTaintRules can select devices by device class and CEL expression in Kubernetes 1.33 and 1.34, and in the
/// second draft of KEP-5055 (profile `kep-5055-r2`).
pub(super) const CLASS_SELECTION_RELEASES: Availability = Availability::between(33, 34).or(DRAFT_R2);
/// Fields of DeviceTaintSelector. Used to compare its list on updates.
pub static TAINT_SELECTOR: StructSchema = api_struct(
    "DeviceTaintSelector",
    &[
        p!("deviceClassName", FieldType::Str, CLASS_SELECTION_RELEASES),
        p!("driver", FieldType::Str),
        p!("pool", FieldType::Str),
        p!("device", FieldType::Str),
        Field { known: CLASS_SELECTION_RELEASES, ..SELECTORS },
    ],
);
pub(super) static RULE_SPEC: StructSchema = api_struct(
    "DeviceTaintRuleSpec",
    &[p!("deviceSelector", FieldType::Struct(&TAINT_SELECTOR)), f!("taint", FieldType::Struct(&TAINT))],
);
pub(super) static RULE_STATUS: StructSchema =
    api_struct("DeviceTaintRuleStatus", &[f!("conditions", CONDITIONS)]);
pub(super) static TAINT_RULE: StructSchema = kind!(
    api_struct,
    "DeviceTaintRule",
    RULE_SPEC,
    f!("status", FieldType::Struct(&RULE_STATUS), SINCE_1_35)
);
