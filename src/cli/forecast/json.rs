//! JSON output: one object per profile, each on one line. Its schema is `tollgate schema forecast`.

use super::ForecastReport;
use super::given::{AppliedObject, RefusedObject};
use crate::report::record::{Json, collect_records, record};
use tollgate_document::doc;
use tollgate_forecast::{
    EvictedPod, ObjectKind, PlacedClaim, PlacedDevice, PlacementWithRunCount, PodForecast, PodOutcomeCounts,
};
use tollgate_formats::gotime;

/// Returns the forecast for one profile as JSON.
pub(super) fn forecast_record(report: &ForecastReport) -> Json {
    let ForecastReport { profile, at, forecast, admission } = report;
    record! {
        "profile": profile.name,
        "at": gotime::rfc3339(*at),
        "samples": forecast.samples,
        "applied": collect_records(admission.latest_version_of_each_accepted_object().into_iter().map(applied_record)),
        "evicted": collect_records(forecast.evicted.iter().map(evicted_record)),
        "pods": collect_records(forecast.pods.iter().map(pod_record)),
        "refused": collect_records(admission.refused.iter().map(refused_record)),
        "totals": totals_record(forecast.totals),
    }
}

fn applied_record(object: AppliedObject<'_>) -> Json {
    let is_rule = object.kind == ObjectKind::DeviceTaintRule;
    let stored = doc::parse(object.stored).ok().filter(|_| is_rule);
    let spec = stored.as_ref().map(|stored| stored.root().get("spec"));
    let selector = spec.map(|spec| spec.get("deviceSelector")).filter(|selector| selector.exists());
    let selector = selector.map(|selector| {
        record! {
            "driver" if given: selector.get("driver").str(),
            "pool" if given: selector.get("pool").str(),
            "device" if given: selector.get("device").str(),
            "deviceClassName" if given: selector.get("deviceClassName").str(),
            // The number of CEL expressions.
            "selectors" if given: selector.get("selectors").items().count(),
        }
    });
    let taint = spec.map(|spec| spec.get("taint")).map(|taint| {
        record! {
            "key": taint.get("key").str(),
            "value" if given: taint.get("value").str(),
            "effect": taint.get("effect").str(),
        }
    });
    record! {
        "kind": object.kind.name(),
        "namespace": object.namespace,
        // Null if the API server generates it.
        "name": object.name,
        "deviceSelector" if given: selector,
        "taint" if given: taint,
    }
}

/// Returns the number of pods for each outcome.
pub(in crate::cli) fn totals_record(totals: PodOutcomeCounts) -> Json {
    record! {
        "fits": totals.fits,
        "sometimes": totals.sometimes,
        "pending": totals.pending,
        "unknown": totals.unknown,
        "notRecreated": totals.not_recreated,
    }
}

fn evicted_record(pod: &EvictedPod) -> Json {
    record! { "namespace": pod.namespace, "name": pod.name, "at": gotime::rfc3339(pod.at) }
}

fn pod_record(pod: &PodForecast) -> Json {
    let workload = pod.workload.as_ref();
    record! {
        "namespace": pod.namespace,
        // Null if the name is not known before the pod is created.
        "name": pod.name,
        "origin": pod.origin.name(),
        "replaces": pod.replaces,
        "workload": workload.map(|workload| record! { "kind": workload.kind, "name": workload.name }),
        "outcome": pod.outcome.name(),
        // The number of courses in which the pod is bound at the end.
        "fits": pod.fits,
        "notRecreated": pod.not_recreated,
        "evictedAgain": pod.evicted_again,
        "placements": collect_records(pod.placements.iter().map(placement_record)),
        "placementsOmitted": pod.placements_omitted,
        "reason": pod.reason,
        "message": pod.message,
        "explanation": pod.explanation,
        "notModelled": pod.not_modelled,
    }
}

fn placement_record(placement: &PlacementWithRunCount) -> Json {
    let PlacementWithRunCount { courses, place } = placement;
    record! {
        "node": place.node,
        "courses": courses,
        "claims": collect_records(place.claims.iter().map(claim_record)),
    }
}

fn claim_record(claim: &PlacedClaim) -> Json {
    record! {
        // Null for the claim that the scheduler makes for extended resources.
        "ref": claim.reference,
        // Null for a generated name.
        "name": claim.name,
        "devices": collect_records(claim.devices.iter().map(device_record)),
    }
}

fn device_record(device: &PlacedDevice) -> Json {
    record! {
        "request": device.request,
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
        "consumedCapacity": device.consumed_capacity,
    }
}

fn refused_record(refused: &RefusedObject) -> Json {
    let findings = refused.reasons.iter().map(|reason| {
        record! { "rule": reason.rule, "field": reason.field, "message": reason.message }
    });
    record! {
        "file": refused.file,
        "apiVersion": refused.api_version,
        "kind": refused.kind,
        // Empty for kinds without a namespace.
        "namespace": refused.namespace,
        "name": refused.name,
        "findings": collect_records(findings),
    }
}
