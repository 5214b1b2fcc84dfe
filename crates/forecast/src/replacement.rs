//! What is not known of a replacement: when its controller creates it, and from which template.
//!
//! A replacement is simulated as a copy of the evicted pod, or from the new template of its StatefulSet. If a controller
//! has another template by now, the outcome is unknown, but other pods can depend on what the replacement takes.
//!
//! Each reason is a phrase for the user, as in "the outcome is not known: …".

use crate::nodes::PodSource;
use crate::state::{ObjectKind, State, StoredObject};
use crate::workload::{controller_reference, controllers_of};
use tollgate_document::doc::Value;

/// Kinds whose objects decide what happens to their other pods if they lose one, and StatefulSets, which can belong to
/// one of them.
const GROUPING_KINDS: [ObjectKind; 4] =
    [ObjectKind::Job, ObjectKind::JobSet, ObjectKind::LeaderWorkerSet, ObjectKind::StatefulSet];

/// True if a node has the condition Ready and it is not True. Its kubelet does not end pods, so evicted pods stay
/// there as Terminating.
pub fn is_node_not_ready(state: &State<'_>, node: &str) -> bool {
    let Some(node) = state.objects_of_kind(ObjectKind::Node).get("", node) else { return false };
    let mut conditions = node.value.get("status").get("conditions").items();
    conditions
        .any(|condition| condition.get("type").text_is("Ready") && !condition.get("status").text_is("True"))
}

/// The reasons why it is not known what replaces the pod.
pub(crate) fn unknowns_of_replacement<'d>(state: &State<'d>, pod: StoredObject<'d>) -> Vec<String> {
    let owner = controllers_of(state, pod).next();
    let template = owner.and_then(|(kind, owner)| unknown_template(kind, owner, pod));
    unread_owner(state, pod).into_iter().chain(template).collect()
}

/// The owner that decides about the other pods as well, if it could not be read.
fn unread_owner<'d>(state: &State<'d>, pod: StoredObject<'d>) -> Option<String> {
    let last = controllers_of(state, pod).last().map_or(pod, |(_, owner)| owner);
    let reference = controller_reference(last.value);
    let (kind, name) = (reference.get("kind").str(), reference.get("name").str());
    let known = ObjectKind::from_type_meta(reference.get("apiVersion").str(), kind)?;
    let is_unread = state.is_unread(known) && GROUPING_KINDS.contains(&known);
    is_unread.then(|| format!("{kind} {name} could not be read"))
}

/// What the replacement of a pod is read from: the pod, or the template of its StatefulSet if that is a new one.
pub(crate) fn source_of_replacement<'d>(state: &State<'d>, pod: StoredObject<'d>) -> PodSource<'d> {
    let set = controllers_of(state, pod)
        .next()
        .filter(|(kind, owner)| *kind == ObjectKind::StatefulSet && uses_update_revision(*owner, pod));
    let template = set.map(|(_, set)| set.value.get("spec").get("template")).filter(|new| new.exists());
    match template {
        Some(template) => {
            let (spec, class) = (pod.value.get("spec"), "priorityClassName");
            let has_same_class = spec.get(class).str() == template.get("spec").get(class).str();
            PodSource {
                priority: spec.get("priority").int().filter(|_| has_same_class),
                ..PodSource::from_template(pod.namespace(), template)
            }
        }
        None => PodSource { status: Value::absent(), is_new: true, ..PodSource::from_object(pod.value) },
    }
}

/// Why the template of the replacement differs from that of the pod.
fn unknown_template(kind: ObjectKind, owner: StoredObject<'_>, pod: StoredObject<'_>) -> Option<String> {
    let template = owner.value.get("spec").get("template");
    let is_changed = match kind {
        ObjectKind::StatefulSet => uses_update_revision(owner, pod),
        ObjectKind::DaemonSet => {
            let generation = owner
                .value
                .get("metadata")
                .get("annotations")
                .get("deprecated.daemonset.template.generation");
            is_other_revision(generation, label(pod, "pod-template-generation"))
        }
        _ => false,
    };
    if is_changed {
        return Some(format!("{} {} has a new template", kind.name(), owner.name()));
    }
    let gate = template.get("spec").get("schedulingGates").items().next()?;
    Some(format!(
        "the template of {} {} has the scheduling gate {}",
        kind.name(),
        owner.name(),
        gate.get("name").str()
    ))
}

/// True if the StatefulSet creates the pod again with a newer template than the pod has.
// upstream v1.37 StatefulSet controller newVersionedStatefulSetPod
fn uses_update_revision(set: StoredObject<'_>, pod: StoredObject<'_>) -> bool {
    let (spec, status) = (set.value.get("spec"), set.value.get("status"));
    let partition = spec.get("updateStrategy").get("rollingUpdate").get("partition").int().unwrap_or(0);
    let first = spec.get("ordinals").get("start").int().unwrap_or(0);
    let ordinal = pod.name().rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse::<i64>().ok());
    let is_held_back = ordinal.is_some_and(|ordinal| ordinal < first.saturating_add(partition));
    !is_held_back && is_other_revision(status.get("updateRevision"), label(pod, "controller-revision-hash"))
}

/// True if both are known and differ.
fn is_other_revision(wanted: Value<'_>, found: Value<'_>) -> bool {
    !wanted.str().is_empty() && !found.str().is_empty() && wanted.str() != found.str()
}

fn label<'d>(pod: StoredObject<'d>, name: &str) -> Value<'d> {
    pod.value.get("metadata").get("labels").get(name)
}
