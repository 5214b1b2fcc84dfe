//! Objects into records: the one place that reads views for the snapshot, whatever they came from.
//!
//! A dump and a watch go the same way. An object of ours that does not decode is an error and never an empty record:
//! "nothing is affected" must not be the answer to a file nobody could read.

use std::sync::Arc;

use super::names::{Name, Names};
use super::record::{
    Allocated, Budget, By, ByClass, Claim, Device, Expression, Labels, Owner, Pod, Reference, Reservation,
    Rule, Selector, Slice, Taint, Toleration, Tolerations,
};
use super::slots::Slot;
use crate::api::conform::{Schema, conform};
use crate::api::fields;
use crate::api::view::{self, List, ObjectMeta, View as _};
use crate::doc::{Kind as Json, NameSet, Value};
use crate::field::{FieldPath, Reader};
use crate::gotime::Timestamp;
use crate::profile::{self, ApiKind, Version};

/// An object that cannot be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreadable {
    /// Where in the object.
    pub at: FieldPath,
    /// `ResourceClaim ml/train: spec.devices: …`
    pub message: String,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Unreadable {}

/// Most of an object, and nothing that impact looks at.
static UNREAD: NameSet = NameSet::of(&[
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

/// Holds an object of ours against its schema.
pub(super) fn check(kind: ApiKind, version: Version, value: Value<'_>) -> Result<(), Unreadable> {
    let schema = Schema {
        root: fields::root(kind, version),
        version,
        fields: profile::DEFAULT.fields,
        unread: &UNREAD,
    };
    match conform(value, schema).errors.into_iter().next() {
        None => Ok(()),
        Some(error) => Err(unreadable(kind.name(), value, error.at, &error.detail)),
    }
}

/// `ResourceClaim ml/train: spec.devices: …`
pub(super) fn unreadable(kind: &str, object: Value<'_>, at: FieldPath, detail: &str) -> Unreadable {
    let metadata = ObjectMeta::of(object.get("metadata"));
    let slash = if metadata.namespace().is_empty() { "" } else { "/" };
    let (namespace, name) = (metadata.namespace(), metadata.name());
    let message = format!("{kind} {namespace}{slash}{name}: {}: {detail}", at.print(Reader::User));
    Unreadable { at, message }
}

/// A taint as it will be stored.
pub(super) fn taint(taint: view::Taint<'_>, names: &mut Names) -> Taint {
    Taint {
        key: names.name(taint.key()),
        value: names.name(taint.value()),
        effect: names.name(taint.effect()),
        added: taint.time_added(),
        rate: taint.evictions_per_second(),
    }
}

/// The name of an object, or its beginning if the rest is still to be made up.
pub(super) fn name_of(metadata: ObjectMeta<'_>) -> &str {
    if metadata.name().is_empty() { metadata.generate_name() } else { metadata.name() }
}

/// A rule.
pub(super) fn rule(rule: view::TaintRule<'_>, names: &mut Names) -> Rule {
    let name = name_of(rule.metadata());
    let selector = rule.spec().device_selector().map(|selector| Selector {
        driver: selector.driver().map(|text| names.name(text)),
        pool: selector.pool().map(|text| names.name(text)),
        device: selector.device().map(|text| names.name(text)),
        by_class: if selector.device_class_name().is_none() && selector.selectors().is_empty() {
            ByClass::No
        } else {
            ByClass::Yes
        },
    });
    Rule { name: names.name(name), selector, taint: taint(rule.spec().taint(), names) }
}

/// A slice; `now` is the time of taints that have none, for a slice that is not stored yet.
pub(super) fn slice(
    slice: view::Slice<'_>,
    version: Version,
    now: Option<Timestamp>,
    names: &mut Names,
) -> Slice {
    let spec = slice.spec();
    let taint = |entry: view::Taint<'_>, names: &mut Names| {
        let taint = taint(entry, names);
        Taint { added: taint.added.or(now), ..taint }
    };
    let mut devices: Vec<Device> = Vec::with_capacity(spec.devices().len());
    for device in spec.devices().iter() {
        let taints = device.body(version).taints();
        let taints = taints.iter().map(|entry| taint(entry, names)).filter(Taint::evicts).collect();
        devices.push(Device { name: names.name(device.name()), taints });
    }
    // Stable: of two devices of one name the first is found, as the controller finds it.
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    let taints: Box<[(Name, Taint)]> = spec
        .taints()
        .iter()
        .map(|entry| (names.name(entry.device()), taint(entry.taint(), names)))
        .filter(|(_, taint)| taint.evicts())
        .collect();
    Slice {
        name: names.name(name_of(slice.metadata())),
        driver: names.name(spec.driver()),
        pool: names.name(spec.pool().name()),
        generation: spec.pool().generation(),
        tainted: !taints.is_empty() || devices.iter().any(|device| !device.taints.is_empty()),
        devices: devices.into(),
        taints,
    }
}

/// A claim.
pub(super) fn claim(claim: view::Claim<'_>, version: Version, names: &mut Names) -> Claim {
    let owner = controller(claim.metadata()).map(|owner| Owner {
        uid: owner.uid().into(),
        pod_group: (owner.kind() == "PodGroup").then(|| names.name(owner.name())),
    });
    let results = claim.status().allocation().map(|allocation| {
        boxed(allocation.devices().results(), |result| {
            let copied = result.tolerations();
            let requested = requested(claim.spec(), version, result.request());
            let differs = requested.filter(|list| !is_copy(*list, copied));
            Allocated {
                driver: names.name(result.driver()),
                pool: names.name(result.pool()),
                device: names.name(result.device()),
                place: Slot::default(),
                requested: differs.map(|list| tolerations(list, names)),
                tolerations: tolerations(copied, names),
            }
        })
    });
    let reserved = boxed(claim.status().reserved_for(), |consumer| Reservation {
        uid: consumer.uid().into(),
        pod_group: (consumer.resource() == "podgroups").then(|| names.name(consumer.name())),
    });
    Claim { owner, results, reserved }
}

/// A record of each item, in one allocation.
fn boxed<'d, T: view::View<'d>, R>(list: List<'d, T>, record: impl FnMut(T) -> R) -> Box<[R]> {
    let mut records = Vec::with_capacity(list.len());
    records.extend(list.iter().map(record));
    records.into()
}

fn tolerations(list: List<'_, view::Toleration<'_>>, names: &mut Names) -> Tolerations {
    // Most claims have none.
    if list.is_empty() {
        return Tolerations::default();
    }
    let written = list.value().written();
    if let Some(made) = names.tolerations.made_from(written) {
        return made;
    }
    let record = |toleration: view::Toleration<'_>| Toleration {
        key: names.name(toleration.key()),
        operator: names.name(toleration.operator()),
        value: names.name(toleration.value()),
        effect: names.name(toleration.effect()),
        seconds: toleration.toleration_seconds(),
    };
    let made = boxed(list, record).into();
    names.tolerations.keep(written, &made);
    made
}

