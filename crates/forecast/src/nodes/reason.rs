//! Why a node was not chosen, in the scheduler's words, and how often each reason occurred.

use super::catalog::Catalog;
use super::node::NodeIndex;
use super::resources::ResourceId;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A reason for which a filter drops a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
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
    /// The node does not have the label of a topology spread constraint.
    TopologySpreadLabel,
    PodAffinity,
    PodAntiAffinity,
    /// A pod that runs already does not want the new one near it.
    ExistingPodAntiAffinity,
}

impl Reason {
    /// The scheduler's text.
    pub fn text(self, catalog: &Catalog<'_>) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Reason::NodeName => "node(s) didn't match the requested node name",
            Reason::Unschedulable => "node(s) were unschedulable",
            Reason::Taints => "node(s) had untolerated taint(s)",
            Reason::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Reason::HostPorts => "node(s) didn't have free ports for the requested pod ports",
            Reason::TooManyPods => "Too many pods",
            Reason::InsufficientCpu => "Insufficient cpu",
            Reason::InsufficientMemory => "Insufficient memory",
            Reason::InsufficientEphemeralStorage => "Insufficient ephemeral-storage",
            Reason::Insufficient(resource) => {
                return Cow::Owned(format!("Insufficient {}", catalog.resource_name(resource)));
            }
            Reason::TopologySpread => "node(s) didn't match pod topology spread constraints",
            Reason::TopologySpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Reason::PodAffinity => "node(s) didn't match pod affinity rules",
            Reason::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Reason::ExistingPodAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
        })
    }
}

/// The verdict of the first filter that drops a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    pub reasons: Reasons,
    /// True if the node could be used after other pods were removed from it: status Unschedulable. Otherwise the status is
    /// UnschedulableAndUnresolvable.
    pub resolvable: bool,
}

/// The reasons of one filter for one node. Only the filter for resources has several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reasons {
    One(Reason),
    Several(Vec<Reason>),
}

impl Reasons {
    pub fn as_slice(&self) -> &[Reason] {
        match self {
            Reasons::One(reason) => std::slice::from_ref(reason),
            Reasons::Several(reasons) => reasons,
        }
    }
}

impl Rejection {
    /// Preemption on that node could help.
    pub(super) fn resolvable(reason: Reason) -> Rejection {
        Rejection { reasons: Reasons::One(reason), resolvable: true }
    }

    /// Preemption does not help.
    pub(super) fn unresolvable(reason: Reason) -> Rejection {
        Rejection { reasons: Reasons::One(reason), resolvable: false }
    }
}

/// What is known about the nodes that were dropped in one cycle.
#[derive(Clone, Default, Debug)]
pub struct Diagnosis {
    counts: BTreeMap<Reason, usize>,
    texts: BTreeMap<Cow<'static, str>, usize>,
    nodes: usize,
    /// The nodes on which preemption could help.
    resolvable: Vec<NodeIndex>,
}

impl Diagnosis {
    /// Counts a node that the filters of this module dropped.
    pub fn add(&mut self, node: NodeIndex, rejection: &Rejection) {
        for &reason in rejection.reasons.as_slice() {
            *self.counts.entry(reason).or_insert(0) += 1;
        }
        self.count_node(node, rejection.resolvable);
    }

    /// Counts a node that another filter dropped.
    pub fn add_text(&mut self, node: NodeIndex, text: impl Into<Cow<'static, str>>, resolvable: bool) {
        *self.texts.entry(text.into()).or_insert(0) += 1;
        self.count_node(node, resolvable);
    }

    fn count_node(&mut self, node: NodeIndex, resolvable: bool) {
        self.nodes += 1;
        if resolvable {
            self.resolvable.push(node);
        }
    }

    /// How many nodes were dropped.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The nodes that were dropped, but could be used if other pods were removed from them.
    pub fn resolvable(&self) -> &[NodeIndex] {
        &self.resolvable
    }

    /// How many nodes were dropped for that reason.
    pub fn count(&self, reason: Reason) -> usize {
        self.counts.get(&reason).copied().unwrap_or(0)
    }

    /// The texts with the number of nodes, as the scheduler's message lists them. `not_looked_at` is what is said about
    /// each of the nodes that were not among the candidates ([`super::Cycle::excluded`]).
    pub fn texts(
        &self,
        catalog: &Catalog<'_>,
        not_looked_at: Option<(String, usize)>,
    ) -> BTreeMap<String, usize> {
        let own = self.counts.iter().map(|(reason, &count)| (reason.text(catalog).into_owned(), count));
        let others = self.texts.iter().map(|(text, &count)| (text.clone().into_owned(), count));
        let mut texts = BTreeMap::new();
        for (text, count) in own.chain(others).chain(not_looked_at) {
            *texts.entry(text).or_insert(0) += count;
        }
        texts
    }
}
