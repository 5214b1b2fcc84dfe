//! Determines whether preempting pods of lower priority could make room.
//!
//! The eviction of other pods is not simulated. Where it could happen, the outcome is reported as unknown.

use super::cycle::SchedulingCycle;
use super::node::NodeIndex;
use super::reason::Diagnosis;

impl SchedulingCycle<'_, '_, '_> {
    /// The nodes that would pass the filters if all pods of lower priority were removed. Preemption does not
    /// free devices, so a node counts only if the pod's claims already fit.
    // upstream v1.37 DefaultPreemption.SelectVictimsOnNode
    pub fn preemption_candidates(&self, diagnosis: &Diagnosis) -> Vec<NodeIndex> {
        let catalog = self.occupancy.catalog();
        // An unknown priority can be higher than any.
        let priority = self.pod.priority.unwrap_or(i64::MAX);
        if !self.pod.preempts || diagnosis.resolvable_nodes().is_empty() {
            return Vec::new();
        }
        let is_lower = |pod| catalog.pod_needs(pod).priority.is_none_or(|other| other < priority);
        let victims: Vec<_> = self.occupancy.bound_pods().filter(|bound| is_lower(bound.pod)).collect();
        let mut nodes: Vec<NodeIndex> = victims.iter().map(|bound| bound.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let possible =
            diagnosis.resolvable_nodes().iter().copied().filter(|node| nodes.binary_search(node).is_ok());
        possible
            .filter(|&node| {
                let mut without = self.occupancy.clone();
                for victim in victims.iter().filter(|victim| victim.node == node) {
                    without.remove_pod(victim.node, victim.pod);
                }
                SchedulingCycle::start(&without, self.fits, self.delegated, self.id)
                    .is_ok_and(|cycle| cycle.check_node_without_devices(node).is_ok())
            })
            .collect()
    }
}
