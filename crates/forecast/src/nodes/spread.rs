//! Topology spread: constraints on how evenly the pods that a selector selects are spread over nodes, zones or other
//! topologies.
//!
//! Which nodes count and which classes of pods are selected does not change while events happen ([`SpreadPlan`]).
//! Only the selected pods are counted in a cycle.

#![allow(
    clippy::indexing_slicing,
    reason = "domains and nodes are places in the lists that were made for them"
)]

use super::catalog::{PodCatalog, PodClassId, TopologyKeyId};
use super::cycle::SchedulingCycle;
use super::fit::{NodeFitCache, NodeFitResults};
use super::node::{NodeIndex, TopologyDomains};
use super::occupancy::{BoundPod, Occupancy};
use super::pod::PodNeeds;
use super::reason::Rejection;
use super::selector::{Labels, Selector};
use tollgate_api::labels::LabelOperator;
use tollgate_document::doc::Value;

pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// A topology spread constraint of a pod.
#[derive(Clone, Debug)]
pub(super) struct SpreadConstraint<'d> {
    topology: TopologyKeyId,
    max_skew: i64,
    min_domains: usize,
    selector: Selector<'d>,
    /// `nodeAffinityPolicy: Honor`: nodes that the pod's node affinity does not match are ignored.
    honors_affinity: bool,
    /// `nodeTaintsPolicy: Honor`: nodes with taints that the pod does not tolerate are ignored.
    honors_taints: bool,
    /// True for `DoNotSchedule`, which filters nodes; false for `ScheduleAnyway`, which only changes scores.
    is_required: bool,
}

impl<'d> SpreadConstraint<'d> {
    pub(super) fn read(
        catalog: &mut PodCatalog<'d>,
        constraint: Value<'d>,
        labels: &Labels<'d>,
    ) -> SpreadConstraint<'d> {
        let selector = Selector::read(constraint.get("labelSelector"));
        SpreadConstraint {
            topology: catalog.intern_topology(constraint.get("topologyKey").str()),
            max_skew: constraint.get("maxSkew").int().unwrap_or(0),
            min_domains: constraint
                .get("minDomains")
                .int()
                .map_or(1, |min| usize::try_from(min).unwrap_or(0)),
            selector: selector.with_values_of_labels(
                constraint.get("matchLabelKeys"),
                LabelOperator::In,
                labels,
            ),
            honors_affinity: constraint.get("nodeAffinityPolicy").str() != "Ignore",
            honors_taints: constraint.get("nodeTaintsPolicy").str() == "Honor",
            is_required: constraint.get("whenUnsatisfiable").str() != "ScheduleAnyway",
        }
    }

    /// The scheduler's default constraints for pods without any: pods of one controller are spread over nodes
    /// and zones.
    // upstream v1.37 systemDefaultConstraints
    pub(super) fn default_constraints(
        catalog: &mut PodCatalog<'d>,
        selector: &Selector<'d>,
    ) -> Vec<SpreadConstraint<'d>> {
        let constraint = |(topology, max_skew)| SpreadConstraint {
            topology: catalog.intern_topology(topology),
            max_skew,
            min_domains: 1,
            selector: selector.clone(),
            honors_affinity: true,
            honors_taints: false,
            is_required: false,
        };
        [(HOSTNAME, 3), (ZONE, 5)].into_iter().map(constraint).collect()
    }
}

/// One topology spread constraint of pods that differ at most in their resource requests, prepared for the nodes of
/// a cluster.
#[derive(Debug)]
pub(super) struct SpreadConstraintPlan {
    topology: TopologyKeyId,
    is_hostname: bool,
    max_skew: i64,
    min_domains: usize,
    classes: Vec<PodClassId>,
    /// 1 if the constraint selects the pod itself, otherwise 0.
    own: i64,
    /// For each node, whether the pods on it are counted.
    counts: Vec<bool>,
    /// Indices of the counted topology domains, for a required constraint.
    groups: Vec<usize>,
}

/// The topology spread constraints of pods that differ at most in their resource requests, prepared for the nodes
/// of a cluster.
#[derive(Default, Debug)]
pub(super) struct SpreadPlan {
    required: Vec<SpreadConstraintPlan>,
    preferred: Vec<SpreadConstraintPlan>,
    /// True if a node that lacks a label of the preferred constraints gets no score. False for the default
    /// constraints, where such a node is scored by the labels that it has.
    needs_all_labels: bool,
}

