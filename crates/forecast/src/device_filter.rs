//! The device filter of a scheduling attempt: the allocator's result for the claims of a pod on a node.

use crate::allocations::{
    AllocationCache, ClaimSetIndex, ClaimWithoutAllocation, NodeAllocationResult, SimulatedDevices,
};
use crate::attempt::PodClaims;
use crate::device_features::unmodelled_allocation_feature;
use crate::held::ClaimAllocation;
use crate::nodes::{NodeIndex, SchedulingCycle};
use crate::tables::{ClaimIndex, PodEntry, PodIndex};
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use tollgate_allocator::condition::scheduler_error_message;

/// New allocations on a node for the unallocated claims of a pod. The last one is for extended resources, if
/// the pod needs such a claim.
#[derive(Default)]
pub(crate) struct NewAllocations<'p> {
    found: Option<Rc<[Arc<ClaimAllocation<'p>>]>>,
    has_extended: bool,
}

/// Result of the device filter for one node.
pub(crate) enum DeviceVerdict<'p> {
    /// The devices can be allocated; with the new allocations and the score.
    Fits(NewAllocations<'p>, i64),
    Rejected(Cow<'static, str>),
    /// These allocated claims of the pod are not available on the node.
    ClaimElsewhere(Vec<ClaimIndex>),
    /// The scheduling attempt ends with this error.
    Failed(String),
    NotModelled(String),
}

/// The scheduler's filter for devices during the scheduling attempt of one pod.
pub(crate) struct DeviceFilter<'w, 'p> {
    pub(crate) devices: &'w mut SimulatedDevices<'p>,
    pub(crate) cache: &'w mut AllocationCache<'p>,
    pub(crate) pod: PodIndex,
    pub(crate) entry: &'p PodEntry<'p>,
    pub(crate) claims: &'w PodClaims<'p>,
    /// Index of the set of unallocated claims; `None` if all claims are allocated.
    pub(crate) claim_set: Option<ClaimSetIndex>,
    /// True if DeviceClasses provide extended resources that the pod requests.
    pub(crate) has_extended: bool,
    /// The claim set for which unsupported features were recorded last.
    pub(crate) noted: Option<ClaimSetIndex>,
    /// Features that are not simulated, by pod.
    pub(crate) uncertain: &'w mut HashMap<PodIndex, BTreeSet<&'static str>, RandomState>,
}

impl<'p> DeviceFilter<'_, 'p> {
    // upstream v1.37 DynamicResources.Filter
    pub(crate) fn check_devices(
        &mut self,
        node: NodeIndex,
        cycle: &SchedulingCycle<'_, 'p, 'p>,
    ) -> DeviceVerdict<'p> {
        let (claim_set, extended) = self.claim_set_on_node(node, cycle);
        self.record_unmodelled_features(claim_set);
        let mut allocations = NewAllocations::default();
        let mut score = self.claims.score;
        if let Some(claim_set) = claim_set {
            match self.devices.cached_allocation_on_node(self.cache, node, claim_set) {
                NodeAllocationResult::Allocated(found, own) => {
                    score += own;
                    allocations = NewAllocations { found: Some(found), has_extended: extended.is_some() };
                }
                NodeAllocationResult::Unschedulable(reason) => {
                    return DeviceVerdict::Rejected(reason.scheduler_message());
                }
                NodeAllocationResult::Failed => {
                    let asked = self.requested_claims(extended);
                    let error = self.devices.recompute_allocation_error(self.cache, node, &asked);
                    return DeviceVerdict::Failed(
                        error.map_or(String::new(), |error| scheduler_error_message(&error)),
                    );
                }
                NodeAllocationResult::NotModelled(what) => return DeviceVerdict::NotModelled(what),
            }
        }
        let place = cycle.node(node);
        let elsewhere = self.claims.allocated.iter().filter(|(_, held)| !held.nodes.includes(place));
        let elsewhere: Vec<ClaimIndex> = elsewhere.map(|(claim, _)| *claim).collect();
        if elsewhere.is_empty() {
            DeviceVerdict::Fits(allocations, score)
        } else {
            DeviceVerdict::ClaimElsewhere(elsewhere)
        }
    }

    /// Records the features that the result for a node depends on and that are not simulated.
    fn record_unmodelled_features(&mut self, claim_set: Option<ClaimSetIndex>) {
        if claim_set.is_some() && self.noted == claim_set {
            return;
        }
        self.noted = claim_set;
        let era = self.devices.era;
        let asked = claim_set.map(|claim_set| self.cache.unmodelled_features(era, claim_set));
        let devices = self.devices.plan.eras.devices_in(era);
        let allocated = self.claims.allocated.iter();
        let allocated = allocated.filter_map(|(_, held)| unmodelled_allocation_feature(held, devices));
        let mut names = asked.iter().flat_map(|names| names.iter().copied()).chain(allocated).peekable();
        if names.peek().is_some() {
            self.uncertain.entry(self.pod).or_default().extend(names);
        }
    }

    /// Index of the claims to allocate on a node, including the claim for extended resources if the pod needs
    /// one there.
    fn claim_set_on_node(
        &mut self,
        node: NodeIndex,
        cycle: &SchedulingCycle<'_, 'p, 'p>,
    ) -> (Option<ClaimSetIndex>, Option<ClaimWithoutAllocation<'p>>) {
        if !self.has_extended {
            return (self.claim_set, None);
        }
        let plan = self.devices.plan;
        let era = self.devices.era;
        let resources = cycle.requests_delegated_to_devices(node).map(|(name, _)| name);
        let Some(spec) = plan.extended.claim_for_resources(self.pod, era.classes, resources) else {
            return (self.claim_set, None);
        };
        let name = &plan.tables.claim(self.entry.extended).name;
        let extended = ClaimWithoutAllocation { namespace: self.entry.namespace, name, spec };
        let asked = self.requested_claims(Some(extended));
        (Some(self.cache.claim_set_index(era, &asked)), Some(extended))
    }

    /// The claims to allocate for the pod, including the one for extended resources if there is one.
    fn requested_claims(
        &self,
        extended: Option<ClaimWithoutAllocation<'p>>,
    ) -> Vec<ClaimWithoutAllocation<'p>> {
        self.claims.unallocated.iter().map(|(_, asked)| *asked).chain(extended).collect()
    }

    /// The new allocations, each with the index of its claim.
    pub(crate) fn allocations_by_claim(
        &self,
        new: &NewAllocations<'p>,
    ) -> Vec<(ClaimIndex, Arc<ClaimAllocation<'p>>)> {
        let claims = self.claims.unallocated.iter().map(|(claim, _)| *claim);
        let claims = claims.chain(new.has_extended.then_some(self.entry.extended));
        claims.zip(new.found.iter().flat_map(|found| found.iter().cloned())).collect()
    }
}
