//! Fields of a ParameterPolicy.

use super::{DRIVERS, EXCLUDED, LEVELS, NAMESPACES, OPERATIONS, SCHEMA_FILE, SELECTED};
use crate::policy::schema::{Struct, Ty, field, required};
use tollgate_api::profile::ApiKind;

/// Schema of a ParameterPolicy.
pub(in crate::policy) static POLICY: Struct = policy_file!("ParameterPolicy", SPEC);

static SPEC: Struct = policy_spec!(
    "ParameterPolicySpec",
    MATCH,
    field("schemas", Ty::List(&Ty::Struct(&PARAMETER_SCHEMA)), "JSON Schemas for opaque parameters"),
    field(
        "unknown",
        Ty::OneOf(LEVELS),
        "What happens to parameters whose apiVersion and kind are not in `schemas` (default: `Allow`)",
    ),
);

/// Resources that a ParameterPolicy can match. A name that exists in two groups, such as ResourceClaim in
/// classic DRA, means both.
const MATCH_RESOURCES: &[&str] = &[
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceClass",
    "ResourceClass",
    "Pod",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "CronJob",
];

static MATCH: Struct = Struct {
    name: "ParameterMatch",
    fields: &[
        NAMESPACES,
        EXCLUDED,
        SELECTED,
        DRIVERS,
        OPERATIONS,
        field(
            "resources",
            Ty::NonEmptyList(&Ty::OneOf(MATCH_RESOURCES)),
            "Kinds of objects to include (default: all)",
        ),
    ],
};

/// Fields of an item of `spec.schemas`: a JSON Schema for the opaque parameters with this apiVersion and kind.
static PARAMETER_SCHEMA: Struct = Struct {
    name: "ParameterSchema",
    fields: &[
        field(
            "apiVersion",
            Ty::NonEmptyStr,
            "apiVersion of the parameters; omit it for parameters that have no apiVersion",
        ),
        field("kind", Ty::NonEmptyStr, "kind of the parameters; omit it for parameters that have no kind"),
        field("schema", Ty::Schema, "JSON Schema for the parameters"),
        SCHEMA_FILE,
    ],
};

/// Kinds of objects that a ParameterPolicy can apply to; `match.resources` narrows them. Pods carry templates of
/// classic claims.
pub(in crate::policy) const RESOURCES: &[ApiKind] = &[
    ApiKind::ResourceClaim,
    ApiKind::ResourceClaimTemplate,
    ApiKind::DeviceClass,
    ApiKind::ClassicClass,
    ApiKind::ClassicClaim,
    ApiKind::Pod,
    ApiKind::Deployment,
    ApiKind::StatefulSet,
    ApiKind::DaemonSet,
    ApiKind::ReplicaSet,
    ApiKind::Job,
    ApiKind::CronJob,
];
