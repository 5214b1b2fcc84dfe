//! Finds the workload of a pod: the object that a user wrote, such as a Deployment.
//!
//! Only owner references with `controller: true` are followed, because only a controller replaces a pod. Labels are
//! not read.
//!
//! Invariant: the result is the last owner that is known by name. The search ends at an owner that the state does not
//! contain, or that has another UID, because then the original owner was deleted.

use crate::outcome::WorkloadName;
use crate::state::{ObjectKind, State, StoredObject};
use std::fmt;
use tollgate_document::doc::Value;

/// Maximum number of owners that are followed. Real pods have at most four: StatefulSet, leader pod,
/// StatefulSet and LeaderWorkerSet.
const MAX_OWNERS: usize = 8;

/// The outermost controller of a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Workload<'d> {
    /// The kind in the owner reference or object, such as `Deployment`.
    pub kind: &'d str,
    /// Namespace of the pod. Owners are in the same namespace or cluster-scoped.
    pub namespace: &'d str,
    pub name: &'d str,
}

impl fmt::Display for Workload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl From<Workload<'_>> for WorkloadName {
    fn from(workload: Workload<'_>) -> WorkloadName {
        WorkloadName { kind: workload.kind.to_owned(), name: workload.name.to_owned() }
    }
}

/// The workload of a pod or other namespaced object; `None` if it has no controller.
pub fn workload_of<'d>(state: &State<'d>, object: StoredObject<'d>) -> Option<Workload<'d>> {
    let namespace = object.namespace();
    let (reference, _) = OwnerChain::new(state, object).last()?;
    Some(Workload { kind: reference.get("kind").str(), namespace, name: reference.get("name").str() })
}

/// The controllers of an object that the state contains, closest first.
pub fn controllers_of<'s, 'd>(
    state: &'s State<'d>,
    object: StoredObject<'d>,
) -> impl Iterator<Item = (ObjectKind, StoredObject<'d>)> + use<'s, 'd> {
    OwnerChain::new(state, object).filter_map(|(_, owner)| owner)
}

/// The owner reference with `controller: true`; an absent value if there is none.
pub fn controller_reference(object: Value<'_>) -> Value<'_> {
    let mut references = object.get("metadata").get("ownerReferences").items();
    let controller = references.find(|reference| reference.get("controller").bool() == Some(true));
    controller.unwrap_or(Value::absent())
}

/// Iterates over the owner references to controllers, closest first, each with its object if the state
/// contains it.
struct OwnerChain<'s, 'd> {
    state: &'s State<'d>,
    namespace: &'d str,
    /// The object whose controller comes next; `None` at the end.
    owned: Option<Value<'d>>,
    /// Number of owners that may still be followed, which ends the search if owners refer to each other.
    left: usize,
}

impl<'s, 'd> OwnerChain<'s, 'd> {
    fn new(state: &'s State<'d>, object: StoredObject<'d>) -> OwnerChain<'s, 'd> {
        OwnerChain { state, namespace: object.namespace(), owned: Some(object.value), left: MAX_OWNERS }
    }

    /// The object of an owner reference, if the state contains it.
    fn find_owner(&self, reference: Value<'d>) -> Option<(ObjectKind, StoredObject<'d>)> {
        let kind =
            ObjectKind::from_type_meta(reference.get("apiVersion").str(), reference.get("kind").str())?;
        let (objects, name) = (self.state.objects_of_kind(kind), reference.get("name").str());
        let found = objects.get(self.namespace, name).or_else(|| objects.get("", name))?;
        let (expected, uid) = (reference.get("uid").str(), found.uid());
        // Objects that a person wrote have no uid.
        (expected.is_empty() || uid.is_empty() || expected == uid).then_some((kind, found))
    }
}

impl<'d> Iterator for OwnerChain<'_, 'd> {
    type Item = (Value<'d>, Option<(ObjectKind, StoredObject<'d>)>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let reference = controller_reference(self.owned.take()?);
        if reference.get("name").str().is_empty() {
            return None;
        }
        let owner = self.find_owner(reference);
        self.owned = owner.map(|(_, object)| object.value);
        Some((reference, owner))
    }
}

#[cfg(test)]
mod tests {
    use super::{State, controllers_of, workload_of};
    use crate::state::ObjectKind;
    use tollgate_document::doc;

