//! What comes of an allocation: devices, or why not, with the scheduler's texts.
//!
//! An [`AllocationError`] is about the pod: the scheduler reports it at once, even if another node would do. An
//! [`Unschedulable`] is about the pod or one node, and other nodes are tried.

use crate::capacity::CapacityError;
use crate::inventory::DeviceKey;
use crate::node::Node;
use crate::selector::SelectorError;
use crate::usage::Holding;
use std::borrow::Cow;
use std::fmt;
use tollgate_api::view::{self, List, NodeRequirement, NodeSelector, Strings, Toleration};
use tollgate_formats::quantity::Quantity;

/// What comes of an allocation on one node.
#[derive(Debug)]
pub enum Outcome<'d> {
    /// One allocation for each claim, in order.
    Allocated(Vec<Allocation<'d>>),
    /// The devices do not suffice on this node.
    Unschedulable(Unschedulable),
    /// Something is wrong with a claim, a class or a pool.
    Failed(AllocationError),
    /// The search met what is not supported, so it is not known what upstream's allocator does. The name of it.
    Unsupported(&'static str),
    /// The search was ended after so many steps. What upstream's allocator does in this case depends on its time limit.
    GaveUp { steps: u64 },
}

/// The allocation of one claim.
#[derive(Clone, Debug)]
pub struct Allocation<'d> {
    pub devices: Vec<AllocatedDevice<'d>>,
    /// The nodes that can use all of these devices.
    pub nodes: AvailableOn<'d>,
}

/// One device of an allocation.
#[derive(Clone, Debug)]
pub struct AllocatedDevice<'d> {
    pub request: &'d str,
    /// The alternative of the request that was chosen, if it has alternatives.
    pub alternative: Option<&'d str>,
    pub driver: &'d str,
    pub pool: &'d str,
    pub device: &'d str,
    pub key: DeviceKey,
    pub admin_access: bool,
    /// A share of a device that allows multiple allocations: the result gets a `shareID`.
    pub is_share: bool,
    /// What a share consumes, in the order of the device's capacities.
    pub consumed_capacity: Vec<(&'d str, Quantity<'d>)>,
    pub tolerations: List<'d, Toleration<'d>>,
    pub binding_conditions: Strings<'d>,
    pub binding_failure_conditions: Strings<'d>,
}

impl<'d> AllocatedDevice<'d> {
    /// What the device is to others once the claim is allocated; `None` with adminAccess, which holds nothing.
    pub fn holding(&self) -> Option<Holding<'d>> {
        let consumed = self.consumed_capacity.iter().map(|(name, amount)| (*name, amount.nano_value()));
        let holding = Holding { device: self.key, is_share: self.is_share, consumed: consumed.collect() };
        (!self.admin_access).then_some(holding)
    }

    /// The request as the result names it: `request`, or `request/alternative`.
    pub fn request_name(&self) -> String {
        match self.alternative {
            Some(alternative) => format!("{}/{alternative}", self.request),
            None => self.request.to_owned(),
        }
    }
}

