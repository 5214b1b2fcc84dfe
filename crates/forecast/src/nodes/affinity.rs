//! Inter-pod affinity and anti-affinity: terms that attract pods to, or keep them away from, the nodes, zones or other
//! topologies in which certain pods run.
//!
//! Which classes of pods a term selects does not change while events happen, so it is found out once for each kind of pod
//! ([`AffinityPlan`]). Only the pods of these classes are counted in a cycle ([`AffinityState`]).

#![allow(clippy::indexing_slicing, reason = "domains are places in the list that was made for them")]

use super::catalog::{Catalog, ClassId, PodClass, TopologyId};
use super::fit::Fits;
use super::node::NodeIndex;
use super::occupancy::Occupancy;
use super::reason::{Reason, Rejection};
use super::selector::{Labels, Selector, requirement};
use tollgate_api::labels::LabelOperator;
use tollgate_document::doc::Value;

/// How much a pod that runs already counts for a new one that its required affinity selects.
// upstream v1.37 InterPodAffinityArgs.HardPodAffinityWeight
const HARD_AFFINITY_WEIGHT: i64 = 1;

/// A PodAffinityTerm.
#[derive(Clone, Debug)]
pub(super) struct Term<'d> {
    selector: Selector<'d>,
    namespaces: Vec<&'d str>,
    namespace_selector: Selector<'d>,
    topology: TopologyId,
}

/// The terms of a pod.
#[derive(Clone, Default, Debug)]
pub(super) struct PodTerms<'d> {
    near: Vec<Term<'d>>,
    apart: Vec<Term<'d>>,
    /// With their weights, which are negative for anti-affinity.
    preferred: Vec<(i64, Term<'d>)>,
}

impl<'d> PodTerms<'d> {
    pub(super) fn read(
        catalog: &mut Catalog<'d>,
        namespace: &'d str,
        affinity: Value<'d>,
        labels: &Labels<'d>,
    ) -> PodTerms<'d> {
        let mut terms = PodTerms::default();
        for (kind, sign) in [("podAffinity", 1), ("podAntiAffinity", -1)] {
            let affinity = affinity.get(kind);
            let required = if sign > 0 { &mut terms.near } else { &mut terms.apart };
            for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
                required.push(Term::read(catalog, namespace, term, labels));
            }
            for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
                let weight = sign * term.get("weight").int().unwrap_or(0);
                let term = Term::read(catalog, namespace, term.get("podAffinityTerm"), labels);
                terms.preferred.push((weight, term));
            }
        }
        terms
    }

    pub(super) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.apart.is_empty() && self.preferred.is_empty()
    }
}

impl<'d> Term<'d> {
    fn read(catalog: &mut Catalog<'d>, namespace: &'d str, term: Value<'d>, labels: &Labels<'d>) -> Term<'d> {
        let (namespaces, namespace_selector) = (term.get("namespaces"), term.get("namespaceSelector"));
        let of_own_namespace = namespaces.is_empty() && namespace_selector.is_null();
        // The API server adds these requirements when the pod is created, so a stored pod has them twice.
        let keys = |field| term.get(field).items().map(Value::str);
        let same = keys("matchLabelKeys")
            .filter_map(|key| Some(requirement(key, LabelOperator::In, labels.get(key)?)));
        let other = keys("mismatchLabelKeys")
            .filter_map(|key| Some(requirement(key, LabelOperator::NotIn, labels.get(key)?)));
        Term {
            selector: Selector::read(term.get("labelSelector")).and(same).and(other),
            namespaces: if of_own_namespace {
                vec![namespace]
            } else {
                namespaces.items().map(Value::str).collect()
            },
            namespace_selector: Selector::read(namespace_selector),
            topology: catalog.intern_topology(term.get("topologyKey").str()),
        }
    }

    /// As [`Term::matches`], for a term of the pod that is scheduled.
    // upstream v1.36 mergeAffinityTermNamespacesIfNotEmpty, which changes a copy
    fn matches_existing(&self, catalog: &Catalog<'d>, class: &PodClass<'d>) -> bool {
        let applies_everywhere = catalog.semantics().namespace_selector_sees_no_labels
            && self.namespace_selector.matches(&Labels::default());
        self.matches(catalog, class) || (applies_everywhere && self.selector.matches(&class.labels))
    }

    // upstream v1.37 AffinityTerm.Matches
    fn matches(&self, catalog: &Catalog<'d>, class: &PodClass<'d>) -> bool {
        let in_namespace = || {
            self.namespaces.contains(&class.namespace)
                || self.namespace_selector.matches(&catalog.namespace_labels(class.namespace))
        };
        self.selector.matches(&class.labels) && in_namespace()
    }
}

/// Which classes of pods matter to the pods of one class, and in which topology.
#[derive(Default, Debug)]
pub(super) struct AffinityPlan {
    /// The topologies of the required terms, and the classes that all of the terms select.
    near: Vec<TopologyId>,
    near_classes: Vec<ClassId>,
    /// All of the required terms select the pod itself.
    selects_itself: bool,
    /// Classes near which the pod must not run.
    apart: Vec<(TopologyId, Vec<ClassId>)>,
    /// Classes that do not want the pod near them.
    existing_apart: Vec<(TopologyId, Vec<ClassId>)>,
    preferred: Vec<(TopologyId, ClassId, i64)>,
}

