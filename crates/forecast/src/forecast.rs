//! Combines simulated runs into a forecast.
//!
//! Invariant: the order of the runs does not matter.

use crate::device_forecast::{DeviceStatesAfterRun, DeviceTally};
use crate::outcome::{
    EvictedPod, Forecast, MAX_LISTED_PLACEMENTS, NodeAndDevices, PlacementWithRunCount, PodForecast,
    PodOrigin, PodOutcome, PodOutcomeCounts,
};
use crate::plan::{Plan, ReportedPod};
use std::collections::{BTreeMap, BTreeSet};

/// Explanation for a pod that its StatefulSet does not create.
const HELD_BACK_EXPLANATION: &str = "A StatefulSet creates a pod after the pods before it are ready.";

/// Explanation for a pod that fits in some courses, if the outcomes of other pods are unknown.
const UNKNOWN_PODS_EXPLANATION: &str = "This can depend on pods whose outcome is unknown.";

/// The evicted pods, and the outcome of each reported pod, in one simulated run.
#[derive(Clone, Default, Debug)]
pub struct RunOutcome {
    /// The pods of the initial state that are evicted in this run.
    pub(crate) evicted: Vec<EvictedPod>,
    /// The result for each reported pod, in the order of the plan.
    pub(crate) pods: Vec<PodRunResult>,
    /// The devices at the end of the run, if the settings of the plan ask for them.
    pub(crate) devices: Option<DeviceStatesAfterRun>,
}

/// Result of one simulated run for one pod.
#[derive(Clone, Debug)]
pub(crate) struct PodRunResult {
    pub(crate) end: FinalPodState,
    pub(crate) evicted_again: bool,
}

/// The state of a pod at the end of a simulated run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FinalPodState {
    Bound(NodeAndDevices),
    Pending(PendingReason),
    /// The outcome is unknown because the pod uses these features, which are not simulated.
    Unknown(Vec<String>),
    NotRecreated,
    /// The StatefulSet does not create the pod, because its predecessors are not ready.
    HeldBack,
}

/// Why a pod is not bound: the condition that the scheduler writes, and an explanation for reports.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PendingReason {
    /// Reason and message of the PodScheduled condition, if the scheduler sets it.
    pub(crate) condition: Option<(String, String)>,
    pub(crate) explanation: Option<String>,
}

impl Forecast {
    /// Combines the results of all simulated runs.
    pub fn from_runs(plan: &Plan<'_>, courses: impl IntoIterator<Item = RunOutcome>) -> Forecast {
        let mut sums: Vec<PodTally> = plan.tracked.iter().map(|_| PodTally::default()).collect();
        let mut evicted = BTreeSet::new();
        let mut devices = DeviceTally::default();
        let mut samples = 0;
        let mut most_pending = 0;
        for course in courses {
            samples += 1;
            evicted.extend(course.evicted);
            course.devices.iter().for_each(|run| devices.add_run(run));
            let is_pending = |pod: &&PodRunResult| matches!(pod.end, FinalPodState::Pending(_));
            most_pending = most_pending.max(course.pods.iter().filter(is_pending).count());
            for (sum, pod) in sums.iter_mut().zip(course.pods) {
                sum.add_run(pod);
            }
        }
        let mut pods: Vec<PodForecast> =
            plan.tracked.iter().zip(sums).map(|(pod, sum)| sum.into_forecast(pod, samples)).collect();
        let (totals, evicted) = (PodOutcomeCounts::count_outcomes(&pods), evicted.into_iter().collect());
        if totals.unknown > 0 {
            for pod in pods.iter_mut().filter(|pod| pod.outcome == PodOutcome::Sometimes) {
                let explanation = pod.explanation.iter().map(String::as_str);
                pod.explanation =
                    Some(explanation.chain([UNKNOWN_PODS_EXPLANATION]).collect::<Vec<_>>().join(" "));
            }
        }
        let devices = devices.into_forecasts(plan, samples);
        Forecast { samples, evicted, pods, totals, most_pending, devices, missing: plan.missing.clone() }
    }
}

