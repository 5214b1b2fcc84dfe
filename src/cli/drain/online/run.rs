//! A drain from its start to its end: preflight, plan, close, move wave by wave, prove.
//!
//! It talks to a [`Server`] and tells what happens as [`Event`]s. All state is in the cluster: the rules, with their
//! labels and annotations, the Lease, and the pods. A drain that was killed goes on when the same command runs again.
//!
//! The proof is that no claim holds the devices that the rules select, in two lists of all claims, some seconds apart.
//! It reads claims and not slices, because a driver that restarts has no slices for a while; and anew, not from a watch.
//!
//! Invariant: nothing is written but DeviceTaintRules of this drain, evictions and confirmed deletes with the uid of a
//! pod as precondition, and the Lease. Each of them is a `DrainApiRequest`; there is no other way to write.

use std::collections::BTreeSet;
use std::time::Duration;

use super::event::{Event, HoldingClaim, PodRef};
use super::reporter::ContinueAndUndoCommands;
use super::rules::DrainRule;
use super::server::{Server, ServerResponse};
use super::time::seconds_between;
use super::workloads::PodsByWorkload;
use crate::cli::forecast::simulate_samples;
use crate::cluster::{ApiError, DrainApiRequest};
use tollgate_drain::{
    ClaimHoldingSelectedDevices, DeviceId, DrainPlan, PlanInput, PlannedPod, holding_claims,
};
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_forecast::Settings;
use tollgate_formats::gotime::Timestamp;

pub(super) use super::settings::RunSettings;

/// Maximum number of attempts for a request if the API server fails or cannot be reached. Pauses in between are
/// 1, 2, 4, … seconds.
const MAX_REQUEST_ATTEMPTS: u32 = 7;
/// Interval at which a waiting drain checks the state of the cluster.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time without current objects before a drain stops. A restarting API server is back by then.
const MAX_STALE_SECONDS: i64 = 120;

/// How a drain, an undrain or a check ended; decides the exit code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// No claim holds the devices.
    Proven,
    /// All pods that can move have moved, but claims still hold devices.
    Holding,
    /// The drain stopped before its end, and its rules stay.
    Stopped,
    /// An undrain could not delete all rules.
    Failed(String),
    /// The user did not confirm the plan; nothing was changed.
    NotConfirmed,
    /// The drain did not start, or deleted its rules again; no pod was evicted.
    Refused(String),
}

/// The reason why a drain ends before all its steps are done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StopReason {
    /// The drain did not start, or its rules were deleted again: no pod was evicted, and no rule is left.
    Refused(String),
    /// The drain stopped halfway. Its rules stay, so that no new pod gets devices that are free already.
    Stopped(String),
}

impl StopReason {
    /// Stops the drain because of a bug in this program.
    pub(super) fn internal(error: impl std::fmt::Display) -> StopReason {
        StopReason::Stopped(format!("internal error: {error}"))
    }

    /// Stops the drain because of an answer of the API server; `what` says what failed.
    pub(super) fn answered(what: impl std::fmt::Display, answer: &ServerResponse) -> StopReason {
        StopReason::Stopped(format!("{what}: {}", answer.status_code_and_message()))
    }
}

/// Receives the events of a drain, and asks the user for confirmation.
pub(super) trait DrainUserInterface {
    /// Called for each event.
    fn report_event(&mut self, at: Timestamp, event: &Event);
    /// Shows the plan before anything is changed. Returns false if the user does not confirm it.
    fn show_plan_and_confirm(&mut self, at: Timestamp, settings: &RunSettings, plan: &DrainPlan) -> bool;
    /// Redraws the summary. Called about every second while the drain waits.
    fn redraw_summary(&mut self);
}

