//! The order in which a StatefulSet recreates its pods: each one after its predecessors are ready.
//!
//! Existing pods are not affected. So the order of the evictions matters too: a pod that is gone before its
//! predecessor is evicted is recreated immediately. The eviction controller processes claims in random order, and its
//! speed depends on the API server. Where evictions can be that far apart, the order is random.

use crate::course::{PodState, Simulation};
use crate::evictions::grace_period;
use crate::plan::{EvictionOfInitialPod, Plan};
use crate::random::Random;
use crate::tables::{PodIndex, ReplacedAndNewPredecessor};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};

/// With this number of simultaneous evictions, the eviction controller needs more than a second: it sends
/// four requests for each, by default 30 at once and then 20 per second. In that time, a kubelet can end a
/// pod, whatever its grace period.
const MIN_EVICTIONS_OVER_ONE_SECOND: usize = 13;

/// The ordinal of a pod, and its eviction.
type EvictedOrdinal<'p> = (u64, &'p EvictionOfInitialPod);

/// For each replacement, the round in which the pod that it replaces is evicted. Pods of a higher round are evicted
/// after the pods of lower rounds were recreated.
pub(crate) type EvictionRoundByReplacement = HashMap<PodIndex, usize, RandomState>;

impl Plan<'_> {
    /// Records the pods that must be ready before a StatefulSet creates each replacement: other replacements
    /// and pending pods with a lower ordinal.
    pub(crate) fn record_replacement_predecessors(&mut self, waiting: &[PodIndex]) {
        let mut sets: BTreeMap<(&str, &str), Vec<EvictedOrdinal<'_>>> = BTreeMap::new();
        for eviction in self.evictions.iter().filter(|eviction| eviction.is_ordered) {
            let tracked = self.tracked.get(eviction.tracked);
            let Some((namespace, name)) = tracked.and_then(|pod| Some((&pod.namespace, pod.name.as_ref()?)))
            else {
                continue;
            };
            if let Some((set, ordinal)) = set_and_ordinal(name) {
                sets.entry((namespace, set)).or_default().push((ordinal, eviction));
            }
        }
        let mut after: Vec<(PodIndex, Vec<ReplacedAndNewPredecessor>)> = Vec::new();
        let mut random_orders = Vec::new();
        for (&(namespace, set), pods) in &mut sets {
            pods.sort_unstable_by_key(|(ordinal, _)| *ordinal);
            for (place, (ordinal, eviction)) in pods.iter().enumerate() {
                let Some(replacement) = eviction.replacement else { continue };
                let before = pods.iter().take(place);
                let before = before.filter_map(|(_, other)| Some((Some(other.pod), other.replacement?)));
                let waiting = waiting.iter().filter(|pod| {
                    let entry = self.tables.pod(**pod);
                    let name = set_and_ordinal(&entry.name).filter(|_| entry.namespace == namespace);
                    name.is_some_and(|(name, number)| name == set && number < *ordinal)
                });
                after.push((replacement, before.chain(waiting.map(|pod| (None, *pod))).collect()));
            }
            random_orders.extend(self.replacements_with_random_eviction_order(pods));
        }
        for (pod, before) in after {
            self.tables.pod_mut(pod).after = before;
        }
        self.random_orders = random_orders;
    }

    /// Groups of replacements of one StatefulSet whose pods are evicted at the same time. Each simulated run draws
    /// an order of these evictions, since a pod can be evicted after another one was already recreated.
    fn replacements_with_random_eviction_order(&self, pods: &[EvictedOrdinal<'_>]) -> Vec<Vec<PodIndex>> {
        let mut together: BTreeMap<_, Vec<&EvictionOfInitialPod>> = BTreeMap::new();
        for (_, eviction) in pods.iter().filter(|(_, eviction)| eviction.is_by_taint) {
            together.entry((eviction.stage, eviction.at)).or_default().push(eviction);
        }
        together.retain(|time, evictions| {
            let is_same =
                |other: &&EvictionOfInitialPod| other.is_by_taint && (other.stage, other.at) == *time;
            let is_gone_at_once =
                |eviction: &&EvictionOfInitialPod| grace_period(self.tables.pod(eviction.pod).spec) == 0;
            evictions.len() > 1
                && (evictions.iter().any(is_gone_at_once)
                    || self.evictions.iter().filter(is_same).count() >= MIN_EVICTIONS_OVER_ONE_SECOND)
        });
        let replacements = |evictions: &Vec<&EvictionOfInitialPod>| {
            evictions.iter().filter_map(|eviction| eviction.replacement).collect()
        };
        together.values().map(replacements).collect()
    }

    /// Draws a random order of the evictions for one simulated run, for those that can happen in any order.
    pub(crate) fn random_eviction_rounds(&self, random: &mut Random) -> EvictionRoundByReplacement {
        let mut rounds = EvictionRoundByReplacement::default();
        for order in &self.random_orders {
            let mut drawn: Vec<(u64, PodIndex)> = order.iter().map(|pod| (random.next(), *pod)).collect();
            drawn.sort_unstable();
            let mut round = 0;
            for (_, pod) in drawn {
                round += random.number_below(2);
                rounds.insert(pod, round);
            }
        }
        rounds
    }
}

impl Simulation<'_, '_> {
    /// True if the StatefulSet does not create the pod yet, because a pod with a lower ordinal is not ready.
    // upstream v1.36, v1.37 StatefulSet controller processReplica
    pub(crate) fn waits_for_predecessors(&self, pod: PodIndex) -> bool {
        // Later, all evictions have happened.
        let round = self.rounds.get(&pod).filter(|_| self.state_of(pod) == PodState::Absent);
        let is_still_there = |new: &PodIndex| {
            round.is_some_and(|round| self.rounds.get(new).is_some_and(|other| other > round))
        };
        let is_ready = |(old, new): &ReplacedAndNewPredecessor| {
            old.is_some_and(|old| self.is_bound(old)) || self.is_bound(*new) || is_still_there(new)
        };
        !self.plan.tables.pod(pod).after.iter().all(is_ready)
    }
}

/// Splits a pod name into the name of its StatefulSet and the ordinal.
pub(crate) fn set_and_ordinal(name: &str) -> Option<(&str, u64)> {
    let (set, ordinal) = name.rsplit_once('-')?;
    Some((set, ordinal.parse().ok()?))
}
