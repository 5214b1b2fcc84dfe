//! Converts objects to records: the one place that reads views for the snapshot.
//!
//! A dump and a watch use the same code. An object that does not decode is an error and never an empty record:
//! "nothing is affected" must not be the result for a file that cannot be read.

use std::sync::Arc;

use super::details::is_blocking_effect;
use super::interner::{InternedStr, StringInterner};
use super::other_apis::patches::PatchedDevice;
use super::placement::{SlicePlacement, only_node_of_allocation};
use super::record::{
    AllocatedDevice, Budget, BudgetProtection, Claim, ClaimReference, ClaimSource, ClaimUser, ClassCriteria,
    ClassSelection, Device, Pod, Rule, RuleSelector, Slice, Taint, Toleration, Tolerations,
};
use super::slots::Slot;
use crate::rule_annotations;
use tollgate_api::conform::{Schema, decode_by_schema};
use tollgate_api::fields;
use tollgate_api::labels::read_selector;
use tollgate_api::profile::{self, ApiKind, Version};
use tollgate_api::view::{self, List, ObjectMeta, View as _};
use tollgate_document::doc::{NameSet, Value, ValueKind as Json};
use tollgate_document::field::{FieldPath, PathAudience};
use tollgate_formats::gotime::Timestamp;

/// An object that cannot be stored, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableObject {
    /// The field that cannot be read.
    pub at: FieldPath,
    /// The object, the field and the reason: `ResourceClaim ml/train: spec.devices: …`
    pub message: String,
}

impl std::fmt::Display for UnreadableObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UnreadableObject {}

/// Fields that impact does not read; they make up most of an object.
pub(super) static UNREAD_FIELDS: NameSet = NameSet::from_texts(&[
    "annotations",
    "attributes",
    "capacity",
    "config",
    "consumedCapacity",
    "consumesCounters",
    "managedFields",
    "nodeSelector",
    "sharedCounters",
]);

/// Checks that the fields of an object that impact reads decode with the schema of its kind; returns its first error.
pub(super) fn check_schema_of_read_fields(
    kind: ApiKind,
    version: Version,
    value: Value<'_>,
) -> Result<(), UnreadableObject> {
    check_schema_without(&UNREAD_FIELDS, kind, version, value)
}

/// Checks that an object decodes with the schema of its kind, without the fields in `unread`; returns its first error.
pub fn check_schema_without(
    unread: &'static NameSet,
    kind: ApiKind,
    version: Version,
    value: Value<'_>,
) -> Result<(), UnreadableObject> {
    let schema =
        Schema { root: fields::root_struct(kind, version), version, fields: profile::DEFAULT.fields, unread };
    match decode_by_schema(value, schema).errors.into_iter().next() {
        None => Ok(()),
        Some(error) => Err(unreadable_object(kind.name(), value, error.at, &error.detail)),
    }
}

/// Creates the error for a field of an object, with the message `ResourceClaim ml/train: spec.devices: …`.
pub fn unreadable_object(kind: &str, object: Value<'_>, at: FieldPath, detail: &str) -> UnreadableObject {
    let metadata = ObjectMeta::of(object.get("metadata"));
    let slash = if metadata.namespace().is_empty() { "" } else { "/" };
    let (namespace, name) = (metadata.namespace(), metadata.name());
    let message = format!("{kind} {namespace}{slash}{name}: {}: {detail}", at.print(PathAudience::User));
    UnreadableObject { at, message }
}

/// Converts a taint to the record that the snapshot stores.
pub(super) fn taint_record(taint: view::Taint<'_>, names: &mut StringInterner) -> Taint {
    Taint {
        key: names.intern(taint.key()),
        value: names.intern(taint.value()),
        effect: names.intern(taint.effect()),
        added: taint.time_added(),
        rate: taint.evictions_per_second(),
        patch: None,
    }
}

/// Returns `metadata.name`, or `metadata.generateName` if the name is not generated yet.
pub(super) fn name_or_generate_name(metadata: ObjectMeta<'_>) -> &str {
    if metadata.name().is_empty() { metadata.generate_name() } else { metadata.name() }
}

