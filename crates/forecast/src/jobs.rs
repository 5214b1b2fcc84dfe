//! The Jobs in a simulated run: evicted pods count as failures, and a failed Job deletes its other pods.

use crate::controllers::DisruptionEffect;
use crate::course::{PodState, Simulation};
use crate::tables::{PodIndex, RecreatingController};

impl Simulation<'_, '_> {
    /// Applies the pod failure policy of a Job to an evicted pod: the eviction counts as a failure, is ignored, or
    /// fails the Job.
    pub(crate) fn apply_eviction_to_job(&mut self, pod: PodIndex) {
        let Some(RecreatingController::Job(job)) = self.plan.tables.pods.get(pod).map(|pod| &pod.controller)
        else {
            return;
        };
        let Some(job) = self.jobs.get_mut(*job) else { return };
        match job.on_disruption {
            DisruptionEffect::Ignore => {}
            DisruptionEffect::Count => job.failures_left = job.failures_left.map(|left| left - 1),
            DisruptionEffect::FailJob => job.failures_left = Some(-1),
        }
    }

    /// True if the Job of the pod has failed or is suspended, so that it creates no more pods. Completed Jobs do not count.
    pub(crate) fn is_job_failed_or_suspended(&self, pod: PodIndex) -> bool {
        let Some(RecreatingController::Job(job)) = self.plan.tables.pods.get(pod).map(|pod| &pod.controller)
        else {
            return false;
        };
        let job = self.jobs.get(*job);
        job.is_some_and(|job| job.is_suspended || job.failures_left.is_some_and(|left| left < 0))
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
                if !matches!(self.pods.get(pod), Some(PodState::Absent | PodState::Gone) | None) {
                    self.start_deletion(pod);
                }
            }
        }
    }
}
