//! The state of a cluster, as far as evictions depend on it: filled object by object, from a dump or from a watch.
//!
//! Everything is indexed the way a rule is followed: driver → pool → device → allocated claims → pods. An object
//! replaces the one of the same name; removing what is not there changes nothing. Records are shared, so a clone
//! costs its indexes and no texts: a watcher keeps one snapshot to itself and hands out clones.
//!
//! Invariant: the indexes hold exactly what the records say, whatever the order in which objects came and went.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::names::{Name, Names};
use super::read::{self, Unreadable};
use super::record::{Budget, Claim, Pod, Reference, Rule, Slice};
use super::shape;
use super::slots::{Slot, Slots};
use crate::api::view::{self, View as _};
use crate::doc::{Builder, Doc, Name as Field, Syntax, Value};
use crate::field::Path;
use crate::gotime::Timestamp;
use crate::profile::{ApiKind, Version};

const API_VERSION: Field = Field::of("apiVersion");
const KIND: Field = Field::of("kind");

/// What a snapshot keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// ResourceSlice
    Slice,
    /// ResourceClaim
    Claim,
    /// Pod
    Pod,
    /// DeviceTaintRule
    Rule,
    /// PodDisruptionBudget
    Budget,
    /// Namespace
    Namespace,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] =
        [Kind::Slice, Kind::Claim, Kind::Pod, Kind::Rule, Kind::Budget, Kind::Namespace];

    /// `ResourceSlice`
    pub fn name(self) -> &'static str {
        match self {
            Kind::Slice => "ResourceSlice",
            Kind::Claim => "ResourceClaim",
            Kind::Pod => "Pod",
            Kind::Rule => "DeviceTaintRule",
            Kind::Budget => "PodDisruptionBudget",
            Kind::Namespace => "Namespace",
        }
    }

    /// The kind of an object that says it is `api_version` and `kind`; `None` if a snapshot does not keep those.
    pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
        match (api_version, kind) {
            ("v1", "Pod") => Some(Kind::Pod),
            ("v1", "Namespace") => Some(Kind::Namespace),
            ("policy/v1", "PodDisruptionBudget") => Some(Kind::Budget),
            _ => match (kind, version_of(api_version)?) {
                ("ResourceSlice", _) => Some(Kind::Slice),
                ("ResourceClaim", _) => Some(Kind::Claim),
                ("DeviceTaintRule", _) => Some(Kind::Rule),
                _ => None,
            },
        }
    }
}

/// One of the kinds of our group, in a version that no profile knows: to skip it would be a hole in the state. Those of
/// classic DRA have no devices that could be tainted.
fn is_newer_of_ours(api_version: &str, kind: &str) -> bool {
    api_version
        .strip_prefix("resource.k8s.io/")
        .is_some_and(|version| !matches!(version, "v1alpha1" | "v1alpha2"))
        && matches!(kind, "ResourceSlice" | "ResourceClaim" | "DeviceTaintRule")
}

pub(super) fn version_of(api_version: &str) -> Option<Version> {
    Version::parse(api_version.strip_prefix("resource.k8s.io/")?)
}

/// The devices of one pool: what slices list, and who was given them.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// Sorted by name.
    slices: Vec<Arc<Slice>>,
    newest: i64,
    /// Device → claims, one entry for each allocation result.
    allocated: BTreeMap<Name, Vec<Slot>>,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { slices: Vec::new(), newest: i64::MIN, allocated: BTreeMap::new() }
    }
}

impl Pool {
    /// The slices of the newest generation; older ones are out of date and ignored, complete or not.
    pub(super) fn current(&self) -> impl Iterator<Item = &Slice> {
        self.slices.iter().map(|slice| &**slice).filter(|slice| slice.generation == self.newest)
    }

    /// The allocated devices and the claims they were given to.
    pub(super) fn allocated(&self) -> &BTreeMap<Name, Vec<Slot>> {
        &self.allocated
    }

    fn is_empty(&self) -> bool {
        self.slices.is_empty() && self.allocated.is_empty()
    }

    fn settle(&mut self) {
        self.newest = self.slices.iter().map(|slice| slice.generation).max().unwrap_or(i64::MIN);
    }
}

/// A claim, or the name of one that a pod uses and nobody has seen yet.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimEntry {
    pub(super) record: Option<Arc<Claim>>,
    /// Pods that use it.
    pub(super) pods: Vec<Slot>,
}

/// The pools of a driver, by name.
pub(super) type Pools = BTreeMap<Name, Slot>;

