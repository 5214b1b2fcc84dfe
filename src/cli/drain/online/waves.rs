//! The waves of a drain: the next plan, evictions, and the wait until what was evicted is replaced.
//!
//! Before each wave the plan is made again over the cluster as it is. What a wave has to restore is written on the
//! first rule before its first eviction, as an annotation, so that a drain which was killed waits for the same when it
//! goes on.
//!
//! Invariant: no pod of a workload is evicted before all that the wave before evicted of it is replaced.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::differences::plan_differences;
use super::event::Event;
use super::rules::WAVE_ANNOTATION;
use super::run::{Run, StopReason, pod_ref};
use super::time::{add_duration, duration_text, seconds_between};
use crate::cluster::DrainApiRequest;
use tollgate_drain::{DrainPlan, PlannedPod, PodDecision, STARTED_ANNOTATION, StayReason};
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime::{self, Timestamp};

/// Pause before an eviction that a PDB did not allow is tried again.
const PDB_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Interval at which a drain checks for pods to delete while it waits for `--force-after`.
const FORCE_CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// The pods, by uid, whose deletion because of `--force-after` was announced or requested.
#[derive(Default)]
struct AnnouncedOrForceDeletedPods {
    /// Pods for which the user was told when they will be deleted.
    announced: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

impl Run<'_> {
    /// Waits until the pods that an earlier run of this drain evicted in its last wave are replaced.
    pub(super) fn wait_for_last_wave_of_earlier_run(&mut self) -> Result<(), StopReason> {
        let Some(record) = self.stored_wave() else { return Ok(()) };
        self.touched.extend(record.ready.iter().map(|ready| ready.workload.clone()));
        // What was not evicted is planned anew.
        let evicted = self.evicted_pods_of_wave(&record);
        if evicted.is_empty() {
            self.next_wave = record.wave;
            return Ok(());
        }
        self.next_wave = record.wave + 1;
        let touched: BTreeSet<&str> = evicted.iter().map(|pod| pod.workload.as_str()).collect();
        let ready =
            record.ready.iter().filter(|ready| touched.contains(ready.workload.as_str())).cloned().collect();
        let began = self.now();
        self.wait_until_wave_finished(&WaveRecord { pods: evicted, ready, ..record.clone() }, began)
    }

    /// Returns the pods of a wave of an earlier run that are gone or being deleted.
    pub(super) fn evicted_pods_of_wave(&self, record: &WaveRecord) -> Vec<MovedPod> {
        let objects = self.server.objects();
        let is_evicted = |pod: &&MovedPod| {
            let found = objects.get(ObjectKind::Pod, &pod.namespace, &pod.name);
            let found = found.filter(|found| found.get("metadata").get("uid").str() == pod.uid);
            found.is_none_or(|found| found.get("metadata").get("deletionTimestamp").exists())
        };
        record.pods.iter().filter(is_evicted).cloned().collect()
    }

    /// Moves wave after wave until the plan has none left. `forceable` are the uids of the pods that the user has
    /// agreed to delete after `--force-after`.
    pub(super) fn move_all_waves(&mut self, forceable: &BTreeSet<String>) -> Result<(), StopReason> {
        let mut forced = AnnouncedOrForceDeletedPods::default();
        let mut awaited: BTreeSet<String> = BTreeSet::new();
        loop {
            self.refresh_objects_with_retries()?;
            self.check_interrupt_and_rules_and_renew_lock()?;
            let plan = self.taint_new_devices_and_replan()?;
            // In a large cluster, a plan takes seconds.
            self.check_interrupt_and_rules_and_renew_lock()?;
            let pods: Vec<PlannedPod> = match plan.waves.first() {
                Some(next) => next.pods.iter().filter_map(|place| plan.pods.get(*place)).cloned().collect(),
                None if self.wait_for_new_terminating_pods(&plan, &mut awaited)? => continue,
                None if self.delete_or_await_forceable_pods(&plan, forceable, &mut forced)? => continue,
                // A later run has nothing to wait for.
                None => return self.remove_stored_wave(),
            };
            self.evict_wave_and_wait(&pods)?;
            self.next_wave += 1;
            self.has_moved = true;
        }
    }

