//! JSON output: one object per rule and profile, one per line. Its schema is `tollgate schema impact`.

mod reason;

use serde::Serialize;

use super::by::{GroupRecord, Groups};
use super::{Assessment, format_time, listed_count};
use crate::cli::forecast::TotalsRecord;
use reason::Reason;
use tollgate_engine::impact::{EVICTION_IN_PROGRESS, Impact, Partition, PodOutcome};
use tollgate_forecast::GroupRestart;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImpactRecord<'a> {
    rule: &'a str,
    profile: &'static str,
    at: String,
    devices: Devices,
    totals: Totals,
    condition: Option<Condition<'a>>,
    /// Why the change does nothing.
    no_effect: Option<&'a str>,
    /// On which feature gates it depends whether the change does anything; the rest assumes that it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<&'a str>,
    /// Classes or expressions select devices, and cannot be evaluated: all numbers are upper bounds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    upper_bound: bool,
    /// Partitions of the selected devices that stay allocatable.
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<Partitions<'a>>,
    pods: Vec<Pod<'a>>,
    /// How many pods --limit leaves out.
    pods_omitted: usize,
    namespaces: &'a [&'a str],
    budgets: Vec<Budget<'a>>,
    /// What LeaderWorkerSets, JobSets and PodGroups do with their other pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    restarts: Vec<Restart<'a>>,
    /// What becomes of the evicted pods, if the state has nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    replacements: Option<TotalsRecord>,
    /// By what `groups` are made, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<GroupRecord<'a>>>,
    differences: &'a [String],
    /// What the dump does not contain, or what could not be listed in the cluster.
    incomplete: &'a [String],
}

#[derive(Serialize)]
struct Devices {
    published: usize,
    allocated: usize,
}

/// Partitions of the selected devices that the scheduler can still allocate.
#[derive(Serialize)]
struct Partitions<'a> {
    count: usize,
    devices: Vec<DeviceName<'a>>,
    /// How many of them `devices` does not list.
    omitted: usize,
}

#[derive(Serialize)]
struct DeviceName<'a> {
    driver: &'a str,
    pool: &'a str,
    device: &'a str,
}

/// Most partitions that are listed.
const MAX_PARTITIONS: usize = 100;

impl<'a> Partitions<'a> {
    fn of(partitions: &[Partition<'a>]) -> Option<Partitions<'a>> {
        let name = |partition: &Partition<'a>| {
            let Partition { driver, pool, device } = *partition;
            DeviceName { driver, pool, device }
        };
        let devices: Vec<DeviceName<'a>> = partitions.iter().take(MAX_PARTITIONS).map(name).collect();
        let (count, omitted) = (partitions.len(), partitions.len() - devices.len());
        (count > 0).then_some(Partitions { count, devices, omitted })
    }
}

/// The sums of the last lines of the text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    claims: usize,
    pods: usize,
    evicted: usize,
    evicted_now: usize,
    evicted_later: usize,
    tolerated: usize,
    unaffected: usize,
    /// Namespaces that lose pods.
    namespaces: usize,
    budgets_violated: usize,
    last_eviction: Option<String>,
}

#[derive(Serialize)]
struct Condition<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct Pod<'a> {
    namespace: &'a str,
    name: &'a str,
    owner: Option<Owner<'a>>,
    outcome: &'static str,
    at: Option<String>,
    because: Vec<String>,
    reasons: Vec<Reason<'a>>,
}

/// The owner that controls the pod.
#[derive(Serialize)]
struct Owner<'a> {
    kind: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Budget<'a> {
    namespace: &'a str,
    name: &'a str,
    violated_by: usize,
}

/// What a group does with its other pods if it loses some.
#[derive(Serialize)]
struct Restart<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    policy: &'a str,
    lost: usize,
    restarted: usize,
    effect: &'a str,
}

