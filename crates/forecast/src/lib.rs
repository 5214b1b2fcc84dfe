//! Who holds which device, what is left, and where pods that are evicted or created will go.
//!
//! [`State`] has the objects of a cluster; [`CelSelectors`] evaluates device selectors for the allocator;
//! [`claim_users`] says who has reserved a claim; [`workload_of`] names the workload of a pod; [`group_restarts`] says what happens to the rest of a group;
//! [`report_devices`] lists the devices. Everything is a function of its input: no files, no clock, no threads; chance
//! comes from a seed.

mod allocations;
mod attempt;
mod builder;
mod claims;
mod controllers;
mod course;
mod device_features;
mod device_filter;
mod devices;
mod eras;
mod evictions;
mod explain;
mod extended;
mod forecast;
mod held;
mod jobs;
mod missing;
pub mod nodes;
mod outcome;
mod plan;
mod player;
mod random;
mod restart;
mod selectors;
mod state;
mod stateful_sets;
mod tables;
mod workload;

pub use devices::{
    BlockedBy, ClaimUser, DeviceCounts, DeviceReport, DeviceState, Holder, ReportedClass, ReportedDevice,
    ReportedTaint, claim_users, report_devices,
};
pub use forecast::Course;
pub use outcome::{
    EvictedPod, Forecast, MAX_PLACEMENTS, Origin, Place, PlacedClaim, PlacedDevice, Placement, PodForecast,
    PodOutcome, Totals, WorkloadName,
};
pub use plan::{Plan, Release, Settings, Step};
pub use player::Player;
pub use restart::{GROUP_KINDS, GroupRestart, UnitName, group_restarts, job_failure, unit_of};
pub use selectors::CelSelectors;
pub use state::{ObjectKind, Objects, State, StoredObject};
pub use workload::{Workload, controller_reference, controllers_of, workload_of};
