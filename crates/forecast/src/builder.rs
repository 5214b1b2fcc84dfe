//! Builds a plan: processes the steps once, and determines which pods are evicted and which pods controllers create.

use crate::controllers::JobTable;
use crate::eras::{EraIndexOfEachKind, taint_snapshot_of_slices_and_rules, update_taints_from_slice_or_rule};
use crate::evictions::grace_period;
use crate::nodes::{PodNeeds, PodSource};
use crate::outcome::{PodOrigin, WorkloadName};
use crate::plan::{
    ClusterChange, EvictionOfInitialPod, Plan, PodOrClaimChange, ReportedPod, Stage, object_kind,
};
use crate::replacement::{is_node_not_ready, source_of_replacement, unknowns_of_replacement};
use crate::state::{ObjectKind, State, StoredObject, dra_version_of};
use crate::stateful_sets::set_and_ordinal;
use crate::tables::{PodIndex, RecreatingController};
use crate::workload::{controller_reference, workload_of};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use tollgate_api::view::{Claim, Pod, View as _};
use tollgate_document::doc::Value;
use tollgate_engine::impact::{Snapshot, SnapshotKind};
use tollgate_formats::gotime::Timestamp;

/// Builds a [`Plan`] from a state and its steps.
pub(crate) struct PlanBuilder<'d> {
    pub(crate) plan: Plan<'d>,
    /// The cluster state after the steps processed so far.
    state: State<'d>,
    taints: Snapshot,
    /// The Pod objects of the initial state.
    objects: HashMap<PodIndex, StoredObject<'d>, RandomState>,
    /// Evictions that the steps of the plan request.
    asked: Vec<PlannedEviction>,
    /// The kinds of objects that changed since the last stage.
    changed: Vec<ObjectKind>,
    /// The actions of the next stage.
    pub(crate) actions: Vec<PodOrClaimChange<'d>>,
}

/// Within this time, a new pod that is not Ready yet is expected to become Ready.
const SECONDS_UNTIL_READY: i64 = 300;

/// An eviction: its time and stage, whether the controller recreates the whole group, and whether a taint
/// causes it.
#[derive(Clone, Copy)]
struct PlannedEviction {
    at: Timestamp,
    stage: usize,
    pod: PodIndex,
    with_group: bool,
    is_by_taint: bool,
}

