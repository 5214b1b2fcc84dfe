//! The pods of a cluster by workload: how many are ready, and how many there should be.
//!
//! A pod of a Job that has succeeded counts as ready, because its work is done. Pods of DaemonSets are not here:
//! nothing waits for their replacements, which stay Pending while the devices of their node are closed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::event::PodRef;
use super::settings::ReplacementWaitCondition;
use super::time::seconds_between;
use super::waves::ReadyPodsBeforeWave;
use tollgate_document::doc::Value;
use tollgate_forecast::{ObjectKind, State, StoredObject, controllers_of, workload_of};
use tollgate_formats::gotime::{self, Timestamp};

/// A pod of a workload, and whether it counts as a replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WorkloadPod {
    pub(super) reference: PodRef,
    pub(super) uid: String,
    /// When it was created, as the API server writes it.
    pub(super) created: String,
    /// Empty if it is not bound.
    pub(super) node: String,
    /// True if it counts as a replacement: it has been Ready for `minReadySeconds`, or with `--wait bound` it is
    /// bound; or its work has succeeded.
    pub(super) is_ready: bool,
    /// True if it has the condition Ready, or its work has succeeded.
    pub(super) has_ready_condition: bool,
    /// The scheduler's message, if it found no place.
    pub(super) unschedulable: Option<String>,
}

/// The pods of each workload, and how many it wants.
#[derive(Debug)]
pub(super) struct PodsByWorkload {
    by_workload: BTreeMap<String, Vec<WorkloadPod>>,
    /// The number of pods that controllers want, where it is known.
    desired: BTreeMap<String, i64>,
    /// Messages about failed Jobs, by workload: the Job, or the CronJob that it belongs to.
    failed_jobs: BTreeMap<String, String>,
    /// Kinds of workloads that were listed, so that a workload of these kinds that is not in `desired` was
    /// deleted.
    listed: Vec<ObjectKind>,
    /// The workload of each pod, by uid of the pod.
    of_pod: HashMap<String, String>,
}

impl PodsByWorkload {
    /// Reads the pods of all workloads but DaemonSets, and the numbers of pods that the workloads want.
    pub(super) fn from_state_without_daemon_sets(
        state: &State<'_>,
        wait: ReplacementWaitCondition,
        now: Timestamp,
    ) -> PodsByWorkload {
        let mut found = PodsByWorkload {
            by_workload: BTreeMap::new(),
            desired: BTreeMap::new(),
            failed_jobs: BTreeMap::new(),
            listed: KINDS_WITH_DESIRED_PODS.into_iter().filter(|kind| state.is_listed(*kind)).collect(),
            of_pod: HashMap::new(),
        };
        for kind in KINDS_WITH_DESIRED_PODS {
            for object in state.objects_of_kind(kind).iter() {
                let name = format!("{} {}/{}", kind.name(), object.namespace(), object.name());
                // A Job that is going to fail can be deleted as soon as it has failed.
                let failed = ["Failed", "FailureTarget"].into_iter();
                let mut failed = failed.filter_map(|condition| true_condition(object.value, condition));
                if let Some(failed) = failed.next() {
                    let of_cron_job = workload_of(state, object).filter(|owner| owner.kind == "CronJob");
                    let owner =
                        of_cron_job.map(|owner| format!("CronJob {}/{}", owner.namespace, owner.name));
                    let of = owner.as_ref().map_or(String::new(), |owner| format!(" of {owner}"));
                    let (reason, message) = (failed.get("reason").str(), failed.get("message").str());
                    let text = format!("{name}{of} has failed, and makes no new pods: {reason}: {message}");
                    found.failed_jobs.insert(owner.unwrap_or_else(|| name.clone()), text);
                }
                found.desired.insert(name, desired_pods(kind, object.value));
            }
        }
        for pod in state.objects_of_kind(ObjectKind::Pod).iter() {
            let Some(workload) = workload_of(state, pod).filter(|workload| workload.kind != "DaemonSet")
            else {
                continue;
            };
            let name = format!("{} {}/{}", workload.kind, workload.namespace, workload.name);
            found.of_pod.insert(pod.uid().to_owned(), name.clone());
            let controller = controllers_of(state, pod).next();
            // One that is being deleted is not a replacement, nor does it count as ready.
            if pod.value.get("metadata").get("deletionTimestamp").exists() {
                continue;
            }
            let min_ready = controller.map_or(Value::absent(), |(_, object)| object.value.get("spec"));
            let min_ready = min_ready.get("minReadySeconds").int().unwrap_or(0);
            let pods = found.by_workload.entry(name).or_default();
            pods.push(WorkloadPod::from_stored_pod(pod, wait, min_ready, now));
        }
        found
    }