impl PodOutcomeCounts {
    /// Counts the outcomes of these pods.
    pub fn count_outcomes(pods: &[PodForecast]) -> PodOutcomeCounts {
        let mut totals = PodOutcomeCounts::default();
        for pod in pods {
            *match pod.outcome {
                PodOutcome::Fits => &mut totals.fits,
                PodOutcome::Sometimes => &mut totals.sometimes,
                PodOutcome::Pending => &mut totals.pending,
                PodOutcome::Unknown => &mut totals.unknown,
                PodOutcome::NotRecreated => &mut totals.not_recreated,
            } += 1;
        }
        totals
    }
}

/// Accumulates the results of one pod over all simulated runs.
#[derive(Default)]
struct PodTally {
    places: BTreeMap<NodeAndDevices, u32>,
    conditions: BTreeMap<Option<(String, String)>, u32>,
    explanations: BTreeMap<String, u32>,
    not_modelled: BTreeSet<String>,
    not_recreated: u32,
    held_back: u32,
    evicted_again: bool,
}

impl PodTally {
    fn add_run(&mut self, pod: PodRunResult) {
        self.evicted_again |= pod.evicted_again;
        match pod.end {
            FinalPodState::Bound(place) => *self.places.entry(place).or_default() += 1,
            FinalPodState::Pending(PendingReason { condition, explanation }) => {
                *self.conditions.entry(condition).or_default() += 1;
                if let Some(explanation) = explanation {
                    *self.explanations.entry(explanation).or_default() += 1;
                }
            }
            FinalPodState::Unknown(what) => self.not_modelled.extend(what),
            FinalPodState::NotRecreated => self.not_recreated += 1,
            FinalPodState::HeldBack => {
                self.held_back += 1;
                *self.explanations.entry(HELD_BACK_EXPLANATION.to_owned()).or_default() += 1;
            }
        }
    }

    fn into_forecast(self, pod: &ReportedPod, samples: u32) -> PodForecast {
        let fits = self.places.values().sum();
        let not_recreated = self.not_recreated + self.held_back;
        let outcome = if !self.not_modelled.is_empty() {
            PodOutcome::Unknown
        } else if self.not_recreated > 0 {
            PodOutcome::NotRecreated
        } else if fits == samples {
            PodOutcome::Fits
        } else if fits > 0 {
            PodOutcome::Sometimes
        } else if self.held_back == samples {
            PodOutcome::NotRecreated
        } else {
            PodOutcome::Pending
        };
        let mut placements: Vec<PlacementWithRunCount> = self
            .places
            .into_iter()
            .map(|(place, courses)| PlacementWithRunCount { courses, place })
            .collect();
        // The sort is stable: placements that are equally frequent stay in the order of nodes and devices.
        placements.sort_by_key(|placement| std::cmp::Reverse(placement.courses));
        let placements_omitted = placements.len().saturating_sub(MAX_LISTED_PLACEMENTS);
        placements.truncate(MAX_LISTED_PLACEMENTS);
        let condition = most_frequent(self.conditions).flatten();
        let (reason, message) = condition.unzip();
        PodForecast {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            origin: pod.origin,
            replaces: pod.replaces.clone().filter(|_| pod.origin == PodOrigin::Replacement),
            workload: pod.workload.clone(),
            outcome,
            fits,
            not_recreated,
            evicted_again: self.evicted_again,
            placements,
            placements_omitted,
            reason,
            message,
            explanation: most_frequent(self.explanations),
            not_modelled: self.not_modelled.into_iter().collect(),
        }
    }
}

/// The key with the highest count; the first one if several are equal.
fn most_frequent<T: Ord>(counts: BTreeMap<T, u32>) -> Option<T> {
    counts.into_iter().min_by_key(|(_, count)| std::cmp::Reverse(*count)).map(|(key, _)| key)
}
