//! JSON output: one object per rule and profile, one per line.

use serde::Serialize;

use super::{Assessment, format_time};
use crate::impact::{EVICTION_IN_PROGRESS, PodOutcome};

#[derive(Serialize)]
pub(super) struct ImpactRecord<'a> {
    rule: &'a str,
    profile: &'static str,
    at: String,
    devices: Devices,
    condition: Option<Condition<'a>>,
    pods: Vec<Pod<'a>>,
    namespaces: &'a [&'a str],
    budgets: Vec<Budget<'a>>,
    differences: &'a [String],
    /// What the dump does not contain, or what could not be listed in the cluster.
    incomplete: &'a [String],
}

#[derive(Serialize)]
struct Devices {
    published: usize,
    allocated: usize,
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
    outcome: &'static str,
    at: Option<String>,
    because: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Budget<'a> {
    namespace: &'a str,
    name: &'a str,
    violated_by: usize,
}

impl<'a> ImpactRecord<'a> {
    pub(super) fn of(assessment: &'a Assessment<'_>, incomplete: &'a [String]) -> ImpactRecord<'a> {
        let Assessment { query, impact, budgets, differences } = assessment;
        let condition = impact.condition.as_ref().map(|condition| Condition {
            kind: EVICTION_IN_PROGRESS,
            status: condition.status,
            reason: condition.reason,
            message: &condition.message,
        });
        let pods = impact.pods.iter().map(|pod| Pod {
            namespace: pod.namespace,
            name: pod.name,
            outcome: pod.outcome.name(),
            at: match pod.outcome {
                PodOutcome::EvictedNow => Some(format_time(query.at)),
                PodOutcome::EvictedAt(time) => Some(format_time(time)),
                PodOutcome::Tolerated | PodOutcome::Unaffected => None,
            },
            because: pod.reasons.iter().map(ToString::to_string).collect(),
        });
        let budgets = budgets.iter().map(|budget| Budget {
            namespace: budget.namespace,
            name: budget.name,
            violated_by: budget.violated_by,
        });
        ImpactRecord {
            rule: query.change.name(),
            profile: query.profile.name,
            at: format_time(query.at),
            devices: Devices { published: impact.counts.published, allocated: impact.counts.allocated },
            condition,
            pods: pods.collect(),
            namespaces: &impact.namespaces,
            budgets: budgets.collect(),
            differences,
            incomplete,
        }
    }
}
