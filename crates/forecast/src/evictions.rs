//! The evictions in a simulated run: which pods are evicted, what they occupy until they are gone, and when they are
//! replaced.
//!
//! A deleted pod stays on its node until its grace period is over. During this time it uses resources, its devices
//! are in use, and its claims by name stay allocated. Some controllers replace it before it is gone, some after. It
//! is not known how early a kubelet ends a pod, so every pod is assumed to use its whole grace period.
//!
//! Invariant: the resources of a pod are released exactly once, when it is gone.

use crate::claims::Consumer;
use crate::course::{PodState, Simulation};
use crate::forecast::FinalPodState;
use crate::held::ClaimAllocation;
use crate::nodes::PodId;
use crate::outcome::EvictedPod;
use crate::plan::Plan;
use crate::tables::{PodIndex, RecreatingController};
use std::sync::Arc;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::Timestamp;

/// After this number of evictions, a pod that returns to an earlier placement, or has no grace period, is considered
/// to be evicted forever.
const MAX_EVICTIONS_SAME_PLACEMENT: u32 = 2;

/// After this number of evictions, a pod is considered to be evicted forever, even if its last placement is a new one
/// because the pods that it replaced still held the other devices.
const MAX_EVICTIONS_NEW_PLACEMENTS: u32 = 16;

/// Seconds that a Job waits before it replaces a failed pod.
// upstream v1.37 job.DefaultJobPodFailureBackOff
const JOB_BACKOFF_SECONDS: i64 = 10;

/// Default `terminationGracePeriodSeconds`, as set by the API server.
const DEFAULT_GRACE_PERIOD: i64 = 30;

/// The time of events that do not happen in a run, in seconds: the end of a pod whose kubelet does not answer, and
/// what waits for it.
const NEVER: i64 = i64::MAX;

/// A pod whose grace period has not ended, and the devices that it holds until then.
#[derive(Debug)]
pub(crate) struct PendingDeletion<'p> {
    /// The time at which the pod is gone.
    at: Timestamp,
    /// How often the pod was evicted after it was bound in this run. Of deletions that end at the same time, those
    /// with lower rounds end first.
    round: u32,
    pod: PodIndex,
    node: Option<&'p str>,
    /// The catalog entry with which the pod counts on its node during its deletion.
    needs: PodId,
    /// The consumer that represents the pod in its reserved claims. Its replacement can have the same pod
    /// index.
    consumer: Consumer,
    /// Allocations of the claims generated for the pod, which are deleted with it.
    held: Vec<Arc<ClaimAllocation<'p>>>,
}

/// The evictions of a pod that was bound in this simulated run.
#[derive(Default, Debug)]
pub(crate) struct EvictionHistoryOfPod {
    pub(crate) times: u32,
    /// The placement of the pod before each of its evictions.
    pub(crate) placements: Vec<FinalPodState>,
    /// True if the pod will be evicted again and again.
    pub(crate) is_endless: bool,
}

/// Seconds from the deletion of a pod with this spec until it is gone.
pub fn grace_period(spec: Value<'_>) -> i64 {
    spec.get("terminationGracePeriodSeconds").int().unwrap_or(DEFAULT_GRACE_PERIOD).max(0)
}

impl Plan<'_> {
    /// Adds a second catalog entry for each pod that can be evicted, with which it counts on its node during deletion.
    pub(crate) fn add_terminating_catalog_entries(&mut self) {
        let evicted = self.evictions.iter().map(|eviction| eviction.pod);
        let tracked = self.tracked.iter().filter_map(|tracked| tracked.pod);
        for pod in evicted.chain(tracked) {
            let entry = self.tables.pod_mut(pod);
            if grace_period(entry.spec) > 0 {
                entry.terminating = self.catalog.add_terminating_copy_of_pod(entry.needs);
            }
        }
    }
}

