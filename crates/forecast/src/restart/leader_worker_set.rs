//! LeaderWorkerSets: a group is a leader with its workers, and is recreated as a whole unless its policy says
//! otherwise.
//!
//! The workers of a group belong to a StatefulSet that the leader pod owns. If the leader is lost, the group is
//! always deleted and recreated.

use super::{GroupEffect, GroupMember, other_pods_phrase};
use crate::state::StoredObject;
use std::collections::BTreeMap;

const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// The group index of a pod within its LeaderWorkerSet.
pub(super) fn group_index(pod: StoredObject<'_>) -> &str {
    pod.value.get("metadata").get("labels").get(GROUP_INDEX).str()
}

/// Returns what happens to the other pods of a LeaderWorkerSet when these pods are lost: their groups restart or
/// continue.
pub(super) fn effect_of_lost_pods<'d>(
    object: StoredObject<'d>,
    members: &[GroupMember<'d>],
) -> GroupEffect<'d> {
    let policy = object.value.get("spec").get("leaderWorkerTemplate").get("restartPolicy").str();
    let policy = if policy.is_empty() { "RecreateGroupOnPodRestart" } else { policy };
    let mut groups: BTreeMap<&str, Vec<GroupMember<'d>>> = BTreeMap::new();
    for member in members {
        groups.entry(group_index(member.pod)).or_default().push(*member);
    }
    // How many other pods, of how many groups.
    let (mut recreated, mut kept) = ((0, 0), (0, 0));
    let mut restarted = Vec::new();
    for group in groups.into_values().filter(|group| group.iter().any(|member| member.is_lost)) {
        let others: Vec<&str> =
            group.iter().filter(|member| !member.is_lost).map(|member| member.pod.name()).collect();
        let is_leader =
            |pod: StoredObject<'_>| pod.value.get("metadata").get("labels").get(WORKER_INDEX).text_is("0");
        let loses_leader = group.iter().any(|member| member.is_lost && is_leader(member.pod));
        let is_pending =
            |member: &GroupMember<'_>| member.pod.value.get("status").get("phase").str() == "Pending";
        let is_recreated = match policy {
            "RecreateGroupOnPodRestart" => true,
            "RecreateGroupAfterStart" => !group.iter().any(is_pending),
            _ => false,
        };
        let is_recreated = is_recreated || loses_leader;
        let count = if is_recreated { &mut recreated } else { &mut kept };
        *count = (count.0 + others.len(), count.1 + 1);
        restarted.extend(others.into_iter().filter(|_| is_recreated));
    }
    let whose = |groups: usize| if groups == 1 { " of the same group" } else { " of the same groups" };
    let mut effects = Vec::new();
    if recreated.0 > 0 {
        effects.push(other_pods_phrase(recreated.0, whose(recreated.1), "is recreated", "are recreated"));
    }
    if kept.0 > 0 || recreated.0 == 0 {
        effects.push(other_pods_phrase(kept.0, whose(kept.1.max(1)), "keeps running", "keep running"));
    }
    let (policy, effect) = (format!("restartPolicy: {policy}"), effects.join(", and "));
    GroupEffect { policy, effect, restarted, fails: false }
}