/// The state of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    names: Names,
    slices: HashMap<Name, Arc<Slice>, RandomState>,
    drivers: BTreeMap<Name, Pools>,
    /// By driver and name.
    pools: Slots<Pool>,
    claims: Slots<ClaimEntry>,
    pods: Slots<Option<Arc<Pod>>>,
    rules: BTreeMap<Name, Arc<Rule>>,
    budgets: BTreeMap<Name, BTreeMap<Name, Arc<Budget>>>,
    namespaces: BTreeMap<Name, Arc<Doc<'static>>>,
}

impl Snapshot {
    /// Nothing known.
    pub fn new() -> Snapshot {
        Snapshot::default()
    }

    /// Keeps an object, instead of the one it replaces. `None`: not a kind that matters here.
    pub fn apply(&mut self, object: Value<'_>) -> Result<Option<Kind>, Unreadable> {
        let (api_version, kind) = (object.field(API_VERSION), object.field(KIND));
        self.apply_as(api_version.str(), kind.str(), object)
    }

    /// The same for an object whose type is known from elsewhere: items of a list do not repeat it.
    pub fn apply_as(
        &mut self,
        api_version: &str,
        kind: &str,
        object: Value<'_>,
    ) -> Result<Option<Kind>, Unreadable> {
        let Some(kind) = Kind::of(api_version, kind) else {
            return if is_newer_of_ours(api_version, kind) {
                let detail = format!("{api_version} is not known here");
                Err(read::unreadable(kind, object, Path::ROOT.field("apiVersion").owned(), &detail))
            } else {
                Ok(None)
            };
        };
        shape::check(kind, object)?;
        let version = version_of(api_version).unwrap_or(Version::V1);
        match kind {
            Kind::Slice => {
                shape::named(kind, object)?;
                self.apply_slice(object, version, None)?;
            }
            Kind::Claim => {
                read::check(ApiKind::ResourceClaim, version, object)?;
                shape::named(kind, object)?;
                let claim = view::Claim::of(object);
                let record = read::claim(claim, version, &mut self.names);
                self.put_claim(claim.metadata().namespace(), claim.metadata().name(), record);
            }
            Kind::Pod => {
                let pod = view::Pod::of(object);
                // Most pods use no claim: those cost nothing but the look.
                if read::references(pod).next().is_some() {
                    shape::named(kind, object)?;
                    self.put_pod(pod);
                } else {
                    self.remove_pod(pod.metadata().namespace(), pod.metadata().name());
                }
            }
            Kind::Rule => {
                read::check(ApiKind::DeviceTaintRule, version, object)?;
                shape::named(kind, object)?;
                let rule = read::rule(view::TaintRule::of(object), &mut self.names);
                self.rules.insert(Name::clone(&rule.name), Arc::new(rule));
            }
            Kind::Budget => {
                shape::named(kind, object)?;
                let budget = view::Budget::of(object);
                let namespace = self.names.name(budget.metadata().namespace());
                let record = read::budget(budget, &mut self.names);
                self.budgets
                    .entry(namespace)
                    .or_default()
                    .insert(Name::clone(&record.name), Arc::new(record));
            }
            Kind::Namespace => {
                shape::named(kind, object)?;
                let metadata = object.get("metadata");
                let labels = metadata.get("labels");
                let mut builder = Builder::to_keep("", Syntax::Json, labels.size());
                builder.copy(labels);
                let name = self.names.name(metadata.get("name").str());
                self.namespaces.insert(name, Arc::new(builder.finish()));
            }
        }
        Ok(Some(kind))
    }