/// A drain in progress.
pub(super) struct Run<'r> {
    pub(super) server: &'r mut dyn Server,
    pub(super) settings: &'r RunSettings,
    pub(super) observer: &'r mut dyn DrainUserInterface,
    /// When this drain last renewed the Lease; `None` while it does not hold it.
    pub(super) lock_renewed: Option<Timestamp>,
    /// The rules of this drain, as they must stay.
    pub(super) rules: Vec<DrainRule>,
    /// Uids of the pods that may be on the devices: those that had them before they were closed, or got them
    /// while they were being closed.
    pub(super) known_pods: BTreeSet<String>,
    /// The last plan that was reported to the user, to report differences of the next one.
    pub(super) plan: Option<DrainPlan>,
    /// The devices of all plans so far. A later plan may lack some: those that no slice publishes any more, once no
    /// claim holds them.
    pub(super) devices: BTreeSet<DeviceId>,
    /// Uids of the pods that this run evicted.
    pub(super) evicted: BTreeSet<String>,
    /// Uids of the pods that this run deleted because of `--force-after`.
    pub(super) deleted: BTreeSet<String>,
    /// The workloads of evicted pods, such as `Deployment inference/chat`.
    pub(super) touched: BTreeSet<String>,
    /// Uids of pods that were already unschedulable before the first eviction.
    pub(super) pending_before: BTreeSet<String>,
    /// True after the first wave. The first wave is a single pod, as a test.
    pub(super) has_moved: bool,
    /// The number of the next wave, from 0.
    pub(super) next_wave: usize,
    /// When this run closed the devices or found them closed; `None` before.
    closed: Option<Timestamp>,
    /// Since when the watched objects may be outdated; `None` if they are current.
    stale_since: Option<Timestamp>,
}

/// Runs a drain from its preflight checks to its end, and releases the Lease.
pub(super) fn drain(
    server: &mut dyn Server,
    settings: &RunSettings,
    observer: &mut dyn DrainUserInterface,
) -> Ending {
    let mut run = Run::new(server, settings, observer);
    let result = run.run_steps();
    run.release_lock();
    match result {
        Ok(ending) => ending,
        Err(StopReason::Refused(why)) => Ending::Refused(why),
        Err(StopReason::Stopped(why)) => {
            let (evicted, deleted, left) =
                (run.evicted.len(), run.deleted.len(), run.count_planned_pods_not_moved());
            let rules = run.count_rules_left();
            let ContinueAndUndoCommands { go_on, go_back } = settings.next.clone();
            let go_back = (rules > 0).then_some(go_back);
            run.notify_observer(&Event::Stopped { why, evicted, deleted, left, rules, go_on, go_back });
            Ending::Stopped
        }
    }
}