/// True if the second list says the same as the first.
fn is_copy<'d>(one: List<'d, view::Toleration<'d>>, other: List<'d, view::Toleration<'d>>) -> bool {
    one.value().is_written_as(other.value()) || one.iter().map(said).eq(other.iter().map(said))
}

fn said(toleration: view::Toleration<'_>) -> ([&str; 4], Option<i64>) {
    let texts = [toleration.key(), toleration.operator(), toleration.value(), toleration.effect()];
    (texts, toleration.toleration_seconds())
}

/// The tolerations of the request, or sub-request, that a result is for.
fn requested<'d>(
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

fn controller(metadata: ObjectMeta<'_>) -> Option<view::OwnerReference<'_>> {
    metadata.owner_references().iter().find(|owner| owner.controller() == Some(true))
}

/// The claims that a pod uses, by name, and how it came to them.
///
/// upstream v1.36 `resourceclaim.Name`
pub(super) fn references<'d>(pod: view::Pod<'d>) -> impl Iterator<Item = (&'d str, By)> {
    let (spec, status) = (pod.spec(), pod.status());
    let listed = spec.resource_claims().iter().filter_map(move |claim: view::PodResourceClaim<'d>| {
        let made = || {
            let mut statuses = status.resource_claim_statuses().iter();
            let made = statuses.find(|status: &view::PodClaimStatus<'d>| status.name() == claim.name())?;
            made.resource_claim_name().map(|name| (name, By::Template))
        };
        claim.resource_claim_name().map(|name| (name, By::Name)).or_else(made)
    });
    let extended = status.extended_resource_claim_status().resource_claim_name();
    listed.chain((!extended.is_empty()).then_some((extended, By::ExtendedResource)))
}

/// A pod that uses `claims`.
pub(super) fn pod(
    pod: view::Pod<'_>,
    namespace: Name,
    name: Name,
    claims: Box<[Reference]>,
    names: &mut Names,
) -> Pod {
    let (metadata, spec) = (pod.metadata(), pod.spec());
    Pod {
        namespace,
        name,
        uid: metadata.uid().into(),
        owner: controller(metadata).map(|owner| names.joined([owner.kind(), "/", owner.name()])),
        scheduled: !spec.node_name().is_empty(),
        deleting: !metadata.value().get("deletionTimestamp").is_null(),
        group: spec.scheduling_group().pod_group_name().map(|name| names.name(name)),
        labels: labels(metadata.labels(), names),
        claims,
    }
}

/// A budget.
pub(super) fn budget(budget: view::Budget<'_>, names: &mut Names) -> Budget {
    let selector = budget.spec().selector().map(|selector| Labels {
        equal: pairs(selector.match_labels(), names),
        expressions: selector
            .match_expressions()
            .iter()
            .map(|expression| Expression {
                key: names.name(expression.key()),
                operator: names.name(expression.operator()),
                values: expression.values().iter().map(|value| names.name(value)).collect(),
            })
            .collect(),
    });
    let name = names.name(budget.metadata().name());
    // Without a status the budget's controller has not looked at it yet, and no eviction would be let through.
    Budget { name, selector, allowed: budget.status().disruptions_allowed() }
}

/// The labels of a pod, which are those of its controller's other pods.
fn labels(map: Value<'_>, names: &mut Names) -> Arc<[(Name, Name)]> {
    let written = map.written();
    if let Some(made) = names.labels.made_from(written) {
        return made;
    }
    let made = pairs(map, names).into();
    names.labels.keep(written, &made);
    made
}

fn pairs(map: Value<'_>, names: &mut Names) -> Box<[(Name, Name)]> {
    let members = map.members().filter(|(_, value)| value.kind() == Json::String);
    let mut pairs = Vec::with_capacity(map.len());
    pairs.extend(members.map(|(key, value)| (names.name(key.text()), names.name(value.text()))));
    pairs.sort_unstable();
    pairs.into()
}
