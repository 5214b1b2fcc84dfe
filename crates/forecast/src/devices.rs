//! Lists the devices of a cluster: their holders, their classes, and whether the scheduler could allocate them.
//!
//! The report describes the current state, not the future. A row is a device of a slice; devices that claims hold
//! although no slice publishes them have a row as well. A device of an older pool generation has a row only if no
//! newer one has its name.
//!
//! Invariant: a device is free only if none of the other states applies, and the allocator could allocate it on some
//! node.

mod classes;
mod holders;

use crate::selectors::CelSelectorEvaluator;
use crate::state::{ObjectKind, State, StoredObject};
use classes::CompiledClass;
use foldhash::fast::RandomState;
use holders::Holders;
use std::collections::HashMap;
use tollgate_allocator::{
    DeviceKey, DeviceObstacle, DeviceUsage, Inventory, Node, NodeSelection, PublishedDevice,
    SelectorEvaluator as _,
};
use tollgate_api::profile::Profile;
use tollgate_api::view::{Claim, Class, List, Selector, Slice, Taint, TaintRule, TaintSelector};
use tollgate_formats::quantity::Quantity;

pub use classes::{ClassMatchCache, ReportedClass};
pub use holders::{ClaimUser, Holder, claim_users};

/// The devices and DeviceClasses of a cluster.
#[derive(Clone, Debug)]
pub struct DeviceReport<'d> {
    /// The devices, sorted by driver and pool; within a pool in the order in which the scheduler tries them.
    pub devices: Vec<ReportedDevice<'d>>,
    /// The DeviceClasses, sorted by name.
    pub classes: Vec<ReportedClass<'d>>,
}

/// A device in the report, with its state, holders, taints and classes.
#[derive(Clone, Debug)]
pub struct ReportedDevice<'d> {
    pub driver: &'d str,
    pub pool: &'d str,
    pub device: &'d str,
    /// Name of the ResourceSlice; `None` if no slice publishes the device.
    pub slice: Option<&'d str>,
    /// The only node that can use the device; `None` if there are several or the node is unknown.
    pub node: Option<&'d str>,
    /// All states that apply to the device, in the order of [`DeviceState`].
    pub states: Vec<DeviceState>,
    /// The reason why no request can be allocated the device, if it is blocked.
    pub blocked_by: Option<String>,
    /// The remaining amount of each capacity, if the device is shared.
    pub capacity_left: Vec<(&'d str, Quantity<'static>)>,
    /// Indices in [`DeviceReport::classes`] of the classes that the device belongs to.
    pub classes: Vec<usize>,
    /// Indices of the classes whose selectors fail for the device, with the error.
    pub class_errors: Vec<(usize, String)>,
    pub taints: Vec<ReportedTaint<'d>>,
    pub holders: Vec<Holder<'d>>,
}

impl ReportedDevice<'_> {
    pub fn has_state(&self, state: DeviceState) -> bool {
        self.states.contains(&state)
    }
}

tollgate_formats::named_enum! {
    /// A state of a device. All states except `Free` can be combined.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum DeviceState {
        /// A claim holds the device without adminAccess.
        Allocated = "allocated",
        /// A taint prevents allocation to requests that do not tolerate it.
        Tainted = "tainted",
        /// No request can be allocated the device, whatever it tolerates.
        Blocked = "blocked",
        /// Claims hold shares of the device.
        Shared = "shared",
        /// A claim holds the device, but no slice publishes it.
        Unpublished = "unpublished",
        /// None of the other states applies: the scheduler can allocate the device.
        Free = "free",
    }
}

/// A taint of a device, and the rule that sets it.
#[derive(Clone, Copy, Debug)]
pub struct ReportedTaint<'d> {
    pub key: &'d str,
    pub value: &'d str,
    pub effect: &'d str,
    /// The DeviceTaintRule that adds the taint; `None` if the slice contains it.
    pub rule: Option<&'d str>,
}

/// Number of devices in each state.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DeviceCounts {
    pub total: usize,
    pub allocated: usize,
    pub tainted: usize,
    pub allocated_and_tainted: usize,
    pub blocked: usize,
    pub free: usize,
}

impl DeviceCounts {
    /// Counts a device in the totals of its states.
    pub fn add_device(&mut self, device: &ReportedDevice<'_>) {
        let one = |state| usize::from(device.has_state(state));
        self.total += 1;
        self.allocated += one(DeviceState::Allocated);
        self.tainted += one(DeviceState::Tainted);
        self.allocated_and_tainted += one(DeviceState::Allocated) * one(DeviceState::Tainted);
        self.blocked += one(DeviceState::Blocked);
        self.free += one(DeviceState::Free);
    }
}

