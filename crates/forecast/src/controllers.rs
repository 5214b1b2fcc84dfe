//! Simulates controllers: which of them replaces an evicted pod, and which pods a new workload creates.
//!
//! A pod is replaced if its owner reference names a controller that replaces pods, even if the state does not contain
//! the controller. Only Jobs stop; see [`crate::job_policy`].

use crate::builder::PlanBuilder;
use crate::job_policy::Job;
use crate::nodes::PodSource;
use crate::outcome::{PodOrigin, WorkloadName};
use crate::plan::PodOrClaimChange;
use crate::state::{ObjectKind, State, StoredObject};
use crate::tables::{PodIndex, RecreatingController, ReplacedAndNewPredecessor};
use crate::workload::{controller_reference, controllers_of};
use std::collections::BTreeMap;
use tollgate_document::doc::Value;

/// The Jobs whose pods are evicted or created in a forecast.
#[derive(Default, Debug)]
pub(crate) struct JobTable {
    pub(crate) jobs: Vec<Job>,
    /// Index of each Job, by namespace and name.
    by_name: BTreeMap<(String, String), usize>,
}

impl JobTable {
    /// The controller that recreates the pod.
    pub(crate) fn replacement_controller_of<'d>(
        &mut self,
        state: &State<'d>,
        pod: StoredObject<'d>,
    ) -> RecreatingController {
        let reference = controller_reference(pod.value);
        let (api_version, kind) = (reference.get("apiVersion").str(), reference.get("kind").str());
        match (ObjectKind::from_type_meta(api_version, kind), kind) {
            (None, "") => RecreatingController::None,
            (Some(ObjectKind::ReplicaSet), _) | (None, "ReplicationController") => {
                RecreatingController::AtOnce
            }
            (Some(ObjectKind::StatefulSet | ObjectKind::DaemonSet), _) => RecreatingController::WhenGone,
            (Some(ObjectKind::Job), _) => {
                let owner = controllers_of(state, pod).next();
                let job = owner.filter(|(kind, _)| *kind == ObjectKind::Job).map(|(_, job)| job.value);
                RecreatingController::Job(self.job_index(pod.namespace(), reference.get("name").str(), job))
            }
            _ => RecreatingController::Unknown(kind.to_owned()),
        }
    }

    /// True if the controller recreates a pod only after it is gone.
    pub(crate) fn waits_until_gone(&self, controller: &RecreatingController) -> bool {
        match controller {
            RecreatingController::WhenGone => true,
            RecreatingController::Job(job) => self.jobs.get(*job).is_some_and(|job| job.replaces_when_gone),
            _ => false,
        }
    }

    /// The index of the Job with this name, which is added if it is new.
    fn job_index(&mut self, namespace: &str, name: &str, object: Option<Value<'_>>) -> usize {
        let next = self.jobs.len();
        let place = *self.by_name.entry((namespace.to_owned(), name.to_owned())).or_insert(next);
        if place == next {
            self.jobs.push(Job::read(object));
        }
        place
    }

    /// Records a bound pod with the Job that owns it, if any. Returns the index of the Job.
    pub(crate) fn record_bound_pod_of_job(
        &mut self,
        index: PodIndex,
        pod: StoredObject<'_>,
    ) -> Option<usize> {
        let reference = controller_reference(pod.value);
        if self.jobs.is_empty() || reference.get("kind").str() != "Job" {
            return None;
        }
        let name = (pod.namespace().to_owned(), reference.get("name").str().to_owned());
        let job = *self.by_name.get(&name)?;
        self.jobs.get_mut(job)?.bound.push(index);
        Some(job)
    }

    /// True if the replacement has the same name as the pod.
    pub(crate) fn replacement_keeps_name(pod: StoredObject<'_>) -> bool {
        controller_reference(pod.value).get("kind").str() == "StatefulSet"
    }

    /// True if the StatefulSet of the pod creates its pods one after the other.
    pub(crate) fn creates_pods_in_order<'d>(state: &State<'d>, pod: StoredObject<'d>) -> bool {
        let set = controllers_of(state, pod).next().map(|(_, owner)| owner.value);
        let policy = set.map_or("", |set| set.get("spec").get("podManagementPolicy").str());
        JobTable::replacement_keeps_name(pod) && policy != "Parallel"
    }

    /// The label selector of the pod's ReplicaSet or StatefulSet. By default, the scheduler spreads the pods that it
    /// selects over nodes and zones.
    pub(crate) fn spreading_selector<'d>(state: &State<'d>, pod: StoredObject<'d>) -> Option<Value<'d>> {
        let (kind, owner) = controllers_of(state, pod).next()?;
        let spreads = matches!(kind, ObjectKind::ReplicaSet | ObjectKind::StatefulSet);
        spreads.then(|| owner.value.get("spec").get("selector"))
    }
}

impl<'d> PlanBuilder<'d> {
    /// Adds the pods that an applied Deployment, StatefulSet or Job creates. If the workload is `known`, it exists
    /// already, so their outcome is reported as unknown.
    pub(crate) fn add_pods_of_workload(&mut self, kind: ObjectKind, object: StoredObject<'d>, known: bool) {
        let (spec, name) = (object.value.get("spec"), object.name());
        let number = |field: &str, default: i64| spec.get(field).int().unwrap_or(default).max(0);
        let count = match kind {
            ObjectKind::Job if spec.get("suspend").bool() == Some(true) => 0,
            ObjectKind::Job => number("parallelism", 1).min(number("completions", i64::MAX)),
            _ => number("replicas", 1),
        };
        let is_set = kind == ObjectKind::StatefulSet;
        let controller = match kind {
            ObjectKind::Job => {
                let jobs = &mut self.plan.controllers;
                RecreatingController::Job(jobs.job_index(object.namespace(), name, Some(object.value)))
            }
            _ if is_set => RecreatingController::WhenGone,
            _ => RecreatingController::AtOnce,
        };
        let source = PodSource {
            controller_selector: (kind != ObjectKind::Job).then(|| spec.get("selector")),
            ..PodSource::from_template(object.namespace(), spec.get("template"))
        };
        let first = spec.get("ordinals").get("start").int().unwrap_or(0);
        let mut before: Vec<ReplacedAndNewPredecessor> = Vec::new();
        for ordinal in 0..count {
            let own_name = is_set.then(|| format!("{name}-{}", first.saturating_add(ordinal)));
            let pod = self.add_created_pod(&source, own_name.as_ref().unwrap_or(&format!("{name}-gen")));
            let workload = WorkloadName { kind: kind.name().to_owned(), name: name.to_owned() };
            self.track_pod_as(pod, PodOrigin::Given, None, own_name, Some(workload));
            self.set_controller(pod, controller.clone(), Value::absent());
            // Each pod is created only after the previous one is ready.
            if is_set && spec.get("podManagementPolicy").str() != "Parallel" {
                self.plan.tables.pod_mut(pod).after.clone_from(&before);
                before.push((None, pod));
            }
            if known && let Some(tracked) = self.plan.tracked.last_mut() {
                tracked.not_modelled.push(format!("update of an existing {}", kind.name()));
            }
            self.actions.push(PodOrClaimChange::CreatePod(pod));
        }
    }
}
