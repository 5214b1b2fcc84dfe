//! A forecast before it is played: the state and the steps, read once and shared by all courses.
//!
//! Steps become stages: what is in force from then on, and which pods and claims come and go. Which pods of the state
//! are evicted, and when, does not depend on chance, so it is known here.

use crate::controllers::Controllers;
use crate::eras::{Changed, Era, Eras, apply_taints, taints_of};
use crate::extended::ExtendedClaims;
use crate::nodes::{Catalog, PodNeeds, PodSource};
use crate::outcome::{Origin, WorkloadName};
use crate::player::Player;
use crate::state::{ObjectKind, State, StoredObject, version_of};
use crate::tables::{ClaimIndex, Controller, PodIndex, SpecEntry, Tables};
use crate::workload::workload_of;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_allocator::{DEFAULT_MAX_STEPS, Semantics};
use tollgate_api::profile::Profile;
use tollgate_api::view::{Claim, View as _};
use tollgate_cel::evaluate::Behaviour;
use tollgate_document::doc::Value;
use tollgate_engine::impact::Snapshot;
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
    pub(crate) controllers: Controllers,
    /// The pods that a course follows, in the order in which they are reported.
    pub(crate) followed: Vec<FollowedPod>,
    /// Some allocation of the state has a timestamp. Otherwise, whoever wrote the state has left them out.
    pub(crate) has_timestamps: bool,
    missing: Vec<String>,
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
        let taints = taints_of(&state, &release);
        let given = steps.iter().filter_map(|step| match step {
            Step::Apply(value) if kind_of(*value) == Some(ObjectKind::Namespace) => Some(*value),
            _ => None,
        });
        let namespaces = state.of_kind(ObjectKind::Namespace).iter().map(|namespace| namespace.value);
        let plan = Plan {
            release,
            settings,
            catalog: Catalog::new(namespaces.chain(given)),
            tables: Tables::default(),
            eras: Eras::default(),
            extended: ExtendedClaims::default(),
            stages: Vec::new(),
            bound: Vec::new(),
            waiting: Vec::new(),
            evictions: Vec::new(),
            controllers: Controllers::default(),
            followed: Vec::new(),
            has_timestamps: false,
            missing: missing(&state, settings),
        };
        let builder = PlanBuilder { plan, state, taints, objects: HashMap::default(), waiting: Vec::new() };
        builder.build(steps)
    }

    /// What the state lacks, such as `Nodes`.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    /// Someone who plays courses of this plan one after the other and remembers what they have in common.
    pub fn player(&self) -> Player<'_> {
        Player::new(self)
    }
}

fn missing(state: &State<'_>, settings: Settings) -> Vec<String> {
    let lacks_nodes = !settings.assume_complete && state.of_kind(ObjectKind::Node).is_empty();
    lacks_nodes.then(|| "Nodes".to_owned()).into_iter().collect()
}

pub(crate) fn kind_of(value: Value<'_>) -> Option<ObjectKind> {
    ObjectKind::of(value.get("apiVersion").str(), value.get("kind").str())
}

/// A plan while it is being made.
struct PlanBuilder<'d> {
    plan: Plan<'d>,
    /// As it is after the steps so far.
    state: State<'d>,
    taints: Snapshot,
    /// The objects of the pods of the state.
    objects: HashMap<PodIndex, StoredObject<'d>, RandomState>,
    waiting: Vec<StoredObject<'d>>,
}

