//! Device usage in a simulated run, and cached results of the allocator for the claims of a pod on a node.
//!
//! A simulated run affects few nodes of a large cluster, and many pods have equal requests. So results are cached by
//! claim set and node: those for the initial state for all runs, those for a node whose devices have changed for the
//! rest of the run.

use crate::device_features::unmodelled_claim_features;
use crate::eras::EraIndexOfEachKind;
use crate::held::ClaimAllocation;
use crate::nodes::NodeIndex;
use crate::plan::Plan;
use crate::selectors::CelSelectorEvaluator;
use crate::tables::NumberedClaimSpec;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use tollgate_allocator::{
    AllocationError, AllocationOutcome, Allocator, Candidate, ClaimsToAllocate, DeviceUsage, NodePools,
    SelectorEvaluator as _, UnallocatedClaim, UnschedulableReason,
};
use tollgate_api::view::{List, Selector};

/// Index of a distinct set of unallocated claim specs together with the device classes in effect. Pods with
/// the same index need the same devices.
pub(crate) type ClaimSetIndex = usize;

/// A claim of a pod that has no allocation yet, with the spec that the allocator must satisfy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimWithoutAllocation<'p> {
    pub(crate) namespace: &'p str,
    pub(crate) name: &'p str,
    pub(crate) spec: NumberedClaimSpec<'p>,
}

