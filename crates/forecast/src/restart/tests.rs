//! Groups with every policy, and what is said if they lose pods.

use super::effects_of_lost_pods;
use crate::state::State;
use tollgate_document::doc;

/// A pod of a Job or StatefulSet, with labels.
fn pod(name: &str, owner: &str, labels: &str) -> String {
    let (api_version, kind) =
        if owner.starts_with("job") { ("batch/v1", "Job") } else { ("apps/v1", "StatefulSet") };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"app","name":"{name}","labels":{{{labels}}},
        "ownerReferences":[{{"apiVersion":"{api_version}","kind":"{kind}","name":"{owner}","controller":true}}]}},
        "spec":{{"schedulingGroup":{{"podGroupName":"gang"}}}},"status":{{"phase":"Running"}}}}"#
    )
}

fn object_with_owner(api_version: &str, kind: &str, name: &str, owner: &str, rest: &str) -> String {
    let owner = match owner {
        "" => String::new(),
        "js" => r#"{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"js","controller":true}"#
            .to_owned(),
        owner => format!(
            r#"{{"apiVersion":"leaderworkerset.x-k8s.io/v1","kind":"LeaderWorkerSet","name":"{owner}","controller":true}}"#
        ),
    };
    format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"namespace":"app","name":"{name}",
        "labels":{{"jobset.sigs.k8s.io/replicatedjob-name":"workers"}},"ownerReferences":[{owner}]}},{rest}}}"#
    )
}

/// For each group that loses one of these pods: the reported text, and the number of restarted pods.
fn reported_effects_and_restart_counts(objects: &[String], lost: &[&str]) -> Vec<(String, usize)> {
    let docs: Vec<_> = objects.iter().map(|text| doc::parse(text).expect("JSON")).collect();
    let mut state = State::default();
    for doc in &docs {
        state.add(doc.root()).expect("a kind that a forecast reads");
    }
    let found = effects_of_lost_pods(&state, &|namespace, name| namespace == "app" && lost.contains(&name));
    found
        .into_iter()
        .map(|group| {
            (
                format!("{} {} ({}): {}", group.kind, group.name, group.policy, group.effect),
                group.restarted.len(),
            )
        })
        .collect()
}

