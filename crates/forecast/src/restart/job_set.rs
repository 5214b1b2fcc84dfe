//! JobSets: the other pods are not affected until a Job fails; then the failure policy of the JobSet applies.
//!
//! Whether a Job fails is in [`crate::job_policy`].

use super::{GroupEffect, GroupMember, other_pods_phrase};
use crate::job_policy::job_failure_reason;
use crate::state::{ObjectKind, State, StoredObject};
use crate::workload::controllers_of;
use std::collections::BTreeMap;
use tollgate_document::doc::Value;

const REPLICATED_JOB: &str = "jobset.sigs.k8s.io/replicatedjob-name";

/// What a JobSet does when one of its Jobs fails.
enum JobSetAction<'d> {
    RestartAll,
    RestartJob,
    Fail,
    /// Unknown, because this failure policy rule depends on the message of the failure.
    Unknown(&'d str),
}

/// Returns what happens to the other pods of a JobSet when these pods are lost: it restarts, fails or continues.
pub(super) fn effect_of_lost_pods<'d>(
    state: &State<'d>,
    object: StoredObject<'d>,
    members: &[GroupMember<'d>],
) -> GroupEffect<'d> {
    let mut by_job: BTreeMap<&str, (StoredObject<'d>, Vec<StoredObject<'d>>)> = BTreeMap::new();
    for member in members.iter().filter(|member| member.is_lost) {
        if let Some(job) = job_of(state, member.pod) {
            by_job.entry(job.name()).or_insert((job, Vec::new())).1.push(member.pod);
        }
    }
    let others: Vec<&'d str> =
        members.iter().filter(|member| !member.is_lost).map(|member| member.pod.name()).collect();
    let kept = || other_pods_phrase(others.len(), "", "keeps running", "keep running");
    let failed = by_job.into_values().find_map(|(job, lost)| Some((job, job_failure_reason(job, &lost)?)));
    let Some((job, reason)) = failed else {
        let effect = format!("{}, and the Job replaces what it loses", kept());
        return GroupEffect {
            policy: failure_policy_text(object),
            effect,
            restarted: Vec::new(),
            fails: false,
        };
    };
    let begin = format!("Job {} fails ({reason})", job.name());
    let of_job = |member: &&GroupMember<'d>| {
        !member.is_lost && job_of(state, member.pod).is_some_and(|other| other.name() == job.name())
    };
    let (what, restarted, fails) = match failure_action(object, job, reason) {
        JobSetAction::RestartAll => {
            (other_pods_phrase(others.len(), "", "is recreated", "are recreated"), others, false)
        }
        JobSetAction::RestartJob => {
            let others: Vec<&'d str> =
                members.iter().filter(of_job).map(|member| member.pod.name()).collect();
            (other_pods_phrase(others.len(), " of that Job", "is recreated", "are recreated"), others, false)
        }
        JobSetAction::Fail => {
            let deleted = other_pods_phrase(others.len(), "", "is deleted", "are deleted");
            (format!("the JobSet fails and {deleted}"), others, true)
        }
        JobSetAction::Unknown(rule) => {
            // Nobody knows that it goes on.
            (format!("rule {rule} of the failure policy looks at its message"), Vec::new(), true)
        }
    };
    GroupEffect { policy: failure_policy_text(object), effect: format!("{begin}: {what}"), restarted, fails }
}

/// The Job that owns a pod.
fn job_of<'d>(state: &State<'d>, pod: StoredObject<'d>) -> Option<StoredObject<'d>> {
    controllers_of(state, pod).find(|(kind, _)| *kind == ObjectKind::Job).map(|(_, job)| job)
}

/// A short description of the failure policy.
fn failure_policy_text(object: StoredObject<'_>) -> String {
    let policy = object.value.get("spec").get("failurePolicy");
    if !policy.exists() {
        return "no failurePolicy".to_owned();
    }
    format!("failurePolicy.maxRestarts: {}", policy.get("maxRestarts").int().unwrap_or(0))
}

/// The action of the first failure policy rule that matches. Without a matching rule, all Jobs are recreated;
/// without a policy or remaining restarts, the JobSet fails.
fn failure_action<'d>(object: StoredObject<'d>, job: StoredObject<'d>, reason: &str) -> JobSetAction<'d> {
    let policy = object.value.get("spec").get("failurePolicy");
    if !policy.exists() {
        return JobSetAction::Fail;
    }
    let replicated_job = job.value.get("metadata").get("labels").get(REPLICATED_JOB).str();
    let names = |list: Value<'_>, name: &str| list.is_empty() || list.items().any(|item| item.text_is(name));
    let rule = policy.get("rules").items().find(|rule| {
        names(rule.get("onJobFailureReasons"), reason)
            && names(rule.get("targetReplicatedJobs"), replicated_job)
    });
    if let Some(rule) = rule.filter(|rule| !rule.get("onJobFailureMessagePatterns").is_empty()) {
        return JobSetAction::Unknown(rule.get("name").str());
    }
    let status = object.value.get("status");
    let used = status.get("restartsCountTowardsMax").int().or(status.get("restarts").int()).unwrap_or(0);
    let has_restarts = used < policy.get("maxRestarts").int().unwrap_or(0);
    match rule.map_or("RestartJobSet", |rule| rule.get("action").str()) {
        "RestartJobSetAndIgnoreMaxRestarts" => JobSetAction::RestartAll,
        "RestartJobAndIgnoreMaxRestarts" => JobSetAction::RestartJob,
        "RestartJob" if has_restarts => JobSetAction::RestartJob,
        "RestartJobSet" if has_restarts => JobSetAction::RestartAll,
        // FailJobSet, and a restart when none is left.
        _ => JobSetAction::Fail,
    }
}