    /// An object and its controller as JSON, each given as apiVersion, kind, name and uid.
    fn object(own: [&str; 4], owner: Option<[&str; 4]>) -> String {
        let [api_version, kind, name, uid] = own;
        let owners = owner.map_or(String::new(), |[api_version, kind, name, uid]| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Other","name":"not-a-controller","uid":"x"}},
                {{"apiVersion":"{api_version}","kind":"{kind}","name":"{name}","uid":"{uid}","controller":true}}"#
            )
        });
        format!(
            r#"{{"apiVersion":"{api_version}","kind":"{kind}",
            "metadata":{{"namespace":"app","name":"{name}","uid":"{uid}","ownerReferences":[{owners}]}}}}"#
        )
    }

    const POD: [&str; 4] = ["v1", "Pod", "p", "1"];
    const REPLICA_SET: [&str; 4] = ["apps/v1", "ReplicaSet", "chat-7d9", "2"];
    const DEPLOYMENT: [&str; 4] = ["apps/v1", "Deployment", "chat", "3"];
    const JOB: [&str; 4] = ["batch/v1", "Job", "train-0", "4"];
    const JOB_SET: [&str; 4] = ["jobset.x-k8s.io/v1alpha2", "JobSet", "train", "5"];
    const WORKERS: [&str; 4] = ["apps/v1", "StatefulSet", "llm-0", "6"];
    const LEADER: [&str; 4] = ["v1", "Pod", "llm-0", "7"];
    const LEADERS: [&str; 4] = ["apps/v1", "StatefulSet", "llm", "8"];
    const LWS: [&str; 4] = ["leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm", "9"];
    const ROLLOUT: [&str; 4] = ["argoproj.io/v1alpha1", "Rollout", "web", "10"];
    const NEW_REPLICA_SET: [&str; 4] = ["apps/v1", "ReplicaSet", "chat-7d9", "11"];

    /// A test case: objects besides the pod, each with its owner; the expected workload; the expected
    /// controllers.
    type Case<'c> = (&'c [([&'c str; 4], Option<[&'c str; 4]>)], Option<&'c str>, &'c [ObjectKind]);

    #[test]
    fn owners_are_followed_to_the_workload() {
        use ObjectKind::{Deployment, Job, LeaderWorkerSet, Pod, ReplicaSet, StatefulSet};
        let cases: &[Case<'_>] = &[
            (&[(POD, None)], None, &[]),
            (&[(POD, Some(REPLICA_SET))], Some("ReplicaSet/chat-7d9"), &[]),
            (
                &[(POD, Some(REPLICA_SET)), (REPLICA_SET, Some(DEPLOYMENT))],
                Some("Deployment/chat"),
                &[ReplicaSet],
            ),
            (
                &[(POD, Some(REPLICA_SET)), (REPLICA_SET, Some(DEPLOYMENT)), (DEPLOYMENT, None)],
                Some("Deployment/chat"),
                &[ReplicaSet, Deployment],
            ),
            // The ReplicaSet of that name is another one.
            (
                &[(POD, Some(REPLICA_SET)), (NEW_REPLICA_SET, Some(DEPLOYMENT))],
                Some("ReplicaSet/chat-7d9"),
                &[],
            ),
            (&[(POD, Some(REPLICA_SET)), (REPLICA_SET, Some(ROLLOUT))], Some("Rollout/web"), &[ReplicaSet]),
            (&[(POD, Some(JOB)), (JOB, Some(JOB_SET))], Some("JobSet/train"), &[Job]),
            (
                &[
                    (POD, Some(WORKERS)),
                    (WORKERS, Some(LEADER)),
                    (LEADER, Some(LEADERS)),
                    (LEADERS, Some(LWS)),
                    (LWS, None),
                ],
                Some("LeaderWorkerSet/llm"),
                &[StatefulSet, Pod, StatefulSet, LeaderWorkerSet],
            ),
            // A circle ends.
            (&[(POD, Some(JOB)), (JOB, Some(JOB))], Some("Job/train-0"), &[Job; super::MAX_OWNERS]),
        ];
        for (objects, workload, controllers) in cases {
            let texts: Vec<String> = objects.iter().map(|(own, owner)| object(*own, *owner)).collect();
            let docs: Vec<_> = texts.iter().map(|text| doc::parse(text).expect("JSON")).collect();
            let mut state = State::default();
            for doc in &docs {
                state.add(doc.root()).expect("a kind that a forecast reads");
            }
            let pod = state.objects_of_kind(Pod).get("app", "p").expect("the pod");
            let found = workload_of(&state, pod);
            assert_eq!(found.map(|found| found.to_string()).as_deref(), *workload, "{objects:?}");
            assert!(found.is_none_or(|found| found.namespace == "app"));
            let found: Vec<ObjectKind> = controllers_of(&state, pod).map(|(kind, _)| kind).collect();
            assert_eq!(found, *controllers, "{objects:?}");
        }
    }
}
