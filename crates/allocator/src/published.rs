//! A published device of the inventory, independent of nodes and requests.

use crate::capacity;
use crate::inventory::{Device, DeviceKey, Inventory, Slice};
use crate::node::NodeSelection;
use crate::selector::Candidate;
use crate::usage::DeviceUsage;
use tollgate_api::profile::AllocatorSemantics;
use tollgate_api::view::{RequestBody, Taint};
use tollgate_formats::quantity::Quantity;

/// A device published by a ResourceSlice.
#[derive(Clone, Copy, Debug)]
pub struct PublishedDevice<'i, 'd> {
    /// The device as selectors see it, with its index in the inventory.
    pub candidate: Candidate<'d>,
    device: &'i Device<'d>,
    slice: &'i Slice<'d>,
}

impl<'d> Inventory<'d> {
    /// Every device of every slice, including slices of outdated generations.
    pub fn published_devices(&self) -> impl Iterator<Item = PublishedDevice<'_, 'd>> {
        self.devices.iter().enumerate().filter_map(|(index, device)| {
            let slice = self.slices.get(device.slice)?;
            Some(PublishedDevice { candidate: self.candidate(index)?, device, slice })
        })
    }
}

impl<'i, 'd> PublishedDevice<'i, 'd> {
    /// The key by which allocation results identify the device.
    pub fn key(self) -> DeviceKey {
        self.device.key
    }

    /// Name of the ResourceSlice.
    pub fn slice_name(self) -> &'d str {
        self.slice.name
    }

    /// The generation of the pool that the slice of the device announces.
    pub fn pool_generation(self) -> i64 {
        self.slice.generation
    }

    /// True if the slice sets `perDeviceNodeSelection`, so that devices have their own node selection.
    pub fn has_own_node_selection(self) -> bool {
        self.slice.has_nodes_per_device()
    }

    /// The nodes that can use the device, according to its own node selection or that of the slice.
    pub fn nodes(self) -> NodeSelection<'d> {
        if self.has_own_node_selection() { self.device.nodes } else { self.slice.nodes }
    }

    /// The taints of the device, each with the name of its DeviceTaintRule, or `None` for a taint of the
    /// slice.
    pub fn taints_with_rules(self) -> impl Iterator<Item = (Taint<'d>, Option<&'d str>)> + use<'i, 'd> {
        let rules = &self.device.tainting_rules;
        let own = self.device.taints.len().saturating_sub(rules.len());
        let sources = std::iter::repeat_n(None, own).chain(rules.iter().copied().map(Some));
        self.device.taints.iter().copied().zip(sources)
    }

    /// True if the shares of allocated claims leave too little of a capacity for the request.
    pub fn has_too_little_capacity_left(
        self,
        request: RequestBody<'d>,
        usage: &DeviceUsage<'d>,
        semantics: &AllocatorSemantics,
    ) -> bool {
        let used = |name: &str| usage.consumed_capacity(self.device.key, name);
        let requested = capacity::requested_amounts(request, semantics);
        let fits = |used: &dyn Fn(&str) -> i128| {
            let amounts =
                capacity::consumed_amounts_if_fitting(&requested, &self.device.capacities, used, semantics);
            matches!(amounts, Ok(Some(_)))
        };
        semantics.features.consumable_capacity && !fits(&used) && fits(&|_| 0)
    }

    /// The remaining amount of each capacity after the shares of allocated claims.
    pub fn capacity_left(self, usage: &DeviceUsage<'d>) -> Vec<(&'d str, Quantity<'static>)> {
        let capacities = self.device.capacities.iter();
        capacities
            .map(|capacity| {
                (
                    capacity.name,
                    capacity.remaining_after(usage.consumed_capacity(self.device.key, capacity.name)),
                )
            })
            .collect()
    }
}
