//! Views of Pods and PodDisruptionBudgets: only the fields that the eviction of a pod depends on. They are not
//! checked.

use super::{ObjectMeta, view};

view! {
    /// core/v1 Pod.
    Pod {
        metadata: one<ObjectMeta> = "metadata",
        spec: one<PodSpec> = "spec",
        status: one<PodStatus> = "status",
    }

    /// PodSpec.
    PodSpec {
        node_name: str = "nodeName",
        resource_claims: list<PodResourceClaim> = "resourceClaims",
        scheduling_group: one<SchedulingGroup> = "schedulingGroup",
    }

    /// PodResourceClaim: a claim by name, or one made for the pod.
    PodResourceClaim {
        name: str = "name",
        resource_claim_name: opt_str = "resourceClaimName",
    }

    /// PodSchedulingGroup.
    SchedulingGroup {
        pod_group_name: opt_str = "podGroupName",
    }

    /// PodStatus.
    PodStatus {
        resource_claim_statuses: list<PodClaimStatus> = "resourceClaimStatuses",
        extended_resource_claim_status: one<ExtendedClaimStatus> = "extendedResourceClaimStatus",
    }

    /// PodResourceClaimStatus: the name of a claim that was made for the pod.
    PodClaimStatus {
        name: str = "name",
        resource_claim_name: opt_str = "resourceClaimName",
    }

    /// PodExtendedResourceClaimStatus.
    ExtendedClaimStatus {
        resource_claim_name: str = "resourceClaimName",
    }

    /// policy/v1 PodDisruptionBudget.
    Budget {
        metadata: one<ObjectMeta> = "metadata",
        spec: one<BudgetSpec> = "spec",
        status: one<BudgetStatus> = "status",
    }

    /// PodDisruptionBudgetSpec.
    BudgetSpec {
        /// `selector`, a label selector
        selector: raw = "selector",
    }

    /// PodDisruptionBudgetStatus.
    BudgetStatus {
        disruptions_allowed: int = "disruptionsAllowed",
    }
}
