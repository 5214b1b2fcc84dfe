//! The result of an allocation: devices, or the reason why there are none, with the scheduler's messages.
//!
//! An [`AllocationError`] concerns the pod: the scheduler reports it immediately, even if another node would be
//! suitable. An [`UnschedulableReason`] concerns the pod or one node, and other nodes are tried.

use crate::capacity::CapacityError;
use crate::node::Node;
use crate::selector::SelectorError;
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

/// A claim, displayed as `namespace/name` in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClaimName<'d> {
    pub(crate) namespace: &'d str,
    pub(crate) name: &'d str,
}

impl fmt::Display for ClaimName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            "" => f.write_str(self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// Why a pod cannot be scheduled yet, although its claims are valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnschedulableReason {
    /// No node is checked because the DeviceClass of a request does not exist.
    NoClass { request: String, class: String },
    /// No node is checked because the release does not know this kind of request.
    UnknownRequest { claim: String, request: String },
    /// No node is checked because a request has alternatives and the feature gate DRAPrioritizedList is
    /// disabled.
    NoPrioritizedList { claim: String, request: String },
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
        let text = match self {
            UnschedulableReason::NoClass { request, class } => {
                return format!("request {request}: device class {class} does not exist").into();
            }
            UnschedulableReason::UnknownRequest { claim, request } => {
                return format!("resource claim {claim}, request {request}: unknown request type").into();
            }
            UnschedulableReason::NoPrioritizedList { claim, request } => {
                return format!(
                    "resource claim {claim}, request {request}: has subrequests, but the DRAPrioritizedList feature is \
                     disabled"
                )
                .into();
            }
            UnschedulableReason::CannotAllocate => "cannot allocate all claims",
            UnschedulableReason::InvalidPools => "invalid resource pools were encountered",
            UnschedulableReason::ClaimElsewhere => "resourceclaim not available on the node",
        };
        Cow::Borrowed(text)
    }
}

impl fmt::Display for UnschedulableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheduler_message())
    }
}

/// An error that stops the allocation, whatever other nodes offer. Claims are named `namespace/name`,
/// alternatives by their own name, and devices `driver/pool/device`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AllocationError {
    /// A request with `allocationMode: All` finds a pool that is being updated.
    PoolBeingUpdated { claim: String, request: String, pool: String },
    /// A request with `allocationMode: All` finds an invalid pool.
    PoolInvalid { claim: String, request: String, pool: String },
    /// A claim needs more devices than one allocation can contain.
    TooManyDevices { claim: String, devices: usize },
    /// A device of a request with `allocationMode: All` violates a constraint.
    ConstraintBroken { claim: String, request: String, device: String },
    /// The selector of a class or claim could not be evaluated. `device` is set if the release includes it in
    /// the message.
    Selector { source: SelectorSource, index: usize, device: Option<String>, error: SelectorError },
    /// The capacity that a request consumes of a device cannot be computed.
    Capacity { claim: String, request: String, device: String, error: CapacityError },
    /// The allocator does not support this request.
    Refused { claim: String, request: String, detail: String },
    /// The allocator does not know this type of constraint.
    UnknownConstraint { claim: String, index: usize },
}

/// The object whose selector could not be evaluated: a DeviceClass, or a request of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SelectorSource {
    Class(String),
    Claim(String),
}

/// Maximum number of devices in one allocation.
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

impl fmt::Display for AllocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocationError::PoolBeingUpdated { claim, request, pool } => write!(
                f,
                "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently being \
                 updated"
            ),
            AllocationError::PoolInvalid { claim, request, pool } => write!(
                f,
                "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently invalid"
            ),
            AllocationError::TooManyDevices { claim, devices } => write!(
                f,
                "claim {claim}: number of requested devices {devices} exceeds the claim limit of {MAX_DEVICES_PER_CLAIM}"
            ),
            AllocationError::ConstraintBroken { claim, request, device } => write!(
                f,
                "claim {claim}, request {request}: cannot add device {device} because a claim constraint would not be \
                 satisfied"
            ),
            AllocationError::Selector { source, index, device, error } => {
                match source {
                    SelectorSource::Class(name) => write!(f, "class {name}: selector #{index}")?,
                    SelectorSource::Claim(name) => write!(f, "claim {name}: selector #{index}")?,
                }
                write_selector_error(f, device.as_deref(), error)
            }
            AllocationError::Capacity { claim, request, device, error } => {
                write!(f, "claim {claim}, request {request}: checking capacity for device {device}: {error}")
            }
            AllocationError::Refused { claim, request, detail } => {
                write!(f, "claim {claim}, request {request}{detail}")
            }
            AllocationError::UnknownConstraint { claim, index } => write!(
                f,
                "claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)"
            ),
        }
    }
}

/// Writes a selector error. Releases that name the device also add a hint about missing keys.
fn write_selector_error(
    f: &mut fmt::Formatter<'_>,
    device: Option<&str>,
    error: &SelectorError,
) -> fmt::Result {
    const MISSING_KEY_HINT: &str = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with \
                        has() for optional fields";
    match (error, device) {
        (SelectorError::Unsupported(what), _) => write!(f, ": not supported by Tollgate: {what}"),
        (SelectorError::Compile(text), _) => write!(f, ": CEL compile error: {text}"),
        (SelectorError::Runtime(text), None) => write!(f, ": CEL runtime error: {text}"),
        (SelectorError::Runtime(text), Some(device)) => {
            let hint = if text.contains("no such key:") { MISSING_KEY_HINT } else { "" };
            write!(f, " on device {device}: CEL runtime error: {text}{hint}")
        }
    }
}