impl<'r> Run<'r> {
    pub(super) fn new(
        server: &'r mut dyn Server,
        settings: &'r RunSettings,
        observer: &'r mut dyn DrainUserInterface,
    ) -> Run<'r> {
        Run {
            server,
            settings,
            observer,
            lock_renewed: None,
            rules: Vec::new(),
            known_pods: BTreeSet::new(),
            plan: None,
            devices: BTreeSet::new(),
            evicted: BTreeSet::new(),
            deleted: BTreeSet::new(),
            touched: BTreeSet::new(),
            pending_before: BTreeSet::new(),
            has_moved: false,
            next_wave: 0,
            closed: None,
            stale_since: None,
        }
    }

    fn run_steps(&mut self) -> Result<Ending, StopReason> {
        let began = self.now();
        self.refresh_objects_with_retries().map_err(into_refusal)?;
        self.load_own_rules()?;
        // A wave that evicted nothing has tested nothing.
        self.has_moved = self
            .stored_wave()
            .is_some_and(|record| record.wave > 0 || !self.evicted_pods_of_wave(&record).is_empty());
        let plan = self.make_plan().map_err(StopReason::Refused)?;
        self.run_preflight_checks(&plan)?;
        if !self.observer.show_plan_and_confirm(self.now(), self.settings, &plan) {
            return Ok(Ending::NotConfirmed);
        }
        let forceable: BTreeSet<String> =
            plan.pods.iter().filter(|pod| pod.is_forceable).map(|pod| pod.uid.clone()).collect();
        self.known_pods.extend(plan.pods.iter().map(|pod| pod.uid.clone()));
        self.set_plan(plan);
        self.server.catch_interrupts();
        self.pending_before = self.pods_by_workload(began).unschedulable_pod_uids();
        let has_rules = !self.rules.is_empty();
        self.take_lock_or_wait_for_expiry()
            .map_err(|halt| if has_rules { halt } else { into_refusal(halt) })?;
        // Another drain may have ended a moment ago.
        self.refresh_objects_with_retries().map_err(into_refusal)?;
        self.load_own_rules()?;
        self.set_no_schedule_or_roll_back()?;
        self.closed = Some(self.now());
        self.wait_for_last_wave_of_earlier_run()?;
        self.move_all_waves(&forceable)?;
        self.prove_devices_free(began)
    }

    /// Passes an event to the observer.
    pub(super) fn notify_observer(&mut self, event: &Event) {
        self.observer.report_event(self.now(), event);
    }

    /// Returns the time at the end of the last exchange with the API server.
    pub(super) fn now(&self) -> Timestamp {
        self.server.time_of_last_exchange()
    }

    /// Returns the watched pods by workload.
    pub(super) fn pods_by_workload(&self, now: Timestamp) -> PodsByWorkload {
        let state = self.server.objects().state();
        PodsByWorkload::from_state_without_daemon_sets(&state, self.settings.wait, now)
    }

    /// Makes a plan for the current state of the cluster.
    pub(super) fn make_plan(&self) -> Result<DrainPlan, String> {
        let state = self.server.objects().state();
        let samples = self.settings.samples;
        tollgate_drain::plan(&PlanInput {
            state: &state,
            request: &self.settings.request,
            release: self.settings.release,
            settings: Settings {
                seed: self.settings.seed,
                assume_complete: true,
                ..Settings::defaults_at(self.now())
            },
            play: &|plan| simulate_samples(plan, samples),
            missing: &[],
            closed: &self.rule_selectors(),
            is_first_wave: !self.has_moved,
        })
    }

    /// Returns when the devices were closed, by the clock of this machine; now if they are not closed yet.
    pub(super) fn no_schedule_since_or_now(&self) -> Timestamp {
        self.closed.unwrap_or_else(|| self.now())
    }

    /// Waits, redraws the summary, and updates the objects. Returns an error if the user interrupts, or if the objects
    /// cannot be updated for too long.
    pub(super) fn wait_and_refresh_objects(&mut self, duration: Duration) -> Result<(), StopReason> {
        self.server.pause(duration);
        self.observer.redraw_summary();
        self.check_interrupt()?;
        self.refresh_objects_with_retries()
    }

    /// Checks before each eviction, and during a wave, that the user has not interrupted, the Lease is held, and
    /// the rules are unchanged.
    pub(super) fn check_interrupt_and_rules_and_renew_lock(&mut self) -> Result<(), StopReason> {
        self.check_interrupt_and_renew_lock()?;
        self.check_rules_unchanged()
    }

    /// Checks that the user has not interrupted and the Lease is held. Enough while rules are being written,
    /// because the watch shows them a moment later.
    pub(super) fn check_interrupt_and_renew_lock(&mut self) -> Result<(), StopReason> {
        self.check_interrupt()?;
        self.renew_lock_if_due()
    }

    fn check_interrupt(&self) -> Result<(), StopReason> {
        if self.server.is_interrupted() { Err(StopReason::Stopped("interrupted".to_owned())) } else { Ok(()) }
    }

    /// Updates the objects from the watches. Outdated objects are accepted for at most [`MAX_STALE_SECONDS`].
    pub(super) fn refresh_objects_with_retries(&mut self) -> Result<(), StopReason> {
        loop {
            let Err(why) = self.server.refresh() else {
                self.stale_since = None;
                return Ok(());
            };
            let now = self.now();
            let since = *self.stale_since.get_or_insert(now);
            if seconds_between(since, now) > MAX_STALE_SECONDS {
                return Err(StopReason::Stopped(format!("the state of the cluster cannot be read: {why}")));
            }
            self.server.pause(POLL_INTERVAL);
            self.check_interrupt()?;
        }
    }

    /// Sends a request, and repeats it while the API server fails or cannot be reached. Every request of a drain
    /// can be repeated, because it names the version or the uid of what it changes.
    pub(super) fn send_with_retries(
        &mut self,
        request: &DrainApiRequest,
    ) -> Result<ServerResponse, StopReason> {
        let mut pause = Duration::from_secs(1);
        for tries in 1.. {
            // Somebody else may have taken the Lease or opened the devices meanwhile.
            if tries > 1 && request.changes_rules_or_pods() {
                self.renew_lock_if_due()?;
            }
            if tries > 1
                && matches!(request, DrainApiRequest::EvictPod { .. } | DrainApiRequest::DeletePod { .. })
            {
                self.check_rules_unchanged()?;
            }
            let problem = match self.server.send(request) {
                Ok(answer) if !answer.is_retryable_failure() => return Ok(answer),
                Ok(answer) => answer.status_code_and_message(),
                Err(error @ (ApiError::Unexpected(_) | ApiError::TooLarge { .. })) => {
                    return Err(StopReason::Stopped(error.to_string()));
                }
                Err(error) => error.to_string(),
            };
            if tries == MAX_REQUEST_ATTEMPTS {
                let (method, path) = request.method_and_path();
                return Err(StopReason::Stopped(format!(
                    "the API server fails repeatedly: {method} {path}: {problem}"
                )));
            }
            self.server.pause(pause);
            self.check_interrupt()?;
            pause = pause.saturating_mul(2);
        }
        Err(StopReason::internal("no tries"))
    }

    /// Stores the plan that was reported last.
    pub(super) fn set_plan(&mut self, plan: DrainPlan) {
        self.devices.extend(plan.devices.iter().cloned());
        self.plan = Some(plan);
    }

    /// Returns the number of pods of the last plan that are neither evicted nor being deleted. The watch may not show the
    /// last evictions and deletions yet.
    fn count_planned_pods_not_moved(&self) -> usize {
        let Some(plan) = &self.plan else { return 0 };
        let is_left = |pod: &&PlannedPod| {
            !self.evicted.contains(&pod.uid)
                && !self.deleted.contains(&pod.uid)
                && self.exists_and_is_not_terminating(pod)
        };
        plan.pods.iter().filter(is_left).count()
    }
}

