//! Simulates the scheduler: which pending pods are bound, and to which node.
//!
//! An attempt follows upstream's scheduling cycle: check that all claims and their classes exist, filter the nodes,
//! allocate devices on the remaining ones, and choose a node with the best score.

use crate::allocations::ClaimWithoutAllocation;
use crate::claims::Consumer;
use crate::course::{PodState, Simulation};
use crate::device_filter::{DeviceFilter, DeviceVerdict};
use crate::forecast::PendingReason;
use crate::held::ClaimAllocation;
use crate::nodes::{Diagnosis, NO_NODES, NodeIndex, SchedulingCycle, feasible_nodes_to_find};
use crate::tables::{ClaimIndex, ClaimReference, PodEntry, PodIndex};
use std::collections::BTreeSet;
use std::sync::Arc;
use tollgate_allocator::UnschedulableReason;
use tollgate_allocator::condition::{PostFilterResult, prefilter_rejection_message, unschedulable_message};

/// Maximum number of entries in `status.reservedFor` of a claim.
const MAX_CONSUMERS: usize = 256;

/// Up to this number of nodes, each scheduling attempt checks all nodes.
const MIN_NODES_TO_SAMPLE: usize = 100;

/// The scheduler's message, with the status UnschedulableAndUnresolvable, if `status.reservedFor` of a claim
/// is full.
const CLAIM_IN_USE: &str = "resourceclaim in use";

/// The result of one attempt to schedule a pod: a node, the reason why the pod stays pending, or a claim to deallocate
/// first.
enum AttemptResult<'p> {
    /// The pod fits on a node.
    Found(NodeChoice<'p>),
    Pending(PendingReason),
    /// This allocated claim prevents scheduling: the caller deallocates it and tries the pod again.
    Deallocate(ClaimIndex),
    NotModelled(String),
}

/// The node chosen for a pod, with new allocations for its unallocated claims.
struct NodeChoice<'p> {
    node: NodeIndex,
    allocations: Vec<(ClaimIndex, Arc<ClaimAllocation<'p>>)>,
}

