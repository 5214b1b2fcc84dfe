//! Assigns pods to waves: the first has one pod; the others have at most one pod of a workload and respect the PDBs.
//! A unit has its own wave, and so has a pod with an unknown outcome.
//!
//! Invariant: every pod is in exactly one wave, and the order depends only on the pods.

use crate::budgets::Budgets;
use crate::outcome::Budget;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_formats::count::count_with_noun;

/// A pod that moves, or the pods of a unit that move together.
#[derive(Clone, Debug)]
pub(crate) struct MovingPods {
    /// Indices of its pods among the pods of the drain. More than one only for a unit.
    pub(crate) pods: Vec<usize>,
    /// The workload or unit, such as `Deployment inference/chat`, or the pod if it has none. Movers are sorted by
    /// namespace and then by this.
    pub(crate) workload: String,
    /// Indices of the PDBs that select these pods.
    pub(crate) budgets: Vec<usize>,
    pub(crate) kind: WaveSharing,
    /// True if all of these pods are Ready.
    pub(crate) is_ready: bool,
}

/// Whether a mover can share a wave with other movers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum WaveSharing {
    /// One pod whose replacement fits.
    Single,
    /// One pod that is not replaced, or not immediately.
    Unreplaced,
    Unit,
    /// One pod that moves in a wave of its own, because the user allowed to move pods with an unknown
    /// outcome.
    Alone,
}

/// The movers that are evicted together in one wave.
#[derive(Clone, Debug)]
pub(crate) struct MoverWave {
    /// Indices of the movers that this wave evicts. A mover is one pod, or all pods of a unit.
    pub(crate) movers: Vec<usize>,
    pub(crate) limited_by: Option<String>,
}

/// Assigns the movers for which `is_moving` returns true to waves. With `is_first_wave`, the first wave has
/// one pod.
pub(crate) fn assign_waves(
    movers: &[MovingPods],
    is_moving: &dyn Fn(usize) -> bool,
    budgets: &Budgets<'_>,
    max_wave: usize,
    is_first_wave: bool,
) -> Vec<MoverWave> {
    let moving = || movers.iter().enumerate().filter(|(index, _)| is_moving(*index));
    let is_single = |mover: &MovingPods| matches!(mover.kind, WaveSharing::Single | WaveSharing::Unreplaced);
    let mut left: Vec<usize> =
        moving().filter(|(_, mover)| is_single(mover)).map(|(index, _)| index).collect();
    let mut waves = Vec::new();
    if let Some(canary) = pick_canary(movers, &left, budgets).filter(|_| is_first_wave) {
        left.retain(|index| *index != canary);
        let others = moving().count() > 1;
        let limited_by = others.then(|| "the first wave has one pod".to_owned());
        waves.push(MoverWave { movers: vec![canary], limited_by });
    }
    // While a PDB does not allow an eviction, the wave waits, and so do all later ones.
    let is_blocked = |index: &usize| movers.get(*index).is_some_and(|mover| is_blocked_now(mover, budgets));
    let (blocked, free): (Vec<usize>, Vec<usize>) = left.into_iter().partition(is_blocked);
    for mut left in [free, blocked] {
        while !left.is_empty() {
            let (wave, rest) = fill_next_wave(movers, &left, budgets, max_wave);
            left = rest;
            waves.push(wave);
        }
    }
    for kind in [WaveSharing::Unit, WaveSharing::Alone] {
        for (index, mover) in moving().filter(|(_, mover)| mover.kind == kind) {
            let why = match kind {
                WaveSharing::Unit => format!("{} moves as one unit", mover.workload),
                _ => "its outcome is not known, so it moves alone".to_owned(),
            };
            waves.push(MoverWave { movers: vec![index], limited_by: Some(why) });
        }
    }
    waves
}

/// The pod that moves first: it has a replacement, its PDBs allow it to be evicted, it is Ready, and it is not part of a
/// Job, which would lose work. Best, its PDBs allow more than one disruption.
fn pick_canary(movers: &[MovingPods], left: &[usize], budgets: &Budgets<'_>) -> Option<usize> {
    let rank = |index: &usize| {
        let mover = movers.get(*index)?;
        let allowed = mover.budgets.iter().filter_map(|budget| budgets.get(*budget));
        let allowed = allowed.map(|budget| budget.allowed.clamp(0, 2)).min().unwrap_or(2);
        let is_ready = mover.is_ready && !waits_for_earlier_pod(movers, *index);
        let loses_work = ["Job ", "CronJob "].iter().any(|kind| mover.workload.starts_with(kind));
        Some(((mover.kind, allowed == 0, !is_ready, loses_work, std::cmp::Reverse(allowed)), *index))
    };
    left.iter().filter_map(rank).min().map(|(_, index)| index)
}

/// True if the mover is a pod of a StatefulSet that an earlier pod precedes that is not Ready: its replacement would wait
/// for that pod.
fn waits_for_earlier_pod(movers: &[MovingPods], index: usize) -> bool {
    let Some(mover) = movers.get(index).filter(|mover| mover.workload.starts_with("StatefulSet ")) else {
        return false;
    };
    movers.iter().take(index).any(|earlier| earlier.workload == mover.workload && !earlier.is_ready)
}

