//! Computes the plan of a drain: rules, pods, waves.

use crate::budgets::Budgets;
use crate::fit::{FitResult, FitSimulation};
use crate::movable::{MoveChecks, has_controller, is_daemon_pod, node_of};
use crate::notes::{autoscaler_and_pdb_notes, unready_nodes_note};
use crate::outcome::{DrainPlan, PlannedPod, PlannedRule, PodDecision, StayReason, Wave};
use crate::request::DrainRequest;
use crate::rule::noschedule_rule_json;
use crate::selection::SelectedDevices;
use crate::stay::{StayExplanation, namespaced_name};
use crate::targets::{ResolvedTargets, resolve_targets_and_add_closed};
use crate::units::{PodUnit, units_of};
use crate::users::{ClaimWithPods, PodWithClaims, claims_holding_selected_devices, pods_using_claims};
use crate::waves::{MoverWave, MovingPods, WaveSharing, workload_or_pdb_in_most_waves};
use std::collections::{BTreeMap, BTreeSet};
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_api::view::{Pod, View as _};
use tollgate_document::doc::{self, Doc};
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_forecast::{
    Forecast, ObjectKind, Plan, PodGivenUp, Settings, SimulatedRelease, State, StoredObject, WorkloadName,
    controllers_of, grace_period, job_failure_reason, reason_job_gives_up_pod, workload_of,
};
use tollgate_formats::count::count_with_noun;

/// Everything that a drain plan is computed from.
#[derive(Clone, Copy)]
pub struct PlanInput<'a, 'd> {
    pub state: &'a State<'d>,
    pub request: &'a DrainRequest,
    pub release: SimulatedRelease,
    /// Settings of the forecasts: start time, seed, and whether the state is complete.
    pub settings: Settings,
    /// Runs a forecast. The caller chooses the number of threads and simulated runs.
    pub play: &'a dyn Fn(&Plan<'_>) -> Forecast,
    /// Objects that are missing from the state. If there are any, the outcome of every pod is unknown.
    pub missing: &'a [String],
    /// The selectors of rules that this drain has already created. Their devices belong to the drain, even if
    /// no slice publishes them any more.
    pub closed: &'a [DeviceNameSelector],
    /// True if no pod has moved yet, so that the first wave has one pod.
    pub is_first_wave: bool,
}

/// Computes the plan. Fails if a target selects no device, or if there are too many rules.
pub fn plan(input: &PlanInput<'_, '_>) -> Result<DrainPlan, String> {
    let PlanInput { state, request, .. } = *input;
    let ResolvedTargets { rules, devices, mut notes } =
        resolve_targets_and_add_closed(state, request, input.closed)?;
    notes.extend(autoscaler_and_pdb_notes(state));
    let names: Vec<_> = rules.iter().map(|rule| rule.selects.clone()).collect();
    let selection = SelectedDevices::from_rules(&names);
    let drained = PodsUsingSelectedDevices::new(state, claims_holding_selected_devices(state, &selection));
    let unused = drained.claims.iter().filter(|claim| claim.users.iter().all(|user| user.pod.is_none()));
    let claims_without_pods = unused.map(ClaimWithPods::to_claim_with_devices).collect();
    let checks = MoveChecks { state, request, held: &drained.claims, budgets: &drained.budgets };
    let pods = drained.pods.iter().zip(&drained.budgets_by_pod);
    let mut stays: Vec<Option<StayExplanation>> =
        pods.map(|(pod, budgets)| checks.stay_reason(pod, budgets)).collect();
    drained.mark_blocked_units(&mut stays);
    drained.mark_pods_whose_eviction_fails_job(&mut stays);

    let mut movers = drained.group_into_movers(&stays);
    let texts = rules.iter().map(|rule| rule.noschedule_json(&request.key, input.release.profile));
    let texts: Vec<String> = texts.collect();
    let docs: Vec<Doc<'_>> = texts.iter().filter_map(|text| doc::parse(text).ok()).collect();
    let fitting = FitSimulation { input, rules: &docs, selection: &selection, drained: &drained };
    let FitResult { stays: misfits, waves, nodes, devices: devices_after } =
        fitting.drop_movers_until_all_fit(&mut movers);
    for (mover, misfit) in movers.iter().zip(misfits) {
        let Some((stay, culprit)) = misfit else { continue };
        drained.mark_rest_of_group_staying(&mover.pods, &stay, Some(culprit), &mut stays);
    }

    let dominated_by = workload_or_pdb_in_most_waves(&movers, &waves, &drained.budgets);
    let (pods, waves) = drained.pods_and_waves(&movers, &waves, &stays, &nodes);
    let moving = pods.iter().filter(|pod| matches!(pod.fate, PodDecision::Moves { .. }));
    notes.extend(unready_nodes_note(state, moving.map(|pod| pod.node.as_str())));
    let used: BTreeSet<usize> = drained.budgets_by_pod.iter().flatten().copied().collect();
    let budgets = used.into_iter().filter_map(|index| drained.budgets.get(index).cloned()).collect();
    Ok(DrainPlan {
        rules,
        devices,
        pods,
        waves,
        budgets,
        claims_without_pods,
        dominated_by,
        devices_after,
        notes,
    })
}

