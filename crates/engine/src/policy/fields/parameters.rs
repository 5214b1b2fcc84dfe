//! Fields of a ParameterPolicy.

use super::{LEVELS, SCHEMA_FILE};
use crate::policy::schema::{FieldType, ObjectSchema, optional_field, required_field};
use tollgate_api::profile::ApiKind;

/// Schema of a ParameterPolicy.
pub(in crate::policy) static POLICY: ObjectSchema = policy_file!("ParameterPolicy", SPEC);

static SPEC: ObjectSchema = policy_spec!(
    "ParameterPolicySpec",
    MATCH,
    optional_field(
        "schemas",
        FieldType::List(&FieldType::Object(&PARAMETER_SCHEMA)),
        "JSON Schemas for opaque parameters"
    ),
    optional_field(
        "unknown",
        FieldType::OneOf(LEVELS),
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

static MATCH: ObjectSchema = policy_match!(
    "ParameterMatch",
    MATCH_RESOURCES,
    "Kinds of objects to include (default: all)",
    super::DRIVERS
);

/// Fields of an item of `spec.schemas`: a JSON Schema for the opaque parameters with this apiVersion and kind.
static PARAMETER_SCHEMA: ObjectSchema = ObjectSchema {
    name: "ParameterSchema",
    fields: &[
        optional_field(
            "apiVersion",
            FieldType::NonEmptyStr,
            "apiVersion of the parameters; omit it for parameters that have no apiVersion",
        ),
        optional_field(
            "kind",
            FieldType::NonEmptyStr,
            "kind of the parameters; omit it for parameters that have no kind",
        ),
        optional_field("schema", FieldType::AnyObject, "JSON Schema for the parameters"),
        SCHEMA_FILE,
    ],
};

/// Kinds of objects that a ParameterPolicy can apply to; `match.resources` narrows them. Pods carry templates of
/// classic claims.
pub(in crate::policy) const APPLICABLE_KINDS: &[ApiKind] = &[
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
