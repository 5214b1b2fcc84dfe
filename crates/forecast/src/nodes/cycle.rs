//! One attempt to schedule one pod: the filters in the scheduler's order, up to the one for devices.

use super::affinity::AffinityState;
use super::catalog::PodId;
use super::fit::{AffinityAndSpreadPlans, CandidateNodes, NodeFitCache, NodeFitResults};
use super::node::{NodeIndex, NodeInfo};
use super::occupancy::Occupancy;
use super::pod::PodNeeds;
use super::reason::{Rejection, RejectionReason};
use super::resources::{ResourceId, ResourcesDelegatedToDevices};
use super::spread::SpreadState;
use tollgate_allocator::Node;

/// Least number of feasible nodes to find; with fewer candidates than this, all are filtered.
const MIN_FEASIBLE_NODES_TO_FIND: usize = 100;

/// The number of feasible nodes after which the scheduler stops filtering.
// upstream v1.37 Scheduler.numFeasibleNodesToFind
pub fn feasible_nodes_to_find(candidates: usize) -> usize {
    if candidates < MIN_FEASIBLE_NODES_TO_FIND {
        return candidates;
    }
    let percentage = 50_usize.saturating_sub(candidates / 125).max(5);
    (candidates * percentage / 100).max(MIN_FEASIBLE_NODES_TO_FIND)
}

/// One attempt of the scheduler to find a node for one pod.
#[derive(Debug)]
pub struct SchedulingCycle<'a, 'c, 'd> {
    pub(super) occupancy: &'a Occupancy<'c, 'd>,
    pub(super) fits: &'a NodeFitCache<'c, 'd>,
    pub(super) delegated: &'a ResourcesDelegatedToDevices,
    pub(super) id: PodId,
    pub(super) pod: &'c PodNeeds<'d>,
    pub(super) fit: &'a NodeFitResults,
    pub(super) plans: &'a AffinityAndSpreadPlans,
    pub(super) affinity: AffinityState,
    pub(super) spread: SpreadState,
    /// The nodes on which a host port of the pod is in use, sorted.
    busy: Vec<NodeIndex>,
}

impl<'a, 'c, 'd> SchedulingCycle<'a, 'c, 'd> {
    /// Starts a scheduling attempt. `fits` and `occupancy` must have the same catalog and nodes.
    pub fn start(
        occupancy: &'a Occupancy<'c, 'd>,
        fits: &'a NodeFitCache<'c, 'd>,
        delegated: &'a ResourcesDelegatedToDevices,
        pod: PodId,
    ) -> Result<SchedulingCycle<'a, 'c, 'd>, &'static str> {
        let (fit, plans) = (fits.node_fit(pod), fits.affinity_and_spread_plans(pod));
        if let CandidateNodes::Rejected(text) = fit.candidates {
            return Err(text);
        }
        let needs = occupancy.catalog().pod_needs(pod);
        Ok(SchedulingCycle {
            occupancy,
            fits,
            delegated,
            id: pod,
            pod: needs,
            fit,
            plans,
            affinity: AffinityState::new(&plans.affinity, fits, occupancy),
            spread: SpreadState::new(&plans.spread, fits, occupancy),
            busy: occupancy.nodes_where_ports_are_in_use(&needs.host_ports),
        })
    }