    /// Returns kind, namespace and name of the workload of the pod with this UID: `Deployment inference/chat`.
    pub(super) fn workload_of(&self, uid: &str) -> Option<String> {
        self.of_pod.get(uid).cloned()
    }

    /// Returns the message about a failed Job of a workload; `None` if there is none.
    pub(super) fn job_failure(&self, workload: &str) -> Option<&str> {
        self.failed_jobs.get(workload).map(String::as_str)
    }

    /// The pods of a workload that are not being deleted.
    pub(super) fn non_terminating_pods(&self, workload: &str) -> &[WorkloadPod] {
        self.by_workload.get(workload).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the UIDs of the pods for which the scheduler found no node.
    pub(super) fn unschedulable_pod_uids(&self) -> BTreeSet<String> {
        let pods = self.by_workload.values().flatten().filter(|pod| pod.unschedulable.is_some());
        pods.map(|pod| pod.uid.clone()).collect()
    }

    /// Returns the number of ready pods of a workload.
    pub(super) fn ready_pod_count(&self, workload: &str) -> i64 {
        let ready = self.non_terminating_pods(workload).iter().filter(|pod| pod.is_ready).count();
        i64::try_from(ready).unwrap_or(i64::MAX)
    }

    /// True if that pod of a workload counts as ready, see [`WorkloadPod::is_ready`].
    pub(super) fn is_ready(&self, workload: &str, uid: &str) -> bool {
        self.non_terminating_pods(workload).iter().any(|pod| pod.uid == uid && pod.is_ready)
    }

    /// Returns when the newest pod of a workload was created; empty if it has none.
    pub(super) fn newest_creation_time(&self, workload: &str) -> String {
        self.non_terminating_pods(workload).iter().map(|pod| pod.created.clone()).max().unwrap_or_default()
    }

    /// Returns the number of ready pods of a workload that were created after that time.
    pub(super) fn ready_pods_created_after(&self, workload: &str, time: &str) -> i64 {
        let new = self
            .non_terminating_pods(workload)
            .iter()
            .filter(|pod| pod.is_ready && pod.created.as_str() > time)
            .count();
        i64::try_from(new).unwrap_or(i64::MAX)
    }

    /// Returns how many pods of a workload must be ready if `before` pods were ready: fewer if it was scaled down
    /// or deleted.
    pub(super) fn required_ready_count(&self, workload: &str, before: i64) -> i64 {
        before.min(self.desired_count(workload).unwrap_or(before))
    }

    /// Returns how many new pods of a workload must be ready after a wave: as many as it lost, or fewer if it was
    /// scaled down.
    pub(super) fn required_new_count(&self, before: &ReadyPodsBeforeWave) -> i64 {
        let workload = &before.workload;
        let old =
            self.non_terminating_pods(workload).iter().filter(|pod| pod.created <= before.newest).count();
        let wanted =
            self.desired_count(workload).map(|desired| desired - i64::try_from(old).unwrap_or(i64::MAX));
        before.lost.min(wanted.unwrap_or(before.lost)).max(0)
    }

    /// Returns the number of pods that a workload wants; `None` if it is not known, and 0 if the workload was
    /// deleted.
    fn desired_count(&self, workload: &str) -> Option<i64> {
        let is_counted = self.listed.iter().any(|kind| workload.starts_with(&format!("{} ", kind.name())));
        self.desired.get(workload).copied().or(is_counted.then_some(0))
    }
}

impl WorkloadPod {
    fn from_stored_pod(
        pod: StoredObject<'_>,
        wait: ReplacementWaitCondition,
        min_ready: i64,
        now: Timestamp,
    ) -> WorkloadPod {
        let status = pod.value.get("status");
        let node = pod.value.get("spec").get("nodeName").str();
        let ready = condition(pod.value, "Ready");
        let since = gotime::parse_rfc3339(ready.get("lastTransitionTime").str()).ok();
        let phase = status.get("phase").str();
        let has_ready_condition = ready.get("status").str() == "True" && phase != "Failed";
        let is_available = has_ready_condition
            && (min_ready == 0 || since.is_some_and(|since| seconds_between(since, now) >= min_ready));
        let has_succeeded = phase == "Succeeded";
        let scheduled = condition(pod.value, "PodScheduled");
        let is_unschedulable = node.is_empty()
            && scheduled.get("status").str() == "False"
            && scheduled.get("reason").str() == "Unschedulable";
        WorkloadPod {
            reference: PodRef { namespace: pod.namespace().to_owned(), name: pod.name().to_owned() },
            uid: pod.uid().to_owned(),
            created: pod.value.get("metadata").get("creationTimestamp").str().to_owned(),
            node: node.to_owned(),
            is_ready: has_succeeded
                || match wait {
                    ReplacementWaitCondition::Ready => is_available,
                    ReplacementWaitCondition::Bound => !node.is_empty() && phase != "Failed",
                },
            has_ready_condition: has_succeeded || has_ready_condition,
            unschedulable: is_unschedulable.then(|| scheduled.get("message").str().to_owned()),
        }
    }
}

/// The kinds of workloads whose objects say how many pods they want.
const KINDS_WITH_DESIRED_PODS: [ObjectKind; 4] =
    [ObjectKind::Deployment, ObjectKind::ReplicaSet, ObjectKind::StatefulSet, ObjectKind::Job];

/// Returns the number of pods that a controller wants, from its spec.
fn desired_pods(kind: ObjectKind, object: Value<'_>) -> i64 {
    let (spec, status) = (object.get("spec"), object.get("status"));
    if kind != ObjectKind::Job {
        return spec.get("replicas").int().unwrap_or(1);
    }
    // Pods that have succeeded count as ready.
    let succeeded = status.get("succeeded").int().unwrap_or(0);
    if true_condition(object, "Complete").is_some() {
        return succeeded;
    }
    let parallel = spec.get("parallelism").int().unwrap_or(1);
    let left = spec.get("completions").int().map_or(parallel, |completions| completions - succeeded);
    parallel.min(left).max(0).saturating_add(succeeded)
}

/// The condition of an object with this type; absent if it has none.
pub(super) fn condition<'d>(object: Value<'d>, kind: &str) -> Value<'d> {
    let mut conditions = object.get("status").get("conditions").items();
    conditions.find(|condition| condition.get("type").text_is(kind)).unwrap_or(Value::absent())
}

