//! The plan of a drain as JSON: one object on one line, which is an event like those of a run. Its schema is
//! `tollgate schema drain`.

use super::PlanReport;
use super::plan_text::plan_summary;
use crate::report::record::{Json, collect_records, record};
use tollgate_drain::{
    Budget, ClaimHoldingSelectedDevices, DeviceId, DrainPlan, PlannedPod, PlannedRule, PodDecision, Wave,
};
use tollgate_formats::gotime;

/// Returns the plan as the JSON event `plan`.
pub(super) fn plan_record(report: &PlanReport) -> Json {
    let PlanReport { profile, at, samples, request, plan, incomplete } = report;
    record! {
        "at": gotime::rfc3339(*at),
        "event": "plan",
        "profile": profile.name,
        "samples": samples,
        "targets": request.typed,
        "key": request.key,
        "verdict": plan_summary(plan),
        "rules": collect_records(plan.rules.iter().map(rule_record)),
        "devices": device_records(&plan.devices),
        "pods": collect_records(plan.pods.iter().map(pod_record)),
        "waves": collect_records(plan.waves.iter().map(|wave| wave_record(wave, plan))),
        "budgets": collect_records(plan.budgets.iter().map(budget_record)),
        "claimsWithoutPods": collect_records(plan.claims_without_pods.iter().map(claim_record)),
        "dominatedBy": plan.dominated_by,
        "notes": plan.notes,
        // What the dump does not contain, or what could not be listed in the cluster.
        "incomplete": incomplete,
        "totals": totals_record(plan),
    }
}

fn rule_record(rule: &PlannedRule) -> Json {
    record! {
        "name": rule.name,
        "driver": rule.selects.driver,
        "pool": rule.selects.pool,
        "device": rule.selects.device,
        "published": rule.published,
    }
}

fn device_records(devices: &[DeviceId]) -> Vec<Json> {
    let records = devices.iter().map(|id| {
        record! { "driver": id.driver, "pool": id.pool, "device": id.device }
    });
    collect_records(records)
}

fn pod_record(pod: &PlannedPod) -> Json {
    let (workload, moves) = (pod.workload.as_ref(), matches!(pod.fate, PodDecision::Moves { .. }));
    // Waves are counted from 1, as in the text and in events.
    let (wave, nodes) = match &pod.fate {
        PodDecision::Moves { wave, nodes } => (wave + 1, nodes.as_slice()),
        PodDecision::Stays { .. } => Default::default(),
    };
    let (stays, reason, why, remedy) = match &pod.fate {
        PodDecision::Stays { reason, why, remedy } => (true, reason.name(), why.as_str(), remedy.as_str()),
        PodDecision::Moves { .. } => Default::default(),
    };
    record! {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        // Empty if the pod is not bound.
        "node": pod.node,
        "workload": workload.map(|workload| record! { "kind": workload.kind, "name": workload.name }),
        "devices": device_records(&pod.devices),
        "claims": pod.claims,
        "budgets": pod.budgets,
        "graceSeconds": pod.grace_seconds,
        "forceable": pod.is_forceable,
        "fate": if moves { "moves" } else { "stays" },
        "wave" if moves: wave,
        "nodes" if moves: nodes,
        "reason" if stays: reason,
        "why" if stays: why,
        "remedy" if stays: remedy,
    }
}

fn wave_record(wave: &Wave, plan: &DrainPlan) -> Json {
    let pods = wave.pods.iter().filter_map(|place| plan.pods.get(*place));
    let pods = pods.map(|pod| record! { "namespace": pod.namespace, "name": pod.name });
    record! { "pods": collect_records(pods), "limitedBy": wave.limited_by, "restarts": wave.restarts }
}

fn budget_record(budget: &Budget) -> Json {
    record! {
        "namespace": budget.namespace,
        "name": budget.name,
        "disruptionsAllowed": budget.allowed,
        // When all pods of the PDB are healthy.
        "disruptionsAllowedAtBest": budget.allowed_at_best,
    }
}

fn claim_record(holder: &ClaimHoldingSelectedDevices) -> Json {
    record! {
        "namespace": holder.namespace,
        "claim": holder.claim,
        "devices": device_records(&holder.devices),
        "users": holder.users,
    }
}

fn totals_record(plan: &DrainPlan) -> Json {
    let moving = plan.pods.iter().filter(|pod| matches!(pod.fate, PodDecision::Moves { .. })).count();
    record! {
        "devices": plan.devices.len(),
        "pods": plan.pods.len(),
        "moving": moving,
        "staying": plan.pods.len() - moving,
        "forceable": plan.pods.iter().filter(|pod| pod.is_forceable).count(),
        "waves": plan.waves.len(),
        "claimsWithoutPods": plan.claims_without_pods.len(),
    }
}
