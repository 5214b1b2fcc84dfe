//! The fields of pods, nodes and workloads that a snapshot keeps: those that decide where a pod can run, what replaces
//! it, and whether it is ready.
//!
//! A replaced pod is made from the template of its owner, so a template keeps the same fields as a pod. Environment,
//! commands, images and the sources of volumes are left out.

use super::{All, Annotations, Conditions, Fields, Items, KeptParts, METADATA, POD_CLAIMS, Volume};

const RESOURCES: KeptParts = Fields(&[("claims", All), ("requests", All), ("limits", All)]);

const PORT: KeptParts =
    Fields(&[("containerPort", All), ("hostPort", All), ("hostIP", All), ("protocol", All)]);

/// The restart policy makes an init container a sidecar, whose requests count for as long as the pod runs.
const CONTAINERS: KeptParts = Items(&Fields(&[
    ("name", All),
    ("resources", RESOURCES),
    ("restartPolicy", All),
    ("ports", Items(&PORT)),
]));

const POD_SPEC: KeptParts = Fields(&[
    ("nodeName", All),
    ("nodeSelector", All),
    ("affinity", All),
    ("tolerations", All),
    ("topologySpreadConstraints", All),
    ("schedulerName", All),
    ("schedulingGates", All),
    ("schedulingGroup", All),
    ("workloadRef", All),
    ("priority", All),
    ("priorityClassName", All),
    ("preemptionPolicy", All),
    ("hostNetwork", All),
    ("os", All),
    ("overhead", All),
    ("runtimeClassName", All),
    ("resources", RESOURCES),
    ("resourceClaims", POD_CLAIMS),
    ("initContainers", CONTAINERS),
    ("containers", CONTAINERS),
    ("ephemeralContainers", CONTAINERS),
    ("volumes", Items(&Volume)),
    ("restartPolicy", All),
    ("terminationGracePeriodSeconds", All),
]);

pub(super) const POD: KeptParts = Fields(&[
    ("metadata", METADATA),
    ("spec", POD_SPEC),
    (
        "status",
        Fields(&[
            ("phase", All),
            ("startTime", All),
            ("nominatedNodeName", All),
            ("conditions", Conditions(&["PodScheduled", "Ready", "DisruptionTarget"])),
            ("resourceClaimStatuses", All),
            ("extendedResourceClaimStatus", All),
        ]),
    ),
]);

const POD_TEMPLATE: KeptParts =
    Fields(&[("metadata", Fields(&[("labels", All), ("annotations", Annotations)])), ("spec", POD_SPEC)]);

pub(super) const NODE: KeptParts = Fields(&[
    ("metadata", METADATA),
    ("spec", Fields(&[("taints", All), ("unschedulable", All)])),
    (
        "status",
        Fields(&[
            ("allocatable", All),
            ("capacity", All),
            ("declaredFeatures", All),
            ("conditions", Conditions(&["Ready"])),
        ]),
    ),
]);

/// The spec of ReplicaSets, Deployments, StatefulSets, DaemonSets and Jobs, each of which has some of these fields.
const CONTROLLER_SPEC: KeptParts = Fields(&[
    ("replicas", All),
    ("minReadySeconds", All),
    ("parallelism", All),
    ("completions", All),
    ("completionMode", All),
    ("backoffLimit", All),
    ("backoffLimitPerIndex", All),
    ("maxFailedIndexes", All),
    ("podFailurePolicy", All),
    ("podReplacementPolicy", All),
    ("activeDeadlineSeconds", All),
    ("suspend", All),
    ("paused", All),
    ("selector", All),
    ("strategy", All),
    ("updateStrategy", All),
    ("podManagementPolicy", All),
    ("ordinals", All),
    // A volume of each pod.
    ("volumeClaimTemplates", Items(&Fields(&[("metadata", Fields(&[("name", All)]))]))),
    ("template", POD_TEMPLATE),
]);

pub(super) const CONTROLLER: KeptParts = Fields(&[
    ("metadata", METADATA),
    ("spec", CONTROLLER_SPEC),
    (
        "status",
        Fields(&[
            ("observedGeneration", All),
            ("replicas", All),
            ("readyReplicas", All),
            ("availableReplicas", All),
            ("desiredNumberScheduled", All),
            ("numberReady", All),
            ("active", All),
            ("terminating", All),
            ("ready", All),
            ("succeeded", All),
            ("failed", All),
            ("failedIndexes", All),
            ("updateRevision", All),
            ("startTime", All),
            ("completionTime", All),
            (
                "conditions",
                Conditions(&["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"]),
            ),
        ]),
    ),
]);

const JOB_TEMPLATE: KeptParts =
    Fields(&[("metadata", Fields(&[("labels", All)])), ("spec", CONTROLLER_SPEC)]);

pub(super) const CRON_JOB: KeptParts = Fields(&[
    ("metadata", METADATA),
    (
        "spec",
        Fields(&[
            ("schedule", All),
            ("timeZone", All),
            ("suspend", All),
            ("concurrencyPolicy", All),
            ("jobTemplate", JOB_TEMPLATE),
        ]),
    ),
]);

pub(super) const JOB_SET: KeptParts = Fields(&[
    ("metadata", METADATA),
    (
        "spec",
        Fields(&[
            (
                "replicatedJobs",
                Items(&Fields(&[
                    ("name", All),
                    ("groupName", All),
                    ("replicas", All),
                    ("template", JOB_TEMPLATE),
                ])),
            ),
            ("failurePolicy", All),
            ("successPolicy", All),
            ("suspend", All),
        ]),
    ),
    ("status", Fields(&[("restarts", All), ("restartsCountTowardsMax", All), ("terminalState", All)])),
]);

pub(super) const LEADER_WORKER_SET: KeptParts = Fields(&[
    ("metadata", METADATA),
    (
        "spec",
        Fields(&[
            ("replicas", All),
            ("startupPolicy", All),
            (
                "leaderWorkerTemplate",
                Fields(&[
                    ("size", All),
                    ("restartPolicy", All),
                    ("subGroupPolicy", All),
                    ("leaderTemplate", POD_TEMPLATE),
                    ("workerTemplate", POD_TEMPLATE),
                ]),
            ),
        ]),
    ),
    ("status", Fields(&[("replicas", All), ("readyReplicas", All)])),
]);

pub(super) const POD_GROUP: KeptParts = Fields(&[
    ("metadata", METADATA),
    ("spec", All),
    ("status", Fields(&[("phase", All), ("resourceClaimStatuses", All)])),
]);
