//! The filters and scores of kube-scheduler, except for devices: the nodes on which a pod can run, the reasons
//! against the others, and the nodes that the scheduler prefers.
//!
//! [`PodCatalog`] contains the requirements of all pods, and [`Nodes`] the nodes in the scheduler's order.
//! [`Occupancy`] contains the resources that bound pods use; it is cheap to clone, so that many simulated runs can
//! start from the same one. A [`SchedulingCycle`] is one attempt to schedule one pod: it filters and scores nodes.
//! [`NodeFitCache`] caches results that do not depend on other pods, for all cycles.
//!
//! This is the scheduler's default profile without extenders. Volumes, preemption and other features that are not
//! simulated are reported by [`PodNeeds::unmodelled`] and [`SchedulingCycle::preemption_candidates`], so that the
//! caller can mark outcomes as unknown.
//!
//! Invariant: messages are those of the scheduler, and the indices of pods and nodes are those of the catalog and
//! nodes of the same occupancy.

mod affinity;
mod catalog;
mod cycle;
mod fit;
mod images;
mod node;
mod occupancy;
mod pod;
mod preemption;
mod reason;
mod resources;
mod score;
mod selector;
mod spread;
mod unmodelled;

#[cfg(test)]
mod tests;

pub use catalog::{PodCatalog, PodId};
pub use cycle::{SchedulingCycle, feasible_nodes_to_find};
pub use fit::NodeFitCache;
pub use node::{NodeIndex, NodeInfo, Nodes};
pub use occupancy::Occupancy;
pub use pod::{PodNeeds, PodSource};
pub use reason::{Diagnosis, Rejection, RejectionReason};
pub use resources::{ResourceId, ResourceVector, ResourcesDelegatedToDevices};
pub use selector::label_selector_matches;

/// The scheduler's message if the cluster has no nodes.
pub const NO_NODES: &str = "no nodes available to schedule pods";

/// Name of the scheduler that is simulated.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
