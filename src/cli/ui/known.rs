//! The state that the pages show: the objects of a cluster or dump, their origin, and what is missing.

use std::sync::{Arc, OnceLock};

use crate::cli::outcome::Failure;
use crate::cli::state::OwnedObjects;
use tollgate_api::profile::Profile;
use tollgate_engine::impact::Snapshot;
use tollgate_forecast::{
    ClassMatchCache, DeviceCounts, DeviceState, Holder as ReportedHolder, ReportedClass, ReportedDevice,
    ReportedTaint, report_devices_cached,
};
use tollgate_picture::SafeText;
use tollgate_picture::bars::DeviceClassCounts;
use tollgate_picture::map::{
    Device, DevicesReport, Holder, KindAndName, NamespaceAndName, ShownDeviceState, Taint,
};
use tollgate_ui::PageFacts;

/// The objects that were read from a cluster or dump, with their profile, their origin, and messages about missing
/// parts.
#[derive(Debug)]
pub(super) struct KnownState {
    pub(super) objects: OwnedObjects,
    pub(super) profile: &'static Profile,
    /// Origin of the state for the pages: `context dev (https://…)`, or the files of the dump.
    pub(super) source: String,
    /// When the state was read from the cluster or, if it may have been outdated even then, until when it was current.
    /// Empty if the dump does not say so.
    pub(super) taken: String,
    pub(super) is_dump: bool,
    /// Why the state may be outdated; `None` if it is current.
    pub(super) trouble: Option<String>,
    /// Messages about what the state lacks for the report about devices.
    pub(super) incomplete: Vec<String>,
    /// Messages about what the state lacks for impact.
    pub(super) incomplete_for_impact: Vec<String>,
    /// Messages about what the state lacks for forecasts and plans.
    pub(super) missing: Vec<String>,
    /// The snapshot for impact, made on first use.
    pub(super) snapshot: OnceLock<Result<Arc<Snapshot>, String>>,
}

impl KnownState {
    /// The report of `tollgate devices`, as pages draw it: as a value, because writing and reading JSON takes as
    /// long as the report itself in a large cluster.
    pub(super) fn devices_report(&self, memory: &mut ClassMatchCache) -> DevicesReport {
        let state = self.objects.state();
        let report = report_devices_cached(&state, self.profile, memory);
        let class_name = |class: &usize| report.classes.get(*class).map_or("", |class| class.name).into();
        let classes = report.classes.iter().zip(report.class_counts());
        DevicesReport {
            profile: self.profile.name.into(),
            at: self.taken.as_str().into(),
            devices: report.devices.iter().map(|device| device_for_page(device, &class_name)).collect(),
            classes: classes.map(|(class, counts)| class_for_page(class, counts)).collect(),
            incomplete: self.incomplete.iter().map(|what| what.as_str().into()).collect(),
        }
    }

    /// Returns the snapshot from which impact is computed; made on first use.
    pub(super) fn snapshot(&self) -> Result<Arc<Snapshot>, Failure> {
        let make = || self.objects.snapshot().map(Arc::new).map_err(|error| error.to_string());
        self.snapshot.get_or_init(make).clone().map_err(Failure::Input)
    }

    /// Returns what the pages say about the origin of the state.
    pub(super) fn page_facts(&self, command: String) -> PageFacts {
        PageFacts {
            source: self.source.clone(),
            is_dump: self.is_dump,
            command,
            version: env!("CARGO_PKG_VERSION"),
            docs: crate::cli::picture::DOCS_URL,
        }
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
