//! Taking one device for a request, and taking it back: use, counters, taints, constraints and capacity, in that order.
//!
//! Whatever [`Search::take`] changes, [`Search::take_back`] undoes, except what a constraint forgets by itself.

use crate::capacity::{self, Amounts, CapacityError, add_amount, amount_of};
use crate::constraint::Requested;
use crate::inventory::{Device, DeviceKey};
use crate::outcome::AllocationError;
use crate::pools::{Place, add_counters};
use crate::search::{Asked, Search, Stopped};
use crate::selector::Selectors;
use crate::tolerance;
use tollgate_formats::quantity::Quantity;

/// The shares of one device that the current search has allocated.
#[derive(Default, Debug)]
pub(crate) struct Share<'d> {
    count: usize,
    consumed: Amounts<'d>,
}

/// The shared counters of a pool, in billionths.
#[derive(Debug)]
pub(crate) struct PoolCounters {
    /// Amounts that remain after allocated claims. Below zero if claims consume more than the slices publish.
    available: Vec<i128>,
    /// Amounts consumed by devices of the current search.
    taken: Vec<i128>,
}

/// A device that the current search has allocated, with the information needed to undo it.
#[derive(Debug)]
pub(crate) struct Taken<'a, 'd> {
    pub(crate) asked: Asked<'a, 'd>,
    pub(crate) place: usize,
    /// Capacity that the share consumes.
    pub(crate) consumed: Vec<(&'d str, Quantity<'d>)>,
    pub(crate) is_share: bool,
    has_counters: bool,
}

impl<'a, 'd, S: Selectors + ?Sized> Search<'a, 'd, S> {
    pub(crate) fn device_at(&self, place: usize) -> Option<(Place, &'a Device<'d>)> {
        let place = *self.pools.places.get(place)?;
        Some((place, self.allocator.inventory.devices.get(place.device)?))
    }

    /// True if no claim holds the device. A request with adminAccess can get devices in use, but not the same
    /// device twice in one claim.
    pub(crate) fn is_free(&self, asked: Asked<'a, 'd>, device: DeviceKey) -> bool {
        if asked.ask.admin_access {
            return !self.taking.contains(&(device, asked.claim));
        }
        let is_taking = self.taking.range((device, 0)..=(device, usize::MAX)).next().is_some();
        !is_taking && !self.allocator.usage.is_taken(device)
    }

    /// The capacity that the request would consume; `None` if too little is left.
    pub(crate) fn capacity_taken(
        &self,
        asked: Asked<'a, 'd>,
        place: usize,
    ) -> Result<Option<Vec<(&'d str, Quantity<'d>)>>, Stopped> {
        let semantics = &self.allocator.inventory.semantics;
        let Some((_, device)) = self.device_at(place) else { return Ok(None) };
        if !semantics.features.consumable_capacity {
            return Ok(Some(Vec::new()));
        }
        let taking = self.shares.get(&device.key);
        let used = |name: &str| {
            let taking = taking.map_or(0, |share| amount_of(&share.consumed, name));
            self.allocator.usage.consumed(device.key, name).saturating_add(taking)
        };
        capacity::fit(&asked.ask.capacities, &device.capacities, used, semantics)
            .map_err(|error| self.capacity_error(asked, self.device_name(place), error).into())
    }

    pub(crate) fn capacity_error(
        &self,
        asked: Asked<'a, 'd>,
        device: String,
        error: CapacityError,
    ) -> AllocationError {
        let (claim, request) = (self.claim_name(asked), asked.ask.name().to_owned());
        AllocationError::Capacity { claim, request, device, error }
    }

    /// Allocates a device that matches the selectors. `must` means that the request accepts no other device,
    /// so a violated constraint is an error.
    // upstream v1.37 allocateDevice
    pub(crate) fn take(
        &mut self,
        asked: Asked<'a, 'd>,
        place: usize,
        must: bool,
    ) -> Result<Option<Taken<'a, 'd>>, Stopped> {
        let Some((at, device)) = self.device_at(place) else { return Ok(None) };
        let features = self.allocator.inventory.semantics.features;
        let is_share = device.is_shareable && features.consumable_capacity;
        if !self.is_free(asked, device.key) {
            return Ok(None);
        }
        let consumes_counters = !device.consumes.is_empty();
        if consumes_counters && !features.partitionable_devices {
            return Ok(None);
        }
        let has_counters = consumes_counters && !(is_share && self.is_shared(device.key));
        if has_counters && !self.take_counters(at) {
            return Ok(None);
        }
        let mut taken = Taken { asked, place, consumed: Vec::new(), is_share, has_counters };
        let tolerated = || tolerance::all_tolerated(&device.taints, asked.ask.tolerations());
        if features.device_taints && !tolerated() {
            self.give_back(&taken, 0);
            return Ok(None);
        }
        if let Some(broken) = self.add_to_constraints(asked, place, device) {
            self.give_back(&taken, broken);
            if must {
                let (claim, request) = (self.claim_name(asked), asked.ask.name().to_owned());
                let device = self.device_name(place);
                return Err(AllocationError::ConstraintBroken { claim, request, device }.into());
            }
            return Ok(None);
        }
        let Some(consumed) = self.capacity_taken(asked, place)? else {
            self.give_back(&taken, usize::MAX);
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
            self.taking.insert((device.key, asked.claim));
        }
        Ok(Some(taken))
    }