/// Turns any reason to halt into a refusal to start, for problems that occur before anything was changed.
pub(super) fn into_refusal(halt: StopReason) -> StopReason {
    match halt {
        StopReason::Stopped(why) | StopReason::Refused(why) => StopReason::Refused(why),
    }
}

/// Returns the reference to a pod for events.
pub(super) fn pod_ref(pod: &PlannedPod) -> PodRef {
    PodRef { namespace: pod.namespace.clone(), name: pod.name.clone() }
}

/// Returns a claim and its pods for events.
pub(super) fn holding_claim(holder: &ClaimHoldingSelectedDevices) -> HoldingClaim {
    HoldingClaim {
        namespace: holder.namespace.clone(),
        claim: holder.claim.clone(),
        devices: holder.devices.iter().map(ToString::to_string).collect(),
        users: holder.users.clone(),
    }
}

/// How many times the claims are listed before the devices count as free.
const CLAIM_CHECK_COUNT: usize = 2;
/// Time between two lists of the claims: a pod that was being scheduled at the first has its claim at the second.
const CLAIM_CHECK_INTERVAL: Duration = Duration::from_secs(10);

impl Run<'_> {
    /// Lists the claims twice, reports those that still hold the devices, and ends the drain. It started at
    /// `began`.
    fn prove_devices_free(&mut self, began: Timestamp) -> Result<Ending, StopReason> {
        let selectors = self.rule_selectors();
        let holders = self.find_holding_claims_twice_if_none(&selectors)?;
        self.refresh_objects_with_retries()?;
        self.check_interrupt_and_rules_and_renew_lock()?;
        let needed = tollgate_drain::rules_for_targets_and_closed_devices(
            &self.server.objects().state(),
            &self.settings.request,
            &selectors,
        );
        let needed = needed.map_err(StopReason::Stopped)?;
        if let Some(new) = needed.iter().find(|rule| self.rules.iter().all(|known| known.name != rule.name)) {
            return Err(StopReason::Stopped(format!(
                "devices of the target appeared during the proof: rule {} is needed for them; run the same command again",
                new.name
            )));
        }
        let devices = self.devices.len();
        let seconds = seconds_between(began, self.now()).unsigned_abs();
        let holding: Vec<_> = holders.iter().map(holding_claim).collect();
        let is_proven = holding.is_empty();
        let (evicted, deleted) = (self.evicted.len(), self.deleted.len());
        self.notify_observer(&Event::Finished { devices, evicted, deleted, seconds, holding });
        Ok(if is_proven { Ending::Proven } else { Ending::Holding })
    }

    /// Returns the claims that hold selected devices. If there are none, looks again ten seconds later, because a pod
    /// that was being scheduled has its claim by then.
    pub(super) fn find_holding_claims_twice_if_none(
        &mut self,
        selectors: &[DeviceNameSelector],
    ) -> Result<Vec<ClaimHoldingSelectedDevices>, StopReason> {
        if selectors.is_empty() {
            return Err(StopReason::Stopped(
                "no rule selects the devices, so there is nothing to prove".to_owned(),
            ));
        }
        for look in 1..=CLAIM_CHECK_COUNT {
            if look > 1 {
                self.wait_and_refresh_objects(CLAIM_CHECK_INTERVAL)?;
            }
            let claims = self.server.list_claims();
            let claims =
                claims.map_err(|why| StopReason::Stopped(format!("the devices may not be free: {why}")))?;
            let holders = holding_claims(&claims.state(), selectors);
            self.notify_observer(&Event::Proof {
                look,
                holding: holders.iter().map(holding_claim).collect(),
            });
            if !holders.is_empty() {
                return Ok(holders);
            }
        }
        Ok(Vec::new())
    }
}
