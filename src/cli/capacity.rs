//! The device counts of each class before and after a change, which HTML pages draw as bars.
//!
//! After a change, its taints are in force, the claims of evicted pods are gone, and pods of the forecast that fit hold
//! devices. The simulated runs of a forecast can choose different devices, so numbers are averages over the runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::report::record::{Json, collect_records, record, to_json_text};
use tollgate_api::profile::Profile;
use tollgate_document::doc::Doc;
use tollgate_drain::{DrainPlan, PodDecision};
use tollgate_forecast::{
    DeviceCounts, DeviceReport, DeviceState, Forecast, ObjectKind, ReportedDevice, State, report_devices,
};

/// A pod or a claim by namespace and name.
type NamespaceAndName<'a> = (&'a str, &'a str);

/// Kinds of changed objects that are applied before the devices are counted again. Not claims or pods: which devices
/// these take and release comes from the forecast.
const KINDS_CHANGING_CAPACITY: [ObjectKind; 4] =
    [ObjectKind::DeviceTaintRule, ObjectKind::ResourceSlice, ObjectKind::DeviceClass, ObjectKind::Node];

/// Returns JSON with the device counts of each class before and after a forecast in which the objects `changes`
/// are applied.
pub(super) fn forecast_device_counts_json(
    state: &State<'_>,
    changes: &[Doc<'_>],
    forecast: &Forecast,
    profile: &Profile,
) -> String {
    let before = report_devices(state, profile);
    let evicted = forecast.evicted.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
    let mut later = state.clone();
    for change in changes.iter().map(Doc::root) {
        let kind = ObjectKind::from_type_meta(change.get("apiVersion").str(), change.get("kind").str());
        if kind.is_some_and(|kind| KINDS_CHANGING_CAPACITY.contains(&kind)) {
            later.add(change);
        }
    }
    let released = released_claims(&before, &evicted);
    later.retain(ObjectKind::ResourceClaim, |claim| !released.contains(&(claim.namespace(), claim.name())));
    let after = report_devices(&later, profile);
    let mut counts = after.class_counts();
    for (count, taken) in counts.iter_mut().zip(average_devices_taken_by_class(&after, forecast)) {
        count.allocated += rounded_count(taken.allocated);
        count.free = count.free.saturating_sub(rounded_count(taken.free));
    }
    device_count_changes_json(
        &counts_by_class(&before, before.class_counts()),
        &counts_by_class(&after, counts),
    )
}

/// Returns JSON with the device counts of each class before and after a drain: its devices are tainted, and each
/// pod that moves gets as many devices elsewhere.
pub(super) fn drain_device_counts_json(state: &State<'_>, plan: &DrainPlan, profile: &Profile) -> String {
    let before = report_devices(state, profile);
    let closed: BTreeSet<_> =
        plan.devices.iter().map(|id| (id.driver.as_str(), id.pool.as_str(), id.device.as_str())).collect();
    let moving = plan.pods.iter().filter_map(|pod| match &pod.fate {
        PodDecision::Moves { nodes, .. } => {
            Some(((pod.namespace.as_str(), pod.name.as_str()), !nodes.is_empty()))
        }
        PodDecision::Stays { .. } => None,
    });
    let moving: BTreeMap<NamespaceAndName<'_>, bool> = moving.collect();
    let mut after = before.class_counts();
    for device in &before.devices {
        let is_closed = closed.contains(&(device.driver, device.pool, device.device));
        let pods: Vec<_> = device.holders.iter().filter(|holder| !holder.admin_access).collect();
        let moves = |holder: &&tollgate_forecast::Holder<'_>| {
            holder.pod.and_then(|pod| moving.get(&(holder.namespace, pod)).copied())
        };
        let leaves =
            device.has_state(DeviceState::Allocated) && pods.iter().all(|holder| moves(holder).is_some());
        let has_replacement = leaves && pods.iter().any(|holder| moves(holder) == Some(true));
        let stays_usable =
            !is_closed && !device.has_state(DeviceState::Tainted) && !device.has_state(DeviceState::Blocked);
        for class in &device.classes {
            let Some(count) = after.get_mut(*class) else { continue };
            if is_closed && device.has_state(DeviceState::Free) {
                count.free = count.free.saturating_sub(1);
            }
            if is_closed && !device.has_state(DeviceState::Tainted) {
                count.tainted += 1;
            }
            if leaves {
                count.allocated = count.allocated.saturating_sub(1);
                count.free += usize::from(stays_usable);
            }
            if has_replacement {
                count.allocated += 1;
                count.free = count.free.saturating_sub(1);
            }
        }
    }
    device_count_changes_json(
        &counts_by_class(&before, before.class_counts()),
        &counts_by_class(&before, after),
    )
}