    /// Makes the plan for the current state of the cluster, after closing devices that have appeared.
    fn taint_new_devices_and_replan(&mut self) -> Result<DrainPlan, StopReason> {
        let mut plan = self.make_plan().map_err(StopReason::Stopped)?;
        let is_closed = |name: &str| self.rules.iter().any(|rule| rule.name == name);
        if plan.rules.iter().any(|rule| !is_closed(&rule.name)) {
            self.set_plan(plan);
            self.set_no_schedule_or_roll_back()?;
            plan = self.make_plan().map_err(StopReason::Stopped)?;
        }
        self.check_new_pods_scheduled_before_taint(&plan)?;
        if let Some(before) = &self.plan {
            let differences = plan_differences(before, &plan, &self.deleted);
            if !differences.is_empty() {
                self.notify_observer(&Event::PlanChanged { differences });
            }
        }
        self.set_plan(plan.clone());
        Ok(plan)
    }

    /// Reports the pods of a plan that are new on the devices. Returns an error if one got its device after the
    /// devices were closed.
    fn check_new_pods_scheduled_before_taint(&mut self, plan: &DrainPlan) -> Result<(), StopReason> {
        for pod in &plan.pods {
            if self.known_pods.contains(&pod.uid) {
                continue;
            }
            self.check_new_pod_scheduled_before_taint(&pod_ref(pod))?;
            self.known_pods.insert(pod.uid.clone());
        }
        Ok(())
    }

    /// Waits until pods are gone that others have deleted, and adds them to `awaited`. Returns false if all of
    /// them were waited for before.
    fn wait_for_new_terminating_pods(
        &mut self,
        plan: &DrainPlan,
        awaited: &mut BTreeSet<String>,
    ) -> Result<bool, StopReason> {
        let is_terminating = |pod: &&PlannedPod| {
            matches!(pod.fate, PodDecision::Stays { reason: StayReason::Terminating, .. })
        };
        let pods: Vec<PlannedPod> = plan.pods.iter().filter(is_terminating).cloned().collect();
        let new = pods.iter().filter(|pod| awaited.insert(pod.uid.clone())).count();
        if new > 0 {
            self.wait_until_gone(&pods)?;
        }
        Ok(new > 0)
    }

    /// Stores the wave on a rule, evicts its pods, and waits until they are replaced.
    fn evict_wave_and_wait(&mut self, pods: &[PlannedPod]) -> Result<(), StopReason> {
        let wave = self.next_wave;
        let workloads = self.pods_by_workload(self.now());
        let moved = |pod| MovedPod::from_planned_pod(pod, workloads.workload_of(&pod.uid));
        let pods: Vec<(MovedPod, &PlannedPod)> = pods.iter().map(|pod| (moved(pod), pod)).collect();
        let names: BTreeSet<&str> =
            pods.iter().map(|(moved, _)| moved.workload.as_str()).filter(|name| !name.is_empty()).collect();
        let ready = names.into_iter().map(|workload| {
            let evicted = pods.iter().filter(|(moved, _)| moved.workload == workload);
            let lost = evicted.filter(|(moved, _)| workloads.is_ready(workload, &moved.uid)).count();
            ReadyPodsBeforeWave {
                workload: workload.to_owned(),
                ready: workloads.ready_pod_count(workload),
                lost: i64::try_from(lost).unwrap_or(i64::MAX),
                newest: workloads.newest_creation_time(workload),
            }
        });
        let grace = pods.iter().map(|(_, pod)| pod.grace_seconds).max().unwrap_or(0);
        let record = WaveRecord {
            wave,
            pods: pods.iter().map(|(moved, _)| moved.clone()).collect(),
            ready: ready.collect(),
            grace,
        };
        self.touched.extend(record.ready.iter().map(|ready| ready.workload.clone()));
        self.store_wave(&record)?;
        self.notify_observer(&Event::WaveStarted {
            wave: wave + 1,
            pods: pods.iter().map(|(_, pod)| pod_ref(pod)).collect(),
        });
        let began = self.now();
        let deadline = add_duration(began, self.wave_timeout(grace));
        for (_, pod) in &pods {
            self.evict_pod(wave, pod, deadline)?;
        }
        self.wait_until_wave_finished(&record, began)
    }

