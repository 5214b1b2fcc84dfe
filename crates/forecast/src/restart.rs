//! The effect of lost pods on the other pods of their group: LeaderWorkerSets, JobSets and PodGroups.
//!
//! A group is affected only if the state contains its object and one of its pods is lost. The decisions follow the
//! sources of the controllers: a LeaderWorkerSet recreates a whole group, a JobSet acts when a Job fails, and a
//! PodGroup does not affect running pods.
//!
//! Invariant: the numbers count pods in the state that are not lost themselves. Restarts that depend on unknown data,
//! such as the exit code of a container, are not counted.

mod job_set;
mod leader_worker_set;

use crate::nodes::PodNeeds;
use crate::state::{ObjectKind, State, StoredObject};
use crate::workload::controllers_of;
use std::collections::{BTreeMap, BTreeSet};

/// The kinds of group objects, whose policies determine the effect on other pods.
pub const GROUP_KINDS: [ObjectKind; 4] =
    [ObjectKind::JobSet, ObjectKind::LeaderWorkerSet, ObjectKind::PodGroup, ObjectKind::CoschedulingPodGroup];

/// The effect on the other pods of a group when some of its pods are lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AffectedGroup<'d> {
    /// `LeaderWorkerSet`, `JobSet` or `PodGroup`.
    pub kind: &'static str,
    pub namespace: &'d str,
    pub name: &'d str,
    /// Number of lost pods of the group.
    pub lost: usize,
    /// Names of the other pods of the group that are deleted as a result.
    pub restarted: Vec<&'d str>,
    /// True if the group fails, so that its pods are not recreated.
    pub fails: bool,
    /// The policy field that causes the effect, such as `restartPolicy: None`.
    pub policy: String,
    /// What the loss of pods does to the other pods of the group, as a sentence without a period.
    pub effect: String,
}

/// The effect on the other pods of a group when some of its pods are lost: who is restarted, and because of which
/// policy.
struct GroupEffect<'d> {
    policy: String,
    effect: String,
    restarted: Vec<&'d str>,
    fails: bool,
}

/// Identifies a group by kind, namespace and name.
type GroupKey<'d> = (ObjectKind, &'d str, &'d str);

/// A pod of a group, and whether it is lost.
#[derive(Clone, Copy, Debug)]
struct GroupMember<'d> {
    pod: StoredObject<'d>,
    is_lost: bool,
}

/// The effect of lost pods on the other pods of their groups, by kind, namespace and name. `is_lost` is
/// called with the namespace and name of each pod.
pub fn effects_of_lost_pods<'d>(
    state: &State<'d>,
    is_lost: &dyn Fn(&str, &str) -> bool,
) -> Vec<AffectedGroup<'d>> {
    if GROUP_KINDS.iter().all(|kind| state.objects_of_kind(*kind).is_empty()) {
        return Vec::new();
    }
    let pods = state.objects_of_kind(ObjectKind::Pod);
    let lost = pods.iter().filter(|pod| is_lost(pod.namespace(), pod.name()));
    let affected: BTreeSet<GroupKey<'d>> = lost.flat_map(|pod| group_keys(state, pod)).collect();
    let mut members: BTreeMap<GroupKey<'d>, Vec<GroupMember<'d>>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !PodNeeds::is_finished(pod.value) && !affected.is_empty()) {
        let is_lost = is_lost(pod.namespace(), pod.name());
        for group in group_keys(state, pod).into_iter().filter(|group| affected.contains(group)) {
            members.entry(group).or_default().push(GroupMember { pod, is_lost });
        }
    }
    let restart = |((kind, namespace, name), members): (GroupKey<'d>, Vec<GroupMember<'d>>)| {
        let object = state.objects_of_kind(kind).get(namespace, name)?;
        let lost = members.iter().filter(|member| member.is_lost).count();
        let GroupEffect { policy, effect, restarted, fails } = match kind {
            ObjectKind::LeaderWorkerSet => leader_worker_set::effect_of_lost_pods(object, &members),
            ObjectKind::JobSet => job_set::effect_of_lost_pods(state, object, &members),
            _ => pod_group_effect(kind, object, members.len() - lost),
        };
        Some(AffectedGroup { kind: kind.name(), namespace, name, lost, restarted, fails, policy, effect })
    };
    members.into_iter().filter_map(restart).collect()
}

