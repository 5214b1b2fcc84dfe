//! Descriptions of the fields and values of the API, one sentence each, for hovers and completions.
//!
//! Fields of policies are not here: their rows have descriptions of their own (`policy/fields/`).
//!
//! Invariant: every row names a field or type that the tables of `api/fields/` have, and every field of an object about
//! device taints, claims and slices has a row.

#[cfg(test)]
mod tests;

/// Descriptions of fields: struct, field and text. The struct `*` applies to every struct with this field
/// that has no entry.
const FIELD_MEANINGS: &[(&str, &str, &str)] = &[
    ("*", "apiVersion", "API group and version of the object."),
    ("*", "kind", "The type of the object."),
    ("*", "metadata", "Name, namespace, labels and annotations."),
    ("*", "spec", "The desired state."),
    ("*", "status", "The observed state, written by controllers."),
    // Taints and tolerations
    (
        "DeviceTaint",
        "key",
        "Name of the taint: a qualified name such as `example.com/unhealthy`. Tolerations match it.",
    ),
    (
        "DeviceTaint",
        "value",
        "Value of the taint. Tolerations with `operator: Equal` must have the same value.",
    ),
    (
        "DeviceTaint",
        "effect",
        "What happens to pods whose claims do not tolerate the taint: `NoSchedule`, `NoExecute` or, if the release supports it, `None`.",
    ),
    (
        "DeviceTaint",
        "timeAdded",
        "Time at which the taint was added. `tolerationSeconds` counts from this time. The API server sets the field if it is missing.",
    ),
    ("DeviceTaint", "description", "Human-readable description (draft r2)."),
    (
        "DeviceTaint",
        "data",
        "Structured information about the taint, from the driver or an administrator (draft r2).",
    ),
    ("DeviceTaint", "evictionsPerSecond", "How fast pods are evicted because of the taint (draft r2)."),
    (
        "DeviceToleration",
        "key",
        "The taint key that is tolerated. Without a key, `operator` must be `Exists`, and the toleration matches all \
         keys.",
    ),
    (
        "DeviceToleration",
        "operator",
        "`Equal` (the default) compares the value; `Exists` matches every value.",
    ),
    ("DeviceToleration", "value", "The taint value that is tolerated. Must be empty with `Exists`."),
    ("DeviceToleration", "effect", "The effect that is tolerated. If it is empty, all effects match."),
    (
        "DeviceToleration",
        "tolerationSeconds",
        "How long a `NoExecute` taint is tolerated before the pod is evicted, in seconds. If the field is not set, the \
         taint is tolerated forever. If the value is zero or negative, the pod is evicted immediately.",
    ),
    ("*", "taints", "Taints of the device. Claims must tolerate them to get the device."),
    ("*", "tolerations", "Taints that the devices of this request may have."),
    ("ResourceSliceSpec", "taints", "Taints for devices of this and other slices of the driver (draft r2)."),
    ("SliceDeviceTaint", "device", "Name of the tainted device (draft r2)."),
    ("SliceDeviceTaint", "taint", "The taint (draft r2)."),
    ("SliceDeviceTaint", "key", "Name of the taint (draft r2)."),
    ("SliceDeviceTaint", "value", "Value of the taint (draft r2)."),
    ("SliceDeviceTaint", "effect", "Effect of the taint (draft r2)."),
    ("SliceDeviceTaint", "timeAdded", "When the taint was added (draft r2)."),
    ("SliceDeviceTaint", "description", "Human-readable description (draft r2)."),
    ("SliceDeviceTaint", "data", "Structured information about the taint (draft r2)."),
    ("SliceDeviceTaint", "evictionsPerSecond", "How fast pods are evicted because of the taint (draft r2)."),
    // DeviceTaintRule
    (
        "DeviceTaintRuleSpec",
        "deviceSelector",
        "Which devices get the taint. All criteria that are set must match. Depending on the release, a missing or \
         empty selector selects no devices or all devices.",
    ),
    ("DeviceTaintRuleSpec", "taint", "The taint that all selected devices get."),
    ("DeviceTaintSelector", "driver", "Only devices of this driver."),
    (
        "DeviceTaintSelector",
        "pool",
        "Only devices of this pool. Pools of different drivers can have the same name, so also set `driver`.",
    ),
    (
        "DeviceTaintSelector",
        "device",
        "Only the device with this name. Names are unique only within a pool, so also set `driver` and `pool`.",
    ),
    (
        "DeviceTaintSelector",
        "deviceClassName",
        "Only devices of this DeviceClass (1.33, 1.34 and draft r2; newer releases ignore it).",
    ),
    (
        "DeviceTaintSelector",
        "selectors",
        "Only devices that match all CEL expressions (1.33, 1.34 and draft r2; newer releases ignore it).",
    ),
    (
        "DeviceTaintRuleStatus",
        "conditions",
        "The condition `EvictionInProgress` shows how many pods are evicted or, with effect `None`, would be evicted.",
    ),
    // Claims
    ("ResourceClaimSpec", "devices", "The requested devices."),
    (
        "ResourceClaimTemplateSpec",
        "metadata",
        "Labels and annotations for the claims that are created from the template.",
    ),
    ("ResourceClaimTemplateSpec", "spec", "The spec of the claims that are created from the template."),
    ("DeviceClaim", "requests", "The requests. Each request asks for one or more devices of a class."),
    ("DeviceClaim", "constraints", "Constraints across the devices of several requests."),
    ("DeviceClaim", "config", "Parameters for drivers."),
    ("DeviceRequest", "name", "Name of the request. Constraints, configuration and containers refer to it."),
    ("DeviceRequest", "exactly", "A request for devices of one class."),
    ("DeviceRequest", "firstAvailable", "Alternatives. The first alternative that can be satisfied is used."),
    ("DeviceSubRequest", "name", "Name of the alternative. References have the form `request/alternative`."),
    ("*", "deviceClassName", "The DeviceClass that the devices are taken from."),
    ("*", "selectors", "CEL expressions that every device must match."),
    (
        "*",
        "allocationMode",
        "`ExactCount` (the default) requests `count` devices; `All` requests all matching devices.",
    ),
    ("*", "count", "Number of devices for `ExactCount` (default: 1)."),
    (
        "*",
        "adminAccess",
        "Administrative access for monitoring or maintenance, even if the device is in use. The namespace needs the label `resource.kubernetes.io/admin-access: \"true\"`.",
    ),
    ("*", "capacity", "Capacities that a device provides or that a request requires."),
    ("*", "derivedAttributes", "Attributes that are computed by a CEL expression (1.37)."),
    ("CapacityRequirements", "requests", "Required amount of each capacity."),
    ("DeviceDerivedAttribute", "name", "Fully qualified name of the derived attribute."),
    ("DeviceDerivedAttribute", "expression", "The CEL expression that computes the attribute."),
    ("DeviceSelector", "cel", "A CEL expression."),
    (
        "CELDeviceSelector",
        "expression",
        "An expression that is true for matching devices. It can use `device.driver`, \
         `device.attributes[\"domain\"].name` and `device.capacity[\"domain\"].name`.",
    ),
    ("DeviceConstraint", "requests", "The requests that the constraint applies to (default: all)."),
    ("DeviceConstraint", "matchAttribute", "All devices must have the same value for this attribute."),
    ("DeviceConstraint", "distinctAttribute", "All devices must have different values for this attribute."),
    ("*", "opaque", "Parameters that only the driver interprets."),
    ("OpaqueDeviceConfiguration", "driver", "The driver that the parameters are for."),
    (
        "OpaqueDeviceConfiguration",
        "parameters",
        "Any JSON object, usually with an `apiVersion` and `kind` that the driver defines.",
    ),
    (
        "DeviceClaimConfiguration",
        "requests",
        "The requests that the configuration applies to (default: all).",
    ),
    // Classes
    ("DeviceClassSpec", "config", "Parameters for drivers, used for all claims of the class."),
    (
        "DeviceClassSpec",
        "extendedResourceName",
        "Extended resource that lets pods request a device of the class without a claim.",
    ),
    // Slices
    ("ResourceSliceSpec", "driver", "The driver that publishes the devices: a DNS subdomain."),
    ("ResourceSliceSpec", "pool", "The pool that the slice belongs to."),
    ("*", "nodeName", "The only node that has access to the devices."),
    ("*", "nodeSelector", "The nodes that have access to the devices."),
    ("*", "allNodes", "Every node has access to the devices."),
    ("ResourceSliceSpec", "devices", "The devices of this slice."),
    ("ResourceSliceSpec", "perDeviceNodeSelection", "Each device specifies which nodes have access to it."),
    (
        "ResourceSliceSpec",
        "sharedCounters",
        "Counters that devices consume, such as partitions of the same hardware.",
    ),
    (
        "ResourceSliceSpec",
        "partitionTypeAttribute",
        "The attribute that names the type of a partition (1.37).",
    ),
    ("*", "skipNodeOperations", "Driver calls that the kubelet skips (1.37)."),
    ("ResourcePool", "name", "Name of the pool."),
    ("ResourcePool", "generation", "Increases with every change. Slices of older generations are ignored."),
    (
        "ResourcePool",
        "resourceSliceCount",
        "Number of slices in this generation. The pool is complete when all of these slices exist.",
    ),
    ("Device", "name", "Name of the device: a DNS label, unique within its pool."),
    ("Device", "basic", "All properties of the device except its name (before v1beta2)."),
    ("*", "attributes", "Attributes of the device, by qualified name. Selectors compare these attributes."),
    ("*", "consumesCounters", "Amounts that the device consumes from shared counters."),
    ("*", "bindsToNode", "The claim is bound to the node that the scheduler chose."),
    ("*", "bindingConditions", "Conditions that must be true before a pod is bound."),
    ("*", "bindingFailureConditions", "Conditions that indicate that binding failed."),
    ("*", "allowMultipleAllocations", "Several claims can share the device."),
    ("*", "nodeAllocatableResourceMappings", "Node resources that the device uses (1.36)."),
    ("*", "nodeAllocatableResources", "Node resources that the device uses (1.37)."),
    // Allocation
    ("ResourceClaimStatus", "allocation", "The devices that are allocated to the claim."),
    ("ResourceClaimStatus", "reservedFor", "The consumers that may use the claim, usually one pod."),
    ("ResourceClaimStatus", "devices", "What drivers report about the allocated devices."),
    // Pods
    ("PodResourceClaim", "name", "Name of the claim within the pod. Containers refer to it."),
    ("PodResourceClaim", "resourceClaimName", "An existing ResourceClaim in the same namespace."),
    (
        "PodResourceClaim",
        "resourceClaimTemplateName",
        "A ResourceClaimTemplate in the same namespace. A separate claim is created for the pod.",
    ),
    ("*", "resourceClaims", "Claims that the pod uses."),
];

