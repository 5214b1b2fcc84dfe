//! Devices that share counters with a device: its partitions, and the devices that it is a partition of.
//!
//! Only the pool of the device is looked at: counters are shared within a pool.

use super::known::KnownState;
use tollgate_engine::impact::target::{DeviceNameSelector, with_partitions};
use tollgate_engine::impact::{DetailsToStore, Snapshot};
use tollgate_forecast::ObjectKind;
use tollgate_ui::{DeviceName, DevicesSharingCounters};

/// In pools with more devices, the devices that a device is a partition of are not determined, because that takes
/// too long.
const MAX_POOL_DEVICES: usize = 2_000;

/// Returns the devices that share counters with a device: its partitions, and the devices that it is a partition
/// of.
pub(super) fn devices_sharing_counters(known: &KnownState, wanted: &DeviceName) -> DevicesSharingCounters {
    let mut snapshot = Snapshot::with_details(DetailsToStore { attributes: false, counters: true });
    let mut others = Vec::new();
    let state = known.objects.state();
    for slice in state.objects_of_kind(ObjectKind::ResourceSlice).iter() {
        let spec = slice.value.get("spec");
        let is_same_pool =
            spec.get("driver").str() == wanted.driver && spec.get("pool").get("name").str() == wanted.pool;
        let api_version = format!("resource.k8s.io/{}", slice.version.name());
        let kind = ObjectKind::ResourceSlice.name();
        if !is_same_pool || snapshot.apply_as_type(&api_version, kind, slice.value).is_err() {
            continue;
        }
        let names = spec.get("devices").items().map(|device| device.get("name").str());
        others.extend(names.filter(|name| *name != wanted.device).map(ToOwned::to_owned));
    }
    let partitions_of = |device: &str| -> Vec<String> {
        let names = DeviceNameSelector {
            driver: Some(wanted.driver.clone()),
            pool: Some(wanted.pool.clone()),
            device: Some(device.to_owned()),
        };
        let found = with_partitions(vec![names], &snapshot).into_iter().skip(1);
        found.filter_map(|names| names.device).collect()
    };
    let wholes = if others.len() > MAX_POOL_DEVICES {
        Vec::new()
    } else {
        others.into_iter().filter(|other| partitions_of(other).contains(&wanted.device)).collect()
    };
    DevicesSharingCounters { partitions: partitions_of(&wanted.device), wholes }
}