impl SpreadPlan {
    pub(super) fn new(fits: &NodeFitCache<'_, '_>, fit: &NodeFitResults, pod: &PodNeeds<'_>) -> SpreadPlan {
        let needs_all_labels = !pod.has_default_spread;
        let plan = |is_required| {
            let constraints: Vec<&SpreadConstraint<'_>> =
                pod.spread.iter().filter(|constraint| constraint.is_required == is_required).collect();
            let topologies: Vec<TopologyKeyId> =
                constraints.iter().map(|constraint| constraint.topology).collect();
            let has_labels = |node: NodeIndex| {
                topologies.iter().all(|&topology| fits.domains(topology).domain_of_node(node).is_some())
            };
            let eligible: Vec<bool> =
                fits.nodes().iter().map(|(node, _)| !needs_all_labels || has_labels(node)).collect();
            constraints
                .into_iter()
                .map(|constraint| constraint.prepare_plan(fits, fit, pod, &eligible))
                .collect()
        };
        SpreadPlan { required: plan(true), preferred: plan(false), needs_all_labels }
    }
}

impl SpreadConstraint<'_> {
    /// Prepares the constraint for the nodes. Pods on nodes that are not `eligible` are not counted.
    fn prepare_plan(
        &self,
        fits: &NodeFitCache<'_, '_>,
        fit: &NodeFitResults,
        pod: &PodNeeds<'_>,
        eligible: &[bool],
    ) -> SpreadConstraintPlan {
        let catalog = fits.catalog();
        let own = catalog.class(pod.class);
        // A selector that selects everything counts no pod, though it selects the pod itself.
        // upstream v1.37 countPodsMatchSelector
        let classes = catalog.classes_in(own.namespace).filter(|(_, class)| {
            !self.selector.selects_everything() && !class.terminating && self.selector.matches(&class.labels)
        });
        let counts: Vec<bool> = fits
            .nodes()
            .iter()
            .map(|(node, _)| {
                eligible[node.get()]
                    && (!self.honors_affinity || fit.passed(node).affinity)
                    && (!self.honors_taints || fit.passed(node).taints)
            })
            .collect();
        let domains = fits.domains(self.topology);
        let counted = fits.nodes().iter().filter(|(node, _)| self.is_required && counts[node.get()]);
        let mut groups: Vec<usize> = counted.filter_map(|(node, _)| domains.domain_of_node(node)).collect();
        groups.sort_unstable();
        groups.dedup();
        SpreadConstraintPlan {
            topology: self.topology,
            is_hostname: catalog.topology_key(self.topology) == HOSTNAME,
            max_skew: self.max_skew,
            min_domains: self.min_domains,
            classes: classes.map(|(id, _)| id).collect(),
            own: self.selector.matches(&own.labels).into(),
            counts,
            groups,
        }
    }
}

impl SpreadConstraintPlan {
    fn selected_pods(&self, occupancy: &Occupancy<'_, '_>) -> impl Iterator<Item = BoundPod> {
        self.classes.iter().flat_map(|&class| occupancy.pods_of_class(class))
    }
}

/// For each required constraint, the number of selected pods in each topology domain.
#[derive(Default, Debug)]
pub(super) struct SpreadState {
    /// The counts by domain, and the smallest of them.
    counts: Vec<(Vec<i64>, i64)>,
}

impl SpreadState {
    // upstream v1.37 PodTopologySpread.calPreFilterState
    pub(super) fn new(
        plan: &SpreadPlan,
        fits: &NodeFitCache<'_, '_>,
        occupancy: &Occupancy<'_, '_>,
    ) -> SpreadState {
        let count = |constraint: &SpreadConstraintPlan| {
            let domains = fits.domains(constraint.topology);
            let mut pods = vec![0; domains.count];
            for bound in
                constraint.selected_pods(occupancy).filter(|bound| constraint.counts[bound.node.get()])
            {
                if let Some(domain) = domains.domain_of_node(bound.node) {
                    pods[domain] += 1;
                }
            }
            let least = constraint.groups.iter().map(|&group| pods[group]).min();
            let too_few = constraint.groups.len() < constraint.min_domains;
            let least = if too_few { 0 } else { least.unwrap_or(i64::from(i32::MAX)) };
            (pods, least)
        };
        SpreadState { counts: plan.required.iter().map(count).collect() }
    }
}

