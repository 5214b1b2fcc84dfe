//! The Jobs in a simulated run: evicted pods count as failures, and a failed Job deletes its other pods.

use crate::course::{PodState, Simulation};
use crate::job_policy::EvictionAction;
use crate::tables::{PodIndex, RecreatingController};

impl Simulation<'_, '_> {
    /// Applies the pod failure policy of a Job to an eviction of this pod or of the one that it replaces: the eviction
    /// counts as a failure, is ignored, or fails the index or the Job.
    pub(crate) fn apply_eviction_to_job(&mut self, pod: PodIndex) {
        let entry = self.plan.tables.pod(pod);
        let RecreatingController::Job(job) = entry.controller else { return };
        let Some(job) = self.jobs.get_mut(job) else { return };
        match job.on_eviction {
            EvictionAction::Ignore => {}
            EvictionAction::Count | EvictionAction::FailIndex => {
                job.failures_left = job.failures_left.map(|left| left - 1);
            }
            EvictionAction::FailJob => job.failures_left = Some(-1),
        }
        if let Some(survived) = entry.evictions_survived_by_index {
            let evictions = self.evictions_of_index.entry(pod).or_default();
            *evictions += 1;
            if *evictions == survived + 1 {
                job.failed_indexes_left = job.failed_indexes_left.map(|left| left - 1);
            }
            if job.failed_indexes_left.is_some_and(|left| left < 0) {
                job.failures_left = Some(-1);
            }
        }
    }

    /// True if the Job of the pod does not create it again: the Job has failed, is suspended or creates no more pods,
    /// or the index of the pod has failed. Pods that end by themselves do not count.
    pub(crate) fn is_given_up_by_job(&self, pod: PodIndex) -> bool {
        let entry = self.plan.tables.pod(pod);
        let RecreatingController::Job(job) = entry.controller else { return false };
        let evictions = self.evictions_of_index.get(&pod).copied().unwrap_or(0);
        entry.evictions_survived_by_index.is_some_and(|survived| evictions > survived)
            || self
                .jobs
                .get(job)
                .is_some_and(|job| job.creates_no_pods || job.failures_left.is_some_and(|left| left < 0))
    }

    /// Deletes the pods of Jobs that have failed, which frees their devices.
    pub(crate) fn delete_pods_of_failed_jobs(&mut self) {
        let plan = self.plan;
        for (number, stored) in plan.controllers.jobs.iter().enumerate() {
            let Some(job) = self.jobs.get_mut(number) else { continue };
            if job.has_ended || job.failures_left.is_none_or(|left| left >= 0) {
                continue;
            }
            job.has_ended = true;
            let made = plan.tables.pods.iter().enumerate();
            let made = made
                .filter(|(_, pod)| pod.controller == RecreatingController::Job(number))
                .map(|(pod, _)| pod);
            for pod in stored.bound.iter().copied().chain(made) {
                if !matches!(self.state_of(pod), PodState::Absent | PodState::Gone) {
                    self.start_deletion(pod);
                }
            }
        }
    }
}