/// The result of allocating the claims of a pod on one node.
#[derive(Clone, Debug)]
pub(crate) enum NodeAllocationResult<'p> {
    /// One allocation for each claim, and the score of the node.
    Allocated(Rc<[Arc<ClaimAllocation<'p>>]>, i64),
    Unschedulable(UnschedulableReason),
    /// The allocation failed. The message names claims, so it is not cached.
    Failed,
    Unsupported(&'static str),
    GaveUp(u64),
}

/// Allocator results that are cached for all simulated runs of one thread.
#[derive(Debug)]
pub(crate) struct AllocationCache<'p> {
    plan: &'p Plan<'p>,
    claim_sets: HashMap<(usize, Vec<u32>), ClaimSetIndex, RandomState>,
    claims: Vec<Result<ClaimsToAllocate<'p>, UnschedulableReason>>,
    specs: Vec<Vec<NumberedClaimSpec<'p>>>,
    /// Features that an allocation depends on and that are not simulated, by device era and claim set.
    unmodelled: HashMap<(usize, ClaimSetIndex), Rc<[&'static str]>, RandomState>,
    /// Evaluators of device selectors, by device era.
    selectors: Vec<CelSelectorEvaluator>,
    /// The pools available on each node, by device era and node era.
    pools: HashMap<(usize, usize), Vec<Option<Rc<NodePools<'p>>>>, RandomState>,
    /// For pools that only one node can use, the name of this node, by device era.
    local: Vec<HashMap<(&'p str, &'p str), &'p str, RandomState>>,
    /// Allocator results for the initial device usage, by device era, node era and claim set.
    found: HashMap<(usize, usize, ClaimSetIndex), Vec<Option<NodeAllocationResult<'p>>>, RandomState>,
}

impl<'p> AllocationCache<'p> {
    pub(crate) fn new(plan: &'p Plan<'p>) -> AllocationCache<'p> {
        let eras = &plan.eras.devices;
        let local = eras.iter().map(|era| {
            era.inventory.single_node_pools().map(|(driver, pool, node)| ((driver, pool), node)).collect()
        });
        AllocationCache {
            plan,
            claim_sets: HashMap::default(),
            claims: Vec::new(),
            specs: Vec::new(),
            unmodelled: HashMap::default(),
            selectors: eras.iter().map(|_| CelSelectorEvaluator::new(plan.release.behaviour)).collect(),
            pools: HashMap::default(),
            local: local.collect(),
            found: HashMap::default(),
        }
    }

    /// Index for the set of specs of these claims.
    pub(crate) fn claim_set_index(
        &mut self,
        era: EraIndexOfEachKind,
        claims: &[ClaimWithoutAllocation<'p>],
    ) -> ClaimSetIndex {
        let key = (era.classes, claims.iter().map(|claim| claim.spec.number).collect());
        let next = self.claims.len();
        let claim_set = *self.claim_sets.entry(key).or_insert(next);
        if claim_set == next {
            self.claims.push(read_claims(self.plan, era, claims));
            self.specs.push(claims.iter().map(|claim| claim.spec).collect());
        }
        claim_set
    }

    /// Names of the features that the allocation depends on and that are not simulated.
    pub(crate) fn unmodelled_features(
        &mut self,
        era: EraIndexOfEachKind,
        claim_set: ClaimSetIndex,
    ) -> Rc<[&'static str]> {
        if let Some(known) = self.unmodelled.get(&(era.devices, claim_set)) {
            return Rc::clone(known);
        }
        let eras = &self.plan.eras;
        let found =
            match (self.specs.get(claim_set), eras.devices.get(era.devices), eras.classes.get(era.classes)) {
                (Some(specs), Some(devices), Some(classes)) => unmodelled_claim_features(
                    specs,
                    &devices.unmodelled,
                    self.plan.release.profile,
                    |name| classes.classes.get(name).copied(),
                    |selectors, device| self.may_match(era, selectors, device),
                ),
                _ => Vec::new(),
            };
        let found: Rc<[&'static str]> = found.into();
        self.unmodelled.insert((era.devices, claim_set), Rc::clone(&found));
        found
    }

    /// True if all selectors match the device, or if one of them fails, so that its result is unknown.
    fn may_match(
        &self,
        era: EraIndexOfEachKind,
        selectors: List<'p, Selector<'p>>,
        device: Candidate<'p>,
    ) -> bool {
        let Some(evaluator) = self.selectors.get(era.devices) else { return true };
        let mut answers = selectors
            .iter()
            .map(|selector| evaluator.matches(selector.cel().map_or("", |cel| cel.expression()), device));
        answers.all(|answer| answer != Ok(false))
    }

    /// True if the selector matches the device. A selector that fails does not match.
    pub(crate) fn selector_matches(
        &self,
        era: EraIndexOfEachKind,
        expression: &str,
        device: Candidate<'p>,
    ) -> bool {
        let selectors = self.selectors.get(era.devices);
        selectors.is_some_and(|selectors| selectors.matches(expression, device) == Ok(true))
    }

    /// The reason why these claims cannot be allocated on any node, if known before checking nodes.
    pub(crate) fn rejection_on_all_nodes(&self, claim_set: ClaimSetIndex) -> Option<&UnschedulableReason> {
        self.claims.get(claim_set)?.as_ref().err()
    }

    /// The pools available on a node, computed on first use.
    fn pools(&mut self, era: EraIndexOfEachKind, node: NodeIndex) -> Option<Rc<NodePools<'p>>> {
        let nodes = self.plan.eras.nodes.get(era.nodes)?;
        let inventory = &self.plan.eras.devices.get(era.devices)?.inventory;
        let known = self.pools.entry((era.devices, era.nodes)).or_insert_with(|| vec![None; nodes.len()]);
        let slot = known.get_mut(node.get())?;
        Some(Rc::clone(slot.get_or_insert_with(|| Rc::new(inventory.pools_for(nodes.get(node).node)))))
    }

    fn allocate(
        &mut self,
        era: EraIndexOfEachKind,
        node: NodeIndex,
        usage: &DeviceUsage<'p>,
        claims: &ClaimsToAllocate<'p>,
    ) -> Option<AllocationOutcome<'p>> {
        let pools = self.pools(era, node)?;
        let allocator = Allocator {
            inventory: &self.plan.eras.devices.get(era.devices)?.inventory,
            usage,
            selectors: self.selectors.get(era.devices)?,
            max_steps: self.plan.settings.max_steps,
        };
        Some(allocator.allocate(&pools, claims))
    }

    /// The allocator's result for a claim set on a node with this device usage; `None` if the era does not exist.
    fn compute_allocation_on_node(
        &mut self,
        era: EraIndexOfEachKind,
        node: NodeIndex,
        usage: &DeviceUsage<'p>,
        claim_set: ClaimSetIndex,
    ) -> Option<NodeAllocationResult<'p>> {
        let claims =
            std::mem::replace(self.claims.get_mut(claim_set)?, Err(UnschedulableReason::CannotAllocate));
        let outcome = claims.as_ref().ok().and_then(|claims| self.allocate(era, node, usage, claims));
        if let Some(slot) = self.claims.get_mut(claim_set) {
            *slot = claims;
        }
        Some(match outcome? {
            AllocationOutcome::Allocated(allocations) => {
                let held = allocations
                    .iter()
                    .map(|allocation| Arc::new(ClaimAllocation::from_allocation(allocation)));
                let held: Rc<[Arc<ClaimAllocation<'p>>]> = held.collect();
                let specs = self.specs.get(claim_set).into_iter().flatten();
                let score = specs
                    .zip(held.iter())
                    .map(|(spec, held)| held.score_by_chosen_alternatives(spec.spec))
                    .sum();
                NodeAllocationResult::Allocated(held, score)
            }
            AllocationOutcome::Unschedulable(reason) => NodeAllocationResult::Unschedulable(reason),
            AllocationOutcome::Failed(_) => NodeAllocationResult::Failed,
            AllocationOutcome::Unsupported(what) => NodeAllocationResult::Unsupported(what),
            AllocationOutcome::GaveUp { steps } => NodeAllocationResult::GaveUp(steps),
        })
    }
}

/// Reads the requests and constraints of these claims for the allocator. An error if a DeviceClass does not exist.
fn read_claims<'p>(
    plan: &'p Plan<'p>,
    era: EraIndexOfEachKind,
    claims: &[ClaimWithoutAllocation<'p>],
) -> Result<ClaimsToAllocate<'p>, UnschedulableReason> {
    let unallocated = claims.iter().map(|claim| UnallocatedClaim {
        namespace: claim.namespace,
        name: claim.name,
        version: claim.spec.version,
        spec: claim.spec.spec,
    });
    let era = plan.eras.classes.get(era.classes).ok_or(UnschedulableReason::CannotAllocate)?;
    ClaimsToAllocate::new(unallocated, [], &era.classes, &plan.release.semantics)
}

