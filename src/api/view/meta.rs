//! Metadata, conditions and node selectors: types that every kind shares.

use super::view;

view! {
    /// ObjectMeta.
    ObjectMeta {
        /// `name`
        name: str = "name",
        /// `generateName`
        generate_name: str = "generateName",
        /// `namespace`
        namespace: str = "namespace",
        /// `selfLink`
        self_link: str = "selfLink",
        /// `uid`
        uid: str = "uid",
        /// `resourceVersion`
        resource_version: str = "resourceVersion",
        /// `generation`
        generation: int = "generation",
        /// `creationTimestamp`
        creation_timestamp: time = "creationTimestamp",
        /// `deletionTimestamp`
        deletion_timestamp: time = "deletionTimestamp",
        /// `deletionGracePeriodSeconds`
        deletion_grace_period_seconds: opt_int = "deletionGracePeriodSeconds",
        /// `labels`, as the value behind the map
        labels: raw = "labels",
        /// `annotations`, as the value behind the map
        annotations: raw = "annotations",
        /// `ownerReferences`
        owner_references: list<OwnerReference> = "ownerReferences",
        /// `finalizers`
        finalizers: strings = "finalizers",
        /// `managedFields`
        managed_fields: list<ManagedFields> = "managedFields",
    }
}

view! {
    /// OwnerReference.
    OwnerReference {
        /// `apiVersion`
        api_version: str = "apiVersion",
        /// `kind`
        kind: str = "kind",
        /// `name`
        name: str = "name",
        /// `uid`
        uid: str = "uid",
        /// `controller`
        controller: opt_bool = "controller",
    }
}

view! {
    /// ManagedFieldsEntry.
    ManagedFields {
        /// `manager`
        manager: str = "manager",
        /// `operation`
        operation: str = "operation",
        /// `fieldsType`
        fields_type: str = "fieldsType",
        /// `subresource`
        subresource: str = "subresource",
    }
}

view! {
    /// metav1.Condition.
    Condition {
        /// `type`
        kind: str = "type",
        /// `status`
        status: str = "status",
        /// `observedGeneration`
        observed_generation: int = "observedGeneration",
        /// `lastTransitionTime`
        last_transition_time: time = "lastTransitionTime",
        /// `reason`
        reason: str = "reason",
        /// `message`
        message: str = "message",
    }
}

view! {
    /// core/v1 NodeSelector.
    NodeSelector {
        /// `nodeSelectorTerms`
        terms: list<NodeTerm> = "nodeSelectorTerms",
    }
}

view! {
    /// core/v1 NodeSelectorTerm.
    NodeTerm {
        /// `matchExpressions`
        match_expressions: list<NodeRequirement> = "matchExpressions",
        /// `matchFields`
        match_fields: list<NodeRequirement> = "matchFields",
    }
}

view! {
    /// core/v1 NodeSelectorRequirement.
    NodeRequirement {
        /// `key`
        key: str = "key",
        /// `operator`
        operator: str = "operator",
        /// `values`
        values: strings = "values",
    }
}
