//! The waves of a drain: the next plan, evictions, and the wait until what was evicted is replaced.
//!
//! Before each wave the plan is made again over the cluster as it is. What a wave has to restore is written on the first
//! rule before its first eviction, so that a drain which was killed waits for the same when it goes on.
//!
//! Invariant: no pod of a workload is evicted before all that the wave before evicted of it is replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::event::{Event, PodRef};
use super::halt::Halt;
use super::run::{POLL, Run, pod_ref};
use super::settings::WaitFor;
use super::time::{later, seconds_between, words};
use super::wave_record::{MovedPod, WaveRecord, WorkloadReady};
use super::workloads::WorkloadPods;
use crate::cluster::WriteRequest;
use tollgate_drain::{DrainPlan, PlannedPod, holding_claims};
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime::{self, Timestamp};

/// A pod that gets a device so soon after the devices were closed was being scheduled at that time.
const IN_FLIGHT_SECONDS: i64 = 60;
/// A replacement may be unschedulable for so long, for example until the devices of another pod are released.
const UNSCHEDULABLE_SECONDS: i64 = 30;
/// How long to wait before an eviction that a PDB does not allow is tried again.
const BUDGET_PAUSE: Duration = Duration::from_secs(5);
/// How often a drain looks again while it waits for `--force-after`.
const FORCE_PAUSE: Duration = Duration::from_secs(15);