    /// Name and labels of a node.
    pub fn node(&self, node: NodeIndex) -> Node<'d> {
        self.occupancy.nodes().get(node).node
    }

    /// Number of nodes that this attempt may check.
    pub fn candidate_count(&self) -> usize {
        match &self.fit.candidates {
            CandidateNodes::Named(nodes) => nodes.len(),
            _ => self.occupancy.nodes().len(),
        }
    }

    /// The nodes to check, beginning at the index `start`. The scheduler continues where it stopped: the next
    /// attempt starts later by the number of checked nodes, modulo the number of all nodes.
    pub fn candidates(&self, start: usize) -> impl Iterator<Item = NodeIndex> {
        let count = self.candidate_count();
        (0..count).map(move |place| {
            let place = (start + place) % count;
            let named = match &self.fit.candidates {
                CandidateNodes::Named(nodes) => nodes.get(place).copied(),
                _ => None,
            };
            named.unwrap_or(NodeIndex(u32::try_from(place).unwrap_or(u32::MAX)))
        })
    }

    /// The scheduler's message for the nodes that this attempt does not check, and their number.
    pub fn excluded_nodes_message(&self) -> Option<(String, usize)> {
        match &self.fit.candidates {
            CandidateNodes::Named(nodes) => {
                let count = self.occupancy.nodes().len() - nodes.len();
                (count > 0).then(|| ("node(s) didn't satisfy plugin(s) [NodeAffinity]".to_owned(), count))
            }
            _ => None,
        }
    }

    /// Applies to a node all filters that run before the device filter, such as those for resources and affinity. Does not
    /// check whether the node has the devices that the pod needs.
    pub fn check_node_without_devices(&self, node: NodeIndex) -> Result<(), Rejection> {
        if let Some(message) = self.fit.rejection(node) {
            return Err(Rejection::unresolvable(message));
        }
        if self.busy.binary_search(&node).is_ok() {
            return Err(Rejection::resolvable("node(s) didn't have free ports for the requested pod ports"));
        }
        self.check_resources(node)?;
        self.check_spread(node)?;
        self.check_required_pod_affinity(node)
    }

    /// The requested extended resources, with amounts, that devices must provide on this node: a DeviceClass
    /// provides them and the node does not.
    pub fn requests_delegated_to_devices(&self, node: NodeIndex) -> impl Iterator<Item = (&'d str, i64)> {
        let scalars = self.pod.resources.requested.scalars.iter();
        let delegated = scalars.filter(move |(resource, _)| self.is_delegated_to_devices(node, *resource));
        delegated.map(|&(resource, amount)| (self.occupancy.catalog().resource_name(resource), amount))
    }

    // upstream v1.37 shouldDelegateResourceToDRA
    fn is_delegated_to_devices(&self, node: NodeIndex, resource: ResourceId) -> bool {
        self.delegated.contains(resource) && self.occupancy.nodes().allocatable_amount(node, resource) <= 0
    }

    /// Checks that the node has the cpu, memory, storage and other resources that the pod requests.
    // upstream v1.37 fitsRequest
    fn check_resources(&self, node: NodeIndex) -> Result<(), Rejection> {
        let used = self.occupancy.usage(node);
        let mut lacking = Rejection { reasons: Vec::new(), resolvable: true };
        let mut add = |reason: RejectionReason, resolvable: bool| {
            lacking.reasons.push(reason);
            // Preemption does not help if a request exceeds the total capacity of the node.
            lacking.resolvable &= resolvable;
        };
        let NodeInfo { allocatable: offered, max_pods, .. } = self.occupancy.nodes().get(node);
        if used.pods + 1 > *max_pods {
            add(RejectionReason::Text("Too many pods"), true);
        }
        let requested = &self.pod.resources.requested;
        let amounts = [
            (requested.milli_cpu, offered.milli_cpu, used.milli_cpu, "Insufficient cpu"),
            (requested.memory, offered.memory, used.memory, "Insufficient memory"),
            (
                requested.ephemeral_storage,
                offered.ephemeral_storage,
                used.ephemeral_storage,
                "Insufficient ephemeral-storage",
            ),
        ];
        for (requested, offered, used, message) in amounts {
            if requested > 0 && requested > offered.wrapping_sub(used) {
                add(RejectionReason::Text(message), requested <= offered);
            }
        }
        for &(resource, requested) in &requested.scalars {
            let offered = self.occupancy.nodes().allocatable_amount(node, resource);
            let used = self.occupancy.used_amount(node, resource);
            if requested > offered.wrapping_sub(used) && !self.is_delegated_to_devices(node, resource) {
                add(RejectionReason::Insufficient(resource), requested <= offered);
            }
        }
        if lacking.reasons.is_empty() { Ok(()) } else { Err(lacking) }
    }
}
