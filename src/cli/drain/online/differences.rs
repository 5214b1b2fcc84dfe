//! How a plan differs from the one before it, in words.
//!
//! Invariant: nothing is said about pods that moved in the waves that were carried out, or that the drain deleted, so a
//! plan that goes on as it was announced has no differences.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::drain::plan_text::{namespaced_pod_name, stay_reason_after_name};
use tollgate_drain::{DrainPlan, PlannedPod, PodDecision, Wave};
use tollgate_formats::count::count_with_noun;

/// Returns what changed between two plans of a drain, as sentences. Leading waves of `old` whose pods are all gone
/// were carried out before `new` was made, and are not differences. Neither are the pods that this run `deleted`, by uid.
pub(super) fn plan_differences(old: &DrainPlan, new: &DrainPlan, deleted: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    add_rule_and_device_count_differences(old, new, &mut found);
    let before: BTreeMap<&str, &PlannedPod> = old.pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
    let after: BTreeMap<&str, &PlannedPod> = new.pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
    let is_done = |wave: &&Wave| {
        let mut pods = wave.pods.iter().filter_map(|place| old.pods.get(*place));
        pods.all(|pod| !after.contains_key(pod.uid.as_str()))
    };
    let done = old.waves.iter().take_while(is_done).count();
    for pod in &old.pods {
        let was_done =
            matches!(pod.fate, PodDecision::Moves { wave, .. } if wave < done) || deleted.contains(&pod.uid);
        if !was_done && !after.contains_key(pod.uid.as_str()) {
            found.push(format!("pod {} no longer uses these devices", namespaced_pod_name(pod)));
        }
    }
    for pod in &new.pods {
        let name = namespaced_pod_name(pod);
        match before.get(pod.uid.as_str()) {
            None => found.push(format!("pod {name} uses these devices now, and {}", pod_outcome_text(pod))),
            Some(known) if !is_same_pod_outcome(&known.fate, &pod.fate) => {
                found.push(format!(
                    "pod {name} {}; before, it {}",
                    pod_outcome_text(pod),
                    pod_outcome_text(known)
                ));
            }
            Some(_) => {}
        }
    }
    let planned = old.waves.len().saturating_sub(done);
    if planned != new.waves.len() {
        found.push(format!("{} left, not {planned}", count_with_noun(new.waves.len(), "wave")));
    } else if let Some(pod) = first_pod_in_other_wave(new, &before, done) {
        found.push(format!("the order changed, from pod {} on", namespaced_pod_name(pod)));
    }
    found
}

fn add_rule_and_device_count_differences(old: &DrainPlan, new: &DrainPlan, found: &mut Vec<String>) {
    for rule in &new.rules {
        if !old.rules.iter().any(|known| known.name == rule.name) {
            found.push(format!("rule {} is added", rule.name));
        }
    }
    for rule in &old.rules {
        if !new.rules.iter().any(|known| known.name == rule.name) {
            found.push(format!("rule {} is no longer needed", rule.name));
        }
    }
    if old.devices.len() != new.devices.len() {
        let (now, before) = (count_with_noun(new.devices.len(), "device"), old.devices.len());
        found.push(format!("{now} selected, not {before}"));
    }
}

/// Returns the first pod that moves in another wave than in the old plan; `done` waves of that plan are over.
fn first_pod_in_other_wave<'p>(
    new: &'p DrainPlan,
    before: &BTreeMap<&str, &PlannedPod>,
    done: usize,
) -> Option<&'p PlannedPod> {
    new.pods.iter().find(|pod| {
        let known = before.get(pod.uid.as_str()).map(|known| &known.fate);
        match (known, &pod.fate) {
            (Some(PodDecision::Moves { wave: planned, .. }), PodDecision::Moves { wave, .. }) => {
                wave + done != *planned
            }
            _ => false,
        }
    })
}

/// True if the pod moves in both plans, or stays for the same reason. Nodes are not compared, because they change
/// all the time.
fn is_same_pod_outcome(old: &PodDecision, new: &PodDecision) -> bool {
    match (old, new) {
        (PodDecision::Moves { .. }, PodDecision::Moves { .. }) => true,
        (PodDecision::Stays { reason: old, .. }, PodDecision::Stays { reason: new, .. }) => old == new,
        _ => false,
    }
}

