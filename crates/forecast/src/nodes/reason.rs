//! Reasons why nodes are rejected, with the scheduler's messages, and how often each occurred.

use super::catalog::PodCatalog;
use super::node::NodeIndex;
use super::resources::ResourceId;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Why a filter of the scheduler rejects a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RejectionReason {
    NodeName,
    Unschedulable,
    Taints,
    NodeAffinity,
    HostPorts,
    TooManyPods,
    InsufficientCpu,
    InsufficientMemory,
    InsufficientEphemeralStorage,
    Insufficient(ResourceId),
    TopologySpread,
    /// The node lacks the label of a topology spread constraint.
    TopologySpreadLabel,
    PodAffinity,
    PodAntiAffinity,
    /// The anti-affinity of a running pod excludes the new pod.
    ExistingPodAntiAffinity,
}

impl RejectionReason {
    /// The scheduler's message for the reason, as in the condition of a pod.
    pub fn scheduler_message(self, catalog: &PodCatalog<'_>) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            RejectionReason::NodeName => "node(s) didn't match the requested node name",
            RejectionReason::Unschedulable => "node(s) were unschedulable",
            RejectionReason::Taints => "node(s) had untolerated taint(s)",
            RejectionReason::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            RejectionReason::HostPorts => "node(s) didn't have free ports for the requested pod ports",
            RejectionReason::TooManyPods => "Too many pods",
            RejectionReason::InsufficientCpu => "Insufficient cpu",
            RejectionReason::InsufficientMemory => "Insufficient memory",
            RejectionReason::InsufficientEphemeralStorage => "Insufficient ephemeral-storage",
            RejectionReason::Insufficient(resource) => {
                return Cow::Owned(format!("Insufficient {}", catalog.resource_name(resource)));
            }
            RejectionReason::TopologySpread => "node(s) didn't match pod topology spread constraints",
            RejectionReason::TopologySpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            RejectionReason::PodAffinity => "node(s) didn't match pod affinity rules",
            RejectionReason::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            RejectionReason::ExistingPodAntiAffinity => {
                "node(s) didn't satisfy existing pods anti-affinity rules"
            }
        })
    }
}

/// A node that a filter of the scheduler rejects: the reasons, and whether preemption could help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    pub reasons: Reasons,
    /// True for status Unschedulable: the node could be used after other pods are removed. False for
    /// UnschedulableAndUnresolvable.
    pub resolvable: bool,
}

/// The reasons of one filter for one node. Only the resource filter has several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reasons {
    One(RejectionReason),
    Several(Vec<RejectionReason>),
}

impl Reasons {
    pub(super) fn push(&mut self, reason: RejectionReason) {
        match self {
            Reasons::One(first) => *self = Reasons::Several(vec![*first, reason]),
            Reasons::Several(reasons) => reasons.push(reason),
        }
    }

    pub fn as_slice(&self) -> &[RejectionReason] {
        match self {
            Reasons::One(reason) => std::slice::from_ref(reason),
            Reasons::Several(reasons) => reasons,
        }
    }
}

impl Rejection {
    /// A rejection that preemption on the node could resolve.
    pub(super) fn resolvable(reason: RejectionReason) -> Rejection {
        Rejection { reasons: Reasons::One(reason), resolvable: true }
    }

    /// A rejection that preemption cannot resolve.
    pub(super) fn unresolvable(reason: RejectionReason) -> Rejection {
        Rejection { reasons: Reasons::One(reason), resolvable: false }
    }
}

/// The nodes rejected in one scheduling attempt, with counted reasons.
#[derive(Clone, Default, Debug)]
pub struct Diagnosis {
    counts: BTreeMap<RejectionReason, usize>,
    texts: BTreeMap<Cow<'static, str>, usize>,
    /// The nodes on which preemption could help.
    resolvable: Vec<NodeIndex>,
}

impl Diagnosis {
    /// Counts a node rejected by the filters of this module.
    pub fn add(&mut self, node: NodeIndex, rejection: &Rejection) {
        for &reason in rejection.reasons.as_slice() {
            *self.counts.entry(reason).or_insert(0) += 1;
        }
        if rejection.resolvable {
            self.resolvable.push(node);
        }
    }

    /// Counts a node rejected by another filter, with its message. Preemption cannot help there.
    pub fn add_node_rejected_with_message(&mut self, text: Cow<'static, str>) {
        *self.texts.entry(text).or_insert(0) += 1;
    }

    /// The rejected nodes that could be used if other pods were removed.
    pub fn resolvable_nodes(&self) -> &[NodeIndex] {
        &self.resolvable
    }

    /// The messages with their node counts, as in the scheduler's message. `not_looked_at` is the message and
    /// number of the nodes that were not checked ([`super::SchedulingCycle::excluded_nodes_message`]).
    pub fn message_counts(
        &self,
        catalog: &PodCatalog<'_>,
        not_looked_at: Option<(String, usize)>,
    ) -> BTreeMap<String, usize> {
        let own = self
            .counts
            .iter()
            .map(|(reason, &count)| (reason.scheduler_message(catalog).into_owned(), count));
        let others = self.texts.iter().map(|(text, &count)| (text.clone().into_owned(), count));
        let mut texts = BTreeMap::new();
        for (text, count) in own.chain(others).chain(not_looked_at) {
            *texts.entry(text).or_insert(0) += count;
        }
        texts
    }
}
