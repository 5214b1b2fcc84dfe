//! Checks whether a pod can be moved, independent of where its replacement would go.
//!
//! Each check returns the reason why the pod stays. The first reason counts, so those that no flag can override come
//! first.

use crate::budgets::Budgets;
use crate::outcome::{Budget, StayReason};
use crate::request::{DrainRequest, MoveOptions};
use crate::stay::{StayExplanation, namespaced_name, stop_command};
use crate::users::{ClaimWithPods, PodWithClaims};
use tollgate_api::profile::Version;
use tollgate_api::view::{Claim, Pod, PodResourceClaim, RequestBody, SubRequest, View as _};
use tollgate_document::doc::Value;
use tollgate_forecast::{ObjectKind, State, StoredObject, controller_reference, tolerates, workload_of};

/// Annotations that ask not to disrupt a pod, each with the value that has this meaning.
const DO_NOT_DISRUPT: [(&str, &str); 2] =
    [("karpenter.sh/do-not-disrupt", "true"), ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")];

/// Annotation of mirror pods, which represent static pods of a kubelet.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Cluster state and options that decide whether a pod can be moved.
pub(crate) struct MoveChecks<'a, 'd> {
    pub(crate) state: &'a State<'d>,
    pub(crate) request: &'a DrainRequest,
    pub(crate) held: &'a [ClaimWithPods<'d>],
    pub(crate) budgets: &'a Budgets<'d>,
}

impl<'d> MoveChecks<'_, 'd> {
    /// The reason why the pod cannot be moved, independent of free devices; `None` if it can.
    pub(crate) fn stay_reason(&self, pod: &PodWithClaims<'d>, budgets: &[usize]) -> Option<StayExplanation> {
        let claims = || pod.claims.iter().filter_map(|index| self.held.get(*index));
        let (object, options) = (pod.pod, &self.request.options);
        check_mirror_pod(object)
            .or_else(|| check_terminating(object))
            .or_else(|| check_ended_or_unbound(object))
            .or_else(|| claims().find_map(check_pod_group_claim))
            .or_else(|| claims().find_map(|held| self.check_claim_used_by_name(held)))
            .or_else(|| claims().find_map(|held| self.check_drain_taint_tolerated(object, held)))
            .or_else(|| check_daemon_set(object, options))
            .or_else(|| check_no_controller(object, options))
            .or_else(|| self.check_blocking_budgets(object, budgets))
            .or_else(|| check_do_not_disrupt(object, options))
            .or_else(|| check_empty_dir_on_disk(object, options))
    }

    /// Returns the reason to stay for a pod that references the claim by name: a new pod of the same controller
    /// would use the old allocation.
    fn check_claim_used_by_name(&self, held: &ClaimWithPods<'d>) -> Option<StayExplanation> {
        let is_named = |pod: StoredObject<'d>| {
            let mut references = Pod::of(pod.value).spec().resource_claims().iter();
            references.any(|reference: PodResourceClaim<'_>| {
                reference.resource_claim_name() == Some(held.claim.name())
            })
        };
        let users = || held.users.iter().filter_map(|user| user.pod).filter(|pod| is_named(*pod));
        let has_controller =
            |pod: &StoredObject<'d>| !controller_reference(pod.value).get("name").str().is_empty();
        let user = users().find(has_controller)?;
        let workload = workload_of(self.state, user)?;
        let (claim, of) = (
            namespaced_name(held.claim),
            format!("{} {}/{}", workload.kind, workload.namespace, workload.name),
        );
        let why = format!(
            "Pods use ResourceClaim {claim} by name, and the next pod of {of} joins its allocation, whatever its devices are \
             tainted with."
        );
        let remedy = match stop_command(workload) {
            Some(command) => format!("Stop {of} until the claim is released: `{command}`."),
            None => format!("Stop {of} until the claim is released."),
        };
        Some(StayExplanation::new(StayReason::NamedClaim, why, remedy))
    }

    /// The reason to stay for a pod with a toleration, in its claim or in the template of the next claim, that lets the
    /// replacement use the drained devices again. A pod without a controller has no replacement.
    fn check_drain_taint_tolerated(
        &self,
        pod: StoredObject<'d>,
        held: &ClaimWithPods<'d>,
    ) -> Option<StayExplanation> {
        if !has_controller(pod) {
            return None;
        }
        let key = &self.request.key;
        let tolerating = |claim: Claim<'d>, version: Version| {
            let in_spec =
                requests_and_alternatives_with_names(claim, version).into_iter().flat_map(|(name, body)| {
                    body.tolerations().iter().map(move |toleration| (name.clone(), toleration))
                });
            let results = claim.status().allocation().map(|allocation| allocation.devices().results());
            let in_results =
                results.into_iter().flat_map(tollgate_api::view::List::iter).flat_map(|result| {
                    result
                        .tolerations()
                        .iter()
                        .map(move |toleration| (result.request().to_owned(), toleration))
                });
            in_spec.chain(in_results).find(|(_, toleration)| tolerates(*toleration, key, "", "NoSchedule"))
        };
        let template = claim_template_name(pod, held.claim.name());
        let source = template.map(|name| format!("ResourceClaimTemplate {}/{name}", pod.namespace()));
        let in_claim = tolerating(Claim::of(held.claim.value), held.claim.version)
            .map(|found| (format!("ResourceClaim {}", namespaced_name(held.claim)), found));
        // Its spec has what a claim has.
        let in_template = || {
            let templates = self.state.objects_of_kind(ObjectKind::ResourceClaimTemplate);
            let template = templates.get(pod.namespace(), template?)?;
            let found = tolerating(Claim::of(template.value.get("spec")), template.version)?;
            Some((source.clone()?, found))
        };
        let (object, (name, toleration)) = in_claim.or_else(in_template)?;
        let why = format!(
            "Request {name} of {object} tolerates the taint {key}:NoSchedule, so its replacement can get these devices again."
        );
        let location = source.unwrap_or_else(|| format!("the claims of pod {}", namespaced_name(pod)));
        let other_key =
            if toleration.key().is_empty() { "" } else { ", or use another taint key with --key" };
        let remedy = format!("Remove the toleration from {location} and restart its pods{other_key}.");
        Some(StayExplanation::new(StayReason::Tolerates, why, remedy))
    }

    /// Returns the reason to stay for a pod that several PDBs select, or whose PDB never allows an eviction.
    fn check_blocking_budgets(&self, pod: StoredObject<'d>, budgets: &[usize]) -> Option<StayExplanation> {
        let budgets: Vec<&Budget> = budgets.iter().filter_map(|index| self.budgets.get(*index)).collect();
        let namespace = pod.namespace();
        if let [one, .., last] = budgets.as_slice() {
            let names: Vec<String> = budgets.iter().map(|budget| budget.namespaced_name()).collect();
            let both = if budgets.len() == 2 { "both" } else { "all" };
            let why = format!(
                "PDBs {} {both} select it, and the Eviction API refuses a pod with more than one PDB.",
                names.join(" and ")
            );
            let remedy = format!(
                "Change spec.selector so that only PDB {} selects it: `kubectl -n {namespace} edit pdb {}`.",
                one.namespaced_name(),
                last.name
            );
            return Some(StayExplanation::new(StayReason::SeveralBudgets, why, remedy));
        }
        let budget = budgets.into_iter().find(|budget| budget.allowed_at_best <= 0)?;
        if let Some(failure) = &budget.sync_failure {
            let why = format!(
                "PDB {} allows no disruption, because kube-controller-manager cannot compute how many it allows{}",
                budget.namespaced_name(),
                if failure.is_empty() { ".".to_owned() } else { format!(": {failure}") }
            );
            let remedy = format!(
                "Change spec.selector so that it selects only pods of one known controller: `kubectl -n {namespace} edit pdb {}`.",
                budget.name
            );
            return Some(StayExplanation::new(StayReason::Budget, why, remedy));
        }
        let why = format!(
            "PDB {} never allows a disruption, even if all its pods are healthy.",
            budget.namespaced_name()
        );
        let allow = if budget.grows_with_replicas {
            "Add a replica to its workload, or let the PDB allow a disruption"
        } else {
            "Let the PDB allow a disruption"
        };
        let remedy = format!("{allow}: `kubectl -n {namespace} edit pdb {}`.", budget.name);
        Some(StayExplanation::new(StayReason::Budget, why, remedy))
    }
}