impl Run<'_> {
    /// Waits for the wave that an earlier run of this drain began.
    pub(super) fn finish_earlier_wave(&mut self) -> Result<(), Halt> {
        let Some(record) = self.stored_wave() else { return Ok(()) };
        self.has_moved = true;
        self.touched.extend(record.ready.iter().map(|ready| ready.workload.clone()));
        // What was not evicted is planned anew.
        let objects = self.server.objects();
        let is_evicted = |pod: &MovedPod| {
            let found = objects.get(ObjectKind::Pod, &pod.namespace, &pod.name);
            let found = found.filter(|found| found.get("metadata").get("uid").str() == pod.uid);
            found.is_none_or(|found| found.get("metadata").get("deletionTimestamp").exists())
        };
        let evicted: Vec<MovedPod> = record.pods.iter().filter(|pod| is_evicted(pod)).cloned().collect();
        if evicted.is_empty() {
            return Ok(());
        }
        let touched: BTreeSet<&str> = evicted.iter().map(|pod| pod.workload.as_str()).collect();
        let ready =
            record.ready.iter().filter(|ready| touched.contains(ready.workload.as_str())).cloned().collect();
        self.finish_wave(record.wave, &WaveRecord { pods: evicted, ready, ..record.clone() })
    }

    /// Moves wave after wave until the plan has none left. `forceable` are the uids of the pods that the user has agreed to
    /// delete after `--force-after`.
    pub(super) fn move_all(&mut self, forceable: &BTreeSet<String>) -> Result<(), Halt> {
        let mut wave = self.stored_wave().map_or(0, |record| record.wave + 1);
        let mut deleted: BTreeSet<String> = BTreeSet::new();
        if let Some(plan) = &self.plan {
            self.known.extend(plan.pods.iter().map(|pod| pod.uid.clone()));
        }
        loop {
            self.refresh()?;
            self.check_footing()?;
            let plan = self.next_plan()?;
            let pods: Vec<PlannedPod> = match plan.waves.first() {
                Some(next) => next.pods.iter().filter_map(|place| plan.pods.get(*place)).cloned().collect(),
                None if self.force(&plan, forceable, &mut deleted)? => continue,
                None => return Ok(()),
            };
            self.move_wave(wave, &pods)?;
            wave += 1;
            self.has_moved = true;
        }
    }

    /// The plan over the cluster as it is now. Devices that appeared are closed first.
    fn next_plan(&mut self) -> Result<DrainPlan, Halt> {
        let mut plan = self.make_plan().map_err(Halt::Stopped)?;
        let is_closed = |name: &str| self.rules.iter().any(|rule| rule.name == name);
        if plan.rules.iter().any(|rule| !is_closed(&rule.name)) {
            self.plan = Some(plan);
            self.close()?;
            plan = self.make_plan().map_err(Halt::Stopped)?;
        }
        self.check_newcomers(&plan)?;
        if let Some(before) = &self.plan {
            let differences = self.observer.differences(before, &plan);
            if !differences.is_empty() {
                self.tell(&Event::PlanChanged { differences });
            }
        }
        self.plan = Some(plan.clone());
        Ok(plan)
    }

    /// An error if a pod got a device long after the devices were closed.
    fn check_newcomers(&mut self, plan: &DrainPlan) -> Result<(), Halt> {
        for pod in &plan.pods {
            if self.known.contains(&pod.uid) {
                continue;
            }
            self.check_newcomer(&PodRef { namespace: pod.namespace.clone(), name: pod.name.clone() })?;
            self.known.insert(pod.uid.clone());
        }
        Ok(())
    }

    fn check_newcomer(&mut self, pod: &PodRef) -> Result<(), Halt> {
        let since = self.closed_at().map_or(0, |closed| seconds_between(closed, self.server.now()));
        if since <= IN_FLIGHT_SECONDS {
            self.tell(&Event::PodJoined { pod: pod.clone() });
            return Ok(());
        }
        Err(Halt::Stopped(format!(
            "pod {}/{} got a selected device although the devices have been closed for {}; it tolerates the taint, or joined \
             a claim that was allocated before",
            pod.namespace,
            pod.name,
            words(Duration::from_secs(since.unsigned_abs()))
        )))
    }

    /// When the last rule got its effect.
    fn closed_at(&self) -> Option<Timestamp> {
        let rules = self.rules.iter();
        let objects = self.server.objects();
        let times = rules.filter_map(|rule| {
            let rule = objects.get(ObjectKind::DeviceTaintRule, "", &rule.name)?;
            gotime::parse(rule.get("spec").get("taint").get("timeAdded").str()).ok()
        });
        times.max()
    }

    fn move_wave(&mut self, wave: usize, pods: &[PlannedPod]) -> Result<(), Halt> {
        let workloads =
            WorkloadPods::of(&self.server.objects().state(), self.settings.wait, self.server.now());
        let pods: Vec<(MovedPod, &PlannedPod)> =
            pods.iter().map(|pod| (MovedPod::of(pod, &workloads), pod)).collect();
        let mut ready: BTreeMap<String, i64> = BTreeMap::new();
        for (moved, _) in pods.iter().filter(|(moved, _)| !moved.workload.is_empty()) {
            ready.insert(moved.workload.clone(), workloads.ready(&moved.workload));
        }
        let grace = pods.iter().map(|(_, pod)| pod.grace_seconds).max().unwrap_or(0);
        let record = WaveRecord {
            wave,
            pods: pods.iter().map(|(moved, _)| moved.clone()).collect(),
            ready: ready.into_iter().map(|(workload, ready)| WorkloadReady { workload, ready }).collect(),
            grace,
        };
        self.touched.extend(record.ready.iter().map(|ready| ready.workload.clone()));
        self.store_wave(&record)?;
        self.tell(&Event::WaveStarted {
            wave: wave + 1,
            pods: pods.iter().map(|(_, pod)| pod_ref(pod)).collect(),
        });
        let deadline = later(self.server.now(), self.wave_timeout(grace));
        for (_, pod) in &pods {
            self.evict(wave, pod, deadline)?;
        }
        self.finish_wave(wave, &record)
    }

    fn wave_timeout(&self, grace: u64) -> Duration {
        self.settings.timeout.saturating_add(Duration::from_secs(grace))
    }

    /// Evicts one pod. Waits while a PDB does not allow it.
    fn evict(&mut self, wave: usize, pod: &PlannedPod, deadline: Timestamp) -> Result<(), Halt> {
        let request = WriteRequest::EvictPod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            is_dry_run: false,
        };
        let mut said = String::new();
        loop {
            self.refresh()?;
            self.check_footing()?;
            let answer = self.send_patiently(&request)?;
            match answer.code {
                _ if answer.is_success() => {
                    self.evicted += 1;
                    self.tell(&Event::PodEvicted { wave: wave + 1, pod: pod_ref(pod) });
                    return Ok(());
                }
                404 => {
                    self.tell(&Event::PodGone { wave: wave + 1, pod: pod_ref(pod) });
                    return Ok(());
                }
                // Another pod has the name, or two evictions met at a PDB.
                409 if !self.is_running(pod) => {
                    self.tell(&Event::PodGone { wave: wave + 1, pod: pod_ref(pod) });
                    return Ok(());
                }
                409 | 429 => {
                    let why = answer.message();
                    if self.server.now() >= deadline {
                        return Err(Halt::Stopped(format!(
                            "pod {}/{} could not be evicted within {}: {why}",
                            pod.namespace,
                            pod.name,
                            words(self.wave_timeout(pod.grace_seconds))
                        )));
                    }
                    if why != said {
                        said.clone_from(&why);
                        self.tell(&Event::PodWaits { wave: wave + 1, pod: pod_ref(pod), why });
                    }
                    self.wait(BUDGET_PAUSE)?;
                }
                _ => {
                    return Err(Halt::Stopped(format!(
                        "the API server rejects the eviction of pod {}/{}: {}",
                        pod.namespace,
                        pod.name,
                        answer.message()
                    )));
                }
            }
        }
    }

    /// True if the pod is there and not being deleted.
    fn is_running(&self, pod: &PlannedPod) -> bool {
        let found = self.server.objects().get(ObjectKind::Pod, &pod.namespace, &pod.name);
        let metadata = found.map(|found| found.get("metadata"));
        metadata.is_some_and(|metadata| {
            metadata.get("uid").str() == pod.uid && !metadata.get("deletionTimestamp").exists()
        })
    }

    /// Waits until the pods of a wave are gone, their claims have released the devices, and their workloads are as ready
    /// as before.
    fn finish_wave(&mut self, wave: usize, record: &WaveRecord) -> Result<(), Halt> {
        let began = self.server.now();
        let deadline = later(began, self.wave_timeout(record.grace));
        let mut progress = WaveProgress::default();
        loop {
            self.refresh()?;
            self.check_footing()?;
            let now = self.server.now();
            let workloads = WorkloadPods::of(&self.server.objects().state(), self.settings.wait, now);
            let waiting = self.waiting_for(wave, record, &workloads, &mut progress);
            self.check_replacements(wave, &workloads, &mut progress)?;
            if waiting.is_empty() {
                let seconds = seconds_between(began, now).unsigned_abs();
                self.tell(&Event::WaveFinished { wave: wave + 1, seconds });
                return Ok(());
            }
            if now >= deadline {
                return Err(Halt::Stopped(format!(
                    "wave {} is not finished after {}: {}",
                    wave + 1,
                    words(self.wave_timeout(record.grace)),
                    waiting.join("; ")
                )));
            }
            self.wait(POLL)?;
        }
    }

    /// What the wave still waits for, in words.
    fn waiting_for(
        &mut self,
        wave: usize,
        record: &WaveRecord,
        workloads: &WorkloadPods,
        progress: &mut WaveProgress,
    ) -> Vec<String> {
        let mut waiting = Vec::new();
        let selectors: Vec<_> = self.rules.iter().map(|rule| rule.selects.clone()).collect();
        let holders = holding_claims(&self.server.objects().state(), &selectors);
        let mut released = Vec::new();
        for pod in &record.pods {
            let MovedPod { namespace, name, uid, claims, .. } = pod;
            let found = self.server.objects().get(ObjectKind::Pod, namespace, name);
            let found = found.filter(|found| found.get("metadata").get("uid").str() == uid);
            if let Some(found) = found {
                let node = found.get("spec").get("nodeName").str();
                let since = found.get("metadata").get("deletionTimestamp").str();
                waiting.push(if since.is_empty() {
                    format!("pod {namespace}/{name} on node {node} is not being deleted")
                } else {
                    format!(
                        "pod {namespace}/{name} on node {node} is still Terminating (due at {since}); check the kubelet of \
                         the node"
                    )
                });
                continue;
            }
            // A claim that other pods share is free when the last of them is gone.
            let held = holders.iter().find(|holder| {
                holder.namespace == *namespace && claims.contains(&holder.claim) && holder.users.is_empty()
            });
            if let Some(held) = held {
                waiting.push(format!("claim {namespace}/{} is still allocated", held.claim));
            } else if progress.released.insert(uid.clone()) {
                released.push(PodRef { namespace: namespace.clone(), name: name.clone() });
            }
        }
        for pod in released {
            self.tell(&Event::PodReleased { wave: wave + 1, pod });
        }
        for WorkloadReady { workload, ready } in &record.ready {
            let needed = workloads.needed(workload, *ready);
            let has = workloads.ready(workload);
            if has < needed {
                let word = if self.settings.wait == WaitFor::Ready { "Ready" } else { "bound" };
                waiting.push(format!("{workload} has {has} of {needed} {word} pods"));
            }
        }
        waiting
    }

    /// Tells about new pods of the workloads that the drain has touched. An error if one cannot be scheduled, or has a
    /// selected device.
    fn check_replacements(
        &mut self,
        wave: usize,
        workloads: &WorkloadPods,
        progress: &mut WaveProgress,
    ) -> Result<(), Halt> {
        let now = self.server.now();
        let mut events = Vec::new();
        let mut stuck = Vec::new();
        let is_first = !std::mem::replace(&mut progress.has_looked, true);
        for pod in self.touched.iter().flat_map(|workload| workloads.pods(workload)) {
            let reference = || PodRef { namespace: pod.namespace.clone(), name: pod.name.clone() };
            // Pods that were there when the wave was first looked at are not replacements, unless they are not bound yet.
            if is_first && !pod.node.is_empty() {
                progress.bound.insert(pod.uid.clone());
                progress.ready.insert(pod.uid.clone());
            }
            if !pod.node.is_empty() && progress.bound.insert(pod.uid.clone()) {
                events.push(Event::ReplacementBound {
                    wave: wave + 1,
                    pod: reference(),
                    node: pod.node.clone(),
                });
            }
            if pod.is_ready && progress.ready.insert(pod.uid.clone()) {
                events.push(Event::ReplacementReady {
                    wave: wave + 1,
                    pod: reference(),
                    node: pod.node.clone(),
                });
            }
            let is_new = !self.pending_before.contains(&pod.uid);
            let Some(message) = pod.unschedulable.as_ref().filter(|_| is_new) else {
                progress.unschedulable.remove(&pod.uid);
                continue;
            };
            let since = *progress.unschedulable.entry(pod.uid.clone()).or_insert(now);
            if seconds_between(since, now) >= UNSCHEDULABLE_SECONDS {
                stuck.push(format!("{}/{}: {message}", pod.namespace, pod.name));
            }
        }
        for event in events {
            self.tell(&event);
        }
        if !stuck.is_empty() {
            return Err(Halt::Stopped(format!(
                "more pods are Pending than planned; the scheduler says: {}",
                stuck.join("; ")
            )));
        }
        self.check_no_replacement_on_devices(workloads)
    }

    fn check_no_replacement_on_devices(&mut self, workloads: &WorkloadPods) -> Result<(), Halt> {
        let selectors: Vec<_> = self.rules.iter().map(|rule| rule.selects.clone()).collect();
        let holders = holding_claims(&self.server.objects().state(), &selectors);
        let touched = self.touched.clone();
        for pod in touched.iter().flat_map(|workload| workloads.pods(workload)) {
            let user = format!("pod {}", pod.name);
            let holds = holders
                .iter()
                .any(|holder| holder.namespace == pod.namespace && holder.users.contains(&user));
            if holds && !self.known.contains(&pod.uid) {
                self.check_newcomer(&PodRef { namespace: pod.namespace.clone(), name: pod.name.clone() })?;
                self.known.insert(pod.uid.clone());
            }
        }
        Ok(())
    }

    /// Deletes what the user agreed to delete, if it is time, and waits if it is not. False if there is nothing left to
    /// delete.
    fn force(
        &mut self,
        plan: &DrainPlan,
        forceable: &BTreeSet<String>,
        deleted: &mut BTreeSet<String>,
    ) -> Result<bool, Halt> {
        let Some(after) = self.settings.force_after else { return Ok(false) };
        let is_due = |pod: &&PlannedPod| {
            pod.is_forceable && forceable.contains(&pod.uid) && !deleted.contains(&pod.uid)
        };
        let pods: Vec<PlannedPod> = plan.pods.iter().filter(is_due).cloned().collect();
        if pods.is_empty() {
            return Ok(false);
        }
        let started = self.started().unwrap_or_else(|| self.server.now());
        if self.server.now() < later(started, after) {
            self.wait(FORCE_PAUSE)?;
            return Ok(true);
        }
        for pod in &pods {
            self.refresh()?;
            self.check_footing()?;
            let request = WriteRequest::DeletePod {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: pod.uid.clone(),
            };
            let answer = self.send_patiently(&request)?;
            deleted.insert(pod.uid.clone());
            match answer.code {
                404 | 409 => {}
                _ if answer.is_success() => self.tell(&Event::PodDeleted { pod: pod_ref(pod) }),
                _ => {
                    return Err(Halt::Stopped(format!(
                        "the API server rejects the deletion of pod {}/{}: {}",
                        pod.namespace,
                        pod.name,
                        answer.message()
                    )));
                }
            }
        }
        let grace = pods.iter().map(|pod| pod.grace_seconds).max().unwrap_or(0);
        self.wait_until_gone(&pods, grace)?;
        Ok(true)
    }

    /// Waits until deleted pods are gone. Nothing waits for their replacements, which may have no room.
    fn wait_until_gone(&mut self, pods: &[PlannedPod], grace: u64) -> Result<(), Halt> {
        let moved = pods.iter().map(|pod| MovedPod { workload: String::new(), ..MovedPod::from(pod) });
        let record = WaveRecord { wave: 0, pods: moved.collect(), ready: Vec::new(), grace };
        let deadline = later(self.server.now(), self.wave_timeout(grace));
        let mut progress = WaveProgress::default();
        loop {
            self.refresh()?;
            self.check_footing()?;
            let now = self.server.now();
            let workloads = WorkloadPods::of(&self.server.objects().state(), self.settings.wait, now);
            let waiting = self.waiting_for(0, &record, &workloads, &mut progress);
            if waiting.is_empty() {
                return Ok(());
            }
            if now >= deadline {
                return Err(Halt::Stopped(waiting.join("; ")));
            }
            self.wait(POLL)?;
        }
    }
}

/// What was told about a wave.
#[derive(Default, Debug)]
struct WaveProgress {
    /// Uids of pods that are gone.
    released: BTreeSet<String>,
    bound: BTreeSet<String>,
    ready: BTreeSet<String>,
    /// Since when pods have been unschedulable.
    unschedulable: BTreeMap<String, Timestamp>,
    has_looked: bool,
}
