//! Reasons why nodes are rejected, with the scheduler's messages, and how often each occurred.

use super::catalog::PodCatalog;
use super::node::NodeIndex;
use super::resources::ResourceId;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Why a filter of the scheduler rejects a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RejectionReason {
    /// A reason in the words of the scheduler.
    Text(&'static str),
    /// The node has too little of this resource.
    Insufficient(ResourceId),
}

impl RejectionReason {
    /// The scheduler's message for the reason, as in the condition of a pod.
    pub fn scheduler_message(self, catalog: &PodCatalog<'_>) -> Cow<'static, str> {
        match self {
            RejectionReason::Text(text) => Cow::Borrowed(text),
            RejectionReason::Insufficient(resource) => {
                Cow::Owned(format!("Insufficient {}", catalog.resource_name(resource)))
            }
        }
    }
}

/// A node that a filter of the scheduler rejects: the reasons, and whether preemption could help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// Only the resource filter has several.
    pub reasons: Vec<RejectionReason>,
    /// True for status Unschedulable: the node could be used after other pods are removed. False for
    /// UnschedulableAndUnresolvable.
    pub resolvable: bool,
}

impl Rejection {
    /// A rejection that preemption on the node could resolve.
    pub(super) fn resolvable(message: &'static str) -> Rejection {
        Rejection { reasons: vec![RejectionReason::Text(message)], resolvable: true }
    }

    /// A rejection that preemption cannot resolve.
    pub(super) fn unresolvable(message: &'static str) -> Rejection {
        Rejection { reasons: vec![RejectionReason::Text(message)], resolvable: false }
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
        for &reason in &rejection.reasons {
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
