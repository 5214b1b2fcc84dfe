//! Device usage in a simulated run, and cached results of the allocator for the claims of a pod on a node.
//!
//! A simulated run affects few nodes of a large cluster, and many pods have equal requests. So results are cached by
//! claim set and node: those for the initial state for all runs, those for a node whose devices have changed for the
//! rest of the run.

#![allow(clippy::indexing_slicing, reason = "the indices of claim sets and eras are places in their lists")]

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
    /// The result depends on this, which is not simulated.
    NotModelled(String),
}

/// Allocator results that are cached for all simulated runs of one thread.
#[derive(Debug)]
pub(crate) struct AllocationCache<'p> {
    plan: &'p Plan<'p>,
    claim_sets: HashMap<(usize, Vec<u32>), ClaimSetIndex, RandomState>,
    claims: Vec<Result<Rc<ClaimsToAllocate<'p>>, UnschedulableReason>>,
    specs: Vec<Vec<NumberedClaimSpec<'p>>>,
    /// Features that an allocation depends on and that are not simulated, by device era and claim set.
    unmodelled: HashMap<(usize, ClaimSetIndex), Rc<[&'static str]>, RandomState>,
    /// Evaluators of device selectors, by device era.
    selectors: Vec<CelSelectorEvaluator>,
    /// The pools available on each node, by device era and node era.
    pools: HashMap<(usize, usize, NodeIndex), Rc<NodePools<'p>>, RandomState>,
    /// For pools that only one node can use, the name of this node, by device era.
    local: Vec<HashMap<(&'p str, &'p str), &'p str, RandomState>>,
    /// Allocator results for the initial device usage, by device era, node era, claim set and node.
    found: HashMap<(usize, usize, ClaimSetIndex, NodeIndex), NodeAllocationResult<'p>, RandomState>,
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
            self.claims.push(read_claims(self.plan, era, claims).map(Rc::new));
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
        let classes = &self.plan.eras.classes_in(era).classes;
        let found: Rc<[&'static str]> = unmodelled_claim_features(
            &self.specs[claim_set],
            &self.plan.eras.devices_in(era).unmodelled,
            self.plan.release.profile,
            |name| classes.get(name).copied(),
            // The result of one that fails is not known.
            |selectors, device| self.selectors_match(era, selectors, device, true),
        )
        .into();
        self.unmodelled.insert((era.devices, claim_set), Rc::clone(&found));
        found
    }

    /// True if all selectors match the device. A selector that fails counts as `if_failed`.
    pub(crate) fn selectors_match(
        &self,
        era: EraIndexOfEachKind,
        selectors: List<'p, Selector<'p>>,
        device: Candidate<'p>,
        if_failed: bool,
    ) -> bool {
        selectors.iter().all(|selector| {
            let expression = selector.cel().map_or("", |cel| cel.expression());
            self.selectors[era.devices].matches(expression, device).unwrap_or(if_failed)
        })
    }

    /// The reason why these claims cannot be allocated on any node, if known before checking nodes.
    pub(crate) fn rejection_on_all_nodes(&self, claim_set: ClaimSetIndex) -> Option<&UnschedulableReason> {
        self.claims[claim_set].as_ref().err()
    }

    /// The pools available on a node, computed on first use.
    fn pools(&mut self, era: EraIndexOfEachKind, node: NodeIndex) -> Rc<NodePools<'p>> {
        let eras = &self.plan.eras;
        let pools = || eras.devices_in(era).inventory.pools_for(eras.nodes_in(era).get(node).node);
        let known = self.pools.entry((era.devices, era.nodes, node)).or_insert_with(|| Rc::new(pools()));
        Rc::clone(known)
    }

    fn allocate(
        &mut self,
        era: EraIndexOfEachKind,
        node: NodeIndex,
        usage: &DeviceUsage<'p>,
        claims: &ClaimsToAllocate<'p>,
    ) -> AllocationOutcome<'p> {
        let pools = self.pools(era, node);
        let allocator = Allocator {
            inventory: &self.plan.eras.devices_in(era).inventory,
            usage,
            selectors: &self.selectors[era.devices],
            max_steps: self.plan.settings.max_steps,
        };
        allocator.allocate(&pools, claims)
    }

    /// The allocator's result for a claim set on a node with this device usage.
    fn compute_allocation_on_node(
        &mut self,
        era: EraIndexOfEachKind,
        node: NodeIndex,
        usage: &DeviceUsage<'p>,
        claim_set: ClaimSetIndex,
    ) -> NodeAllocationResult<'p> {
        let outcome = match self.claims[claim_set].clone() {
            Ok(claims) => self.allocate(era, node, usage, &claims),
            Err(reason) => AllocationOutcome::Unschedulable(reason),
        };
        match outcome {
            AllocationOutcome::Allocated(allocations) => {
                let held = allocations
                    .iter()
                    .map(|allocation| Arc::new(ClaimAllocation::from_allocation(allocation)));
                let held: Rc<[Arc<ClaimAllocation<'p>>]> = held.collect();
                let with_specs = self.specs[claim_set].iter().zip(held.iter());
                let score = with_specs.map(|(spec, held)| held.score_by_chosen_alternatives(spec.spec)).sum();
                NodeAllocationResult::Allocated(held, score)
            }
            AllocationOutcome::Unschedulable(reason) => NodeAllocationResult::Unschedulable(reason),
            AllocationOutcome::Failed(_) => NodeAllocationResult::Failed,
            AllocationOutcome::Unsupported(what) => NodeAllocationResult::NotModelled(what.to_owned()),
            AllocationOutcome::GaveUp { steps } => {
                NodeAllocationResult::NotModelled(format!("gave up after {steps} steps"))
            }
        }
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
    ClaimsToAllocate::new(unallocated, [], &plan.eras.classes_in(era).classes, &plan.release.semantics)
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
    pub(crate) fn new(plan: &'p Plan<'p>, era: EraIndexOfEachKind) -> SimulatedDevices<'p> {
        let changed = vec![0; plan.eras.nodes_in(era).len()];
        let usage = plan.eras.devices_in(era).usage.clone();
        let found = HashMap::default();
        SimulatedDevices { plan, era, usage, changed, changed_all: 0, clock: 0, found }
    }

    /// Records that a claim was allocated (`is_held`) or deallocated.
    pub(crate) fn set_held(
        &mut self,
        cache: &AllocationCache<'p>,
        held: &ClaimAllocation<'p>,
        is_held: bool,
    ) {
        let inventory = &self.plan.eras.devices_in(self.era).inventory;
        for holding in held.holdings_without_admin_access(inventory) {
            if is_held {
                self.usage.add_holding(&holding);
            } else {
                self.usage.remove_holding(&holding);
            }
        }
        self.clock += 1;
        let nodes = self.plan.eras.nodes_in(self.era);
        for device in &held.devices {
            match cache.local[self.era.devices].get(&(device.driver, device.pool)) {
                None => self.changed_all = self.clock,
                Some(node) => {
                    if let Some(node) = nodes.find(node) {
                        self.changed[node.get()] = self.clock;
                    }
                }
            }
        }
    }

    /// The allocator's result for a claim set on a node, cached as long as the devices of the node do not change.
    pub(crate) fn cached_allocation_on_node(
        &mut self,
        cache: &mut AllocationCache<'p>,
        node: NodeIndex,
        claim_set: ClaimSetIndex,
    ) -> NodeAllocationResult<'p> {
        let era = self.era;
        let changed = self.changed[node.get()].max(self.changed_all);
        let for_all_runs = (era.devices, era.nodes, claim_set, node);
        let known = if changed == 0 {
            cache.found.get(&for_all_runs)
        } else {
            let found = self.found.get(&(claim_set, node.get()));
            found.filter(|(since, _)| *since >= changed).map(|(_, found)| found)
        };
        if let Some(found) = known {
            return found.clone();
        }
        let found = cache.compute_allocation_on_node(era, node, &self.usage, claim_set);
        if changed == 0 {
            cache.found.insert(for_all_runs, found.clone());
        } else {
            self.found.insert((claim_set, node.get()), (self.clock, found.clone()));
        }
        found
    }

    /// The allocator's error for these claims on a node, computed again because the cached result has no message.
    pub(crate) fn recompute_allocation_error(
        &self,
        cache: &mut AllocationCache<'p>,
        node: NodeIndex,
        claims: &[ClaimWithoutAllocation<'p>],
    ) -> Option<AllocationError> {
        let claims = read_claims(self.plan, self.era, claims).ok()?;
        match cache.allocate(self.era, node, &self.usage, &claims) {
            AllocationOutcome::Failed(error) => Some(error),
            _ => None,
        }
    }
}
