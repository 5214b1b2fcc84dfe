//! Preparation of the search: the number of devices that each request needs on this node, and the devices of requests
//! with `allocationMode: All`.
//!
//! Claims, requests and alternatives are processed in order, and the first problem ends the allocation, even if it is
//! about an alternative that would not be needed.

use crate::capacity;
use crate::claim::AllocationMode;
use crate::outcome::{AllocationError, MAX_DEVICES_PER_CLAIM, SelectorSource};
use crate::pools::PoolState;
use crate::search::{ClaimRequest, PodSearch, Stopped};
use crate::selector::{Candidate, SelectorEvaluator};

/// The devices that a request or alternative needs on this node.
#[derive(Debug)]
pub(crate) struct DeviceNeed {
    /// Number of devices that the request or alternative needs.
    pub(crate) devices: usize,
    /// For `allocationMode: All`, the indices of these devices in `NodePools::node_devices`.
    pub(crate) all: Vec<usize>,
    /// Cached selector results, by index in `NodePools::node_devices`; `None` if not evaluated yet.
    selected: Vec<Option<bool>>,
}

impl<'a, 'd, S: SelectorEvaluator + ?Sized> PodSearch<'a, 'd, S> {
    /// Computes the number of devices that each request needs, and checks each claim against the limit.
    // upstream v1.37 Allocate, validateDeviceRequest
    pub(crate) fn compute_needs_and_check_device_limit(&mut self) -> Result<(), Stopped> {
        for (index, claim) in self.claims.iter().enumerate() {
            let mut least = 0_usize;
            for request in &claim.requests {
                let mut fewest = None;
                for details in &request.alternatives {
                    let devices = self.add_need_and_count_devices(ClaimRequest { claim: index, details })?;
                    fewest = Some(fewest.map_or(devices, |fewest: usize| fewest.min(devices)));
                }
                least = least.saturating_add(fewest.unwrap_or(0));
            }
            if least > MAX_DEVICES_PER_CLAIM {
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

    /// Computes the devices that one request or alternative needs, and adds them to the needs of the search. Returns
    /// their number.
    fn add_need_and_count_devices(&mut self, claim_request: ClaimRequest<'a, 'd>) -> Result<usize, Stopped> {
        let (claim, request) = (
            || self.claim_name(claim_request),
            || claim_request.details.alternative_or_request_name().to_owned(),
        );
        if let Some(detail) = claim_request.details.unsupported_reason(&self.allocator.inventory.semantics) {
            return Err(AllocationError::Refused { claim: claim(), request: request(), detail }.into());
        }
        let devices =
            if let AllocationMode::ExactCount(count) = claim_request.details.mode { count } else { 0 };
        self.needs.push(DeviceNeed { devices, all: Vec::new(), selected: Vec::new() });
        if claim_request.details.mode != AllocationMode::All {
            return Ok(devices);
        }
        let all = self.devices_for_all_mode(claim_request)?;
        let devices = all.len();
        if let Some(need) = self.needs.last_mut() {
            need.devices = devices;
            need.all = all;
        }
        Ok(devices)
    }

    /// Indices of the devices that a request with `allocationMode: All` gets.
    fn devices_for_all_mode(&mut self, claim_request: ClaimRequest<'a, 'd>) -> Result<Vec<usize>, Stopped> {
        let mut all = Vec::new();
        for pool in &self.pools.pools {
            let (claim, request) = (
                self.claim_name(claim_request),
                claim_request.details.alternative_or_request_name().to_owned(),
            );
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
            for node_device in pool.node_devices.clone() {
                self.count_step()?;
                if self.is_selectable(claim_request, node_device)?
                    && self.has_capacity_for_all_mode(claim_request, node_device)?
                {
                    all.push(node_device);
                }
            }
        }
        Ok(all)
    }

    /// True if the device has the capacity that a request with `allocationMode: All` requires of each device.
    fn has_capacity_for_all_mode(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
    ) -> Result<bool, Stopped> {
        let semantics = &self.allocator.inventory.semantics;
        if semantics.all_skips_used_up_shares || !semantics.features.consumable_capacity {
            return Ok(self.capacity_to_consume(claim_request, node_device)?.is_some());
        }
        let Some((_, device)) = self.device_at(node_device) else { return Ok(false) };
        let fits = capacity::consumed_amounts_if_fitting(
            &claim_request.details.capacities,
            &device.capacities,
            |_| 0,
            semantics,
        );
        let fits = fits.map_err(|error| self.capacity_error(claim_request, device.name.to_owned(), error))?;
        Ok(fits.is_some())
    }

    /// True if the device matches the selectors of the class and the request, and its own node selection.
    // upstream v1.37 isSelectable
    pub(crate) fn is_selectable(
        &mut self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
    ) -> Result<bool, Stopped> {
        let need = self.needs.get(claim_request.details.number);
        if let Some(Some(selected)) = need.and_then(|need| need.selected.get(node_device).copied()) {
            return Ok(selected);
        }
        let selected = self.evaluate_selectors_and_reachability(claim_request, node_device)?;
        let node_devices = self.pools.node_devices.len();
        if let Some(need) = self.needs.get_mut(claim_request.details.number) {
            need.selected.resize(node_devices, None);
            if let Some(slot) = need.selected.get_mut(node_device) {
                *slot = Some(selected);
            }
        }
        Ok(selected)
    }

    fn evaluate_selectors_and_reachability(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
    ) -> Result<bool, Stopped> {
        let Some((node_device, device)) = self.device_at(node_device) else { return Ok(false) };
        let inventory = self.allocator.inventory;
        let Some(candidate) = inventory.candidate(node_device.device) else { return Ok(false) };
        if device.has_binding_conditions && !inventory.semantics.features.binding_conditions {
            return Ok(false);
        }
        Ok(self.selectors_match(claim_request, candidate, true)?
            && self.selectors_match(claim_request, candidate, false)?
            && node_device.is_reachable)
    }

    /// True if the device matches every selector of the class, or of the request if `of_class` is false.
    fn selectors_match(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        device: Candidate<'d>,
        of_class: bool,
    ) -> Result<bool, Stopped> {
        let selectors = if of_class {
            claim_request.details.class.spec().selectors()
        } else {
            claim_request.details.body.selectors()
        };
        for (index, selector) in selectors.iter().enumerate() {
            let expression = selector.cel().map_or("", |cel| cel.expression());
            match self.allocator.selectors.matches(expression, device) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    let source = if of_class {
                        SelectorSource::Class(claim_request.details.class_name.to_owned())
                    } else {
                        SelectorSource::Claim(self.claim_name(claim_request))
                    };
                    let names_device = self.allocator.inventory.semantics.selector_errors_name_device;
                    let device = names_device.then(|| device.to_string());
                    return Err(AllocationError::Selector { source, index, device, error }.into());
                }
            }
        }
        Ok(true)
    }
}
