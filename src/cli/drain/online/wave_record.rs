//! The pods and workloads of a wave, stored in an annotation of the first rule, so that a drain that was killed can
//! wait for their replacements when it continues.

use serde::{Deserialize, Serialize};

use super::halt::StopReason;
use super::rules::WAVE_ANNOTATION;
use super::run::Run;
use tollgate_drain::{PlannedPod, STARTED_ANNOTATION};
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime::{self, Timestamp};

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
    pub(super) fn store_wave(&mut self, record: &WaveRecord) -> Result<(), StopReason> {
        let Some(rule) = self.rule_storing_wave().cloned() else {
            return Err(StopReason::internal("no rules"));
        };
        let text = serde_json::to_string(record).map_err(StopReason::internal)?;
        self.update_rule(&rule.name, &rule, false, |metadata| {
            metadata.annotations.insert(WAVE_ANNOTATION.to_owned(), text.clone());
        })
    }

    /// Removes the stored wave from the rules, when all waves are finished.
    pub(super) fn remove_stored_wave(&mut self) -> Result<(), StopReason> {
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
    pub(super) fn drain_start(&self) -> Option<Timestamp> {
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
