//! JSON output: one object. Its schema is `tollgate schema devices`.

use std::collections::BTreeMap;

use crate::cli::capacity;
use crate::report::record::{Json, collect_records, record};
use tollgate_forecast::{DeviceCounts, DeviceReport, DeviceState, Holder, ReportedDevice, ReportedTaint};

/// Returns the report as JSON. `incomplete` lists what the dump does not contain, or what could not be listed in
/// the cluster.
pub(super) fn devices_record(
    report: &DeviceReport<'_>,
    shown_classes: &[usize],
    (profile, at): (&str, &str),
    incomplete: &[String],
) -> Json {
    let class_name = |place: usize| report.classes.get(place).map_or("", |class| class.name);
    let classes = report.classes.iter().zip(report.class_counts()).enumerate();
    let classes = classes.filter(|(place, _)| shown_classes.contains(place));
    let classes = classes.map(|(_, (class, counts))| {
        capacity::class_counts_record(class.name, counts, class.error.as_deref())
    });
    let totals: DeviceCounts = report.devices.iter().collect();
    record! {
        "profile": profile,
        "at": at,
        "devices": collect_records(report.devices.iter().map(|device| device_record(device, &class_name))),
        "classes": collect_records(classes),
        "totals": record! {
            "devices": totals.total,
            "allocated": totals.allocated,
            "tainted": totals.tainted,
            "blocked": totals.blocked,
            "free": totals.free,
        },
        "incomplete": incomplete,
    }
}

fn device_record<'a>(device: &'a ReportedDevice<'a>, class_name: &dyn Fn(usize) -> &'a str) -> Json {
    let is_shared = device.has_state(DeviceState::Shared);
    let left = device.capacity_left.iter().map(|(name, amount)| (*name, amount.text().into_owned()));
    let errors = device.class_errors.iter().map(|(class, message)| {
        record! { "class": class_name(*class), "message": message }
    });
    record! {
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
        "slice": device.slice,
        "node": device.node,
        "states": device.states.iter().map(|state| state.name()).collect::<Vec<_>>(),
        "blockedBy" if given: device.blocked_by.as_deref(),
        // What is left of the capacities of a shared device.
        "capacityLeft" if is_shared: left.collect::<BTreeMap<&str, String>>(),
        "classes": device.classes.iter().map(|class| class_name(*class)).collect::<Vec<_>>(),
        "classErrors": collect_records(errors),
        "taints": collect_records(device.taints.iter().map(|taint| taint_record(taint, device.slice))),
        "holders": collect_records(device.holders.iter().map(holder_record)),
    }
}

fn taint_record(taint: &ReportedTaint<'_>, slice: Option<&str>) -> Json {
    let (kind, name) = match taint.rule {
        Some(name) => ("DeviceTaintRule", name),
        None => ("ResourceSlice", slice.unwrap_or_default()),
    };
    record! {
        "key": taint.key,
        "value": taint.value,
        "effect": taint.effect,
        "source": record! { "kind": kind, "name": name },
    }
}

fn holder_record(holder: &Holder<'_>) -> Json {
    let workload = holder.workload.as_ref();
    record! {
        "claim": record! { "namespace": holder.namespace, "name": holder.claim },
        "pod": holder.pod.map(|pod| record! { "namespace": holder.namespace, "name": pod }),
        "workload": workload.map(|workload| record! { "kind": workload.kind, "name": workload.name }),
        "adminAccess": holder.admin_access,
    }
}