/// True if a PDB of the mover does not allow any eviction now.
fn is_blocked_now(mover: &MovingPods, budgets: &Budgets<'_>) -> bool {
    mover.budgets.iter().filter_map(|budget| budgets.get(*budget)).any(|budget| budget.allowed <= 0)
}

/// Fills the next wave. Returns it and the indices of the remaining movers.
fn fill_next_wave(
    movers: &[MovingPods],
    left: &[usize],
    budgets: &Budgets<'_>,
    max_wave: usize,
) -> (MoverWave, Vec<usize>) {
    let mut wave = MoverWave { movers: Vec::new(), limited_by: None };
    let mut rest = Vec::new();
    let mut workloads: BTreeSet<&str> = BTreeSet::new();
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    for &index in left {
        let Some(mover) = movers.get(index) else { continue };
        let is_spent = |budget: &&usize| {
            let allowed = budgets.get(**budget).map_or(0, Budget::max_pods_in_wave);
            used.get(budget).copied().unwrap_or(0) >= allowed
        };
        let spent = mover.budgets.iter().find(is_spent).and_then(|budget| budgets.get(*budget));
        let limit = if wave.movers.is_empty() {
            None
        } else if workloads.contains(mover.workload.as_str()) {
            Some(format!("one pod of {} at a time", mover.workload))
        } else if let Some(budget) = spent {
            Some(format!("PDB {} allows {}", budget.namespaced_name(), budget.max_pods_in_wave()))
        } else if wave.movers.len() >= max_wave.max(1) {
            Some(format!("at most {} in a wave", count_with_noun(max_wave.max(1), "pod")))
        } else {
            None
        };
        if let Some(limit) = limit {
            wave.limited_by.get_or_insert(limit);
            rest.push(index);
            continue;
        }
        workloads.insert(&mover.workload);
        for budget in &mover.budgets {
            *used.entry(*budget).or_default() += 1;
        }
        wave.movers.push(index);
    }
    (wave, rest)
}

/// The workload or PDB whose pods are in the most waves, if in more than one.
pub(crate) fn workload_or_pdb_in_most_waves(
    movers: &[MovingPods],
    waves: &[MoverWave],
    budgets: &Budgets<'_>,
) -> Option<String> {
    let (mut workloads, mut by_budget): (BTreeMap<&str, usize>, BTreeMap<usize, usize>) = Default::default();
    for wave in waves {
        let moved = || wave.movers.iter().filter_map(|index| movers.get(*index));
        for workload in moved().map(|mover| mover.workload.as_str()).collect::<BTreeSet<_>>() {
            *workloads.entry(workload).or_default() += 1;
        }
        for budget in moved().flat_map(|mover| mover.budgets.iter().copied()).collect::<BTreeSet<_>>() {
            *by_budget.entry(budget).or_default() += 1;
        }
    }
    let workloads = workloads.into_iter().map(|(workload, count)| (count, 1, workload.to_owned()));
    let by_budget = by_budget.into_iter().filter_map(|(budget, count)| {
        let budget = budgets.get(budget)?;
        // A PDB that allows more than one pod is not what slows its only workload.
        let rank = if budget.max_pods_in_wave() == 1 { 2 } else { 0 };
        Some((count, rank, format!("PDB {}", budget.namespaced_name())))
    });
    let all = workloads.chain(by_budget).filter(|(count, _, _)| *count > 1);
    // The first of several by name.
    let slowest = all.max_by_key(|(count, rank, what)| (*count, *rank, std::cmp::Reverse(what.clone())));
    slowest.map(|(_, _, what)| what)
}

#[cfg(test)]
mod tests {
    use super::{MovingPods, WaveSharing, assign_waves};
    use crate::budgets::Budgets;
    use crate::outcome::Budget;

    /// One wave that waits for a PDB holds up all later ones.
    #[test]
    fn pods_whose_budget_is_spent_move_after_all_others() {
        let budget = Budget {
            namespace: "app".to_owned(),
            name: "spent".to_owned(),
            allowed: 0,
            allowed_at_best: 1,
            lets_unready_pods_go: false,
            grows_with_replicas: true,
            sync_failure: None,
        };
        let mover = |number: usize, workload: &str, budgets: &[usize]| MovingPods {
            pods: vec![number],
            workload: workload.to_owned(),
            budgets: budgets.to_vec(),
            kind: WaveSharing::Single,
            is_ready: true,
        };
        let movers = [
            mover(0, "Deployment app/a", &[0]),
            mover(1, "Deployment app/b", &[]),
            mover(2, "Deployment app/c", &[]),
            mover(3, "Deployment app/c", &[]),
            mover(4, "Deployment app/c", &[]),
        ];
        let budgets = Budgets::without_selectors(vec![budget]);
        let waves = assign_waves(&movers, &|_| true, &budgets, 10, true);
        let waves: Vec<Vec<usize>> = waves.into_iter().map(|wave| wave.movers).collect();
        assert_eq!(waves, [vec![1], vec![2], vec![3], vec![4], vec![0]]);
    }
}
