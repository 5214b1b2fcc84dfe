//! What a plan says. Plain values without borrows; how they are written, as text or JSON, is not here.

use std::fmt;
use tollgate_engine::impact::target::DeviceNames;
use tollgate_forecast::WorkloadName;

/// The plan of a drain.
#[derive(Clone, PartialEq, Debug)]
pub struct DrainPlan {
    /// The rules that close the devices, one for each.
    pub rules: Vec<PlannedRule>,
    /// The devices that the rules select: published ones, and those that claims hold although no slice has them.
    pub devices: Vec<DeviceId>,
    /// The pods that use these devices. Those that move come first, in the order in which they do.
    pub pods: Vec<PlannedPod>,
    /// Places in `pods`, wave by wave. The first wave has one pod.
    pub waves: Vec<Wave>,
    /// Claims that hold selected devices and that no pod uses. Nothing that a drain does frees them.
    pub claims_without_pods: Vec<ClaimHolder>,
    /// What makes the drain take as many waves as it does, such as `PDB inference/chat`.
    pub dominated_by: Option<String>,
    /// What else a user should know before the drain starts: targets that are left out, an autoscaler, partitions.
    pub notes: Vec<String>,
}

/// A device by driver, pool and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceId {
    pub driver: String,
    pub pool: String,
    pub device: String,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// A DeviceTaintRule of the drain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedRule {
    /// The name of the object.
    pub name: String,
    pub selects: DeviceNames,
    /// How many published devices it selects.
    pub published: usize,
}

/// A pod that uses selected devices.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedPod {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Empty if it is not bound.
    pub node: String,
    /// `None` if nothing makes it again.
    pub workload: Option<WorkloadName>,
    /// The selected devices that it uses.
    pub devices: Vec<DeviceId>,
    /// The claims that hold these devices.
    pub claims: Vec<String>,
    /// Seconds until it has to end after an eviction.
    pub grace_seconds: u64,
    /// The PDBs that select it, as namespace/name.
    pub budgets: Vec<String>,
    pub fate: Fate,
    /// `--force-after` may delete it.
    pub is_forceable: bool,
}

/// What a drain does about a pod.
#[derive(Clone, PartialEq, Debug)]
pub enum Fate {
    /// It is evicted in this wave, counted from 0. Its replacement goes to one of these nodes, the most frequent first;
    /// none if nothing makes it again, or if it is not known.
    Moves { wave: usize, nodes: Vec<String> },
    /// It stays, with a sentence why and a sentence what a user can do about it.
    Stays { reason: StayReason, why: String, remedy: String },
}

/// Why a pod stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StayReason {
    /// No other devices, or no node with room, for its replacement.
    NoRoom,
    /// Its replacement fits only sometimes.
    FitsSometimes,
    /// Where its replacement goes depends on something that is not modelled.
    Unknown,
    /// It uses a claim by name, and its controller makes a new pod that joins the old allocation.
    NamedClaim,
    /// Its claim is reserved for a PodGroup.
    PodGroupClaim,
    /// A PDB never allows a disruption.
    Budget,
    /// More than one PDB selects it, which the Eviction API refuses.
    SeveralBudgets,
    /// Its group can only move as a whole, and its PDBs do not allow that.
    GroupBudget,
    /// Its Job or JobSet would fail.
    JobLimit,
    /// It tolerates the taint, so its replacement can come back, or would be evicted again and again.
    Tolerates,
    /// It belongs to a DaemonSet.
    DaemonSet,
    /// It mirrors a static pod of a kubelet.
    Mirror,
    /// Nothing makes it again.
    NoController,
    /// It keeps data in an emptyDir volume.
    EmptyDir,
    /// An annotation asks not to disrupt it.
    DoNotDisrupt,
    /// It is being deleted already.
    Terminating,
    /// Its controller would make no new pod, or one whose name is not known to the state.
    Other,
}

impl StayReason {
    /// The reason as a word, such as `no-room`.
    pub fn name(self) -> &'static str {
        match self {
            StayReason::NoRoom => "no-room",
            StayReason::FitsSometimes => "fits-sometimes",
            StayReason::Unknown => "unknown",
            StayReason::NamedClaim => "named-claim",
            StayReason::PodGroupClaim => "pod-group-claim",
            StayReason::Budget => "pdb",
            StayReason::SeveralBudgets => "several-pdbs",
            StayReason::GroupBudget => "group-pdb",
            StayReason::JobLimit => "job-limit",
            StayReason::Tolerates => "tolerates",
            StayReason::DaemonSet => "daemonset",
            StayReason::Mirror => "mirror",
            StayReason::NoController => "no-controller",
            StayReason::EmptyDir => "emptydir",
            StayReason::DoNotDisrupt => "do-not-disrupt",
            StayReason::Terminating => "terminating",
            StayReason::Other => "other",
        }
    }
}

/// Pods that are evicted together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wave {
    /// Places in [`DrainPlan::pods`].
    pub pods: Vec<usize>,
    /// Why more pods do not go with them, if something keeps them.
    pub limited_by: Option<String>,
    /// Other pods, as namespace/name, that the controller of a unit deletes and makes again because these pods leave. They
    /// use no selected device and are not evicted.
    pub restarts: Vec<String>,
}

/// A claim that holds selected devices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClaimHolder {
    pub namespace: String,
    pub claim: String,
    pub devices: Vec<DeviceId>,
    /// Its users, such as `pod chat-1` or `podgroup train`, whether or not they still exist.
    pub users: Vec<String>,
    /// The uids of the pods that use it and exist.
    pub pods: Vec<String>,
}

/// A PodDisruptionBudget, as far as a drain reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    pub namespace: String,
    pub name: String,
    /// `status.disruptionsAllowed`.
    pub allowed: i64,
    /// The most that it allows when all pods are healthy: `status.expectedPods` less `status.desiredHealthy`.
    pub allowed_at_best: i64,
}
