//! A prepared forecast: the state and the steps, read once and shared by all simulated runs.
//!
//! Steps become stages: the objects in effect from then on, and the changes to pods and claims. Which pods of the
//! initial state are evicted, and when, is not random, so it is determined here.

use crate::builder::PlanBuilder;
use crate::controllers::JobTable;
use crate::eras::{EraIndexOfEachKind, Eras};
use crate::extended::ExtendedResourceClaims;
use crate::missing::needed_kinds_absent_from_state_and_steps;
use crate::nodes::{PodCatalog, PodNeeds};
use crate::outcome::{PodOrigin, WorkloadName};
use crate::state::{ObjectKind, State, StoredObject};
use crate::tables::{ClaimIndex, NumberedClaimSpec, PodAndClaimTables, PodIndex};
use tollgate_allocator::{AllocatorSemantics, DEFAULT_MAX_STEPS};
use tollgate_api::profile::Profile;
use tollgate_cel::evaluate::ReleaseBehaviour;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::Timestamp;

/// A change to the cluster, such as an applied or deleted object.
#[derive(Clone, Debug)]
pub enum ClusterChange<'d> {
    /// Creates an object, or replaces the object with the same name. The value is as the API server stores
    /// it.
    Apply(Value<'d>),
    /// Deletes an object.
    Delete { kind: ObjectKind, namespace: &'d str, name: &'d str },
    /// Evicts a pod of the initial state, and its controller replaces it. Consecutive evictions happen
    /// together. With `with_group`, the controller of the pod's group recreates it, even if its Job would
    /// not.
    Evict { namespace: &'d str, name: &'d str, with_group: bool },
    /// Waits for this number of seconds.
    Wait(i64),
}

/// The Kubernetes release whose scheduler and controllers are simulated.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedRelease {
    /// Behavior of evictions in the release.
    pub profile: &'static Profile,
    /// Behavior of device allocation in the release.
    pub semantics: AllocatorSemantics,
    /// Behavior of device selectors in the release.
    pub behaviour: ReleaseBehaviour,
}

/// Settings of a simulation that do not describe the cluster: time, seed and limits.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time of the first step.
    pub now: Timestamp,
    /// Seed of the random numbers. Run `n` is the same for the same seed.
    pub seed: u64,
    /// Maximum number of steps of the search for the devices of one pod on one node.
    pub max_steps: u64,
    /// If true, a kind without objects in the state does not exist in the cluster. Otherwise its objects may
    /// be missing from the state.
    pub assume_complete: bool,
    /// Whether to determine the state of every device after each run, for [`Forecast::devices`].
    ///
    /// [`Forecast::devices`]: crate::Forecast::devices
    pub counts_devices: bool,
}

impl Settings {
    /// Settings with the seed 0 and the default limit.
    pub fn defaults_at(now: Timestamp) -> Settings {
        Settings { now, seed: 0, max_steps: DEFAULT_MAX_STEPS, assume_complete: false, counts_devices: false }
    }
}

/// A forecast that is ready to be simulated. All threads share it; each thread has its own `RunSimulator`.
#[derive(Debug)]
pub struct Plan<'d> {
    pub(crate) release: SimulatedRelease,
    pub(crate) settings: Settings,
    pub(crate) catalog: PodCatalog<'d>,
    pub(crate) tables: PodAndClaimTables<'d>,
    pub(crate) eras: Eras<'d>,
    pub(crate) extended: ExtendedResourceClaims<'d>,
    pub(crate) stages: Vec<Stage<'d>>,
    /// The bound pods of the initial state, with their nodes.
    pub(crate) bound: Vec<(PodIndex, &'d str)>,
    /// The pending pods of the initial state, oldest first.
    pub(crate) waiting: Vec<PodIndex>,
    /// The evicted pods of the initial state, by time.
    pub(crate) evictions: Vec<EvictionOfInitialPod>,
    /// Groups of StatefulSet replacements whose predecessors can be evicted in any order.
    pub(crate) random_orders: Vec<Vec<PodIndex>>,
    pub(crate) controllers: JobTable,
    /// The reported pods, in the order of the report.
    pub(crate) tracked: Vec<ReportedPod>,
    /// True if an allocation in the state has a timestamp. Otherwise the timestamps were removed from the
    /// state.
    pub(crate) has_timestamps: bool,
    /// Kinds missing from the state, such as `Nodes`.
    pub(crate) missing: Vec<String>,
}

