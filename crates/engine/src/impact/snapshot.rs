//! The state of a cluster, as far as evictions depend on it: filled object by object, from a dump or from a watch.
//!
//! The indexes lead from a rule to the pods that it affects: driver → pool → device → allocated claims → pods. An
//! object replaces the one of the same name; removing what is not there changes nothing. Records are shared, so a clone
//! copies indexes but no strings: a watcher keeps one snapshot and hands out clones.
//!
//! Invariant: the indexes match the records, whatever the order in which objects came and went.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::details::DetailsToStore;
use super::interner::{InternedStr, StringInterner};
use super::kinds::{SnapshotKind, is_needed_kind_except_classic_dra, resource_group_version};
use super::other_apis::patches::PatchedDevice;
use super::read::{self, UnreadableObject};
use super::record::{Budget, Claim, ClaimReference, DeviceClass, Pod, Rule, Slice};
use super::slots::{Slot, SlotMap};
use super::{cost, details, shape};
use tollgate_api::profile::{ApiKind, Version};
use tollgate_api::view::{self, View as _};
use tollgate_document::doc::{Builder, Doc, FieldName, Syntax, Value};
use tollgate_document::field::Path;
use tollgate_formats::gotime::Timestamp;

const API_VERSION: FieldName = FieldName::from_text("apiVersion");
const KIND: FieldName = FieldName::from_text("kind");

/// The devices of one pool: those that slices list, and the claims that they are allocated to.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// The slices, sorted by name.
    slices: Vec<Arc<Slice>>,
    /// The newest generation of the slices.
    newest: Option<i64>,
    /// For each device, the slots of its claims, once for each allocation result.
    pub(super) allocated: BTreeMap<InternedStr, Vec<Slot>>,
}

impl Pool {
    /// Returns the slices of the newest generation; older ones are ignored, even if it is incomplete.
    pub(super) fn current_slices(&self) -> impl Iterator<Item = &Slice> {
        self.slices.iter().map(|slice| &**slice).filter(|slice| Some(slice.generation) == self.newest)
    }

    fn has_no_slices_or_allocations(&self) -> bool {
        self.slices.is_empty() && self.allocated.is_empty()
    }

    /// Sets the newest generation to that of the slices that are stored now.
    fn update_newest_generation(&mut self) {
        self.newest = self.slices.iter().map(|slice| slice.generation).max();
    }
}

/// A claim and the pods that use it. `record` is `None` if pods name a claim that is not stored yet, or no longer.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimEntry {
    pub(super) record: Option<Arc<Claim>>,
    /// Slots of the pods that use the claim.
    pub(super) pods: Vec<Slot>,
}

/// The pools of a driver, by name.
pub(super) type DriverPoolSlots = BTreeMap<InternedStr, Slot>;

/// The part of the cluster state that evictions depend on, with indexes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(super) names: StringInterner,
    /// The optional device data that the snapshot stores.
    pub(super) details: DetailsToStore,
    /// Bytes of memory that all objects count for (`cost`).
    pub(super) bytes: usize,
    pub(super) slices: HashMap<InternedStr, Arc<Slice>, RandomState>,
    pub(super) drivers: BTreeMap<InternedStr, DriverPoolSlots>,
    /// The pools, by driver and name.
    pub(super) pools: SlotMap<Pool>,
    pub(super) claims: SlotMap<ClaimEntry>,
    pub(super) pods: SlotMap<Option<Arc<Pod>>>,
    pub(super) rules: BTreeMap<InternedStr, Arc<Rule>>,
    pub(super) budgets: BTreeMap<InternedStr, BTreeMap<InternedStr, Arc<Budget>>>,
    pub(super) namespaces: BTreeMap<InternedStr, Arc<Doc<'static>>>,
    /// DeviceClasses, which are stored only together with the attributes of devices.
    pub(super) classes: BTreeMap<InternedStr, Arc<DeviceClass>>,
}

impl Snapshot {
    /// An empty snapshot that stores only names and taints of devices, without the attributes and counters that
    /// [`Snapshot::with_details`] can add.
    pub fn new() -> Snapshot {
        Snapshot::default()
    }

    /// An empty snapshot that also stores these details of devices.
    pub fn with_details(details: DetailsToStore) -> Snapshot {
        Snapshot { details, ..Snapshot::default() }
    }

    /// Sets which details of devices are stored; applies to slices that are stored from now on.
    pub fn set_details_to_store(&mut self, details: DetailsToStore) {
        self.details = details;
    }

    /// Stores an object, replacing the previous one, and returns its kind; `None` if that kind is not stored.
    pub fn apply(&mut self, object: Value<'_>) -> Result<Option<SnapshotKind>, UnreadableObject> {
        let (api_version, kind) = (object.field(API_VERSION), object.field(KIND));
        self.apply_as_type(api_version.str(), kind.str(), object)
    }

