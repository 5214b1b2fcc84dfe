//! The fields of pods, nodes and workloads that a snapshot keeps: those that decide where a pod can run, what replaces
//! it, and whether it is ready.
//!
//! A replaced pod is made from the template of its owner, so a template keeps the same fields as a pod. Environment,
//! commands, images and the sources of volumes are left out.

use super::{Annotations, Conditions, Fields, Items, KeptParts, POD_CLAIMS, Volume};

const RESOURCES: KeptParts = Fields("claims requests limits", &[]);

const PORT: KeptParts = Fields("containerPort hostPort hostIP protocol", &[]);

/// The restart policy makes an init container a sidecar, whose requests count for as long as the pod runs.
const CONTAINERS: KeptParts =
    Items(&Fields("name restartPolicy", &[("resources", RESOURCES), ("ports", Items(&PORT))]));

const POD_SPEC: KeptParts = Fields(
    "nodeName nodeSelector affinity tolerations topologySpreadConstraints schedulerName schedulingGates \
     schedulingGroup workloadRef priority priorityClassName preemptionPolicy hostNetwork os overhead runtimeClassName \
     restartPolicy terminationGracePeriodSeconds",
    &[
        ("resources", RESOURCES),
        ("resourceClaims", POD_CLAIMS),
        ("initContainers", CONTAINERS),
        ("containers", CONTAINERS),
        ("ephemeralContainers", CONTAINERS),
        ("volumes", Items(&Volume)),
    ],
);

const POD_STATUS: KeptParts = Fields(
    "phase startTime nominatedNodeName resourceClaimStatuses extendedResourceClaimStatus",
    &[("conditions", Conditions(&["PodScheduled", "Ready", "DisruptionTarget"]))],
);

pub(super) const POD: KeptParts = Fields("", &[("spec", POD_SPEC), ("status", POD_STATUS)]);

const POD_TEMPLATE: KeptParts =
    Fields("", &[("metadata", Fields("labels", &[("annotations", Annotations)])), ("spec", POD_SPEC)]);

const NODE_STATUS: KeptParts =
    Fields("allocatable capacity declaredFeatures", &[("conditions", Conditions(&["Ready"]))]);

pub(super) const NODE: KeptParts =
    Fields("", &[("spec", Fields("taints unschedulable", &[])), ("status", NODE_STATUS)]);

/// The spec of ReplicaSets, Deployments, StatefulSets, DaemonSets and Jobs, each of which has some of these fields.
const CONTROLLER_SPEC: KeptParts = Fields(
    "replicas minReadySeconds parallelism completions completionMode backoffLimit backoffLimitPerIndex \
     maxFailedIndexes podFailurePolicy podReplacementPolicy activeDeadlineSeconds suspend paused selector strategy \
     updateStrategy podManagementPolicy ordinals",
    &[
        // A volume of each pod.
        ("volumeClaimTemplates", Items(&Fields("", &[("metadata", Fields("name", &[]))]))),
        ("template", POD_TEMPLATE),
    ],
);

const CONTROLLER_STATUS: KeptParts = Fields(
    "observedGeneration replicas readyReplicas availableReplicas desiredNumberScheduled numberReady active terminating \
     ready succeeded failed failedIndexes updateRevision startTime completionTime",
    &[(
        "conditions",
        Conditions(&["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"]),
    )],
);

pub(super) const CONTROLLER: KeptParts =
    Fields("", &[("spec", CONTROLLER_SPEC), ("status", CONTROLLER_STATUS)]);

const JOB_TEMPLATE: KeptParts = Fields("", &[("metadata", Fields("labels", &[])), ("spec", CONTROLLER_SPEC)]);

const CRON_JOB_SPEC: KeptParts =
    Fields("schedule timeZone suspend concurrencyPolicy", &[("jobTemplate", JOB_TEMPLATE)]);

pub(super) const CRON_JOB: KeptParts = Fields("", &[("spec", CRON_JOB_SPEC)]);

const REPLICATED_JOB: KeptParts = Fields("name groupName replicas", &[("template", JOB_TEMPLATE)]);

const JOB_SET_SPEC: KeptParts =
    Fields("failurePolicy successPolicy suspend", &[("replicatedJobs", Items(&REPLICATED_JOB))]);

const JOB_SET_STATUS: KeptParts = Fields("restarts restartsCountTowardsMax terminalState", &[]);

pub(super) const JOB_SET: KeptParts = Fields("", &[("spec", JOB_SET_SPEC), ("status", JOB_SET_STATUS)]);

const LEADER_WORKER_TEMPLATE: KeptParts = Fields(
    "size restartPolicy subGroupPolicy",
    &[("leaderTemplate", POD_TEMPLATE), ("workerTemplate", POD_TEMPLATE)],
);

pub(super) const LEADER_WORKER_SET: KeptParts = Fields(
    "",
    &[
        ("spec", Fields("replicas startupPolicy", &[("leaderWorkerTemplate", LEADER_WORKER_TEMPLATE)])),
        ("status", Fields("replicas readyReplicas", &[])),
    ],
);

pub(super) const POD_GROUP: KeptParts =
    Fields("spec", &[("status", Fields("phase resourceClaimStatuses", &[]))]);