/// A point in time at which objects change: the objects in effect from then on, and the changes to pods and
/// claims.
#[derive(Debug)]
pub(crate) struct Stage<'d> {
    pub(crate) at: Timestamp,
    pub(crate) era: EraIndexOfEachKind,
    pub(crate) actions: Vec<PodOrClaimChange<'d>>,
}

/// A change that a stage makes to a pod or claim.
#[derive(Debug)]
pub(crate) enum PodOrClaimChange<'d> {
    CreatePod(PodIndex),
    DeletePod { namespace: &'d str, name: &'d str },
    ApplyClaim(ClaimIndex, NumberedClaimSpec<'d>),
    DeleteClaim(ClaimIndex),
}

/// A pod of the initial state that is evicted.
#[derive(Debug)]
pub(crate) struct EvictionOfInitialPod {
    pub(crate) at: Timestamp,
    /// Index of the stage in which the eviction happens.
    pub(crate) stage: usize,
    pub(crate) pod: PodIndex,
    /// Index in [`Plan::tracked`].
    pub(crate) tracked: usize,
    /// The pod that replaces the evicted pod.
    pub(crate) replacement: Option<PodIndex>,
    /// True if its StatefulSet recreates the pod only after its predecessors are ready.
    pub(crate) is_ordered: bool,
    /// True if a taint causes the eviction, false if a step requests it.
    pub(crate) is_by_taint: bool,
}

/// A pod that is reported: a given pod, a pending pod, or an evicted pod with its replacements.
#[derive(Clone, Debug)]
pub(crate) struct ReportedPod {
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) origin: PodOrigin,
    pub(crate) replaces: Option<String>,
    pub(crate) workload: Option<WorkloadName>,
    /// Features that the outcome depends on and that are not simulated.
    pub(crate) not_modelled: Vec<String>,
    /// Index of the pod in the simulation; `None` if no pod will be created.
    pub(crate) pod: Option<PodIndex>,
}

impl ReportedPod {
    /// The report entry for a pod of the initial state that is evicted or deleted and not recreated.
    pub(crate) fn without_replacement(lost: StoredObject<'_>, workload: Option<WorkloadName>) -> ReportedPod {
        ReportedPod {
            namespace: lost.namespace().to_owned(),
            name: None,
            origin: PodOrigin::Replacement,
            replaces: Some(lost.name().to_owned()),
            workload,
            not_modelled: Vec::new(),
            pod: None,
        }
    }
}

impl<'d> Plan<'d> {
    /// Builds a plan from a state and steps, which are processed in order.
    pub fn new(
        state: State<'d>,
        steps: Vec<ClusterChange<'d>>,
        release: SimulatedRelease,
        settings: Settings,
    ) -> Plan<'d> {
        let given = steps.iter().filter_map(|step| match step {
            ClusterChange::Apply(value) if object_kind(*value) == Some(ObjectKind::Namespace) => Some(*value),
            _ => None,
        });
        let namespaces = state.objects_of_kind(ObjectKind::Namespace).iter().map(|namespace| namespace.value);
        let plan = Plan {
            release,
            settings,
            catalog: PodCatalog::new(release.semantics, namespaces.chain(given)),
            tables: PodAndClaimTables::default(),
            eras: Eras::default(),
            extended: ExtendedResourceClaims::default(),
            stages: Vec::new(),
            bound: Vec::new(),
            waiting: Vec::new(),
            evictions: Vec::new(),
            random_orders: Vec::new(),
            controllers: JobTable::default(),
            tracked: Vec::new(),
            has_timestamps: false,
            missing: Vec::new(),
        };
        let absent = if settings.assume_complete {
            Vec::new()
        } else {
            needed_kinds_absent_from_state_and_steps(&state, &steps)
        };
        let lists_kinds = state.knows_listed_kinds();
        let mut plan = PlanBuilder::new(plan, state).build(steps);
        plan.record_missing_kinds_that_pods_need(absent, lists_kinds);
        plan
    }

    /// The report entry of a pod; `None` if the pod is not reported.
    pub(crate) fn reported_pod(&self, pod: PodIndex) -> Option<&ReportedPod> {
        self.tracked.get(self.tables.pod(pod).tracked?)
    }

    /// What a pod needs of a node.
    pub(crate) fn needs_of(&self, pod: PodIndex) -> &PodNeeds<'d> {
        self.catalog.pod_needs(self.tables.pod(pod).needs)
    }
}

/// The kind of an object of the steps; `None` if a forecast does not read it.
pub(crate) fn object_kind(value: Value<'_>) -> Option<ObjectKind> {
    ObjectKind::from_type_meta(value.get("apiVersion").str(), value.get("kind").str())
}