    /// Stores an object whose type the caller gives, because items of a list do not repeat theirs.
    pub fn apply_as_type(
        &mut self,
        api_version: &str,
        kind: &str,
        object: Value<'_>,
    ) -> Result<Option<SnapshotKind>, UnreadableObject> {
        let Some(kind) = SnapshotKind::from_type_meta(api_version, kind) else {
            return if is_needed_kind_except_classic_dra(api_version, kind) {
                let detail = format!("{api_version} is not supported");
                Err(read::unreadable_object(kind, object, Path::ROOT.field("apiVersion").owned(), &detail))
            } else {
                Ok(None)
            };
        };
        if kind == SnapshotKind::Class && !self.details.attributes {
            return Ok(None);
        }
        shape::check_field_types_if_no_schema(kind, object)?;
        let version = resource_group_version(api_version).unwrap_or(Version::V1);
        let before = self.names.added_bytes;
        match kind {
            SnapshotKind::Slice => {
                shape::check_required_metadata(kind, object)?;
                self.apply_slice(object, version, None, &[])?;
            }
            SnapshotKind::Claim => {
                read::check_schema_of_read_fields(ApiKind::ResourceClaim, version, object)?;
                shape::check_required_metadata(kind, object)?;
                let claim = view::Claim::of(object);
                let mut record = read::claim_record(claim, version, &mut self.names);
                let (namespace, name) = (claim.metadata().namespace(), claim.metadata().name());
                record.bytes = cost::claim_bytes(&record, name.len(), self.names.added_bytes - before);
                self.put_claim(namespace, name, record);
            }
            SnapshotKind::Pod => {
                let pod = view::Pod::of(object);
                // Most pods use no claim: they are not stored.
                if read::claim_references(pod).next().is_some() {
                    shape::check_required_metadata(kind, object)?;
                    self.put_pod(pod);
                } else {
                    self.remove_pod(pod.metadata().namespace(), pod.metadata().name());
                }
            }
            SnapshotKind::Rule => {
                read::check_schema_of_read_fields(ApiKind::DeviceTaintRule, version, object)?;
                shape::check_required_metadata(kind, object)?;
                let rule = read::rule_record(view::TaintRule::of(object), &mut self.names);
                self.put_rule(rule);
            }
            SnapshotKind::Budget => {
                shape::check_required_metadata(kind, object)?;
                let budget = view::Budget::of(object);
                let namespace = self.names.intern(budget.metadata().namespace());
                let mut record = read::budget_record(budget, &mut self.names);
                record.bytes = cost::budget_bytes(&record, self.names.added_bytes - before);
                self.remove(kind, &namespace, &record.name);
                self.bytes += record.bytes;
                self.budgets
                    .entry(namespace)
                    .or_default()
                    .insert(InternedStr::clone(&record.name), Arc::new(record));
            }
            SnapshotKind::Namespace => {
                shape::check_required_metadata(kind, object)?;
                let metadata = object.get("metadata");
                let labels = metadata.get("labels");
                let mut builder = Builder::with_exact_capacity("", Syntax::Json, labels.node_count());
                builder.copy(labels);
                let name = self.names.intern(metadata.get("name").str());
                let labels = builder.finish();
                self.remove(kind, "", &name);
                self.bytes += labels.memory_bytes_without_source();
                self.namespaces.insert(name, Arc::new(labels));
            }
            SnapshotKind::Class => {
                read::check_schema_of_read_fields(ApiKind::DeviceClass, version, object)?;
                shape::check_required_metadata(kind, object)?;
                let name = self.names.intern(object.get("metadata").get("name").str());
                let expressions = read::cel_expressions(view::Class::of(object).spec().selectors());
                let mut class = DeviceClass { bytes: 0, expressions };
                class.bytes = cost::class_bytes(&class, self.names.added_bytes - before);
                self.remove(kind, "", &name);
                self.bytes += class.bytes;
                self.classes.insert(name, Arc::new(class));
            }
        }
        Ok(Some(kind))
    }

    /// Removes an object, if it is stored; `namespace` is empty for kinds that have none.
    pub fn remove(&mut self, kind: SnapshotKind, namespace: &str, name: &str) {
        match kind {
            SnapshotKind::Slice => self.remove_slice(name),
            SnapshotKind::Claim => {
                // Its name stays as long as pods use it.
                if let Some(slot) = self.claims.find(namespace, name) {
                    self.remove_claim_record(slot);
                    self.drop_unused_claim(slot);
                }
            }
            SnapshotKind::Pod => self.remove_pod(namespace, name),
            SnapshotKind::Rule => {
                self.bytes -= self.rules.remove(name).map_or(0, |rule| cost::rule_bytes(&rule))
            }
            SnapshotKind::Budget => {
                if let Some(budgets) = self.budgets.get_mut(namespace) {
                    self.bytes -= budgets.remove(name).map_or(0, |budget| budget.bytes);
                    if budgets.is_empty() {
                        self.budgets.remove(namespace);
                    }
                }
            }
            SnapshotKind::Namespace => {
                self.bytes -=
                    self.namespaces.remove(name).map_or(0, |labels| labels.memory_bytes_without_source());
            }
            SnapshotKind::Class => self.bytes -= self.classes.remove(name).map_or(0, |class| class.bytes),
        }
    }

