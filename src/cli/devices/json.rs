//! JSON output: one object. Its schema is `tollgate schema devices`.

use serde::Serialize;
use std::collections::BTreeMap;

use tollgate_forecast::{DeviceCounts, DeviceReport, DeviceState, Holder, ReportedDevice, ReportedTaint};

#[derive(Serialize)]
pub(super) struct DevicesRecord<'a> {
    profile: &'a str,
    at: &'a str,
    devices: Vec<DeviceRecord<'a>>,
    classes: Vec<ClassRecord<'a>>,
    totals: Totals,
    /// What the dump does not contain, or what could not be listed in the cluster.
    incomplete: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceRecord<'a> {
    driver: &'a str,
    pool: &'a str,
    device: &'a str,
    slice: Option<&'a str>,
    node: Option<&'a str>,
    states: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_by: Option<String>,
    /// What is left of the capacities of a shared device.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_left: Option<BTreeMap<&'a str, String>>,
    classes: Vec<&'a str>,
    class_errors: Vec<ClassError<'a>>,
    taints: Vec<TaintRecord<'a>>,
    holders: Vec<HolderRecord<'a>>,
}

#[derive(Serialize)]
struct ClassError<'a> {
    class: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct TaintRecord<'a> {
    key: &'a str,
    value: &'a str,
    effect: &'a str,
    source: Named<'a>,
}

/// An object by kind and name.
#[derive(Serialize)]
struct Named<'a> {
    kind: &'a str,
    name: &'a str,
}

/// An object by namespace and name.
#[derive(Serialize)]
struct Namespaced<'a> {
    namespace: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HolderRecord<'a> {
    claim: Namespaced<'a>,
    pod: Option<Namespaced<'a>>,
    workload: Option<Named<'a>>,
    admin_access: bool,
}

#[derive(Serialize)]
struct ClassRecord<'a> {
    name: &'a str,
    total: usize,
    #[serde(flatten)]
    counts: StateCounts,
    /// Why the expression does not compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct Totals {
    devices: usize,
    #[serde(flatten)]
    counts: StateCounts,
}

#[derive(Serialize)]
struct StateCounts {
    allocated: usize,
    tainted: usize,
    blocked: usize,
    free: usize,
}

impl StateCounts {
    fn new(counts: DeviceCounts) -> StateCounts {
        let DeviceCounts { total: _, allocated, tainted, blocked, free } = counts;
        StateCounts { allocated, tainted, blocked, free }
    }
}

impl<'a> DevicesRecord<'a> {
    pub(super) fn new(
        report: &'a DeviceReport<'a>,
        shown_classes: &[usize],
        (profile, at): (&'a str, &'a str),
        incomplete: &'a [String],
    ) -> DevicesRecord<'a> {
        let class_name = |place: usize| report.classes.get(place).map_or("", |class| class.name);
        let classes = report.classes.iter().zip(report.class_counts()).enumerate();
        let classes = classes.filter(|(place, _)| shown_classes.contains(place));
        let classes = classes.map(|(_, (class, counts))| ClassRecord {
            name: class.name,
            total: counts.total,
            counts: StateCounts::new(counts),
            error: class.error.as_deref(),
        });
        let totals: DeviceCounts = report.devices.iter().collect();
        DevicesRecord {
            profile,
            at,
            devices: report.devices.iter().map(|device| DeviceRecord::new(device, &class_name)).collect(),
            classes: classes.collect(),
            totals: Totals { devices: totals.total, counts: StateCounts::new(totals) },
            incomplete,
        }
    }
}

impl<'a> DeviceRecord<'a> {
    fn new(device: &'a ReportedDevice<'a>, class_name: &dyn Fn(usize) -> &'a str) -> DeviceRecord<'a> {
        let left = || {
            let left = device.capacity_left.iter();
            left.map(|(name, amount)| (*name, amount.text().into_owned())).collect()
        };
        let errors = device.class_errors.iter();
        DeviceRecord {
            driver: device.driver,
            pool: device.pool,
            device: device.device,
            slice: device.slice,
            node: device.node,
            states: device.states.iter().map(|state| state.name()).collect(),
            blocked_by: device.blocked_by.map(|why| why.to_string()),
            capacity_left: device.is(DeviceState::Shared).then(left),
            classes: device.classes.iter().map(|class| class_name(*class)).collect(),
            class_errors: errors
                .map(|(class, message)| ClassError { class: class_name(*class), message })
                .collect(),
            taints: device.taints.iter().map(|taint| TaintRecord::new(taint, device.slice)).collect(),
            holders: device.holders.iter().map(HolderRecord::new).collect(),
        }
    }
}

impl<'a> TaintRecord<'a> {
    fn new(taint: &ReportedTaint<'a>, slice: Option<&'a str>) -> TaintRecord<'a> {
        let source = match taint.rule {
            Some(name) => Named { kind: "DeviceTaintRule", name },
            None => Named { kind: "ResourceSlice", name: slice.unwrap_or_default() },
        };
        TaintRecord { key: taint.key, value: taint.value, effect: taint.effect, source }
    }
}

impl<'a> HolderRecord<'a> {
    fn new(holder: &'a Holder<'a>) -> HolderRecord<'a> {
        let namespace = holder.namespace;
        HolderRecord {
            claim: Namespaced { namespace, name: holder.claim },
            pod: holder.pod.map(|name| Namespaced { namespace, name }),
            workload: holder.workload.map(|workload| Named { kind: workload.kind, name: workload.name }),
            admin_access: holder.admin_access,
        }
    }
}
