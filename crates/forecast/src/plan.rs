//! A forecast before it is played: the state and the steps, read once and shared by all courses.
//!
//! Steps become stages: what is in force from then on, and which pods and claims come and go. Which pods of the state
//! are evicted, and when, does not depend on chance, so it is known here.

use crate::builder::PlanBuilder;
use crate::controllers::Controllers;
use crate::eras::{Era, Eras};
use crate::extended::ExtendedClaims;
use crate::missing::absent_kinds;
use crate::nodes::{Catalog, FilterSemantics};
use crate::outcome::{Origin, WorkloadName};
use crate::player::Player;
use crate::state::{ObjectKind, State};
use crate::tables::{ClaimIndex, PodIndex, SpecEntry, Tables};
use tollgate_allocator::{DEFAULT_MAX_STEPS, Semantics};
use tollgate_api::profile::Profile;
use tollgate_cel::evaluate::Behaviour;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::Timestamp;

/// What is done to the cluster.
#[derive(Clone, Debug)]
pub enum Step<'d> {
    /// An object is created, or replaces the one of the same name, in the form in which the API server stores it.
    Apply(Value<'d>),
    /// An object is deleted.
    Delete { kind: ObjectKind, namespace: &'d str, name: &'d str },
    /// A pod of the state is evicted by someone, and its controller replaces it. Pods that are evicted by steps one after
    /// the other leave together. `with_group` is true if the controller of its group makes it again, even if its Job
    /// would not.
    Evict { namespace: &'d str, name: &'d str, with_group: bool },
    /// So many seconds go by.
    Wait(i64),
}

/// The release that is played.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Decides about evictions.
    pub profile: &'static Profile,
    /// Decides about allocations.
    pub semantics: Semantics,
    /// Decides about selectors.
    pub behaviour: Behaviour,
}

/// Settings that are not about the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When the first step is done.
    pub now: Timestamp,
    /// Where chance starts. Course `n` is the same for the same seed.
    pub seed: u64,
    /// The steps after which the search for the devices of one pod on one node gives up.
    pub max_steps: u64,
    /// A kind of which the state has no object does not exist in the cluster. Otherwise, the state may lack it.
    pub assume_complete: bool,
}

impl Settings {
    /// Settings with the seed 0 and the usual limit.
    pub fn at(now: Timestamp) -> Settings {
        Settings { now, seed: 0, max_steps: DEFAULT_MAX_STEPS, assume_complete: false }
    }
}

/// A forecast that can be played. It is shared by all threads; each thread has a [`Player`] of its own.
#[derive(Debug)]
pub struct Plan<'d> {
    pub(crate) release: Release,
    pub(crate) settings: Settings,
    pub(crate) catalog: Catalog<'d>,
    pub(crate) tables: Tables<'d>,
    pub(crate) eras: Eras<'d>,
    pub(crate) extended: ExtendedClaims<'d>,
    pub(crate) stages: Vec<Stage<'d>>,
    /// The pods of the state that are bound, with their nodes.
    pub(crate) bound: Vec<(PodIndex, &'d str)>,
    /// The pods of the state that are not bound, the oldest first.
    pub(crate) waiting: Vec<PodIndex>,
    /// The pods of the state that are evicted, in order of time.
    pub(crate) evictions: Vec<Eviction>,
    /// Pods of StatefulSets that replace others whose evictions can happen in any order.
    pub(crate) races: Vec<Vec<PodIndex>>,
    pub(crate) controllers: Controllers,
    /// The pods that a course follows, in the order in which they are reported.
    pub(crate) followed: Vec<FollowedPod>,
    /// Some allocation of the state has a timestamp. Otherwise, whoever wrote the state has left them out.
    pub(crate) has_timestamps: bool,
    /// The kinds that the state lacks, such as `Nodes`.
    pub(crate) missing: Vec<String>,
}

/// What is in force from some time on, and what happens then.
#[derive(Debug)]
pub(crate) struct Stage<'d> {
    pub(crate) at: Timestamp,
    pub(crate) era: Era,
    pub(crate) actions: Vec<Action<'d>>,
}

/// Something that happens to a pod or claim.
#[derive(Debug)]
pub(crate) enum Action<'d> {
    CreatePod(PodIndex),
    DeletePod { namespace: &'d str, name: &'d str },
    ApplyClaim(ClaimIndex, SpecEntry<'d>),
    DeleteClaim(ClaimIndex),
}

/// A pod of the state that is evicted.
#[derive(Debug)]
pub(crate) struct Eviction {
    pub(crate) at: Timestamp,
    /// The stage in which it happens.
    pub(crate) stage: usize,
    pub(crate) pod: PodIndex,
    /// Its place among the pods that are followed.
    pub(crate) followed: usize,
    /// The pod that replaces it.
    pub(crate) replacement: Option<PodIndex>,
    /// It is replaced after those before it in its StatefulSet are ready.
    pub(crate) is_ordered: bool,
    /// The eviction controller evicts it, and not whoever asks for it.
    pub(crate) is_by_taint: bool,
}

/// A pod that a course follows: a given one, a waiting one, or an evicted one with those that replace it.
#[derive(Clone, Debug)]
pub(crate) struct FollowedPod {
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) origin: Origin,
    pub(crate) replaces: Option<String>,
    pub(crate) workload: Option<WorkloadName>,
    /// What the outcome depends on that is not modelled.
    pub(crate) not_modelled: Vec<String>,
    /// The pod, if one will be made.
    pub(crate) pod: Option<PodIndex>,
}

impl<'d> Plan<'d> {
    /// Reads the state and the steps, which are done in order.
    pub fn new(state: State<'d>, steps: Vec<Step<'d>>, release: Release, settings: Settings) -> Plan<'d> {
        let given = steps.iter().filter_map(|step| match step {
            Step::Apply(value) if kind_of(*value) == Some(ObjectKind::Namespace) => Some(*value),
            _ => None,
        });
        let namespaces = state.of_kind(ObjectKind::Namespace).iter().map(|namespace| namespace.value);
        let filters = FilterSemantics {
            namespace_selector_sees_no_labels: release.semantics.namespace_selector_sees_no_labels,
        };
        let plan = Plan {
            release,
            settings,
            catalog: Catalog::new(filters, namespaces.chain(given)),
            tables: Tables::default(),
            eras: Eras::default(),
            extended: ExtendedClaims::default(),
            stages: Vec::new(),
            bound: Vec::new(),
            waiting: Vec::new(),
            evictions: Vec::new(),
            races: Vec::new(),
            controllers: Controllers::default(),
            followed: Vec::new(),
            has_timestamps: false,
            missing: Vec::new(),
        };
        let absent = if settings.assume_complete { Vec::new() } else { absent_kinds(&state, &steps) };
        let lists_kinds = state.lists_kinds();
        let mut plan = PlanBuilder::new(plan, state).build(steps);
        plan.note_missing(absent, lists_kinds);
        plan
    }

    /// Someone who plays courses of this plan one after the other and remembers what they have in common.
    pub fn player(&self) -> Player<'_> {
        Player::new(self)
    }
}

pub(crate) fn kind_of(value: Value<'_>) -> Option<ObjectKind> {
    ObjectKind::of(value.get("apiVersion").str(), value.get("kind").str())
}
