//! Allocates one device to a request, or undoes it: usage, counters, taints, constraints and capacity, in that order.
//!
//! [`PodSearch::undo_allocation`] undoes all changes of [`PodSearch::allocate_device`], except what a constraint
//! forgets in some releases.

#![allow(clippy::indexing_slicing, reason = "claims and pools are places in the lists of the search")]

use crate::capacity::{self, CapacityAmounts, add_amount, amount_or_zero};
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
    pub(crate) fn device_at(&self, node_device: usize) -> (NodeDevice, &'a Device<'d>) {
        let node_device = self.pools.node_devices[node_device];
        (node_device, self.allocator.inventory.device(node_device.device))
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
        let (_, device) = self.device_at(node_device);
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
        .map_err(|error| self.capacity_error(claim_request, &self.device_name(node_device), &error))
    }

    pub(crate) fn capacity_error(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        device: &str,
        error: &str,
    ) -> Stopped {
        let detail = format!(": checking capacity for device {device}: {error}");
        AllocationError::Other(self.text_about(claim_request, &detail)).into()
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
        let (at, device) = self.device_at(node_device);
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
        let taints = device.taints.iter().copied();
        let tolerations = claim_request.details.body.tolerations();
        if features.device_taints && !tolerance::all_blocking_taints_tolerated(taints, tolerations) {
            self.release_counters_and_constraints(&taken, 0);
            return Ok(None);
        }
        let driver = self.pools.pools[at.pool].driver;
        let broken = self.constraints[claim_request.claim]
            .iter_mut()
            .position(|constraint| !constraint.try_add_device(claim_request.details, driver, device.body));
        if let Some(broken) = broken {
            self.release_counters_and_constraints(&taken, broken);
            if must {
                let device = self.device_name(node_device);
                let detail =
                    format!(": cannot add device {device} because a claim constraint would not be satisfied");
                return Err(AllocationError::ConstraintBroken(self.text_about(claim_request, &detail)).into());
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
        let (_, device) = self.device_at(taken.node_device);
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
        let all = self.constraints[claim].iter_mut();
        all.take(constraints).for_each(|constraint| constraint.remove_last_device(details));
        let (node_device, _) = self.device_at(taken.node_device);
        let counters = self.counters.get_mut(&node_device.pool).filter(|_| taken.has_counters);
        if let Some(counters) = counters {
            let pool = &self.pools.pools[node_device.pool];
            add_counters(&mut counters.taken, pool.counters.consumed_by_device(node_device.device), -1);
        }
    }

    /// True if shares of the device are already allocated, so that its counters are already consumed.
    fn has_shares_holding_counters(&self, device: DeviceKey) -> bool {
        let bare = self.allocator.inventory.semantics.bare_share_holds_counters;
        self.shares.contains_key(&device) || self.allocator.usage.has_shares_holding_counters(device, bare)
    }

    /// Consumes the device's counters, unless a counter of the pool would drop below zero.
    // upstream v1.37 checkAvailableCounters
    fn take_counters(&mut self, node_device: NodeDevice) -> bool {
        let pool = &self.pools.pools[node_device.pool];
        let (inventory, usage) = (self.allocator.inventory, self.allocator.usage);
        let counters = self.counters.entry(node_device.pool).or_insert_with(|| {
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

    /// The text of an error about a request: its claim, its name and the detail.
    pub(crate) fn text_about(&self, claim_request: ClaimRequest<'a, 'd>, detail: &str) -> String {
        let (claim, details) = (self.claim_name(claim_request), claim_request.details);
        format!("claim {claim}, request {}{detail}", details.alternative.unwrap_or(details.request))
    }

    pub(crate) fn claim_name(&self, claim_request: ClaimRequest<'a, 'd>) -> String {
        self.claims[claim_request.claim].id.clone()
    }

    fn device_name(&self, node_device: usize) -> String {
        self.allocator.inventory.candidate(self.device_at(node_device).0.device).to_string()
    }
}
