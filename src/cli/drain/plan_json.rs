//! The plan of a drain as JSON: one object on one line, which is an event like those of a run. Its schema is
//! `tollgate schema drain`.

use serde::Serialize;

use super::PlanReport;
use super::plan_text::verdict;
use tollgate_drain::{ClaimHolder, DeviceId, DrainPlan, Fate, PlannedPod, PlannedRule, Wave};
use tollgate_formats::gotime;

#[derive(Serialize)]
pub(super) struct PlanRecord<'a> {
    at: String,
    event: &'static str,
    profile: &'static str,
    samples: u32,
    targets: &'a [String],
    key: &'a str,
    verdict: String,
    rules: Vec<RuleRecord<'a>>,
    devices: Vec<DeviceRecord<'a>>,
    pods: Vec<PodRecord<'a>>,
    waves: Vec<WaveRecord<'a>>,
    #[serde(rename = "claimsWithoutPods")]
    claims_without_pods: Vec<ClaimRecord<'a>>,
    #[serde(rename = "dominatedBy")]
    dominated_by: Option<&'a str>,
    notes: &'a [String],
    /// What the dump does not contain, or what could not be listed in the cluster.
    incomplete: &'a [String],
    totals: Totals,
}

#[derive(Serialize)]
struct RuleRecord<'a> {
    name: &'a str,
    driver: Option<&'a str>,
    pool: Option<&'a str>,
    device: Option<&'a str>,
    published: usize,
}

#[derive(Serialize)]
struct DeviceRecord<'a> {
    driver: &'a str,
    pool: &'a str,
    device: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodRecord<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    /// Empty if the pod is not bound.
    node: &'a str,
    workload: Option<Workload<'a>>,
    devices: Vec<DeviceRecord<'a>>,
    claims: &'a [String],
    budgets: &'a [String],
    grace_seconds: u64,
    forceable: bool,
    #[serde(flatten)]
    fate: FateRecord<'a>,
}

#[derive(Serialize)]
struct Workload<'a> {
    kind: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "fate", rename_all = "lowercase")]
enum FateRecord<'a> {
    /// Waves are counted from 1, as in the text and in events.
    Moves {
        wave: usize,
        nodes: &'a [String],
    },
    Stays {
        reason: &'static str,
        why: &'a str,
        remedy: &'a str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaveRecord<'a> {
    pods: Vec<PodName<'a>>,
    limited_by: Option<&'a str>,
    restarts: &'a [String],
}

#[derive(Serialize)]
struct PodName<'a> {
    namespace: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct ClaimRecord<'a> {
    namespace: &'a str,
    claim: &'a str,
    devices: Vec<DeviceRecord<'a>>,
    users: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    devices: usize,
    pods: usize,
    moving: usize,
    staying: usize,
    forceable: usize,
    waves: usize,
    claims_without_pods: usize,
}

impl<'a> PlanRecord<'a> {
    pub(super) fn of(report: &'a PlanReport) -> PlanRecord<'a> {
        let PlanReport { profile, at, samples, request, plan, incomplete } = report;
        PlanRecord {
            at: gotime::rfc3339(*at),
            event: "plan",
            profile: profile.name,
            samples: *samples,
            targets: &request.typed,
            key: &request.key,
            verdict: verdict(plan),
            rules: plan.rules.iter().map(RuleRecord::of).collect(),
            devices: plan.devices.iter().map(DeviceRecord::of).collect(),
            pods: plan.pods.iter().map(PodRecord::of).collect(),
            waves: plan.waves.iter().map(|wave| WaveRecord::of(wave, plan)).collect(),
            claims_without_pods: plan.claims_without_pods.iter().map(ClaimRecord::of).collect(),
            dominated_by: plan.dominated_by.as_deref(),
            notes: &plan.notes,
            incomplete,
            totals: Totals::of(plan),
        }
    }
}

impl<'a> RuleRecord<'a> {
    fn of(rule: &'a PlannedRule) -> RuleRecord<'a> {
        RuleRecord {
            name: &rule.name,
            driver: rule.selects.driver.as_deref(),
            pool: rule.selects.pool.as_deref(),
            device: rule.selects.device.as_deref(),
            published: rule.published,
        }
    }
}

impl<'a> DeviceRecord<'a> {
    fn of(id: &'a DeviceId) -> DeviceRecord<'a> {
        DeviceRecord { driver: &id.driver, pool: &id.pool, device: &id.device }
    }
}

impl<'a> PodRecord<'a> {
    fn of(pod: &'a PlannedPod) -> PodRecord<'a> {
        let workload = pod.workload.as_ref();
        PodRecord {
            namespace: &pod.namespace,
            name: &pod.name,
            uid: &pod.uid,
            node: &pod.node,
            workload: workload.map(|workload| Workload { kind: &workload.kind, name: &workload.name }),
            devices: pod.devices.iter().map(DeviceRecord::of).collect(),
            claims: &pod.claims,
            budgets: &pod.budgets,
            grace_seconds: pod.grace_seconds,
            forceable: pod.is_forceable,
            fate: match &pod.fate {
                Fate::Moves { wave, nodes } => FateRecord::Moves { wave: wave + 1, nodes },
                Fate::Stays { reason, why, remedy } => {
                    FateRecord::Stays { reason: reason.name(), why, remedy }
                }
            },
        }
    }
}

impl<'a> WaveRecord<'a> {
    fn of(wave: &'a Wave, plan: &'a DrainPlan) -> WaveRecord<'a> {
        let pods = wave.pods.iter().filter_map(|place| plan.pods.get(*place));
        let pods = pods.map(|pod| PodName { namespace: &pod.namespace, name: &pod.name }).collect();
        WaveRecord { pods, limited_by: wave.limited_by.as_deref(), restarts: &wave.restarts }
    }
}

impl<'a> ClaimRecord<'a> {
    fn of(holder: &'a ClaimHolder) -> ClaimRecord<'a> {
        let ClaimHolder { namespace, claim, devices, users, pods: _ } = holder;
        ClaimRecord { namespace, claim, devices: devices.iter().map(DeviceRecord::of).collect(), users }
    }
}

impl Totals {
    fn of(plan: &DrainPlan) -> Totals {
        let moving = plan.pods.iter().filter(|pod| matches!(pod.fate, Fate::Moves { .. })).count();
        Totals {
            devices: plan.devices.len(),
            pods: plan.pods.len(),
            moving,
            staying: plan.pods.len() - moving,
            forceable: plan.pods.iter().filter(|pod| pod.is_forceable).count(),
            waves: plan.waves.len(),
            claims_without_pods: plan.claims_without_pods.len(),
        }
    }
}
