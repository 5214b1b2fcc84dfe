//! Allocates one device to a request, or undoes it: usage, counters, taints, constraints and capacity, in that order.
//!
//! [`PodSearch::undo_allocation`] undoes all changes of [`PodSearch::allocate_device`], except what a constraint
//! forgets in some releases.

use crate::capacity::{self, CapacityAmounts, CapacityError, add_amount, amount_or_zero};
use crate::inventory::{Device, DeviceKey};
use crate::outcome::AllocationError;
use crate::pools::{NodeDevice, add_counters};
use crate::search::{ClaimRequest, PodSearch, Stopped};
use crate::selector::SelectorEvaluator;
use crate::tolerance;
use tollgate_formats::quantity::Quantity;

/// The shares of one device that the current search has allocated.
#[derive(Default, Debug)]
pub(crate) struct AllocatedShares<'d> {
    count: usize,
    consumed: CapacityAmounts<'d>,
}

/// The shared counters of a pool, in billionths.
#[derive(Debug)]
pub(crate) struct SharedCountersDuringSearch {
    /// Amounts that remain after allocated claims. Below zero if claims consume more than the slices publish.
    available: Vec<i128>,
    /// Amounts consumed by devices of the current search.
    taken: Vec<i128>,
}

/// A device that the current search has allocated, with the information needed to undo it.
#[derive(Debug)]
pub(crate) struct TakenDevice<'a, 'd> {
    pub(crate) claim_request: ClaimRequest<'a, 'd>,
    pub(crate) node_device: usize,
    /// Capacity that the allocated share consumes of the device.
    pub(crate) consumed: Vec<(&'d str, Quantity<'d>)>,
    pub(crate) is_share: bool,
    has_counters: bool,
}

impl<'a, 'd, S: SelectorEvaluator + ?Sized> PodSearch<'a, 'd, S> {
    pub(crate) fn device_at(&self, node_device: usize) -> Option<(NodeDevice, &'a Device<'d>)> {
        let node_device = *self.pools.node_devices.get(node_device)?;
        Some((node_device, self.allocator.inventory.devices.get(node_device.device)?))
    }

    /// True if neither a claim nor this search holds the device exclusively. A request with adminAccess can get devices
    /// in use, but not the same device twice in one claim.
    pub(crate) fn has_no_conflicting_exclusive_holder(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        device: DeviceKey,
    ) -> bool {
        if claim_request.details.admin_access {
            return !self.taking.contains(&(device, claim_request.claim));
        }
        let is_taking = self.taking.range((device, 0)..=(device, usize::MAX)).next().is_some();
        !is_taking && !self.allocator.usage.is_held_exclusively(device)
    }

    /// The capacity that the request would consume; `None` if too little is left.
    pub(crate) fn capacity_to_consume(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
    ) -> Result<Option<Vec<(&'d str, Quantity<'d>)>>, Stopped> {
        let semantics = &self.allocator.inventory.semantics;
        let Some((_, device)) = self.device_at(node_device) else { return Ok(None) };
        if !semantics.features.consumable_capacity {
            return Ok(Some(Vec::new()));
        }
        let taking = self.shares.get(&device.key);
        let used = |name: &str| {
            let taking = taking.map_or(0, |share| amount_or_zero(&share.consumed, name));
            self.allocator.usage.consumed_capacity(device.key, name).saturating_add(taking)
        };
        capacity::consumed_amounts_if_fitting(
            &claim_request.details.capacities,
            &device.capacities,
            used,
            semantics,
        )
        .map_err(|error| self.capacity_error(claim_request, self.device_name(node_device), error).into())
    }

    pub(crate) fn capacity_error(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        device: String,
        error: CapacityError,
    ) -> AllocationError {
        let (claim, request) =
            (self.claim_name(claim_request), claim_request.details.alternative_or_request_name().to_owned());
        AllocationError::Capacity { claim, request, device, error }
    }

    /// Allocates a device that matches the selectors. `must` means that the request accepts no other device,
    /// so a violated constraint is an error.
    // upstream v1.37 allocateDevice
    pub(crate) fn allocate_device(
        &mut self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
        must: bool,
    ) -> Result<Option<TakenDevice<'a, 'd>>, Stopped> {
        let Some((at, device)) = self.device_at(node_device) else { return Ok(None) };
        let features = self.allocator.inventory.semantics.features;
        let is_share = device.is_shareable && features.consumable_capacity;
        if !self.has_no_conflicting_exclusive_holder(claim_request, device.key) {
            return Ok(None);
        }
        let consumes_counters = !device.consumes.is_empty();
        if consumes_counters && !features.partitionable_devices {
            return Ok(None);
        }
        let has_counters = consumes_counters && !(is_share && self.has_shares_holding_counters(device.key));
        if has_counters && !self.take_counters(at) {
            return Ok(None);
        }
        let mut taken =
            TakenDevice { claim_request, node_device, consumed: Vec::new(), is_share, has_counters };
        let tolerated = || {
            tolerance::all_blocking_taints_tolerated(
                device.taints.iter().copied(),
                claim_request.details.body.tolerations(),
            )
        };
        if features.device_taints && !tolerated() {
            self.release_counters_and_constraints(&taken, 0);
            return Ok(None);
        }
        if let Some(broken) = self.add_until_constraint_violated(claim_request, node_device, device) {
            self.release_counters_and_constraints(&taken, broken);
            if must {
                let (claim, request) = (
                    self.claim_name(claim_request),
                    claim_request.details.alternative_or_request_name().to_owned(),
                );
                let device = self.device_name(node_device);
                return Err(AllocationError::ConstraintBroken { claim, request, device }.into());
            }
            return Ok(None);
        }
        let Some(consumed) = self.capacity_to_consume(claim_request, node_device)? else {
            self.release_counters_and_constraints(&taken, usize::MAX);
            return Ok(None);
        };
        if is_share {
            let share = self.shares.entry(device.key).or_default();
            share.count += 1;
            for (name, amount) in &consumed {
                add_amount(&mut share.consumed, name, amount.nano_value());
            }
            taken.consumed = consumed;
        } else {
            self.taking.insert((device.key, claim_request.claim));
        }
        Ok(Some(taken))
    }