/// The DeviceTaintRules that the targets need in this state.
pub fn rules_for_targets_and_closed_devices(
    state: &State<'_>,
    request: &DrainRequest,
    closed: &[DeviceNameSelector],
) -> Result<Vec<PlannedRule>, String> {
    resolve_targets_and_add_closed(state, request, closed).map(|resolved| resolved.rules)
}

/// The pods that use selected devices, and what decides whether and when they move.
pub(crate) struct PodsUsingSelectedDevices<'a, 'd> {
    state: &'a State<'d>,
    /// The claims that hold selected devices.
    claims: Vec<ClaimWithPods<'d>>,
    pub(crate) pods: Vec<PodWithClaims<'d>>,
    pub(crate) units: Vec<PodUnit<'d>>,
    pub(crate) budgets: Budgets<'d>,
    /// Indices of the PDBs of each pod.
    budgets_by_pod: Vec<Vec<usize>>,
}

impl<'a, 'd> PodsUsingSelectedDevices<'a, 'd> {
    fn new(state: &'a State<'d>, claims: Vec<ClaimWithPods<'d>>) -> PodsUsingSelectedDevices<'a, 'd> {
        let pods = pods_using_claims(&claims);
        let budgets = Budgets::from_state(state);
        let budgets_by_pod = pods.iter().map(|pod| budgets.budgets_checked_at_eviction(pod.pod)).collect();
        PodsUsingSelectedDevices {
            state,
            claims,
            units: units_of(state, &pods),
            pods,
            budgets,
            budgets_by_pod,
        }
    }

    fn is_of_unit(&self, pod: usize) -> bool {
        self.units.iter().any(|unit| unit.pods.contains(&pod))
    }

    /// Marks all pods of a unit as staying if one of them stays, or if the unit cannot move as a whole.
    fn mark_blocked_units(&self, stays: &mut [Option<StayExplanation>]) {
        for unit in &self.units {
            let found = unit.pods.iter().find_map(|index| Some((Some(*index), stays.get(*index)?.clone()?)));
            let stay = found.or_else(|| Some((None, unit.stay_reason(&self.pods, &self.budgets)?)));
            let Some((culprit, stay)) = stay else { continue };
            self.mark_rest_of_group_staying(&unit.pods, &stay, culprit, stays);
        }
    }