impl<'a> ImpactRecord<'a> {
    pub(super) fn of(
        assessment: &'a Assessment<'_>,
        incomplete: &'a [String],
        limit: Option<usize>,
    ) -> ImpactRecord<'a> {
        let Assessment {
            query,
            impact,
            budgets,
            differences,
            no_effect,
            depends_on,
            groups,
            restarts,
            elsewhere,
        } = assessment;
        let (by, groups) = groups.as_ref().map(Groups::records).unzip();
        let is_written = no_effect.is_none() && incomplete.is_empty();
        let condition = impact.condition.as_ref().filter(|_| is_written).map(|condition| Condition {
            kind: EVICTION_IN_PROGRESS,
            status: condition.status,
            reason: condition.reason,
            message: &condition.message,
        });
        let shown = listed_count(impact.pods.len(), limit.unwrap_or(0));
        let pods = impact.pods.iter().take(shown).map(|pod| Pod {
            namespace: pod.namespace,
            name: pod.name,
            owner: pod.owner.and_then(|owner| owner.split_once('/')).map(|(kind, name)| Owner { kind, name }),
            outcome: pod.outcome.name(),
            at: match pod.outcome {
                PodOutcome::EvictedNow => Some(format_time(query.at)),
                PodOutcome::EvictedAt(time) => Some(format_time(time)),
                PodOutcome::Tolerated | PodOutcome::Unaffected => None,
            },
            because: pod.reasons.iter().map(ToString::to_string).collect(),
            reasons: pod.reasons.iter().map(Reason::of).collect(),
        });
        let violated = budgets.iter().map(|budget| Budget {
            namespace: budget.namespace,
            name: budget.name,
            violated_by: budget.violated_by,
        });
        ImpactRecord {
            rule: query.change.name(),
            profile: query.profile.name,
            at: format_time(query.at),
            devices: Devices { published: impact.counts.published, allocated: impact.counts.allocated },
            totals: Totals::of(impact, budgets.len()),
            condition,
            no_effect: no_effect.as_deref(),
            depends_on: depends_on.as_deref(),
            upper_bound: impact.is_upper_bound,
            partitions: Partitions::of(&impact.partitions),
            pods: pods.collect(),
            pods_omitted: impact.pods.len() - shown,
            namespaces: &impact.namespaces,
            budgets: violated.collect(),
            restarts: restarts.iter().map(restart_record).collect(),
            by,
            replacements: elsewhere.as_ref().map(|elsewhere| TotalsRecord::of(elsewhere.forecast.totals)),
            groups,
            differences,
            incomplete,
        }
    }
}

fn restart_record<'a>(group: &'a GroupRestart<'_>) -> Restart<'a> {
    let GroupRestart { kind, namespace, name, lost, restarted, fails: _, policy, effect } = group;
    Restart { kind, namespace, name, policy, lost: *lost, restarted: restarted.len(), effect }
}

impl Totals {
    fn of(impact: &Impact<'_>, budgets_violated: usize) -> Totals {
        let mut totals = Totals {
            claims: impact.claims,
            pods: impact.pods.len(),
            evicted: impact.evicted_pod_count(),
            evicted_now: 0,
            evicted_later: 0,
            tolerated: 0,
            unaffected: 0,
            namespaces: impact.namespaces.len(),
            budgets_violated,
            last_eviction: None,
        };
        for pod in &impact.pods {
            match pod.outcome {
                PodOutcome::EvictedNow => totals.evicted_now += 1,
                PodOutcome::EvictedAt(_) => totals.evicted_later += 1,
                PodOutcome::Tolerated => totals.tolerated += 1,
                PodOutcome::Unaffected => totals.unaffected += 1,
            }
        }
        // Pods are in order of eviction.
        totals.last_eviction = impact.pods.iter().rev().find_map(|pod| match pod.outcome {
            PodOutcome::EvictedAt(time) => Some(format_time(time)),
            _ => None,
        });
        totals
    }
}