/// The claims that nobody uses once these pods are gone.
fn released_claims<'d>(
    report: &DeviceReport<'d>,
    evicted: &BTreeSet<NamespaceAndName<'_>>,
) -> BTreeSet<NamespaceAndName<'d>> {
    let (mut released, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for holder in report.devices.iter().flat_map(|device| &device.holders) {
        let is_evicted = holder.pod.is_some_and(|pod| evicted.contains(&(holder.namespace, pod)));
        let claims = if is_evicted { &mut released } else { &mut kept };
        claims.insert((holder.namespace, holder.claim));
    }
    &released - &kept
}

/// Number of devices of a class that the pods of a forecast get, on average over its simulated runs.
#[derive(Clone, Copy, Default)]
struct AverageDevicesTaken {
    /// Devices that become allocated: those that are not shared.
    allocated: f64,
    /// Devices that were free before.
    free: f64,
}

/// Returns for each device class of the report how many devices the pods of the forecast get.
fn average_devices_taken_by_class(
    report: &DeviceReport<'_>,
    forecast: &Forecast,
) -> Vec<AverageDevicesTaken> {
    let devices: HashMap<(&str, &str, &str), &ReportedDevice<'_>> =
        report.devices.iter().map(|device| ((device.driver, device.pool, device.device), device)).collect();
    let mut taken = vec![AverageDevicesTaken::default(); report.classes.len()];
    for pod in &forecast.pods {
        let listed: u32 = pod.placements.iter().map(|placement| placement.courses).sum();
        for placement in &pod.placements {
            // Placements that are not listed are like the others.
            let share = f64::from(placement.courses) / f64::from(listed.max(1)) * f64::from(pod.fits)
                / f64::from(forecast.samples.max(1));
            for placed in placement.place.claims.iter().flat_map(|claim| &claim.devices) {
                let key = (placed.driver.as_str(), placed.pool.as_str(), placed.device.as_str());
                let Some(device) = devices.get(&key) else { continue };
                for class in &device.classes {
                    let Some(taken) = taken.get_mut(*class) else { continue };
                    taken.allocated += if placed.consumed_capacity.is_none() { share } else { 0.0 };
                    taken.free += if device.has_state(DeviceState::Free) { share } else { 0.0 };
                }
            }
        }
    }
    taken
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of devices, which is never negative"
)]
fn rounded_count(number: f64) -> usize {
    number.round() as usize
}

fn counts_by_class<'d>(
    report: &DeviceReport<'d>,
    counts: Vec<DeviceCounts>,
) -> BTreeMap<&'d str, DeviceCounts> {
    report.classes.iter().map(|class| class.name).zip(counts).collect()
}

/// Returns JSON with the counts before and after, for each class that has devices.
fn device_count_changes_json(
    before: &BTreeMap<&str, DeviceCounts>,
    after: &BTreeMap<&str, DeviceCounts>,
) -> String {
    let names: BTreeSet<&&str> = before.keys().chain(after.keys()).collect();
    let changes = names.into_iter().filter_map(|name| {
        let of = |counts: &BTreeMap<&str, DeviceCounts>| counts.get(*name).copied().unwrap_or_default();
        let (before, after) = (of(before), of(after));
        (before.total + after.total > 0)
            .then(|| record! { "before": class_counts_record(name, before, None), "after": class_counts_record(name, after, None) })
    });
    to_json_text(&collect_records(changes))
}

/// Returns a JSON record with the device counts of a class; `error` says why its selector does not compile.
pub(super) fn class_counts_record(name: &str, counts: DeviceCounts, error: Option<&str>) -> Json {
    record! {
        "name": name,
        "total": counts.total,
        "allocated": counts.allocated,
        "tainted": counts.tainted,
        "blocked": counts.blocked,
        "free": counts.free,
        "error" if given: error,
    }
}