/// Converts a DeviceTaintRule to the record that the snapshot stores.
pub(super) fn rule_record(rule: view::TaintRule<'_>, names: &mut StringInterner) -> Rule {
    let name = name_or_generate_name(rule.metadata());
    let selector = rule.spec().device_selector().map(|selector| RuleSelector {
        driver: selector.driver().map(|text| names.intern(text)),
        pool: selector.pool().map(|text| names.intern(text)),
        device: selector.device().map(|text| names.intern(text)),
        by_class: class_selection(selector, names),
    });
    Rule {
        name: names.intern(name),
        selector,
        taint: taint_record(rule.spec().taint(), names),
        expires: rule_annotations::expiry_time(rule.metadata()),
        has_owner: rule_annotations::non_blank_annotation(rule.metadata(), rule_annotations::OWNER).is_some(),
    }
}

/// Reads the class and the expressions that a selector also selects by.
fn class_selection(selector: view::TaintSelector<'_>, names: &mut StringInterner) -> ClassSelection {
    if selector.device_class_name().is_none() && selector.selectors().is_empty() {
        return ClassSelection::No;
    }
    let class = selector.device_class_name().map(|name| names.intern(name));
    ClassSelection::Yes(Arc::new(ClassCriteria { class, expressions: cel_expressions(selector.selectors()) }))
}

/// Returns the CEL expressions of selectors. A selector without one selects everything.
// upstream v1.34 Tracker.applyPatches
pub(super) fn cel_expressions(selectors: List<'_, view::Selector<'_>>) -> Box<[Box<str>]> {
    selectors.iter().filter_map(|selector| Some(selector.cel()?.expression().into())).collect()
}

/// Converts a ResourceSlice to the record that the snapshot stores, without details of its devices. `now`
/// becomes the time of taints that have none, for a slice that is not stored yet.
pub(super) fn slice_record(
    slice: view::Slice<'_>,
    version: Version,
    now: Option<Timestamp>,
    names: &mut StringInterner,
) -> Slice {
    let spec = slice.spec();
    let timed_taint = |entry: view::Taint<'_>, names: &mut StringInterner| {
        let taint = taint_record(entry, names);
        Taint { added: taint.added.or(now), ..taint }
    };
    let mut devices: Vec<Device> = Vec::with_capacity(spec.devices().len());
    for device in spec.devices().iter() {
        let taints = device.body(version).taints();
        let taints =
            taints.iter().map(|entry| timed_taint(entry, names)).filter(Taint::is_no_execute).collect();
        devices.push(Device { name: names.intern(device.name()), taints });
    }
    // Stable: of two devices of one name the first is found, as the controller finds it.
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    let taints: Box<[(InternedStr, Taint)]> = spec
        .taints()
        .iter()
        .map(|entry| (names.intern(entry.device()), timed_taint(entry.nested_or_inlined_taint(), names)))
        .filter(|(_, taint)| taint.is_no_execute())
        .collect();
    Slice {
        bytes: 0,
        name: names.intern(name_or_generate_name(slice.metadata())),
        driver: names.intern(spec.driver()),
        pool: names.intern(spec.pool().name()),
        generation: spec.pool().generation(),
        tainted: !taints.is_empty() || devices.iter().any(|device| !device.taints.is_empty()),
        devices: devices.into(),
        placement: SlicePlacement::from_slice(spec, version, names),
        taints,
        bodies: None,
        consumption: Box::default(),
        counter_sets: Box::default(),
    }
}