/// Descriptions of the values of the string types of the API: type, value and text.
const VALUE_MEANINGS: &[(&str, &str, &str)] = &[
    (
        "DeviceTaintEffect",
        "NoSchedule",
        "Pods that do not tolerate the taint are not scheduled onto the device; running pods stay.",
    ),
    (
        "DeviceTaintEffect",
        "NoExecute",
        "Like `NoSchedule`, but running pods that do not tolerate the taint are also evicted.",
    ),
    (
        "DeviceTaintEffect",
        "None",
        "No effect. The status of a DeviceTaintRule shows what `NoExecute` would do.",
    ),
    ("DeviceTolerationOperator", "Equal", "Key and value must match."),
    ("DeviceTolerationOperator", "Exists", "The key must match; the value does not matter."),
    ("DeviceAllocationMode", "ExactCount", "Exactly `count` devices."),
    ("DeviceAllocationMode", "All", "All matching devices in a pool; the pool must be complete."),
    ("AllocationConfigSource", "FromClass", "The configuration comes from the DeviceClass."),
    ("AllocationConfigSource", "FromClaim", "The configuration comes from the claim."),
    (
        "SkipNodeOperation",
        "NodePrepareResources",
        "The kubelet does not call the driver to prepare the devices.",
    ),
    ("SkipNodeOperation", "NodeUnprepareResources", "The kubelet does not call the driver to clean up."),
    ("SkipNodeOperation", "*", "Both."),
    ("ConditionStatus", "True", ""),
    ("ConditionStatus", "False", ""),
    ("ConditionStatus", "Unknown", ""),
    ("NodeSelectorOperator", "In", "The label has one of the values."),
    ("NodeSelectorOperator", "NotIn", "The label has none of the values."),
    ("NodeSelectorOperator", "Exists", "The label exists."),
    ("NodeSelectorOperator", "DoesNotExist", "The label does not exist."),
    ("NodeSelectorOperator", "Gt", "The label is a number greater than the value."),
    ("NodeSelectorOperator", "Lt", "The label is a number less than the value."),
    ("AllocationMode", "Delayed", "The claim is allocated when a pod needs it (KEP-3063)."),
    ("AllocationMode", "Immediate", "The claim is allocated immediately (KEP-3063)."),
    ("ResourceClaimPhase", "Pending", "Not allocated (KEP-3063)."),
    ("ResourceClaimPhase", "Allocated", "Allocated (KEP-3063)."),
    ("ResourceClaimPhase", "Reallocate", "To be allocated again (KEP-3063)."),
];

/// Returns the description of a field of a struct; empty if there is none.
pub(super) fn field_meaning(owner: &str, name: &str) -> &'static str {
    let row = |of: &str| FIELD_MEANINGS.iter().find(|(found, field, _)| *found == of && *field == name);
    row(owner).or_else(|| row("*")).map_or("", |(_, _, meaning)| meaning)
}

/// Returns the values of a string type of the API, with their descriptions; empty for other types.
pub(super) fn value_meanings(ty: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    VALUE_MEANINGS.iter().filter(move |(of, _, _)| *of == ty).map(|(_, word, meaning)| (*word, *meaning))
}
