//! One simulated run: the changes to pods and claims at each stage, and between stages as time advances.
//!
//! After every change, pods that are due are evicted, controllers create new pods, and the scheduler tries all
//! pending pods, by priority and then by waiting time.

#![allow(clippy::indexing_slicing, reason = "the indices of pods and eras are places in their lists")]

use crate::allocations::{AllocationCache, SimulatedDevices};
use crate::claims::ClaimState;
use crate::device_forecast::DeviceStatesAfterRun;
use crate::eras::EraIndexOfEachKind;
use crate::evictions::{EvictionHistoryOfPod, PendingDeletion};
use crate::forecast::{FinalPodState, PendingReason, PodRunResult, RunOutcome};
use crate::job_policy::Job;
use crate::nodes::{NodeFitCache, Occupancy};
use crate::outcome::EvictedPod;
use crate::plan::{Plan, PodOrClaimChange, Stage};
use crate::player::RunSimulator;
use crate::random::Random;
use crate::stateful_sets::EvictionRoundByReplacement;
use crate::tables::{ClaimIndex, PodIndex, RecreatingController};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tollgate_formats::gotime::Timestamp;

/// The state of a pod in a simulated run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PodState<'p> {
    /// The pod is not created yet in this run.
    Absent,
    /// Its StatefulSet creates the pod later, after its predecessors are ready.
    HeldBack,
    Waiting,
    /// The scheduler has chosen this node, but a driver must prepare devices before the pod is bound.
    Binding(&'p str),
    Bound(&'p str),
    /// The pod was deleted or evicted.
    Gone,
}

/// The state of one simulated run (course) of a plan: time, pods, claims and devices.
pub(crate) struct Simulation<'a, 'p> {
    pub(crate) plan: &'p Plan<'p>,
    pub(crate) fits: &'a [NodeFitCache<'p, 'p>],
    pub(crate) cache: &'a mut AllocationCache<'p>,
    pub(crate) random: Random,
    pub(crate) occupancy: Occupancy<'p, 'p>,
    pub(crate) devices: SimulatedDevices<'p>,
    pub(crate) claims: BTreeMap<ClaimIndex, ClaimState<'p>>,
    pub(crate) pods: Vec<PodState<'p>>,
    /// Why pods are not bound, according to their last scheduling attempt.
    pub(crate) pending: HashMap<PodIndex, PendingReason, RandomState>,
    /// Features that are not simulated, for pods that are not scheduled in this run because of them.
    pub(crate) not_modelled: HashMap<PodIndex, Vec<String>, RandomState>,
    /// Features that are not simulated, for pods that are scheduled without them.
    pub(crate) uncertain: HashMap<PodIndex, BTreeSet<&'static str>, RandomState>,
    /// Index of the node at which the next scheduling attempt starts.
    pub(crate) start: usize,
    /// True if all pending pods must be tried again, because resources were freed or objects changed.
    pub(crate) retries_all: bool,
    /// Claims that have changed. Pending pods that refer to them are tried again.
    pub(crate) changed_claims: BTreeSet<ClaimIndex>,
    /// The pending pods, in the order in which they became pending.
    pub(crate) queue: Vec<PodIndex>,
    /// Eviction times of the pods that were bound in this run.
    pub(crate) due: Vec<(Timestamp, PodIndex)>,
    /// Pods whose grace period has not ended.
    pub(crate) deletions: Vec<PendingDeletion<'p>>,
    /// Number of deletions with a grace period so far.
    pub(crate) deletion_count: usize,
    /// Pods that controllers will create later, with the time.
    pub(crate) later: Vec<(Timestamp, PodIndex)>,
    pub(crate) now: Timestamp,
    pub(crate) stage: usize,
    pub(crate) next_eviction: usize,
    pub(crate) jobs: Vec<Job>,
    /// Number of evictions of pods of Jobs with a limit for each index.
    pub(crate) evictions_of_index: BTreeMap<PodIndex, i64>,
    pub(crate) evicted: Vec<EvictedPod>,
    /// For each reported pod, the evictions after it was bound in this run.
    pub(crate) evictions: BTreeMap<PodIndex, EvictionHistoryOfPod>,
    /// The order of evictions, where it matters to StatefulSets.
    pub(crate) rounds: EvictionRoundByReplacement,
    /// Whether the pods whose outcome is not known are scheduled in this run.
    unknown_pods: ScheduledUnknownPods,
    /// True if slices of one pool that contradict each other are used in reverse order.
    reverses_slices: bool,
}

/// Which of the pods whose outcome is not known are scheduled in a simulated run, as far as they can be. A pod that
/// competes with them then has an outcome that is not certain, unless it is the same with and without them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScheduledUnknownPods {
    All,
    None,
    /// Each of them at random.
    Random,
}