    /// Marks as staying the pods that their Job would not create again, and the pods of each Job that would fail if its
    /// moving pods were evicted. Jobs of a JobSet are checked with the JobSet.
    fn mark_pods_whose_eviction_fails_job(&self, stays: &mut [Option<StayExplanation>]) {
        let mut jobs: BTreeMap<(&str, &str), (StoredObject<'d>, Vec<usize>)> = BTreeMap::new();
        for (index, pod) in self.pods.iter().enumerate() {
            let Some(stay @ None) = stays.get_mut(index) else { continue };
            if self.is_of_unit(index) {
                continue;
            }
            let Some((ObjectKind::Job, job)) = controllers_of(self.state, pod.pod).next() else { continue };
            *stay = given_up_stay(job, pod.pod);
            if stay.is_none() {
                jobs.entry((job.namespace(), job.name())).or_insert((job, Vec::new())).1.push(index);
            }
        }
        for (job, indices) in jobs.into_values() {
            let pods: Vec<StoredObject<'d>> =
                indices.iter().filter_map(|index| Some(self.pods.get(*index)?.pod)).collect();
            let Some(reason) = job_failure_reason(job, &pods) else { continue };
            let lost = count_with_noun(indices.len(), "pod");
            let why = format!("Job {} fails ({reason}) if it loses {lost}.", namespaced_name(job));
            let failed = job.value.get("status").get("failed").int().unwrap_or(0);
            let needed = failed.saturating_add(i64::try_from(indices.len()).unwrap_or(i64::MAX));
            let remedy = if reason == "BackoffLimitExceeded" {
                format!(
                    r#"Wait until it ends, or raise its limit: `kubectl -n {} patch job/{} --type=merge -p '{{"spec":{{"backoffLimit":{needed}}}}}'`."#,
                    job.namespace(),
                    job.name()
                )
            } else {
                "Wait until it ends.".to_owned()
            };
            for index in indices {
                if let Some(stay) = stays.get_mut(index) {
                    *stay = Some(StayExplanation::new(StayReason::JobLimit, why.clone(), remedy.clone()));
                }
            }
        }
    }

    /// Marks those pods of a group as staying that are not yet marked, because of the pod `culprit` if there is one.
    fn mark_rest_of_group_staying(
        &self,
        group: &[usize],
        stay: &StayExplanation,
        culprit: Option<usize>,
        stays: &mut [Option<StayExplanation>],
    ) {
        for index in group {
            let Some(own @ None) = stays.get_mut(*index) else { continue };
            *own = Some(
                match culprit.filter(|culprit| culprit != index).and_then(|culprit| self.pods.get(culprit)) {
                    Some(other) => stay_because_of(stay, other.pod),
                    None => stay.clone(),
                },
            );
        }
    }

    /// Groups the pods that can move into movers, sorted by namespace, workload and name.
    fn group_into_movers(&self, stays: &[Option<StayExplanation>]) -> Vec<MovingPods> {
        let is_moving = |index: &usize| stays.get(*index).is_some_and(Option::is_none);
        let budgets_of = |indices: &[usize]| {
            let all = indices.iter().filter_map(|index| self.budgets_by_pod.get(*index));
            let mut all: Vec<usize> = all.flatten().copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let mut movers: Vec<(String, MovingPods)> = Vec::new();
        for unit in self.units.iter().filter(|unit| unit.pods.iter().all(&is_moving)) {
            let mover = MovingPods {
                pods: unit.pods.clone(),
                workload: unit.description(),
                budgets: budgets_of(&unit.pods),
                kind: WaveSharing::Unit,
                is_ready: unit
                    .pods
                    .iter()
                    .filter_map(|index| self.pods.get(*index))
                    .all(|pod| Pod::of(pod.pod.value).is_ready_or_unknown()),
            };
            movers.push((unit.name.namespace.to_owned(), mover));
        }
        for (index, pod) in self.pods.iter().enumerate() {
            if !is_moving(&index) || self.is_of_unit(index) {
                continue;
            }
            let object = pod.pod;
            let is_replaced = has_controller(object) && !is_daemon_pod(object);
            let workload = match workload_of(self.state, object) {
                Some(workload) => format!("{} {}/{}", workload.kind, workload.namespace, workload.name),
                None => format!("pod {}", namespaced_name(object)),
            };
            let kind = if is_replaced { WaveSharing::Single } else { WaveSharing::Unreplaced };
            let budgets = budgets_of(&[index]);
            let mover = MovingPods {
                pods: vec![index],
                workload,
                budgets,
                kind,
                is_ready: Pod::of(object.value).is_ready_or_unknown(),
            };
            movers.push((object.namespace().to_owned(), mover));
        }
        // Pods are sorted by name, so their places are too.
        movers.sort_by(|(namespace, mover), (other_namespace, other)| {
            let (key, other) = ((&mover.workload, &mover.pods), (&other.workload, &other.pods));
            namespace.cmp(other_namespace).then(key.cmp(&other))
        });
        movers.into_iter().map(|(_, mover)| mover).collect()
    }

    /// The pods in the order of the plan, and the waves with indices of these pods.
    fn pods_and_waves(
        &self,
        movers: &[MovingPods],
        waves: &[MoverWave],
        stays: &[Option<StayExplanation>],
        nodes: &BTreeMap<usize, Vec<String>>,
    ) -> (Vec<PlannedPod>, Vec<Wave>) {
        let (mut pods, mut planned) = (Vec::new(), Vec::new());
        for (number, wave) in waves.iter().enumerate() {
            let first = pods.len();
            let moved = wave.movers.iter().filter_map(|index| movers.get(*index));
            let indices: Vec<usize> = moved.flat_map(|mover| mover.pods.iter().copied()).collect();
            for index in &indices {
                let nodes = nodes.get(index).cloned().unwrap_or_default();
                pods.extend(self.planned_pod(*index, PodDecision::Moves { wave: number, nodes }));
            }
            let unit = self.units.iter().find(|unit| indices.iter().any(|index| unit.pods.contains(index)));
            let restarted = unit.into_iter().flat_map(|unit| &unit.restarted);
            planned.push(Wave {
                pods: (first..pods.len()).collect(),
                limited_by: wave.limited_by.clone(),
                restarts: restarted.map(|pod| namespaced_name(*pod)).collect(),
            });
        }
        for (index, stay) in stays.iter().enumerate() {
            let Some(StayExplanation { reason, why, remedy }) = stay.clone() else { continue };
            pods.extend(self.planned_pod(index, PodDecision::Stays { reason, why, remedy }));
        }
        (pods, planned)
    }

    fn planned_pod(&self, index: usize, fate: PodDecision) -> Option<PlannedPod> {
        let used = self.pods.get(index)?;
        let pod = used.pod;
        let claims = used.claims.iter().filter_map(|index| self.claims.get(*index));
        let budgets = self.budgets_by_pod.get(index).into_iter().flatten();
        Some(PlannedPod {
            namespace: pod.namespace().to_owned(),
            name: pod.name().to_owned(),
            uid: pod.uid().to_owned(),
            node: node_of(pod).to_owned(),
            workload: workload_of(self.state, pod).map(WorkloadName::from),
            devices: used.devices.iter().cloned().collect(),
            claims: claims.map(|claim| claim.claim.name().to_owned()).collect(),
            grace_seconds: grace_period(pod.value.get("spec")).unsigned_abs(),
            budgets: budgets
                .filter_map(|budget| self.budgets.get(*budget))
                .map(crate::outcome::Budget::namespaced_name)
                .collect(),
            is_forceable: matches!(fate, PodDecision::Stays { reason, .. } if reason.allows_forced_deletion()),
            fate,
        })
    }
}

/// The reason to stay for a pod that its Job would not create again.
fn given_up_stay(job: StoredObject<'_>, pod: StoredObject<'_>) -> Option<StayExplanation> {
    let name = namespaced_name(job);
    let (reason, why) = match reason_job_gives_up_pod(job, pod)? {
        PodGivenUp::FailedIndex => (
            StayReason::JobLimit,
            format!("Its index of Job {name} fails if the pod is evicted, and nothing makes the pod again."),
        ),
        PodGivenUp::EndedWorkQueue => (
            StayReason::Other,
            format!(
                "Job {name} has no completions and makes no new pods any more, because one of its pods has succeeded."
            ),
        ),
    };
    Some(StayExplanation::new(reason, why, "Wait until it ends."))
}

/// The reason for a pod that stays because `other`, which must move with it, stays.
fn stay_because_of(stay: &StayExplanation, other: StoredObject<'_>) -> StayExplanation {
    let why = format!("It moves together with pod {}, which stays. {}", namespaced_name(other), stay.why);
    StayExplanation { why, ..stay.clone() }
}

impl PlannedRule {
    /// The DeviceTaintRule as JSON, with the effect NoSchedule, which it has while pods move. `key` is the taint key
    /// of the drain.
    pub fn noschedule_json(&self, key: &str, profile: &Profile) -> String {
        let version = profile.versions(ApiKind::DeviceTaintRule).first().copied().unwrap_or(Version::V1);
        noschedule_rule_json(&self.name, &self.selects, key, version)
    }
}
