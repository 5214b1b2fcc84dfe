//! Scores of the feasible nodes, which determine the node that the scheduler prefers.

#![allow(clippy::indexing_slicing, reason = "nodes are places in the lists that were made for them")]

use super::cycle::SchedulingCycle;
use super::node::NodeIndex;

/// Maximum score that a scoring plugin of the scheduler gives a node.
pub(super) const MAX_SCORE: i64 = 100;

/// Weights of the score plugins in the default profile.
// upstream v1.37 getDefaultPlugins
mod weight {
    pub(super) const TAINT_TOLERATION: i64 = 3;
    pub(super) const NODE_AFFINITY: i64 = 2;
    pub(super) const IMAGE_LOCALITY: i64 = 1;
    pub(super) const POD_TOPOLOGY_SPREAD: i64 = 2;
    pub(super) const INTER_POD_AFFINITY: i64 = 2;
    pub(super) const DYNAMIC_RESOURCES: i64 = 2;
}

impl SchedulingCycle<'_, '_, '_> {
    /// The total scores of feasible nodes. The scheduler picks one of the nodes with the best score at
    /// random. `devices` are the raw scores of the DynamicResources plugin, before normalization.
    pub fn total_scores(&self, nodes: &[NodeIndex], devices: Option<&[i64]>) -> Vec<i64> {
        let mut totals: Vec<i64> = nodes.iter().map(|&node| self.resource_score(node)).collect();
        let mut add = |weight: i64, scores: Vec<i64>| {
            for (total, score) in totals.iter_mut().zip(scores) {
                *total += weight * score;
            }
        };
        let of_nodes = |list: &[i64]| nodes.iter().map(|node| list[node.get()]).collect::<Vec<i64>>();
        let mut taints = self.fit.soft_taints.as_ref().map_or(vec![0; nodes.len()], |list| of_nodes(list));
        normalize(&mut taints);
        add(weight::TAINT_TOLERATION, taints.into_iter().map(|score| MAX_SCORE - score).collect());
        if let Some(preferred) = &self.fit.preferred {
            let mut scores = of_nodes(preferred);
            normalize(&mut scores);
            add(weight::NODE_AFFINITY, scores);
        }
        if let Some(images) = &self.fit.images {
            add(weight::IMAGE_LOCALITY, of_nodes(images));
        }
        if let Some(scores) = self.spread_scores(nodes) {
            add(weight::POD_TOPOLOGY_SPREAD, scores);
        }
        if let Some(scores) = self.preferred_pod_affinity_scores(nodes) {
            add(weight::INTER_POD_AFFINITY, scores);
        }
        if let Some(devices) = devices {
            let mut scores = devices.to_vec();
            normalize(&mut scores);
            add(weight::DYNAMIC_RESOURCES, scores);
        }
        totals
    }

    /// The sum of the scores for free resources and for balanced use of cpu and memory. Both have weight 1.
    fn resource_score(&self, node: NodeIndex) -> i64 {
        let offered = &self.occupancy.nodes().get(node).allocatable;
        let used = self.occupancy.usage(node);
        let offered = [offered.milli_cpu, offered.memory];
        let left = least_allocated_score(offered, used.counted, self.pod.resources.scored);
        let requested = &self.pod.resources.requested;
        let requested = [requested.milli_cpu, requested.memory];
        let balance = if requested == [0, 0] {
            0
        } else {
            balanced_allocation_score(offered, [used.milli_cpu, used.memory], requested)
        };
        left + balance
    }
}

/// Scales the scores so that the best one is the maximum. If all are zero, they stay.
// upstream v1.37 helper.DefaultNormalizeScore
fn normalize(scores: &mut [i64]) {
    let best = scores.iter().copied().max().unwrap_or(0);
    if best > 0 {
        for score in scores {
            *score = MAX_SCORE * *score / best;
        }
    }
}

/// `part` as a share of `whole`, on the scale of scores.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes with floating-point numbers, and cuts off the fraction"
)]
pub(super) fn scaled_to_max_score(part: i64, whole: i64) -> i64 {
    (MAX_SCORE as f64 * (part as f64 / whole as f64)) as i64
}

/// Score for the share of cpu and memory that remains free with the pod.
// upstream v1.37 leastResourceScorer
fn least_allocated_score(offered: [i64; 2], used: [i64; 2], requested: [i64; 2]) -> i64 {
    let mut sum = 0;
    let mut kinds = 0;
    for ((offered, used), requested) in offered.into_iter().zip(used).zip(requested) {
        if offered == 0 {
            continue;
        }
        let taken = used.wrapping_add(requested);
        if taken <= offered {
            sum += (offered.wrapping_sub(taken)).wrapping_mul(MAX_SCORE) / offered;
        }
        kinds += 1;
    }
    if kinds == 0 { 0 } else { sum / kinds }
}

/// Score for how much more evenly cpu and memory are used with the pod.
// upstream v1.37 balancedResourceScorer
fn balanced_allocation_score(offered: [i64; 2], used: [i64; 2], requested: [i64; 2]) -> i64 {
    let with_pod = [used[0].wrapping_add(requested[0]), used[1].wrapping_add(requested[1])];
    MAX_SCORE / 2
        + (MAX_SCORE / 2 + usage_evenness_score(offered, with_pod) - usage_evenness_score(offered, used)) / 2
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes with floating-point numbers, and cuts off the fraction"
)]
/// How evenly cpu and memory are used, as a score.
fn usage_evenness_score(offered: [i64; 2], used: [i64; 2]) -> i64 {
    let [cpu, memory] = [0, 1].map(|kind| {
        let (offered, used) = (offered[kind], used[kind]);
        (offered != 0).then(|| (used as f64 / offered as f64).min(1.0))
    });
    let deviation = match (cpu, memory) {
        (Some(cpu), Some(memory)) => ((cpu - memory) / 2.0).abs(),
        _ => 0.0,
    };
    ((1.0 - deviation) * MAX_SCORE as f64) as i64
}