impl SchedulingCycle<'_, '_, '_> {
    /// Checks the required topology spread constraints for a node.
    // upstream v1.37 PodTopologySpread.Filter
    pub(super) fn check_spread(&self, node: NodeIndex) -> Result<(), Rejection> {
        for (constraint, (pods, least)) in self.plans.spread.required.iter().zip(&self.spread.counts) {
            let Some(domain) = self.fits.domains(constraint.topology).domain_of_node(node) else {
                return Err(Rejection::unresolvable(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                ));
            };
            if pods[domain] + constraint.own - least > constraint.max_skew {
                return Err(Rejection::resolvable("node(s) didn't match pod topology spread constraints"));
            }
        }
        Ok(())
    }

    /// The unweighted scores of the nodes by preferred topology spread constraints; `None` if there are none.
    // upstream v1.37 PodTopologySpread.PreScore, Score, NormalizeScore
    pub(super) fn spread_scores(&self, nodes: &[NodeIndex]) -> Option<Vec<i64>> {
        let plan = &self.plans.spread;
        if plan.preferred.is_empty() {
            return None;
        }
        let topologies: Vec<&TopologyDomains> =
            plan.preferred.iter().map(|constraint| self.fits.domains(constraint.topology)).collect();
        let is_ignored = |node: NodeIndex| {
            plan.needs_all_labels && topologies.iter().any(|domains| domains.domain_of_node(node).is_none())
        };
        let scored: Vec<NodeIndex> = nodes.iter().copied().filter(|&node| !is_ignored(node)).collect();
        let mut sums = vec![0.0; nodes.len()];
        for (constraint, domains) in plan.preferred.iter().zip(&topologies) {
            let (counts, size) = count_for_scores(constraint, domains, self.occupancy, &scored);
            #[expect(clippy::cast_precision_loss, reason = "upstream computes with floating-point numbers")]
            let weight = ((size + 2) as f64).ln();
            for (sum, &node) in sums.iter_mut().zip(nodes) {
                let place =
                    if constraint.is_hostname { Some(node.get()) } else { domains.domain_of_node(node) };
                if let (Some(place), Some(_)) = (place, domains.domain_of_node(node)) {
                    #[expect(
                        clippy::cast_precision_loss,
                        reason = "upstream computes with floating-point numbers"
                    )]
                    let score = counts[place] as f64 * weight + (constraint.max_skew - 1) as f64;
                    *sum += score;
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "as upstream converts it")]
        let raw: Vec<i64> = sums.into_iter().map(|sum: f64| sum.round() as i64).collect();
        let of_scored =
            || nodes.iter().zip(&raw).filter(|&(&node, _)| !is_ignored(node)).map(|(_, &raw)| raw);
        let (least, most) = (of_scored().min().unwrap_or(i64::MAX), of_scored().max().unwrap_or(0).max(0));
        let normalized = nodes.iter().zip(&raw).map(|(&node, &raw)| match most {
            _ if is_ignored(node) => 0,
            0 => super::score::MAX_SCORE,
            _ => super::score::MAX_SCORE * (most + least - raw) / most,
        });
        Some(normalized.collect())
    }
}

/// The number of selected pods on each node (for a constraint on nodes) or in each domain, and the number of
/// scored nodes or domains.
fn count_for_scores(
    constraint: &SpreadConstraintPlan,
    domains: &TopologyDomains,
    occupancy: &Occupancy<'_, '_>,
    scored: &[NodeIndex],
) -> (Vec<i64>, usize) {
    if constraint.is_hostname {
        let mut counts = vec![0; constraint.counts.len()];
        for bound in constraint.selected_pods(occupancy) {
            counts[bound.node.get()] += 1;
        }
        return (counts, scored.len());
    }
    // Nodes without the label are a group of their own here.
    let group = |node: NodeIndex| domains.domain_of_node(node).unwrap_or(domains.count);
    let mut counts = vec![0; domains.count + 1];
    let mut is_scored = vec![false; domains.count + 1];
    for &node in scored {
        is_scored[group(node)] = true;
    }
    for bound in constraint.selected_pods(occupancy).filter(|bound| constraint.counts[bound.node.get()]) {
        counts[group(bound.node)] += 1;
    }
    (counts, is_scored.into_iter().filter(|&is_scored| is_scored).count())
}
