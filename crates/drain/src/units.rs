//! Units: pods that can only move together, which are those of a JobSet or of one LeaderWorkerSet group. Pods of a
//! unit that use no selected device can be restarted with the others.

use crate::budgets::Budgets;
use crate::outcome::StayReason;
use crate::stay::StayExplanation;
use crate::users::PodWithClaims;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_forecast::{
    IndivisibleGroupName, ObjectKind, State, StoredObject, effects_of_lost_pods, group_that_moves_together,
};
use tollgate_formats::count::count_with_noun;

/// Pods that can only move together: those of a JobSet, or of one LeaderWorkerSet group.
#[derive(Clone, Debug)]
pub(crate) struct PodUnit<'d> {
    pub(crate) name: IndivisibleGroupName<'d>,
    /// Indices of its pods that use selected devices.
    pub(crate) pods: Vec<usize>,
    /// Other pods of the unit, which its controller deletes and recreates.
    pub(crate) restarted: Vec<StoredObject<'d>>,
    /// What happens to the pods if the unit fails, as the beginning of a sentence for the user; `None` if it does not
    /// fail.
    fails: Option<String>,
}

/// The units that the drained pods belong to, by kind, namespace and name.
pub(crate) fn units_of<'d>(state: &State<'d>, pods: &[PodWithClaims<'d>]) -> Vec<PodUnit<'d>> {
    let mut units: BTreeMap<IndivisibleGroupName<'d>, PodUnit<'d>> = BTreeMap::new();
    for (index, pod) in pods.iter().enumerate() {
        let Some(name) = group_that_moves_together(state, pod.pod) else { continue };
        let new = || PodUnit { name, pods: Vec::new(), restarted: Vec::new(), fails: None };
        units.entry(name).or_insert_with(new).pods.push(index);
    }
    if units.is_empty() {
        return Vec::new();
    }
    let lost: BTreeSet<(&str, &str)> = units
        .values()
        .flat_map(|unit| &unit.pods)
        .filter_map(|index| pods.get(*index))
        .map(|pod| (pod.pod.namespace(), pod.pod.name()))
        .collect();
    for group in effects_of_lost_pods(state, &|namespace, name| lost.contains(&(namespace, name))) {
        for name in &group.restarted {
            let Some(pod) = state.objects_of_kind(ObjectKind::Pod).get(group.namespace, name) else {
                continue;
            };
            let unit = group_that_moves_together(state, pod).and_then(|name| units.get_mut(&name));
            if let Some(unit) = unit.filter(|unit| unit.name.kind.name() == group.kind) {
                unit.restarted.push(pod);
            }
        }
        let of_group = |unit: &&mut PodUnit<'d>| {
            let IndivisibleGroupName { kind, namespace, name, .. } = unit.name;
            (kind.name(), namespace, name) == (group.kind, group.namespace, group.name)
        };
        if group.fails {
            units.values_mut().filter(of_group).for_each(|unit| unit.fails = Some(group.effect.clone()));
        }
    }
    units.into_values().collect()
}

impl<'d> PodUnit<'d> {
    /// Description of the unit, such as `JobSet ml/train` or `group 0 of LeaderWorkerSet ml/llm`.
    pub(crate) fn description(&self) -> String {
        let IndivisibleGroupName { kind, namespace, name, index } = self.name;
        let object = format!("{} {namespace}/{name}", kind.name());
        if index.is_empty() { object } else { format!("group {index} of {object}") }
    }

    /// The reason why the unit cannot move as a whole, if any.
    pub(crate) fn stay_reason(
        &self,
        pods: &[PodWithClaims<'d>],
        budgets: &Budgets<'d>,
    ) -> Option<StayExplanation> {
        if let Some(effect) = &self.fails {
            let why = format!("If the pods of {} are evicted, {effect}.", self.description());
            let remedy = format!(
                "Raise failurePolicy.maxRestarts of {}, or add a podFailurePolicy that ignores DisruptionTarget to its Jobs; \
                 or wait until it ends.",
                self.description()
            );
            return Some(StayExplanation::new(StayReason::JobLimit, why, remedy));
        }
        let mut needed: BTreeMap<usize, usize> = BTreeMap::new();
        let members = self.pods.iter().filter_map(|index| pods.get(*index)).map(|pod| pod.pod);
        for pod in members.chain(self.restarted.iter().copied()) {
            for budget in budgets.budgets_checked_at_eviction(pod) {
                *needed.entry(budget).or_default() += 1;
            }
        }
        needed.into_iter().find_map(|(budget, needed)| {
            let budget = budgets.get(budget)?;
            let allows = |allowed: i64| usize::try_from(allowed).unwrap_or_default() >= needed;
            if allows(budget.allowed) {
                return None;
            }
            let why = format!(
                "{} moves as one unit of {}, but PDB {} allows {}.",
                capitalized(&self.description()),
                count_with_noun(needed, "pod"),
                budget.namespaced_name(),
                count_with_noun(usize::try_from(budget.allowed).unwrap_or_default(), "disruption")
            );
            let edit = format!("`kubectl -n {} edit pdb {}`", budget.namespace, budget.name);
            let remedy = if allows(budget.allowed_at_best) {
                "Wait until more of its pods are healthy, and run the same command again.".to_owned()
            } else {
                format!("Let the PDB allow {}: {edit}.", count_with_noun(needed, "disruption"))
            };
            Some(StayExplanation::new(StayReason::GroupBudget, why, remedy))
        })
    }
}

/// The text with an uppercase first letter.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}