    /// Forgets an object; `namespace` is empty for kinds that have none.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        match kind {
            Kind::Slice => self.remove_slice(name),
            Kind::Claim => self.remove_claim(namespace, name),
            Kind::Pod => self.remove_pod(namespace, name),
            Kind::Rule => _ = self.rules.remove(name),
            Kind::Budget => {
                if let Some(budgets) = self.budgets.get_mut(namespace) {
                    budgets.remove(name);
                    if budgets.is_empty() {
                        self.budgets.remove(namespace);
                    }
                }
            }
            Kind::Namespace => _ = self.namespaces.remove(name),
        }
    }

    /// Forgets every object of a kind that `keep` (namespace, name) does not name: what a new list no longer has.
    pub fn retain(&mut self, kind: Kind, mut keep: impl FnMut(&str, &str) -> bool) {
        let gone: Vec<(Name, Name)> =
            self.keys(kind).into_iter().filter(|(namespace, name)| !keep(namespace, name)).collect();
        for (namespace, name) in gone {
            self.remove(kind, &namespace, &name);
        }
    }

    /// Number of objects of a kind; of pods, those that use claims.
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Slice => self.slices.len(),
            Kind::Claim => self.claims.iter().filter(|(_, _, _, entry)| entry.record.is_some()).count(),
            Kind::Pod => self.pods.iter().filter(|(_, _, _, pod)| pod.is_some()).count(),
            Kind::Rule => self.rules.len(),
            Kind::Budget => self.budgets.values().map(BTreeMap::len).sum(),
            Kind::Namespace => self.namespaces.len(),
        }
    }

    /// Number of devices that current slices list.
    pub fn devices(&self) -> usize {
        let pools = self.pools.iter().map(|(_, _, _, pool)| pool);
        pools.flat_map(Pool::current).map(|slice| slice.devices.len()).sum()
    }

    /// The labels of a namespace; `None` if there is no such namespace.
    pub fn labels(&self, namespace: &str) -> Option<Value<'_>> {
        self.namespaces.get(namespace).map(|labels| labels.root())
    }

    /// The stored rule of that name.
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.get(name).map(|rule| &**rule)
    }

    pub(super) fn drivers(&self) -> &BTreeMap<Name, Pools> {
        &self.drivers
    }

    pub(super) fn slice(&self, name: &str) -> Option<&Slice> {
        self.slices.get(name).map(|slice| &**slice)
    }

    pub(super) fn pool(&self, slot: Slot) -> Option<&Pool> {
        self.pools.get(slot)
    }

    pub(super) fn pool_named(&self, driver: &str, pool: &str) -> Option<&Pool> {
        self.pools.get(self.pools.find(driver, pool)?)
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values().map(|rule| &**rule)
    }

    pub(super) fn claims(&self) -> &Slots<ClaimEntry> {
        &self.claims
    }

    pub(super) fn pods(&self) -> &Slots<Option<Arc<Pod>>> {
        &self.pods
    }

    pub(super) fn budgets(&self, namespace: &str) -> impl Iterator<Item = &Budget> {
        let budgets = self.budgets.get(namespace);
        budgets.into_iter().flat_map(BTreeMap::values).map(|budget| &**budget)
    }

    fn keys(&self, kind: Kind) -> Vec<(Name, Name)> {
        let none = Name::from("");
        let alone = |name: &Name| (Name::clone(&none), Name::clone(name));
        match kind {
            Kind::Slice => {
                let mut keys: Vec<(Name, Name)> = self.slices.keys().map(alone).collect();
                keys.sort();
                keys
            }
            Kind::Claim => {
                let known = self.claims.iter().filter(|(_, _, _, entry)| entry.record.is_some());
                known.map(|(namespace, name, _, _)| (Name::clone(namespace), Name::clone(name))).collect()
            }
            Kind::Pod => {
                let pods = self.pods.iter();
                pods.map(|(namespace, name, _, _)| (Name::clone(namespace), Name::clone(name))).collect()
            }
            Kind::Rule => self.rules.keys().map(alone).collect(),
            Kind::Budget => {
                let each = self.budgets.iter().flat_map(|(namespace, budgets)| {
                    budgets.keys().map(|name| (Name::clone(namespace), Name::clone(name)))
                });
                each.collect()
            }
            Kind::Namespace => self.namespaces.keys().map(alone).collect(),
        }
    }

    /// Keeps a slice; `now` is the time of taints that have none yet.
    pub(super) fn apply_slice(
        &mut self,
        object: Value<'_>,
        version: Version,
        now: Option<Timestamp>,
    ) -> Result<(), Unreadable> {
        read::check(ApiKind::ResourceSlice, version, object)?;
        let slice = read::slice(view::Slice::of(object), version, now, &mut self.names);
        self.put_slice(slice);
        Ok(())
    }

    fn put_slice(&mut self, slice: Slice) {
        self.remove_slice(&slice.name);
        let slice = Arc::new(slice);
        let place = self.place(&slice.driver, &slice.pool);
        if let Some(pool) = self.pools.get_mut(place) {
            let at = pool.slices.partition_point(|other| other.name < slice.name);
            pool.slices.insert(at, Arc::clone(&slice));
            pool.settle();
        }
        self.slices.insert(Name::clone(&slice.name), slice);
    }

    fn remove_slice(&mut self, name: &str) {
        let Some(slice) = self.slices.remove(name) else { return };
        self.in_pool(&slice.driver, &slice.pool, |pool| {
            pool.slices.retain(|other| other.name != slice.name);
            pool.settle();
        });
    }

    /// The number of a pool, which is made if it is new.
    fn place(&mut self, driver: &Name, pool: &Name) -> Slot {
        if let Some(slot) = self.pools.find(driver, pool) {
            return slot;
        }
        let slot = self.pools.slot(driver, pool);
        self.drivers.entry(Name::clone(driver)).or_default().insert(Name::clone(pool), slot);
        slot
    }

    /// Changes a pool and drops it if nothing is left of it.
    fn in_pool(&mut self, driver: &Name, name: &Name, change: impl FnOnce(&mut Pool)) {
        let Some(slot) = self.pools.find(driver, name) else { return };
        let Some(pool) = self.pools.get_mut(slot) else { return };
        change(pool);
        if !pool.is_empty() {
            return;
        }
        self.pools.remove(slot);
        if let Some(pools) = self.drivers.get_mut(driver) {
            pools.remove(name);
            if pools.is_empty() {
                self.drivers.remove(driver);
            }
        }
    }

    fn put_claim(&mut self, namespace: &str, name: &str, mut claim: Claim) {
        let namespace = self.names.name(namespace);
        let slot = self.claims.slot(&namespace, name);
        self.forget_allocation(slot);
        for result in claim.results.iter_mut().flatten() {
            result.place = self.place(&result.driver, &result.pool);
            if let Some(pool) = self.pools.get_mut(result.place) {
                pool.allocated.entry(Name::clone(&result.device)).or_default().push(slot);
            }
        }
        if let Some(entry) = self.claims.get_mut(slot) {
            entry.record = Some(Arc::new(claim));
        }
    }

    fn remove_claim(&mut self, namespace: &str, name: &str) {
        let Some(slot) = self.claims.find(namespace, name) else { return };
        self.forget_allocation(slot);
        self.drop_unused_claim(slot);
    }

    /// Takes the record of a claim, and the claim out of the indexes of devices.
    fn forget_allocation(&mut self, slot: Slot) {
        let Some(claim) = self.claims.get_mut(slot).and_then(|entry| entry.record.take()) else { return };
        for result in claim.results.iter().flatten() {
            self.in_pool(&result.driver, &result.pool, |pool| {
                if let Some(claims) = pool.allocated.get_mut(&result.device) {
                    claims.retain(|other| *other != slot);
                    if claims.is_empty() {
                        pool.allocated.remove(&result.device);
                    }
                }
            });
        }
    }

    fn drop_unused_claim(&mut self, slot: Slot) {
        let unused =
            self.claims.get(slot).is_some_and(|entry| entry.record.is_none() && entry.pods.is_empty());
        if unused {
            self.claims.remove(slot);
        }
    }

    fn put_pod(&mut self, pod: view::Pod<'_>) {
        let namespace = self.names.name(pod.metadata().namespace());
        let slot = self.pods.slot(&namespace, pod.metadata().name());
        let before = self.pods.get_mut(slot).and_then(Option::take);
        let claims: Vec<Reference> = read::references(pod)
            .map(|(claim, by)| {
                let claim = self.claims.slot(&namespace, claim);
                if let Some(entry) = self.claims.get_mut(claim)
                    && !entry.pods.contains(&slot)
                {
                    entry.pods.push(slot);
                }
                Reference { slot: claim, by }
            })
            .collect();
        // What it used before and does not use any more.
        let dropped = before.iter().flat_map(|before| before.claims.iter());
        for reference in dropped.filter(|old| !claims.iter().any(|new| new.slot == old.slot)) {
            self.unlink(slot, reference.slot);
        }
        let Some((_, name)) = self.pods.key(slot) else { return };
        let record = read::pod(pod, namespace, Name::clone(name), claims.into(), &mut self.names);
        if let Some(entry) = self.pods.get_mut(slot) {
            *entry = Some(Arc::new(record));
        }
    }

    fn remove_pod(&mut self, namespace: &str, name: &str) {
        let Some(slot) = self.pods.find(namespace, name) else { return };
        let pod = self.pods.get_mut(slot).and_then(Option::take);
        for reference in pod.iter().flat_map(|pod| pod.claims.iter()) {
            self.unlink(slot, reference.slot);
        }
        self.pods.remove(slot);
    }

    /// Takes a pod out of the users of a claim.
    fn unlink(&mut self, pod: Slot, claim: Slot) {
        if let Some(entry) = self.claims.get_mut(claim) {
            entry.pods.retain(|other| *other != pod);
        }
        self.drop_unused_claim(claim);
    }
}
