//! A published device as a reader of the inventory sees it, without a node or a request.

use crate::inventory::{Device, DeviceKey, Inventory, Slice};
use crate::node::NodeSelection;
use crate::selector::Candidate;
use crate::usage::Usage;
use tollgate_api::view::Taint;
use tollgate_formats::quantity::Quantity;

/// A device in a ResourceSlice.
#[derive(Clone, Copy, Debug)]
pub struct PublishedDevice<'i, 'd> {
    /// The device as selectors see it, with its number in the inventory.
    pub candidate: Candidate<'d>,
    device: &'i Device<'d>,
    slice: &'i Slice<'d>,
}

impl<'d> Inventory<'d> {
    /// Every device of every slice, also of slices that a newer generation replaces.
    pub fn published(&self) -> impl Iterator<Item = PublishedDevice<'_, 'd>> {
        self.devices.iter().enumerate().filter_map(|(index, device)| {
            let slice = self.slices.get(device.slice)?;
            Some(PublishedDevice { candidate: self.candidate(index)?, device, slice })
        })
    }
}

impl<'i, 'd> PublishedDevice<'i, 'd> {
    /// The device as allocations know it.
    pub fn key(self) -> DeviceKey {
        self.device.key
    }

    /// The name of its slice.
    pub fn slice(self) -> &'d str {
        self.slice.name
    }

    /// The generation of the pool that the slice belongs to.
    pub fn generation(self) -> i64 {
        self.slice.generation
    }

    /// Whether the slice leaves the selection of nodes to its devices.
    pub fn has_own_nodes(self) -> bool {
        self.slice.selects_per_device()
    }

    /// Which nodes can use it: its own selection where the slice leaves that to its devices, else that of the slice.
    pub fn nodes(self) -> NodeSelection<'d> {
        if self.has_own_nodes() { self.device.nodes } else { self.slice.nodes }
    }

    /// Its taints, each with the name of the DeviceTaintRule that it comes from, or `None` for one of the slice.
    pub fn taints(self) -> impl Iterator<Item = (Taint<'d>, Option<&'d str>)> + use<'i, 'd> {
        let rules = &self.device.tainting_rules;
        let own = self.device.taints.len().saturating_sub(rules.len());
        let sources = std::iter::repeat_n(None, own).chain(rules.iter().copied().map(Some));
        self.device.taints.iter().copied().zip(sources)
    }

    /// What shares leave of each of its capacities.
    pub fn capacity_left(self, usage: &Usage<'d>) -> Vec<(&'d str, Quantity<'static>)> {
        let capacities = self.device.capacities.iter();
        capacities
            .map(|capacity| (capacity.name, capacity.left(usage.consumed(self.device.key, capacity.name))))
            .collect()
    }
}