impl<'r, 'd: 'r> FromIterator<&'r ReportedDevice<'d>> for DeviceCounts {
    fn from_iter<I: IntoIterator<Item = &'r ReportedDevice<'d>>>(devices: I) -> DeviceCounts {
        let mut counts = DeviceCounts::default();
        devices.into_iter().for_each(|device| counts.add_device(device));
        counts
    }
}

impl DeviceReport<'_> {
    /// The device counts of each class, in the order of [`DeviceReport::classes`].
    pub fn class_counts(&self) -> Vec<DeviceCounts> {
        let mut counts = vec![DeviceCounts::default(); self.classes.len()];
        for device in &self.devices {
            for &class in &device.classes {
                if let Some(counts) = counts.get_mut(class) {
                    counts.add_device(device);
                }
            }
        }
        counts
    }
}

/// Lists the devices of a cluster that runs the release of the profile.
pub fn report_devices<'d>(state: &State<'d>, profile: &Profile) -> DeviceReport<'d> {
    report_devices_cached(state, profile, &mut ClassMatchCache::default())
}

/// Like [`report_devices`], but reuses the classes of devices that `memory` has from the previous report.
pub fn report_devices_cached<'d>(
    state: &State<'d>,
    profile: &Profile,
    memory: &mut ClassMatchCache,
) -> DeviceReport<'d> {
    let inventory = inventory_of(state, profile);
    let holders = Holders::new(state, &inventory);
    let claims = state.objects_of_kind(ObjectKind::ResourceClaim).iter().map(|object| Claim(object.value));
    let allocations = claims.filter_map(|claim| claim.status().allocation());
    let results = allocations.flat_map(|allocation| allocation.devices().results().iter());
    let usage = DeviceUsage::from_results(&inventory, results);
    let nodes = Nodes::new(state);
    let obstacles = inventory.obstacles_other_than_holders_and_taints(&usage, nodes.schedulable.as_deref());
    let classes = CompiledClass::compile_all(state, &profile.selectors);
    let mut newest: HashMap<DeviceKey, i64, RandomState> = HashMap::default();
    for published in inventory.published_devices() {
        let newest = newest.entry(published.key()).or_insert(i64::MIN);
        *newest = published.pool_generation().max(*newest);
    }
    let mut devices: Vec<ReportedDevice<'d>> = Vec::new();
    let mut single_node = SingleNodeFinder { nodes: &nodes, last: None };
    let candidates = inventory.published_devices().map(|published| published.candidate);
    let classes_of_devices =
        memory.classes_of_devices_dropping_other_entries(&classes, &profile.selectors, candidates);
    for (published, (classes, class_errors)) in inventory.published_devices().zip(classes_of_devices) {
        if newest.get(&published.key()).is_some_and(|newest| published.pool_generation() < *newest) {
            continue;
        }
        let obstacle = obstacles.get(published.candidate.index).copied().flatten();
        let blocked_by = obstacle.map(|obstacle| nodes.explain_obstacle(obstacle, published.nodes()));
        let mut device = ReportedDevice {
            driver: published.candidate.driver,
            pool: published.candidate.pool,
            device: published.candidate.name,
            slice: Some(published.slice_name()),
            node: single_node.only_node_of(published),
            states: Vec::new(),
            blocked_by,
            capacity_left: Vec::new(),
            classes,
            class_errors,
            taints: taints_with_rules(published),
            holders: holders.published.get(&published.key()).cloned().unwrap_or_default(),
        };
        if usage.has_shares(published.key()) {
            device.capacity_left = published.capacity_left(&usage);
        }
        let is_tainted = profile.allocation.features.device_taints
            && device.taints.iter().any(|taint| matches!(taint.effect, "NoSchedule" | "NoExecute"));
        let states = [
            (DeviceState::Allocated, usage.is_held_or_shared(published.key())),
            (DeviceState::Tainted, is_tainted),
            (DeviceState::Blocked, device.blocked_by.is_some()),
            (DeviceState::Shared, usage.has_shares(published.key())),
        ];
        device.states = states.into_iter().filter(|(_, is)| *is).map(|(state, _)| state).collect();
        if device.states.is_empty() {
            device.states.push(DeviceState::Free);
        }
        devices.push(device);
    }
    devices.extend(holders.unpublished());
    // Stable: devices of a slice stay in its order.
    devices.sort_by_key(|device| {
        (device.driver, device.pool, device.slice.is_none(), device.slice.unwrap_or_default())
    });
    let reported =
        |class: CompiledClass<'d>| ReportedClass { name: class.name, error: class.selectors.err() };
    let classes = classes.into_iter().map(reported).collect();
    DeviceReport { devices, classes }
}