/// Replaces the taints of a slice's devices with the taints after all patches, including those that may
/// apply.
pub(super) fn set_patched_taints(
    slice: &mut Slice,
    patched: &[PatchedDevice<'_>],
    now: Option<Timestamp>,
    names: &mut StringInterner,
) {
    if patched.is_empty() {
        return;
    }
    for (index, device) in slice.devices.iter_mut().enumerate() {
        let Some(result) = patched.iter().find(|patched| *patched.device == *device.name) else { continue };
        let is_tainted = result.taints.iter().any(|applied| is_blocking_effect(applied.taint.effect()));
        let first = slice.consumption.partition_point(|consumption| consumption.device < index);
        let own =
            slice.consumption.iter_mut().skip(first).take_while(|consumption| consumption.device == index);
        own.for_each(|consumption| consumption.is_tainted = is_tainted);
        let taints = result.possible_taints().map(|applied| {
            let taint = taint_record(applied.taint, names);
            Taint { added: taint.added.or(now), patch: applied.patch().map(Arc::new), ..taint }
        });
        device.taints = taints.filter(Taint::is_no_execute).collect();
    }
    slice.tainted = slice.devices.iter().any(|device| !device.taints.is_empty()) || !slice.taints.is_empty();
}

/// Converts a ResourceClaim to the record that the snapshot stores.
pub(super) fn claim_record(claim: view::Claim<'_>, version: Version, names: &mut StringInterner) -> Claim {
    let owner = controlling_owner(claim.metadata()).map(|owner| ClaimUser {
        uid: owner.uid().into(),
        pod_group: (owner.kind() == "PodGroup").then(|| names.intern(owner.name())),
    });
    let allocation = claim.status().allocation();
    let selector = allocation.and_then(view::Allocation::node_selector);
    let node = only_node_of_allocation(selector, names);
    let results = allocation.map(|allocation| {
        collect_boxed(allocation.devices().results(), |result| {
            let copied = result.tolerations();
            let requested = requested_tolerations(claim.spec(), version, result.request());
            let differs = requested.filter(|list| !has_same_tolerations(*list, copied));
            AllocatedDevice {
                driver: names.intern(result.driver()),
                pool: names.intern(result.pool()),
                device: names.intern(result.device()),
                pool_slot: Slot::default(),
                requested: differs.map(|list| interned_tolerations(list, names)),
                copied: interned_tolerations(copied, names),
            }
        })
    });
    let reserved = collect_boxed(claim.status().reserved_for(), |consumer| ClaimUser {
        uid: consumer.uid().into(),
        pod_group: (consumer.resource() == "podgroups").then(|| names.intern(consumer.name())),
    });
    Claim { bytes: 0, owner, node, results, reserved }
}

/// Converts each item of a list with `record`, in one allocation.
fn collect_boxed<'d, T: view::View<'d>, R>(list: List<'d, T>, record: impl FnMut(T) -> R) -> Box<[R]> {
    let mut records = Vec::with_capacity(list.len());
    records.extend(list.iter().map(record));
    records.into()
}

/// Converts a list of tolerations; equal lists share one record.
fn interned_tolerations(list: List<'_, view::Toleration<'_>>, names: &mut StringInterner) -> Tolerations {
    // Most claims have none.
    if list.is_empty() {
        return Tolerations::default();
    }
    let written = list.value().unchanged_source_json_or_empty();
    if let Some(record) = names.tolerations.get(written) {
        return record;
    }
    let record = |toleration: view::Toleration<'_>| Toleration {
        key: names.intern(toleration.key()),
        operator: names.intern(toleration.operator()),
        value: names.intern(toleration.value()),
        effect: names.intern(toleration.effect()),
        seconds: toleration.toleration_seconds(),
    };
    let record = collect_boxed(list, record).into();
    names.tolerations.insert(written, &record);
    record
}

/// True if both lists have the same tolerations in the same order.
fn has_same_tolerations<'d>(
    one: List<'d, view::Toleration<'d>>,
    other: List<'d, view::Toleration<'d>>,
) -> bool {
    one.value().has_equal_bytes_in_same_json_source(other.value())
        || one.iter().map(toleration_fields).eq(other.iter().map(toleration_fields))
}

/// Returns key, operator, value, effect and seconds of a toleration, for comparing.
fn toleration_fields(toleration: view::Toleration<'_>) -> ([&str; 4], Option<i64>) {
    let texts = [toleration.key(), toleration.operator(), toleration.value(), toleration.effect()];
    (texts, toleration.toleration_seconds())
}

