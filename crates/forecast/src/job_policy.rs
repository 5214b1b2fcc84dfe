//! What a Job does when it loses pods: it creates them again, gives some of them up, or fails.
//!
//! Follows the Job controller: the pod failure policy, `backoffLimit`, the limits for each index, and Jobs without
//! `completions`. An evicted pod counts as failed, unless a rule matches its condition `DisruptionTarget`, which the
//! eviction sets, or the exit code of its container.
//!
//! Exit codes are not known before the eviction. A container that handles no signal ends with that of SIGTERM or
//! SIGKILL, so these are taken, and of two outcomes the worse one.

use crate::state::StoredObject;
use crate::tables::PodIndex;
use tollgate_document::doc::Value;

/// Default `backoffLimit` of a Job without a limit for each index.
const DEFAULT_BACKOFF_LIMIT: i64 = 6;

/// Exit codes of containers that do not handle SIGTERM: ended by SIGTERM, and by SIGKILL after the grace period.
const EXIT_CODES_OF_SIGNALS: [i64; 2] = [143, 137];

/// Annotation with the number of failures of the pod's index before this pod.
const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";

/// How many failures a Job still survives, its reaction to evictions, and its bound pods.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Number of further pods that can fail before the Job fails; `None` if the state does not contain the
    /// Job.
    pub(crate) failures_left: Option<i64>,
    /// `backoffLimitPerIndex`.
    limit_per_index: Option<i64>,
    /// Number of further indexes that can fail before the Job fails; `None` without a limit.
    pub(crate) failed_indexes_left: Option<i64>,
    /// The action of its pod failure policy for evicted pods.
    pub(crate) on_eviction: EvictionAction,
    /// True if the Job is suspended, or is a work queue that has ended.
    pub(crate) creates_no_pods: bool,
    /// `podReplacementPolicy: Failed`: a pod is replaced after it has ended, not while it is being deleted.
    pub(crate) replaces_when_gone: bool,
    /// The Job's pods that are bound in the initial state.
    pub(crate) bound: Vec<PodIndex>,
    /// True if the Job has failed and its pods were deleted.
    pub(crate) has_ended: bool,
}

/// What a Job does with an evicted pod, from harmless to harmful.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum EvictionAction {
    Ignore,
    Count,
    FailIndex,
    FailJob,
}

/// Why a Job does not create a pod again that it loses, although the Job goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PodGivenUp {
    /// The index of the pod fails.
    FailedIndex,
    /// The Job has no `completions`, and one of its pods has succeeded.
    EndedWorkQueue,
}

impl Job {
    pub(crate) fn read(object: Option<Value<'_>>) -> Job {
        let (spec, status) = match object {
            Some(object) => (object.get("spec"), object.get("status")),
            None => (Value::absent(), Value::absent()),
        };
        let limit_per_index = spec.get("backoffLimitPerIndex").int();
        let default_limit =
            if limit_per_index.is_some() { i64::from(i32::MAX) } else { DEFAULT_BACKOFF_LIMIT };
        let limit = spec.get("backoffLimit").int().unwrap_or(default_limit);
        let number = |field: &str| status.get(field).int().unwrap_or(0);
        let failed_indexes = count_of_intervals(status.get("failedIndexes").str());
        Job {
            failures_left: object.map(|_| limit.saturating_sub(number("failed"))),
            limit_per_index,
            failed_indexes_left: spec.get("maxFailedIndexes").int().map(|most| most - failed_indexes),
            on_eviction: eviction_action(spec),
            creates_no_pods: spec.get("suspend").bool() == Some(true)
                || object.is_some_and(has_work_queue_ended),
            // upstream v1.37 job.onlyReplaceFailedPods
            replaces_when_gone: spec.get("podReplacementPolicy").str() == "Failed"
                || spec.get("podFailurePolicy").exists(),
            bound: Vec::new(),
            has_ended: false,
        }
    }

    /// Number of evictions of the pod, and of those that replace it, that its index survives; `None` without a limit.
    // upstream v1.37 job.isIndexFailed
    pub(crate) fn evictions_survived_by_index(&self, pod: Value<'_>) -> Option<i64> {
        let limit = self.limit_per_index?;
        let failures = pod.get("metadata").get("annotations").get(INDEX_FAILURE_COUNT).str();
        match self.on_eviction {
            EvictionAction::Ignore => None,
            EvictionAction::Count => Some(limit.saturating_sub(failures.parse().unwrap_or(0)).max(0)),
            EvictionAction::FailIndex | EvictionAction::FailJob => Some(0),
        }
    }

