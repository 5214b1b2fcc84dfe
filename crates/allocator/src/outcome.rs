//! The result of an allocation: devices, or the reason why there are none, with the scheduler's messages.
//!
//! An [`AllocationError`] concerns the pod: the scheduler reports it immediately, even if another node would be
//! suitable. An [`UnschedulableReason`] concerns the pod or one node, and other nodes are tried.

use crate::node::Node;
use std::borrow::Cow;
use std::fmt;
use tollgate_api::view::{self, List, NodeRequirement, NodeSelector, Strings, Toleration};
use tollgate_formats::quantity::Quantity;

/// Result of allocating the claims of a pod on one node.
#[derive(Debug)]
pub enum AllocationOutcome<'d> {
    /// One allocation for each claim, in the order of the claims.
    Allocated(Vec<Allocation<'d>>),
    /// The claims cannot be allocated on this node.
    Unschedulable(UnschedulableReason),
    /// A claim, class or pool is invalid, which stops scheduling of the pod on all nodes.
    Failed(AllocationError),
    /// The result depends on the named feature, which is not supported.
    Unsupported(&'static str),
    /// The search was stopped after this number of steps, as the scheduler would stop at its time limit.
    GaveUp { steps: u64 },
}

/// The devices allocated to one claim.
#[derive(Clone, Debug)]
pub struct Allocation<'d> {
    pub devices: Vec<AllocatedDevice<'d>>,
    /// The nodes that can use all of these devices.
    pub nodes: AllocationNodes<'d>,
}

/// One device of an allocation, with the request that it is for.
#[derive(Clone, Debug)]
pub struct AllocatedDevice<'d> {
    pub request: &'d str,
    /// The chosen alternative, if the request has alternatives.
    pub alternative: Option<&'d str>,
    pub driver: &'d str,
    pub pool: &'d str,
    pub device: &'d str,
    pub admin_access: bool,
    /// True for a share of a device that allows multiple allocations. Its result has a `shareID`.
    pub is_share: bool,
    /// The capacity that a share consumes, in the order of the device's capacities.
    pub consumed_capacity: Vec<(&'d str, Quantity<'d>)>,
    pub tolerations: List<'d, Toleration<'d>>,
    pub binding_conditions: Strings<'d>,
}

impl AllocatedDevice<'_> {
    /// The request in the format of allocation results: `request` or `request/alternative`.
    pub fn request_name_with_alternative(&self) -> String {
        match self.alternative {
            Some(alternative) => format!("{}/{alternative}", self.request),
            None => self.request.to_owned(),
        }
    }
}

/// The nodes that can use an allocation, as its `nodeSelector` states them.
#[derive(Clone, Debug)]
pub enum AllocationNodes<'d> {
    /// All nodes; the allocation has no selector.
    AllNodes,
    /// Only the node for which the devices were allocated.
    Node(&'d str),
    /// The nodes matched by the selector of a stored allocation.
    Selector(NodeSelector<'d>),
    /// The nodes that meet all of these requirements.
    Matching { fields: Vec<NodeRequirement<'d>>, labels: Vec<NodeRequirement<'d>> },
}

impl<'d> AllocationNodes<'d> {
    /// Reads the nodes from an allocation in the status of a claim.
    pub fn from_status(allocation: view::Allocation<'d>) -> AllocationNodes<'d> {
        allocation.node_selector().map_or(AllocationNodes::AllNodes, AllocationNodes::Selector)
    }

    /// True if the node can use the allocation.
    pub fn includes(&self, node: Node<'_>) -> bool {
        match self {
            AllocationNodes::AllNodes => true,
            AllocationNodes::Node(name) => *name == node.name,
            AllocationNodes::Selector(selector) => node.matches(*selector),
            AllocationNodes::Matching { fields, labels } => {
                node.satisfies(labels.iter().copied(), fields.iter().copied())
            }
        }
    }
}

/// Why a pod cannot be scheduled yet, although its claims are valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnschedulableReason {
    /// No node is checked, for this reason: the DeviceClass of a request does not exist, or the release does not know
    /// this kind of request.
    OnAllNodes(String),
    /// No combination of devices on this node satisfies all requests.
    CannotAllocate,
    /// No combination of devices satisfies all requests, and a pool available on the node is invalid.
    InvalidPools,
    /// An allocated claim of the pod is not available on this node.
    ClaimElsewhere,
}

impl UnschedulableReason {
    /// Returns the scheduler's message, as in the condition of the pod.
    pub fn scheduler_message(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            UnschedulableReason::OnAllNodes(text) => return Cow::Owned(text.clone()),
            UnschedulableReason::CannotAllocate => "cannot allocate all claims",
            UnschedulableReason::InvalidPools => "invalid resource pools were encountered",
            UnschedulableReason::ClaimElsewhere => "resourceclaim not available on the node",
        })
    }
}

impl fmt::Display for UnschedulableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheduler_message())
    }
}

/// An error that stops the allocation, whatever other nodes offer, in the scheduler's words. Claims are named
/// `namespace/name`, alternatives by their own name, and devices `driver/pool/device`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AllocationError {
    /// A device of a request with `allocationMode: All` violates a constraint.
    ConstraintBroken(String),
    /// Anything else that is wrong with a claim, a class or a pool.
    Other(String),
}

/// Maximum number of devices in one allocation.
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

impl fmt::Display for AllocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (AllocationError::ConstraintBroken(text) | AllocationError::Other(text)) = self;
        f.write_str(text)
    }
}