fn pod_outcome_text(pod: &PlannedPod) -> String {
    match &pod.fate {
        PodDecision::Moves { .. } if pod.is_evicted_for_good() => "is evicted for good".to_owned(),
        PodDecision::Moves { .. } => "moves".to_owned(),
        PodDecision::Stays { reason, .. } => format!("stays ({})", stay_reason_after_name(*reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tollgate_drain::{DrainPlan, PlannedPod, PodDecision, StayReason, Wave};
    use tollgate_forecast::WorkloadName;

    /// The differences if this run deleted nothing.
    fn plan_differences(old: &DrainPlan, new: &DrainPlan) -> Vec<String> {
        super::plan_differences(old, new, &BTreeSet::new())
    }

    /// A plan with pods by name and wave; those without a wave have no room. All but `alone` have a controller.
    fn plan(pods: &[(&str, Option<usize>)]) -> DrainPlan {
        let fate = |wave: Option<usize>| match wave {
            Some(wave) => PodDecision::Moves { wave, nodes: vec!["node-1".to_owned()] },
            None => {
                PodDecision::Stays { reason: StayReason::NoRoom, why: String::new(), remedy: String::new() }
            }
        };
        let pods: Vec<PlannedPod> = pods
            .iter()
            .map(|(name, wave)| PlannedPod {
                namespace: "ml".to_owned(),
                name: (*name).to_owned(),
                uid: (*name).to_owned(),
                node: String::new(),
                workload: (*name != "alone")
                    .then(|| WorkloadName { kind: "Job".to_owned(), name: (*name).to_owned() }),
                devices: Vec::new(),
                claims: Vec::new(),
                grace_seconds: 30,
                budgets: Vec::new(),
                fate: fate(*wave),
                is_forceable: false,
            })
            .collect();
        let is_in = |pod: &PlannedPod, number: usize| matches!(pod.fate, PodDecision::Moves { wave, .. } if wave == number);
        let count = pods.iter().filter_map(|pod| match pod.fate {
            PodDecision::Moves { wave, .. } => Some(wave + 1),
            PodDecision::Stays { .. } => None,
        });
        let waves = (0..count.max().unwrap_or(0)).map(|number| Wave {
            pods: (0..pods.len()).filter(|place| is_in(&pods[*place], number)).collect(),
            limited_by: None,
            restarts: Vec::new(),
        });
        DrainPlan {
            rules: Vec::new(),
            devices: Vec::new(),
            waves: waves.collect(),
            pods,
            budgets: Vec::new(),
            claims_without_pods: Vec::new(),
            dominated_by: None,
            devices_after: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_plan_that_goes_on_as_announced_has_no_differences() {
        let old = plan(&[("a", Some(0)), ("b", Some(1)), ("c", Some(2)), ("d", None)]);
        assert!(plan_differences(&old, &old).is_empty());
        assert!(plan_differences(&old, &plan(&[("b", Some(0)), ("c", Some(1)), ("d", None)])).is_empty());
        assert!(plan_differences(&old, &plan(&[("c", Some(0)), ("d", None)])).is_empty());
    }

    #[test]
    fn a_pod_that_this_run_deleted_is_no_difference() {
        let (old, new) = (plan(&[("a", None), ("b", None)]), plan(&[]));
        let deleted = BTreeSet::from(["a".to_owned()]);
        assert_eq!(super::plan_differences(&old, &new, &deleted), ["pod ml/b no longer uses these devices"]);
    }

    #[test]
    fn whatever_changes_for_a_pod_is_said() {
        let old = plan(&[("a", Some(0)), ("b", Some(1)), ("c", Some(2)), ("d", None), ("e", None)]);
        let new = plan(&[("b", None), ("d", Some(0)), ("e", None), ("f", Some(1)), ("alone", Some(1))]);
        let expected = [
            "pod ml/c no longer uses these devices",
            "pod ml/b stays (has no room); before, it moves",
            "pod ml/d moves; before, it stays (has no room)",
            "pod ml/f uses these devices now, and moves",
            "pod ml/alone uses these devices now, and is evicted for good",
        ];
        assert_eq!(plan_differences(&old, &new), expected);
        let later = plan(&[("b", Some(1)), ("c", Some(0)), ("d", None), ("e", None)]);
        assert_eq!(plan_differences(&old, &later), ["the order changed, from pod ml/b on"]);
        let together = plan(&[("b", Some(0)), ("c", Some(0)), ("d", None), ("e", None)]);
        assert_eq!(plan_differences(&old, &together), ["1 wave left, not 2"]);
    }
}
