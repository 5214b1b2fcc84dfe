//! Explains why a pod finds no devices, by counting the devices of each requested class by reason.
//!
//! Every device that the class selects is counted once, for the first of these reasons that applies: the request does
//! not select it, another claim holds it or too much of it, a taint, the pool or its counters, the node. All others are free.

use crate::course::Simulation;
use crate::nodes::SchedulingCycle;
use crate::tables::PodIndex;
use std::collections::BTreeMap;
use tollgate_allocator::{
    Candidate, DeviceObstacle, Node, NodeSelection, PublishedDevice, all_blocking_taints_tolerated,
};
use tollgate_api::view::{List, RequestBody, Selector};

/// Maximum number of requests of a pod that are explained.
const MAX_EXPLAINED_REQUESTS: usize = 3;

/// With more devices than this, pending pods are explained only in some of the simulated runs.
const MAX_DEVICES_TO_EXPLAIN_EVERY_RUN: usize = 2000;

/// Number of devices of a requested class by the reason why the pod cannot get them.
#[derive(Default)]
struct DeviceTally {
    all: usize,
    not_selected: usize,
    in_use: usize,
    /// Shared devices with too little capacity left for the request.
    without_capacity: usize,
    tainted: usize,
    blocked: BTreeMap<String, usize>,
    /// Free devices on nodes that the pod cannot use, by the scheduler's message.
    unusable: BTreeMap<String, usize>,
    free: usize,
    /// Free devices that only one node can use, by node.
    free_on: BTreeMap<String, usize>,
}

impl DeviceTally {
    /// The counts as a sentence, such as `Class gpu has 8 devices: 6 in use, 2 free.`
    fn sentence(&self, class: &str) -> String {
        let mut parts = Vec::new();
        let mut part = |count: usize, what: &str| {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        };
        part(self.not_selected, "not selected by the request");
        part(self.in_use, "in use");
        part(self.without_capacity, "with too little capacity left");
        part(self.tainted, "with taints that the request does not tolerate");
        for (obstacle, count) in &self.blocked {
            part(*count, &format!("blocked ({obstacle})"));
        }
        for (reason, count) in &self.unusable {
            part(*count, &format!("on nodes that the pod cannot use ({reason})"));
        }
        let most = self.free_on.values().copied().max().unwrap_or(self.free);
        let is_spread = most < self.free && self.free_on.values().sum::<usize>() == self.free;
        let spread = if is_spread { format!("free (at most {most} on one node)") } else { "free".to_owned() };
        part(self.free, &spread);
        let devices = if self.all == 1 { "device" } else { "devices" };
        let list = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        format!("Class {class} has {} {devices}{list}.", self.all)
    }
}

