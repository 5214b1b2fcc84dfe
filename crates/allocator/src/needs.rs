//! Before the search: how many devices each request needs on this node, and which they are if it asks for all.
//!
//! This goes claim by claim, request by request, alternative by alternative, and the first problem is the answer, even if
//! it is about an alternative that would not be needed.

use crate::capacity;
use crate::claim::Mode;
use crate::outcome::{AllocationError, MAX_DEVICES, SelectorSource};
use crate::pools::PoolState;
use crate::search::{Asked, Search, Stopped};
use crate::selector::{Candidate, SelectorError, Selectors};

/// The devices that a request or alternative needs on this node.
#[derive(Debug)]
pub(crate) struct Need {
    /// Number of devices.
    pub(crate) devices: usize,
    /// For `allocationMode: All`, the indices of these devices in `NodePools::places`.
    pub(crate) all: Vec<usize>,
    /// Cached selector results, by index in `NodePools::places`; `None` if not evaluated yet.
    selected: Vec<Option<bool>>,
}

impl<'a, 'd, S: Selectors + ?Sized> Search<'a, 'd, S> {
    /// Computes the number of devices that each request needs, and checks each claim against the limit.
    // upstream v1.37 Allocate, validateDeviceRequest
    pub(crate) fn prepare(&mut self) -> Result<(), Stopped> {
        for (index, claim) in self.claims.iter().enumerate() {
            let mut least = 0_usize;
            for request in &claim.requests {
                let mut fewest = None;
                for ask in &request.asks {
                    let devices = self.add_need(Asked { claim: index, ask })?;
                    fewest = Some(fewest.map_or(devices, |fewest: usize| fewest.min(devices)));
                }
                least = least.saturating_add(fewest.unwrap_or(0));
            }
            if least > MAX_DEVICES {
                let claim = claim.id.to_string();
                return Err(AllocationError::TooManyDevices { claim, devices: least }.into());
            }
            let known = claim.constraints.iter().enumerate().map(|(index, constraint)| {
                let unknown = || AllocationError::UnknownConstraint { claim: claim.id.to_string(), index };
                constraint.clone().ok_or_else(unknown)
            });
            self.constraints.push(known.collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    fn add_need(&mut self, asked: Asked<'a, 'd>) -> Result<usize, Stopped> {
        let (claim, request) = (|| self.claim_name(asked), || asked.ask.name().to_owned());
        if let Some(detail) = asked.ask.refusal(&self.allocator.inventory.semantics) {
            return Err(AllocationError::Refused { claim: claim(), request: request(), detail }.into());
        }
        let devices = if let Mode::ExactCount(count) = asked.ask.mode { count } else { 0 };
        self.needs.push(Need { devices, all: Vec::new(), selected: Vec::new() });
        if asked.ask.mode != Mode::All {
            return Ok(devices);
        }
        let all = self.all_devices(asked)?;
        let devices = all.len();
        if let Some(need) = self.needs.last_mut() {
            need.devices = devices;
            need.all = all;
        }
        Ok(devices)
    }

    /// Indices of the devices that a request with `allocationMode: All` gets.
    fn all_devices(&mut self, asked: Asked<'a, 'd>) -> Result<Vec<usize>, Stopped> {
        let mut all = Vec::new();
        for pool in &self.pools.pools {
            let (claim, request) = (self.claim_name(asked), asked.ask.name().to_owned());
            let name = || format!("{}/{}", pool.driver, pool.name);
            match pool.state {
                PoolState::Usable => {}
                PoolState::Incomplete => {
                    return Err(AllocationError::PoolBeingUpdated { claim, request, pool: name() }.into());
                }
                PoolState::Invalid => {
                    return Err(AllocationError::PoolInvalid { claim, request, pool: name() }.into());
                }
            }
            for place in pool.places.clone() {
                self.step()?;
                if self.is_selectable(asked, place)? && self.counts_as_one_of_all(asked, place)? {
                    all.push(place);
                }
            }
        }
        Ok(all)
    }

    /// True if the device has the capacity that a request with `allocationMode: All` requires of each device.
    fn counts_as_one_of_all(&self, asked: Asked<'a, 'd>, place: usize) -> Result<bool, Stopped> {
        let semantics = &self.allocator.inventory.semantics;
        if semantics.all_skips_used_up_shares || !semantics.features.consumable_capacity {
            return Ok(self.capacity_taken(asked, place)?.is_some());
        }
        let Some((_, device)) = self.device_at(place) else { return Ok(false) };
        let fits = capacity::fit(&asked.ask.capacities, &device.capacities, |_| 0, semantics);
        let fits = fits.map_err(|error| self.capacity_error(asked, device.name.to_owned(), error))?;
        Ok(fits.is_some())
    }

    /// True if the device matches the selectors of the class and the request, and its own node selection.
    // upstream v1.37 isSelectable
    pub(crate) fn is_selectable(&mut self, asked: Asked<'a, 'd>, place: usize) -> Result<bool, Stopped> {
        let need = self.needs.get(asked.ask.number);
        if let Some(Some(selected)) = need.and_then(|need| need.selected.get(place).copied()) {
            return Ok(selected);
        }
        let selected = self.select(asked, place)?;
        let places = self.pools.places.len();
        if let Some(need) = self.needs.get_mut(asked.ask.number) {
            need.selected.resize(places, None);
            if let Some(slot) = need.selected.get_mut(place) {
                *slot = Some(selected);
            }
        }
        Ok(selected)
    }

    fn select(&self, asked: Asked<'a, 'd>, place: usize) -> Result<bool, Stopped> {
        let Some((place, device)) = self.device_at(place) else { return Ok(false) };
        let inventory = self.allocator.inventory;
        let Some(candidate) = inventory.candidate(place.device) else { return Ok(false) };
        if device.has_binding_conditions && !inventory.semantics.features.binding_conditions {
            return Ok(false);
        }
        Ok(self.selectors_match(asked, candidate, true)?
            && self.selectors_match(asked, candidate, false)?
            && place.is_reachable)
    }

    fn selectors_match(
        &self,
        asked: Asked<'a, 'd>,
        device: Candidate<'d>,
        of_class: bool,
    ) -> Result<bool, Stopped> {
        let selectors = if of_class { asked.ask.class_selectors() } else { asked.ask.selectors() };
        for (index, selector) in selectors.iter().enumerate() {
            let expression = selector.cel().map_or("", |cel| cel.expression());
            match self.allocator.selectors.matches(expression, device) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    let source = if of_class {
                        SelectorSource::Class(asked.ask.class_name.to_owned())
                    } else {
                        SelectorSource::Claim(self.claim_name(asked))
                    };
                    return Err(self.selector_error(source, index, device, error).into());
                }
            }
        }
        Ok(true)
    }

    fn selector_error(
        &self,
        source: SelectorSource,
        index: usize,
        device: Candidate<'d>,
        error: SelectorError,
    ) -> AllocationError {
        let names_device = self.allocator.inventory.semantics.selector_errors_name_device;
        let device = names_device.then(|| device.to_string());
        AllocationError::Selector { source, index, device, error }
    }
}
