//! The fields behind feature gates, and which of an object a server drops because a gate is off.
//!
//! A server drops them before it validates: on create always, on update unless the stored object uses the feature. The
//! paths of the tables are described in `steps`.
//!
//! Invariant: this module only finds the fields, and makes a copy without them. The engine drops them, or warns.

use super::steps;
use super::view::{Object, ObjectBody, Request, View};
use crate::profile::{Availability, Gate, Profile};
use tollgate_document::doc::{Doc, DocChange, OwnedJsonValue, Value, ValueKind, apply_changes};
use tollgate_document::field::{FieldPath, Path};

/// Fields that are dropped together if a feature gate is disabled. Paths are those of the internal type.
struct GatedFields {
    /// The feature gates that must all be enabled for the fields to stay.
    gates: &'static [Gate],
    drops: &'static [&'static str],
    /// Other fields of the stored object that indicate that it uses the feature.
    also_used: &'static [&'static str],
    releases: Availability,
}

/// Creates an entry that applies to all releases. A stored object uses the feature if it has one of the dropped fields.
const fn gated_fields(gates: &'static [Gate], drops: &'static [&'static str]) -> GatedFields {
    GatedFields { gates, drops, also_used: &[], releases: Availability::ALWAYS }
}

impl GatedFields {
    /// Limits the fields to these releases.
    const fn in_releases(self, releases: Availability) -> GatedFields {
        GatedFields { releases, ..self }
    }

    /// Adds other fields of the stored object that indicate that it uses the feature.
    const fn with_usage_indicators(self, also_used: &'static [&'static str]) -> GatedFields {
        GatedFields { also_used, ..self }
    }
}

/// The fields that feature gates control in the part of an object that one registry strategy of the API server handles,
/// in the order in which it drops them: whole alternatives first.
// upstream v1.37 registry/resource/*/strategy.go, api/resourceclaimspec/util.go
type GatedFieldTable = [GatedFields];

/// The fields of a slice.
static SLICE_FIELDS: &GatedFieldTable = &[
    gated_fields(&[Gate::DRADeviceTaints], &["spec.devices[].<body>.taints"]),
    gated_fields(
        &[Gate::DRAPartitionableDevices],
        &[
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            "spec.devices[].<body>.consumesCounters",
            "spec.devices[].<body>.nodeName",
            "spec.devices[].<body>.nodeSelector",
            "spec.devices[].<body>.allNodes",
        ],
    ),
    gated_fields(
        &[Gate::DRADeviceBindingConditions, Gate::DRAResourceClaimDeviceStatus],
        &[
            "spec.devices[].<body>.bindingConditions",
            "spec.devices[].<body>.bindingFailureConditions",
            "spec.devices[].<body>.bindsToNode",
        ],
    ),
    gated_fields(
        &[Gate::DRAConsumableCapacity],
        &["spec.devices[].<body>.allowMultipleAllocations", "spec.devices[].<body>.capacity{}.requestPolicy"],
    ),
    gated_fields(
        &[Gate::DRADeviceCompatibilityGroups],
        &["spec.devices[].<body>.consumesCounters[].compatibilityGroups"],
    ),
    gated_fields(
        &[Gate::DRANodeAllocatableResources],
        &[
            "spec.devices[].<body>.nodeAllocatableResources",
            "spec.devices[].<body>.nodeAllocatableResourceMappings",
        ],
    ),
    gated_fields(
        &[Gate::DRAListTypeAttributes],
        &[
            "spec.devices[].<body>.attributes{}.ints",
            "spec.devices[].<body>.attributes{}.bools",
            "spec.devices[].<body>.attributes{}.strings",
            "spec.devices[].<body>.attributes{}.versions",
        ],
    ),
    gated_fields(&[Gate::DRAPartitionableDevicesType], &["spec.partitionTypeAttribute"]),
    gated_fields(&[Gate::DRAOptionalNodeOperations], &["spec.skipNodeOperations"]),
];