#[test]
fn a_leader_worker_set_recreates_the_group() {
    let labels = |group: usize, worker: usize| {
        format!(
            r#""leaderworkerset.sigs.k8s.io/group-index":"{group}","leaderworkerset.sigs.k8s.io/worker-index":"{worker}""#
        )
    };
    let state = |policy: &str| {
        let mut objects = vec![
            object_with_owner("apps/v1", "StatefulSet", "set", "lws", r#""spec":{}"#),
            object_with_owner(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                "lws",
                "",
                &format!(r#""spec":{{"leaderWorkerTemplate":{{{policy}}}}}"#),
            ),
        ];
        for group in 0..2 {
            objects.extend(
                (0..3).map(|worker| pod(&format!("p{group}-{worker}"), "set", &labels(group, worker))),
            );
        }
        objects
    };
    let none = r#""restartPolicy":"None""#;
    for (policy, lost, expected, restarted) in [
        (
            "",
            &["p0-1"][..],
            "RecreateGroupOnPodRestart): the 2 other pods of the same group are recreated",
            2,
        ),
        ("", &["p0-1", "p1-0", "p1-1"], "Restart): the 3 other pods of the same groups are recreated", 3),
        ("", &["p0-0", "p0-1", "p0-2"], "Restart): no other pod of the same group keeps running", 0),
        (none, &["p0-1"], "(restartPolicy: None): the 2 other pods of the same group keep running", 0),
        (
            none,
            &["p0-0", "p1-1"],
            "the 2 other pods of the same group are recreated, and the 2 other pods of",
            2,
        ),
    ] {
        let found = reported_effects_and_restart_counts(&state(policy), lost);
        let [(text, count)] = found.as_slice() else { panic!("{found:?}") };
        assert!(text.starts_with("LeaderWorkerSet lws (") && text.contains(expected), "{text}");
        assert_eq!(*count, restarted, "{text}");
    }
    assert!(reported_effects_and_restart_counts(&state(""), &["other"]).is_empty());
}

#[test]
fn a_job_set_follows_its_failure_policy() {
    let state = |job: &str, set: &str| {
        let mut objects = vec![object_with_owner("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "", set)];
        for number in 0..2 {
            objects.push(object_with_owner("batch/v1", "Job", &format!("job-{number}"), "js", job));
            objects
                .extend((0..3).map(|index| pod(&format!("p{number}-{index}"), &format!("job-{number}"), "")));
        }
        objects
    };
    let strict = r#""spec":{"backoffLimit":0}"#;
    let ignores = r#""spec":{"backoffLimit":0,"podFailurePolicy":{"rules":[
        {"action":"FailJob","onExitCodes":{"operator":"In","values":[42]}},
        {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}}"#;
    let restarts = r#""spec":{"failurePolicy":{"maxRestarts":1}}"#;
    let used = r#""spec":{"failurePolicy":{"maxRestarts":1}},"status":{"restarts":1}"#;
    let rule = |action: &str, more: &str| {
        format!(
            r#""spec":{{"failurePolicy":{{"maxRestarts":1,"rules":[
            {{"name":"other","action":"FailJobSet","targetReplicatedJobs":["leader"]}},
            {{"name":"mine","action":"{action}"{more}}}]}}}}"#
        )
    };
    let none_left = |action: &str| rule(action, "") + r#","status":{"restarts":1}"#;
    let failed = "Job job-0 fails (BackoffLimitExceeded): ";
    for (job, set, expected, restarted) in [
        (r#""spec":{}"#, restarts, "the 5 other pods keep running, and the Job replaces what it loses", 0),
        (r#""spec":{},"status":{"failed":6}"#, restarts, "the 5 other pods are recreated", 5),
        (strict, restarts, "the 5 other pods are recreated", 5),
        (strict, r#""spec":{}"#, "the JobSet fails and the 5 other pods are deleted", 5),
        (strict, used, "the JobSet fails and the 5 other pods are deleted", 5),
        (strict, &rule("RestartJob", ""), "the 2 other pods of that Job are recreated", 2),
        (strict, &none_left("RestartJob"), "the JobSet fails and the 5 other pods are deleted", 5),
        (
            strict,
            &none_left("RestartJobAndIgnoreMaxRestarts"),
            "the 2 other pods of that Job are recreated",
            2,
        ),
        (strict, &none_left("RestartJobSetAndIgnoreMaxRestarts"), "the 5 other pods are recreated", 5),
        (
            strict,
            &rule("RestartJobSet", r#","onJobFailureReasons":["PodFailurePolicy"]"#),
            "the 5 other pods are recreated",
            5,
        ),
        (
            strict,
            &rule("RestartJob", r#","onJobFailureMessagePatterns":["x"]"#),
            "rule mine of the failure policy looks at",
            0,
        ),
        (ignores, restarts, "the 5 other pods keep running", 0),
        (&ignores.replace("DisruptionTarget", "Other"), restarts, "the 5 other pods are recreated", 5),
        (
            &ignores.replace(r#"get"}"#, r#"get","status":"True"}"#),
            restarts,
            "the 5 other pods keep running",
            0,
        ),
        (
            &ignores.replace(r#"get"}"#, r#"get","status":"False"}"#),
            restarts,
            "the 5 other pods are recreated",
            5,
        ),
    ] {
        let found = reported_effects_and_restart_counts(&state(job, set), &["p0-1"]);
        let [(text, count)] = found.as_slice() else { panic!("{found:?}") };
        assert!(text.starts_with("JobSet js (") && text.contains(expected), "{text}");
        assert_eq!(text.contains(failed), !expected.contains("keep running"), "{text}");
        assert_eq!(*count, restarted, "{text}");
    }
}

#[test]
fn a_job_with_a_limit_for_each_index_fails_after_too_many_indexes() {
    let set = r#""spec":{"failurePolicy":{"maxRestarts":1}}"#;
    let restarted = |reason: &str| format!("Job job-0 fails ({reason}): the");
    let (too_many, later) = (restarted("MaxFailedIndexesExceeded"), restarted("FailedIndexes"));
    let too_often = restarted("BackoffLimitExceeded");
    let continues = "keep running, and the Job replaces what it loses";
    for (limits, lost, expected) in [
        (r#""backoffLimitPerIndex":0,"maxFailedIndexes":1"#, &["p0"][..], later.as_str()),
        (r#""backoffLimitPerIndex":0,"maxFailedIndexes":1"#, &["p0", "p1"], &too_many),
        (r#""backoffLimitPerIndex":0,"maxFailedIndexes":1"#, &["p0", "p1", "p2"], &too_many),
        (r#""backoffLimitPerIndex":1,"maxFailedIndexes":1"#, &["p0", "p1"], continues),
        (r#""backoffLimitPerIndex":0"#, &["p0", "p1"], &later),
        (r#""backoffLimitPerIndex":1,"backoffLimit":0"#, &["p0"], &too_often),
    ] {
        let mut objects = vec![
            object_with_owner("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "", set),
            object_with_owner("batch/v1", "Job", "job-0", "js", &format!(r#""spec":{{{limits}}}"#)),
        ];
        objects.extend((0..5).map(|index| pod(&format!("p{index}"), "job-0", "")));
        let found = reported_effects_and_restart_counts(&objects, lost);
        let [(text, _)] = found.as_slice() else { panic!("{found:?}") };
        assert!(text.contains(expected), "{limits} without {lost:?}: {text}");
    }
}

#[test]
fn a_pod_group_does_nothing_to_pods_that_run() {
    let group = |spec: &str| {
        vec![
            object_with_owner("scheduling.k8s.io/v1beta1", "PodGroup", "gang", "", spec),
            pod("a", "set", ""),
            pod("b", "set", ""),
        ]
    };
    assert_eq!(
        reported_effects_and_restart_counts(&group(r#""spec":{"schedulingPolicy":{"gang":{"minCount":2}}}"#), &["a"]),
        [(
            "PodGroup gang (gang.minCount: 2): the other pod keeps running; new pods are scheduled only if 2 pods of the \
             group can run together"
                .to_owned(),
            0
        )]
    );
    let basic =
        reported_effects_and_restart_counts(&group(r#""spec":{"schedulingPolicy":{"basic":{}}}"#), &["a"]);
    assert!(
        basic[0].0.starts_with("PodGroup gang (schedulingPolicy: basic): the other pod keeps running"),
        "{basic:?}"
    );
}
