//! The objects in effect between two changes (an era): slices with the taints of rules, classes, templates, nodes.
//!
//! The steps are the same in all simulated runs, so everything that depends only on them is computed once and shared.
//! A kind without changes is not computed again.

#![allow(clippy::indexing_slicing, reason = "the indices of eras are places in their lists")]

use crate::device_features::{UnmodelledDevice, unmodelled_devices};
use crate::nodes::{Nodes, PodCatalog, ResourcesDelegatedToDevices};
use crate::plan::SimulatedRelease;
use crate::state::{ObjectKind, Objects, State, StoredObject};
use crate::tables::{NumberedClaimSpec, PodAndClaimTables};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_allocator::{Classes, DeviceUsage, Inventory};
use tollgate_api::view::{Class, Slice, TaintRule, Template, View as _};
use tollgate_document::doc::Value;
use tollgate_engine::impact::{ProposedChange, Snapshot};
use tollgate_formats::gotime::Timestamp;

/// The era of each kind of object at one time, as indices in [`Eras`]. An era is the time between two changes of
/// objects of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct EraIndexOfEachKind {
    pub(crate) devices: usize,
    pub(crate) classes: usize,
    pub(crate) templates: usize,
    pub(crate) nodes: usize,
}

/// All versions of the devices, classes, templates and nodes that are in effect at some time.
#[derive(Default, Debug)]
pub(crate) struct Eras<'d> {
    pub(crate) devices: Vec<DevicesInEra<'d>>,
    pub(crate) classes: Vec<DeviceClassesInEra<'d>>,
    templates: Vec<TemplatesInEra<'d>>,
    pub(crate) nodes: Vec<Nodes<'d>>,
    /// Device eras in which slices of a pool disagree on the number of slices, each mapped to the era with
    /// these slices in reverse order. The scheduler uses the slice listed first, and its order is random.
    pub(crate) reversed_slices: HashMap<usize, usize, RandomState>,
}

/// The specs of the ResourceClaimTemplates during an era, by namespace and name.
type TemplatesInEra<'d> = HashMap<(&'d str, &'d str), NumberedClaimSpec<'d>, RandomState>;

/// The devices with their taints during an era.
#[derive(Debug)]
pub(crate) struct DevicesInEra<'d> {
    pub(crate) inventory: Inventory<'d>,
    /// The devices held by the claims of the initial state.
    pub(crate) usage: DeviceUsage<'d>,
    /// The devices whose allocation depends on features that are not simulated.
    pub(crate) unmodelled: Vec<UnmodelledDevice<'d>>,
    /// Slices and rules as the device taint eviction controller sees them.
    pub(crate) taints: Snapshot,
}

/// The DeviceClasses that are in effect during an era.
#[derive(Debug)]
pub(crate) struct DeviceClassesInEra<'d> {
    pub(crate) classes: Classes<'d>,
    /// Class names by the extended resource that they provide.
    pub(crate) by_resource: HashMap<String, &'d str, RandomState>,
    pub(crate) delegated: ResourcesDelegatedToDevices,
}

impl<'d> Eras<'d> {
    pub(crate) fn devices_in(&self, era: EraIndexOfEachKind) -> &DevicesInEra<'d> {
        &self.devices[era.devices]
    }

    pub(crate) fn classes_in(&self, era: EraIndexOfEachKind) -> &DeviceClassesInEra<'d> {
        &self.classes[era.classes]
    }

    pub(crate) fn templates_in(&self, era: EraIndexOfEachKind) -> &TemplatesInEra<'d> {
        &self.templates[era.templates]
    }

    pub(crate) fn nodes_in(&self, era: EraIndexOfEachKind) -> &Nodes<'d> {
        &self.nodes[era.nodes]
    }

    /// Starts a new era with this state. Only the kinds of objects in `changed` are read again.
    pub(crate) fn begin_era(
        &mut self,
        before: EraIndexOfEachKind,
        changed: &[ObjectKind],
        state: &State<'d>,
        taints: &Snapshot,
        release: &SimulatedRelease,
        (tables, catalog): (&mut PodAndClaimTables<'d>, &mut PodCatalog<'d>),
    ) -> EraIndexOfEachKind {
        let mut era = before;
        if changed.contains(&ObjectKind::ResourceSlice) || changed.contains(&ObjectKind::DeviceTaintRule) {
            let mut slices: Vec<StoredObject<'d>> =
                state.objects_of_kind(ObjectKind::ResourceSlice).iter().collect();
            let rules: Vec<StoredObject<'d>> =
                state.objects_of_kind(ObjectKind::DeviceTaintRule).iter().collect();
            self.devices.push(DevicesInEra::new(&slices, &rules, taints, release, tables));
            era.devices = self.devices.len() - 1;
            if slices_of_same_pool_disagree_on_count(&slices) {
                slices.reverse();
                self.devices.push(DevicesInEra::new(&slices, &rules, taints, release, tables));
                self.reversed_slices.insert(era.devices, era.devices + 1);
            }
        }
        if changed.contains(&ObjectKind::DeviceClass) {
            let objects = state.objects_of_kind(ObjectKind::DeviceClass);
            let classes = objects.iter().map(|class| (class.name(), Class::of(class.value)));
            self.classes.push(DeviceClassesInEra {
                classes: classes.collect(),
                by_resource: class_name_by_extended_resource(objects),
                // The catalog does not have all pods yet.
                delegated: ResourcesDelegatedToDevices::default(),
            });
            era.classes = self.classes.len() - 1;
        }
        if changed.contains(&ObjectKind::ResourceClaimTemplate) {
            let objects = state.objects_of_kind(ObjectKind::ResourceClaimTemplate);
            let templates = objects.iter().map(|template| {
                let spec = Template::of(template.value).spec().spec();
                ((template.namespace(), template.name()), tables.intern_claim_spec(template.version, spec))
            });
            self.templates.push(templates.collect());
            era.templates = self.templates.len() - 1;
        }
        if changed.contains(&ObjectKind::Node) {
            let mut objects: Vec<_> = state.objects_of_kind(ObjectKind::Node).iter().collect();
            objects.sort_by_key(|node| node.name());
            self.nodes.push(Nodes::new(objects.into_iter().map(|node| catalog.read_node(node.value))));
            era.nodes = self.nodes.len() - 1;
        }
        era
    }

    /// Determines which extended resources of pods are provided by classes. Called after the catalog contains
    /// all pods.
    pub(crate) fn record_resources_that_classes_provide(&mut self, catalog: &PodCatalog<'d>) {
        for era in &mut self.classes {
            era.delegated = catalog.resources_delegated_to_devices(era.classes.values().map(|class| class.0));
        }
    }
}

