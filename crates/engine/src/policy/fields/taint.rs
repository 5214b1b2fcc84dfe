//! Fields of a TaintPolicy.

use super::{
    DRIVERS, ENTRY_EFFECTS, EXCLUDED, EXPIRES, NAMESPACES, OPERATIONS, REASON, SCHEMA_FILE, SELECTED, VALUES,
};
use crate::policy::schema::{Field, Struct, Ty, field, required};
use tollgate_api::profile::ApiKind;

/// Schema of a TaintPolicy.
pub(in crate::policy) static POLICY: Struct = policy_file!("TaintPolicy", SPEC);

static SPEC: Struct = policy_spec!(
    "TaintPolicySpec",
    MATCH,
    field("allow", Ty::List(&Ty::Struct(&ENTRY)), "Taints that may be published (default: all)"),
    field(
        "deny",
        Ty::List(&Ty::Struct(&ENTRY)),
        "Taints that must not be published, even if an `allow` entry matches",
    ),
    field("data", Ty::List(&Ty::Struct(&DATA)), "JSON Schemas for the data of taints, by key"),
    field("maxEvictionsPerSecond", Ty::Int(1), "Maximum value of `evictionsPerSecond` in a taint"),
);

static MATCH: Struct = Struct {
    name: "TaintMatch",
    fields: &[NAMESPACES, EXCLUDED, SELECTED, DRIVERS, OPERATIONS, MATCH_RESOURCES],
};

const MATCH_RESOURCES: Field = field(
    "resources",
    Ty::NonEmptyList(&Ty::OneOf(&["ResourceSlice", "DeviceTaintRule", "ResourceSlicePatch"])),
    "Kinds of objects to include (default: all)",
);

static ENTRY: Struct = Struct {
    name: "TaintEntry",
    fields: &[
        required(
            "key",
            Ty::NonEmptyStr,
            "Taint keys, as a glob; `${driver}` stands for the driver in the ResourceSlice or device selector",
        ),
        VALUES,
        ENTRY_EFFECTS,
        REASON,
        EXPIRES,
    ],
};

static DATA: Struct = Struct {
    name: "TaintData",
    fields: &[
        required("key", Ty::NonEmptyStr, "Taint keys, as a glob"),
        field("required", Ty::Bool, "Whether the taint must have data (default: false)"),
        field("schema", Ty::Schema, "JSON Schema for the data"),
        SCHEMA_FILE,
    ],
};

/// Kinds of objects that a TaintPolicy can apply to; `match.resources` narrows them.
pub(in crate::policy) const RESOURCES: &[ApiKind] =
    &[ApiKind::ResourceSlice, ApiKind::DeviceTaintRule, ApiKind::ResourceSlicePatch];