fn check_mirror_pod(pod: StoredObject<'_>) -> Option<StayExplanation> {
    annotations(pod).get(MIRROR_ANNOTATION).exists().then(|| {
        let node = node_of(pod);
        StayExplanation::new(
            StayReason::Mirror,
            format!("It mirrors a static pod of the kubelet on node {node}, which nobody can evict."),
            format!("Remove the manifest of the static pod on node {node}."),
        )
    })
}

fn check_terminating(pod: StoredObject<'_>) -> Option<StayExplanation> {
    let since = pod.value.get("metadata").get("deletionTimestamp");
    since.exists().then(|| {
        let describe = format!("kubectl -n {} describe pod {}", pod.namespace(), pod.name());
        StayExplanation::new(
            StayReason::Terminating,
            format!("It is being deleted, with the deletion timestamp {}.", since.str()),
            format!("Wait until it is gone; if it is stuck, check node {}: `{describe}`.", node_of(pod)),
        )
    })
}

/// The reason to stay for a pod that has ended or is not bound to a node yet.
fn check_ended_or_unbound(pod: StoredObject<'_>) -> Option<StayExplanation> {
    let phase = pod.value.get("status").get("phase").str();
    if matches!(phase, "Succeeded" | "Failed") {
        let why = format!("It has ended (phase {phase}), and kube-controller-manager releases its claims.");
        let remedy = "Wait a moment and run the same command again.";
        return Some(StayExplanation::new(StayReason::Other, why, remedy));
    }
    node_of(pod).is_empty().then(|| {
        StayExplanation::new(
            StayReason::Other,
            "Its claim is allocated, but the pod is not bound to a node yet.",
            "Wait until it runs and run the same command again.",
        )
    })
}

