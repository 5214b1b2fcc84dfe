//! The contents of a plan, as plain values without borrows. Formatting as text or JSON is not part of this module.

use std::fmt;
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_forecast::{DeviceForecast, WorkloadName};

/// The plan of a drain: rules to create, pods to evict in waves, and pods that stay.
#[derive(Clone, PartialEq, Debug)]
pub struct DrainPlan {
    /// The DeviceTaintRules that close the devices, one for each selector.
    pub rules: Vec<PlannedRule>,
    /// The devices that the rules of the drain select: published devices, and devices that claims hold although no
    /// slice publishes them.
    pub devices: Vec<DeviceId>,
    /// The pods that use these devices. Pods that move come first, in the order of their waves.
    pub pods: Vec<PlannedPod>,
    /// The waves, in order. The first wave has one pod.
    pub waves: Vec<Wave>,
    /// The PodDisruptionBudgets of these pods, by namespace and name.
    pub budgets: Vec<Budget>,
    /// Claims that hold selected devices and are used by no pod. A drain does not free them.
    pub claims_without_pods: Vec<ClaimHoldingSelectedDevices>,
    /// The workload or PDB that determines the number of waves, such as `PDB inference/chat`.
    pub dominated_by: Option<String>,
    /// The devices of the cluster after the drain, if the settings ask for them. Pods that move alone, because it
    /// is not known where they go, keep theirs.
    pub devices_after: Vec<DeviceForecast>,
    /// Other information for the user: omitted targets, autoscalers, partitions.
    pub notes: Vec<String>,
}

/// Identifies a device by driver, pool and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceId {
    pub driver: String,
    pub pool: String,
    pub device: String,
}

impl DeviceId {
    pub(crate) fn new(driver: &str, pool: &str, device: &str) -> DeviceId {
        let [driver, pool, device] = [driver, pool, device].map(str::to_owned);
        DeviceId { driver, pool, device }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// A DeviceTaintRule that the drain creates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedRule {
    /// Name of the DeviceTaintRule.
    pub name: String,
    pub selects: DeviceNameSelector,
    /// Number of published devices that the rule selects.
    pub published: usize,
}

/// A pod that uses devices of the drain, and whether and when it moves.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedPod {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Empty if the pod is not bound.
    pub node: String,
    /// The workload that recreates the pod; `None` if there is none.
    pub workload: Option<WorkloadName>,
    /// The selected devices that the pod uses.
    pub devices: Vec<DeviceId>,
    /// Names of the claims that hold these devices.
    pub claims: Vec<String>,
    /// Seconds that the pod may take to end after an eviction.
    pub grace_seconds: u64,
    /// The PDBs that select the pod, as `namespace/name`.
    pub budgets: Vec<String>,
    pub fate: PodDecision,
    /// True if `--force-after` may delete the pod.
    pub is_forceable: bool,
}

impl PlannedPod {
    /// True if the pod is evicted and nothing recreates it.
    pub fn is_evicted_for_good(&self) -> bool {
        matches!(self.fate, PodDecision::Moves { .. }) && self.workload.is_none()
    }
}

/// Whether the plan of the drain moves a pod, and when, or why it stays.
#[derive(Clone, PartialEq, Debug)]
pub enum PodDecision {
    /// The pod is evicted in this wave, counted from 0. `nodes` are the expected nodes of its replacement,
    /// most frequent first; empty if the pod is not recreated or the nodes are unknown.
    Moves { wave: usize, nodes: Vec<String> },
    /// The pod stays. `why` explains the reason, and `remedy` what the user can do about it.
    Stays { reason: StayReason, why: String, remedy: String },
}

tollgate_formats::named_enum! {
    /// Why the drain does not move a pod.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum StayReason {
        /// No free device or no suitable node for its replacement.
        NoRoom = "no-room",
        /// Its replacement fits in some simulated runs but not in all.
        FitsSometimes = "fits-sometimes",
        /// The placement of its replacement depends on something that is not simulated.
        Unknown = "unknown",
        /// The pod references a claim by name, so a new pod of its controller would use the old allocation.
        NamedClaim = "named-claim",
        /// The claim is reserved for a PodGroup.
        PodGroupClaim = "pod-group-claim",
        /// A PDB never allows an eviction of the pod.
        Budget = "pdb",
        /// More than one PDB selects the pod. The Eviction API rejects such evictions.
        SeveralBudgets = "several-pdbs",
        /// Its group can only move as a whole, which its PDBs do not allow.
        GroupBudget = "group-pdb",
        /// Its Job or JobSet would fail.
        JobLimit = "job-limit",
        /// It tolerates the taint, so its replacement could use the same device, or would be evicted repeatedly.
        Tolerates = "tolerates",
        /// The pod belongs to a DaemonSet.
        DaemonSet = "daemonset",
        /// The pod mirrors a static pod of a kubelet.
        Mirror = "mirror",
        /// No controller recreates the pod.
        NoController = "no-controller",
        /// The pod stores data in an emptyDir volume.
        EmptyDir = "emptydir",
        /// An annotation asks not to disrupt the pod.
        DoNotDisrupt = "do-not-disrupt",
        /// The pod is already being deleted.
        Terminating = "terminating",
        /// Its controller would create no new pod, or one whose name cannot be predicted.
        Other = "other",
    }
}

impl StayReason {
    /// True if deleting the pod would free its devices without permanent damage.
    pub(crate) fn allows_forced_deletion(self) -> bool {
        match self {
            StayReason::NoRoom
            | StayReason::FitsSometimes
            | StayReason::Unknown
            | StayReason::Budget
            | StayReason::SeveralBudgets
            | StayReason::GroupBudget
            | StayReason::DaemonSet
            | StayReason::NoController
            | StayReason::EmptyDir
            | StayReason::DoNotDisrupt => true,
            StayReason::NamedClaim
            | StayReason::PodGroupClaim
            | StayReason::JobLimit
            | StayReason::Tolerates
            | StayReason::Mirror
            | StayReason::Terminating
            | StayReason::Other => false,
        }
    }
}

/// Pods that are evicted together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wave {
    /// Indices in [`DrainPlan::pods`].
    pub pods: Vec<usize>,
    /// The limit that keeps other pods out of this wave, if any.
    pub limited_by: Option<String>,
    /// Other pods, as `namespace/name`, that the controller of a unit deletes and recreates because these
    /// pods leave. They use no selected device and are not evicted.
    pub restarts: Vec<String>,
}

/// A claim that holds selected devices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClaimHoldingSelectedDevices {
    pub namespace: String,
    pub claim: String,
    pub devices: Vec<DeviceId>,
    /// Its users, such as `pod chat-1` or `podgroup train`, including deleted ones.
    pub users: Vec<String>,
    /// UIDs of the existing pods that use the claim.
    pub pods: Vec<String>,
}

/// The fields of a PodDisruptionBudget that a drain reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    pub namespace: String,
    pub name: String,
    /// `status.disruptionsAllowed`.
    pub allowed: i64,
    /// Maximum number of disruptions when all pods are healthy: `status.expectedPods` minus
    /// `status.desiredHealthy`.
    pub allowed_at_best: i64,
    /// True if the Eviction API lets pods go that are not Ready, because of `unhealthyPodEvictionPolicy` or because enough
    /// pods are healthy.
    pub lets_unready_pods_go: bool,
    /// True if more replicas allow more disruptions, as with a number in `minAvailable`.
    pub grows_with_replicas: bool,
    /// Why the disruption controller cannot compute what the PDB allows, in its own words.
    pub sync_failure: Option<String>,
}