/// The nodes that can use an allocation: its `nodeSelector`.
#[derive(Clone, Debug)]
pub enum AvailableOn<'d> {
    /// All nodes; there is no selector.
    AllNodes,
    /// The node for which the devices were allocated.
    Node(&'d str),
    /// Nodes that the selector of a stored allocation matches.
    Selector(NodeSelector<'d>),
    /// Nodes that meet all of these requirements.
    Matching { fields: Vec<NodeRequirement<'d>>, labels: Vec<NodeRequirement<'d>> },
}

impl<'d> AvailableOn<'d> {
    /// The nodes of an allocation in the status of a claim.
    pub fn from_status(allocation: view::Allocation<'d>) -> AvailableOn<'d> {
        allocation.node_selector().map_or(AvailableOn::AllNodes, AvailableOn::Selector)
    }

    /// Whether a node can use the allocation.
    pub fn includes(&self, node: Node<'_>) -> bool {
        match self {
            AvailableOn::AllNodes => true,
            AvailableOn::Node(name) => *name == node.name,
            AvailableOn::Selector(selector) => node.matches(*selector),
            AvailableOn::Matching { fields, labels } => {
                node.satisfies(labels.iter().copied(), fields.iter().copied())
            }
        }
    }
}

/// A claim as texts name it: `namespace/name`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Id<'d> {
    pub(crate) namespace: &'d str,
    pub(crate) name: &'d str,
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            "" => f.write_str(self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// Why a pod has no node yet, although nothing is wrong with its claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unschedulable {
    /// No node is looked at: the class of a request does not exist.
    NoClass { request: String, class: String },
    /// No node is looked at: a request is of a kind that the release does not know.
    UnknownRequest { claim: String, request: String },
    /// No node is looked at: a request has alternatives, and the feature gate is off.
    NoPrioritizedList { claim: String, request: String },
    /// On this node, no devices fulfil all requests.
    CannotAllocate,
    /// The same, and a pool that reaches the node is invalid.
    InvalidPools,
    /// An allocated claim of the pod is not available on this node.
    ClaimElsewhere,
}

impl Unschedulable {
    /// What the scheduler writes.
    pub fn text(&self) -> Cow<'static, str> {
        let text = match self {
            Unschedulable::NoClass { request, class } => {
                return format!("request {request}: device class {class} does not exist").into();
            }
            Unschedulable::UnknownRequest { claim, request } => {
                return format!("resource claim {claim}, request {request}: unknown request type").into();
            }
            Unschedulable::NoPrioritizedList { claim, request } => {
                return format!(
                    "resource claim {claim}, request {request}: has subrequests, but the DRAPrioritizedList feature is \
                     disabled"
                )
                .into();
            }
            Unschedulable::CannotAllocate => "cannot allocate all claims",
            Unschedulable::InvalidPools => "invalid resource pools were encountered",
            Unschedulable::ClaimElsewhere => "resourceclaim not available on the node",
        };
        Cow::Borrowed(text)
    }
}

impl fmt::Display for Unschedulable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// What ends an allocation, whatever other nodes have. The claim is given as `namespace/name`, an alternative by its own
/// name, a device as `driver/pool/device`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AllocationError {
    /// All devices are requested while a pool is being updated.
    PoolBeingUpdated { claim: String, request: String, pool: String },
    /// All devices are requested while a pool is invalid.
    PoolInvalid { claim: String, request: String, pool: String },
    /// A claim needs more devices than an allocation can have.
    TooManyDevices { claim: String, devices: usize },
    /// All devices are requested, and a constraint does not hold for one of them.
    ConstraintBroken { claim: String, request: String, device: String },
    /// A selector of a class or claim has no answer. `device` is given where the release names it.
    Selector { source: SelectorSource, index: usize, device: Option<String>, error: SelectorError },
    /// The capacity that a request takes of a device cannot be computed.
    Capacity { claim: String, request: String, device: String, error: CapacityError },
    /// A request that the allocator does not know how to fulfil.
    Refused { claim: String, request: String, detail: String },
    /// A constraint of a kind that the allocator does not know.
    UnknownConstraint { claim: String, index: usize },
}

/// Whose selector it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SelectorSource {
    Class(String),
    Claim(String),
}

/// The devices that an allocation can have.
pub const MAX_DEVICES: usize = 32;

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
                "claim {claim}: number of requested devices {devices} exceeds the claim limit of {MAX_DEVICES}"
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

/// Releases that name the device also have a hint for missing keys.
fn write_selector_error(
    f: &mut fmt::Formatter<'_>,
    device: Option<&str>,
    error: &SelectorError,
) -> fmt::Result {
    const HINT: &str = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with \
                        has() for optional fields";
    match (error, device) {
        (SelectorError::Unsupported(what), _) => write!(f, ": not supported by Tollgate: {what}"),
        (SelectorError::Compile(text), _) => write!(f, ": CEL compile error: {text}"),
        (SelectorError::Runtime(text), None) => write!(f, ": CEL runtime error: {text}"),
        (SelectorError::Runtime(text), Some(device)) => {
            let hint = if text.contains("no such key:") { HINT } else { "" };
            write!(f, " on device {device}: CEL runtime error: {text}{hint}")
        }
    }
}