/// The devices held by claims in one simulated run.
#[derive(Debug)]
pub(crate) struct SimulatedDevices<'p> {
    pub(crate) plan: &'p Plan<'p>,
    pub(crate) era: EraIndexOfEachKind,
    pub(crate) usage: DeviceUsage<'p>,
    /// For each node, the value of `clock` when devices that only this node can use last changed.
    changed: Vec<u64>,
    /// The value of `clock` when devices that several nodes can use last changed.
    changed_all: u64,
    clock: u64,
    /// Results that were computed after the devices of the node last changed.
    found: HashMap<(ClaimSetIndex, usize), (u64, NodeAllocationResult<'p>), RandomState>,
}

impl<'p> SimulatedDevices<'p> {
    /// The device usage at the start of an era: the devices that the claims of the state hold.
    pub(crate) fn new(plan: &'p Plan<'p>, era: EraIndexOfEachKind) -> Option<SimulatedDevices<'p>> {
        let nodes = plan.eras.nodes.get(era.nodes)?.len();
        let usage = plan.eras.devices.get(era.devices)?.usage.clone();
        let found = HashMap::default();
        Some(SimulatedDevices { plan, era, usage, changed: vec![0; nodes], changed_all: 0, clock: 0, found })
    }

    /// Records that a claim was allocated (`is_held`) or deallocated.
    pub(crate) fn set_held(
        &mut self,
        cache: &AllocationCache<'p>,
        held: &ClaimAllocation<'p>,
        is_held: bool,
    ) {
        let Some(devices) = self.plan.eras.devices.get(self.era.devices) else { return };
        for holding in held.holdings_without_admin_access(&devices.inventory) {
            if is_held {
                self.usage.add_holding(&holding);
            } else {
                self.usage.remove_holding(&holding);
            }
        }
        self.clock += 1;
        let nodes = self.plan.eras.nodes.get(self.era.nodes);
        for device in &held.devices {
            let local = cache.local.get(self.era.devices);
            let local = local.and_then(|local| local.get(&(device.driver, device.pool)));
            match local {
                Some(node) => {
                    let node = nodes.and_then(|nodes| nodes.find(node));
                    if let Some(changed) = node.and_then(|node| self.changed.get_mut(node.get())) {
                        *changed = self.clock;
                    }
                }
                None => self.changed_all = self.clock,
            }
        }
    }

    /// The allocator's result for a claim set on a node, cached as long as the devices of the node do not change.
    pub(crate) fn cached_allocation_on_node(
        &mut self,
        cache: &mut AllocationCache<'p>,
        node: NodeIndex,
        claim_set: ClaimSetIndex,
    ) -> Option<NodeAllocationResult<'p>> {
        let era = self.era;
        let changed = self.changed.get(node.get()).copied().unwrap_or(0).max(self.changed_all);
        if changed == 0 {
            let nodes = self.changed.len();
            let key = (era.devices, era.nodes, claim_set);
            let known =
                cache.found.get(&key).and_then(|known| known.get(node.get())).and_then(Option::as_ref);
            if let Some(found) = known {
                return Some(found.clone());
            }
            let found = cache.compute_allocation_on_node(era, node, &self.usage, claim_set)?;
            let known = cache.found.entry(key).or_insert_with(|| vec![None; nodes]);
            if let Some(slot) = known.get_mut(node.get()) {
                *slot = Some(found.clone());
            }
            return Some(found);
        }
        if let Some((since, found)) = self.found.get(&(claim_set, node.get()))
            && *since >= changed
        {
            return Some(found.clone());
        }
        let found = cache.compute_allocation_on_node(era, node, &self.usage, claim_set)?;
        self.found.insert((claim_set, node.get()), (self.clock, found.clone()));
        Some(found)
    }

    /// The allocator's error for these claims on a node, computed again because the cached result has no message.
    pub(crate) fn recompute_allocation_error(
        &self,
        cache: &mut AllocationCache<'p>,
        node: NodeIndex,
        claims: &[ClaimWithoutAllocation<'p>],
    ) -> Option<AllocationError> {
        let claims = read_claims(self.plan, self.era, claims).ok()?;
        match cache.allocate(self.era, node, &self.usage, &claims)? {
            AllocationOutcome::Failed(error) => Some(error),
            _ => None,
        }
    }
}
