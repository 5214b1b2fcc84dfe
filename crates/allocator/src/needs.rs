//! Preparation of the search: the number of devices that each request needs on this node, and the devices of requests
//! with `allocationMode: All`.
//!
//! Claims, requests and alternatives are processed in order, and the first problem ends the allocation, even if it is
//! about an alternative that would not be needed.

use crate::capacity;
use crate::claim::AllocationMode;
use crate::outcome::{AllocationError, MAX_DEVICES_PER_CLAIM};
use crate::pools::PoolState;
use crate::search::{ClaimRequest, PodSearch, Stopped};
use crate::selector::{Candidate, SelectorError, SelectorEvaluator};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The devices that a request or alternative needs on this node.
#[derive(Debug)]
pub(crate) struct DeviceNeed {
    /// Number of devices that the request or alternative needs.
    pub(crate) devices: usize,
    /// For `allocationMode: All`, the indices of these devices in `NodePools::node_devices`.
    pub(crate) all: Vec<usize>,
    /// The selector results so far, by index in `NodePools::node_devices`.
    selected: HashMap<usize, bool, RandomState>,
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
                return Err(AllocationError::Other(format!(
                    "claim {}: number of requested devices {least} exceeds the claim limit of {MAX_DEVICES_PER_CLAIM}",
                    claim.id
                ))
                .into());
            }
            let known = claim.constraints.iter().enumerate().map(|(index, constraint)| {
                constraint.clone().ok_or_else(|| {
                    AllocationError::Other(format!(
                        "claim {}, constraint #{index}: empty constraint (unsupported constraint type?)",
                        claim.id
                    ))
                })
            });
            self.constraints.push(known.collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    /// Computes the devices that one request or alternative needs, and adds them to the needs of the search. Returns
    /// their number.
    fn add_need_and_count_devices(&mut self, claim_request: ClaimRequest<'a, 'd>) -> Result<usize, Stopped> {
        if let Some(detail) = claim_request.details.unsupported_reason(&self.allocator.inventory.semantics) {
            return Err(AllocationError::Other(self.text_about(claim_request, &detail)).into());
        }
        let devices =
            if let AllocationMode::ExactCount(count) = claim_request.details.mode { count } else { 0 };
        self.needs.push(DeviceNeed { devices, all: Vec::new(), selected: HashMap::default() });
        if claim_request.details.mode != AllocationMode::All {
            return Ok(devices);
        }
        let all = self.devices_for_all_mode(claim_request)?;
        let devices = all.len();
        let need = self.need_mut(claim_request);
        (need.devices, need.all) = (devices, all);
        Ok(devices)
    }

    /// Indices of the devices that a request with `allocationMode: All` gets.
    fn devices_for_all_mode(&mut self, claim_request: ClaimRequest<'a, 'd>) -> Result<Vec<usize>, Stopped> {
        let mut all = Vec::new();
        for pool in &self.pools.pools {
            let defect = match pool.state {
                PoolState::Usable => None,
                PoolState::Incomplete => Some("being updated"),
                PoolState::Invalid => Some("invalid"),
            };
            if let Some(defect) = defect {
                let pool = format!("{}/{}", pool.driver, pool.name);
                let detail =
                    format!(": asks for all devices, but resource pool {pool} is currently {defect}");
                return Err(AllocationError::Other(self.text_about(claim_request, &detail)).into());
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
        let (_, device) = self.device_at(node_device);
        let fits = capacity::consumed_amounts_if_fitting(
            &claim_request.details.capacities,
            &device.capacities,
            |_| 0,
            semantics,
        );
        let fits = fits.map_err(|error| self.capacity_error(claim_request, device.name, &error))?;
        Ok(fits.is_some())
    }

    /// True if the device matches the selectors of the class and the request, and its own node selection.
    // upstream v1.37 isSelectable
    pub(crate) fn is_selectable(
        &mut self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
    ) -> Result<bool, Stopped> {
        if let Some(selected) = self.need_mut(claim_request).selected.get(&node_device) {
            return Ok(*selected);
        }
        let selected = self.evaluate_selectors_and_reachability(claim_request, node_device)?;
        self.need_mut(claim_request).selected.insert(node_device, selected);
        Ok(selected)
    }

    fn evaluate_selectors_and_reachability(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        node_device: usize,
    ) -> Result<bool, Stopped> {
        let (node_device, device) = self.device_at(node_device);
        let inventory = self.allocator.inventory;
        let candidate = inventory.candidate(node_device.device);
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
                Err(SelectorError::Unsupported(what)) => return Err(Stopped::Unsupported(what)),
                Err(SelectorError::Compile(text)) => {
                    let detail = format!(": CEL compile error: {text}");
                    return Err(self.selector_error(claim_request, of_class, index, &detail));
                }
                Err(SelectorError::Runtime(text)) => {
                    let detail = self.runtime_error_detail(device, &text);
                    return Err(self.selector_error(claim_request, of_class, index, &detail));
                }
            }
        }
        Ok(true)
    }

    fn selector_error(
        &self,
        claim_request: ClaimRequest<'a, 'd>,
        of_class: bool,
        index: usize,
        detail: &str,
    ) -> Stopped {
        let source = if of_class {
            format!("class {}", claim_request.details.class_name)
        } else {
            format!("claim {}", self.claim_name(claim_request))
        };
        AllocationError::Other(format!("{source}: selector #{index}{detail}")).into()
    }

    /// How a selector fails for a device. Releases that name the device also add a hint about missing keys.
    fn runtime_error_detail(&self, device: Candidate<'d>, text: &str) -> String {
        const MISSING_KEY_HINT: &str = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with \
                            has() for optional fields";
        if !self.allocator.inventory.semantics.selector_errors_name_device {
            return format!(": CEL runtime error: {text}");
        }
        let hint = if text.contains("no such key:") { MISSING_KEY_HINT } else { "" };
        format!(" on device {device}: CEL runtime error: {text}{hint}")
    }
}
