//! Determines which pods can move: simulates the drain, removes movers whose replacement does not fit, and repeats
//! until all fit. A mover is a pod that moves, or the pods of a unit that move together.
//!
//! Each round removes at least one mover. The first rounds remove only those that can never fit, so that of two
//! movers that compete for a device one can still move.
//!
//! Invariant: in the end, the replacement of every mover fits in all simulated runs in which exactly these movers
//! leave, and uses no selected device. Other pods move only if the user's options allow it.

use crate::outcome::StayReason;
use crate::plan::{PlanInput, PodsUsingSelectedDevices};
use crate::selection::SelectedDevices;
use crate::stay::StayExplanation;
use crate::units::PodUnit;
use crate::waves::{MoverWave, MovingPods, WaveSharing, assign_waves};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tollgate_document::doc::Doc;
use tollgate_forecast::{
    ClusterChange, DeviceForecast, Forecast, PlacementWithRunCount, Plan, PodForecast, PodOrigin, PodOutcome,
    StoredObject, grace_period,
};

/// Seconds between the longest grace period of a wave and the next wave. Jobs need some seconds to create new
/// pods.
const WAVE_GAP_SECONDS: i64 = 30;

/// Number of simulated rounds in which only some of the movers that do not fit are removed from the plan; after
/// that, all of them are removed at once.
const PARTIAL_REMOVAL_ROUNDS: usize = 4;

/// A mover whose replacement does not fit.
struct UnfittingMover {
    mover: usize,
    stay: StayExplanation,
    /// Index of the pod that does not fit.
    pod: usize,
    /// True if it may fit after other movers are removed from the plan.
    may_fit: bool,
}

/// What a simulated drain is computed from: rules, selected devices, pods, units and PDBs.
pub(crate) struct FitSimulation<'a, 'p, 'd> {
    pub(crate) input: &'a PlanInput<'a, 'd>,
    pub(crate) rules: &'p [Doc<'p>],
    pub(crate) selection: &'a SelectedDevices<'a>,
    pub(crate) drained: &'a PodsUsingSelectedDevices<'a, 'd>,
}

/// Which movers can move, and where their replacements go.
pub(crate) struct FitResult {
    /// For each mover, why its pods stay, and the index of the pod that causes it; `None` if they move.
    pub(crate) stays: Vec<Option<(StayExplanation, usize)>>,
    pub(crate) waves: Vec<MoverWave>,
    /// For each pod that moves, the nodes of its replacement in the simulated runs, most frequent first.
    pub(crate) nodes: BTreeMap<usize, Vec<String>>,
    /// The devices after the drain; empty unless the settings ask for them.
    pub(crate) devices: Vec<DeviceForecast>,
}

impl<'d> FitSimulation<'_, '_, 'd> {
    /// Simulates the drain repeatedly and removes movers from the plan until every replacement fits.
    pub(crate) fn drop_movers_until_all_fit(&self, movers: &mut [MovingPods]) -> FitResult {
        let options = self.input.request.options;
        let mut stays: Vec<Option<(StayExplanation, usize)>> = vec![None; movers.len()];
        let (mut nodes, mut devices) = (BTreeMap::new(), Vec::new());
        for round in 0.. {
            let is_moving = |index: usize| stays.get(index).is_some_and(Option::is_none);
            let planned = assign_waves(
                movers,
                &is_moving,
                &self.drained.budgets,
                options.max_wave,
                self.input.is_first_wave,
            );
            let mut misfits = if self.input.missing.is_empty() {
                let forecast = self.simulate_drain_without_lone_movers(movers, &planned);
                let (misfits, found) = self.find_misfits_and_replacement_nodes(movers, &is_moving, &forecast);
                nodes = found;
                devices = forecast.devices;
                misfits
            } else {
                self.all_movers_as_unknown_misfits(movers, &is_moving)
            };
            if misfits.is_empty() {
                return FitResult { stays, waves: planned, nodes, devices };
            }
            if round < PARTIAL_REMOVAL_ROUNDS {
                retain_hopeless_misfits_or_half(&mut misfits);
            }
            for misfit in misfits {
                let is_unknown =
                    matches!(misfit.stay.reason, StayReason::FitsSometimes | StayReason::Unknown);
                match movers.get_mut(misfit.mover) {
                    Some(mover) if options.move_unknown && is_unknown => mover.kind = WaveSharing::Alone,
                    _ => {
                        if let Some(stay) = stays.get_mut(misfit.mover) {
                            *stay = Some((misfit.stay, misfit.pod));
                        }
                    }
                }
            }
        }
        FitResult { stays, waves: Vec::new(), nodes, devices }
    }

