//! The filters and scores of kube-scheduler, except for devices: on which nodes a pod can run, why not on the others, and
//! which nodes the scheduler prefers.
//!
//! [`Catalog`] has what the pods of a cluster need, read once. [`Nodes`] has what the nodes offer, in the order in which
//! the scheduler looks at them. [`Occupancy`] has what bound pods take from the nodes; it is cheap to clone, so that many
//! courses of events can start from the same one. A [`Cycle`] is one attempt to schedule one pod: it filters nodes and
//! scores those that are left. [`Fits`] remembers for all cycles what does not depend on other pods.
//!
//! It is the default profile of the scheduler without extenders. Volumes, preemption and other things that are not
//! modelled are named by [`PodNeeds::unmodelled`] and [`Cycle::preemption_candidates`], so that the caller does not
//! promise what it cannot know.
//!
//! Invariant: the texts are those of the scheduler, and every pod and node is numbered by the catalog and the nodes that
//! an occupancy was made with.

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
mod semantics;
mod spread;
mod unmodelled;

#[cfg(test)]
mod tests;

pub use catalog::{Catalog, PodId};
pub use cycle::{Cycle, PreFilterRejection, nodes_to_find};
pub use fit::Fits;
pub use node::{NodeIndex, NodeInfo, Nodes};
pub use occupancy::Occupancy;
pub use pod::{PodNeeds, PodSource};
pub use reason::{Diagnosis, Reason, Rejection};
pub use resources::{DelegatedResources, Requests, ResourceId};
pub use selector::selects;
pub use semantics::FilterSemantics;

/// The scheduler's message if the cluster has no nodes.
pub const NO_NODES: &str = "no nodes available to schedule pods";

/// Name of the scheduler that is simulated.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
