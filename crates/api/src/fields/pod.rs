//! Pods and workloads with pod templates: only the fields about ResourceClaims. Other fields are not checked.

use super::meta::META;
use super::other_apis::classic::CLAIM_TEMPLATE;
use super::{meta_struct, partial_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema, UnlistedFields};

/// The fields of PodResourceClaim. Newer releases may define more ways to name a claim.
pub static POD_CLAIM: StructSchema = StructSchema {
    // The rule about the source of a claim tells of the former `source`.
    unlisted: UnlistedFields::ReportedExcept(&["source"]),
    ..meta_struct(
        "PodResourceClaim",
        &[
            a!("name", FieldType::Str),
            p!("resourceClaimName", FieldType::Str),
            p!("resourceClaimTemplateName", FieldType::Str),
            p!("template", FieldType::Struct(&CLAIM_TEMPLATE)),
        ],
    )
};
pub(super) static CONTAINER_CLAIM: StructSchema =
    meta_struct("ResourceClaim", &[a!("name", FieldType::Str), f!("request", FieldType::Str)]);
pub(super) static RESOURCES: StructSchema = partial_struct(
    "ResourceRequirements",
    &[f!("claims", FieldType::List(&FieldType::StringOr(&CONTAINER_CLAIM)))],
);
pub(super) static CONTAINER: StructSchema = partial_struct(
    "Container",
    &[a!("name", FieldType::Str), f!("resources", FieldType::Struct(&RESOURCES))],
);
pub(super) const CONTAINERS: FieldType = FieldType::List(&FieldType::Struct(&CONTAINER));
pub(super) static POD_SPEC: StructSchema = partial_struct(
    "PodSpec",
    &[
        f!("initContainers", CONTAINERS),
        a!("containers", CONTAINERS),
        f!("ephemeralContainers", CONTAINERS),
        f!("resourceClaims", FieldType::List(&FieldType::Struct(&POD_CLAIM))),
    ],
);
pub(super) const POD_SPEC_FIELD: Field = f!("spec", FieldType::Struct(&POD_SPEC));
pub(super) static POD: StructSchema = kind!(partial_struct, "Pod", POD_SPEC);
pub(super) static POD_TEMPLATE: StructSchema = partial_struct("PodTemplateSpec", &[META, POD_SPEC_FIELD]);
pub(super) const POD_TEMPLATE_FIELD: Field = f!("template", FieldType::Struct(&POD_TEMPLATE));

/// Declares a workload: a kind whose spec has a pod template.
macro_rules! workload {
    ($kind:ident, $name:literal, $spec:ident, $spec_name:literal) => {
        pub(super) static $spec: StructSchema = partial_struct($spec_name, &[POD_TEMPLATE_FIELD]);
        pub(super) static $kind: StructSchema = kind!(partial_struct, $name, $spec);
    };
}
workload!(DEPLOYMENT, "Deployment", DEPLOYMENT_SPEC, "DeploymentSpec");
workload!(STATEFUL_SET, "StatefulSet", STATEFUL_SET_SPEC, "StatefulSetSpec");
workload!(DAEMON_SET, "DaemonSet", DAEMON_SET_SPEC, "DaemonSetSpec");
workload!(REPLICA_SET, "ReplicaSet", REPLICA_SET_SPEC, "ReplicaSetSpec");
workload!(JOB, "Job", JOB_SPEC, "JobSpec");

pub(super) static JOB_TEMPLATE: StructSchema =
    partial_struct("JobTemplateSpec", &[META, f!("spec", FieldType::Struct(&JOB_SPEC))]);
pub(super) static CRON_JOB_SPEC: StructSchema =
    partial_struct("CronJobSpec", &[f!("jobTemplate", FieldType::Struct(&JOB_TEMPLATE))]);
pub(super) static CRON_JOB: StructSchema = kind!(partial_struct, "CronJob", CRON_JOB_SPEC);