impl<'p> Simulation<'_, 'p> {
    /// True if pending pods are explained in this run. An explanation checks every device, so in a large
    /// cluster only some runs have one.
    pub(crate) fn should_explain_run(&self, course: u32) -> bool {
        let devices = self.plan.eras.devices_in(self.devices.era).inventory.published_devices().count();
        let stride = u32::try_from(1 + devices / MAX_DEVICES_TO_EXPLAIN_EVERY_RUN).unwrap_or(u32::MAX);
        course.is_multiple_of(stride)
    }

    /// Adds an explanation to the pods that found no devices. Pods with equal requirements share it.
    pub(crate) fn explain_unschedulable_pods(&mut self) {
        let is_unschedulable = |pod: &PodIndex| {
            let reason = self.pending.get(pod).and_then(|pending| pending.condition.as_ref());
            reason.is_some_and(|(reason, _)| reason == "Unschedulable")
        };
        let pods: Vec<PodIndex> = self.queue.iter().copied().filter(is_unschedulable).collect();
        if pods.is_empty() {
            return;
        }
        // They are the same for all pods, and take longer than anything else about a pod.
        let obstacles = self.device_obstacles();
        let mut known: Vec<(PodIndex, Option<String>)> = Vec::new();
        for pod in pods {
            let twin = known.iter().find(|(other, _)| self.have_equal_requirements(pod, *other));
            let explanation = if let Some((_, explanation)) = twin {
                explanation.clone()
            } else {
                let explanation = self.describe_requested_device_supply(pod, &obstacles);
                known.push((pod, explanation.clone()));
                explanation
            };
            if let Some(pending) = self.pending.get_mut(&pod) {
                pending.explanation = explanation;
            }
        }
    }

    /// The obstacles of all devices, in the order of the inventory.
    fn device_obstacles(&self) -> Vec<Option<DeviceObstacle>> {
        let (eras, era) = (&self.plan.eras, self.devices.era);
        let nodes: Vec<Node<'p>> = eras.nodes_in(era).iter().map(|(_, info)| info.node).collect();
        let inventory = &eras.devices_in(era).inventory;
        inventory.obstacles_other_than_holders_and_taints(&self.devices.usage, Some(&nodes))
    }

    /// Describes the devices of each class that the pod requests; `None` if it requests no devices.
    fn describe_requested_device_supply(
        &mut self,
        pod: PodIndex,
        obstacles: &[Option<DeviceObstacle>],
    ) -> Option<String> {
        let plan = self.plan;
        let entry = plan.tables.pod(pod);
        let claims = self.read_pod_claims(pod, entry).ok()?;
        let era = self.devices.era;
        let classes = plan.eras.classes_in(era);
        let inventory = &plan.eras.devices_in(era).inventory;
        let cycle =
            SchedulingCycle::start(&self.occupancy, self.node_fits(), &classes.delegated, entry.needs)
                .ok()?;
        let requests =
            claims.unallocated.iter().flat_map(|(_, asked)| asked.spec.requests_and_alternatives());
        let mut sentences: Vec<String> = Vec::new();
        for request in requests.take(MAX_EXPLAINED_REQUESTS) {
            let name = request.device_class_name();
            let Some(class) = classes.classes.get(name) else { continue };
            let mut tally = DeviceTally::default();
            for device in inventory.published_devices() {
                let obstacle = obstacles.get(device.candidate.index).copied().flatten();
                if obstacle == Some(DeviceObstacle::Outdated)
                    || !self.all_selectors_match(class.spec().selectors(), device.candidate)
                {
                    continue;
                }
                self.count_device(&mut tally, request, device, obstacle, &cycle);
            }
            let sentence = tally.sentence(name);
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Counts a device of the class under the first reason that applies.
    fn count_device(
        &self,
        tally: &mut DeviceTally,
        request: RequestBody<'p>,
        device: PublishedDevice<'_, 'p>,
        obstacle: Option<DeviceObstacle>,
        cycle: &SchedulingCycle<'_, 'p, 'p>,
    ) {
        tally.all += 1;
        let taints = device.taints_with_rules().map(|(taint, _)| taint);
        if !self.all_selectors_match(request.selectors(), device.candidate) {
            tally.not_selected += 1;
        } else if self.devices.usage.is_held_exclusively(device.key()) && request.admin_access() != Some(true)
        {
            tally.in_use += 1;
        } else if device.has_too_little_capacity_left(
            request,
            &self.devices.usage,
            &self.plan.release.semantics,
        ) {
            tally.without_capacity += 1;
        } else if !all_blocking_taints_tolerated(taints, request.tolerations()) {
            tally.tainted += 1;
        } else if let Some(obstacle) = obstacle {
            *tally.blocked.entry(obstacle.to_string()).or_default() += 1;
        } else if let NodeSelection::Name(name) = device.nodes()
            && let Some(node) = self.occupancy.nodes().find(name)
            && let Err(rejection) = cycle.check_node_without_devices(node)
        {
            let reasons = rejection.reasons.iter();
            let texts: Vec<_> = reasons.map(|reason| reason.scheduler_message(&self.plan.catalog)).collect();
            *tally.unusable.entry(texts.join(", ")).or_default() += 1;
        } else {
            tally.free += 1;
            if let NodeSelection::Name(name) = device.nodes() {
                *tally.free_on.entry(name.to_owned()).or_default() += 1;
            }
        }
    }

    /// True if all selectors match the device. A selector that fails does not match.
    fn all_selectors_match(&self, selectors: List<'p, Selector<'p>>, device: Candidate<'p>) -> bool {
        self.cache.selectors_match(self.devices.era, selectors, device, false)
    }
}
