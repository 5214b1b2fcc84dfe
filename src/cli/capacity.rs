//! The device counts of each class before and after a change, which HTML pages draw as bars.
//!
//! Totals and taints come from the changed objects. Which devices are allocated, blocked and free after the change is
//! an average over the simulated runs of a forecast, which can choose different devices.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::report::record::{Json, collect_records, record, to_json_text};
use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Doc};
use tollgate_drain::DrainPlan;
use tollgate_forecast::{
    DeviceCounts, DeviceForecast, DeviceReport, DeviceState, ObjectKind, State, report_devices,
};

/// Kinds of changed objects that are applied before the devices are counted again. Not claims or pods: which devices
/// these take and release comes from the forecast.
const KINDS_CHANGING_CAPACITY: [ObjectKind; 4] =
    [ObjectKind::DeviceTaintRule, ObjectKind::ResourceSlice, ObjectKind::DeviceClass, ObjectKind::Node];

/// Returns JSON with the device counts of each class before and after a forecast in which the objects `changes`
/// are applied. `devices` are those of the forecast; `None` without them.
pub(super) fn device_count_changes_json(
    state: &State<'_>,
    changes: &[Doc<'_>],
    devices: &[DeviceForecast],
    profile: &Profile,
) -> Option<String> {
    if devices.is_empty() {
        return None;
    }
    let before = report_devices(state, profile);
    let mut later = state.clone();
    for change in changes.iter().map(Doc::root) {
        let kind = ObjectKind::from_type_meta(change.get("apiVersion").str(), change.get("kind").str());
        if kind.is_some_and(|kind| KINDS_CHANGING_CAPACITY.contains(&kind)) {
            later.add(change);
        }
    }
    let after = report_devices(&later, profile);
    let counts_after = class_counts_after_runs(&after, devices);
    Some(changed_counts_json(
        &counts_by_class(&before, before.class_counts()),
        &counts_by_class(&after, counts_after),
    ))
}

/// Returns JSON with the device counts of each class before and after a drain with the taint `key`; `None` if it is not
/// known where pods go.
pub(super) fn drain_device_count_changes_json(
    state: &State<'_>,
    plan: &DrainPlan,
    key: &str,
    profile: &Profile,
) -> Option<String> {
    let rules: Vec<String> = plan.rules.iter().map(|rule| rule.noschedule_json(key, profile)).collect();
    let rules: Vec<Doc<'_>> = rules.iter().filter_map(|rule| doc::parse(rule).ok()).collect();
    device_count_changes_json(state, &rules, &plan.devices_after, profile)
}

/// Returns the device counts of each class of the report, with the averages of the forecast for what its pods change.
fn class_counts_after_runs(after: &DeviceReport<'_>, devices: &[DeviceForecast]) -> Vec<DeviceCounts> {
    let forecasts: HashMap<(&str, &str), &DeviceForecast> =
        devices.iter().map(|device| ((device.slice.as_str(), device.device.as_str()), device)).collect();
    let mut sums = vec![StateSums::default(); after.classes.len()];
    for device in &after.devices {
        // Devices that no slice publishes belong to no class.
        let Some(forecast) = device.slice.and_then(|slice| forecasts.get(&(slice, device.device))) else {
            continue;
        };
        for class in &device.classes {
            let Some(sum) = sums.get_mut(*class) else { continue };
            sum.allocated += forecast.allocated;
            sum.blocked += forecast.blocked;
            if device.has_state(DeviceState::Tainted) {
                sum.allocated_and_tainted += forecast.allocated;
            } else {
                sum.free += forecast.available;
            }
        }
    }
    let counts = after.class_counts().into_iter().zip(sums).map(|(count, sum)| {
        let allocated = rounded_count(sum.allocated);
        DeviceCounts {
            allocated,
            allocated_and_tainted: rounded_count(sum.allocated_and_tainted),
            blocked: rounded_count(sum.blocked),
            // Rounded together, so that a device that is allocated in half of the runs is neither counted twice nor
            // left out, which would show it as blocked.
            free: rounded_count(sum.allocated + sum.free) - allocated,
            ..count
        }
    });
    counts.collect()
}

/// Average numbers of devices of a class in each state that pods change.
#[derive(Clone, Copy, Default)]
struct StateSums {
    allocated: f64,
    allocated_and_tainted: f64,
    blocked: f64,
    free: f64,
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
fn changed_counts_json(
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
        "allocatedAndTainted": counts.allocated_and_tainted,
        "blocked": counts.blocked,
        "free": counts.free,
        "error" if given: error,
    }
}
