//! Results that do not depend on other pods: the nodes on which a kind of pod can run, its preferred nodes, and the
//! pods that its affinity and spread constraints select. They are computed on first use and cached for all runs.

#![allow(
    clippy::indexing_slicing,
    reason = "kinds, topologies and nodes are places in the lists that were made for them"
)]

use super::affinity::AffinityPlan;
use super::catalog::{PodCatalog, PodId, TopologyKeyId};
use super::images;
use super::node::{NodeIndex, NodeInfo, Nodes, TopologyDomains};
use super::pod::PodNeeds;
use super::spread::SpreadPlan;
use std::sync::OnceLock;
use tollgate_allocator::tolerates;
use tollgate_api::view::Taint;

const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// The taints for which the API server adds NoExecute tolerations to every pod.
const TOLERATED_BY_DEFAULT: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// `tolerationSeconds` of these tolerations.
const SECONDS_TOLERATED_BY_DEFAULT: i64 = 300;

/// Cached results of the filters that do not depend on other pods, for each kind of pod.
#[derive(Debug)]
pub struct NodeFitCache<'c, 'd> {
    catalog: &'c PodCatalog<'d>,
    nodes: &'c Nodes<'d>,
    of_shape: Vec<OnceLock<NodeFitResults>>,
    of_kind: Vec<OnceLock<AffinityAndSpreadPlans>>,
    domains: Vec<OnceLock<TopologyDomains>>,
}

/// The affinity and topology spread constraints of pods that differ at most in their resource requests, prepared
/// for the nodes.
#[derive(Debug)]
pub(super) struct AffinityAndSpreadPlans {
    pub(super) affinity: AffinityPlan,
    pub(super) spread: SpreadPlan,
}

impl<'c, 'd> NodeFitCache<'c, 'd> {
    /// Creates an empty cache. The catalog must already contain all pods.
    pub fn new(catalog: &'c PodCatalog<'d>, nodes: &'c Nodes<'d>) -> NodeFitCache<'c, 'd> {
        fn empty_cells<T>(count: usize) -> Vec<OnceLock<T>> {
            (0..count).map(|_| OnceLock::new()).collect()
        }
        NodeFitCache {
            catalog,
            nodes,
            of_shape: empty_cells(catalog.shape_of.len()),
            of_kind: empty_cells(catalog.kind_of.len()),
            domains: empty_cells(catalog.topologies.len()),
        }
    }

    pub(super) fn catalog(&self) -> &'c PodCatalog<'d> {
        self.catalog
    }

    pub(super) fn nodes(&self) -> &'c Nodes<'d> {
        self.nodes
    }

    pub(super) fn node_fit(&self, pod: PodId) -> &NodeFitResults {
        let pod = self.catalog.pod_needs(pod);
        self.of_shape[pod.shape.0 as usize].get_or_init(|| NodeFitResults::new(self.nodes, pod))
    }

    /// The prepared affinity and topology spread constraints of a pod, computed on first use for each kind of pod.
    pub(super) fn affinity_and_spread_plans(&self, pod: PodId) -> &AffinityAndSpreadPlans {
        let needs = self.catalog.pod_needs(pod);
        self.of_kind[needs.kind.0 as usize].get_or_init(|| AffinityAndSpreadPlans {
            affinity: AffinityPlan::new(self.catalog, needs.class),
            spread: SpreadPlan::new(self, self.node_fit(pod), needs),
        })
    }

    pub(super) fn domains(&self, topology: TopologyKeyId) -> &TopologyDomains {
        let domains = &self.domains[topology.0 as usize];
        domains.get_or_init(|| self.nodes.group_by_label(self.catalog.topology_key(topology)))
    }
}

/// Whether a node passes each filter that does not depend on other pods, for a kind of pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a filter")]
pub(super) struct PassedNodeFilters {
    node_name: bool,
    schedulable: bool,
    pub(super) taints: bool,
    pub(super) affinity: bool,
}

impl PassedNodeFilters {
    fn for_pod(info: &NodeInfo<'_>, pod: &PodNeeds<'_>) -> PassedNodeFilters {
        let tolerates_cordon =
            || pod.tolerations.iter().any(|t| tolerates(t, UNSCHEDULABLE_TAINT, "", "NoSchedule"));
        PassedNodeFilters {
            node_name: pod.node_name.is_empty() || pod.node_name == info.node.name,
            schedulable: !info.unschedulable || tolerates_cordon(),
            taints: untolerated_taints(info, pod, &["NoSchedule", "NoExecute"]).next().is_none(),
            affinity: matches_node_selector_and_affinity(info, pod),
        }
    }
}

impl PodNeeds<'_> {
    /// Seconds until a NoExecute taint of its node evicts the pod; `None` if the pod tolerates the taint forever.
    // upstream v1.37 tainteviction.GetMinTolerationTime
    pub fn seconds_until_evicted_by(&self, taint: Taint<'_>) -> Option<i64> {
        let (key, value, effect) = (taint.key(), taint.value(), taint.effect());
        let mut matching = self.tolerations.iter().filter(|own| tolerates(*own, key, value, effect));
        match matching.next() {
            Some(toleration) => toleration.toleration_seconds().map(|seconds| seconds.max(0)),
            None if TOLERATED_BY_DEFAULT.contains(&key) => Some(SECONDS_TOLERATED_BY_DEFAULT),
            None => Some(0),
        }
    }
}

