//! A forecast before it is played: the state and the steps, read once and shared by all courses.

use crate::forecast::Course;
use crate::outcome::{Origin, WorkloadName};
use crate::state::{ObjectKind, State};
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
    pub(crate) state: State<'d>,
    pub(crate) steps: Vec<Step<'d>>,
    pub(crate) release: Release,
    pub(crate) settings: Settings,
    /// The pods that a course follows, in the order in which they are reported.
    pub(crate) followed: Vec<FollowedPod>,
}

/// A pod that a course follows: a given one, a waiting one, or an evicted one with those that replace it.
#[derive(Clone, Debug)]
pub(crate) struct FollowedPod {
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) origin: Origin,
    pub(crate) replaces: Option<String>,
    pub(crate) workload: Option<WorkloadName>,
}

impl<'d> Plan<'d> {
    /// Reads the state and the steps, which are done in order.
    pub fn new(state: State<'d>, steps: Vec<Step<'d>>, release: Release, settings: Settings) -> Plan<'d> {
        Plan { state, steps, release, settings, followed: Vec::new() }
    }

    /// What the state lacks, such as `Nodes`.
    pub(crate) fn missing(&self) -> Vec<String> {
        let needed = [(ObjectKind::Node, "Nodes"), (ObjectKind::DeviceClass, "DeviceClasses")];
        let lacks = |kind: ObjectKind| !self.settings.assume_complete && self.state.of_kind(kind).is_empty();
        needed.into_iter().filter(|(kind, _)| lacks(*kind)).map(|(_, name)| name.to_owned()).collect()
    }

    /// Someone who plays courses of this plan one after the other and remembers what they have in common.
    pub fn player(&self) -> Player<'_, 'd> {
        Player { plan: self }
    }
}

/// Plays courses. Which ones it has played before does not change the next.
#[derive(Debug)]
pub struct Player<'p, 'd> {
    plan: &'p Plan<'d>,
}

impl Player<'_, '_> {
    /// Plays a course; `course` is its number, from which chance starts together with the seed.
    pub fn play(&mut self, course: u32) -> Course {
        let _ = (course, self.plan.settings.seed);
        Course { evicted: Vec::new(), pods: Vec::new() }
    }
}
