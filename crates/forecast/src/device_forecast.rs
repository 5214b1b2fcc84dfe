//! Which devices are allocated, blocked and free at the end of the simulated runs.
//!
//! A device can be taken without being allocated: partitions share the counters of their GPU, so one allocation blocks
//! others. So the state of every device is computed after each run, from the allocations of that run alone. Taints
//! are no part of this, because they are the same in all runs.

use crate::eras::DevicesInEra;
use crate::nodes::Nodes;
use crate::plan::Plan;
use std::collections::BTreeMap;
use tollgate_allocator::{DeviceUsage, Node};

/// The fractions of the simulated runs, from 0 to 1, at whose end a device is in each state.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceForecast {
    /// Name of the ResourceSlice that publishes the device.
    pub slice: String,
    pub device: String,
    /// A claim holds the device, or a share of it.
    pub allocated: f64,
    /// No request can be allocated the device.
    pub blocked: f64,
    /// Neither allocated nor blocked. The device may have taints.
    pub available: f64,
}

/// The state of each device at the end of one run, in the order of the inventory of a device era.
#[derive(Clone, Debug)]
pub(crate) struct DeviceStatesAfterRun {
    /// Index of the device era in which the run ends.
    era: usize,
    states: Vec<RunCounts>,
}

/// The number of runs at whose end a device is allocated, blocked and available. Of one run, each is 0 or 1.
type RunCounts = [u32; 3];

impl DeviceStatesAfterRun {
    /// The states of all devices of an era, whose index is `number`, if claims hold the devices of `usage`.
    pub(crate) fn new<'d>(
        (number, era): (usize, &DevicesInEra<'d>),
        usage: &DeviceUsage<'d>,
        nodes: &Nodes<'d>,
    ) -> DeviceStatesAfterRun {
        let schedulable = nodes.iter().filter(|(_, info)| !info.unschedulable).map(|(_, info)| info.node);
        let schedulable: Vec<Node<'d>> = schedulable.collect();
        let nodes = (!nodes.is_empty()).then_some(schedulable.as_slice());
        let obstacles = era.inventory.obstacles_other_than_holders_and_taints(usage, nodes);
        let states = era.inventory.published_devices().map(|device| {
            let is_allocated = usage.is_held_or_shared(device.key());
            let is_blocked = obstacles.get(device.candidate.index).is_some_and(Option::is_some);
            [is_allocated, is_blocked, !is_allocated && !is_blocked].map(u32::from)
        });
        DeviceStatesAfterRun { era: number, states: states.collect() }
    }
}

/// Adds the number of runs for each state.
fn add_runs(sum: &mut RunCounts, counts: &RunCounts) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// Counts the states of devices over all runs.
#[derive(Default)]
pub(crate) struct DeviceTally {
    /// The counts of each device, in the order of the inventory, by device era.
    by_era: BTreeMap<usize, Vec<RunCounts>>,
}

impl DeviceTally {
    pub(crate) fn add_run(&mut self, run: &DeviceStatesAfterRun) {
        let counts = self.by_era.entry(run.era).or_default();
        counts.resize(run.states.len(), RunCounts::default());
        counts.iter_mut().zip(&run.states).for_each(|(sum, state)| add_runs(sum, state));
    }

    /// The forecasts of all devices, by slice and name. Empty if no run was counted.
    pub(crate) fn into_forecasts(self, plan: &Plan<'_>, samples: u32) -> Vec<DeviceForecast> {
        let mut by_name: BTreeMap<(&str, &str), RunCounts> = BTreeMap::new();
        for (era, counts) in &self.by_era {
            let Some(era) = plan.eras.devices.get(*era) else { continue };
            for (device, counts) in era.inventory.published_devices().zip(counts) {
                add_runs(by_name.entry((device.slice_name(), device.candidate.name)).or_default(), counts);
            }
        }
        let fraction = |count: u32| f64::from(count) / f64::from(samples.max(1));
        let forecasts = by_name.into_iter().map(|((slice, device), counts)| {
            let [allocated, blocked, available] = counts.map(fraction);
            let (slice, device) = (slice.to_owned(), device.to_owned());
            DeviceForecast { slice, device, allocated, blocked, available }
        });
        forecasts.collect()
    }
}
