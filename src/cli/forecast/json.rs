//! JSON output: one object per profile, each on one line. Its schema is `tollgate schema forecast`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ForecastReport;
use super::given::RefusedObject;
use tollgate_forecast::{EvictedPod, PlacedClaim, PlacedDevice, Placement, PodForecast, Totals};
use tollgate_formats::gotime;

#[derive(Serialize)]
pub(super) struct Record<'a> {
    profile: &'static str,
    at: String,
    samples: u32,
    evicted: Vec<Evicted<'a>>,
    pods: Vec<Pod<'a>>,
    refused: Vec<Refused<'a>>,
    totals: TotalsRecord,
}

#[derive(Serialize)]
struct Evicted<'a> {
    namespace: &'a str,
    name: &'a str,
    at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod<'a> {
    namespace: &'a str,
    /// Null if the name is not known before the pod is created.
    name: Option<&'a str>,
    origin: &'static str,
    replaces: Option<&'a str>,
    workload: Option<Workload<'a>>,
    outcome: &'static str,
    /// The number of courses in which the pod is bound at the end.
    fits: u32,
    /// The number of courses in which nothing creates the pod.
    not_recreated: u32,
    evicted_again: bool,
    placements: Vec<PlacementRecord<'a>>,
    placements_omitted: usize,
    reason: Option<&'a str>,
    message: Option<&'a str>,
    explanation: Option<&'a str>,
    not_modelled: &'a [String],
}

#[derive(Serialize)]
struct Workload<'a> {
    kind: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct PlacementRecord<'a> {
    node: &'a str,
    courses: u32,
    claims: Vec<Claim<'a>>,
}

#[derive(Serialize)]
struct Claim<'a> {
    /// Null for the claim that the scheduler makes for extended resources.
    r#ref: Option<&'a str>,
    /// Null for a generated name.
    name: Option<&'a str>,
    devices: Vec<Device<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Device<'a> {
    request: &'a str,
    driver: &'a str,
    pool: &'a str,
    device: &'a str,
    consumed_capacity: Option<&'a BTreeMap<String, String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Refused<'a> {
    file: &'a str,
    api_version: &'a str,
    kind: &'a str,
    /// Empty for kinds without a namespace.
    namespace: &'a str,
    name: &'a str,
    findings: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct Finding<'a> {
    rule: Option<&'static str>,
    field: &'a str,
    message: &'a str,
}

/// How many pods have each outcome.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct TotalsRecord {
    fits: usize,
    sometimes: usize,
    pending: usize,
    unknown: usize,
    not_recreated: usize,
}

impl<'a> Record<'a> {
    pub(super) fn of(report: &'a ForecastReport) -> Record<'a> {
        let ForecastReport { profile, at, forecast, admission } = report;
        Record {
            profile: profile.name,
            at: gotime::rfc3339(*at),
            samples: forecast.samples,
            evicted: forecast.evicted.iter().map(Evicted::of).collect(),
            pods: forecast.pods.iter().map(Pod::of).collect(),
            refused: admission.refused.iter().map(Refused::of).collect(),
            totals: TotalsRecord::of(forecast.totals),
        }
    }
}

impl TotalsRecord {
    pub(in crate::cli) fn of(totals: Totals) -> TotalsRecord {
        let Totals { fits, sometimes, pending, unknown, not_recreated } = totals;
        TotalsRecord { fits, sometimes, pending, unknown, not_recreated }
    }
}

impl<'a> Evicted<'a> {
    fn of(pod: &'a EvictedPod) -> Evicted<'a> {
        Evicted { namespace: &pod.namespace, name: &pod.name, at: gotime::rfc3339(pod.at) }
    }
}

impl<'a> Pod<'a> {
    fn of(pod: &'a PodForecast) -> Pod<'a> {
        let workload = pod.workload.as_ref();
        Pod {
            namespace: &pod.namespace,
            name: pod.name.as_deref(),
            origin: pod.origin.name(),
            replaces: pod.replaces.as_deref(),
            workload: workload.map(|workload| Workload { kind: &workload.kind, name: &workload.name }),
            outcome: pod.outcome.name(),
            fits: pod.fits,
            not_recreated: pod.not_recreated,
            evicted_again: pod.evicted_again,
            placements: pod.placements.iter().map(PlacementRecord::of).collect(),
            placements_omitted: pod.placements_omitted,
            reason: pod.reason.as_deref(),
            message: pod.message.as_deref(),
            explanation: pod.explanation.as_deref(),
            not_modelled: &pod.not_modelled,
        }
    }
}

impl<'a> PlacementRecord<'a> {
    fn of(placement: &'a Placement) -> PlacementRecord<'a> {
        let Placement { courses, place } = placement;
        let claims = place.claims.iter().map(Claim::of).collect();
        PlacementRecord { node: &place.node, courses: *courses, claims }
    }
}

impl<'a> Claim<'a> {
    fn of(claim: &'a PlacedClaim) -> Claim<'a> {
        let devices = claim.devices.iter().map(Device::of).collect();
        Claim { r#ref: claim.reference.as_deref(), name: claim.name.as_deref(), devices }
    }
}

impl<'a> Device<'a> {
    fn of(device: &'a PlacedDevice) -> Device<'a> {
        Device {
            request: &device.request,
            driver: &device.driver,
            pool: &device.pool,
            device: &device.device,
            consumed_capacity: device.consumed_capacity.as_ref(),
        }
    }
}

impl<'a> Refused<'a> {
    fn of(refused: &'a RefusedObject) -> Refused<'a> {
        let findings = refused.reasons.iter().map(|reason| Finding {
            rule: reason.rule,
            field: &reason.field,
            message: &reason.message,
        });
        Refused {
            file: &refused.file,
            api_version: &refused.api_version,
            kind: &refused.kind,
            namespace: &refused.namespace,
            name: &refused.name,
            findings: findings.collect(),
        }
    }
}
