//! Simulates the scheduler and the controllers on the objects of a cluster: who holds which device, what is left, and
//! where pods that are evicted or created will go.
//!
//! [`State`] contains the objects of a cluster; [`CelSelectorEvaluator`] evaluates device selectors for the allocator;
//! [`claim_users`] returns the consumers of a claim; [`workload_of`] the workload of a pod; [`effects_of_lost_pods`]
//! the effect on the rest of a group; [`report_devices`] lists the devices. The crate is pure: no files, no clock, no
//! threads; random numbers come from a seed.

mod allocations;
mod attempt;
mod builder;
mod claims;
mod controllers;
mod course;
mod device_features;
mod device_filter;
mod device_forecast;
mod devices;
mod eras;
mod evictions;
mod explain;
mod extended;
mod forecast;
mod held;
mod job_policy;
mod jobs;
mod missing;
mod node_taints;
pub mod nodes;
mod outcome;
mod plan;
mod player;
mod random;
mod replacement;
mod restart;
mod selectors;
mod state;
mod stateful_sets;
mod tables;
mod workload;

pub use device_forecast::DeviceForecast;
pub use devices::{
    ClaimUser, ClassMatchCache, DeviceCounts, DeviceReport, DeviceState, Holder, ReportedClass,
    ReportedDevice, ReportedTaint, claim_users, report_devices, report_devices_cached,
};
pub use evictions::grace_period;
pub use forecast::RunOutcome;
pub use job_policy::{PodGivenUp, job_failure_reason, reason_job_gives_up_pod};
pub use outcome::{
    EvictedPod, Forecast, MAX_LISTED_PLACEMENTS, NodeAndDevices, PlacedClaim, PlacedDevice,
    PlacementWithRunCount, PodForecast, PodOrigin, PodOutcome, PodOutcomeCounts, WorkloadName,
};
pub use plan::{ClusterChange, Plan, Settings, SimulatedRelease};
pub use player::RunSimulator;
pub use replacement::is_node_not_ready;
pub use restart::{
    AffectedGroup, GROUP_KINDS, IndivisibleGroupName, effects_of_lost_pods, group_that_moves_together,
};
pub use selectors::CelSelectorEvaluator;
pub use state::{ObjectKind, Objects, State, StoredObject};
pub use tables::requests_and_alternatives_with_names;
pub use tollgate_allocator::tolerates;
pub use workload::{Workload, controller_reference, controllers_of, workload_of};