/// The fields in the spec of a claim, or of the claims of a template.
static CLAIM_SPEC_FIELDS: &GatedFieldTable = &[
    gated_fields(&[Gate::DRAPrioritizedList], &["devices.requests[].firstAvailable"]),
    // 1.33 and 1.34 forgot to.
    gated_fields(
        &[Gate::DRADeviceTaints],
        &["devices.requests[].<exactly>.tolerations", "devices.requests[].firstAvailable[].tolerations"],
    )
    .in_releases(Availability::since(35)),
    gated_fields(&[Gate::DRAAdminAccess], &["devices.requests[].<exactly>.adminAccess"]),
    // 1.34 changed a copy.
    gated_fields(&[Gate::DRAConsumableCapacity], &["devices.constraints[].distinctAttribute"])
        .with_usage_indicators(REQUEST_CAPACITY_PATHS)
        .in_releases(Availability::since(35)),
    gated_fields(&[Gate::DRAConsumableCapacity], REQUEST_CAPACITY_PATHS)
        .with_usage_indicators(&["devices.constraints[].distinctAttribute"]),
    gated_fields(
        &[Gate::DRADerivedAttributes],
        &[
            "devices.requests[].<exactly>.derivedAttributes",
            "devices.requests[].firstAvailable[].derivedAttributes",
        ],
    ),
];

/// The fields of a claim whose status is written.
static CLAIM_STATUS_FIELDS: &GatedFieldTable = &[
    gated_fields(&[Gate::DRAResourceClaimDeviceStatus], &["status.devices"]),
    gated_fields(&[Gate::DRAAdminAccess], &["status.allocation.devices.results[].adminAccess"])
        .with_usage_indicators(&["spec.devices.requests[].<exactly>.adminAccess"]),
    gated_fields(
        &[Gate::DRAConsumableCapacity],
        &[
            "status.allocation.devices.results[].shareID",
            "status.allocation.devices.results[].consumedCapacity",
            "status.devices[].shareID",
        ],
    )
    .with_usage_indicators(&[
        "spec.devices.constraints[].distinctAttribute",
        "spec.devices.requests[].<exactly>.capacity",
        "spec.devices.requests[].firstAvailable[].capacity",
    ]),
    gated_fields(&[Gate::DRADeviceBindingConditions], RESULT_BINDING_CONDITION_PATHS)
        .in_releases(Availability::since(35)),
    gated_fields(
        &[Gate::DRADeviceBindingConditions, Gate::DRAResourceClaimDeviceStatus],
        &["status.allocation.allocationTimestamp"],
    )
    .with_usage_indicators(RESULT_BINDING_CONDITION_PATHS)
    .in_releases(Availability::release(34)),
    gated_fields(
        &[Gate::DRADeviceBindingConditions, Gate::DRAResourceClaimDeviceStatus],
        RESULT_BINDING_CONDITION_PATHS,
    )
    .with_usage_indicators(&["status.allocation.allocationTimestamp"])
    .in_releases(Availability::release(34)),
    gated_fields(
        &[Gate::DRAOptionalNodeOperations],
        &["status.allocation.devices.results[].skipNodeOperations"],
    ),
];

/// The fields of a class.
static CLASS_FIELDS: &GatedFieldTable =
    &[gated_fields(&[Gate::DRAExtendedResource], &["spec.extendedResourceName"])];

const REQUEST_CAPACITY_PATHS: &[&str] =
    &["devices.requests[].<exactly>.capacity", "devices.requests[].firstAvailable[].capacity"];
const RESULT_BINDING_CONDITION_PATHS: &[&str] = &[
    "status.allocation.devices.results[].bindingConditions",
    "status.allocation.devices.results[].bindingFailureConditions",
];

/// A field of an object that the API server drops, and the feature gate because of which it does.
#[derive(Debug)]
pub struct DroppedField {
    /// Path of the field.
    pub at: FieldPath,
    /// The disabled feature gate.
    pub gate: Gate,
    /// The field's [`Value::index`].
    node: u32,
}