    /// Simulates the drain: creates the rules, then evicts the movers wave by wave, each wave after the pods
    /// of the previous one are gone. Movers of kind `Alone` are omitted, because they come last and do not
    /// affect the others.
    fn simulate_drain_without_lone_movers(&self, movers: &[MovingPods], planned: &[MoverWave]) -> Forecast {
        let mut steps: Vec<ClusterChange<'_>> =
            self.rules.iter().map(|rule| ClusterChange::Apply(rule.root())).collect();
        for wave in planned {
            let moved = wave.movers.iter().filter_map(|index| movers.get(*index));
            let moved = moved.filter(|mover| mover.kind != WaveSharing::Alone);
            let mut grace = 0;
            for mover in moved {
                let unit = self.unit_of(mover);
                let restarted = unit.into_iter().flat_map(|unit| &unit.restarted).copied();
                for pod in self.pods_of(mover).chain(restarted) {
                    let (namespace, name) = (pod.namespace(), pod.name());
                    steps.push(ClusterChange::Evict { namespace, name, with_group: unit.is_some() });
                    grace = grace.max(grace_period(pod.value.get("spec")));
                }
            }
            steps.push(ClusterChange::Wait(grace.saturating_add(WAVE_GAP_SECONDS)));
        }
        let PlanInput { state, release, settings, .. } = *self.input;
        (self.input.play)(&Plan::new(state.clone(), steps, release, settings))
    }

    fn pods_of<'m>(&'m self, mover: &'m MovingPods) -> impl Iterator<Item = StoredObject<'d>> + 'm {
        mover.pods.iter().filter_map(|index| self.drained.pods.get(*index)).map(|pod| pod.pod)
    }

    fn unit_of(&self, mover: &MovingPods) -> Option<&PodUnit<'d>> {
        self.drained.units.iter().find(|unit| mover.pods.iter().any(|pod| unit.pods.contains(pod)))
    }

    /// A misfit with the reason Unknown for every mover except those that move anyway. Used if the cluster
    /// state is incomplete.
    fn all_movers_as_unknown_misfits(
        &self,
        movers: &[MovingPods],
        is_moving: &dyn Fn(usize) -> bool,
    ) -> Vec<UnfittingMover> {
        let moving = movers.iter().enumerate().filter(|(index, _)| is_moving(*index));
        let moving = moving.filter(|(_, mover)| mover.kind != WaveSharing::Alone);
        let stay = unknown_outcome_stay(&self.input.missing.join("; "));
        moving
            .map(|(index, mover)| UnfittingMover {
                mover: index,
                stay: stay.clone(),
                pod: mover.pods.first().copied().unwrap_or_default(),
                may_fit: false,
            })
            .collect()
    }

    /// The movers whose replacement does not fit, with the reason; and for each pod the nodes of its replacement,
    /// whether it fits or not.
    fn find_misfits_and_replacement_nodes(
        &self,
        movers: &[MovingPods],
        is_moving: &dyn Fn(usize) -> bool,
        forecast: &Forecast,
    ) -> (Vec<UnfittingMover>, BTreeMap<usize, Vec<String>>) {
        let mut replacements: BTreeMap<(&str, &str), &PodForecast> = BTreeMap::new();
        for pod in forecast.pods.iter().filter(|pod| pod.origin == PodOrigin::Replacement) {
            if let Some(replaces) = pod.replaces.as_deref() {
                replacements.insert((pod.namespace.as_str(), replaces), pod);
            }
        }
        let (mut misfits, mut nodes) = (Vec::new(), BTreeMap::new());
        for (index, mover) in movers.iter().enumerate() {
            if !is_moving(index) || mover.kind == WaveSharing::Alone {
                continue;
            }
            let restarted = self.unit_of(mover).into_iter().flat_map(|unit| &unit.restarted);
            let own = mover.pods.iter().filter_map(|pod| Some((*pod, self.drained.pods.get(*pod)?.pod)));
            let first = mover.pods.first().copied().unwrap_or_default();
            let mut worst: Option<UnfittingMover> = None;
            for (pod, object) in own.chain(restarted.map(|pod| (first, *pod))) {
                let found = replacements.get(&(object.namespace(), object.name()));
                let misfit = match found {
                    Some(found) => {
                        if self.drained.pods.get(pod).is_some_and(|known| known.pod.name() == object.name()) {
                            nodes.insert(pod, nodes_by_frequency(&found.placements));
                        }
                        self.why_replacement_does_not_fit(mover, found, forecast.samples)
                    }
                    None => Some((not_recreated_stay(), false)),
                };
                if let Some((stay, may_fit)) = misfit {
                    // What can never fit decides about a unit.
                    if worst.as_ref().is_none_or(|worst| worst.may_fit && !may_fit) {
                        worst = Some(UnfittingMover { mover: index, stay, pod, may_fit });
                    }
                }
            }
            misfits.extend(worst);
        }
        (misfits, nodes)
    }

    /// The reason why a replacement does not fit, and whether it may fit after other movers are removed.
    fn why_replacement_does_not_fit(
        &self,
        mover: &MovingPods,
        pod: &PodForecast,
        samples: u32,
    ) -> Option<(StayExplanation, bool)> {
        let devices = pod.placements.iter().flat_map(|placement| &placement.place.claims);
        let mut devices = devices.flat_map(|claim| &claim.devices);
        let back = devices
            .find(|device| self.selection.selects_device(&device.driver, &device.pool, &device.device));
        if let Some(device) = back {
            let device = format!("{}/{}/{}", device.driver, device.pool, device.device);
            return Some((self.returning_replacement_stay(&device), false));
        }
        if pod.evicted_again {
            return Some((evicted_again_stay(), false));
        }
        let is_replaced = mover.kind != WaveSharing::Unreplaced;
        match pod.outcome {
            PodOutcome::Fits => None,
            _ if !is_replaced => None,
            PodOutcome::Pending => Some((no_room_stay(pod), false)),
            PodOutcome::Sometimes => Some((fits_sometimes_stay(pod, samples), true)),
            PodOutcome::Unknown => Some((unknown_outcome_stay(&pod.not_modelled.join(", ")), false)),
            // Its StatefulSet waits for another pod, which may be left out.
            PodOutcome::NotRecreated if pod.explanation.is_some() => Some((no_room_stay(pod), true)),
            PodOutcome::NotRecreated => Some((not_recreated_stay(), false)),
        }
    }

    /// The reason to stay for a pod whose replacement gets a drained device again.
    fn returning_replacement_stay(&self, device: &str) -> StayExplanation {
        let key = &self.input.request.key;
        let release = self.input.release;
        if !release.semantics.features.device_taint_rules {
            let why = release.profile.why_device_taint_rules_do_nothing();
            let why = why.unwrap_or_else(|| format!("Kubernetes {} ignores rules", release.profile.name));
            return StayExplanation::new(
                StayReason::Tolerates,
                format!(
                    "DeviceTaintRules have no effect, so its replacement can get device {device} again: {why}."
                ),
                "Turn on the feature gates DRADeviceTaints and DRADeviceTaintRules.",
            );
        }
        StayExplanation::new(
            StayReason::Tolerates,
            format!(
                "Its replacement tolerates the taint {key}:NoSchedule and can get the selected device {device}."
            ),
            "Remove the toleration from its ResourceClaimTemplate, or use another taint key with --key.",
        )
    }
}