    /// Takes back a device that [`PodSearch::allocate_device`] has allocated.
    pub(crate) fn undo_allocation(&mut self, taken: &TakenDevice<'a, 'd>) {
        let Some((_, device)) = self.device_at(taken.node_device) else { return };
        if !taken.is_share {
            self.taking.remove(&(device.key, taken.claim_request.claim));
        } else if let Some(share) = self.shares.get_mut(&device.key) {
            share.count -= 1;
            for (name, amount) in &taken.consumed {
                add_amount(&mut share.consumed, name, -amount.nano_value());
            }
            if share.count == 0 {
                self.shares.remove(&device.key);
            }
        }
        self.release_counters_and_constraints(taken, usize::MAX);
    }

    /// Removes the device from the first `constraints` constraints of the claim, and returns its counters to
    /// the pool.
    fn release_counters_and_constraints(&mut self, taken: &TakenDevice<'a, 'd>, constraints: usize) {
        let ClaimRequest { claim, details } = taken.claim_request;
        let all = self.constraints.get_mut(claim).into_iter().flatten();
        all.take(constraints).for_each(|constraint| constraint.remove_last_device(details));
        let Some((node_device, _)) = self.device_at(taken.node_device).filter(|_| taken.has_counters) else {
            return;
        };
        let Some(pool) = self.pools.pools.get(node_device.pool) else { return };
        let Some(Some(counters)) = self.counters.get_mut(node_device.pool) else { return };
        add_counters(&mut counters.taken, pool.counters.consumed_by_device(node_device.device), -1);
    }

    /// Adds the device to the constraints of the claim. Returns the index of the first constraint that it
    /// violates.
    fn add_until_constraint_violated(
        &mut self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
        device: &Device<'d>,
    ) -> Option<usize> {
        let driver = self.device_at(node_device).and_then(|(at, _)| self.pools.pools.get(at.pool))?.driver;
        let mut all = self.constraints.get_mut(claim_request.claim)?.iter_mut();
        all.position(|constraint| !constraint.try_add_device(claim_request.details, driver, device.body))
    }

    /// True if shares of the device are already allocated, so that its counters are already consumed.
    fn has_shares_holding_counters(&self, device: DeviceKey) -> bool {
        let bare = self.allocator.inventory.semantics.bare_share_holds_counters;
        self.shares.contains_key(&device) || self.allocator.usage.has_shares_holding_counters(device, bare)
    }

    /// Consumes the device's counters, unless a counter of the pool would drop below zero.
    // upstream v1.37 checkAvailableCounters
    fn take_counters(&mut self, node_device: NodeDevice) -> bool {
        let Some(pool) = self.pools.pools.get(node_device.pool) else { return false };
        self.counters.resize_with(self.counters.len().max(node_device.pool + 1), || None);
        let Some(slot) = self.counters.get_mut(node_device.pool) else { return false };
        let (inventory, usage) = (self.allocator.inventory, self.allocator.usage);
        let counters = slot.get_or_insert_with(|| {
            let available = pool.counters.left_after_claims(inventory, usage);
            SharedCountersDuringSearch { taken: vec![0; available.len()], available }
        });
        let taken = pool.counters.consumed_by_device(node_device.device);
        add_counters(&mut counters.taken, taken, 1);
        let suffices = counters.available.iter().zip(&counters.taken).all(|(left, taken)| left >= taken);
        if !suffices {
            add_counters(&mut counters.taken, taken, -1);
        }
        suffices
    }

    pub(crate) fn claim_name(&self, claim_request: ClaimRequest<'a, 'd>) -> String {
        self.claims.get(claim_request.claim).map_or_else(String::new, |claim| claim.id.to_string())
    }

    fn device_name(&self, node_device: usize) -> String {
        let device =
            self.device_at(node_device).and_then(|(at, _)| self.allocator.inventory.candidate(at.device));
        device.map_or_else(String::new, |device| device.to_string())
    }
}