    /// Evicts one pod through the eviction API. Waits and retries while a PDB does not allow it.
    fn evict_pod(&mut self, wave: usize, pod: &PlannedPod, deadline: Timestamp) -> Result<(), StopReason> {
        let request = DrainApiRequest::EvictPod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        };
        let mut said = String::new();
        loop {
            self.refresh_objects_with_retries()?;
            self.check_interrupt_and_rules_and_renew_lock()?;
            let answer = self.send_with_retries(&request)?;
            // With 409, another pod has the name, or two evictions met at a PDB.
            let is_gone =
                answer.code == 404 || answer.code == 409 && !self.exists_and_is_not_terminating(pod);
            match answer.code {
                _ if answer.is_success() => {
                    self.evicted.insert(pod.uid.clone());
                    self.notify_observer(&Event::PodEvicted { wave: wave + 1, pod: pod_ref(pod) });
                    return Ok(());
                }
                _ if is_gone => {
                    self.notify_observer(&Event::PodGone { wave: wave + 1, pod: pod_ref(pod) });
                    return Ok(());
                }
                409 | 429 => {
                    let why = answer.status_code_and_message();
                    if self.now() >= deadline {
                        let timeout = duration_text(self.wave_timeout(pod.grace_seconds));
                        return Err(StopReason::Stopped(format!(
                            "pod {} could not be evicted within {timeout}: {why}",
                            pod_ref(pod)
                        )));
                    }
                    if why != said {
                        said.clone_from(&why);
                        self.notify_observer(&Event::PodWaits { wave: wave + 1, pod: pod_ref(pod), why });
                    }
                    self.wait_and_refresh_objects(PDB_RETRY_INTERVAL)?;
                }
                _ => {
                    let what = format!("the API server rejects the eviction of pod {}", pod_ref(pod));
                    return Err(StopReason::answered(what, &answer));
                }
            }
        }
    }

    /// True if the pod is there and not being deleted.
    pub(super) fn exists_and_is_not_terminating(&self, pod: &PlannedPod) -> bool {
        let found = self.server.objects().get(ObjectKind::Pod, &pod.namespace, &pod.name);
        let metadata = found.map(|found| found.get("metadata"));
        metadata.is_some_and(|metadata| {
            metadata.get("uid").str() == pod.uid && !metadata.get("deletionTimestamp").exists()
        })
    }

    /// Deletes the pods that the user agreed to delete with `--force-after`, if it is time, and waits if it is not.
    /// Returns false if no such pods are left.
    fn delete_or_await_forceable_pods(
        &mut self,
        plan: &DrainPlan,
        forceable: &BTreeSet<String>,
        forced: &mut AnnouncedOrForceDeletedPods,
    ) -> Result<bool, StopReason> {
        let Some(after) = self.settings.force_after else { return Ok(false) };
        let is_left = |pod: &&PlannedPod| {
            pod.is_forceable && forceable.contains(&pod.uid) && !forced.deleted.contains(&pod.uid)
        };
        let pods: Vec<PlannedPod> = plan.pods.iter().filter(is_left).cloned().collect();
        if pods.is_empty() {
            return Ok(false);
        }
        let started = self.drain_start().unwrap_or_else(|| self.now());
        if self.now() < add_duration(started, after) {
            let left = seconds_between(self.now(), add_duration(started, after)).max(0).unsigned_abs();
            let uids: BTreeSet<String> = pods.iter().map(|pod| pod.uid.clone()).collect();
            if !uids.is_subset(&forced.announced) {
                let pods = pods.iter().map(pod_ref).collect();
                self.notify_observer(&Event::DeletionWaits { pods, seconds: left });
                forced.announced.extend(uids);
            }
            self.wait_and_refresh_objects(FORCE_CHECK_INTERVAL.min(Duration::from_secs(left + 1)))?;
            return Ok(true);
        }
        for pod in &pods {
            self.refresh_objects_with_retries()?;
            self.check_interrupt_and_rules_and_renew_lock()?;
            let request = DrainApiRequest::DeletePod {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: pod.uid.clone(),
            };
            let answer = self.send_with_retries(&request)?;
            forced.deleted.insert(pod.uid.clone());
            match answer.code {
                404 | 409 => {}
                _ if answer.is_success() => {
                    self.deleted.insert(pod.uid.clone());
                    self.notify_observer(&Event::PodDeleted { pod: pod_ref(pod) });
                }
                _ => {
                    let what = format!("the API server rejects the deletion of pod {}", pod_ref(pod));
                    return Err(StopReason::answered(what, &answer));
                }
            }
        }
        self.wait_until_gone(&pods)?;
        Ok(true)
    }
}

