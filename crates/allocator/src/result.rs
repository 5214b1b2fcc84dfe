//! Converts the result of a search to allocations: one for each claim, with the nodes that can use all of its
//! devices.

use crate::node::NodeSelection;
use crate::outcome::{AllocatedDevice, Allocation, AllocationNodes};
use crate::placing::TakenDevice;
use crate::search::PodSearch;
use crate::selector::SelectorEvaluator;
use tollgate_api::view::{List, NodeRequirement};

impl<'a, 'd, S: SelectorEvaluator + ?Sized> PodSearch<'a, 'd, S> {
    /// The allocations of all claims, after the search has found devices for them.
    pub(crate) fn allocations(&self) -> Vec<Allocation<'d>> {
        let mut claims: Vec<Vec<&TakenDevice<'a, 'd>>> = self.claims.iter().map(|_| Vec::new()).collect();
        for taken in self.taken_devices() {
            if let Some(claim) = claims.get_mut(taken.claim_request.claim) {
                claim.push(taken);
            }
        }
        let allocation = |taken: Vec<&TakenDevice<'a, 'd>>| Allocation {
            devices: taken.iter().filter_map(|taken| self.allocated_device(taken)).collect(),
            nodes: self.nodes_for_devices(&taken),
        };
        claims.into_iter().map(allocation).collect()
    }

    /// The entry of an allocation result for a device that the search has taken.
    fn allocated_device(&self, taken: &TakenDevice<'a, 'd>) -> Option<AllocatedDevice<'d>> {
        let (node_device, device) = self.device_at(taken.node_device)?;
        let pool = self.pools.pools.get(node_device.pool)?;
        let details = taken.claim_request.details;
        Some(AllocatedDevice {
            request: details.request,
            alternative: details.alternative,
            driver: pool.driver,
            pool: pool.name,
            device: device.name,
            admin_access: details.admin_access,
            is_share: taken.is_share,
            consumed_capacity: taken.consumed.clone(),
            tolerations: details.body.tolerations(),
            binding_conditions: device.body.binding_conditions(),
        })
    }

    /// The nodes that can use all of these devices: all nodes, the node of the search, or those that match every node
    /// selector of the devices.
    // upstream v1.37 createNodeSelector
    fn nodes_for_devices(&self, taken: &[&TakenDevice<'a, 'd>]) -> AllocationNodes<'d> {
        let (mut fields, mut labels) = (Vec::new(), Vec::new());
        for (_, device) in taken.iter().filter_map(|taken| self.device_at(taken.node_device)) {
            let slice = self.allocator.inventory.slices.get(device.slice);
            let nodes =
                slice.filter(|slice| !slice.has_nodes_per_device()).map_or(device.nodes, |slice| slice.nodes);
            if device.binds_to_node || matches!(nodes, NodeSelection::Name(_)) {
                return AllocationNodes::Node(self.pools.node.name);
            }
            if let NodeSelection::Selector(selector) = nodes {
                // The API server accepts one term only.
                for term in selector.terms().iter().take(1) {
                    add_missing_requirements(&mut fields, term.match_fields());
                    add_missing_requirements(&mut labels, term.match_expressions());
                }
            }
        }
        if fields.is_empty() && labels.is_empty() {
            return AllocationNodes::AllNodes;
        }
        AllocationNodes::Matching { fields, labels }
    }
}

/// Adds those requirements that are not listed yet, so that the node selector of an allocation has no duplicates.
fn add_missing_requirements<'d>(known: &mut Vec<NodeRequirement<'d>>, new: List<'d, NodeRequirement<'d>>) {
    let equal = |one: &NodeRequirement<'d>, other: NodeRequirement<'d>| {
        one.key() == other.key()
            && one.operator() == other.operator()
            && one.values().iter().eq(other.values().iter())
    };
    for requirement in new.iter() {
        if !known.iter().any(|known| equal(known, requirement)) {
            known.push(requirement);
        }
    }
}
