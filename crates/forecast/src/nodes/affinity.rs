//! Inter-pod affinity and anti-affinity: terms that attract pods to, or keep them away from, the nodes, zones or other
//! topologies in which certain pods run.
//!
//! The classes of pods that a term selects do not change during a run, so they are computed once for each kind of pod
//! ([`AffinityPlan`]). Only the pods of these classes are counted in a cycle ([`AffinityState`]).

#![allow(clippy::indexing_slicing, reason = "domains are places in the list that was made for them")]

use super::catalog::{PodCatalog, PodClass, PodClassId, TopologyKeyId};
use super::cycle::SchedulingCycle;
use super::fit::NodeFitCache;
use super::node::NodeIndex;
use super::occupancy::Occupancy;
use super::reason::Rejection;
use super::selector::{Labels, Selector};
use tollgate_api::labels::LabelOperator;
use tollgate_document::doc::Value;

/// Score weight of an existing pod whose required affinity matches the new pod.
// upstream v1.37 InterPodAffinityArgs.HardPodAffinityWeight
const HARD_AFFINITY_WEIGHT: i64 = 1;

/// A PodAffinityTerm: a topology, and the pods that it selects.
#[derive(Clone, Debug)]
pub(super) struct AffinityTerm<'d> {
    selector: Selector<'d>,
    namespaces: Vec<&'d str>,
    namespace_selector: Selector<'d>,
    topology: TopologyKeyId,
}

/// The affinity terms of a pod.
#[derive(Clone, Default, Debug)]
pub(super) struct PodAffinityTerms<'d> {
    affinity: Vec<AffinityTerm<'d>>,
    anti_affinity: Vec<AffinityTerm<'d>>,
    /// Preferred terms with their weights, which are negative for anti-affinity.
    preferred: Vec<(i64, AffinityTerm<'d>)>,
}

impl<'d> PodAffinityTerms<'d> {
    pub(super) fn read(
        catalog: &mut PodCatalog<'d>,
        namespace: &'d str,
        affinity: Value<'d>,
        labels: &Labels<'d>,
    ) -> PodAffinityTerms<'d> {
        let mut terms = PodAffinityTerms::default();
        for (kind, sign) in [("podAffinity", 1), ("podAntiAffinity", -1)] {
            let affinity = affinity.get(kind);
            let required = if sign > 0 { &mut terms.affinity } else { &mut terms.anti_affinity };
            for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
                required.push(AffinityTerm::read(catalog, namespace, term, labels));
            }
            for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
                let weight = sign * term.get("weight").int().unwrap_or(0);
                let term = AffinityTerm::read(catalog, namespace, term.get("podAffinityTerm"), labels);
                terms.preferred.push((weight, term));
            }
        }
        terms
    }

    pub(super) fn is_empty(&self) -> bool {
        self.affinity.is_empty() && self.anti_affinity.is_empty() && self.preferred.is_empty()
    }
}

impl<'d> AffinityTerm<'d> {
    fn read(
        catalog: &mut PodCatalog<'d>,
        namespace: &'d str,
        term: Value<'d>,
        labels: &Labels<'d>,
    ) -> AffinityTerm<'d> {
        let (namespaces, namespace_selector) = (term.get("namespaces"), term.get("namespaceSelector"));
        let of_own_namespace = namespaces.is_empty() && namespace_selector.is_null_or_absent();
        AffinityTerm {
            // The API server adds these requirements when the pod is created, so a stored pod has them twice.
            selector: Selector::read(term.get("labelSelector"))
                .with_values_of_labels(term.get("matchLabelKeys"), LabelOperator::In, labels)
                .with_values_of_labels(term.get("mismatchLabelKeys"), LabelOperator::NotIn, labels),
            namespaces: if of_own_namespace {
                vec![namespace]
            } else {
                namespaces.items().map(Value::str).collect()
            },
            namespace_selector: Selector::read(namespace_selector),
            topology: catalog.intern_topology(term.get("topologyKey").str()),
        }
    }

    /// True if a term of the pod that is being scheduled selects the existing pods of a class. Differs from
    /// [`AffinityTerm::matches_class`] in one release.
    // upstream v1.36 mergeAffinityTermNamespacesIfNotEmpty, which changes a copy
    fn matches_existing_pods(&self, catalog: &PodCatalog<'d>, class: &PodClass<'d>) -> bool {
        let applies_everywhere = catalog.semantics().namespace_selector_sees_no_labels
            && self.namespace_selector.matches(&Labels::default());
        self.matches_class(catalog, class) || (applies_everywhere && self.selector.matches(&class.labels))
    }

    /// True if the term selects the pods of a class.
    // upstream v1.37 AffinityTerm.Matches
    fn matches_class(&self, catalog: &PodCatalog<'d>, class: &PodClass<'d>) -> bool {
        let in_namespace = || {
            self.namespaces.contains(&class.namespace)
                || self.namespace_selector.matches(&catalog.namespace_labels(class.namespace))
        };
        self.selector.matches(&class.labels) && in_namespace()
    }
}

