//! `--by namespace|workload|node`: how many pods of each group are evicted.
//!
//! Workloads and nodes come from the objects of the dump or cluster, because an impact snapshot contains neither.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum as _;

use super::{format_time, listed_count};
use crate::cli::table;
use crate::report::record::{Json, collect_records, record};
use tollgate_engine::impact::{Impact, PodImpact, PodOutcome};
use tollgate_forecast::{ObjectKind, State, Workload, workload_of};
use tollgate_formats::gotime::Timestamp;

/// The grouping of pods that `--by` selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(in crate::cli) enum GroupBy {
    Namespace,
    Workload,
    Node,
}

impl GroupBy {
    /// True if pods and workloads of the cluster are needed, which the snapshot of an impact does not contain.
    pub(super) fn needs_cluster_objects(self) -> bool {
        self != GroupBy::Namespace
    }
}

/// What the pods of a group share: their namespace or node, which is `None` for pods that are not scheduled; and their
/// workload, if they are grouped by workloads and something controls them.
type GroupKey<'a> = (Option<&'a str>, Option<Workload<'a>>);

/// Numbers of the pods of a group by their outcome, and the time of the last eviction.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct OutcomeCounts {
    pub(super) now: usize,
    pub(super) later: usize,
    pub(super) tolerated: usize,
    pub(super) unaffected: usize,
    pub(super) last: Option<Timestamp>,
}

impl OutcomeCounts {
    pub(super) fn from_impact(impact: &Impact<'_>) -> OutcomeCounts {
        let mut counts = OutcomeCounts::default();
        impact.pods.iter().for_each(|pod| counts.add(pod.outcome));
        counts
    }

    fn add(&mut self, outcome: PodOutcome) {
        match outcome {
            PodOutcome::EvictedNow => self.now += 1,
            PodOutcome::EvictedAt(time) => {
                self.later += 1;
                self.last = self.last.max(Some(time));
            }
            PodOutcome::Tolerated => self.tolerated += 1,
            PodOutcome::Unaffected => self.unaffected += 1,
        }
    }

    fn evicted(self) -> usize {
        self.now + self.later
    }

    fn pods(self) -> usize {
        self.evicted() + self.tolerated + self.unaffected
    }
}

/// The pods of an impact in groups, those with the most evicted pods first.
#[derive(Debug)]
pub(super) struct ImpactGroups<'a> {
    by: GroupBy,
    groups: Vec<(GroupKey<'a>, OutcomeCounts)>,
}

impl<'a> ImpactGroups<'a> {
    /// Groups the pods of an impact. Without the objects of the cluster, a pod has no node, and its workload is its
    /// owner.
    pub(super) fn from_impact(
        impact: &Impact<'a>,
        by: GroupBy,
        state: Option<&State<'a>>,
    ) -> ImpactGroups<'a> {
        let mut groups: BTreeMap<GroupKey<'a>, OutcomeCounts> = BTreeMap::new();
        for pod in &impact.pods {
            groups.entry(group_key(pod, by, state)).or_default().add(pod.outcome);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, counts)| Reverse(counts.evicted()));
        ImpactGroups { by, groups }
    }

    /// The groups as a table of at most `limit` rows, all for 0.
    pub(super) fn table(&self, limit: usize) -> String {
        let names: &[&str] = match self.by {
            GroupBy::Namespace => &["NAMESPACE"],
            GroupBy::Workload => &["NAMESPACE", "WORKLOAD"],
            GroupBy::Node => &["NODE"],
        };
        let header =
            [names, &["PODS", "EVICTED", "NOW", "LATER", "TOLERATED", "UNAFFECTED", "LAST EVICTION"]]
                .concat();
        let shown = listed_count(self.groups.len(), limit);
        let row = |(key, counts): &_| group_row(self.by, key, counts);
        let rows: Vec<Vec<String>> = self.groups.iter().take(shown).map(row).collect();
        let mut out = table::format_table(&header, &rows);
        if self.groups.len() > shown {
            _ = writeln!(out, "… and {} more; --limit 0 lists them all", self.groups.len() - shown);
        }
        out
    }

    /// Returns the value of `--by` and a JSON record for each group.
    pub(super) fn flag_value_and_records(&self) -> (Option<String>, Vec<Json>) {
        let by = self.by.to_possible_value().map(|value| value.get_name().to_owned());
        (by, collect_records(self.groups.iter().map(|(key, counts)| group_record(self.by, *key, *counts))))
    }
}

fn group_key<'a>(pod: &PodImpact<'a>, by: GroupBy, state: Option<&State<'a>>) -> GroupKey<'a> {
    let object = || state?.objects_of_kind(ObjectKind::Pod).get(pod.namespace, pod.name);
    match by {
        GroupBy::Namespace => (Some(pod.namespace), None),
        GroupBy::Workload => {
            let owner = || {
                let (kind, name) = pod.owner?.split_once('/')?;
                Some(Workload { kind, namespace: pod.namespace, name })
            };
            let workload = state.zip(object()).and_then(|(state, object)| workload_of(state, object));
            (Some(pod.namespace), workload.or_else(owner))
        }
        GroupBy::Node => {
            let node = object().map(|object| object.value.get("spec").get("nodeName").str());
            (node.filter(|node| !node.is_empty()), None)
        }
    }
}

fn group_row(by: GroupBy, (name, workload): &GroupKey<'_>, counts: &OutcomeCounts) -> Vec<String> {
    let workload = workload.map_or("-".to_owned(), |workload| workload.to_string());
    let workload = (by == GroupBy::Workload).then_some(workload);
    let names = [name.unwrap_or("-").to_owned()].into_iter().chain(workload);
    let numbers =
        [counts.pods(), counts.evicted(), counts.now, counts.later, counts.tolerated, counts.unaffected];
    let last = counts.last.map_or("-".to_owned(), format_time);
    names.chain(numbers.map(|number| number.to_string())).chain([last]).collect()
}

/// Returns the JSON record of a group. Which members name the group depends on `--by`; they are null for pods
/// without a controller, and for pods that are not scheduled.
fn group_record(by: GroupBy, (name, workload): GroupKey<'_>, counts: OutcomeCounts) -> Json {
    let (is_by_workload, is_by_node) = (by == GroupBy::Workload, by == GroupBy::Node);
    let is_in_namespace = !is_by_node;
    record! {
        "namespace" if is_in_namespace: name,
        "workload" if is_by_workload: workload.map(|of| record! { "kind": of.kind, "name": of.name }),
        "node" if is_by_node: name,
        "pods": counts.pods(),
        "evicted": counts.evicted(),
        "evictedNow": counts.now,
        "evictedLater": counts.later,
        "tolerated": counts.tolerated,
        "unaffected": counts.unaffected,
        "lastEviction": counts.last.map(format_time),
    }
}