impl ScheduledUnknownPods {
    fn in_course(course: u32) -> ScheduledUnknownPods {
        match course % 4 {
            0 => ScheduledUnknownPods::All,
            1 => ScheduledUnknownPods::None,
            _ => ScheduledUnknownPods::Random,
        }
    }
}

/// The eras of a stage. With `reverses_slices`, the device era is the one with contradicting slices in reverse order.
fn era_of(plan: &Plan<'_>, stage: &Stage<'_>, reverses_slices: bool) -> EraIndexOfEachKind {
    let other = plan.eras.reversed_slices.get(&stage.era.devices).filter(|_| reverses_slices);
    EraIndexOfEachKind { devices: other.copied().unwrap_or(stage.era.devices), ..stage.era }
}

impl<'a, 'p> Simulation<'a, 'p> {
    /// Simulates one run from beginning to end.
    pub(crate) fn simulate_run(player: &'a mut RunSimulator<'p>, course: u32) -> RunOutcome {
        let plan = player.plan;
        let mut random = Random::new(plan.settings.seed, course);
        let reverses_slices = random.number_below(2) == 1;
        let first = era_of(plan, &plan.stages[0], reverses_slices);
        let mut pods = vec![PodState::Absent; plan.tables.pods.len()];
        for &(pod, node) in &plan.bound {
            pods[pod] = PodState::Bound(node);
        }
        let start = random.number_below(plan.eras.nodes_in(first).len());
        let rounds = plan.random_eviction_rounds(&mut random);
        let mut simulation = Simulation {
            plan,
            fits: &player.fits,
            cache: &mut player.cache,
            random,
            occupancy: player.occupancy.clone(),
            devices: SimulatedDevices::new(plan, first),
            claims: BTreeMap::new(),
            pods,
            pending: HashMap::default(),
            not_modelled: HashMap::default(),
            uncertain: HashMap::default(),
            start,
            retries_all: true,
            changed_claims: BTreeSet::new(),
            queue: Vec::new(),
            due: Vec::new(),
            deletions: Vec::new(),
            deletion_count: 0,
            later: Vec::new(),
            now: plan.settings.now,
            stage: 0,
            next_eviction: 0,
            jobs: plan.controllers.jobs.clone(),
            evictions_of_index: BTreeMap::new(),
            evicted: Vec::new(),
            evictions: BTreeMap::new(),
            rounds,
            unknown_pods: ScheduledUnknownPods::in_course(course),
            reverses_slices,
        };
        for tracked in plan.tracked.iter().filter(|tracked| !tracked.not_modelled.is_empty()) {
            if let Some(pod) = tracked.pod.filter(|_| !simulation.schedules_next_unknown_pod()) {
                simulation.not_modelled.insert(pod, tracked.not_modelled.clone());
            }
        }
        for &pod in &plan.waiting {
            simulation.create_or_hold_back_pod(pod);
        }
        for (number, stage) in plan.stages.iter().enumerate() {
            if number > 0 {
                simulation.advance_time_and_process_events(Some(stage.at));
            }
            simulation.enter_stage(number, stage);
        }
        simulation.advance_time_and_process_events(None);
        if simulation.should_explain_run(course) {
            simulation.explain_unschedulable_pods();
        }
        simulation.into_run_outcome()
    }

