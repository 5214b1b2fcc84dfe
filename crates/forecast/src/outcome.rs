//! What a forecast says: who is evicted, and what becomes of each pod over all courses.
//!
//! These are plain values without borrows, so that courses can be played in several threads and put together at the end.
//! How they are written, as text or JSON, is not here.

use std::collections::BTreeMap;
use tollgate_formats::gotime::Timestamp;

/// The most placements that a forecast lists for one pod; the rest is counted.
pub const MAX_PLACEMENTS: usize = 32;

/// What happens if the given objects are applied.
#[derive(Clone, PartialEq, Debug)]
pub struct Forecast {
    /// The number of courses that were played.
    pub samples: u32,
    /// The pods of the state that are evicted, in order of time.
    pub evicted: Vec<EvictedPod>,
    /// The pods given, those that replace evicted ones, and those that waited in the state.
    pub pods: Vec<PodForecast>,
    pub totals: Totals,
    /// The largest number of pods that stay pending in one course. With pods that fit sometimes, it can be larger than the
    /// total of those that never do.
    pub most_pending: usize,
    /// The kinds that the state lacks, such as `Nodes`. The outcomes of pods that need them are unknown.
    pub missing: Vec<String>,
}

/// A pod that is evicted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EvictedPod {
    pub at: Timestamp,
    pub namespace: String,
    pub name: String,
}

/// How many pods have each outcome.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Totals {
    pub fits: usize,
    pub sometimes: usize,
    pub pending: usize,
    pub unknown: usize,
    pub not_recreated: usize,
}

/// Where a pod comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Origin {
    /// It is among the given objects, or a workload among them makes it.
    Given,
    /// It replaces a pod that is evicted.
    Replacement,
    /// It is in the state, and not bound to a node.
    Waiting,
}

impl Origin {
    /// The origin as a word, such as `given`.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Given => "given",
            Origin::Replacement => "replacement",
            Origin::Waiting => "waiting",
        }
    }
}

/// What becomes of a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PodOutcome {
    /// It is bound to a node in every course.
    Fits,
    /// It is bound in some courses.
    Sometimes,
    /// It is bound in no course.
    Pending,
    /// It depends on something that is not modelled.
    Unknown,
    /// It is evicted, and nothing makes it again; or its StatefulSet makes it after a pod that is never ready.
    NotRecreated,
}

impl PodOutcome {
    /// The outcome as a word, such as `fits`.
    pub fn name(self) -> &'static str {
        match self {
            PodOutcome::Fits => "fits",
            PodOutcome::Sometimes => "sometimes",
            PodOutcome::Pending => "pending",
            PodOutcome::Unknown => "unknown",
            PodOutcome::NotRecreated => "not-recreated",
        }
    }
}

/// The workload that a pod belongs to: the outermost controller that the state knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkloadName {
    pub kind: String,
    pub name: String,
}

/// What becomes of one pod.
#[derive(Clone, PartialEq, Debug)]
pub struct PodForecast {
    pub namespace: String,
    /// `None` if the name is not known before the pod is made.
    pub name: Option<String>,
    pub origin: Origin,
    /// The name of the evicted pod that it replaces.
    pub replaces: Option<String>,
    pub workload: Option<WorkloadName>,
    pub outcome: PodOutcome,
    /// The number of courses in which it is bound at the end.
    pub fits: u32,
    /// The number of courses in which nothing makes it.
    pub not_recreated: u32,
    /// In some course it is evicted after it was bound, and would be again and again.
    pub evicted_again: bool,
    /// The most frequent first.
    pub placements: Vec<Placement>,
    /// How many more placements there are.
    pub placements_omitted: usize,
    /// The reason of the condition PodScheduled, if the scheduler writes one.
    pub reason: Option<String>,
    /// Its message, up to " preemption:".
    pub message: Option<String>,
    /// Why the pod is pending or not made, in our words.
    pub explanation: Option<String>,
    /// What the pod uses that is not modelled.
    pub not_modelled: Vec<String>,
}

/// A node and devices that a pod gets in some courses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The number of courses in which it gets them.
    pub courses: u32,
    pub place: Place,
}

/// A node and devices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    pub node: String,
    /// Every claim of the pod, in its order.
    pub claims: Vec<PlacedClaim>,
}

/// A claim with the devices that are allocated to it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlacedClaim {
    /// The name in the pod's spec; `None` for the claim that the scheduler makes for extended resources.
    pub reference: Option<String>,
    /// `None` if the name is generated.
    pub name: Option<String>,
    pub devices: Vec<PlacedDevice>,
}

/// A device of a claim.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlacedDevice {
    /// As the allocation result has it: `request`, or `request/alternative`.
    pub request: String,
    pub driver: String,
    pub pool: String,
    pub device: String,
    /// What the claim consumes of the device's capacities; `None` for a device that is not shared.
    pub consumed_capacity: Option<BTreeMap<String, String>>,
}
