//! The end of a wave: its pods are gone, their claims are released, and their workloads have new pods that are ready.
//!
//! Meanwhile the drain stops if a replacement is unschedulable, or if a new pod gets a selected device.
//!
//! Invariant: only pods that were created after the wave began count as replacements.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::event::{Event, PodRef};
use super::run::{POLL_INTERVAL, Run, StopReason};
use super::settings::ReplacementWaitCondition;
use super::time::{add_duration, duration_text, seconds_between};
use super::waves::{MovedPod, ReadyPodsBeforeWave, WaveRecord};
use super::workloads::PodsByWorkload;
use tollgate_drain::{ClaimHoldingSelectedDevices, PlannedPod, holding_claims};
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime::{self, Timestamp};

/// If a pod gets a device within this time after the devices were closed, the scheduler may have chosen the
/// device before.
const MAX_BINDING_SECONDS_AFTER_CLOSING: i64 = 60;
/// A drain stops if a replacement is unschedulable for this time; until then, another pod may still release its
/// devices.
const MAX_UNSCHEDULABLE_SECONDS: i64 = 30;

impl Run<'_> {
    /// Returns the device selectors of the rules of this drain.
    pub(super) fn rule_selectors(&self) -> Vec<DeviceNameSelector> {
        self.rules.iter().map(|rule| rule.selects.clone()).collect()
    }

    /// Returns the claims that hold devices of this drain, according to the watches.
    fn watched_holding_claims(&self) -> Vec<ClaimHoldingSelectedDevices> {
        holding_claims(&self.server.objects().state(), &self.rule_selectors())
    }

    /// Returns the maximum time for a wave whose longest grace period is `grace` seconds.
    pub(super) fn wave_timeout(&self, grace: u64) -> Duration {
        self.settings.timeout.saturating_add(Duration::from_secs(grace))
    }

    /// Waits until the pods of a wave are gone, their claims have released the devices, and new pods are as ready as
    /// they were. `began` is when the wave began.
    pub(super) fn wait_until_wave_finished(
        &mut self,
        record: &WaveRecord,
        began: Timestamp,
    ) -> Result<(), StopReason> {
        let (wave, deadline) = (record.wave + 1, add_duration(began, self.wave_timeout(record.grace)));
        let mut progress = WaveProgress::default();
        loop {
            self.refresh_objects_with_retries()?;
            self.check_interrupt_and_rules_and_renew_lock()?;
            let now = self.now();
            let workloads = self.pods_by_workload(now);
            let mut waiting = self.report_released_and_list_awaited(record, &mut progress);
            waiting.extend(self.describe_awaited_workloads(record, &workloads));
            self.report_and_check_replacement_pods(record, &workloads, &mut progress)?;
            let failed = record.ready.iter().find_map(|ready| workloads.job_failure(&ready.workload));
            if let Some(failed) = failed {
                return Err(StopReason::Stopped(failed.to_owned()));
            }
            if waiting.is_empty() {
                let seconds = seconds_between(began, now).unsigned_abs();
                self.notify_observer(&Event::WaveFinished { wave, seconds });
                return Ok(());
            }
            if now >= deadline {
                let timeout = duration_text(self.wave_timeout(record.grace));
                let waiting = waiting.join("; ");
                return Err(StopReason::Stopped(format!(
                    "wave {wave} is not finished after {timeout}: {waiting}"
                )));
            }
            self.wait_and_refresh_objects(POLL_INTERVAL)?;
        }
    }

    /// Waits until these pods, which were deleted, are gone. Does not wait for their replacements, which may not
    /// fit.
    pub(super) fn wait_until_gone(&mut self, pods: &[PlannedPod]) -> Result<(), StopReason> {
        let grace = pods.iter().map(|pod| pod.grace_seconds).max().unwrap_or(0);
        let pods = pods.iter().map(|pod| MovedPod::from_planned_pod(pod, None)).collect();
        let record = WaveRecord { wave: self.next_wave.saturating_sub(1), pods, ready: Vec::new(), grace };
        let deadline = add_duration(self.now(), self.wave_timeout(grace));
        let mut progress = WaveProgress::default();
        loop {
            self.refresh_objects_with_retries()?;
            self.check_interrupt_and_rules_and_renew_lock()?;
            let waiting = self.report_released_and_list_awaited(&record, &mut progress);
            if waiting.is_empty() {
                return Ok(());
            }
            if self.now() >= deadline {
                return Err(StopReason::Stopped(waiting.join("; ")));
            }
            self.wait_and_refresh_objects(POLL_INTERVAL)?;
        }
    }

    /// Returns the pods and claims that the wave still waits for, as text; reports pods that are gone.
    fn report_released_and_list_awaited(
        &mut self,
        record: &WaveRecord,
        progress: &mut WaveProgress,
    ) -> Vec<String> {
        let mut waiting = Vec::new();
        let holders = self.watched_holding_claims();
        let evicted: BTreeSet<&str> = record.pods.iter().map(|pod| pod.uid.as_str()).collect();
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
                holder.namespace == *namespace
                    && claims.contains(&holder.claim)
                    && holder.pods.iter().all(|user| evicted.contains(user.as_str()))
            });
            if let Some(held) = held {
                waiting.push(format!("claim {namespace}/{} is still allocated", held.claim));
            } else if progress.released.insert(uid.clone()) {
                released.push(PodRef { namespace: namespace.clone(), name: name.clone() });
            }
        }
        for pod in released {
            self.notify_observer(&Event::PodReleased { wave: record.wave + 1, pod });
        }
        waiting
    }

    /// Returns the workloads whose replacements the wave still waits for, as text.
    fn describe_awaited_workloads(&self, record: &WaveRecord, workloads: &PodsByWorkload) -> Vec<String> {
        let word = if self.settings.wait == ReplacementWaitCondition::Ready { "Ready" } else { "bound" };
        let mut waiting = Vec::new();
        for ready in &record.ready {
            let ReadyPodsBeforeWave { workload, .. } = ready;
            let (needed, has) =
                (workloads.required_ready_count(workload, ready.ready), workloads.ready_pod_count(workload));
            let (needed_new, new) = (
                workloads.required_new_count(ready),
                workloads.ready_pods_created_after(workload, &ready.newest),
            );
            if has < needed {
                waiting.push(format!("{workload} has {has} of {needed} {word} pods"));
            } else if new < needed_new {
                waiting.push(format!("{workload} has {new} of {needed_new} new {word} pods"));
            }
        }
        waiting
    }

    /// Reports new pods of the workloads whose pods were evicted. Returns an error if one cannot be scheduled, or
    /// has a selected device.
    fn report_and_check_replacement_pods(
        &mut self,
        record: &WaveRecord,
        workloads: &PodsByWorkload,
        progress: &mut WaveProgress,
    ) -> Result<(), StopReason> {
        let (wave, now) = (record.wave + 1, self.now());
        let mut events = Vec::new();
        let mut stuck = Vec::new();
        let is_first = !std::mem::replace(&mut progress.has_looked, true);
        let pods = self.touched.iter().flat_map(|workload| {
            let before = record.ready.iter().find(|before| before.workload == *workload);
            workloads.non_terminating_pods(workload).iter().map(move |pod| (pod, before))
        });
        for (pod, before) in pods {
            let reference = || pod.reference.clone();
            // Pods that were bound when the wave was first looked at are not replacements, unless they were created
            // during its evictions.
            let is_older = before.is_none_or(|before| pod.created <= before.newest);
            if is_first && !pod.node.is_empty() && is_older {
                progress.bound.insert(pod.uid.clone());
                progress.ready.insert(pod.uid.clone());
            }
            if !pod.node.is_empty() && progress.bound.insert(pod.uid.clone()) {
                events.push(Event::ReplacementBound { wave, pod: reference(), node: pod.node.clone() });
            }
            if pod.is_ready && pod.has_ready_condition && progress.ready.insert(pod.uid.clone()) {
                events.push(Event::ReplacementReady { wave, pod: reference(), node: pod.node.clone() });
            }
            let is_new = !self.pending_before.contains(&pod.uid);
            let Some(message) = pod.unschedulable.as_ref().filter(|_| is_new) else {
                progress.unschedulable.remove(&pod.uid);
                continue;
            };
            let since = *progress.unschedulable.entry(pod.uid.clone()).or_insert(now);
            if seconds_between(since, now) >= MAX_UNSCHEDULABLE_SECONDS {
                stuck.push(format!("{}: {message}", pod.reference));
            }
        }
        for event in events {
            self.notify_observer(&event);
        }
        if !stuck.is_empty() {
            return Err(StopReason::Stopped(format!(
                "more pods are Pending than planned; the scheduler says: {}",
                stuck.join("; ")
            )));
        }
        self.check_replacements_scheduled_before_taint(workloads)
    }

    fn check_replacements_scheduled_before_taint(
        &mut self,
        workloads: &PodsByWorkload,
    ) -> Result<(), StopReason> {
        let holders = self.watched_holding_claims();
        let touched = self.touched.clone();
        for pod in touched.iter().flat_map(|workload| workloads.non_terminating_pods(workload)) {
            if !self.known_pods.contains(&pod.uid)
                && holders.iter().any(|holder| holder.pods.contains(&pod.uid))
            {
                self.check_new_pod_scheduled_before_taint(&pod.reference)?;
                self.known_pods.insert(pod.uid.clone());
            }
        }
        Ok(())
    }

    /// Reports a new pod on the closed devices. Returns an error unless the scheduler may have chosen the device
    /// before they were closed.
    pub(super) fn check_new_pod_scheduled_before_taint(&mut self, pod: &PodRef) -> Result<(), StopReason> {
        let closed = self.no_schedule_since_or_now();
        let since = seconds_between(closed, self.now());
        if since <= MAX_BINDING_SECONDS_AFTER_CLOSING && !self.is_pod_created_after_latest_taint(pod) {
            self.notify_observer(&Event::PodJoined { pod: pod.clone() });
            return Ok(());
        }
        Err(StopReason::Stopped(format!(
            "pod {pod} got a selected device although the devices have been closed since {}; it tolerates the taint, or joined \
             a claim that was allocated before, or the scheduler ignores DeviceTaintRules",
            gotime::rfc3339(self.latest_taint_time().unwrap_or(closed))
        )))
    }

    /// Returns when the last rule got its effect, by the clock of the API server, in this or an earlier run.
    fn latest_taint_time(&self) -> Option<Timestamp> {
        let objects = self.server.objects();
        let times = self.rules.iter().filter_map(|rule| {
            let rule = objects.get(ObjectKind::DeviceTaintRule, "", &rule.name)?;
            gotime::parse_rfc3339(rule.get("spec").get("taint").get("timeAdded").str()).ok()
        });
        times.max()
    }

    /// True if the pod was created after the last rule got its effect. Both times are those of the API server.
    fn is_pod_created_after_latest_taint(&self, pod: &PodRef) -> bool {
        let objects = self.server.objects();
        let pod = objects.get(ObjectKind::Pod, &pod.namespace, &pod.name);
        let created = pod.map(|pod| pod.get("metadata").get("creationTimestamp").str());
        let created = created.and_then(|created| gotime::parse_rfc3339(created).ok());
        created.zip(self.latest_taint_time()).is_some_and(|(created, closed)| created > closed)
    }
}

/// The pods of a wave about which events were already sent, so that none is sent twice, and since when pods have
/// been unschedulable.
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
