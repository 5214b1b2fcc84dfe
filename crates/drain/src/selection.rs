//! An index of the devices that the rules of a drain select.

use crate::outcome::DeviceId;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_api::view::AllocationResult;
use tollgate_engine::impact::target::DeviceNameSelector;

/// The devices that a set of rules selects.
#[derive(Debug, Default)]
pub(crate) struct SelectedDevices<'r> {
    /// Selected devices, by driver and pool.
    pools: BTreeMap<(&'r str, &'r str), PoolSelection<'r>>,
    /// Rules without a driver or pool. A drain creates none, but a user can.
    others: Vec<&'r DeviceNameSelector>,
}

/// The devices of one pool that a set of rules selects: all of them, or those listed.
#[derive(Debug, Default)]
struct PoolSelection<'r> {
    is_whole: bool,
    devices: BTreeSet<&'r str>,
}

impl<'r> SelectedDevices<'r> {
    pub(crate) fn from_rules(rules: impl IntoIterator<Item = &'r DeviceNameSelector>) -> SelectedDevices<'r> {
        let mut selection = SelectedDevices::default();
        for names in rules {
            let (Some(driver), Some(pool)) = (&names.driver, &names.pool) else {
                selection.others.push(names);
                continue;
            };
            let pool = selection.pools.entry((driver, pool)).or_default();
            match &names.device {
                Some(device) => _ = pool.devices.insert(device),
                None => pool.is_whole = true,
            }
        }
        selection
    }

    /// True if a rule selects the device.
    pub(crate) fn selects_device(&self, driver: &str, pool: &str, device: &str) -> bool {
        let known = self.pools.get(&(driver, pool));
        known.is_some_and(|pool| pool.is_whole || pool.devices.contains(device))
            || self.others.iter().any(|names| names.matches(driver, pool, device))
    }

    /// The device of an allocation result, if a rule selects it. `None` for results with adminAccess.
    pub(crate) fn selected_device_without_admin_access(
        &self,
        result: AllocationResult<'_>,
    ) -> Option<DeviceId> {
        let (driver, pool, device) = (result.driver(), result.pool(), result.device());
        let is_held = result.admin_access() != Some(true) && self.selects_device(driver, pool, device);
        is_held.then(|| DeviceId::new(driver, pool, device))
    }
}