/// The condition of an object with this type, if its status is `True`.
fn true_condition<'d>(object: Value<'d>, kind: &str) -> Option<Value<'d>> {
    Some(condition(object, kind)).filter(|condition| condition.get("status").text_is("True"))
}

#[cfg(test)]
mod tests {
    use super::{PodsByWorkload, ReplacementWaitCondition};
    use tollgate_document::doc;
    use tollgate_forecast::State;
    use tollgate_formats::gotime::Timestamp;

    #[test]
    fn a_job_that_has_ended_wants_no_more_pods() {
        let nightly = r#","ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"nightly","controller":true}]"#;
        let jobs = [
            ("running", "", ""),
            ("done", "Complete", ""),
            ("broken", "Failed", ""),
            ("nightly-1", "Failed", nightly),
        ];
        let texts = jobs.map(|(name, condition, owners)| {
            format!(
                r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"namespace":"app","name":"{name}"{owners}}},
                "spec":{{"parallelism":2}},"status":{{"succeeded":1,"conditions":[
                {{"type":"{condition}","status":"True","reason":"FailedIndexes","message":"Job has failed indexes"}}]}}}}"#
            )
        });
        let docs: Vec<_> = texts.iter().map(|text| doc::parse(text).expect("JSON")).collect();
        let mut state = State::default();
        for doc in &docs {
            state.add(doc.root()).expect("a kind that a forecast reads");
        }
        let now = Timestamp::parse("2030-01-01T00:00:00Z").expect("a time");
        let wait = ReplacementWaitCondition::Ready;
        let found = PodsByWorkload::from_state_without_daemon_sets(&state, wait, now);
        let wanted = |name: &str| found.required_ready_count(&format!("Job app/{name}"), 9);
        assert_eq!((wanted("running"), wanted("done")), (3, 1));
        let why = "has failed, and makes no new pods: FailedIndexes: Job has failed indexes";
        let failure = |job: &str| Some(format!("{job} {why}"));
        let found_failure = |workload: &str| found.job_failure(workload).map(str::to_owned);
        assert_eq!(found_failure("Job app/broken"), failure("Job app/broken"));
        assert_eq!(found_failure("CronJob app/nightly"), failure("Job app/nightly-1 of CronJob app/nightly"));
        assert_eq!(found.job_failure("Job app/running"), None);
    }
}
