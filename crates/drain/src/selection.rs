//! The devices that the rules of a drain select.

use crate::outcome::DeviceId;
use tollgate_api::view::AllocationResult;
use tollgate_engine::impact::target::DeviceNameSelector;

/// The devices that these rules select.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectedDevices<'r>(pub(crate) &'r [DeviceNameSelector]);

impl SelectedDevices<'_> {
    /// True if a rule selects the device.
    pub(crate) fn selects_device(self, driver: &str, pool: &str, device: &str) -> bool {
        self.0.iter().any(|names| names.matches(driver, pool, device))
    }

    /// The device of an allocation result, if a rule selects it. `None` for results with adminAccess.
    pub(crate) fn selected_device_without_admin_access(
        self,
        result: AllocationResult<'_>,
    ) -> Option<DeviceId> {
        let (driver, pool, device) = (result.driver(), result.pool(), result.device());
        let is_held = result.admin_access() != Some(true) && self.selects_device(driver, pool, device);
        is_held.then(|| DeviceId::new(driver, pool, device))
    }
}