/// A wave, as it is stored in an annotation so that a later run can continue it.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WaveRecord {
    /// Its number, from 0.
    pub(super) wave: usize,
    pub(super) pods: Vec<MovedPod>,
    /// The workloads of these pods, with their numbers of ready pods before the wave.
    pub(super) ready: Vec<ReadyPodsBeforeWave>,
    /// The longest grace period, in seconds.
    pub(super) grace: u64,
}

/// A pod that a wave evicts, and its claims and workload.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct MovedPod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) claims: Vec<String>,
    /// `Deployment inference/chat`; empty if nothing has to replace the pod.
    pub(super) workload: String,
}

/// The number of ready pods of a workload before a wave, and how many of them the wave moved.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ReadyPodsBeforeWave {
    pub(super) workload: String,
    pub(super) ready: i64,
    /// How many pods of the wave were ready.
    pub(super) lost: i64,
    /// Creation time of the newest pod of the workload before the wave; younger pods are replacements.
    pub(super) newest: String,
}

impl MovedPod {
    /// Creates the record of a pod, with its workload if something has to replace the pod.
    pub(super) fn from_planned_pod(pod: &PlannedPod, workload: Option<String>) -> MovedPod {
        MovedPod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            claims: pod.claims.clone(),
            workload: workload.unwrap_or_default(),
        }
    }
}

impl Run<'_> {
    /// Returns the rule that stores the wave: the first one by name.
    fn rule_storing_wave(&self) -> Option<&super::rules::DrainRule> {
        self.rules.iter().min_by(|one, other| one.name.cmp(&other.name))
    }

    /// Returns the last wave that this drain started, from the annotations of its rules; `None` if there is none.
    pub(super) fn stored_wave(&self) -> Option<WaveRecord> {
        let records = self.rules.iter().filter_map(|rule| {
            serde_json::from_str::<WaveRecord>(&self.annotation_of_rule(&rule.name, WAVE_ANNOTATION)?).ok()
        });
        records.max_by_key(|record| record.wave)
    }

    /// Stores the wave in an annotation of the first rule, so that a later run of this drain can finish it.
    fn store_wave(&mut self, record: &WaveRecord) -> Result<(), StopReason> {
        let Some(rule) = self.rule_storing_wave().cloned() else {
            return Err(StopReason::internal("no rules"));
        };
        let text = serde_json::to_string(record).map_err(StopReason::internal)?;
        self.update_rule(&rule.name, &rule, false, |metadata| {
            metadata.annotations.insert(WAVE_ANNOTATION.to_owned(), text.clone());
        })
    }

    /// Removes the stored wave from the rules, when all waves are finished.
    fn remove_stored_wave(&mut self) -> Result<(), StopReason> {
        for rule in self.rules.clone() {
            if self.annotation_of_rule(&rule.name, WAVE_ANNOTATION).is_some() {
                self.update_rule(&rule.name, &rule, false, |metadata| {
                    _ = metadata.annotations.remove(WAVE_ANNOTATION)
                })?;
            }
        }
        Ok(())
    }

    /// Returns when the drain began, in this or an earlier run.
    fn drain_start(&self) -> Option<Timestamp> {
        let times = self.rules.iter().filter_map(|rule| {
            gotime::parse_rfc3339(&self.annotation_of_rule(&rule.name, STARTED_ANNOTATION)?).ok()
        });
        times.min()
    }

    fn annotation_of_rule(&self, rule: &str, name: &str) -> Option<String> {
        let rule = self.server.objects().get(ObjectKind::DeviceTaintRule, "", rule)?;
        let text = rule.get("metadata").get("annotations").get(name).str();
        (!text.is_empty()).then(|| text.to_owned())
    }
}