impl<'d> DevicesInEra<'d> {
    fn new(
        slices: &[StoredObject<'d>],
        rules: &[StoredObject<'d>],
        taints: &Snapshot,
        release: &SimulatedRelease,
        tables: &PodAndClaimTables<'d>,
    ) -> DevicesInEra<'d> {
        let inventory = Inventory::new(
            release.semantics,
            slices.iter().map(|slice| (slice.version, Slice::of(slice.value))),
            rules.iter().map(|rule| TaintRule::of(rule.value)),
        );
        let mut usage = DeviceUsage::default();
        let stored = tables.claims.iter().filter_map(|claim| claim.stored.as_ref()?.allocation.as_ref());
        for held in stored {
            held.holdings_without_admin_access(&inventory).for_each(|holding| usage.add_holding(&holding));
        }
        let unmodelled = unmodelled_devices(&inventory, release.profile);
        DevicesInEra { inventory, usage, unmodelled, taints: taints.clone() }
    }
}

/// True if slices of the same pool generation disagree on `resourceSliceCount`.
fn slices_of_same_pool_disagree_on_count(slices: &[StoredObject<'_>]) -> bool {
    let mut counts = HashMap::with_hasher(RandomState::default());
    slices.iter().any(|slice| {
        let spec = Slice::of(slice.value).spec();
        let (driver, pool) = (spec.driver(), spec.pool());
        let count = pool.resource_slice_count();
        *counts.entry((driver, pool.name(), pool.generation())).or_insert(count) != count
    })
}

/// The class for each extended resource. If several classes provide it, the newest wins, then the first by
/// name.
// upstream v1.37 ExtendedResourceCache.updateResourceName2class
fn class_name_by_extended_resource<'d>(classes: &Objects<'d>) -> HashMap<String, &'d str, RandomState> {
    let mut classes: Vec<_> = classes.iter().collect();
    let created = |class: Value<'d>| class.get("metadata").get("creationTimestamp").str();
    classes.sort_by(|one, other| (created(one.value), other.name()).cmp(&(created(other.value), one.name())));
    let mut by_resource = HashMap::default();
    for class in classes {
        by_resource.insert(format!("deviceclass.resource.kubernetes.io/{}", class.name()), class.name());
        if let Some(resource) = Class::of(class.value).spec().extended_resource_name() {
            by_resource.insert(resource.to_owned(), class.name());
        }
    }
    by_resource
}

/// The taints of slices and rules as the device taint eviction controller sees them. Unreadable objects are
/// omitted; the caller has already reported them.
pub(crate) fn taint_snapshot_of_slices_and_rules(state: &State<'_>, release: &SimulatedRelease) -> Snapshot {
    let mut taints = Snapshot::new();
    let features = release.semantics.features;
    if !features.device_taints {
        return taints;
    }
    let slices = state.objects_of_kind(ObjectKind::ResourceSlice).iter();
    let rules =
        state.objects_of_kind(ObjectKind::DeviceTaintRule).iter().filter(|_| features.device_taint_rules);
    for object in slices.chain(rules) {
        let _ = taints.apply(object.value);
    }
    taints
}

/// Applies a changed slice or rule, stored at time `at`, to the taints.
pub(crate) fn update_taints_from_slice_or_rule(
    taints: &mut Snapshot,
    kind: ObjectKind,
    object: Value<'_>,
    release: &SimulatedRelease,
    at: Timestamp,
) {
    let features = release.semantics.features;
    if !features.device_taints {
        return;
    }
    match kind {
        ObjectKind::ResourceSlice => {
            let _ = ProposedChange::from_published_slice(object, taints, at);
        }
        ObjectKind::DeviceTaintRule if features.device_taint_rules => {
            if let Ok(change) = ProposedChange::from_rule_manifest(object, None, taints, release.profile, at)
            {
                taints.store_proposed_rule(change);
            }
        }
        _ => {}
    }
}
