//! The impact of several rules or slices together: the pods that any of them evicts, each counted once, and the impact
//! of each.
//!
//! Each change is assessed alone. A taint evicts a pod whatever other taints do, so the pods that are evicted together
//! are those that are evicted by any of the changes. Devices are not compared: one that two rules select counts twice,
//! and their number is an upper bound.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::elsewhere::EvictedPodsForecast;
use super::limits::ImpactCounts;
use super::{Assessment, format_time};
use crate::cli::forecast::totals_record;
use crate::cli::table;
use crate::report::record::{Json, collect_records, record};
use tollgate_api::profile::Profile;
use tollgate_engine::impact::{PodImpact, ProposedChange};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime::Timestamp;

/// A pod: namespace and name.
type PodName = (String, String);

/// The impact of the changes that were assessed for one profile.
#[derive(Debug)]
pub(super) struct TotalImpact {
    pub(super) profile: &'static Profile,
    pub(super) at: Timestamp,
    pub(super) parts: Vec<ChangeImpact>,
}

/// The impact of one of the changes.
#[derive(Debug)]
pub(super) struct ChangeImpact {
    name: String,
    is_rule: bool,
    counts: ImpactCounts,
    pods: BTreeSet<PodName>,
    /// Those of the pods whose replacements can be evicted again.
    evicted_again: BTreeSet<PodName>,
    /// The object as JSON, for a forecast of all of them.
    json: String,
}

fn pod_name(pod: &PodImpact<'_>) -> PodName {
    (pod.namespace.to_owned(), pod.name.to_owned())
}

impl TotalImpact {
    pub(super) fn new(profile: &'static Profile, at: Timestamp) -> TotalImpact {
        TotalImpact { profile, at, parts: Vec::new() }
    }

    /// Adds the impact of one change.
    pub(super) fn add(&mut self, assessment: &Assessment<'_>, json: &str) {
        let impact = &assessment.impact;
        let pods = impact.pods.iter().filter(|pod| pod.is_evicted_by_change());
        let evicted_again = impact.pods_with_evictable_replacement().filter(|pod| pod.is_evicted_by_change());
        self.parts.push(ChangeImpact {
            name: assessment.query.change.name().to_owned(),
            is_rule: matches!(assessment.query.change, ProposedChange::Rule(_)),
            counts: ImpactCounts::from_assessment(assessment),
            pods: pods.map(pod_name).collect(),
            evicted_again: evicted_again.map(pod_name).collect(),
            json: json.to_owned(),
        });
    }

    /// Returns the changed objects as JSON.
    pub(super) fn proposed_objects_json(&self) -> Vec<&str> {
        self.parts.iter().map(|part| part.json.as_str()).collect()
    }

    /// Returns the impact of all changes together: pods and namespaces count once, devices once for each change.
    pub(super) fn total_counts(&self) -> ImpactCounts {
        let pods: BTreeSet<&PodName> = self.parts.iter().flat_map(|part| &part.pods).collect();
        let namespaces: BTreeSet<&str> = pods.iter().map(|(namespace, _)| namespace.as_str()).collect();
        ImpactCounts {
            devices: self.parts.iter().map(|part| part.counts.devices).sum(),
            pods: pods.len(),
            namespaces: namespaces.len(),
            is_upper_bound: self.parts.iter().any(|part| part.counts.is_upper_bound),
            counts_devices_twice: true,
        }
    }

    /// Returns the number of evicted pods whose replacements can be evicted again.
    fn evicted_again_count(&self) -> usize {
        let pods: BTreeSet<&PodName> = self.parts.iter().flat_map(|part| &part.evicted_again).collect();
        pods.len()
    }

    /// Returns a line about replacements that can be evicted again; empty if none can.
    pub(super) fn evicted_again_text(&self) -> String {
        let (pods, are) = match self.evicted_again_count() {
            0 => return String::new(),
            1 => ("the replacement for 1 evicted pod".to_owned(), "is"),
            many => (format!("the replacements for {many} evicted pods"), "are"),
        };
        format!("{pods} can be scheduled onto tainted devices and {are} then evicted again\n")
    }

    /// Returns the number of changes: `3 rules`, or `3 objects` if some are not rules.
    pub(super) fn change_count_text(&self) -> String {
        let what = if self.parts.iter().all(|part| part.is_rule) { "rules" } else { "objects" };
        format!("{} {what}", self.parts.len())
    }

    /// Returns for each change the number of pods that no other change evicts.
    fn exclusive_eviction_counts(&self) -> Vec<usize> {
        let mut times: BTreeMap<&PodName, usize> = BTreeMap::new();
        for pod in self.parts.iter().flat_map(|part| &part.pods) {
            *times.entry(pod).or_default() += 1;
        }
        let is_alone = |pod: &&PodName| times.get(pod) == Some(&1);
        self.parts.iter().map(|part| part.pods.iter().filter(is_alone).count()).collect()
    }

    /// Returns the sum, and a table with the impact of each change, as text. `is_complete` is false if parts of
    /// the state are missing.
    pub(super) fn text_report(&self, is_complete: bool) -> String {
        let ImpactCounts { pods, namespaces, is_upper_bound, .. } = self.total_counts();
        let hedge = match (is_upper_bound, is_complete) {
            (true, true) => "at most ",
            (true, false) => "about ",
            (false, true) => "",
            (false, false) => "at least ",
        };
        let (rules, profile, at) = (self.change_count_text(), self.profile.name, format_time(self.at));
        let mut out =
            format!("{rules} together ({profile}, at {at}): {hedge}{} evicted", count_with_noun(pods, "pod"));
        if pods > 0 {
            _ = write!(out, " in {hedge}{}", count_with_noun(namespaces, "namespace"));
        }
        out.push_str("\n\n");
        let rows: Vec<Vec<String>> = self
            .parts
            .iter()
            .zip(self.exclusive_eviction_counts())
            .map(|(part, only)| {
                let ImpactCounts { devices, pods, namespaces, .. } = part.counts;
                let numbers = [devices, pods, namespaces, only].map(|number| number.to_string());
                [part.name.clone()].into_iter().chain(numbers).collect()
            })
            .collect();
        out + &table::format_table(&["NAME", "DEVICES", "EVICTED", "NAMESPACES", "EVICTED ONLY BY IT"], &rows)
    }

    /// Returns the sum and the impact of each change as JSON.
    pub(super) fn total_impact_record(&self, elsewhere: Option<&EvictedPodsForecast>) -> Json {
        let ImpactCounts { devices, pods, namespaces, is_upper_bound, .. } = self.total_counts();
        let parts = self.parts.iter().zip(self.exclusive_eviction_counts()).map(|(part, only)| {
            record! {
                "rule": part.name,
                "devices": part.counts.devices,
                "evicted": part.counts.pods,
                "namespaces": part.counts.namespaces,
                "evictedOnlyByIt": only,
            }
        });
        record! {
            "together": self.parts.iter().map(|part| &part.name).collect::<Vec<_>>(),
            "profile": self.profile.name,
            "at": format_time(self.at),
            "sum": record! {
                "evicted": pods,
                "namespaces": namespaces,
                "evictedAgain" if given: self.evicted_again_count(),
                "devicesAtMost": devices,
                "upperBound" if given: is_upper_bound,
            },
            "parts": collect_records(parts),
            // What becomes of the evicted pods, if the state has nodes.
            "replacements" if given: elsewhere.map(|elsewhere| totals_record(elsewhere.forecast.totals)),
        }
    }
}