/// Keeps those of `misfits` that can never fit; if all may still fit, the second half. The others stay in the plan for
/// another simulation.
fn retain_hopeless_misfits_or_half(misfits: &mut Vec<UnfittingMover>) {
    if misfits.iter().any(|misfit| !misfit.may_fit) {
        misfits.retain(|misfit| !misfit.may_fit);
    } else {
        let kept = misfits.len() / 2;
        misfits.drain(..kept);
    }
}

/// The nodes of the placements, most frequent first.
fn nodes_by_frequency(placements: &[PlacementWithRunCount]) -> Vec<String> {
    let mut courses: BTreeMap<&str, u32> = BTreeMap::new();
    for placement in placements {
        *courses.entry(&placement.place.node).or_default() += placement.courses;
    }
    let mut nodes: Vec<(&str, u32)> = courses.into_iter().collect();
    nodes.sort_by_key(|(_, courses)| std::cmp::Reverse(*courses));
    nodes.into_iter().map(|(node, _)| node.to_owned()).collect()
}

/// Remedy for pods that find no free device.
const ADD_NODES_REMEDY: &str = "Add nodes with free devices and run the same command again. Autoscalers do not see DeviceTaintRules, \
     so they add none.";

fn no_room_stay(pod: &PodForecast) -> StayExplanation {
    let mut why =
        pod.explanation.clone().unwrap_or_else(|| "No node has room for its replacement.".to_owned());
    if let Some(message) = &pod.message {
        _ = write!(why, " kube-scheduler reports: {message}");
    }
    // Without a verdict of the scheduler, more nodes do not help: an object is missing, or another pod is not ready.
    let remedy = if pod.reason.is_some() || pod.explanation.is_none() {
        ADD_NODES_REMEDY
    } else {
        "Remove this cause and run the same command again."
    };
    StayExplanation::new(StayReason::NoRoom, why, remedy)
}

fn fits_sometimes_stay(pod: &PodForecast, samples: u32) -> StayExplanation {
    let mut why = format!("Its replacement fits in {} of {samples} courses of the forecast.", pod.fits);
    if let Some(explanation) = &pod.explanation {
        _ = write!(why, " {explanation}");
    }
    let remedy = format!("{ADD_NODES_REMEDY} Or add --move-unknown to evict it alone, after all others.");
    StayExplanation::new(StayReason::FitsSometimes, why, remedy)
}

fn unknown_outcome_stay(what: &str) -> StayExplanation {
    let why = format!("Where its replacement goes is not known: {what}.");
    StayExplanation::new(StayReason::Unknown, why, "Add --move-unknown to evict it alone, after all others.")
}

fn evicted_again_stay() -> StayExplanation {
    StayExplanation::new(
        StayReason::Tolerates,
        "Its replacement would get a device with a NoExecute taint and be evicted again and again: its toleration has no \
         effect, which the scheduler accepts and the eviction controller does not.",
        "Set effect: NoSchedule, or effect: NoExecute, on the toleration in its ResourceClaimTemplate.",
    )
}

fn not_recreated_stay() -> StayExplanation {
    StayExplanation::new(
        StayReason::Other,
        "Its controller makes no new pod, because it is suspended, has failed or is gone.",
        "Delete the pod yourself if it is not needed any more.",
    )
}
