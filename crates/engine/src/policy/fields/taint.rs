//! Fields of a TaintPolicy.

use super::{ENTRY_EFFECTS, ENTRY_EXPIRES, ENTRY_REASON, ENTRY_VALUES, SCHEMA_FILE};
use crate::policy::schema::{FieldType, ObjectSchema, optional_field, required_field};
use tollgate_api::profile::ApiKind;

/// Schema of a TaintPolicy.
pub(in crate::policy) static POLICY: ObjectSchema = policy_file!("TaintPolicy", SPEC);

static SPEC: ObjectSchema = policy_spec!(
    "TaintPolicySpec",
    MATCH,
    optional_field(
        "allow",
        FieldType::List(&FieldType::Object(&TAINT_ENTRY)),
        "Taints that may be published (default: all)"
    ),
    optional_field(
        "deny",
        FieldType::List(&FieldType::Object(&TAINT_ENTRY)),
        "Taints that must not be published, even if an `allow` entry matches",
    ),
    optional_field(
        "data",
        FieldType::List(&FieldType::Object(&DATA_REQUIREMENT)),
        "JSON Schemas for the data of taints, by key"
    ),
    optional_field(
        "maxEvictionsPerSecond",
        FieldType::Int(1),
        "Maximum value of `evictionsPerSecond` in a taint"
    ),
);

static MATCH: ObjectSchema = policy_match!(
    "TaintMatch",
    &["ResourceSlice", "DeviceTaintRule", "ResourceSlicePatch"],
    "Kinds of objects to include (default: all)",
    super::DRIVERS
);

static TAINT_ENTRY: ObjectSchema = ObjectSchema {
    name: "TaintEntry",
    fields: &[
        required_field(
            "key",
            FieldType::NonEmptyStr,
            "Taint keys, as a glob; `${driver}` stands for the driver in the ResourceSlice or device selector",
        ),
        ENTRY_VALUES,
        ENTRY_EFFECTS,
        ENTRY_REASON,
        ENTRY_EXPIRES,
    ],
};

static DATA_REQUIREMENT: ObjectSchema = ObjectSchema {
    name: "TaintData",
    fields: &[
        required_field("key", FieldType::NonEmptyStr, "Taint keys, as a glob"),
        optional_field("required", FieldType::Bool, "Whether the taint must have data (default: false)"),
        optional_field("schema", FieldType::AnyObject, "JSON Schema for the data"),
        SCHEMA_FILE,
    ],
};

/// Kinds of objects that a TaintPolicy can apply to; `match.resources` narrows them.
pub(in crate::policy) const APPLICABLE_KINDS: &[ApiKind] =
    &[ApiKind::ResourceSlice, ApiKind::DeviceTaintRule, ApiKind::ResourceSlicePatch];
