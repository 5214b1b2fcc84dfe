//! JSON output: one object per rule and profile, one per line. Its schema is `tollgate schema impact`.

use super::by::{ImpactGroups, OutcomeCounts};
use super::{Assessment, format_time, listed_count};
use crate::cli::forecast::totals_record;
use crate::report::record::{Json, collect_records, record};
use tollgate_engine::impact::{
    EVICTION_IN_PROGRESS, Impact, OutcomeReason, Partition, PodImpact, PodOutcome, TaintSource, Tolerance,
};
use tollgate_formats::gotime::Timestamp;

/// Maximum number of partitions that are listed.
const MAX_LISTED_PARTITIONS: usize = 100;

/// Returns the impact of a rule or slice as JSON. `incomplete` lists what the dump does not contain, or what
/// could not be listed in the cluster.
pub(super) fn impact_record(
    assessment: &Assessment<'_>,
    incomplete: &[String],
    limit: Option<usize>,
) -> Json {
    let Assessment { query, impact, budgets, no_effect, elsewhere, .. } = assessment;
    let (by, groups) = assessment.groups.as_ref().map(ImpactGroups::flag_value_and_records).unzip();
    let is_grouped = by.is_some();
    let is_written = no_effect.is_none() && incomplete.is_empty();
    let condition = impact.condition.as_ref().filter(|_| is_written).map(|condition| {
        record! {
            "type": EVICTION_IN_PROGRESS,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
    });
    let shown = listed_count(impact.pods.len(), limit.unwrap_or(0));
    let violated = budgets.iter().map(|budget| {
        record! {
            "namespace": budget.namespace,
            "name": budget.name,
            "violatedBy": budget.violated_by,
        }
    });
    let restarts = assessment.restarts.iter().map(|group| {
        record! {
            "kind": group.kind,
            "namespace": group.namespace,
            "name": group.name,
            "policy": group.policy,
            "lost": group.lost,
            "restarted": group.restarted.len(),
            "effect": group.effect,
        }
    });
    record! {
        "rule": query.change.name(),
        "profile": query.profile.name,
        "at": format_time(query.at),
        "devices": record! {
            "published": impact.counts.published,
            "allocated": impact.counts.allocated,
        },
        "totals": impact_totals_record(impact, budgets.len()),
        "condition": condition,
        "noEffect": no_effect,
        // On which feature gates it depends whether the change does anything; the rest assumes that it does.
        "dependsOn" if given: assessment.depends_on,
        // Classes or expressions select devices, and cannot be evaluated: all numbers are upper bounds.
        "upperBound" if given: impact.is_upper_bound,
        "partitions" if given: partitions_record(&impact.partitions),
        "pods": collect_records(impact.pods.iter().take(shown).map(|pod| pod_record(pod, query.at))),
        "podsOmitted": impact.pods.len() - shown,
        "namespaces": impact.namespaces,
        "budgets": collect_records(violated),
        // What LeaderWorkerSets, JobSets and PodGroups do with their other pods.
        "restarts" if given: collect_records(restarts),
        // What becomes of the evicted pods, if the state has nodes.
        "replacements" if given: elsewhere.as_ref().map(|elsewhere| totals_record(elsewhere.forecast.totals)),
        "by" if is_grouped: by,
        "groups" if is_grouped: groups,
        "differences": assessment.differences,
        "incomplete": incomplete,
    }
}

/// Returns the partitions of the selected devices that the scheduler can still allocate; `None` if there are
/// none.
fn partitions_record(partitions: &[Partition<'_>]) -> Option<Json> {
    let devices = partitions.iter().take(MAX_LISTED_PARTITIONS).map(|partition| {
        record! { "driver": partition.driver, "pool": partition.pool, "device": partition.device }
    });
    let (count, devices) = (partitions.len(), collect_records(devices));
    (count > 0).then(|| record! { "count": count, "devices": devices, "omitted": count - devices.len() })
}

fn pod_record(pod: &PodImpact<'_>, now: Timestamp) -> Json {
    let owner = pod.owner.and_then(|owner| owner.split_once('/'));
    let at = match pod.outcome {
        PodOutcome::EvictedNow => Some(format_time(now)),
        PodOutcome::EvictedAt(time) => Some(format_time(time)),
        PodOutcome::Tolerated | PodOutcome::Unaffected => None,
    };
    record! {
        "namespace": pod.namespace,
        "name": pod.name,
        "owner": owner.map(|(kind, name)| record! { "kind": kind, "name": name }),
        "outcome": pod.outcome.name(),
        "at": at,
        "because": pod.reasons.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "reasons": collect_records(pod.reasons.iter().map(reason_record)),
    }
}

/// Returns the totals of an impact, which the text shows in its last lines.
fn impact_totals_record(impact: &Impact<'_>, budgets_violated: usize) -> Json {
    let counts = OutcomeCounts::from_impact(impact);
    record! {
        "claims": impact.claims,
        "pods": impact.pods.len(),
        "evicted": impact.evicted_pod_count(),
        "evictedNow": counts.now,
        "evictedLater": counts.later,
        "tolerated": counts.tolerated,
        "unaffected": counts.unaffected,
        // Those whose replacements can get a tainted device.
        "evictedAgain" if given: impact.pods_with_evictable_replacement().count(),
        // Those that lose pods.
        "namespaces": impact.namespaces.len(),
        "budgetsViolated": budgets_violated,
        "lastEviction": counts.last.map(format_time),
    }
}

/// Returns why a taint evicts a pod or not: claim, device, taint and toleration. The member `because` says the same in
/// words.
fn reason_record(reason: &OutcomeReason<'_>) -> Json {
    let parts = reason.parts();
    let [driver, pool, device] = parts.device;
    let source = parts.source.map(|source| {
        let (kind, name) = match source {
            TaintSource::Rule(rule) => ("DeviceTaintRule", &*rule.name),
            TaintSource::Slice(name) => ("ResourceSlice", name),
            TaintSource::Patch(patch) => ("ResourceSlicePatch", &*patch.name),
        };
        record! { "kind": kind, "name": name }
    });
    let (tolerated, toleration) = match parts.tolerance {
        None => (None, None),
        Some(Tolerance::No) => (Some("no"), None),
        Some(Tolerance::For(toleration, _)) => (Some("limited"), Some(toleration)),
        Some(Tolerance::Forever(toleration)) => (Some("forever"), Some(toleration)),
    };
    let toleration = toleration.map(|toleration| {
        record! {
            "key": *toleration.key,
            // What the server fills in.
            "operator": if toleration.operator.is_empty() { "Equal" } else { &toleration.operator },
            "value": *toleration.value,
            "effect": *toleration.effect,
            "tolerationSeconds": toleration.seconds,
        }
    });
    let taint = parts.taint.map(|taint| {
        record! {
            "key": *taint.key,
            "value": *taint.value,
            "effect": *taint.effect,
            // What has the taint, if it is not the change that was asked about.
            "source" if given: source,
        }
    });
    record! {
        "claim": record! { "namespace": parts.claim.0, "name": parts.claim.1 },
        "device": record! { "driver": driver, "pool": pool, "device": device },
        // The taint that decides; none if the controller ignores the pod for this claim.
        "taint" if given: taint,
        "tolerated" if given: tolerated,
        "toleration" if given: toleration,
        "notEvicted" if given: parts.not_evicted,
    }
}