/// Identifies a unit, which is a group of pods that can only move together: the pods of a JobSet, or of one group of a
/// LeaderWorkerSet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndivisibleGroupName<'d> {
    pub kind: ObjectKind,
    pub namespace: &'d str,
    pub name: &'d str,
    /// Group index in a LeaderWorkerSet; empty for a JobSet.
    pub index: &'d str,
}

/// The group of pods that can only move together with this pod; `None` if the state does not contain its JobSet or
/// LeaderWorkerSet.
pub fn group_that_moves_together<'d>(
    state: &State<'d>,
    pod: StoredObject<'d>,
) -> Option<IndivisibleGroupName<'d>> {
    let (kind, namespace, name) = job_set_or_leader_worker_set(state, pod)?;
    let is_indexed = kind == ObjectKind::LeaderWorkerSet;
    let index = if is_indexed { leader_worker_set::group_index(pod) } else { "" };
    Some(IndivisibleGroupName { kind, namespace, name, index })
}

/// The JobSet or LeaderWorkerSet of a pod, if the state contains it.
fn job_set_or_leader_worker_set<'d>(state: &State<'d>, pod: StoredObject<'d>) -> Option<GroupKey<'d>> {
    let is_set = |kind| matches!(kind, ObjectKind::JobSet | ObjectKind::LeaderWorkerSet);
    let (kind, set) = controllers_of(state, pod).find(|(kind, _)| is_set(*kind))?;
    Some((kind, pod.namespace(), set.name()))
}

/// The groups of a pod that the state contains: at most one JobSet or LeaderWorkerSet, and one PodGroup.
fn group_keys<'d>(state: &State<'d>, pod: StoredObject<'d>) -> Vec<GroupKey<'d>> {
    let (spec, labels) = (pod.value.get("spec"), pod.value.get("metadata").get("labels"));
    let named = [
        (ObjectKind::PodGroup, spec.get("schedulingGroup").get("podGroupName").str()),
        (ObjectKind::CoschedulingPodGroup, labels.get("scheduling.x-k8s.io/pod-group").str()),
    ];
    let exists =
        |(kind, name): &(ObjectKind, &str)| state.objects_of_kind(*kind).get(pod.namespace(), name).is_some();
    let named = named.into_iter().filter(exists).map(|(kind, name)| (kind, pod.namespace(), name));
    job_set_or_leader_worker_set(state, pod).into_iter().chain(named).collect()
}

/// The effect on the pods of a PodGroup: none, because gang scheduling does not affect running pods.
fn pod_group_effect(kind: ObjectKind, object: StoredObject<'_>, others: usize) -> GroupEffect<'_> {
    let spec = object.value.get("spec");
    let gang = spec.get("schedulingPolicy").get("gang");
    let minimum = match kind {
        ObjectKind::PodGroup if !gang.exists() => None,
        ObjectKind::PodGroup => Some(("gang.minCount", gang.get("minCount").int().unwrap_or(1))),
        _ => Some(("minMember", spec.get("minMember").int().unwrap_or(1))),
    };
    let kept = other_pods_phrase(others, "", "keeps running", "keep running");
    let (policy, effect) = match minimum {
        None => {
            ("schedulingPolicy: basic".to_owned(), format!("{kept}, and each new pod is scheduled alone"))
        }
        Some((field, count)) => {
            let effect =
                format!("{kept}; new pods are scheduled only if {count} pods of the group can run together");
            (format!("{field}: {count}"), effect)
        }
    };
    GroupEffect { policy, effect, restarted: Vec::new(), fails: false }
}

/// A phrase such as `the 3 other pods of that Job keep running` or `the other pod of that Job keeps running`,
/// where `whose` is ` of that Job`.
fn other_pods_phrase(count: usize, whose: &str, one: &str, many: &str) -> String {
    match count {
        0 => format!("no other pod{whose} {one}"),
        1 => format!("the other pod{whose} {one}"),
        _ => format!("the {count} other pods{whose} {many}"),
    }
}

#[cfg(test)]
mod tests;