    /// The state of a pod.
    pub(crate) fn state_of(&self, pod: PodIndex) -> PodState<'p> {
        self.pods[pod]
    }

    pub(crate) fn set_state(&mut self, pod: PodIndex, state: PodState<'p>) {
        self.pods[pod] = state;
    }

    /// True if the pod is bound to a node.
    pub(crate) fn is_bound(&self, pod: PodIndex) -> bool {
        matches!(self.state_of(pod), PodState::Bound(_))
    }

    /// The cached filter results of the nodes that exist now.
    pub(crate) fn node_fits(&self) -> &'a NodeFitCache<'p, 'p> {
        &self.fits[self.devices.era.nodes]
    }

    /// Decides whether a pod whose outcome is not known is scheduled in this run.
    pub(crate) fn schedules_next_unknown_pod(&mut self) -> bool {
        match self.unknown_pods {
            ScheduledUnknownPods::All => true,
            ScheduledUnknownPods::None => false,
            ScheduledUnknownPods::Random => self.random.number_below(2) == 0,
        }
    }

    /// Enters the next stage of the plan: sets the time, and replaces nodes and devices if the stage changes them.
    fn enter_stage(&mut self, number: usize, stage: &'p Stage<'p>) {
        self.stage = number;
        self.now = stage.at;
        let before = self.devices.era;
        let era = era_of(self.plan, stage, self.reverses_slices);
        if before != era {
            self.retries_all = true;
            if before.nodes != era.nodes {
                self.occupancy = self.occupancy.with_nodes(self.plan.eras.nodes_in(era));
                self.start = 0;
            }
            self.devices = SimulatedDevices::new(self.plan, era);
            for (claim, state) in &self.claims {
                let stored = self.plan.tables.claim(*claim).stored.as_ref();
                let stored = stored.and_then(|claim| claim.allocation.as_ref());
                if stored.map(Arc::as_ptr) == state.allocation.as_ref().map(Arc::as_ptr) {
                    continue;
                }
                if let Some(held) = stored {
                    self.devices.set_held(self.cache, held, false);
                }
                if let Some(held) = &state.allocation {
                    self.devices.set_held(self.cache, held, true);
                }
            }
            self.hold_devices_of_terminating_pods();
            let tracked = self.plan.tracked.iter().filter_map(|tracked| tracked.pod);
            let placed: Vec<PodIndex> = tracked.filter(|pod| self.is_bound(*pod)).collect();
            self.due.clear();
            for pod in placed {
                self.record_eviction_time(pod);
            }
        }
        for action in &stage.actions {
            self.apply_action(action);
        }
        self.evict_create_and_schedule_until_stable();
    }

    /// Carries out an action of a stage on a pod or claim.
    fn apply_action(&mut self, action: &PodOrClaimChange<'p>) {
        match action {
            PodOrClaimChange::CreatePod(pod) => {
                let named =
                    self.plan.reported_pod(*pod).and_then(|pod| Some((&pod.namespace, pod.name.as_ref()?)));
                let same = named.and_then(|(namespace, name)| self.find_existing_pod(namespace, name));
                match same {
                    // An update of a pod does not move it.
                    Some(other) if other != *pod => self.report_placement_of_existing(*pod, other),
                    _ => self.create_or_hold_back_pod(*pod),
                }
            }
            PodOrClaimChange::DeletePod { namespace, name } => {
                if let Some(pod) = self.find_existing_pod(namespace, name) {
                    // Nobody makes it again.
                    self.start_deletion(pod);
                }
            }
            PodOrClaimChange::ApplyClaim(claim, spec) => {
                self.claim_state_mut(*claim).spec = Some(*spec);
                self.changed_claims.insert(*claim);
            }
            PodOrClaimChange::DeleteClaim(claim) => {
                let state = self.claim_state_mut(*claim);
                // A claim that is in use stays until it is not.
                if state.reserved.is_empty() {
                    state.spec = None;
                    self.deallocate(*claim);
                }
            }
        }
    }

    /// The existing pod with this name.
    fn find_existing_pod(&self, namespace: &str, name: &str) -> Option<PodIndex> {
        let is_alive = |pod: PodIndex| !matches!(self.state_of(pod), PodState::Absent | PodState::Gone);
        let stored = self.plan.tables.by_name.get(&(namespace, name)).copied().filter(|pod| is_alive(*pod));
        stored.or_else(|| {
            // Names that are not known are not compared.
            let named =
                self.plan.tracked.iter().filter(|tracked| {
                    tracked.namespace == namespace && tracked.name.as_deref() == Some(name)
                });
            named.filter_map(|tracked| tracked.pod).find(|pod| is_alive(*pod))
        })
    }

    /// Handles an applied pod that already exists: the report for `pod` shows the placement of `other`, the existing
    /// pod.
    fn report_placement_of_existing(&mut self, pod: PodIndex, other: PodIndex) {
        let end = self.final_state(other);
        if matches!(end, FinalPodState::Bound(_)) {
            let history = EvictionHistoryOfPod { placements: vec![end], ..EvictionHistoryOfPod::default() };
            self.evictions.insert(pod, history);
            self.set_state(pod, PodState::Gone);
        }
    }

    /// Creates a pod. It becomes pending, unless its spec names a node.
    pub(crate) fn create_or_hold_back_pod(&mut self, pod: PodIndex) {
        let entry = self.plan.tables.pod(pod);
        let node = self.plan.catalog.pod_needs(entry.needs).node_name;
        let state = if self.waits_for_predecessors(pod) {
            PodState::HeldBack
        } else if node.is_empty() {
            self.queue.push(pod);
            PodState::Waiting
        } else {
            if let Some(index) = self.occupancy.nodes().find(node) {
                self.occupancy.add_pod(index, entry.needs);
            }
            PodState::Bound(node)
        };
        self.set_state(pod, state);
    }

    /// Records the time at which a pod that was bound in this run is evicted.
    pub(crate) fn record_eviction_time(&mut self, pod: PodIndex) {
        let taints = &self.plan.eras.devices_in(self.devices.era).taints;
        let of_node = match self.state_of(pod) {
            PodState::Bound(node) => self.plan.node_taint_eviction_time(pod, node, self.stage),
            _ => None,
        };
        let times = self.plan.tables.pod(pod).references.iter().filter_map(|reference| {
            let held = self.claim_state_mut(reference.claim?).allocation.clone()?;
            held.eviction_time(taints, self.plan.release.profile)
        });
        if let Some(time) = times.chain(of_node).min() {
            self.due.push((time, pod));
        }
    }

    /// Advances the time to `until`, or until no further event happens.
    fn advance_time_and_process_events(&mut self, until: Option<Timestamp>) {
        while let Some(next) = self.next_event_time(until) {
            self.now = self.now.max(next);
            self.evict_create_and_schedule_until_stable();
        }
    }

    /// The time of the next event before `until`.
    fn next_event_time(&self, until: Option<Timestamp>) -> Option<Timestamp> {
        let stored = self.plan.evictions.get(self.next_eviction);
        let stored = stored.filter(|eviction| eviction.stage <= self.stage).map(|eviction| eviction.at);
        let next = self.due.iter().map(|(time, _)| *time).chain(stored);
        let next = next.chain(self.time_of_next_deletion_end_or_creation()).min();
        next.filter(|next| until.is_none_or(|until| *next < until))
    }

    /// Runs evictions, controllers and the scheduler until nothing changes any more.
    fn evict_create_and_schedule_until_stable(&mut self) {
        loop {
            let new = self.evict_due_pods_and_list_pods_to_create();
            self.create_in_random_order(new);
            self.schedule_pending_pods();
            while self.create_ready_held_back_pods() {
                self.schedule_pending_pods();
            }
            let now = self.now;
            if self.next_event_time(None).is_none_or(|next| next > now) {
                return;
            }
        }
    }

    /// Creates pods. Controllers that wait until the old pod is gone come last. Otherwise the order of
    /// workloads is random, because controllers work concurrently.
    fn create_in_random_order(&mut self, new: Vec<PodIndex>) {
        let mut workloads: Vec<(Option<&str>, Vec<PodIndex>)> = Vec::new();
        for pod in new {
            let tracked = self.plan.reported_pod(pod);
            let workload =
                tracked.and_then(|pod| pod.workload.as_ref()).map(|workload| workload.name.as_str());
            match workloads.iter_mut().find(|(name, _)| name.is_some() && *name == workload) {
                Some((_, pods)) => pods.push(pod),
                None => workloads.push((workload, vec![pod])),
            }
        }
        let mut drawn: Vec<(bool, u64, PodIndex)> = Vec::new();
        for (_, mut pods) in workloads {
            pods.sort_by_key(|pod| self.rounds.get(pod));
            let mut numbers: Vec<u64> = pods.iter().map(|_| self.random.next()).collect();
            numbers.sort_unstable();
            drawn.extend(numbers.into_iter().zip(pods).map(|(number, pod)| {
                (self.plan.tables.pod(pod).controller == RecreatingController::WhenGone, number, pod)
            }));
        }
        drawn.sort_unstable();
        for (_, _, pod) in drawn {
            self.create_or_hold_back_pod(pod);
        }
    }

    /// Creates the pods of StatefulSets whose predecessors are ready. Returns false if there are none.
    fn create_ready_held_back_pods(&mut self) -> bool {
        let tracked = self.plan.tracked.iter().filter_map(|tracked| tracked.pod);
        let held: Vec<PodIndex> = tracked.filter(|pod| self.state_of(*pod) == PodState::HeldBack).collect();
        let mut any = false;
        for pod in held {
            self.create_or_hold_back_pod(pod);
            any |= self.state_of(pod) != PodState::HeldBack;
        }
        any
    }

    /// The pending pods in the order in which the scheduler tries them.
    pub(crate) fn pending_pods_by_priority(&self) -> Vec<PodIndex> {
        let mut waiting = self.queue.clone();
        let priority = |pod: &PodIndex| self.plan.needs_of(*pod).priority.unwrap_or(0);
        waiting.sort_by_key(|pod| std::cmp::Reverse(priority(pod)));
        waiting
    }

    /// Removes the pod from the scheduling queue.
    pub(crate) fn leave_queue(&mut self, pod: PodIndex) {
        self.queue.retain(|other| *other != pod);
    }

    /// The state of a pod at the end of the run, for the report.
    pub(crate) fn final_state(&mut self, pod: PodIndex) -> FinalPodState {
        match self.state_of(pod) {
            PodState::Bound(node) => FinalPodState::Bound(self.placement_of(pod, node)),
            PodState::HeldBack => FinalPodState::HeldBack,
            _ => FinalPodState::Pending(self.pending.get(&pod).cloned().unwrap_or_default()),
        }
    }

    /// The state of every device.
    fn device_states(&self) -> DeviceStatesAfterRun {
        let (eras, era) = (&self.plan.eras, self.devices.era);
        let devices = (era.devices, eras.devices_in(era));
        DeviceStatesAfterRun::new(devices, &self.devices.usage, eras.nodes_in(era))
    }

    fn into_run_outcome(mut self) -> RunOutcome {
        let mut pods = Vec::with_capacity(self.plan.tracked.len());
        for tracked in &self.plan.tracked {
            let mut not_modelled = tracked.not_modelled.clone();
            let evictions = tracked.pod.and_then(|pod| self.evictions.remove(&pod));
            let mut evicted_again = false;
            let end = match tracked.pod {
                None => FinalPodState::NotRecreated,
                Some(pod) => {
                    not_modelled.extend(self.not_modelled.get(&pod).into_iter().flatten().cloned());
                    if self.state_of(pod) == PodState::HeldBack {
                        for (_, before) in &self.plan.tables.pod(pod).after {
                            let known = self.plan.reported_pod(*before).map(|pod| &pod.not_modelled);
                            let unknown = known.into_iter().chain(self.not_modelled.get(before));
                            not_modelled.extend(unknown.flatten().cloned());
                        }
                    }
                    let uncertain = self.uncertain.remove(&pod).into_iter().flatten();
                    not_modelled.extend(uncertain.map(str::to_owned));
                    match (self.state_of(pod), evictions) {
                        // It was bound, evicted, and nobody makes it again.
                        (PodState::Gone, Some(evictions)) => {
                            evicted_again = evictions.times > 0;
                            evictions
                                .placements
                                .into_iter()
                                .next_back()
                                .unwrap_or(FinalPodState::NotRecreated)
                        }
                        (PodState::Absent | PodState::Gone, _)
                            if !self.later.iter().any(|(_, later)| *later == pod) =>
                        {
                            FinalPodState::NotRecreated
                        }
                        (_, evictions) => {
                            evicted_again = evictions.is_some_and(|evictions| evictions.is_endless);
                            self.final_state(pod)
                        }
                    }
                }
            };
            let is_known = not_modelled.is_empty() || end == FinalPodState::NotRecreated;
            pods.push(PodRunResult {
                end: if is_known { end } else { FinalPodState::Unknown(not_modelled) },
                evicted_again,
            });
        }
        let devices = self.plan.settings.counts_devices.then(|| self.device_states());
        RunOutcome { evicted: self.evicted, pods, devices }
    }
}