    /// The reason in the condition of the Job if it fails because these pods are evicted, and deletes its other pods;
    /// `None` if it goes on.
    pub(crate) fn failure_reason<'d>(
        &self,
        evicted: impl Iterator<Item = Value<'d>>,
    ) -> Option<&'static str> {
        let (mut count, mut failed_indexes) = (0, 0);
        for pod in evicted {
            count += 1;
            failed_indexes += i64::from(self.evictions_survived_by_index(pod) == Some(0));
        }
        match self.on_eviction {
            EvictionAction::Ignore => return None,
            EvictionAction::FailJob if count > 0 => return Some("PodFailurePolicy"),
            _ => {}
        }
        if self.failures_left.is_some_and(|left| left < count) {
            return Some("BackoffLimitExceeded");
        }
        let exceeds =
            failed_indexes > 0 && self.failed_indexes_left.is_some_and(|left| left < failed_indexes);
        exceeds.then_some("MaxFailedIndexesExceeded")
    }
}

/// The reason in the condition of a Job that fails because these pods of it are evicted, now or when its other indexes
/// have ended; `None` if it goes on.
pub fn job_failure_reason(job: StoredObject<'_>, evicted: &[StoredObject<'_>]) -> Option<&'static str> {
    let job = Job::read(Some(job.value));
    let loses_index = || evicted.iter().any(|pod| job.evictions_survived_by_index(pod.value) == Some(0));
    job.failure_reason(evicted.iter().map(|pod| pod.value))
        .or_else(|| loses_index().then_some("FailedIndexes"))
}

/// Why the Job does not create this pod of it again after an eviction; `None` if it does, or if the whole Job fails.
pub fn reason_job_gives_up_pod(job: StoredObject<'_>, pod: StoredObject<'_>) -> Option<PodGivenUp> {
    let read = Job::read(Some(job.value));
    if read.failure_reason(std::iter::once(pod.value)).is_some() {
        return None;
    }
    if read.evictions_survived_by_index(pod.value) == Some(0) {
        return Some(PodGivenUp::FailedIndex);
    }
    has_work_queue_ended(job.value).then_some(PodGivenUp::EndedWorkQueue)
}

/// True if the Job has no `completions` and one of its pods has succeeded, so that it creates no more pods.
fn has_work_queue_ended(job: Value<'_>) -> bool {
    let succeeded = job.get("status").get("succeeded").int().unwrap_or(0);
    !job.get("spec").get("completions").exists() && succeeded > 0
}

/// The worst that the pod failure policy does with an evicted pod, for the exit codes that its containers may have.
fn eviction_action(spec: Value<'_>) -> EvictionAction {
    let template = spec.get("template").get("spec");
    let for_exit_code = |code: i64| {
        let mut rules = spec.get("podFailurePolicy").get("rules").items();
        let rule = rules.find(|rule| matches_evicted_pod(*rule, code, template));
        match rule.map_or("", |rule| rule.get("action").str()) {
            "Ignore" => EvictionAction::Ignore,
            "FailIndex" => EvictionAction::FailIndex,
            "FailJob" => EvictionAction::FailJob,
            _ => EvictionAction::Count,
        }
    };
    EXIT_CODES_OF_SIGNALS.into_iter().map(for_exit_code).max().unwrap_or(EvictionAction::Count)
}

/// True if the rule of a pod failure policy matches an evicted pod of this template whose running containers end with
/// this exit code.
// upstream v1.37 job.matchPodFailurePolicy
fn matches_evicted_pod(rule: Value<'_>, exit_code: i64, template: Value<'_>) -> bool {
    let exit_codes = rule.get("onExitCodes");
    if exit_codes.exists() {
        let container = exit_codes.get("containerName").str();
        // An init container that is no sidecar has ended before, with 0.
        let mut ended = template.get("initContainers").items();
        if ended
            .any(|init| init.get("name").text_is(container) && !init.get("restartPolicy").text_is("Always"))
        {
            return false;
        }
        let is_listed = exit_codes.get("values").items().any(|code| code.int() == Some(exit_code));
        return is_listed == exit_codes.get("operator").text_is("In");
    }
    rule.get("onPodConditions").items().any(|condition| {
        let status = condition.get("status").str();
        condition.get("type").text_is("DisruptionTarget") && (status.is_empty() || status == "True")
    })
}

