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
    let (reference, _) = owners_of(state, object).last()?;
    Some(Workload { kind: reference.get("kind").str(), namespace, name: reference.get("name").str() })
}

/// The controllers of an object that the state contains, closest first.
pub fn controllers_of<'s, 'd>(
    state: &'s State<'d>,
    object: StoredObject<'d>,
) -> impl Iterator<Item = (ObjectKind, StoredObject<'d>)> + use<'s, 'd> {
    owners_of(state, object).filter_map(|(_, owner)| owner)
}

/// The owner reference with `controller: true`; an absent value if there is none.
pub fn controller_reference(object: Value<'_>) -> Value<'_> {
    let mut references = object.get("metadata").get("ownerReferences").items();
    let controller = references.find(|reference| reference.get("controller").bool() == Some(true));
    controller.unwrap_or(Value::absent())
}

/// The owner reference of an object to its controller, and the controller if the state contains it.
type Owner<'d> = (Value<'d>, Option<(ObjectKind, StoredObject<'d>)>);

/// The controllers of an object, closest first. The number of owners that are followed is limited, because owners can
/// refer to each other.
fn owners_of<'s, 'd>(
    state: &'s State<'d>,
    object: StoredObject<'d>,
) -> impl Iterator<Item = Owner<'d>> + use<'s, 'd> {
    let namespace = object.namespace();
    let first = owner_of(state, namespace, object);
    let next = move |(_, owner): &Owner<'d>| owner_of(state, namespace, owner.as_ref()?.1);
    std::iter::successors(first, next).take(MAX_OWNERS)
}

/// The owner of an object; `None` if it has no controller.
fn owner_of<'d>(state: &State<'d>, namespace: &str, owned: StoredObject<'d>) -> Option<Owner<'d>> {
    let reference = controller_reference(owned.value);
    let [api_version, kind, name, expected] =
        ["apiVersion", "kind", "name", "uid"].map(|field| reference.get(field).str());
    if name.is_empty() {
        return None;
    }
    let owner = ObjectKind::from_type_meta(api_version, kind).and_then(|kind| {
        let objects = state.objects_of_kind(kind);
        let found = objects.get(namespace, name).or_else(|| objects.get("", name))?;
        // Objects that a person wrote have no uid.
        let is_it = expected.is_empty() || found.uid().is_empty() || expected == found.uid();
        is_it.then_some((kind, found))
    });
    Some((reference, owner))
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
