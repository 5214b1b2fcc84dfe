//! Node resources that a device uses up: the flat mapping of 1.36, mapping and overhead of 1.37.

use super::lists;
use crate::rules::RuleContext;
use crate::rules::table::NODE_ALLOCATABLE_RESOURCES;
use tollgate_api::view::{DeviceBody, NodeResourceMapping, NodeResourceOverhead};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::quantity::Quantity;

/// Checks the node resources of a device in both forms, that of 1.36 and that of 1.37; a release knows at most one of
/// them. `at` is the device's body.
// upstream v1.36 validateNodeAllocatableResourceMappings; v1.37 validateNodeAllocatableResources
pub fn check_node_resources(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, body: DeviceBody<'_>) {
    let capacities = lists::index_names(body.capacity().iter().map(|(key, _)| key));
    let is_capacity = &|key: &str| capacities.get(key).is_some();
    let mappings_at = at.field("nodeAllocatableResourceMappings");
    for (name, mapping) in body.node_resource_mappings().iter() {
        let at = mappings_at.key(name);
        if name.contains('/') && !name.contains("kubernetes.io/") {
            report_not_node_allocatable(cx, &at, name);
        }
        if let Some(multiplier) = mapping.allocation_multiplier() {
            check_positive(cx, &at.field("allocationMultiplier"), &multiplier);
        }
        check_capacity_key(cx, &at, mapping, is_capacity);
    }
    let resources_at = at.field("nodeAllocatableResources");
    for (name, resource) in body.node_resources().iter() {
        let at = resources_at.key(name);
        if !matches!(name, "cpu" | "memory") && !name.starts_with("hugepages-") {
            report_not_node_allocatable(cx, &at, name);
        }
        if resource.mapping().is_none() && resource.overhead().is_none() {
            let detail = "at least one of mapping or overhead must be set";
            cx.report(NODE_ALLOCATABLE_RESOURCES, &at).required(detail);
        }
        if let Some(mapping) = resource.mapping() {
            check_mapping(cx, &at.field("mapping"), mapping, is_capacity);
        }
        if let Some(overhead) = resource.overhead() {
            check_overhead(cx, &at.field("overhead"), overhead);
        }
        if let Some(mapping) = resource.mapping() {
            check_exactly_one_source_set(cx, &at.field("mapping"), mapping);
        }
    }
}

fn check_mapping(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    mapping: NodeResourceMapping<'_>,
    is_capacity: &dyn Fn(&str) -> bool,
) {
    check_capacity_key(cx, at, mapping, is_capacity);
    let multiplier_at = at.field("capacityMultiplier");
    match (mapping.capacity_key(), mapping.capacity_multiplier()) {
        (Some(_), None) => {
            cx.report(NODE_ALLOCATABLE_RESOURCES, &multiplier_at)
                .required("capacityMultiplier is required when capacityKey is set");
        }
        (Some(_), Some(multiplier)) => check_positive(cx, &multiplier_at, &multiplier),
        (None, Some(_)) => {
            cx.report(NODE_ALLOCATABLE_RESOURCES, &at.field("capacityKey"))
                .required("capacityKey is required when capacityMultiplier is set");
        }
        (None, None) => {}
    }
    if let Some(multiplier) = mapping.device_multiplier() {
        check_positive(cx, &at.field("deviceMultiplier"), &multiplier);
    }
}

fn check_overhead(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, overhead: NodeResourceOverhead<'_>) {
    if overhead.per_pod().is_none() && overhead.per_container().is_none() {
        cx.report(NODE_ALLOCATABLE_RESOURCES, at)
            .invalid("", "at least one of perPod or perContainer must be set");
    }
    for (field, amount) in [("perPod", overhead.per_pod()), ("perContainer", overhead.per_container())] {
        if let Some(amount) = amount.filter(|amount| amount.sign() < 0) {
            let value = BadValue::str(&amount.text());
            cx.report(NODE_ALLOCATABLE_RESOURCES, &at.field(field)).invalid(value, "must be non-negative");
        }
    }
}

/// Checks that a mapping has exactly one of `capacityKey` and `deviceMultiplier`, as declarative validation does.
fn check_exactly_one_source_set(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    mapping: NodeResourceMapping<'_>,
) {
    match (mapping.capacity_key().is_some(), mapping.device_multiplier().is_some()) {
        (false, false) => {
            cx.report(NODE_ALLOCATABLE_RESOURCES, at)
                .declarative_only()
                .invalid("", "must specify one of: `capacityKey`, `deviceMultiplier`");
        }
        (true, true) => {
            let detail = "must specify exactly one of: `capacityKey`, `deviceMultiplier`";
            let value = BadValue::str("{capacityKey, deviceMultiplier}");
            cx.report(NODE_ALLOCATABLE_RESOURCES, at).declarative_only().invalid(value, detail);
        }
        _ => {}
    }
}

/// Checks that `capacityKey` is exactly the name of a capacity of the same device.
fn check_capacity_key(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    mapping: NodeResourceMapping<'_>,
    is_capacity: &dyn Fn(&str) -> bool,
) {
    let key_at = at.field("capacityKey");
    match mapping.capacity_key() {
        Some("") => {
            cx.report(NODE_ALLOCATABLE_RESOURCES, &key_at)
                .invalid("", "capacityKey must not be an empty string");
        }
        Some(key) if !is_capacity(key) => {
            cx.report(NODE_ALLOCATABLE_RESOURCES, &key_at).not_found(BadValue::json_quoted_string(key), "");
        }
        _ => {}
    }
}

/// Reports a name that is not the name of a node allocatable resource.
fn report_not_node_allocatable(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, name: &str) {
    cx.report(NODE_ALLOCATABLE_RESOURCES, at)
        .invalid(BadValue::json_quoted_string(name), "must be a node allocatable resource name");
}

/// Reports an amount that is not greater than zero.
fn check_positive(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, amount: &Quantity<'_>) {
    if amount.sign() <= 0 {
        cx.report(NODE_ALLOCATABLE_RESOURCES, at).invalid(BadValue::str(&amount.text()), "must be positive");
    }
}