    /// Returns the number of devices that current slices list.
    pub fn device_count(&self) -> usize {
        let pools = self.pools.iter().map(|(_, _, _, pool)| pool);
        pools.flat_map(Pool::current_slices).map(|slice| slice.devices.len()).sum()
    }

    /// Returns the labels of a namespace; `None` if no such namespace is stored.
    pub fn namespace_labels(&self, namespace: &str) -> Option<Value<'_>> {
        self.namespaces.get(namespace).map(|labels| labels.root())
    }

    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.get(name).map(|rule| &**rule)
    }

    /// True if a stored rule selects devices by class or expression.
    pub fn has_class_or_expression_rules(&self) -> bool {
        self.rules().any(|rule| rule.class_criteria().is_some())
    }

    pub(super) fn slice(&self, name: &str) -> Option<&Slice> {
        self.slices.get(name).map(|slice| &**slice)
    }

    pub(super) fn pool_named(&self, driver: &str, pool: &str) -> Option<&Pool> {
        self.pools.get_even_if_free(self.pools.find(driver, pool)?)
    }

    /// Returns the claim in a slot, if it is stored.
    pub(super) fn claim_record(&self, claim: Slot) -> Option<&Claim> {
        self.claims.get_even_if_free(claim)?.record.as_deref()
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values().map(|rule| &**rule)
    }

    /// Returns the PodDisruptionBudgets in a namespace.
    pub(super) fn budgets(&self, namespace: &str) -> impl Iterator<Item = &Budget> {
        let budgets = self.budgets.get(namespace);
        budgets.into_iter().flat_map(BTreeMap::values).map(|budget| &**budget)
    }

    /// Stores a slice, replacing the previous one. `patched` are the taints that ResourceSlicePatches give its devices;
    /// taints without a time get `now`.
    pub(super) fn apply_slice(
        &mut self,
        object: Value<'_>,
        version: Version,
        now: Option<Timestamp>,
        patched: &[PatchedDevice<'_>],
    ) -> Result<(), UnreadableObject> {
        let has_details = self.details != DetailsToStore::default();
        let unread = if has_details { &details::UNREAD_DETAILED_FIELDS } else { &read::UNREAD_FIELDS };
        read::check_schema_without(unread, ApiKind::ResourceSlice, version, object)?;
        let before = self.names.added_bytes;
        let mut slice = read::slice_record(view::Slice::of(object), version, now, &mut self.names);
        details::add_details(
            &mut slice,
            self.details,
            view::Slice::of(object).spec(),
            version,
            &mut self.names,
        );
        read::set_patched_taints(&mut slice, patched, now, &mut self.names);
        slice.bytes = cost::slice_bytes(&slice, self.names.added_bytes - before);
        self.put_slice(slice);
        Ok(())
    }

    /// Stores the record of a slice, replacing the previous one, and updates the indexes.
    fn put_slice(&mut self, slice: Slice) {
        self.remove_slice(&slice.name);
        self.bytes += slice.bytes;
        let slice = Arc::new(slice);
        let slot = self.find_or_insert_pool(&slice.driver, &slice.pool);
        if let Some(pool) = self.pools.get_mut_even_if_free(slot) {
            let at = pool.slices.partition_point(|other| other.name < slice.name);
            pool.slices.insert(at, Arc::clone(&slice));
            pool.update_newest_generation();
        }
        self.slices.insert(InternedStr::clone(&slice.name), slice);
    }

    /// Removes a slice, if it is stored, from the records and the indexes.
    fn remove_slice(&mut self, name: &str) {
        let Some(slice) = self.slices.remove(name) else { return };
        self.bytes -= slice.bytes;
        self.update_pool_and_remove_if_empty(&slice.driver, &slice.pool, |pool| {
            pool.slices.retain(|other| other.name != slice.name);
            pool.update_newest_generation();
        });
    }

    /// Returns the slot of a pool, which is created if it is new.
    fn find_or_insert_pool(&mut self, driver: &InternedStr, pool: &InternedStr) -> Slot {
        if let Some(slot) = self.pools.find(driver, pool) {
            return slot;
        }
        let slot = self.pools.find_or_insert(driver, pool);
        self.drivers.entry(InternedStr::clone(driver)).or_default().insert(InternedStr::clone(pool), slot);
        slot
    }

    /// Changes a pool, if it is stored, and removes it if it is empty afterwards.
    fn update_pool_and_remove_if_empty(
        &mut self,
        driver: &InternedStr,
        name: &InternedStr,
        change: impl FnOnce(&mut Pool),
    ) {
        let Some(slot) = self.pools.find(driver, name) else { return };
        let Some(pool) = self.pools.get_mut_even_if_free(slot) else { return };
        change(pool);
        if !pool.has_no_slices_or_allocations() {
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

    /// Stores the record of a claim, replacing the previous one, and updates the indexes of devices.
    fn put_claim(&mut self, namespace: &str, name: &str, mut claim: Claim) {
        let namespace = self.names.intern(namespace);
        let slot = self.claims.find_or_insert(&namespace, name);
        self.remove_claim_record(slot);
        for result in claim.results.iter_mut().flatten() {
            result.pool_slot = self.find_or_insert_pool(&result.driver, &result.pool);
            if let Some(pool) = self.pools.get_mut_even_if_free(result.pool_slot) {
                pool.allocated.entry(InternedStr::clone(&result.device)).or_default().push(slot);
            }
        }
        if let Some(entry) = self.claims.get_mut_even_if_free(slot) {
            self.bytes += claim.bytes;
            entry.record = Some(Arc::new(claim));
        }
    }

    /// Removes the record of a claim, and the claim from the indexes of devices. Its name and its pods stay.
    fn remove_claim_record(&mut self, slot: Slot) {
        let Some(claim) = self.claims.get_mut_even_if_free(slot).and_then(|entry| entry.record.take()) else {
            return;
        };
        self.bytes -= claim.bytes;
        for result in claim.results.iter().flatten() {
            self.update_pool_and_remove_if_empty(&result.driver, &result.pool, |pool| {
                if let Some(claims) = pool.allocated.get_mut(&result.device) {
                    claims.retain(|other| *other != slot);
                    if claims.is_empty() {
                        pool.allocated.remove(&result.device);
                    }
                }
            });
        }
    }

    /// Removes the entry of a claim that is not stored and that no pod uses.
    fn drop_unused_claim(&mut self, slot: Slot) {
        let unused = self
            .claims
            .get_even_if_free(slot)
            .is_some_and(|entry| entry.record.is_none() && entry.pods.is_empty());
        if unused {
            self.claims.remove(slot);
        }
    }

    /// Stores a pod and links it to its claims.
    fn put_pod(&mut self, pod: view::Pod<'_>) {
        let added = self.names.added_bytes;
        let namespace = self.names.intern(pod.metadata().namespace());
        let slot = self.pods.find_or_insert(&namespace, pod.metadata().name());
        let before = self.pods.get_mut_even_if_free(slot).and_then(Option::take);
        let claims: Vec<ClaimReference> = read::claim_references(pod)
            .map(|(claim, source)| {
                let claim = self.claims.find_or_insert(&namespace, claim);
                if let Some(entry) = self.claims.get_mut_even_if_free(claim)
                    && !entry.pods.contains(&slot)
                {
                    entry.pods.push(slot);
                }
                ClaimReference { slot: claim, source }
            })
            .collect();
        // Claims that it no longer uses.
        let dropped = before.iter().flat_map(|before| before.claims.iter());
        for reference in dropped.filter(|old| !claims.iter().any(|new| new.slot == old.slot)) {
            self.unlink_pod(slot, reference.slot);
        }
        let Some((_, name)) = self.pods.key(slot) else { return };
        let mut record =
            read::pod_record(pod, namespace, InternedStr::clone(name), claims.into(), &mut self.names);
        record.bytes = cost::pod_bytes(&record, self.names.added_bytes - added);
        self.bytes -= before.map_or(0, |before| before.bytes);
        if let Some(entry) = self.pods.get_mut_even_if_free(slot) {
            self.bytes += record.bytes;
            *entry = Some(Arc::new(record));
        }
    }

    /// Removes a pod, if it is stored, and its links to claims.
    fn remove_pod(&mut self, namespace: &str, name: &str) {
        let Some(slot) = self.pods.find(namespace, name) else { return };
        let pod = self.pods.get_mut_even_if_free(slot).and_then(Option::take);
        self.bytes -= pod.as_ref().map_or(0, |pod| pod.bytes);
        for reference in pod.iter().flat_map(|pod| pod.claims.iter()) {
            self.unlink_pod(slot, reference.slot);
        }
        self.pods.remove(slot);
    }

    /// Removes a pod from the users of a claim.
    fn unlink_pod(&mut self, pod: Slot, claim: Slot) {
        if let Some(entry) = self.claims.get_mut_even_if_free(claim) {
            entry.pods.retain(|other| *other != pod);
        }
        self.drop_unused_claim(claim);
    }
}
