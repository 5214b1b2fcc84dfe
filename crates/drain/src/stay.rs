//! The reason why a pod stays, as text: a reason, its cause, and what the user can do.

use crate::outcome::StayReason;
use tollgate_forecast::{StoredObject, Workload};

/// The reason why a pod stays, with an explanation and a remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StayExplanation {
    pub(crate) reason: StayReason,
    pub(crate) why: String,
    pub(crate) remedy: String,
}

impl StayExplanation {
    pub(crate) fn new(
        reason: StayReason,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> StayExplanation {
        StayExplanation { reason, why: why.into(), remedy: remedy.into() }
    }
}

/// The kubectl command that scales a workload to zero or suspends it; `None` if its kind has none.
pub(crate) fn stop_command(workload: Workload<'_>) -> Option<String> {
    let Workload { kind, namespace, name } = workload;
    let resource = kind.to_ascii_lowercase();
    match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" | "LeaderWorkerSet" => {
            Some(format!("kubectl -n {namespace} scale {resource}/{name} --replicas=0"))
        }
        "Job" | "JobSet" => Some(format!(
            r#"kubectl -n {namespace} patch {resource}/{name} --type=merge -p '{{"spec":{{"suspend":true}}}}'"#
        )),
        _ => None,
    }
}

/// Namespace and name of an object, such as `inference/chat`.
pub(crate) fn namespaced_name(object: StoredObject<'_>) -> String {
    format!("{}/{}", object.namespace(), object.name())
}