/// The fields of a new object that a server drops, with the gates of the profile. On an update, `old` is the stored
/// object, whose features are kept; `is_status` is true if the status is written.
pub fn dropped_fields(
    object: Object<'_>,
    old: Option<Object<'_>>,
    is_status: bool,
    profile: &Profile,
) -> Vec<DroppedField> {
    let (table, part) = match object.body {
        ObjectBody::Slice(_) if !is_status => (SLICE_FIELDS, ""),
        ObjectBody::Class(_) if !is_status => (CLASS_FIELDS, ""),
        ObjectBody::Claim(_) if is_status => (CLAIM_STATUS_FIELDS, ""),
        ObjectBody::Claim(_) => (CLAIM_SPEC_FIELDS, "spec"),
        ObjectBody::Template(_) => (CLAIM_SPEC_FIELDS, "spec.spec"),
        _ => return Vec::new(),
    };
    let off: Vec<Gate> = profile.gates_off_by_setting_or_default().collect();
    if off.is_empty() {
        return Vec::new();
    }
    let mut dropped: Vec<DroppedField> = Vec::new();
    // What is dropped already, sorted: the first node of each, and the one behind it.
    let mut nodes: Vec<(u32, u32)> = Vec::new();
    for GatedFields { gates, drops, also_used, releases } in table {
        let gate = gates.iter().copied().find(|gate| off.contains(gate));
        let Some(gate) = gate.filter(|_| releases.overlaps(profile.fields)) else { continue };
        let is_used = |old: Object<'_>| {
            let mut paths = drops.iter().chain(*also_used);
            paths.any(|path| is_any_field_set(old, part, path))
        };
        if old.is_some_and(is_used) {
            continue;
        }
        let mut own = Vec::new();
        steps::visit(object.value(), part, object.version, &Path::ROOT, &mut |part, at| {
            for path in *drops {
                steps::visit(part, path, object.version, at, &mut |value, at| {
                    if value.is_null_or_absent() {
                        return;
                    }
                    let node = value.index();
                    let before = nodes.partition_point(|(first, _)| *first <= node);
                    let is_inside = before
                        .checked_sub(1)
                        .and_then(|last| nodes.get(last))
                        .is_some_and(|(_, end)| node < *end);
                    if !is_inside {
                        own.push((
                            node,
                            node.saturating_add(u32::try_from(value.node_count()).unwrap_or(u32::MAX)),
                        ));
                        dropped.push(DroppedField { at: at.owned(), gate, node });
                    }
                });
            }
        });
        nodes.append(&mut own);
        nodes.sort_unstable();
    }
    dropped
}

/// A copy of the object without the dropped fields.
pub fn without_dropped_fields<'d>(object: Object<'d>, dropped: &[DroppedField]) -> Doc<'d> {
    let drop = |field: &DroppedField| DocChange::Replace { node: field.node, value: OwnedJsonValue::Null };
    let mut changes: Vec<DocChange> = dropped.iter().map(drop).collect();
    let copy = apply_changes(object.value(), &changes);
    let way: &[&str] = match object.body {
        _ if !object.version.is_v1alpha3_or_v1beta1() => return copy,
        ObjectBody::Claim(_) => &["spec", "devices", "requests"],
        ObjectBody::Template(_) => &["spec", "spec", "devices", "requests"],
        _ => return copy,
    };
    // The server decides whether a flat request is an exact one before it drops fields. A list without tolerations
    // makes a request exact, and the server does not print it.
    let is_exact = |request: Value<'_>| Request::of(request).exactly(object.version).is_some();
    let before = value_below(object.value(), way).items();
    let marks: Vec<DocChange> = before
        .zip(value_below(copy.root(), way).items())
        .filter(|(before, after)| is_exact(*before) && !is_exact(*after))
        .map(|(request, _)| {
            let (value, tolerations) = (OwnedJsonValue::List(Vec::new()), request.get("tolerations"));
            if tolerations.exists() {
                DocChange::Replace { node: tolerations.index(), value }
            } else {
                DocChange::Add { object: request.index(), key: "tolerations", value }
            }
        })
        .collect();
    if marks.is_empty() {
        return copy;
    }
    // The first change of a value counts.
    changes.splice(0..0, marks);
    apply_changes(object.value(), &changes)
}

/// The value that the fields `way` lead to; absent if there is none.
fn value_below<'d>(value: Value<'d>, way: &[&str]) -> Value<'d> {
    way.iter().fold(value, |value, step| value.get(step))
}

/// True if a field at the end of the path below `part` is set: a list with items, or anything else that is not null.
fn is_any_field_set(object: Object<'_>, part: &str, path: &str) -> bool {
    let mut used = false;
    steps::visit(object.value(), part, object.version, &Path::ROOT, &mut |part, at| {
        steps::visit(part, path, object.version, at, &mut |value, _| {
            used |= !value.is_null_or_absent() && (value.kind() != ValueKind::Array || !value.is_empty());
        });
    });
    used
}
