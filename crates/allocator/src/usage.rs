//! The devices and shares of devices that allocated claims hold.
//!
//! A result with adminAccess holds nothing. A device that no slice publishes cannot be allocated, so it is not
//! recorded: after a change of slices, the usage must be rebuilt from the claims.

use crate::capacity::{CapacityAmounts, add_amount, amount_or_zero};
use crate::inventory::{DeviceKey, Inventory};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_api::view::{self, AllocationResult, View as _};

/// The devices that allocated claims hold.
#[derive(Clone, Default, Debug)]
pub struct DeviceUsage<'d> {
    held: HashMap<DeviceKey, DeviceHolders<'d>, RandomState>,
}

/// The claims that hold one device, exclusively or in shares, and the capacity that the shares consume.
#[derive(Clone, Default, Debug)]
struct DeviceHolders<'d> {
    /// Number of claims that hold the device exclusively. More than one only if several slices publish the
    /// same name.
    exclusive_holders: u32,
    shares: u32,
    shares_with_capacity: u32,
    consumed: CapacityAmounts<'d>,
}

/// The device, or the share of it, that one allocation result holds.
#[derive(Clone, Debug)]
pub struct DeviceHolding<'d> {
    pub device: DeviceKey,
    /// True for a share of a device that allows multiple allocations. Its result has a `shareID`.
    pub is_share: bool,
    /// Capacity that the share consumes, in billionths.
    pub consumed: Vec<(&'d str, i128)>,
}

impl<'d> DeviceHolding<'d> {
    /// Reads an allocation result from the status of a claim. Returns `None` if it holds no published device
    /// or has adminAccess.
    // upstream v1.37 foreachAllocatedDevice
    pub fn from_result(inventory: &Inventory<'d>, result: AllocationResult<'d>) -> Option<DeviceHolding<'d>> {
        if result.admin_access() == Some(true) {
            return None;
        }
        let device = inventory.device_key(result.driver(), result.pool(), result.device())?;
        let is_share = inventory.semantics.features.consumable_capacity && result.share_id().is_some();
        let consumed = result.json().get("consumedCapacity").members().filter(|_| is_share);
        let amount = |value| view::quantity(value).map_or(0, |amount| amount.nano_value());
        let consumed = consumed.map(|(name, value)| (name.text(), amount(value))).collect();
        Some(DeviceHolding { device, is_share, consumed })
    }
}

impl<'d> DeviceUsage<'d> {
    /// The combined usage of these allocation results.
    pub fn from_results(
        inventory: &Inventory<'d>,
        results: impl IntoIterator<Item = AllocationResult<'d>>,
    ) -> DeviceUsage<'d> {
        let mut usage = DeviceUsage::default();
        let holdings = results.into_iter().filter_map(|result| DeviceHolding::from_result(inventory, result));
        holdings.for_each(|holding| usage.add_holding(&holding));
        usage
    }

    /// Records the device of a newly allocated claim.
    pub fn add_holding(&mut self, holding: &DeviceHolding<'d>) {
        let held = self.held.entry(holding.device).or_default();
        if !holding.is_share {
            held.exclusive_holders += 1;
            return;
        }
        held.shares += 1;
        held.shares_with_capacity += u32::from(!holding.consumed.is_empty());
        for &(name, amount) in &holding.consumed {
            add_amount(&mut held.consumed, name, amount);
        }
    }

    /// Removes the device of a claim that was deallocated or deleted.
    pub fn remove_holding(&mut self, holding: &DeviceHolding<'d>) {
        let Some(held) = self.held.get_mut(&holding.device) else { return };
        if holding.is_share {
            held.shares = held.shares.saturating_sub(1);
            let with_capacity = u32::from(!holding.consumed.is_empty());
            held.shares_with_capacity = held.shares_with_capacity.saturating_sub(with_capacity);
            for &(name, amount) in &holding.consumed {
                add_amount(&mut held.consumed, name, -amount);
            }
        } else {
            held.exclusive_holders = held.exclusive_holders.saturating_sub(1);
        }
        if held.exclusive_holders == 0 && held.shares == 0 {
            self.held.remove(&holding.device);
        }
    }

    /// True if a claim holds the device exclusively.
    pub fn is_held_exclusively(&self, device: DeviceKey) -> bool {
        self.held.get(&device).is_some_and(|held| held.exclusive_holders > 0)
    }

    /// True if a claim holds the device or a share of it, so that its counters are consumed.
    pub fn is_held_or_shared(&self, device: DeviceKey) -> bool {
        self.held.contains_key(&device)
    }

    /// True if claims hold shares of the device.
    pub fn has_shares(&self, device: DeviceKey) -> bool {
        self.has_shares_holding_counters(device, true)
    }

    /// True if claims hold shares of the device that count as holding its counters: all shares if `bare` is set,
    /// otherwise only those with consumed capacity.
    pub(crate) fn has_shares_holding_counters(&self, device: DeviceKey, bare: bool) -> bool {
        let shares = |held: &DeviceHolders<'_>| if bare { held.shares } else { held.shares_with_capacity };
        self.held.get(&device).is_some_and(|held| shares(held) > 0)
    }

    /// The amount of a capacity that shares consume, in billionths.
    pub fn consumed_capacity(&self, device: DeviceKey, capacity: &str) -> i128 {
        self.held.get(&device).map_or(0, |held| amount_or_zero(&held.consumed, capacity))
    }
}
