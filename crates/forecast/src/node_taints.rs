//! Evictions by taints of nodes: a NoExecute taint that a step adds to a node evicts the pods there that do not tolerate
//! it.
//!
//! Taints that the nodes of the initial state have are not considered. The pods that they evict are gone already.

use crate::plan::{Plan, Stage};
use crate::tables::PodIndex;
use tollgate_formats::gotime::Timestamp;

impl Plan<'_> {
    /// The time at which the taints that steps have added to a node evict a pod that runs there in this stage.
    // upstream v1.37 tainteviction.Controller.processPodOnNode
    pub(crate) fn node_taint_eviction_time(
        &self,
        pod: PodIndex,
        node: &str,
        stage: usize,
    ) -> Option<Timestamp> {
        let stages = self.stages.get(..=stage)?;
        let (first, last) = (stages.first()?, stages.last()?);
        if first.era.nodes == last.era.nodes {
            return None;
        }
        let needs = self.needs_of(pod);
        let taints_in = |stage: &Stage<'_>| {
            let nodes = self.eras.nodes_in(stage.era);
            Some(nodes.get(nodes.find(node)?).taints.as_slice())
        };
        let new = taints_in(last)?.iter().filter(|taint| taint.effect() == "NoExecute");
        let times = new.filter_map(|taint| {
            let is_same = |stage: &Stage<'_>| {
                let mut taints = taints_in(stage).unwrap_or_default().iter();
                taints.any(|other| {
                    (other.key(), other.value(), other.effect())
                        == (taint.key(), taint.value(), taint.effect())
                })
            };
            let before = stages.iter().rposition(|stage| !is_same(stage))?;
            let added = stages.get(before + 1)?.at;
            let seconds = added.seconds.saturating_add(needs.seconds_until_evicted_by(*taint)?);
            Some(Timestamp { seconds, ..added })
        });
        times.min()
    }
}