/// The number of indexes in a text such as `1,3-5,7`.
fn count_of_intervals(text: &str) -> i64 {
    let count = |interval: &str| {
        let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
        let (first, last) = (first.parse::<i64>().ok()?, last.parse::<i64>().ok()?);
        Some(last.saturating_sub(first).saturating_add(1).max(0))
    };
    text.split(',').filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::{Job, PodGivenUp, reason_job_gives_up_pod};
    use crate::state::StoredObject;
    use tollgate_api::profile::Version;
    use tollgate_document::doc;

    /// The reason why a Job fails that loses pods with these numbers of earlier failures of their indexes.
    fn failure_reason(job: &str, failures: &[i64]) -> Option<&'static str> {
        let job = doc::parse(job).expect("JSON");
        let pods: Vec<String> = failures.iter().map(|count| pod(*count)).collect();
        let pods: Vec<_> = pods.iter().map(|pod| doc::parse(pod).expect("JSON")).collect();
        Job::read(Some(job.root())).failure_reason(pods.iter().map(doc::Doc::root))
    }

    fn pod(failures: i64) -> String {
        format!(
            r#"{{"metadata":{{"annotations":{{"batch.kubernetes.io/job-index-failure-count":"{failures}"}}}}}}"#
        )
    }

    #[test]
    fn limits_of_the_job_and_of_its_indexes_add_up() {
        let of_index = |more: &str, status: &str| {
            format!(
                r#"{{"spec":{{"backoffLimitPerIndex":1,"maxFailedIndexes":2{more}}},"status":{{{status}}}}}"#
            )
        };
        let (too_often, too_many) = (Some("BackoffLimitExceeded"), Some("MaxFailedIndexesExceeded"));
        for (job, failures, expected) in [
            (r#"{"spec":{}}"#.to_owned(), &[0; 6][..], None),
            (r#"{"spec":{}}"#.to_owned(), &[0; 7], too_often),
            (r#"{"spec":{"backoffLimit":2},"status":{"failed":2}}"#.to_owned(), &[0], too_often),
            (of_index("", ""), &[0; 9], None),
            (of_index("", ""), &[1, 1, 0], None),
            (of_index("", ""), &[1, 1, 1], too_many),
            (of_index("", r#""failedIndexes":"0,3-4""#), &[0], None),
            (of_index("", r#""failedIndexes":"0,3-4""#), &[1], too_many),
            (of_index("", r#""failedIndexes":"0""#), &[2], None),
            (of_index(r#","backoffLimit":0"#, ""), &[0], too_often),
        ] {
            assert_eq!(failure_reason(&job, failures), expected, "{job} without {failures:?}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_the_worse_exit_code_counts() {
        let ignore = r#"{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]}"#;
        let exit = |action: &str, operator: &str, codes: &str| {
            format!(r#"{{"action":"{action}","onExitCodes":{{"operator":"{operator}","values":[{codes}]}}}}"#)
        };
        let of_container = |action: &str, name: &str| {
            exit(action, "NotIn", "0")
                .replace(r#""operator""#, &format!(r#""containerName":"{name}","operator""#))
        };
        let template =
            r#"{"spec":{"initContainers":[{"name":"setup"},{"name":"sidecar","restartPolicy":"Always"}]}}"#;
        let counted = Some("BackoffLimitExceeded");
        let failed = Some("PodFailurePolicy");
        for (rules, expected) in [
            (ignore.to_owned(), None),
            (ignore.replace("True", "False"), counted),
            (exit("FailJob", "In", "42") + "," + ignore, None),
            (exit("FailJob", "NotIn", "0,42") + "," + ignore, failed),
            (exit("FailJob", "NotIn", "0,137,143") + "," + ignore, None),
            (exit("FailJob", "In", "137") + "," + ignore, failed),
            (exit("Count", "In", "143") + "," + ignore, counted),
            (exit("Ignore", "In", "143"), counted),
            (exit("Ignore", "In", "137,143"), None),
            (of_container("FailJob", "setup") + "," + ignore, None),
            (of_container("FailJob", "sidecar") + "," + ignore, failed),
            (of_container("FailJob", "main") + "," + ignore, failed),
            (format!("{ignore},{}", exit("FailJob", "NotIn", "0")), None),
        ] {
            let job = format!(
                r#"{{"spec":{{"backoffLimit":0,"template":{template},"podFailurePolicy":{{"rules":[{rules}]}}}}}}"#
            );
            assert_eq!(failure_reason(&job, &[0]), expected, "{rules}");
        }
    }

    #[test]
    fn a_job_gives_up_pods_of_failed_indexes_and_of_ended_work_queues() {
        let fail_index = r#"{"spec":{"backoffLimitPerIndex":3,"podFailurePolicy":{"rules":[
            {"action":"FailIndex","onPodConditions":[{"type":"DisruptionTarget"}]}]}}}"#;
        for (job, failures, expected) in [
            (r#"{"spec":{"backoffLimitPerIndex":1}}"#, 0, None),
            (r#"{"spec":{"backoffLimitPerIndex":1}}"#, 1, Some(PodGivenUp::FailedIndex)),
            (fail_index, 0, Some(PodGivenUp::FailedIndex)),
            (&fail_index.replace("FailIndex", "Ignore"), 9, None),
            (r#"{"spec":{"parallelism":2},"status":{"succeeded":1}}"#, 0, Some(PodGivenUp::EndedWorkQueue)),
            (r#"{"spec":{"parallelism":2},"status":{"failed":1}}"#, 0, None),
            (r#"{"spec":{"completions":2},"status":{"succeeded":1}}"#, 0, None),
        ] {
            let (job_doc, pod) = (doc::parse(job).expect("JSON"), pod(failures));
            let pod = doc::parse(&pod).expect("JSON");
            let [job_object, pod_object] =
                [job_doc.root(), pod.root()].map(|value| StoredObject { version: Version::V1, value });
            assert_eq!(reason_job_gives_up_pod(job_object, pod_object), expected, "{job} after {failures}");
        }
    }
}
