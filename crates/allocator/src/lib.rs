//! Allocates devices to the claims of a pod on a node, as the Kubernetes scheduler does, or explains why it cannot.
//!
//! This reproduces upstream's decisions, not its code: for the same objects, the result contains the devices that the
//! scheduler of the release picks, in its order, and the scheduler's messages. [`Inventory`] contains the devices of
//! ResourceSlices with the taints of DeviceTaintRules, [`DeviceUsage`] the devices that allocated claims hold, and
//! [`ClaimsToAllocate`] the requests of a pod; [`Allocator`] performs the search. The differences between releases are
//! data in [`AllocatorSemantics`].
//!
//! The crate is pure: no files, no clock, no threads, no randomness. A search that takes too long stops after a
//! number of steps and reports it. The caller evaluates CEL through [`SelectorEvaluator`].
//!
//! ```
//! use tollgate_allocator::{
//!     AllocationOutcome, Allocator, AllocatorSemantics, Candidate, ClaimsToAllocate, Classes, DEFAULT_MAX_STEPS,
//!     DeviceUsage, Inventory, Node, UnallocatedClaim,
//! };
//! use tollgate_api::{profile::Version, view::{ClaimSpec, Class, Slice}};
//! use tollgate_document::doc::parse;
//!
//! let slice = parse(r#"{"metadata": {"name": "n1-gpus"}, "spec": {"driver": "gpu.example.com", "nodeName": "n1",
//!     "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
//!     "devices": [{"name": "gpu-0", "taints": [{"key": "broken", "effect": "NoSchedule"}]}, {"name": "gpu-1"}]}}"#)?;
//! let class = parse(r#"{"spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}}"#)?;
//! let spec = parse(r#"{"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}"#)?;
//! let node = parse(r#"{"metadata": {"name": "n1"}}"#)?;
//!
//! let semantics = AllocatorSemantics::V1_37;
//! let inventory = Inventory::new(semantics, [(Version::V1, Slice(slice.root()))], []);
//! let classes: Classes = [("gpu", Class(class.root()))].into_iter().collect();
//! let (version, spec) = (Version::V1, ClaimSpec(spec.root()));
//! let claim = UnallocatedClaim { namespace: "app", name: "claim", version, spec };
//! let claims = ClaimsToAllocate::new([claim], [], &classes, &semantics).expect("the class exists");
//!
//! let is_gpu = |_: &str, device: Candidate| Ok(device.driver == "gpu.example.com");
//! let usage = DeviceUsage::default();
//! let allocator =
//!     Allocator { inventory: &inventory, usage: &usage, selectors: &is_gpu, max_steps: DEFAULT_MAX_STEPS };
//! let pools = inventory.pools_for(Node::from_object(node.root()));
//! let AllocationOutcome::Allocated(allocations) = allocator.allocate(&pools, &claims) else { panic!("no device") };
//! assert_eq!(allocations[0].devices[0].device, "gpu-1");
//! # Ok::<(), tollgate_document::doc::SyntaxError>(())
//! ```

mod availability;
mod capacity;
mod claim;
pub mod condition;
mod constraint;
mod inventory;
mod needs;
mod node;
mod outcome;
mod placing;
mod pools;
mod published;
mod result;
mod search;
mod selector;
mod tolerance;
mod usage;

pub use availability::DeviceObstacle;
pub use capacity::CapacityError;
pub use claim::{ClaimsToAllocate, Classes, UnallocatedClaim};
pub use inventory::{DeviceKey, Inventory};
pub use node::{Node, NodeSelection};
pub use outcome::{
    AllocatedDevice, Allocation, AllocationError, AllocationNodes, AllocationOutcome, MAX_DEVICES_PER_CLAIM,
    SelectorSource, UnschedulableReason,
};
pub use pools::NodePools;
pub use published::PublishedDevice;
pub use search::{Allocator, DEFAULT_MAX_STEPS};
pub use selector::{Candidate, SelectorError, SelectorEvaluator};
pub use tolerance::{all_blocking_taints_tolerated, tolerates};
pub use tollgate_api::profile::{AllocatorFeatures, AllocatorSemantics, DistinctComparedValues};
pub use usage::{DeviceHolding, DeviceUsage};
