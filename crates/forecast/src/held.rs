//! The allocation of a claim, from the status of a stored claim or from a simulated run.

use tollgate_allocator::{Allocation, AllocationNodes, DeviceHolding, Inventory};
use tollgate_api::view::{self, ClaimSpec, List, Toleration, View as _};
use tollgate_engine::impact::{self, Snapshot};
use tollgate_formats::gotime::Timestamp;

use crate::outcome::PlacedDevice;
use tollgate_api::profile::Profile;

/// Maximum number of alternatives in a request.
const MAX_ALTERNATIVES: i64 = 8;

/// The allocation of a claim: its devices, and the nodes that can use them.
#[derive(Clone, Debug)]
pub(crate) struct ClaimAllocation<'d> {
    pub(crate) nodes: AllocationNodes<'d>,
    pub(crate) devices: Vec<HeldDevice<'d>>,
    /// True if `allocationTimestamp` is set.
    pub(crate) has_timestamp: bool,
    /// True if a driver must prepare devices before a pod with the claim is bound.
    pub(crate) waits_for_driver: bool,
}

/// One device of a claim's allocation, with the tolerations that apply to it.
#[derive(Clone, Debug)]
pub(crate) struct HeldDevice<'d> {
    /// Request name in the format of allocation results: `request` or `request/alternative`.
    pub(crate) request: String,
    pub(crate) driver: &'d str,
    pub(crate) pool: &'d str,
    pub(crate) device: &'d str,
    admin_access: bool,
    is_share: bool,
    /// Consumed capacity: name, amount as text, and amount in billionths.
    consumed: Vec<(&'d str, String, i128)>,
    tolerations: List<'d, Toleration<'d>>,
}

impl<'d> ClaimAllocation<'d> {
    /// Reads the allocation in the status of a claim.
    pub(crate) fn from_status(status: view::ClaimStatus<'d>) -> Option<ClaimAllocation<'d>> {
        let allocation = status.allocation()?;
        let results = allocation.devices().results();
        let device = |result: view::AllocationResult<'d>| {
            let amount = |value| view::quantity(value).map_or(0, |amount| amount.nano_value());
            let consumed = result.json().get("consumedCapacity").members();
            HeldDevice {
                request: result.request().to_owned(),
                driver: result.driver(),
                pool: result.pool(),
                device: result.device(),
                admin_access: result.admin_access() == Some(true),
                is_share: result.share_id().is_some(),
                consumed: consumed
                    .map(|(name, value)| (name.text(), value.text().to_owned(), amount(value)))
                    .collect(),
                tolerations: result.tolerations(),
            }
        };
        let is_ready = |result: view::AllocationResult<'d>| {
            let same = |status: &view::DeviceStatus<'d>| {
                (status.driver(), status.pool(), status.device())
                    == (result.driver(), result.pool(), result.device())
            };
            let status = status.devices().iter().find(same);
            result.binding_conditions().iter().all(|wanted| {
                let is_true = |condition: view::Condition<'d>| {
                    condition.json().get("type").str() == wanted
                        && condition.json().get("status").str() == "True"
                };
                status.is_some_and(|status| status.conditions().iter().any(is_true))
            })
        };
        Some(ClaimAllocation {
            nodes: AllocationNodes::from_status(allocation),
            devices: results.iter().map(device).collect(),
            has_timestamp: allocation.json().get("allocationTimestamp").exists(),
            waits_for_driver: !results.iter().all(is_ready),
        })
    }

    /// Converts a result of the allocator.
    pub(crate) fn from_allocation(allocation: &Allocation<'d>) -> ClaimAllocation<'d> {
        let devices = allocation.devices.iter().map(|device| HeldDevice {
            request: device.request_name_with_alternative(),
            driver: device.driver,
            pool: device.pool,
            device: device.device,
            admin_access: device.admin_access,
            is_share: device.is_share,
            consumed: device
                .consumed_capacity
                .iter()
                .map(|(name, amount)| (*name, amount.text().into_owned(), amount.nano_value()))
                .collect(),
            tolerations: device.tolerations,
        });
        ClaimAllocation {
            nodes: allocation.nodes.clone(),
            devices: devices.collect(),
            has_timestamp: true,
            waits_for_driver: allocation.devices.iter().any(|device| !device.binding_conditions.is_empty()),
        }
    }

    /// The devices and shares that the allocation holds, which block other claims.
    pub(crate) fn holdings_without_admin_access<'s>(
        &'s self,
        inventory: &'s Inventory<'d>,
    ) -> impl Iterator<Item = DeviceHolding<'d>> + 's {
        let has_shares = inventory.semantics().features.consumable_capacity;
        let holding = move |device: &HeldDevice<'d>| {
            let key = inventory.device_key(device.driver, device.pool, device.device)?;
            let is_share = has_shares && device.is_share;
            let consumed = device.consumed.iter().filter(|_| is_share);
            let consumed = consumed.map(|(name, _, amount)| (*name, *amount)).collect();
            Some(DeviceHolding { device: key, is_share, consumed })
        };
        self.devices.iter().filter(|device| !device.admin_access).filter_map(holding)
    }

    /// The node score of the allocation. Earlier alternatives score higher.
    // upstream v1.37 computeScore
    pub(crate) fn score_by_chosen_alternatives(&self, spec: ClaimSpec<'_>) -> i64 {
        let mut score = 0;
        for request in spec.devices().requests().iter() {
            for (place, alternative) in request.first_available().iter().enumerate() {
                let name = (request.name(), alternative.name());
                if self.devices.iter().any(|device| device.request.split_once('/') == Some(name)) {
                    score += MAX_ALTERNATIVES.saturating_sub(i64::try_from(place).unwrap_or(i64::MAX));
                }
            }
        }
        score
    }

    /// The time at which the device taint eviction controller evicts the pods that use the allocation; `None`
    /// if never.
    pub(crate) fn eviction_time(&self, taints: &Snapshot, profile: &Profile) -> Option<Timestamp> {
        let time = |device: &HeldDevice<'d>| {
            let tolerations: Vec<impact::Toleration> =
                device.tolerations.iter().map(impact_toleration).collect();
            taints.device_eviction_time((device.driver, device.pool, device.device), &tolerations, profile)
        };
        self.devices.iter().filter_map(time).min()
    }
}

impl HeldDevice<'_> {
    /// The device as a forecast reports it.
    pub(crate) fn placed_device(&self) -> PlacedDevice {
        let consumed = self.consumed.iter().map(|(name, text, _)| ((*name).to_owned(), text.clone()));
        PlacedDevice {
            request: self.request.clone(),
            driver: self.driver.to_owned(),
            pool: self.pool.to_owned(),
            device: self.device.to_owned(),
            consumed_capacity: (!self.consumed.is_empty()).then(|| consumed.collect()),
        }
    }
}

/// Converts a toleration to the form in which evictions are computed.
fn impact_toleration(toleration: Toleration<'_>) -> impact::Toleration {
    impact::Toleration {
        key: toleration.key().into(),
        operator: toleration.operator().into(),
        value: toleration.value().into(),
        effect: toleration.effect().into(),
        seconds: toleration.toleration_seconds(),
    }
}