/// For the pods of one class: the classes of pods that matter to their affinity, by topology.
#[derive(Default, Debug)]
pub(super) struct AffinityPlan {
    /// The topologies of the required affinity terms.
    affinity: Vec<TopologyKeyId>,
    affinity_classes: Vec<PodClassId>,
    /// True if all required terms also select the pod itself.
    selects_itself: bool,
    /// Anti-affinity: classes of pods that the pod must not run next to, by topology.
    anti_affinity: Vec<(TopologyKeyId, Vec<PodClassId>)>,
    /// Classes of pods whose own anti-affinity excludes this pod, by topology.
    existing_anti_affinity: Vec<(TopologyKeyId, Vec<PodClassId>)>,
    preferred: Vec<(TopologyKeyId, PodClassId, i64)>,
}

impl AffinityPlan {
    pub(super) fn new(catalog: &PodCatalog<'_>, class: PodClassId) -> AffinityPlan {
        let own = catalog.class(class);
        let mut plan = AffinityPlan::default();
        let PodAffinityTerms { affinity, anti_affinity, preferred } = &own.terms;
        if !affinity.is_empty() {
            let selected =
                |class: &PodClass<'_>| affinity.iter().all(|term| term.matches_existing_pods(catalog, class));
            plan.affinity = affinity.iter().map(|term| term.topology).collect();
            plan.affinity_classes =
                catalog.classes().filter(|(_, class)| selected(class)).map(|(id, _)| id).collect();
            plan.selects_itself = selected(own);
        }
        for term in anti_affinity {
            let selected = catalog.classes().filter(|(_, class)| term.matches_existing_pods(catalog, class));
            plan.anti_affinity.push((term.topology, selected.map(|(id, _)| id).collect()));
        }
        for (weight, term) in preferred {
            let selected = catalog.classes().filter(|(_, class)| term.matches_existing_pods(catalog, class));
            plan.preferred.extend(selected.map(|(id, _)| (term.topology, id, *weight)));
        }
        for (id, class) in catalog.classes_with_affinity() {
            let PodAffinityTerms { affinity, anti_affinity, preferred } = &class.terms;
            let selecting = |term: &&AffinityTerm<'_>| term.matches_class(catalog, own);
            for term in anti_affinity.iter().filter(selecting) {
                plan.existing_anti_affinity.push((term.topology, vec![id]));
            }
            let hard = affinity.iter().map(|term| (HARD_AFFINITY_WEIGHT, term));
            let soft = preferred.iter().map(|(weight, term)| (*weight, term));
            let selecting = hard.chain(soft).filter(|(_, term)| selecting(term));
            plan.preferred.extend(selecting.map(|(weight, term)| (term.topology, id, weight)));
        }
        plan
    }
}

/// For each topology, whether each domain contains at least one pod of certain classes.
type OccupiedDomains = Vec<(TopologyKeyId, Vec<bool>)>;

/// The required terms, evaluated for the current placement of pods.
#[derive(Default, Debug)]
pub(super) struct AffinityState {
    affinity: OccupiedDomains,
    /// True if no pod that matches the required affinity is running and the new pod matches it itself, so
    /// that it can be the first.
    can_be_first: bool,
    anti_affinity: OccupiedDomains,
    existing_anti_affinity: OccupiedDomains,
}

