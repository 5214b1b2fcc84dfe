//! Pods and PodDisruptionBudgets: only what the eviction of a pod depends on. They are read, never judged.

use super::{ObjectMeta, view};

view! {
    /// core/v1 Pod.
    Pod {
        /// `metadata`
        metadata: one<ObjectMeta> = "metadata",
        /// `spec`
        spec: one<PodSpec> = "spec",
        /// `status`
        status: one<PodStatus> = "status",
    }
}

view! {
    /// PodSpec.
    PodSpec {
        /// `nodeName`
        node_name: str = "nodeName",
        /// `resourceClaims`
        resource_claims: list<PodResourceClaim> = "resourceClaims",
        /// `schedulingGroup`
        scheduling_group: one<SchedulingGroup> = "schedulingGroup",
    }
}

view! {
    /// PodResourceClaim: a claim by name, or one made for the pod.
    PodResourceClaim {
        /// `name`
        name: str = "name",
        /// `resourceClaimName`
        resource_claim_name: opt_str = "resourceClaimName",
    }
}

view! {
    /// PodSchedulingGroup.
    SchedulingGroup {
        /// `podGroupName`
        pod_group_name: opt_str = "podGroupName",
    }
}

view! {
    /// PodStatus.
    PodStatus {
        /// `resourceClaimStatuses`
        resource_claim_statuses: list<PodClaimStatus> = "resourceClaimStatuses",
        /// `extendedResourceClaimStatus`
        extended_resource_claim_status: one<ExtendedClaimStatus> = "extendedResourceClaimStatus",
    }
}

view! {
    /// PodResourceClaimStatus: the name of a claim that was made for the pod.
    PodClaimStatus {
        /// `name`
        name: str = "name",
        /// `resourceClaimName`
        resource_claim_name: opt_str = "resourceClaimName",
    }
}

view! {
    /// PodExtendedResourceClaimStatus.
    ExtendedClaimStatus {
        /// `resourceClaimName`
        resource_claim_name: str = "resourceClaimName",
    }
}

view! {
    /// policy/v1 PodDisruptionBudget.
    Budget {
        /// `metadata`
        metadata: one<ObjectMeta> = "metadata",
        /// `spec`
        spec: one<BudgetSpec> = "spec",
        /// `status`
        status: one<BudgetStatus> = "status",
    }
}

view! {
    /// PodDisruptionBudgetSpec.
    BudgetSpec {
        /// `selector`
        selector: opt<LabelSelector> = "selector",
    }
}

view! {
    /// PodDisruptionBudgetStatus.
    BudgetStatus {
        /// `disruptionsAllowed`
        disruptions_allowed: int = "disruptionsAllowed",
    }
}

view! {
    /// metav1.LabelSelector.
    LabelSelector {
        /// `matchLabels`, the map behind it
        match_labels: raw = "matchLabels",
        /// `matchExpressions`
        match_expressions: list<LabelRequirement> = "matchExpressions",
    }
}

view! {
    /// metav1.LabelSelectorRequirement.
    LabelRequirement {
        /// `key`
        key: str = "key",
        /// `operator`
        operator: str = "operator",
        /// `values`
        values: strings = "values",
    }
}
