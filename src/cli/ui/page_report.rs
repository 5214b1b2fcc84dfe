//! The report of `tollgate devices` as the pages draw it: as a value, because writing and reading JSON takes as long as
//! the report itself in a large cluster.

use super::KnownState;
use tollgate_forecast::{
    ClassMatchCache, DeviceCounts, DeviceState, Holder as ReportedHolder, ReportedClass, ReportedDevice,
    ReportedTaint, report_devices_cached,
};
use tollgate_picture::SafeText;
use tollgate_picture::bars::DeviceClassCounts;
use tollgate_picture::map::{
    Device, DevicesReport, Holder, KindAndName, NamespaceAndName, ShownDeviceState, Taint,
};

pub(super) fn devices_report(known: &KnownState, memory: &mut ClassMatchCache) -> DevicesReport {
    let state = known.objects.state();
    let report = report_devices_cached(&state, known.profile, memory);
    let class_name = |class: &usize| report.classes.get(*class).map_or("", |class| class.name).into();
    let classes = report.classes.iter().zip(report.class_counts());
    DevicesReport {
        profile: known.profile.name.into(),
        at: known.taken.as_str().into(),
        devices: report.devices.iter().map(|device| device_for_page(device, &class_name)).collect(),
        classes: classes.map(|(class, counts)| class_for_page(class, counts)).collect(),
        incomplete: known.incomplete.iter().map(|what| what.as_str().into()).collect(),
    }
}

fn class_for_page(class: &ReportedClass<'_>, counts: DeviceCounts) -> DeviceClassCounts {
    let DeviceCounts { total, allocated, tainted, allocated_and_tainted, blocked: _, free } = counts;
    let error = class.error.as_deref().map(SafeText::from);
    DeviceClassCounts {
        name: class.name.into(),
        total,
        allocated,
        tainted,
        allocated_and_tainted,
        free,
        error,
    }
}

fn device_for_page(device: &ReportedDevice<'_>, class_name: &impl Fn(&usize) -> SafeText) -> Device {
    let left = device.capacity_left.iter();
    Device {
        driver: device.driver.into(),
        pool: device.pool.into(),
        device: device.device.into(),
        slice: device.slice.map(SafeText::from),
        node: device.node.map(SafeText::from),
        states: device.states.iter().map(|state| state_for_page(*state)).collect(),
        blocked_by: device.blocked_by.as_deref().map(SafeText::from),
        capacity_left: left.map(|(name, amount)| ((*name).into(), (&*amount.text()).into())).collect(),
        classes: device.classes.iter().map(class_name).collect(),
        taints: device.taints.iter().map(|taint| taint_for_page(taint, device.slice)).collect(),
        holders: device.holders.iter().map(holder_for_page).collect(),
    }
}

fn state_for_page(state: DeviceState) -> ShownDeviceState {
    match state {
        DeviceState::Allocated => ShownDeviceState::Allocated,
        DeviceState::Tainted => ShownDeviceState::Tainted,
        DeviceState::Blocked => ShownDeviceState::Blocked,
        DeviceState::Shared => ShownDeviceState::Shared,
        DeviceState::Unpublished => ShownDeviceState::Unpublished,
        DeviceState::Free => ShownDeviceState::Free,
    }
}

fn taint_for_page(taint: &ReportedTaint<'_>, slice: Option<&str>) -> Taint {
    let source = match taint.rule {
        Some(rule) => named_object("DeviceTaintRule", rule),
        None => named_object("ResourceSlice", slice.unwrap_or_default()),
    };
    Taint { key: taint.key.into(), value: taint.value.into(), effect: taint.effect.into(), source }
}

fn holder_for_page(holder: &ReportedHolder<'_>) -> Holder {
    let of_namespace =
        |name: &str| NamespaceAndName { namespace: holder.namespace.into(), name: name.into() };
    Holder {
        claim: of_namespace(holder.claim),
        pod: holder.pod.map(of_namespace),
        workload: holder.workload.map(|workload| named_object(workload.kind, workload.name)),
        admin_access: holder.admin_access,
    }
}

fn named_object(kind: &str, name: &str) -> KindAndName {
    KindAndName { kind: kind.into(), name: name.into() }
}