/// Returns the tolerations of the request (`NAME`) or sub-request (`NAME/SUB`) that an allocation result is for; `None`
/// if the claim has no such request.
fn requested_tolerations<'d>(
    spec: view::ClaimSpec<'d>,
    version: Version,
    name: &str,
) -> Option<List<'d, view::Toleration<'d>>> {
    let (name, sub) = name.split_once('/').map_or((name, None), |(name, sub)| (name, Some(sub)));
    let request = spec.devices().requests().iter().find(|request| request.name() == name)?;
    match sub {
        None => request.exactly(version).map(view::RequestBody::tolerations),
        Some(sub) => {
            let found = request.first_available().iter().find(|candidate| candidate.name() == sub)?;
            Some(found.body().tolerations())
        }
    }
}

/// Returns the owner reference with `controller: true`, if there is one.
fn controlling_owner(metadata: ObjectMeta<'_>) -> Option<view::OwnerReference<'_>> {
    metadata.owner_references().iter().find(|owner| owner.controller() == Some(true))
}

/// Returns the claims that a pod uses: the name of each, and how the pod refers to it.
pub(super) fn claim_references<'d>(pod: view::Pod<'d>) -> impl Iterator<Item = (&'d str, ClaimSource)> {
    let (spec, status) = (pod.spec(), pod.status());
    let listed = spec.resource_claims().iter().filter_map(move |claim: view::PodResourceClaim<'d>| {
        let record = || {
            let mut statuses = status.resource_claim_statuses().iter();
            let record = statuses.find(|status: &view::PodClaimStatus<'d>| status.name() == claim.name())?;
            record.resource_claim_name().map(|name| (name, ClaimSource::Template))
        };
        claim.resource_claim_name().map(|name| (name, ClaimSource::Name)).or_else(record)
    });
    let extended = status.extended_resource_claim_status().resource_claim_name();
    listed.chain((!extended.is_empty()).then_some((extended, ClaimSource::ExtendedResource)))
}

/// Converts a Pod that uses `claims` to the record that the snapshot stores.
pub(super) fn pod_record(
    pod: view::Pod<'_>,
    namespace: InternedStr,
    name: InternedStr,
    claims: Box<[ClaimReference]>,
    names: &mut StringInterner,
) -> Pod {
    let (metadata, spec) = (pod.metadata(), pod.spec());
    Pod {
        bytes: 0,
        namespace,
        name,
        uid: metadata.uid().into(),
        owner: controlling_owner(metadata)
            .map(|owner| names.intern(&format!("{}/{}", owner.kind(), owner.name()))),
        scheduled: !spec.node_name().is_empty(),
        deleting: !metadata.json().get("deletionTimestamp").is_null_or_absent(),
        protection: match (pod.is_evicted_despite_budgets(), pod.is_ready_or_unknown()) {
            (true, _) => BudgetProtection::None,
            (_, true) => BudgetProtection::Full,
            (_, false) => BudgetProtection::NotReady,
        },
        group: spec.scheduling_group().pod_group_name().map(|name| names.intern(name)),
        labels: interned_labels(metadata.labels(), names),
        claims,
    }
}

/// Converts a PodDisruptionBudget to the record that the snapshot stores.
pub(super) fn budget_record(budget: view::Budget<'_>, names: &mut StringInterner) -> Budget {
    let selector = read_selector(budget.spec().selector(), |text| names.intern(text));
    let name = names.intern(budget.metadata().name());
    // Without a status the disruption controller has not seen the budget yet and allows no eviction.
    let allowed = budget.status().disruptions_allowed();
    Budget { bytes: 0, name, selector, allowed, lets_unready_pods_go: budget.lets_unready_pods_go() }
}

/// Converts the labels of a pod, sorted by key; pods with the same labels share one record.
fn interned_labels(map: Value<'_>, names: &mut StringInterner) -> Arc<[(InternedStr, InternedStr)]> {
    let written = map.unchanged_source_json_or_empty();
    if let Some(record) = names.labels.get(written) {
        return record;
    }
    let members = map.members().filter(|(_, value)| value.kind() == Json::String);
    let mut pairs = Vec::with_capacity(map.len());
    pairs.extend(members.map(|(key, value)| (names.intern(key.text()), names.intern(value.text()))));
    pairs.sort_unstable();
    let record = pairs.into();
    names.labels.insert(written, &record);
    record
}
