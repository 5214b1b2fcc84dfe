//! What happens during a drain, in the order in which it happens: one value for each line of `-o json`, and for each
//! change that the text output shows.

use serde::Serialize;

/// Namespace and name of a pod in an event.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(super) struct PodRef {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Writes `inference/chat-0`.
impl std::fmt::Display for PodRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An event of a drain, as it is printed and written as a line of JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Event {
    /// A check before anything is changed. `problem` is null if it passed.
    Preflight { check: String, problem: Option<String> },
    /// Another drain holds the Lease. If nobody renews it for so many seconds, it is taken over.
    LockWaits { holder: String, seconds: i64 },
    /// This drain holds the Lease.
    Locked { lease: String, holder: String },
    /// A rule was created with effect None.
    RuleCreated { rule: String, devices: usize },
    /// The rule exists from an earlier run of this drain.
    RuleFound { rule: String, effect: String },
    /// The eviction controller has seen the rule; `message` is that of the condition that it wrote.
    RuleConfirmed { rule: String, message: String },
    /// The rule has effect NoSchedule: no new pod gets the devices.
    RuleClosed { rule: String },
    /// The rule would be deleted, but this is a dry run.
    RuleWouldBeDeleted { rule: String, effect: String },
    /// The rule was deleted.
    RuleDeleted { rule: String },
    /// The plan made before this wave differs from the previous plan.
    PlanChanged { differences: Vec<String> },
    /// A pod got a selected device while the devices were being closed, and is drained too.
    PodJoined { pod: PodRef },
    /// A wave starts.
    WaveStarted { wave: usize, pods: Vec<PodRef> },
    /// The API server accepted the eviction.
    PodEvicted { wave: usize, pod: PodRef },
    /// The eviction has to wait, mostly for a PDB.
    PodWaits { wave: usize, pod: PodRef, why: String },
    /// The pod was gone, or another pod had its name, before it was evicted.
    PodGone { wave: usize, pod: PodRef },
    /// Pods that cannot be evicted stay for so many seconds, and are then deleted because of `--force-after`.
    DeletionWaits { pods: Vec<PodRef>, seconds: u64 },
    /// The pod was deleted because of `--force-after`.
    PodDeleted { pod: PodRef },
    /// The pod has ended, and its claims have released the devices.
    PodReleased { wave: usize, pod: PodRef },
    /// A new pod of the workload is bound.
    ReplacementBound { wave: usize, pod: PodRef, node: String },
    /// A new pod of the workload is Ready.
    ReplacementReady { wave: usize, pod: PodRef, node: String },
    /// Every pod of the wave is gone, and its workloads are as ready as before.
    WaveFinished { wave: usize, seconds: u64 },
    /// The claims were listed for the first or second time (`look`); those in `holding` still have selected
    /// devices.
    Proof { look: usize, holding: Vec<HoldingClaim> },
    /// The result of `--check`. `closed` is true if rules of this drain keep new pods off the devices.
    Checked { devices: usize, closed: bool, holding: Vec<HoldingClaim> },
    /// The drain stopped before its end. So many `rules` of it exist, and stay as they are; without one, there is
    /// nothing to go back from.
    Stopped {
        why: String,
        evicted: usize,
        deleted: usize,
        left: usize,
        rules: usize,
        go_on: String,
        go_back: Option<String>,
    },
    /// The drain ended; claims in `holding` still have selected devices.
    Finished { devices: usize, evicted: usize, deleted: usize, seconds: u64, holding: Vec<HoldingClaim> },
}

/// A claim that holds selected devices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct HoldingClaim {
    pub(super) namespace: String,
    pub(super) claim: String,
    pub(super) devices: Vec<String>,
    pub(super) users: Vec<String>,
}

/// An event with its time, for a line of JSON output.
#[derive(Debug, Serialize)]
pub(super) struct TimedEvent<'e> {
    pub(super) at: String,
    #[serde(flatten)]
    pub(super) event: &'e Event,
}
