//! Metadata, conditions and node selectors: types that every kind shares.

use super::view;

view! {
    /// ObjectMeta.
    ObjectMeta {
        name: str = "name",
        generate_name: str = "generateName",
        namespace: str = "namespace",
        self_link: str = "selfLink",
        uid: str = "uid",
        resource_version: str = "resourceVersion",
        generation: int = "generation",
        creation_timestamp: time = "creationTimestamp",
        deletion_timestamp: time = "deletionTimestamp",
        deletion_grace_period_seconds: opt_int = "deletionGracePeriodSeconds",
        /// `labels`, as a JSON object
        labels: raw = "labels",
        /// `annotations`, as a JSON object
        annotations: raw = "annotations",
        owner_references: list<OwnerReference> = "ownerReferences",
        finalizers: strings = "finalizers",
        managed_fields: list<ManagedFields> = "managedFields",
    }

    /// OwnerReference.
    OwnerReference {
        api_version: str = "apiVersion",
        kind: str = "kind",
        name: str = "name",
        uid: str = "uid",
        controller: opt_bool = "controller",
        block_owner_deletion: opt_bool = "blockOwnerDeletion",
    }

    /// ManagedFieldsEntry.
    ManagedFields {
        manager: str = "manager",
        api_version: str = "apiVersion",
        fields_v1: raw = "fieldsV1",
        operation: str = "operation",
        fields_type: str = "fieldsType",
        subresource: str = "subresource",
    }

    /// metav1.Condition.
    Condition {
        kind: str = "type",
        status: str = "status",
        observed_generation: int = "observedGeneration",
        last_transition_time: time = "lastTransitionTime",
        reason: str = "reason",
        message: str = "message",
    }

    /// core/v1 NodeSelector.
    NodeSelector {
        terms: list<NodeTerm> = "nodeSelectorTerms",
    }

    /// core/v1 NodeSelectorTerm.
    NodeTerm {
        match_expressions: list<NodeRequirement> = "matchExpressions",
        match_fields: list<NodeRequirement> = "matchFields",
    }

    /// core/v1 NodeSelectorRequirement.
    NodeRequirement {
        key: str = "key",
        operator: str = "operator",
        values: strings = "values",
    }
}