impl AffinityPlan {
    pub(super) fn new(catalog: &Catalog<'_>, class: ClassId) -> AffinityPlan {
        let own = catalog.class(class);
        let mut plan = AffinityPlan::default();
        let PodTerms { near, apart, preferred } = &own.terms;
        if !near.is_empty() {
            let selected =
                |class: &PodClass<'_>| near.iter().all(|term| term.matches_existing(catalog, class));
            plan.near = near.iter().map(|term| term.topology).collect();
            plan.near_classes =
                catalog.classes().filter(|(_, class)| selected(class)).map(|(id, _)| id).collect();
            plan.selects_itself = selected(own);
        }
        for term in apart {
            let selected = catalog.classes().filter(|(_, class)| term.matches_existing(catalog, class));
            plan.apart.push((term.topology, selected.map(|(id, _)| id).collect()));
        }
        for (weight, term) in preferred {
            let selected = catalog.classes().filter(|(_, class)| term.matches_existing(catalog, class));
            plan.preferred.extend(selected.map(|(id, _)| (term.topology, id, *weight)));
        }
        for (id, class) in catalog.classes_with_terms() {
            let PodTerms { near, apart, preferred } = &class.terms;
            let selecting = |term: &&Term<'_>| term.matches(catalog, own);
            for term in apart.iter().filter(selecting) {
                plan.existing_apart.push((term.topology, vec![id]));
            }
            let hard = near.iter().map(|term| (HARD_AFFINITY_WEIGHT, term));
            let soft = preferred.iter().map(|(weight, term)| (*weight, term));
            let selecting = hard.chain(soft).filter(|(_, term)| selecting(term));
            plan.preferred.extend(selecting.map(|(weight, term)| (term.topology, id, weight)));
        }
        plan
    }
}

/// For each topology, the groups of nodes in which there is at least one pod of certain classes.
type Inhabited = Vec<(TopologyId, Vec<bool>)>;

/// What the required terms mean for the nodes while the pods are where they are.
#[derive(Default, Debug)]
pub(super) struct AffinityState {
    near: Inhabited,
    /// The pod can start a group: no pod that it wants to be near runs yet, and it would be one itself.
    can_be_first: bool,
    apart: Inhabited,
    existing_apart: Inhabited,
}

impl AffinityState {
    pub(super) fn new(
        plan: &AffinityPlan,
        fits: &Fits<'_, '_>,
        occupancy: &Occupancy<'_, '_>,
    ) -> AffinityState {
        let inhabited = |topology: TopologyId, classes: &[ClassId]| {
            let domains = fits.domains(topology);
            let mut inhabited = vec![false; domains.count];
            for bound in classes.iter().flat_map(|&class| occupancy.of_class(class)) {
                if let Some(domain) = domains.of(bound.node) {
                    inhabited[domain] = true;
                }
            }
            (topology, inhabited)
        };
        let all = |list: &[(TopologyId, Vec<ClassId>)]| -> Inhabited {
            let inhabited = list.iter().map(|(topology, classes)| inhabited(*topology, classes));
            inhabited.filter(|(_, inhabited)| inhabited.contains(&true)).collect()
        };
        let near: Inhabited =
            plan.near.iter().map(|&topology| inhabited(topology, &plan.near_classes)).collect();
        let nobody = near.iter().all(|(_, inhabited)| !inhabited.contains(&true));
        AffinityState {
            can_be_first: nobody && plan.selects_itself,
            near,
            apart: all(&plan.apart),
            existing_apart: merged(all(&plan.existing_apart)),
        }
    }

    /// Whether the required terms let the pod run on the node.
    // upstream v1.37 InterPodAffinity.Filter
    pub(super) fn check(&self, fits: &Fits<'_, '_>, node: NodeIndex) -> Result<(), Rejection> {
        let is_inhabited = |(topology, inhabited): &(TopologyId, Vec<bool>)| {
            fits.domains(*topology).of(node).is_some_and(|domain| inhabited[domain])
        };
        let has_labels = || self.near.iter().all(|(topology, _)| fits.domains(*topology).of(node).is_some());
        let is_near = self.near.iter().all(is_inhabited) || (self.can_be_first && has_labels());
        if !is_near {
            return Err(Rejection::unresolvable(Reason::PodAffinity));
        }
        if self.apart.iter().any(is_inhabited) {
            return Err(Rejection::resolvable(Reason::PodAntiAffinity));
        }
        if self.existing_apart.iter().any(is_inhabited) {
            return Err(Rejection::resolvable(Reason::ExistingPodAntiAffinity));
        }
        Ok(())
    }
}

/// One entry for each topology.
fn merged(list: Inhabited) -> Inhabited {
    let mut merged: Inhabited = Vec::new();
    for (topology, inhabited) in list {
        match merged.iter_mut().find(|(known, _)| *known == topology) {
            None => merged.push((topology, inhabited)),
            Some((_, all)) => all.iter_mut().zip(inhabited).for_each(|(all, more)| *all |= more),
        }
    }
    merged
}

/// The scores of the nodes by preferred terms, before they are weighted; `None` if no term applies.
// upstream v1.37 InterPodAffinity.PreScore, Score, NormalizeScore
pub(super) fn scores(
    plan: &AffinityPlan,
    fits: &Fits<'_, '_>,
    occupancy: &Occupancy<'_, '_>,
    nodes: &[NodeIndex],
) -> Option<Vec<i64>> {
    let mut sums: Vec<(TopologyId, Vec<i64>)> = Vec::new();
    for &(topology, class, weight) in &plan.preferred {
        let domains = fits.domains(topology);
        for bound in occupancy.of_class(class) {
            let Some(domain) = domains.of(bound.node) else { continue };
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
        let sums = sums.iter().filter_map(|(topology, sums)| Some(sums[fits.domains(*topology).of(node)?]));
        sums.sum()
    };
    let mut scores: Vec<i64> = nodes.iter().map(score).collect();
    let least = scores.iter().copied().min().unwrap_or(0);
    let range = scores.iter().copied().max().unwrap_or(0) - least;
    for score in &mut scores {
        *score = if range > 0 { super::score::share_of_maximum(*score - least, range) } else { 0 };
    }
    Some(scores)
}