impl<'d> PlanBuilder<'d> {
    /// Starts with a plan that has no stages.
    pub(crate) fn new(plan: Plan<'d>, state: State<'d>) -> PlanBuilder<'d> {
        let taints = taint_snapshot_of_slices_and_rules(&state, &plan.release);
        let (objects, changed) = (HashMap::default(), ObjectKind::ALL.to_vec());
        PlanBuilder { plan, state, taints, objects, asked: Vec::new(), changed, actions: Vec::new() }
    }

    /// Processes the steps, and returns the finished plan.
    pub(crate) fn build(mut self, steps: Vec<ClusterChange<'d>>) -> Plan<'d> {
        self.add_initial_state();
        let mut at = self.plan.settings.now;
        self.add_stage(at);
        let mut steps = steps.into_iter().peekable();
        let is_rule = |step: &ClusterChange<'d>| matches!(step, ClusterChange::Apply(value) if object_kind(*value) == Some(ObjectKind::DeviceTaintRule));
        let is_eviction = |step: &ClusterChange<'d>| matches!(step, ClusterChange::Evict { .. });
        while let Some(step) = steps.next() {
            // Rules that are given one after the other are in force together before anyone is evicted.
            let continues = is_rule(&step) && steps.peek().is_some_and(is_rule)
                || is_eviction(&step) && steps.peek().is_some_and(is_eviction);
            match step {
                ClusterChange::Apply(value) => self.apply(value, at),
                ClusterChange::Delete { kind, namespace, name } => self.delete(kind, namespace, name),
                ClusterChange::Evict { namespace, name, with_group } => {
                    let stage = self.plan.stages.len();
                    let pod = self.plan.tables.by_name.get(&(namespace, name)).copied();
                    let eviction = |pod| PlannedEviction { at, stage, pod, with_group, is_by_taint: false };
                    self.asked.extend(pod.map(eviction));
                }
                ClusterChange::Wait(seconds) => at.seconds = at.seconds.saturating_add(seconds),
            }
            if !continues {
                self.add_stage(at);
            }
        }
        self.plan_evictions_and_replacements();
        self.track_pods_of_failed_jobs();
        self.track_pending_pods();
        self.finish()
    }

    /// Adds the pods and claims of the initial state to the plan.
    fn add_initial_state(&mut self) {
        let Plan { tables, catalog, bound, waiting, .. } = &mut self.plan;
        for claim in self.state.objects_of_kind(ObjectKind::ResourceClaim).iter() {
            tables.add_stored_claim(claim);
        }
        let node_of = |pod: &StoredObject<'d>| pod.value.get("spec").get("nodeName").str();
        let pods = self.state.objects_of_kind(ObjectKind::Pod).iter();
        let (bound_pods, mut waiting_pods): (Vec<_>, Vec<_>) =
            pods.filter(|pod| !PodNeeds::is_finished(pod.value)).partition(|pod| !node_of(pod).is_empty());
        // Read before the stages, because their labels matter to others; followed after the given ones.
        waiting_pods.retain(|pod| !pod.value.get("metadata").get("deletionTimestamp").exists());
        waiting_pods.sort_by_key(|pod| pod.value.get("metadata").get("creationTimestamp").str());
        for pod in bound_pods.into_iter().chain(waiting_pods) {
            let node = Some(node_of(&pod)).filter(|node| !node.is_empty());
            let mut source = PodSource::from_object(pod.value);
            if node.is_none() {
                source.controller_selector = JobTable::spreading_selector(&self.state, pod);
            }
            let index = tables.add_pod(catalog, &source, pod.name().to_owned(), pod.value.get("status"));
            tables.by_uid.insert(pod.uid(), index);
            tables.by_name.insert((pod.namespace(), pod.name()), index);
            self.objects.insert(index, pod);
            match node {
                Some(node) => {
                    let entry = tables.pod_mut(index);
                    // Without a grace period, the API server deletes a pod at once.
                    entry.never_ends = is_node_not_ready(&self.state, node) && grace_period(entry.spec) > 0;
                    bound.push((index, node));
                }
                None => waiting.push(index),
            }
        }
        let allocations = tables.claims.iter().filter_map(|claim| claim.stored.as_ref()?.allocation.as_ref());
        self.plan.has_timestamps = allocations.into_iter().any(|held| held.has_timestamp);
    }

    /// Adds a stage that begins at `at`: the objects in effect from then on, and the actions on pods and claims that
    /// were collected since the previous stage.
    fn add_stage(&mut self, at: Timestamp) {
        let Plan { eras, tables, catalog, stages, release, .. } = &mut self.plan;
        let before = stages.last().map(|stage| stage.era).unwrap_or_default();
        let changed = std::mem::take(&mut self.changed);
        let era = eras.begin_era(before, &changed, &self.state, &self.taints, release, (tables, catalog));
        stages.push(Stage { at, era, actions: std::mem::take(&mut self.actions) });
    }

    /// Processes an applied object: records what it changes, and the pods and claims that it creates.
    fn apply(&mut self, value: Value<'d>, at: Timestamp) {
        let known = object_kind(value).is_some_and(|kind| {
            let metadata = value.get("metadata");
            let (namespace, name) = (metadata.get("namespace").str(), metadata.get("name").str());
            self.state.objects_of_kind(kind).get(namespace, name).is_some()
        });
        let Some(kind) = self.state.add(value) else { return };
        self.changed.push(kind);
        update_taints_from_slice_or_rule(&mut self.taints, kind, value, &self.plan.release, at);
        let object = StoredObject { version: dra_version_of(value), value };
        match kind {
            ObjectKind::Pod => {
                let pod = self.add_created_pod(&PodSource::from_object(value), object.name());
                self.track_pod(pod, PodOrigin::Given, Some(object));
                self.actions.push(PodOrClaimChange::CreatePod(pod));
            }
            ObjectKind::ResourceClaim => {
                let tables = &mut self.plan.tables;
                let claim = tables.find_or_add_claim(object.namespace(), object.name());
                let spec = tables.intern_claim_spec(object.version, Claim::of(value).spec());
                self.actions.push(PodOrClaimChange::ApplyClaim(claim, spec));
            }
            ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::Job => {
                self.add_pods_of_workload(kind, object, known);
            }
            _ => {}
        }
    }

    /// Processes a deleted object: records what it changes, and the pods and claims that are deleted.
    fn delete(&mut self, kind: ObjectKind, namespace: &'d str, name: &'d str) {
        self.state.remove(kind, namespace, name);
        self.changed.push(kind);
        match kind {
            ObjectKind::Pod => self.actions.push(PodOrClaimChange::DeletePod { namespace, name }),
            ObjectKind::ResourceClaim => {
                self.actions
                    .push(PodOrClaimChange::DeleteClaim(self.plan.tables.find_or_add_claim(namespace, name)));
            }
            ObjectKind::ResourceSlice | ObjectKind::DeviceTaintRule => {
                let kind = SnapshotKind::from_type_meta("resource.k8s.io/v1", kind.name());
                if let Some(kind) = kind {
                    self.taints.remove(kind, "", name);
                }
            }
            _ => {}
        }
    }

    /// Adds a pod that does not exist in the initial state: a pod that a step creates, or a replacement.
    pub(crate) fn add_created_pod(&mut self, source: &PodSource<'d>, name: &str) -> PodIndex {
        let Plan { tables, catalog, .. } = &mut self.plan;
        tables.add_pod(catalog, source, name.to_owned(), Value::absent())
    }

    /// Adds a pod whose outcome is reported.
    fn track_pod(&mut self, pod: PodIndex, origin: PodOrigin, object: Option<StoredObject<'d>>) {
        let workload = object.and_then(|object| self.workload_name(object));
        self.track_pod_as(pod, origin, None, object.map(|object| object.name().to_owned()), workload);
    }

    fn workload_name(&self, object: StoredObject<'d>) -> Option<WorkloadName> {
        workload_of(&self.state, object).map(WorkloadName::from)
    }

    /// Adds a pod whose outcome is reported. `replaced` is the pod of the initial state that it replaces.
    pub(crate) fn track_pod_as(
        &mut self,
        pod: PodIndex,
        origin: PodOrigin,
        replaced: Option<StoredObject<'d>>,
        name: Option<String>,
        workload: Option<WorkloadName>,
    ) {
        let Plan { tables, tracked, catalog, .. } = &mut self.plan;
        let entry = tables.pod_mut(pod);
        entry.tracked = Some(tracked.len());
        let not_modelled = catalog.pod_needs(entry.needs).unmodelled.iter().map(|name| (*name).to_owned());
        tracked.push(ReportedPod {
            namespace: entry.namespace.to_owned(),
            name,
            origin,
            replaces: replaced.map(|replaced| replaced.name().to_owned()),
            workload,
            not_modelled: not_modelled.collect(),
            pod: Some(pod),
        });
    }

    /// Determines which pods of the initial state are evicted, and adds their replacements.
    fn plan_evictions_and_replacements(&mut self) {
        let mut evictions = std::mem::take(&mut self.asked);
        for &(pod, node) in &self.plan.bound {
            let mut known: Option<(usize, Option<Timestamp>)> = None;
            for (number, stage) in self.plan.stages.iter().enumerate() {
                let due = match known {
                    Some((devices, due)) if devices == stage.era.devices => due,
                    _ => self.taint_eviction_time(pod, stage.era),
                };
                known = Some((stage.era.devices, due));
                let of_node = self.plan.node_taint_eviction_time(pod, node, number);
                let Some(due) = due.into_iter().chain(of_node).min() else { continue };
                let end = self.plan.stages.get(number + 1).map(|next| next.at);
                if due <= stage.at || end.is_none_or(|end| due < end) {
                    let at = due.max(stage.at);
                    let (stage, with_group, is_by_taint) = (number, false, true);
                    evictions.push(PlannedEviction { at, stage, pod, with_group, is_by_taint });
                    break;
                }
            }
        }
        let tables = &self.plan.tables;
        evictions.sort_by_key(|eviction| {
            let pod = tables.pod(eviction.pod);
            (eviction.stage, eviction.at, pod.namespace, pod.name.clone())
        });
        // Whoever is evicted first, a pod leaves once.
        let mut left: HashSet<PodIndex, RandomState> = HashSet::default();
        evictions.retain(|eviction| left.insert(eviction.pod));
        for eviction in evictions {
            self.add_eviction_and_replacement(eviction);
        }
        let is_of_set =
            |pod: &PodIndex| self.objects.get(pod).is_some_and(|pod| JobTable::replacement_keeps_name(*pod));
        let waiting: Vec<PodIndex> = self.plan.waiting.iter().copied().filter(is_of_set).collect();
        self.plan.record_replacement_predecessors(&waiting);
        self.record_predecessors_that_are_not_ready();
    }

    /// Records for the pods of StatefulSets that their replacement waits until a pod with a lower ordinal is Ready that
    /// is not evicted, or only in a later stage. When that will be is not known, unless the pod has just begun.
    fn record_predecessors_that_are_not_ready(&mut self) {
        let evictions = self.plan.evictions.iter();
        let stages: HashMap<PodIndex, usize, RandomState> =
            evictions.map(|eviction| (eviction.pod, eviction.stage)).collect();
        // The ordinal of each such pod, and the stage in which it is evicted.
        let mut unready: BTreeMap<(&str, &str), Vec<(u64, usize)>> = BTreeMap::new();
        for (pod, _) in &self.plan.bound {
            let Some(object) = self.objects.get(pod) else { continue };
            if !JobTable::replacement_keeps_name(*object)
                || Pod::of(object.value).is_ready_or_unknown()
                || self.has_just_begun(*object)
            {
                continue;
            }
            if let Some((set, ordinal)) = set_and_ordinal(object.name()) {
                let stage = stages.get(pod).copied().unwrap_or(usize::MAX);
                unready.entry((object.namespace(), set)).or_default().push((ordinal, stage));
            }
        }
        for eviction in self.plan.evictions.iter().filter(|eviction| eviction.is_ordered) {
            let Some(object) = self.objects.get(&eviction.pod) else { continue };
            let Some((set, ordinal)) = set_and_ordinal(object.name()) else { continue };
            let before = unready.get(&(object.namespace(), set)).into_iter().flatten();
            let before = before.filter(|(other, stage)| *other < ordinal && *stage > eviction.stage);
            let first = before.map(|(other, _)| other).min();
            if let (Some(first), Some(tracked)) = (first, self.plan.tracked.get_mut(eviction.tracked)) {
                tracked
                    .not_modelled
                    .push(format!("StatefulSet {set} waits until pod {set}-{first} is Ready"));
            }
        }
    }

    /// True if a pod was created so recently that it is expected to become Ready.
    fn has_just_begun(&self, pod: StoredObject<'d>) -> bool {
        let created = Timestamp::parse(pod.value.get("metadata").get("creationTimestamp").str());
        created.is_ok_and(|created| {
            self.plan.settings.now.seconds.saturating_sub(created.seconds) < SECONDS_UNTIL_READY
        })
    }

    /// Adds the pods that are deleted because their Job fails after too many evictions.
    fn track_pods_of_failed_jobs(&mut self) {
        let Plan { controllers, bound, evictions, tracked, .. } = &mut self.plan;
        let mut kept: Vec<(usize, StoredObject<'d>)> = Vec::new();
        let mut lost: HashMap<usize, Vec<Value<'d>>, RandomState> = HashMap::default();
        let evicted: HashSet<PodIndex, RandomState> = evictions.iter().map(|eviction| eviction.pod).collect();
        for &(pod, _) in bound.iter() {
            let Some(object) = self.objects.get(&pod) else { continue };
            let Some(job) = controllers.record_bound_pod_of_job(pod, *object) else { continue };
            if evicted.contains(&pod) {
                lost.entry(job).or_default().push(object.value);
            } else {
                kept.push((job, *object));
            }
        }
        let fails = |(number, lost): (usize, Vec<Value<'d>>)| {
            controllers.jobs.get(number)?.failure_reason(lost.into_iter()).map(|_| number)
        };
        let failed: HashSet<usize, RandomState> = lost.into_iter().filter_map(fails).collect();
        for (_, object) in kept.into_iter().filter(|(number, _)| failed.contains(number)) {
            let workload = workload_of(&self.state, object).map(WorkloadName::from);
            tracked.push(ReportedPod::without_replacement(object, workload));
        }
    }

    /// The time at which the taints of a device era evict a pod of the initial state.
    fn taint_eviction_time(&self, pod: PodIndex, era: EraIndexOfEachKind) -> Option<Timestamp> {
        let plan = &self.plan;
        let taints = &plan.eras.devices_in(era).taints;
        let uid = self.objects.get(&pod)?.uid();
        let references = plan.tables.pod(pod).references.iter();
        let claims = references.filter_map(|reference| reference.claim);
        let stored = claims.filter_map(|claim| plan.tables.claim(claim).stored.as_ref());
        let reserved = stored.filter(|claim| claim.reserved.contains(&uid));
        let times = reserved
            .filter_map(|claim| claim.allocation.as_ref()?.eviction_time(taints, plan.release.profile));
        times.min()
    }

    /// Adds the eviction of a pod of the initial state to the plan, with the pod that replaces it.
    fn add_eviction_and_replacement(&mut self, found: PlannedEviction) {
        let PlannedEviction { at, stage, pod, with_group, is_by_taint } = found;
        let Some(object) = self.objects.get(&pod).copied() else { return };
        if object.value.get("metadata").get("deletionTimestamp").exists() {
            return;
        }
        let controller = match self.plan.controllers.replacement_controller_of(&self.state, object) {
            RecreatingController::Job(_) if with_group => RecreatingController::WhenGone,
            // A DaemonSet creates no pod on a node with a NoExecute taint that the pod does not tolerate.
            RecreatingController::WhenGone if self.is_evicted_from_node_of_daemon_set(found, object) => {
                RecreatingController::None
            }
            controller => controller,
        };
        let tracked = self.plan.tracked.len();
        let replacement = (controller != RecreatingController::None).then(|| {
            let source = PodSource {
                controller_selector: JobTable::spreading_selector(&self.state, object),
                ..source_of_replacement(&self.state, object)
            };
            let certain = JobTable::replacement_keeps_name(object).then(|| object.name().to_owned());
            let made = format!("{}gen", object.value.get("metadata").get("generateName").str());
            let replacement = self.add_created_pod(&source, certain.as_ref().unwrap_or(&made));
            let workload = self.workload_name(object);
            self.track_pod_as(replacement, PodOrigin::Replacement, Some(object), certain, workload);
            self.set_controller(replacement, controller.clone(), object.value);
            if let (RecreatingController::Unknown(kind), Some(tracked)) =
                (&controller, self.plan.tracked.last_mut())
            {
                tracked.not_modelled.push(format!("controller {kind}"));
            }
            let is_awaited_forever =
                self.plan.tables.pod(pod).never_ends && self.plan.controllers.waits_until_gone(&controller);
            if let Some(tracked) = self.plan.tracked.last_mut() {
                tracked.not_modelled.extend(unknowns_of_replacement(&self.state, object));
                if is_awaited_forever {
                    let (name, node) = (object.name(), object.value.get("spec").get("nodeName").str());
                    tracked
                        .not_modelled
                        .push(format!("pod {name} stays Terminating while node {node} is not Ready"));
                }
            }
            replacement
        });
        if replacement.is_none() {
            self.plan.tracked.push(ReportedPod::without_replacement(object, None));
        }
        let is_ordered = JobTable::creates_pods_in_order(&self.state, object);
        let eviction = EvictionOfInitialPod { at, stage, pod, tracked, replacement, is_ordered, is_by_taint };
        self.plan.evictions.push(eviction);
    }

    /// True if a taint of the node evicts a pod of a DaemonSet.
    fn is_evicted_from_node_of_daemon_set(&self, found: PlannedEviction, pod: StoredObject<'d>) -> bool {
        let node = pod.value.get("spec").get("nodeName").str();
        controller_reference(pod.value).get("kind").str() == "DaemonSet"
            && self
                .plan
                .node_taint_eviction_time(found.pod, node, found.stage)
                .is_some_and(|at| at <= found.at)
    }

    /// Adds the pending pods of the initial state to the reported pods.
    fn track_pending_pods(&mut self) {
        for pod in self.plan.waiting.clone() {
            let object = self.objects.get(&pod).copied();
            self.track_pod(pod, PodOrigin::Waiting, object);
            if let Some(object) = object {
                let controller = self.plan.controllers.replacement_controller_of(&self.state, object);
                self.set_controller(pod, controller, object.value);
            }
        }
    }

    /// Records the controller that recreates a pod after an eviction. `evicted_first` is the pod of the state that is
    /// evicted first: the pod itself or the one that it replaces; absent for a new pod.
    pub(crate) fn set_controller(
        &mut self,
        pod: PodIndex,
        controller: RecreatingController,
        evicted_first: Value<'d>,
    ) {
        let entry = self.plan.tables.pod_mut(pod);
        if let RecreatingController::Job(job) = controller {
            let job = self.plan.controllers.jobs.get(job);
            entry.evictions_survived_by_index =
                job.and_then(|job| job.evictions_survived_by_index(evicted_first));
        }
        entry.controller = controller;
    }

    /// Adds the catalog entries of terminating pods and the claims for extended resources, and returns the finished
    /// plan.
    fn finish(self) -> Plan<'d> {
        let mut plan = self.plan;
        plan.add_terminating_catalog_entries();
        plan.eras.record_resources_that_classes_provide(&plan.catalog);
        for tracked in &mut plan.tracked {
            let Some(pod) = tracked.pod else { continue };
            for (number, era) in plan.eras.classes.iter().enumerate() {
                if !plan.extended.add_claims_unless_too_many_resources(
                    pod,
                    (number, era),
                    &plan.catalog,
                    &mut plan.tables,
                ) {
                    tracked.not_modelled.push("more than four extended resources".to_owned());
                }
            }
        }
        plan
    }
}