    /// Undoes [`Search::take`].
    pub(crate) fn take_back(&mut self, taken: &Taken<'a, 'd>) {
        let Some((_, device)) = self.device_at(taken.place) else { return };
        if !taken.is_share {
            self.taking.remove(&(device.key, taken.asked.claim));
        } else if let Some(share) = self.shares.get_mut(&device.key) {
            share.count -= 1;
            for (name, amount) in &taken.consumed {
                add_amount(&mut share.consumed, name, -amount.nano_value());
            }
            if share.count == 0 {
                self.shares.remove(&device.key);
            }
        }
        self.give_back(taken, usize::MAX);
    }

    /// Removes the device from the first `constraints` constraints of the claim, and returns its counters to
    /// the pool.
    fn give_back(&mut self, taken: &Taken<'a, 'd>, constraints: usize) {
        let requested = Requested::of(taken.asked);
        let all = self.constraints.get_mut(taken.asked.claim).into_iter().flatten();
        all.take(constraints).for_each(|constraint| constraint.remove(requested));
        let Some((place, _)) = self.device_at(taken.place).filter(|_| taken.has_counters) else { return };
        let Some(pool) = self.pools.pools.get(place.pool) else { return };
        let Some(Some(counters)) = self.counters.get_mut(place.pool) else { return };
        add_counters(&mut counters.taken, pool.counters.taken_by(place.device), -1);
    }

    /// Adds the device to the constraints of the claim. Returns the index of the first constraint that it
    /// violates.
    fn add_to_constraints(
        &mut self,
        asked: Asked<'a, 'd>,
        place: usize,
        device: &Device<'d>,
    ) -> Option<usize> {
        let driver = self.device_at(place).and_then(|(at, _)| self.pools.pools.get(at.pool))?.driver;
        let requested = Requested::of(asked);
        let mut all = self.constraints.get_mut(asked.claim)?.iter_mut();
        all.position(|constraint| !constraint.add(requested, driver, device.body))
    }

    /// True if shares of the device are already allocated, so that its counters are already consumed.
    fn is_shared(&self, device: DeviceKey) -> bool {
        let bare = self.allocator.inventory.semantics.bare_share_holds_counters;
        self.shares.contains_key(&device) || self.allocator.usage.is_shared(device, bare)
    }

    /// Consumes the device's counters, unless a counter of the pool would drop below zero.
    // upstream v1.37 checkAvailableCounters
    fn take_counters(&mut self, place: Place) -> bool {
        let Some(pool) = self.pools.pools.get(place.pool) else { return false };
        self.counters.resize_with(self.counters.len().max(place.pool + 1), || None);
        let Some(slot) = self.counters.get_mut(place.pool) else { return false };
        let (inventory, usage) = (self.allocator.inventory, self.allocator.usage);
        let counters = slot.get_or_insert_with(|| {
            let available = pool.counters.left_by(inventory, usage);
            PoolCounters { taken: vec![0; available.len()], available }
        });
        let taken = pool.counters.taken_by(place.device);
        add_counters(&mut counters.taken, taken, 1);
        let suffices = counters.available.iter().zip(&counters.taken).all(|(left, taken)| left >= taken);
        if !suffices {
            add_counters(&mut counters.taken, taken, -1);
        }
        suffices
    }

    pub(crate) fn claim_name(&self, asked: Asked<'a, 'd>) -> String {
        self.claims.get(asked.claim).map_or_else(String::new, |claim| claim.id.to_string())
    }

    fn device_name(&self, place: usize) -> String {
        let device = self.device_at(place).and_then(|(at, _)| self.allocator.inventory.candidate(at.device));
        device.map_or_else(String::new, |device| device.to_string())
    }
}
