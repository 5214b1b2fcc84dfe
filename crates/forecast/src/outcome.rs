//! The result of a forecast: the evicted pods, and the outcome of each pod over all simulated runs.
//!
//! These are plain values without borrows, so that runs can be simulated in several threads and combined at the end.
//! Formatting as text or JSON is not part of this module.

use crate::device_forecast::DeviceForecast;
use std::collections::BTreeMap;
use tollgate_formats::gotime::Timestamp;

/// Maximum number of placements listed for one pod. The others are only counted.
pub const MAX_LISTED_PLACEMENTS: usize = 32;

/// The expected effects of applying objects to a cluster: evicted pods, and where pods go.
#[derive(Clone, PartialEq, Debug)]
pub struct Forecast {
    /// Number of simulated runs.
    pub samples: u32,
    /// The pods of the initial state that are evicted, by time.
    pub evicted: Vec<EvictedPod>,
    /// The given pods, the replacements of evicted pods, and the pods that were pending initially.
    pub pods: Vec<PodForecast>,
    pub totals: PodOutcomeCounts,
    /// Maximum number of pending pods in one run. It can exceed the number of pods with the outcome
    /// `Pending`, because pods that fit only sometimes are included.
    pub most_pending: usize,
    /// The devices after the runs, by slice and name. Empty without [`Settings::counts_devices`].
    ///
    /// [`Settings::counts_devices`]: crate::Settings::counts_devices
    pub devices: Vec<DeviceForecast>,
    /// Kinds missing from the state, such as `Nodes`. Pods that depend on them have an unknown outcome.
    pub missing: Vec<String>,
}

/// A pod that is evicted in the forecast, with the time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EvictedPod {
    pub at: Timestamp,
    pub namespace: String,
    pub name: String,
}

/// Number of pods with each outcome.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PodOutcomeCounts {
    pub fits: usize,
    pub sometimes: usize,
    pub pending: usize,
    pub unknown: usize,
    pub not_recreated: usize,
}

tollgate_formats::named_enum! {
    /// Why a pod is part of the forecast.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum PodOrigin {
        /// The pod is among the given objects, or created by a given workload.
        Given = "given",
        /// The pod replaces an evicted pod.
        Replacement = "replacement",
        /// The pod was pending in the initial state.
        Waiting = "waiting",
    }
}

tollgate_formats::named_enum! {
    /// The outcome of a pod over all simulated runs.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum PodOutcome {
        /// The pod is bound to a node in every run.
        Fits = "fits",
        /// The pod is bound in some runs.
        Sometimes = "sometimes",
        /// The pod is bound in no run.
        Pending = "pending",
        /// The outcome depends on a feature that is not simulated.
        Unknown = "unknown",
        /// The pod is evicted and not recreated, or its StatefulSet waits for a predecessor that never becomes
        /// ready.
        NotRecreated = "not-recreated",
    }
}

/// Name of the workload of a pod: the outermost controller that the state contains.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkloadName {
    pub kind: String,
    pub name: String,
}

/// The outcome of one pod over all simulated runs.
#[derive(Clone, PartialEq, Debug)]
pub struct PodForecast {
    pub namespace: String,
    /// Name of the pod; `None` if it is generated when the pod is created.
    pub name: Option<String>,
    pub origin: PodOrigin,
    /// Name of the evicted pod that this pod replaces.
    pub replaces: Option<String>,
    pub workload: Option<WorkloadName>,
    pub outcome: PodOutcome,
    /// Number of runs in which the pod is bound at the end.
    pub fits: u32,
    /// Number of runs in which the pod is not created.
    pub not_recreated: u32,
    /// True if in some run the pod is evicted again after it was bound, and would be again and again.
    pub evicted_again: bool,
    /// The placements of the pod over all runs, most frequent first.
    pub placements: Vec<PlacementWithRunCount>,
    /// Number of placements that are not listed.
    pub placements_omitted: usize,
    /// Reason of the PodScheduled condition, if the scheduler sets it.
    pub reason: Option<String>,
    /// Message of the PodScheduled condition, up to " preemption:".
    pub message: Option<String>,
    /// Tollgate's explanation of why the pod is pending or not created.
    pub explanation: Option<String>,
    /// Features of the pod that are not simulated.
    pub not_modelled: Vec<String>,
}

/// A node and devices that a pod gets, with the number of simulated runs in which it gets them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacementWithRunCount {
    /// Number of runs with this placement.
    pub courses: u32,
    pub place: NodeAndDevices,
}

/// A node, and the devices of the pod's claims.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeAndDevices {
    pub node: String,
    /// All claims of the pod, in the order of its spec.
    pub claims: Vec<PlacedClaim>,
}

/// A claim of a pod and its allocated devices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlacedClaim {
    /// Name in the pod's `spec.resourceClaims`; `None` for the claim that the scheduler creates for extended
    /// resources.
    pub reference: Option<String>,
    /// Name of the ResourceClaim; `None` if it is generated.
    pub name: Option<String>,
    pub devices: Vec<PlacedDevice>,
}

/// A device allocated to a claim.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlacedDevice {
    /// Request name in the format of allocation results: `request` or `request/alternative`.
    pub request: String,
    pub driver: String,
    pub pool: String,
    pub device: String,
    /// Capacity that the claim consumes, by name; `None` if the device is not shared.
    pub consumed_capacity: Option<BTreeMap<String, String>>,
}