impl AffinityState {
    pub(super) fn new(
        plan: &AffinityPlan,
        fits: &NodeFitCache<'_, '_>,
        occupancy: &Occupancy<'_, '_>,
    ) -> AffinityState {
        let occupied = |topology: TopologyKeyId, classes: &[PodClassId]| {
            let domains = fits.domains(topology);
            let mut occupied = vec![false; domains.count];
            for bound in classes.iter().flat_map(|&class| occupancy.pods_of_class(class)) {
                if let Some(domain) = domains.domain_of_node(bound.node) {
                    occupied[domain] = true;
                }
            }
            (topology, occupied)
        };
        let all = |list: &[(TopologyKeyId, Vec<PodClassId>)]| -> OccupiedDomains {
            let occupied = list.iter().map(|(topology, classes)| occupied(*topology, classes));
            occupied.filter(|(_, occupied)| occupied.contains(&true)).collect()
        };
        let affinity: OccupiedDomains =
            plan.affinity.iter().map(|&topology| occupied(topology, &plan.affinity_classes)).collect();
        let nobody = affinity.iter().all(|(_, occupied)| !occupied.contains(&true));
        AffinityState {
            can_be_first: nobody && plan.selects_itself,
            affinity,
            anti_affinity: all(&plan.anti_affinity),
            existing_anti_affinity: merged_by_topology(all(&plan.existing_anti_affinity)),
        }
    }
}

/// Merges the entries of each topology into one.
fn merged_by_topology(list: OccupiedDomains) -> OccupiedDomains {
    let mut merged: OccupiedDomains = Vec::new();
    for (topology, occupied) in list {
        match merged.iter_mut().find(|(known, _)| *known == topology) {
            None => merged.push((topology, occupied)),
            Some((_, all)) => all.iter_mut().zip(occupied).for_each(|(all, more)| *all |= more),
        }
    }
    merged
}

impl SchedulingCycle<'_, '_, '_> {
    /// Checks the required affinity terms for a node.
    // upstream v1.37 InterPodAffinity.Filter
    pub(super) fn check_required_pod_affinity(&self, node: NodeIndex) -> Result<(), Rejection> {
        let (state, fits) = (&self.affinity, self.fits);
        let is_occupied = |(topology, occupied): &(TopologyKeyId, Vec<bool>)| {
            fits.domains(*topology).domain_of_node(node).is_some_and(|domain| occupied[domain])
        };
        let has_labels = || {
            state.affinity.iter().all(|(topology, _)| fits.domains(*topology).domain_of_node(node).is_some())
        };
        let is_near = state.affinity.iter().all(is_occupied) || (state.can_be_first && has_labels());
        if !is_near {
            return Err(Rejection::unresolvable("node(s) didn't match pod affinity rules"));
        }
        if state.anti_affinity.iter().any(is_occupied) {
            return Err(Rejection::resolvable("node(s) didn't match pod anti-affinity rules"));
        }
        if state.existing_anti_affinity.iter().any(is_occupied) {
            return Err(Rejection::resolvable("node(s) didn't satisfy existing pods anti-affinity rules"));
        }
        Ok(())
    }

    /// The unweighted scores of the nodes by preferred affinity terms; `None` if no term applies.
    // upstream v1.37 InterPodAffinity.PreScore, Score, NormalizeScore
    pub(super) fn preferred_pod_affinity_scores(&self, nodes: &[NodeIndex]) -> Option<Vec<i64>> {
        let fits = self.fits;
        let mut sums: Vec<(TopologyKeyId, Vec<i64>)> = Vec::new();
        for &(topology, class, weight) in &self.plans.affinity.preferred {
            let domains = fits.domains(topology);
            for bound in self.occupancy.pods_of_class(class) {
                let Some(domain) = domains.domain_of_node(bound.node) else { continue };
                let place = sums.iter().position(|(known, _)| *known == topology).unwrap_or_else(|| {
                    sums.push((topology, vec![0; domains.count]));
                    sums.len() - 1
                });
                sums[place].1[domain] += weight;
            }
        }
        if sums.is_empty() {
            return None;
        }
        let score = |&node: &NodeIndex| -> i64 {
            let sums = sums
                .iter()
                .filter_map(|(topology, sums)| Some(sums[fits.domains(*topology).domain_of_node(node)?]));
            sums.sum()
        };
        let mut scores: Vec<i64> = nodes.iter().map(score).collect();
        let least = scores.iter().copied().min().unwrap_or(0);
        let range = scores.iter().copied().max().unwrap_or(0) - least;
        for score in &mut scores {
            *score = if range > 0 { super::score::scaled_to_max_score(*score - least, range) } else { 0 };
        }
        Some(scores)
    }
}