fn check_pod_group_claim(held: &ClaimWithPods<'_>) -> Option<StayExplanation> {
    let group = held.users.iter().find(|user| user.resource == "podgroups")?;
    let (namespace, name) = (held.claim.namespace(), group.name);
    let why = format!(
        "ResourceClaim {} is reserved for PodGroup {namespace}/{name} and is released only when the PodGroup is deleted.",
        namespaced_name(held.claim)
    );
    let remedy = format!(
        "Delete the PodGroup when its work can be interrupted: `kubectl -n {namespace} delete podgroup {name}`."
    );
    Some(StayExplanation::new(StayReason::PodGroupClaim, why, remedy))
}

fn check_daemon_set(pod: StoredObject<'_>, options: &MoveOptions) -> Option<StayExplanation> {
    let owner = controller_reference(pod.value);
    let is_kept = is_daemon_pod(pod) && !options.daemon_set_pods;
    is_kept.then(|| {
        StayExplanation::new(
            StayReason::DaemonSet,
            format!(
                "It belongs to DaemonSet {}/{}, which makes its pods for the same node.",
                pod.namespace(),
                owner.get("name").str()
            ),
            "Add --evict-daemonset-pods; the new pod stays Pending if the node has no other free device for it.",
        )
    })
}

fn check_no_controller(pod: StoredObject<'_>, options: &MoveOptions) -> Option<StayExplanation> {
    let is_kept = !has_controller(pod) && !options.without_controller;
    is_kept.then(|| {
        StayExplanation::new(
            StayReason::NoController,
            "It has no controller, so nothing makes it again.",
            "Add --force to evict it for good, or delete it yourself when its work is done.",
        )
    })
}

fn check_do_not_disrupt(pod: StoredObject<'_>, options: &MoveOptions) -> Option<StayExplanation> {
    let annotations = annotations(pod);
    let is_set = |(name, value): &(&str, &str)| annotations.get(name).str() == *value;
    let (name, value) = DO_NOT_DISRUPT.into_iter().filter(|_| !options.ignore_do_not_disrupt).find(is_set)?;
    let (namespace, pod) = (pod.namespace(), pod.name());
    Some(StayExplanation::new(
        StayReason::DoNotDisrupt,
        format!("Its annotation {name}: \"{value}\" asks not to disrupt it."),
        format!(
            "Add --ignore-do-not-disrupt, or remove the annotation: `kubectl -n {namespace} annotate pod {pod} {name}-`."
        ),
    ))
}

fn check_empty_dir_on_disk(pod: StoredObject<'_>, options: &MoveOptions) -> Option<StayExplanation> {
    let mut volumes = pod.value.get("spec").get("volumes").items();
    let is_on_disk = |volume: &Value<'_>| {
        let source = volume.get("emptyDir");
        source.exists() && source.get("medium").str() != "Memory"
    };
    let volume = volumes.find(is_on_disk).filter(|_| !options.delete_empty_dir_data)?;
    Some(StayExplanation::new(
        StayReason::EmptyDir,
        format!("Its volume {} is an emptyDir, whose data is lost with the pod.", volume.get("name").str()),
        "Add --delete-emptydir-data if the data can be lost.",
    ))
}

/// Name of the ResourceClaimTemplate from which the pod's claim was created.
fn claim_template_name<'d>(pod: StoredObject<'d>, claim: &str) -> Option<&'d str> {
    let pod = Pod::of(pod.value);
    let mut made = pod.status().resource_claim_statuses().iter();
    let reference = made.find(|made| made.resource_claim_name() == Some(claim))?.name();
    let mut references = pod.spec().resource_claims().iter();
    let template =
        references.find(|own| own.name() == reference)?.json().get("resourceClaimTemplateName").str();
    (!template.is_empty()).then_some(template)
}

/// True if a controller recreates the pod.
pub(crate) fn has_controller(pod: StoredObject<'_>) -> bool {
    !controller_reference(pod.value).get("kind").str().is_empty()
}

pub(crate) fn is_daemon_pod(pod: StoredObject<'_>) -> bool {
    controller_reference(pod.value).get("kind").str() == "DaemonSet"
}

pub(crate) fn node_of(pod: StoredObject<'_>) -> &str {
    pod.value.get("spec").get("nodeName").str()
}

fn annotations(pod: StoredObject<'_>) -> Value<'_> {
    pod.value.get("metadata").get("annotations")
}

/// The requests of a claim, or their alternatives where they have some, with the names that allocation results use.
fn requests_and_alternatives_with_names<'d>(
    claim: Claim<'d>,
    version: Version,
) -> Vec<(String, RequestBody<'d>)> {
    let mut all = Vec::new();
    for request in claim.spec().devices().requests().iter() {
        all.extend(request.exactly(version).map(|body| (request.name().to_owned(), body)));
        all.extend(request.first_available().iter().map(|alternative: SubRequest<'d>| {
            (format!("{}/{}", request.name(), alternative.name()), alternative.body())
        }));
    }
    all
}