impl<'d> PlanBuilder<'d> {
    fn build(mut self, steps: Vec<Step<'d>>) -> Plan<'d> {
        self.read_state();
        let mut at = self.plan.settings.now;
        let mut changed = Changed::ALL;
        self.end_stage(at, &mut changed, Vec::new());
        let mut steps = steps.into_iter().peekable();
        let mut actions = Vec::new();
        let is_rule = |step: &Step<'d>| matches!(step, Step::Apply(value) if kind_of(*value) == Some(ObjectKind::DeviceTaintRule));
        while let Some(step) = steps.next() {
            // Rules that are given one after the other are in force together before anyone is evicted.
            let continues = is_rule(&step) && steps.peek().is_some_and(is_rule);
            match step {
                Step::Apply(value) => self.apply(value, at, &mut changed, &mut actions),
                Step::Delete { kind, namespace, name } => {
                    self.delete(kind, namespace, name, &mut changed, &mut actions);
                }
                Step::Wait(seconds) => at.seconds = at.seconds.saturating_add(seconds),
            }
            if !continues {
                self.end_stage(at, &mut changed, std::mem::take(&mut actions));
            }
        }
        self.find_evictions();
        self.follow_waiting();
        self.finish()
    }

    fn read_state(&mut self) {
        let Plan { tables, catalog, bound, waiting, controllers, .. } = &mut self.plan;
        for claim in self.state.of_kind(ObjectKind::ResourceClaim).iter() {
            tables.add_stored_claim(claim);
        }
        for pod in self.state.of_kind(ObjectKind::Pod).iter() {
            let node = pod.value.get("spec").get("nodeName").str();
            if PodNeeds::is_finished(pod.value) {
                continue;
            }
            if node.is_empty() {
                if !pod.value.get("metadata").get("deletionTimestamp").exists() {
                    self.waiting.push(pod);
                }
                continue;
            }
            let source = PodSource::of_object(pod.value);
            let index = tables.add_pod(catalog, &source, pod.name().to_owned(), pod.value.get("status"));
            tables.by_uid.insert(pod.uid(), index);
            tables.by_name.insert((pod.namespace(), pod.name()), index);
            self.objects.insert(index, pod);
            bound.push((index, node));
        }
        // Read before the stages, because their labels matter to others; followed after the given ones.
        self.waiting.sort_by_key(|pod| pod.value.get("metadata").get("creationTimestamp").str());
        for pod in &self.waiting {
            let source = PodSource {
                controller_selector: controllers.selector(&self.state, *pod),
                ..PodSource::of_object(pod.value)
            };
            let index = tables.add_pod(catalog, &source, pod.name().to_owned(), pod.value.get("status"));
            tables.by_uid.insert(pod.uid(), index);
            tables.by_name.insert((pod.namespace(), pod.name()), index);
            self.objects.insert(index, *pod);
            waiting.push(index);
        }
        let allocations = tables.claims.iter().filter_map(|claim| claim.stored.as_ref()?.allocation.as_ref());
        self.plan.has_timestamps = allocations.into_iter().any(|held| held.has_timestamp);
    }

    fn end_stage(&mut self, at: Timestamp, changed: &mut Changed, actions: Vec<Action<'d>>) {
        let Plan { eras, tables, catalog, stages, release, .. } = &mut self.plan;
        let before = stages.last().map(|stage| stage.era).unwrap_or_default();
        let changed = std::mem::take(changed);
        let era = eras.begin(before, changed, &self.state, &self.taints, release, (tables, catalog));
        stages.push(Stage { at, era, actions });
    }

    fn apply(
        &mut self,
        value: Value<'d>,
        at: Timestamp,
        changed: &mut Changed,
        actions: &mut Vec<Action<'d>>,
    ) {
        let known = kind_of(value).is_some_and(|kind| {
            let metadata = value.get("metadata");
            let (namespace, name) = (metadata.get("namespace").str(), metadata.get("name").str());
            self.state.of_kind(kind).get(namespace, name).is_some()
        });
        let Some(kind) = self.state.add(value) else { return };
        changed.note(kind);
        apply_taints(&mut self.taints, kind, value, &self.plan.release, at);
        let object = StoredObject { version: version_of(value), value };
        match kind {
            ObjectKind::Pod => {
                let pod =
                    self.add_given_pod(&PodSource::of_object(value), Some(object.name()), object.name());
                self.follow(pod, Origin::Given, None, Some(object));
                actions.push(Action::CreatePod(pod));
            }
            ObjectKind::ResourceClaim => {
                let tables = &mut self.plan.tables;
                let claim = tables.claim(object.namespace(), object.name());
                let spec = tables.spec(object.version, Claim::of(value).spec());
                actions.push(Action::ApplyClaim(claim, spec));
            }
            ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::Job => {
                self.apply_workload(kind, object, known, actions);
            }
            _ => {}
        }
    }

    fn delete(
        &mut self,
        kind: ObjectKind,
        namespace: &'d str,
        name: &'d str,
        changed: &mut Changed,
        actions: &mut Vec<Action<'d>>,
    ) {
        self.state.remove(kind, namespace, name);
        changed.note(kind);
        match kind {
            ObjectKind::Pod => actions.push(Action::DeletePod { namespace, name }),
            ObjectKind::ResourceClaim => {
                actions.push(Action::DeleteClaim(self.plan.tables.claim(namespace, name)));
            }
            ObjectKind::ResourceSlice | ObjectKind::DeviceTaintRule => {
                let kind = tollgate_engine::impact::SnapshotKind::of("resource.k8s.io/v1", kind.name());
                if let Some(kind) = kind {
                    self.taints.remove(kind, "", name);
                }
            }
            _ => {}
        }
    }

    fn add_given_pod(&mut self, source: &PodSource<'d>, known: Option<&str>, name: &str) -> PodIndex {
        let Plan { tables, catalog, .. } = &mut self.plan;
        let name = known.unwrap_or(name).to_owned();
        tables.add_pod(catalog, source, name, Value::absent())
    }

    /// Follows a pod; `replaced` is the pod of the state that it replaces.
    fn follow(
        &mut self,
        pod: PodIndex,
        origin: Origin,
        replaced: Option<StoredObject<'d>>,
        object: Option<StoredObject<'d>>,
    ) {
        let workload = object.and_then(|object| workload_of(&self.state, object));
        let name = object.filter(|_| replaced.is_none()).map(|object| object.name().to_owned());
        self.follow_as(
            pod,
            origin,
            replaced,
            name,
            workload.map(|workload| WorkloadName {
                kind: workload.kind.to_owned(),
                name: workload.name.to_owned(),
            }),
        );
    }

    fn follow_as(
        &mut self,
        pod: PodIndex,
        origin: Origin,
        replaced: Option<StoredObject<'d>>,
        name: Option<String>,
        workload: Option<WorkloadName>,
    ) {
        let Plan { tables, followed, catalog, .. } = &mut self.plan;
        let Some(entry) = tables.pods.get_mut(pod) else { return };
        entry.followed = Some(followed.len());
        let not_modelled = catalog.pod(entry.needs).unmodelled.iter().map(|name| (*name).to_owned());
        followed.push(FollowedPod {
            namespace: entry.namespace.to_owned(),
            name,
            origin,
            replaces: replaced.map(|replaced| replaced.name().to_owned()),
            workload,
            not_modelled: not_modelled.collect(),
            pod: Some(pod),
        });
    }

    /// The pods that a new workload makes.
    fn apply_workload(
        &mut self,
        kind: ObjectKind,
        object: StoredObject<'d>,
        known: bool,
        actions: &mut Vec<Action<'d>>,
    ) {
        let pods = self.plan.controllers.pods_of(kind, object);
        let mut before: Vec<(Option<PodIndex>, PodIndex)> = Vec::new();
        for name in pods.names {
            let pod = self.add_given_pod(&pods.source, name.as_deref(), &pods.placeholder);
            let workload = WorkloadName { kind: kind.name().to_owned(), name: object.name().to_owned() };
            self.follow_as(pod, Origin::Given, None, name, Some(workload));
            if let Some(entry) = self.plan.tables.pods.get_mut(pod) {
                entry.controller = pods.controller.clone();
                if pods.is_ordered {
                    entry.after.clone_from(&before);
                    before.push((None, pod));
                }
            }
            if known && let Some(followed) = self.plan.followed.last_mut() {
                followed.not_modelled.push(format!("update of an existing {}", kind.name()));
            }
            actions.push(Action::CreatePod(pod));
        }
    }

    /// Finds out which pods of the state are evicted, and adds the pods that replace them.
    fn find_evictions(&mut self) {
        let mut evictions: Vec<(Timestamp, usize, PodIndex)> = Vec::new();
        for &(pod, _) in &self.plan.bound {
            let mut known: Option<(usize, Option<Timestamp>)> = None;
            for (number, stage) in self.plan.stages.iter().enumerate() {
                let due = match known {
                    Some((devices, due)) if devices == stage.era.devices => due,
                    _ => self.due_time(pod, stage.era.devices),
                };
                known = Some((stage.era.devices, due));
                let Some(due) = due else { continue };
                let end = self.plan.stages.get(number + 1).map(|next| next.at);
                if due <= stage.at || end.is_none_or(|end| due < end) {
                    evictions.push((due.max(stage.at), number, pod));
                    break;
                }
            }
        }
        let tables = &self.plan.tables;
        evictions.sort_by_key(|&(at, stage, pod)| {
            (stage, at, tables.pods.get(pod).map(|pod| (pod.namespace, pod.name.clone())))
        });
        for (at, stage, pod) in evictions {
            self.add_eviction(at, stage, pod);
        }
        self.plan.order_replacements();
    }

    /// When the taints of an era evict a pod of the state.
    fn due_time(&self, pod: PodIndex, devices: usize) -> Option<Timestamp> {
        let plan = &self.plan;
        let taints = &plan.eras.devices.get(devices)?.taints;
        let uid = self.objects.get(&pod)?.uid();
        let references = plan.tables.pods.get(pod)?.references.iter();
        let claims = references.filter_map(|reference| plan.tables.claims.get(reference.claim?));
        let stored = claims.filter_map(|claim| claim.stored.as_ref());
        let reserved = stored.filter(|claim| claim.reserved.contains(&uid));
        let times = reserved
            .filter_map(|claim| claim.allocation.as_ref()?.eviction_time(taints, plan.release.profile));
        times.min()
    }

    fn add_eviction(&mut self, at: Timestamp, stage: usize, pod: PodIndex) {
        let Some(object) = self.objects.get(&pod).copied() else { return };
        if object.value.get("metadata").get("deletionTimestamp").exists() {
            return;
        }
        let controller = self.plan.controllers.of(&self.state, object);
        let followed = self.plan.followed.len();
        let replacement = (controller != Controller::None).then(|| {
            let source = PodSource {
                controller_selector: self.plan.controllers.selector(&self.state, object),
                ..PodSource::of_replaced(object.value)
            };
            let certain = self.plan.controllers.keeps_name(object).then(|| object.name().to_owned());
            let made = format!("{}gen", object.value.get("metadata").get("generateName").str());
            let replacement = self.add_given_pod(&source, certain.as_deref(), &made);
            let workload = workload_of(&self.state, object).map(|workload| WorkloadName {
                kind: workload.kind.to_owned(),
                name: workload.name.to_owned(),
            });
            self.follow_as(replacement, Origin::Replacement, Some(object), certain, workload);
            if let Some(entry) = self.plan.tables.pods.get_mut(replacement) {
                entry.controller = controller.clone();
            }
            if let (Controller::Unknown(kind), Some(followed)) = (&controller, self.plan.followed.last_mut())
            {
                followed.not_modelled.push(format!("controller {kind}"));
            }
            replacement
        });
        if replacement.is_none() {
            self.plan.followed.push(FollowedPod {
                namespace: object.namespace().to_owned(),
                name: None,
                origin: Origin::Replacement,
                replaces: Some(object.name().to_owned()),
                workload: None,
                not_modelled: Vec::new(),
                pod: None,
            });
        }
        self.plan.evictions.push(Eviction { at, stage, pod, followed, replacement });
    }

    fn follow_waiting(&mut self) {
        for pod in self.plan.waiting.clone() {
            let object = self.objects.get(&pod).copied();
            self.follow(pod, Origin::Waiting, None, object);
            if let Some(object) = object {
                let controller = self.plan.controllers.of(&self.state, object);
                if let Some(entry) = self.plan.tables.pods.get_mut(pod) {
                    entry.controller = controller;
                }
            }
        }
    }

    fn finish(self) -> Plan<'d> {
        let mut plan = self.plan;
        plan.eras.complete(&plan.catalog);
        for followed in &mut plan.followed {
            let Some(pod) = followed.pod else { continue };
            for (number, era) in plan.eras.classes.iter().enumerate() {
                if !plan.extended.add_pod(pod, (number, era), &plan.catalog, &mut plan.tables) {
                    followed.not_modelled.push("more than four extended resources".to_owned());
                }
            }
        }
        plan
    }
}
