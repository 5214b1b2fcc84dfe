//! LeaderWorkerSets: a group is a leader with its workers, and is recreated as a whole unless its policy says otherwise.
//!
//! The workers of a group belong to a StatefulSet that the leader pod owns. Without its leader, a group is deleted and
//! created anew, whatever the policy.

use super::{Member, other_pods};
use crate::state::StoredObject;
use std::collections::BTreeMap;

const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// The policy, what happens, and how many other pods are recreated.
pub(super) fn effect(object: StoredObject<'_>, members: &[Member<'_>]) -> (String, String, usize) {
    let policy = object.value.get("spec").get("leaderWorkerTemplate").get("restartPolicy").str();
    let policy = if policy.is_empty() { "RecreateGroupOnPodRestart" } else { policy };
    let mut groups: BTreeMap<&str, Vec<Member<'_>>> = BTreeMap::new();
    for member in members {
        groups.entry(member.label(GROUP_INDEX)).or_default().push(*member);
    }
    // How many other pods, of how many groups.
    let (mut recreated, mut kept) = ((0, 0), (0, 0));
    for group in groups.into_values().filter(|group| group.iter().any(|member| member.is_lost)) {
        let others = group.iter().filter(|member| !member.is_lost).count();
        let loses_leader = group.iter().any(|member| member.is_lost && member.label(WORKER_INDEX) == "0");
        let is_pending = |member: &Member<'_>| member.pod.value.get("status").get("phase").str() == "Pending";
        let is_recreated = match policy {
            "RecreateGroupOnPodRestart" => true,
            "RecreateGroupAfterStart" => !group.iter().any(is_pending),
            _ => false,
        };
        let count = if is_recreated || loses_leader { &mut recreated } else { &mut kept };
        *count = (count.0 + others, count.1 + 1);
    }
    let whose = |groups: usize| if groups == 1 { " of the same group" } else { " of the same groups" };
    let mut effects = Vec::new();
    if recreated.0 > 0 {
        effects.push(other_pods(recreated.0, whose(recreated.1), "is recreated", "are recreated"));
    }
    if kept.0 > 0 || recreated.0 == 0 {
        effects.push(other_pods(kept.0, whose(kept.1.max(1)), "keeps running", "keep running"));
    }
    (format!("restartPolicy: {policy}"), effects.join(", and "), recreated.0)
}