/// The claims of a pod during a scheduling attempt: which are allocated, and which the attempt must allocate.
pub(crate) struct PodClaims<'p> {
    /// Claims that need an allocation.
    pub(crate) unallocated: Vec<(ClaimIndex, ClaimWithoutAllocation<'p>)>,
    /// Claims that are already allocated.
    pub(crate) allocated: Vec<(ClaimIndex, Arc<ClaimAllocation<'p>>)>,
    /// Score of the allocated claims, which is added for each node.
    pub(crate) score: i64,
    /// True if `status.reservedFor` of one of the claims is full.
    is_in_use: bool,
}

fn unschedulable(message: String) -> PendingReason {
    PendingReason { condition: Some(("Unschedulable".to_owned(), message)), explanation: None }
}

fn scheduler_error(message: String) -> PendingReason {
    PendingReason { condition: Some(("SchedulerError".to_owned(), message)), explanation: None }
}

impl<'p> Simulation<'_, 'p> {
    /// Tries to schedule the pending pods for which something has changed.
    // upstream v1.37 DynamicResources.EventsToRegister
    pub(crate) fn schedule_pending_pods(&mut self) {
        loop {
            let waiting = self.pending_pods_by_priority().into_iter();
            let turn: Vec<PodIndex> = waiting.filter(|pod| self.should_try(*pod)).collect();
            self.retries_all = false;
            self.changed_claims.clear();
            if turn.is_empty() {
                return;
            }
            // What is needed by pods that found no node. While nothing is freed, others that need the same find none.
            let mut failed: Vec<(PodIndex, PendingReason)> = Vec::new();
            for pod in turn {
                let twin = failed.iter().find(|(other, _)| self.have_equal_requirements(pod, *other));
                if let Some((twin, pending)) = twin {
                    let pending = pending.clone();
                    if let Some(names) = self.uncertain.get(twin).cloned() {
                        self.uncertain.insert(pod, names);
                    }
                    self.pending.insert(pod, pending);
                    continue;
                }
                self.schedule_or_record_failure(pod, &mut failed);
            }
        }
    }

    /// Tries a pod again as long as an attempt deallocates one of its claims, and records the pod in `failed` if it
    /// stays pending.
    fn schedule_or_record_failure(&mut self, pod: PodIndex, failed: &mut Vec<(PodIndex, PendingReason)>) {
        // Each turn deallocates a claim.
        loop {
            match self.try_to_schedule(pod) {
                AttemptResult::Found(choice) => {
                    let unknown =
                        self.uncertain.get(&pod).map(|names| names.iter().copied().map(str::to_owned));
                    let unknown: Vec<String> = unknown.into_iter().flatten().collect();
                    if !unknown.is_empty() && !self.schedules_next_unknown_pod() {
                        self.not_modelled.insert(pod, unknown);
                        return;
                    }
                    self.bind(pod, &choice);
                    // The texts of those that find no node can be others from now on.
                    if self.occupancy.nodes().len() <= MIN_NODES_TO_SAMPLE {
                        failed.clear();
                    }
                }
                AttemptResult::Deallocate(claim) => {
                    self.deallocate(claim);
                    failed.clear();
                    continue;
                }
                AttemptResult::Pending(pending) => {
                    if pending.condition.as_ref().is_some_and(|(reason, _)| reason == "Unschedulable") {
                        failed.push((pod, pending.clone()));
                    }
                    self.pending.insert(pod, pending);
                }
                AttemptResult::NotModelled(what) => {
                    self.not_modelled.insert(pod, vec![what]);
                    self.pending.insert(pod, PendingReason::default());
                }
            }
            return;
        }
    }

    /// True if a pending pod should be tried. Pods that depend on a feature that is not simulated are not
    /// tried again.
    fn should_try(&self, pod: PodIndex) -> bool {
        if self.not_modelled.contains_key(&pod) {
            return false;
        }
        let Some(pending) = self.pending.get(&pod) else { return true };
        if self.retries_all {
            return true;
        }
        let entry = self.plan.tables.pod(pod);
        let mut claims = entry.references.iter().filter_map(|reference| reference.claim);
        !self.changed_claims.is_empty()
            // A missing claim has no condition, and one that is there and does not change does not help.
            && (pending.condition.is_some() && entry.spec.get("affinity").get("podAffinity").exists()
                || claims.any(|claim| self.changed_claims.contains(&claim)))
    }

    /// True if both pods have the same requirements and equal, unallocated claims, so that scheduling gives
    /// the same result.
    pub(crate) fn have_equal_requirements(&self, pod: PodIndex, other: PodIndex) -> bool {
        let (one, other) = (self.plan.tables.pod(pod), self.plan.tables.pod(other));
        let namespace = one.namespace;
        namespace == other.namespace
            && one.references.len() == other.references.len()
            && self.plan.catalog.are_scheduled_alike(one.needs, other.needs)
            && one.references.iter().zip(&other.references).all(|(one, other)| {
                let asked = self.spec_number_if_unallocated(namespace, one);
                asked.is_some() && asked == self.spec_number_if_unallocated(namespace, other)
            })
    }

    /// The number of the spec of the referenced claim, which is the same for equal specs; `None` if the claim is
    /// allocated or missing.
    fn spec_number_if_unallocated(&self, namespace: &str, reference: &ClaimReference<'p>) -> Option<u32> {
        let claim = reference.claim?;
        let stored = self.plan.tables.claim(claim).stored.as_ref();
        let (spec, is_allocated) = match self.claims.get(&claim) {
            Some(state) => (state.spec, state.allocation.is_some()),
            None => (stored.map(|claim| claim.spec), stored.is_some_and(|claim| claim.allocation.is_some())),
        };
        let templates = self.plan.eras.templates_in(self.devices.era);
        let made = || templates.get(&(namespace, reference.template?)).copied();
        spec.or_else(made).filter(|_| !is_allocated).map(|spec| spec.number)
    }

    /// One attempt to schedule a pod.
    fn try_to_schedule(&mut self, pod: PodIndex) -> AttemptResult<'p> {
        let plan = self.plan;
        let entry = plan.tables.pod(pod);
        if !plan.catalog.pod_needs(entry.needs).scheduling_gates.is_empty() {
            let message = "Scheduling is blocked due to non-empty scheduling gates".to_owned();
            let condition = Some(("SchedulingGated".to_owned(), message));
            return AttemptResult::Pending(PendingReason { condition, explanation: None });
        }
        let claims = match self.read_pod_claims(pod, entry) {
            Ok(claims) => claims,
            Err(missing) => {
                return AttemptResult::Pending(PendingReason { condition: None, explanation: Some(missing) });
            }
        };
        if self.occupancy.nodes().is_empty() {
            return AttemptResult::Pending(unschedulable(NO_NODES.to_owned()));
        }
        self.find_node(pod, entry, &claims)
    }

    /// The claims of a pod. Returns an error message if a claim is missing.
    // upstream v1.37 DynamicResources.PreEnqueue
    pub(crate) fn read_pod_claims(
        &mut self,
        pod: PodIndex,
        entry: &'p PodEntry<'p>,
    ) -> Result<PodClaims<'p>, String> {
        let plan = self.plan;
        let templates = plan.eras.templates_in(self.devices.era);
        let (mut unallocated, mut allocated) = (Vec::new(), Vec::new());
        let (mut score, mut is_in_use) = (0, false);
        for reference in &entry.references {
            let Some(claim) = reference.claim else { continue };
            let known = plan.tables.claim(claim);
            let state = self.claim_state_mut(claim);
            if state.spec.is_none()
                && let Some(template) = reference.template.filter(|_| known.is_generated)
            {
                state.spec = templates.get(&(entry.namespace, template)).copied();
                if state.spec.is_none() {
                    return Err(format!("ResourceClaimTemplate {template} does not exist."));
                }
            }
            let Some(spec) = state.spec else {
                return Err(format!("ResourceClaim {} does not exist.", known.name));
            };
            if let Some(held) = &state.allocation {
                score += held.score_by_chosen_alternatives(spec.spec);
                let is_reserved = state.reserved.contains(&Consumer::Pod(pod));
                is_in_use |= !is_reserved && state.reserved.len() >= MAX_CONSUMERS;
                allocated.push((claim, Arc::clone(held)));
            } else {
                let asked = ClaimWithoutAllocation { namespace: entry.namespace, name: &known.name, spec };
                unallocated.push((claim, asked));
            }
        }
        Ok(PodClaims { unallocated, allocated, score, is_in_use })
    }

    /// Filters and scores the nodes for a pod whose claims exist, and chooses one of the best.
    fn find_node(
        &mut self,
        pod: PodIndex,
        entry: &'p PodEntry<'p>,
        claims: &PodClaims<'p>,
    ) -> AttemptResult<'p> {
        let plan = self.plan;
        let semantics = &plan.release.semantics;
        let era = self.devices.era;
        let (fits, classes) = (self.node_fits(), plan.eras.classes_in(era));
        let nodes = self.occupancy.nodes().len();
        let rejected = |text: &str| {
            AttemptResult::Pending(unschedulable(prefilter_rejection_message(semantics, nodes, text)))
        };
        let cycle = match SchedulingCycle::start(&self.occupancy, fits, &classes.delegated, entry.needs) {
            Ok(cycle) => cycle,
            Err(text) => return rejected(text),
        };
        if claims.is_in_use {
            return rejected(CLAIM_IN_USE);
        }
        let mut filter = DeviceFilter {
            devices: &mut self.devices,
            cache: self.cache,
            pod,
            entry,
            claims,
            claim_set: None,
            has_extended: plan.extended.needs_claim(pod, era.classes),
            noted: None,
            uncertain: &mut self.uncertain,
        };
        if !claims.unallocated.is_empty() {
            let asked: Vec<ClaimWithoutAllocation<'p>> =
                claims.unallocated.iter().map(|(_, asked)| *asked).collect();
            let claim_set = filter.cache.claim_set_index(era, &asked);
            if let Some(reason) = filter.cache.rejection_on_all_nodes(claim_set) {
                return rejected(&reason.to_string());
            }
            filter.claim_set = Some(claim_set);
        }
        let wanted = feasible_nodes_to_find(cycle.candidate_count());
        let mut diagnosis = Diagnosis::default();
        let (mut feasible, mut scores, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let mut elsewhere: BTreeSet<ClaimIndex> = BTreeSet::new();
        let mut looked_at = 0;
        for node in cycle.candidates(self.start) {
            looked_at += 1;
            if let Err(rejection) = cycle.check_node_without_devices(node) {
                diagnosis.add(node, &rejection);
                continue;
            }
            match filter.check_devices(node, &cycle) {
                DeviceVerdict::Fits(allocations, score) => {
                    feasible.push(node);
                    scores.push(score);
                    found.push(allocations);
                }
                DeviceVerdict::Rejected(text) => diagnosis.add_node_rejected_with_message(text),
                DeviceVerdict::ClaimElsewhere(claims) => {
                    elsewhere.extend(claims);
                    diagnosis.add_node_rejected_with_message(
                        UnschedulableReason::ClaimElsewhere.scheduler_message(),
                    );
                }
                DeviceVerdict::Failed(message) => return AttemptResult::Pending(scheduler_error(message)),
                DeviceVerdict::NotModelled(what) => return AttemptResult::NotModelled(what),
            }
            if feasible.len() >= wanted {
                break;
            }
        }
        self.start = (self.start + looked_at) % cycle.candidate_count().max(1);
        if let Some(best) = choose_node(&cycle, &feasible, &scores, &mut self.random)
            && let (Some(node), Some(allocations)) = (feasible.get(best), found.get(best))
        {
            return AttemptResult::Found(NodeChoice {
                node: *node,
                allocations: filter.allocations_by_claim(allocations),
            });
        }
        let has_claims =
            filter.has_extended || !claims.unallocated.is_empty() || !claims.allocated.is_empty();
        let possible = cycle.preemption_candidates(&diagnosis).into_iter();
        let mut possible: Vec<_> = possible
            .filter_map(|node| match filter.check_devices(node, &cycle) {
                DeviceVerdict::Fits(allocations, _) => {
                    Some((node, filter.allocations_by_claim(&allocations)))
                }
                _ => None,
            })
            .collect();
        if !possible.is_empty() {
            let (node, allocations) = possible.swap_remove(self.random.number_below(possible.len()));
            self.record_preemption(pod, node);
            return AttemptResult::Found(NodeChoice { node, allocations });
        }
        let texts = diagnosis.message_counts(&plan.catalog, cycle.excluded_nodes_message());
        let mut elsewhere: Vec<ClaimIndex> = elsewhere.into_iter().collect();
        while !elsewhere.is_empty() {
            let claim = elsewhere.swap_remove(self.random.number_below(elsewhere.len()));
            if self.claim_state_mut(claim).reserved.iter().all(|consumer| *consumer == Consumer::Pod(pod)) {
                return AttemptResult::Deallocate(claim);
            }
        }
        let post_filter =
            if has_claims { PostFilterResult::NothingChanged } else { PostFilterResult::NoClaims };
        AttemptResult::Pending(unschedulable(unschedulable_message(semantics, nodes, &texts, post_filter)))
    }

    /// Records that the outcomes of a pod and of reported pods of lower priority on a node depend on preemption.
    fn record_preemption(&mut self, pod: PodIndex, node: NodeIndex) {
        let plan = self.plan;
        let name = self.occupancy.nodes().get(node).node.name;
        let priority = |pod: PodIndex| plan.needs_of(pod).priority;
        let own = priority(pod);
        let is_victim = |other: &PodIndex| {
            let is_lower = own.zip(priority(*other)).is_none_or(|(own, other)| other < own);
            is_lower && self.state_of(*other) == PodState::Bound(name)
        };
        let tracked = plan.tracked.iter().filter_map(|tracked| tracked.pod);
        let victims: Vec<PodIndex> = tracked.filter(is_victim).collect();
        for pod in victims.into_iter().chain([pod]) {
            self.uncertain.entry(pod).or_default().insert("preemption");
        }
    }

    /// Binds a pod to the chosen node.
    fn bind(&mut self, pod: PodIndex, choice: &NodeChoice<'p>) {
        let plan = self.plan;
        let entry = plan.tables.pod(pod);
        let node = self.occupancy.nodes().get(choice.node).node.name;
        for (claim, held) in &choice.allocations {
            self.set_allocation(*claim, held);
        }
        let (mut waits, mut cannot_join) = (false, false);
        for claim in entry.claims_of_pod() {
            let is_new = choice.allocations.iter().any(|(new, _)| *new == claim);
            let state = self.claim_state_mut(claim);
            let Some(held) = &state.allocation else { continue };
            waits |= held.waits_for_driver;
            cannot_join |= !is_new && !held.has_timestamp && !state.reserved.contains(&Consumer::Pod(pod));
        }
        if cannot_join && plan.has_timestamps && plan.release.semantics.features.binding_conditions {
            // The scheduler adds the missing timestamp together with the reservation, which the API server refuses.
            for (claim, _) in &choice.allocations {
                self.deallocate(*claim);
            }
            let message = "running PreBind plugin \"DynamicResources\": the allocation of a claim has no timestamp: \
                           field is immutable";
            self.pending.insert(pod, scheduler_error(message.to_owned()));
            return;
        }
        for claim in entry.claims_of_pod() {
            let state = self.claim_state_mut(claim);
            let consumer = Consumer::Pod(pod);
            if state.allocation.is_some() && !state.reserved.contains(&consumer) {
                state.reserved.push(consumer);
            }
        }
        self.changed_claims.extend(entry.claims_of_pod());
        self.occupancy.add_pod(choice.node, entry.needs);
        self.leave_queue(pod);
        self.set_state(pod, if waits { PodState::Binding(node) } else { PodState::Bound(node) });
        if waits {
            let explanation = "The devices are allocated, but their driver has not prepared them yet.";
            let pending = PendingReason { condition: None, explanation: Some(explanation.to_owned()) };
            self.pending.insert(pod, pending);
        } else {
            self.pending.remove(&pod);
            self.record_eviction_time(pod);
        }
    }
}

/// Returns a random node among those with the highest score, as an index into `feasible`.
fn choose_node(
    cycle: &SchedulingCycle<'_, '_, '_>,
    feasible: &[NodeIndex],
    devices: &[i64],
    random: &mut crate::random::Random,
) -> Option<usize> {
    if feasible.len() < 2 {
        return (!feasible.is_empty()).then_some(0);
    }
    let scores = cycle.total_scores(feasible, Some(devices));
    let best = scores.iter().max()?;
    let places: Vec<usize> =
        scores.iter().enumerate().filter(|(_, score)| *score == best).map(|(place, _)| place).collect();
    places.get(random.number_below(places.len())).copied()
}