/// The node taints with one of these effects that the pod does not tolerate.
fn untolerated_taints<'a>(
    info: &'a NodeInfo<'_>,
    pod: &'a PodNeeds<'_>,
    effects: &'a [&str],
) -> impl Iterator<Item = &'a Taint<'a>> {
    let taints = info.taints.iter().filter(|taint| effects.contains(&taint.effect()));
    taints.filter(|taint| {
        let (key, value, effect) = (taint.key(), taint.value(), taint.effect());
        let by_default = effect == "NoExecute" && TOLERATED_BY_DEFAULT.contains(&key);
        !by_default && !pod.tolerations.iter().any(|toleration| tolerates(toleration, key, value, effect))
    })
}

// upstream v1.37 nodeaffinity.RequiredNodeAffinity.Match
fn matches_node_selector_and_affinity(info: &NodeInfo<'_>, pod: &PodNeeds<'_>) -> bool {
    let mut selected = pod.node_selector.members();
    selected.all(|(key, value)| info.label(key.text()) == Some(value.str()))
        && pod.node_affinity.is_none_or(|selector| info.node.matches(selector))
}

/// The nodes that a scheduling attempt checks.
#[derive(Debug)]
pub(super) enum CandidateNodes {
    All,
    /// Only these nodes, because the required node affinity of the pod names them.
    Named(Vec<NodeIndex>),
    /// No node can match; with the scheduler's message.
    Rejected(&'static str),
}

/// Filter and score results for all nodes that do not depend on other pods.
#[derive(Debug)]
pub(super) struct NodeFitResults {
    passed: Vec<PassedNodeFilters>,
    pub(super) candidates: CandidateNodes,
    /// Sum of the weights of matching preferred node affinity terms, for each node; `None` if there are no
    /// terms.
    pub(super) preferred: Option<Vec<i64>>,
    /// Number of untolerated PreferNoSchedule taints, for each node; `None` if there are none.
    pub(super) soft_taints: Option<Vec<i64>>,
    /// Image locality scores, for each node; `None` if no node has an image.
    pub(super) images: Option<Vec<i64>>,
}

impl NodeFitResults {
    fn new(nodes: &Nodes<'_>, pod: &PodNeeds<'_>) -> NodeFitResults {
        let preference = |info: &NodeInfo<'_>| -> i64 {
            let matching = pod.preferred_nodes.iter().filter(|(weight, term)| {
                let (labels, fields) = (term.match_expressions(), term.match_fields());
                let is_empty = labels.is_empty() && fields.is_empty();
                *weight != 0 && !is_empty && info.node.satisfies(labels.iter(), fields.iter())
            });
            matching.map(|&(weight, _)| weight).sum()
        };
        let soft: Vec<i64> = nodes
            .iter()
            .map(|(_, info)| {
                i64::try_from(untolerated_taints(info, pod, &["PreferNoSchedule"]).count()).unwrap_or(0)
            })
            .collect();
        NodeFitResults {
            passed: nodes.iter().map(|(_, info)| PassedNodeFilters::for_pod(info, pod)).collect(),
            candidates: candidates_named_by_node_affinity(nodes, pod),
            preferred: (!pod.preferred_nodes.is_empty())
                .then(|| nodes.iter().map(|(_, info)| preference(info)).collect()),
            soft_taints: soft.iter().any(|&count| count > 0).then_some(soft),
            images: images::image_scores(nodes, &pod.images),
        }
    }

    /// The message of the first filter, of those before host ports and resources, that rejects the node.
    pub(super) fn rejection(&self, node: NodeIndex) -> Option<&'static str> {
        let passed = self.passed(node);
        let messages = [
            (passed.node_name, "node(s) didn't match the requested node name"),
            (passed.schedulable, "node(s) were unschedulable"),
            (passed.taints, "node(s) had untolerated taint(s)"),
            (passed.affinity, "node(s) didn't match Pod's node affinity/selector"),
        ];
        messages.into_iter().find(|(passes, _)| !passes).map(|(_, message)| message)
    }

    pub(super) fn passed(&self, node: NodeIndex) -> PassedNodeFilters {
        self.passed[node.get()]
    }
}

/// The nodes named by the required node affinity, if every term names nodes.
// upstream v1.37 NodeAffinity.PreFilter
fn candidates_named_by_node_affinity(nodes: &Nodes<'_>, pod: &PodNeeds<'_>) -> CandidateNodes {
    let Some(selector) = pod.node_affinity else { return CandidateNodes::All };
    let mut named: Vec<&str> = Vec::new();
    for term in selector.terms().iter() {
        let mut of_term: Option<Vec<&str>> = None;
        for requirement in term.match_fields().iter() {
            if requirement.key() == "metadata.name" && requirement.operator() == "In" {
                let values = requirement.values();
                of_term = Some(match of_term {
                    None => values.iter().collect(),
                    Some(names) => names.into_iter().filter(|name| values.contains(name)).collect(),
                });
            }
        }
        let Some(of_term) = of_term else { return CandidateNodes::All };
        named.extend(of_term);
    }
    if selector.terms().is_empty() {
        return CandidateNodes::All;
    }
    if named.is_empty() {
        return CandidateNodes::Rejected("pod affinity terms conflict");
    }
    let mut found: Vec<NodeIndex> = named.into_iter().filter_map(|name| nodes.find(name)).collect();
    found.sort_unstable();
    found.dedup();
    CandidateNodes::Named(found)
}
