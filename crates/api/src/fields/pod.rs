//! Pods and what makes pods, as far as claims are concerned: everything else is let be.

use super::meta::{API_VERSION, KIND, META};
use super::other_apis::classic::CLAIM_TEMPLATE;
use super::{meta_struct, partial_struct};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty, Unlisted};

/// The fields of PodResourceClaim. Newer releases may define more ways to name a claim.
pub static POD_CLAIM: StructTy = StructTy {
    // The rule about the source of a claim tells of the former `source`.
    unlisted: Unlisted::ReportedExcept(&["source"]),
    ..meta_struct(
        "PodResourceClaim",
        &[
            a!("name", Ty::Str),
            p!("resourceClaimName", Ty::Str),
            p!("resourceClaimTemplateName", Ty::Str),
            p!("template", Ty::Struct(&CLAIM_TEMPLATE)),
        ],
    )
};
pub(super) static CONTAINER_CLAIM: StructTy =
    meta_struct("ResourceClaim", &[a!("name", Ty::Str), f!("request", Ty::Str)]);
pub(super) static RESOURCES: StructTy =
    partial_struct("ResourceRequirements", &[f!("claims", Ty::List(&Ty::StringOr(&CONTAINER_CLAIM)))]);
pub(super) static CONTAINER: StructTy =
    partial_struct("Container", &[a!("name", Ty::Str), f!("resources", Ty::Struct(&RESOURCES))]);
pub(super) const CONTAINERS: Ty = Ty::List(&Ty::Struct(&CONTAINER));
pub(super) static POD_SPEC: StructTy = partial_struct(
    "PodSpec",
    &[
        f!("initContainers", CONTAINERS),
        f!("containers", CONTAINERS),
        f!("ephemeralContainers", CONTAINERS),
        f!("resourceClaims", Ty::List(&Ty::Struct(&POD_CLAIM))),
    ],
);
pub(super) const SPEC: Field = f!("spec", Ty::Struct(&POD_SPEC));
pub(super) static POD: StructTy = partial_struct("Pod", &[API_VERSION, KIND, META, SPEC]);
pub(super) static POD_TEMPLATE: StructTy = partial_struct("PodTemplateSpec", &[META, SPEC]);
pub(super) const TEMPLATE: Field = f!("template", Ty::Struct(&POD_TEMPLATE));

/// A kind whose spec has a template of pods.
macro_rules! workload {
    ($kind:ident, $name:literal, $spec:ident, $spec_name:literal) => {
        pub(super) static $spec: StructTy = partial_struct($spec_name, &[TEMPLATE]);
        pub(super) static $kind: StructTy =
            partial_struct($name, &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&$spec))]);
    };
}
workload!(DEPLOYMENT, "Deployment", DEPLOYMENT_SPEC, "DeploymentSpec");
workload!(STATEFUL_SET, "StatefulSet", STATEFUL_SET_SPEC, "StatefulSetSpec");
workload!(DAEMON_SET, "DaemonSet", DAEMON_SET_SPEC, "DaemonSetSpec");
workload!(REPLICA_SET, "ReplicaSet", REPLICA_SET_SPEC, "ReplicaSetSpec");
workload!(JOB, "Job", JOB_SPEC, "JobSpec");

pub(super) static JOB_TEMPLATE: StructTy =
    partial_struct("JobTemplateSpec", &[META, f!("spec", Ty::Struct(&JOB_SPEC))]);
pub(super) static CRON_JOB_SPEC: StructTy =
    partial_struct("CronJobSpec", &[f!("jobTemplate", Ty::Struct(&JOB_TEMPLATE))]);
pub(super) static CRON_JOB: StructTy =
    partial_struct("CronJob", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CRON_JOB_SPEC))]);