/// The devices of all slices, with the taints of DeviceTaintRules.
fn inventory_of<'d>(state: &State<'d>, profile: &Profile) -> Inventory<'d> {
    let slices = state.objects_of_kind(ObjectKind::ResourceSlice).iter();
    let slices = slices.map(|slice| (slice.version, Slice(slice.value)));
    let rules = state.objects_of_kind(ObjectKind::DeviceTaintRule).iter().map(|rule| TaintRule(rule.value));
    if !profile.rule_class_selectors {
        return Inventory::new(profile.allocation, slices, rules);
    }
    let selectors = CelSelectorEvaluator::new(profile.selectors);
    let classes = state.objects_of_kind(ObjectKind::DeviceClass);
    // A class that does not exist, and an expression that fails or does not compile, select no device.
    // upstream v1.34 Tracker.applyPatches
    let selects = |by: TaintSelector<'d>, device| {
        let class = by.device_class_name().map(|name| classes.get("", name));
        let of_class = match class {
            Some(None) => return false,
            Some(Some(class)) => Some(Class(class.value).spec().selectors()),
            None => None,
        };
        let of_class = of_class.into_iter().flat_map(List::iter);
        let mut expressions = of_class.chain(by.selectors().iter()).filter_map(Selector::cel);
        expressions.all(|cel| selectors.matches(cel.expression(), device) == Ok(true))
    };
    Inventory::with_class_and_cel_rules(profile.allocation, slices, rules, selects)
}

/// The taints of a device, each with the DeviceTaintRule that adds it.
fn taints_with_rules<'d>(device: PublishedDevice<'_, 'd>) -> Vec<ReportedTaint<'d>> {
    let taint = |(taint, rule): (Taint<'d>, Option<&'d str>)| ReportedTaint {
        key: taint.key(),
        value: taint.value(),
        effect: taint.effect(),
        rule,
    };
    device.taints_with_rules().map(taint).collect()
}

/// The nodes of a cluster.
struct Nodes<'d> {
    all: Vec<Node<'d>>,
    /// Nodes that accept new pods; `None` if the state contains no nodes.
    schedulable: Option<Vec<Node<'d>>>,
}

impl<'d> Nodes<'d> {
    fn new(state: &State<'d>) -> Nodes<'d> {
        let objects = state.objects_of_kind(ObjectKind::Node);
        let all: Vec<Node<'d>> = objects.iter().map(|node| Node::from_object(node.value)).collect();
        let is_cordoned =
            |object: &StoredObject<'d>| object.value.get("spec").get("unschedulable").bool() == Some(true);
        let schedulable = objects.iter().filter(|node| !is_cordoned(node));
        let schedulable = schedulable.map(|node| Node::from_object(node.value)).collect();
        Nodes { schedulable: (!all.is_empty()).then_some(schedulable), all }
    }

    /// Explains an obstacle: cordoned nodes if only they can use the device, otherwise the obstacle itself.
    fn explain_obstacle(&self, obstacle: DeviceObstacle, selection: NodeSelection<'d>) -> String {
        if obstacle == DeviceObstacle::NoNode && self.all.iter().any(|node| selection.includes(*node)) {
            return "its node is unschedulable".to_owned();
        }
        obstacle.to_string()
    }
}

/// Finds the only node that can use a device. Caches the last result, because the devices of a slice usually
/// have the same nodes.
struct SingleNodeFinder<'n, 'd> {
    nodes: &'n Nodes<'d>,
    /// The last slice with a node selector, and the only node that matches it.
    last: Option<(&'d str, Option<&'d str>)>,
}

impl<'d> SingleNodeFinder<'_, 'd> {
    /// The only node that can use the device; `None` if there are several or none.
    fn only_node_of(&mut self, device: PublishedDevice<'_, 'd>) -> Option<&'d str> {
        let selection = device.nodes();
        match selection {
            NodeSelection::Name(name) => return Some(name),
            NodeSelection::Selector(_) => {}
            NodeSelection::All | NodeSelection::Unknown => return None,
        }
        if let Some((slice, node)) = self.last
            && slice == device.slice_name()
            && !device.has_own_node_selection()
        {
            return node;
        }
        let mut reached = self.nodes.all.iter().filter(|node| selection.includes(**node));
        let node = match (reached.next(), reached.next()) {
            (Some(only), None) => Some(only.name),
            _ => None,
        };
        self.last = (!device.has_own_node_selection()).then_some((device.slice_name(), node));
        node
    }
}
