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
        phase: str = "phase",
        conditions: list<PodCondition> = "conditions",
        resource_claim_statuses: list<PodClaimStatus> = "resourceClaimStatuses",
        extended_resource_claim_status: one<ExtendedClaimStatus> = "extendedResourceClaimStatus",
    }

    /// PodCondition.
    PodCondition {
        kind: str = "type",
        status: str = "status",
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
        unhealthy_pod_eviction_policy: str = "unhealthyPodEvictionPolicy",
    }

    /// PodDisruptionBudgetStatus.
    BudgetStatus {
        disruptions_allowed: int = "disruptionsAllowed",
        current_healthy: opt_int = "currentHealthy",
        desired_healthy: opt_int = "desiredHealthy",
    }
}

impl Pod<'_> {
    /// True if the pod is Ready, or if its conditions are not known.
    pub fn is_ready_or_unknown(self) -> bool {
        let ready = self.status().conditions().iter().find(|condition| condition.kind() == "Ready");
        ready.is_none_or(|ready| ready.status() == "True")
    }

    /// True if the Eviction API evicts the pod whatever its PodDisruptionBudgets say, because it runs no containers yet or
    /// any more. It also deletes pods again that are being deleted.
    // upstream v1.37 registry/core/pod/storage/eviction.go canIgnorePDB
    pub fn is_evicted_despite_budgets(self) -> bool {
        matches!(self.status().phase(), "Pending" | "Succeeded" | "Failed")
    }
}

impl Budget<'_> {
    /// True if the Eviction API lets pods go that are not Ready, if this is their only PodDisruptionBudget.
    // upstream v1.37 registry/core/pod/storage/eviction.go EvictionREST.Create
    pub fn lets_unready_pods_go(self) -> bool {
        let status = self.status();
        match (
            self.spec().unhealthy_pod_eviction_policy(),
            status.current_healthy(),
            status.desired_healthy(),
        ) {
            ("AlwaysAllow", _, _) => true,
            (_, Some(current), Some(desired)) => desired > 0 && current >= desired,
            _ => false,
        }
    }
}