impl<'p> Simulation<'_, 'p> {
    /// The next time at which a deletion ends or a delayed pod is created.
    pub(crate) fn time_of_next_deletion_end_or_creation(&self) -> Option<Timestamp> {
        let gone = self.deletions.iter().map(|deletion| deletion.at);
        gone.chain(self.later.iter().map(|(at, _)| *at)).filter(|at| at.seconds < NEVER).min()
    }

    /// Evicts the pods that are due, and returns the pods that controllers create now.
    pub(crate) fn evict_due_pods_and_list_pods_to_create(&mut self) -> Vec<PodIndex> {
        let now = self.now;
        self.end_due_deletions_of_lowest_round();
        let (mut new, later): (Vec<_>, Vec<_>) = self.later.drain(..).partition(|(at, _)| *at <= now);
        self.later = later;
        while let Some(eviction) = self.plan.evictions.get(self.next_eviction) {
            if eviction.stage > self.stage || eviction.at > now {
                break;
            }
            self.next_eviction += 1;
            if !self.is_bound(eviction.pod) {
                continue;
            }
            let gone = self.start_deletion(eviction.pod);
            let entry = self.plan.tables.pod(eviction.pod);
            let (namespace, name) = (entry.namespace.to_owned(), entry.name.clone());
            self.evicted.push(EvictedPod { at: eviction.at, namespace, name });
            if let Some(replacement) = eviction.replacement {
                self.apply_eviction_to_job(replacement);
                new.push((self.replacement_time(replacement, gone), replacement));
            }
        }
        let (due, later): (Vec<_>, Vec<_>) = self.due.drain(..).partition(|(time, _)| *time <= now);
        self.due = later;
        for (_, pod) in due {
            new.extend(self.evict_bound_pod_returning_replacement(pod));
        }
        self.delete_pods_of_failed_jobs();
        new.retain(|(_, pod)| !self.is_given_up_by_job(*pod));
        let (new, later): (Vec<_>, Vec<_>) = new.into_iter().partition(|(at, _)| *at <= now);
        self.later.extend(later);
        new.into_iter().map(|(_, pod)| pod).collect()
    }

    /// Evicts a pod that was bound in this run. Returns its replacement and the time of its creation.
    fn evict_bound_pod_returning_replacement(&mut self, pod: PodIndex) -> Option<(Timestamp, PodIndex)> {
        let place = self.final_state(pod);
        let entry = self.plan.tables.pod(pod);
        let evictions = self.evictions.entry(pod).or_default();
        evictions.times += 1;
        // A pod that is gone at once finds everything as it was.
        let is_back = grace_period(entry.spec) == 0 || evictions.placements.contains(&place);
        evictions.placements.push(place);
        let is_replaced = entry.controller != RecreatingController::None;
        let limit = if is_back { MAX_EVICTIONS_SAME_PLACEMENT } else { MAX_EVICTIONS_NEW_PLACEMENTS };
        if is_replaced && evictions.times >= limit {
            // Most of the time it has the devices.
            evictions.is_endless = true;
            return None;
        }
        let gone = self.start_deletion(pod);
        self.apply_eviction_to_job(pod);
        is_replaced.then(|| (self.replacement_time(pod, gone), pod))
    }

    /// The time at which the controller creates the replacement of a pod that is deleted now and gone at
    /// `gone`.
    fn replacement_time(&self, replacement: PodIndex, gone: Timestamp) -> Timestamp {
        match &self.plan.tables.pod(replacement).controller {
            RecreatingController::WhenGone => gone,
            RecreatingController::Job(job) => {
                let waits = self.jobs.get(*job).is_some_and(|job| job.replaces_when_gone);
                let failed = if waits { gone } else { self.now };
                Timestamp { seconds: failed.seconds.saturating_add(JOB_BACKOFF_SECONDS), ..failed }
            }
            _ => self.now,
        }
    }

    /// Starts the deletion of a pod. Returns the time at which its grace period ends and the pod is gone.
    pub(crate) fn start_deletion(&mut self, pod: PodIndex) -> Timestamp {
        let now = self.now;
        let entry = self.plan.tables.pod(pod);
        let (node, grace_period) = match self.state_of(pod) {
            PodState::Bound(node) => (Some(node), grace_period(entry.spec)),
            // No kubelet has it yet.
            PodState::Binding(node) => (Some(node), 0),
            _ => (None, 0),
        };
        self.set_state(pod, PodState::Gone);
        self.leave_queue(pod);
        let seconds = if entry.never_ends { NEVER } else { now.seconds.saturating_add(grace_period) };
        let at = Timestamp { seconds, ..now };
        let mut deletion = PendingDeletion {
            at,
            round: self.evictions.get(&pod).map_or(0, |evictions| evictions.times),
            pod,
            node,
            needs: entry.needs,
            consumer: Consumer::Pod(pod),
            held: Vec::new(),
        };
        for claim in entry.claims_of_pod() {
            if self.plan.tables.claim(claim).is_generated {
                let state = std::mem::take(self.claim_state_mut(claim));
                deletion.held.extend(state.allocation);
            }
        }
        if grace_period == 0 {
            self.end_deletion(&deletion);
            return now;
        }
        deletion.consumer = Consumer::Deleted(self.deletion_count);
        self.deletion_count += 1;
        for claim in entry.claims_of_pod() {
            let mut reserved = self.claim_state_mut(claim).reserved.iter_mut();
            if let Some(consumer) = reserved.find(|consumer| **consumer == Consumer::Pod(pod)) {
                *consumer = deletion.consumer;
            }
        }
        if let Some(node) = node.and_then(|node| self.occupancy.nodes().find(node))
            && self.occupancy.remove_pod(node, entry.needs)
        {
            self.occupancy.add_pod(node, entry.terminating);
            deletion.needs = entry.terminating;
        }
        self.deletions.push(deletion);
        at
    }

    /// Ends the deletions that are due. Those of later rounds wait for the next call.
    fn end_due_deletions_of_lowest_round(&mut self) {
        let now = self.now;
        let due = self.deletions.iter().filter(|deletion| deletion.at <= now);
        let Some(round) = due.map(|deletion| deletion.round).min() else { return };
        let is_ended = |deletion: &mut PendingDeletion<'p>| deletion.at <= now && deletion.round == round;
        let ended: Vec<PendingDeletion<'p>> = self.deletions.extract_if(.., is_ended).collect();
        for deletion in ended {
            self.end_deletion(&deletion);
        }
    }

    /// Ends a deletion: the pod leaves its node, its generated claims are deleted, and other claims are
    /// deallocated if no other consumer has reserved them.
    // upstream v1.37 resourceclaim Controller.syncClaim
    fn end_deletion(&mut self, deletion: &PendingDeletion<'p>) {
        if let Some(node) = deletion.node.and_then(|node| self.occupancy.nodes().find(node)) {
            self.occupancy.remove_pod(node, deletion.needs);
            self.retries_all = true;
        }
        for held in &deletion.held {
            self.devices.set_held(self.cache, held, false);
            self.retries_all = true;
        }
        for claim in self.plan.tables.pod(deletion.pod).claims_of_pod() {
            let reserved = &mut self.claim_state_mut(claim).reserved;
            let before = reserved.len();
            reserved.retain(|consumer| *consumer != deletion.consumer);
            if before > 0 && reserved.is_empty() {
                self.deallocate(claim);
            }
        }
    }

    /// Records the devices of pods that are being deleted as held, after the devices have changed.
    pub(crate) fn hold_devices_of_terminating_pods(&mut self) {
        for held in self.deletions.iter().flat_map(|deletion| &deletion.held) {
            self.devices.set_held(self.cache, held, true);
        }
    }
}
