//! Computes the impact of a DeviceTaintRule or a changed ResourceSlice: devices → claims → pods, with times and
//! reasons. Pure.
//!
//! A [`Snapshot`] is the state of the cluster, filled from a dump or by a watcher; [`assess`] applies a
//! [`ProposedChange`] to it and follows the eviction controller of the profile's release step by step, so that the
//! numbers match the controller's. Nothing here reads a clock: the time is an input. Limits on the impact belong to
//! `policy`.
//!
//! Invariant: the same snapshot, change, profile and time give the same result in the same order.

mod assess;
mod budgets;
mod condition;
mod contents;
mod cost;
mod details;
mod differences;
mod eviction;
mod fields;
mod forgotten;
mod interner;
mod kinds;
pub mod other_apis;
mod partitions;
mod placement;
mod rate_limit;
mod read;
mod reason;
mod record;
mod selection;
mod shape;
mod shed;
mod slots;
mod snapshot;
mod tainted;
pub mod target;
mod uid;
mod unmatched;

use std::sync::Arc;

pub use assess::{assess, impact_counts};
pub use budgets::{ViolatedBudget, violated_budgets};
pub use condition::{EVICTION_IN_PROGRESS, ImpactCounts, RuleCondition};
pub use details::DetailsToStore;
pub use differences::impact_notes;
pub use eviction::{TaintSource, Tolerance};
pub use forgotten::ForgottenRule;
pub use kinds::SnapshotKind;
use kinds::resource_group_version;
pub use partitions::Partition;
pub use read::{UnreadableObject, check_schema_without, unreadable_object};
pub use reason::{OutcomeReason, ShortReason};
use record::ClassSelection;
pub use record::{Rule, Toleration};
pub use shed::RemovedObject;
pub use snapshot::Snapshot;
pub use tainted::{RuleTaintedDevices, RuleTaintedDevicesQuery};

use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_api::view::{self, View as _};
use tollgate_document::doc::Value;
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime::Timestamp;

/// The change whose impact is computed: a DeviceTaintRule or a ResourceSlice that is to be created or updated.
#[derive(Debug)]
pub enum ProposedChange {
    /// A DeviceTaintRule, which replaces the stored rule of the same name, if any.
    Rule(Rule),
    /// A slice that the snapshot already contains in its new form.
    Slice(ChangedSlice),
}

/// A changed ResourceSlice, which the snapshot already contains in its new form.
#[derive(Debug)]
pub struct ChangedSlice {
    /// Name of the ResourceSlice.
    name: Arc<str>,
    /// The ResourceSlicePatch that changes the slice; `None` if its driver does.
    patch: Option<PatchEffectOnSlice>,
}

/// The effect of a ResourceSlicePatch (draft r1) on a slice.
#[derive(Debug)]
struct PatchEffectOnSlice {
    name: Box<str>,
    /// Names of the devices that the patch selects.
    devices: Vec<Box<str>>,
    /// True if it also selects devices by class or expression, and these cannot be evaluated.
    is_conditional: bool,
}

impl ChangedSlice {
    /// True if a patch changes the slice that also selects devices by class or expression, and these cannot be
    /// evaluated.
    fn has_unevaluated_criteria(&self) -> bool {
        self.patch.as_ref().is_some_and(|patch| patch.is_conditional)
    }
}

impl ProposedChange {
    /// Creates the change for a rule as it will be stored: decoded, with its defaults filled in.
    pub fn from_decoded_rule(rule: view::TaintRule<'_>) -> ProposedChange {
        ProposedChange::Rule(read::rule_record(rule, &mut interner::StringInterner::default()))
    }

    /// Creates the change for a rule of a manifest, as `kubectl apply` would store it over the existing one; `effect`
    /// replaces that of the manifest. A missing `timeAdded` is kept from the stored rule or set to `now`, and reset
    /// where the release does so.
    // upstream v1.36 devicetaintrule strategy PrepareForUpdate
    pub fn from_rule_manifest(
        object: Value<'_>,
        effect: Option<&str>,
        stored: &Snapshot,
        profile: &Profile,
        now: Timestamp,
    ) -> Result<ProposedChange, UnreadableObject> {
        let version = resource_group_version(object.get("apiVersion").str()).unwrap_or(Version::V1);
        read::check_schema_of_read_fields(ApiKind::DeviceTaintRule, version, object)?;
        let mut rule =
            read::rule_record(view::TaintRule::of(object), &mut interner::StringInterner::default());
        if let Some(selector) =
            rule.selector.as_mut().filter(|selector| matches!(selector.by_class, ClassSelection::Yes(_)))
            && !profile.rule_class_selectors
        {
            selector.by_class = ClassSelection::Dropped;
        }
        if let Some(effect) = effect {
            rule.taint.effect = effect.into();
        }
        let old = stored.rule(&rule.name);
        let before = old.and_then(|old| old.taint.added);
        let given = rule.taint.added.or(before);
        let restarts = profile.restarts_rule_time
            && old.is_some_and(|old| old.taint.effect != rule.taint.effect)
            && given.map(|time| time.seconds) == before.map(|time| time.seconds);
        rule.taint.added = given.filter(|_| !restarts).or(Some(Timestamp { nanos: 0, ..now }));
        Ok(ProposedChange::Rule(rule))
    }

    /// Adds a slice to the snapshot as its driver publishes it, and creates the change, which consists of its taints.
    pub fn from_published_slice(
        object: Value<'_>,
        state: &mut Snapshot,
        now: Timestamp,
    ) -> Result<ProposedChange, UnreadableObject> {
        let version = resource_group_version(object.get("apiVersion").str()).unwrap_or(Version::V1);
        state.apply_slice(object, version, Some(Timestamp { nanos: 0, ..now }), &[])?;
        let name = read::name_or_generate_name(view::Slice::of(object).metadata()).into();
        Ok(ProposedChange::Slice(ChangedSlice { name, patch: None }))
    }

    /// Replaces a slice in the snapshot by the same slice with all patches applied, and creates the change, which
    /// consists of the taints of the patch `name`. `None` if that patch selects no device of the slice.
    pub fn from_patched_slice(
        slice: Value<'_>,
        patched: &[other_apis::patches::PatchedDevice<'_>],
        name: &str,
        state: &mut Snapshot,
        now: Timestamp,
    ) -> Result<Option<ProposedChange>, UnreadableObject> {
        let version = resource_group_version(slice.get("apiVersion").str()).unwrap_or(Version::V1);
        state.apply_slice(slice, version, Some(Timestamp { nanos: 0, ..now }), patched)?;
        let own = || patched.iter().filter(|device| device.is_patched_by(name));
        let patch = PatchEffectOnSlice {
            name: name.into(),
            devices: own().map(|device| device.device.into()).collect(),
            is_conditional: own().any(other_apis::patches::PatchedDevice::has_uncertain_taints),
        };
        let slice = read::name_or_generate_name(view::Slice::of(slice).metadata()).into();
        let is_selected = !patch.devices.is_empty();
        Ok(is_selected.then_some(ProposedChange::Slice(ChangedSlice { name: slice, patch: Some(patch) })))
    }

    /// Returns the name of the rule or slice.
    pub fn name(&self) -> &str {
        match self {
            ProposedChange::Rule(rule) => &rule.name,
            ProposedChange::Slice(slice) => &slice.name,
        }
    }
}

/// The state of the cluster, with its age and the number of objects that could not be read.
#[derive(Clone, Debug)]
pub struct ClusterState {
    /// The objects of the cluster.
    pub snapshot: Arc<Snapshot>,
    /// Age of the state in seconds if a watch is lost; `None` if it is current.
    pub age_seconds_if_stale: Option<u64>,
    /// Number of objects that could not be read, so that all numbers may be too low.
    pub unreadable_objects: usize,
}

impl ClusterState {
    /// Returns why the state is not fully reliable, such as ` (as of 70 s ago)` or ` (1 object unreadable)`; empty if
    /// it is. Short, because `kubectl` shows 120 characters of a warning well.
    pub fn caveat(&self) -> String {
        let age = self.age_seconds_if_stale.map(|seconds| format!("as of {seconds} s ago"));
        let objects = count_with_noun(self.unreadable_objects, "object");
        let unreadable = (self.unreadable_objects > 0).then(|| format!("{objects} unreadable"));
        let both: Vec<String> = age.into_iter().chain(unreadable).collect();
        if both.is_empty() { String::new() } else { format!(" ({})", both.join(", ")) }
    }
}

/// The input of [`assess`] and [`impact_counts`]: the cluster state, the proposed change, the release and the time.
#[derive(Clone, Copy, Debug)]
pub struct ImpactQuery<'s> {
    /// The state of the cluster.
    pub snapshot: &'s Snapshot,
    /// The change whose impact is computed.
    pub change: &'s ProposedChange,
    /// The release whose eviction controller is simulated.
    pub profile: &'s Profile,
    /// The time at which the change takes effect.
    pub at: Timestamp,
}

impl ImpactQuery<'_> {
    /// True if all numbers of the impact are upper bounds: the change also selects devices by class or expression, and
    /// the snapshot does not store what their evaluation needs.
    pub fn is_upper_bound(&self) -> bool {
        match self.change {
            ProposedChange::Rule(rule) => {
                let criteria = rule.class_criteria();
                criteria.is_some_and(|criteria| !selection::can_evaluate(criteria, self.snapshot))
            }
            ProposedChange::Slice(slice) => slice.has_unevaluated_criteria(),
        }
    }

    /// Returns the number of devices that the scheduler treats as tainted: all listed devices if the rule has no
    /// selector.
    pub fn device_count_tainted_for_scheduler(&self, counts: ImpactCounts) -> usize {
        match self.change {
            ProposedChange::Rule(Rule { selector: None, .. }) => self.snapshot.device_count(),
            ProposedChange::Rule(_) | ProposedChange::Slice(_) => counts.published,
        }
    }

    /// Returns the counts as a phrase: `selects 3 devices and evicts 2 pods in 1 namespace`.
    pub fn summary(&self, counts: ImpactCounts) -> String {
        let effect = match self.change {
            ProposedChange::Rule(rule) => &*rule.taint.effect,
            ProposedChange::Slice(_) => "NoExecute",
        };
        let most = if self.is_upper_bound() { "at most " } else { "" };
        let devices = count_with_noun(self.device_count_tainted_for_scheduler(counts), "device");
        let pods = count_with_noun(counts.pods, "pod");
        let namespaces = count_with_noun(counts.namespaces, "namespace");
        match effect {
            "NoExecute" => format!("selects {most}{devices} and evicts {most}{pods} in {most}{namespaces}"),
            "None" => {
                format!(
                    "selects {most}{devices} and would evict {most}{pods} in {most}{namespaces} with effect NoExecute"
                )
            }
            _ => format!("selects {most}{devices} and evicts no pods"),
        }
    }
}

/// The effects of a change: numbers, and the affected pods with reasons.
#[derive(Debug)]
pub struct Impact<'s> {
    /// The numbers that the eviction controller would report if the effect were NoExecute.
    pub counts: ImpactCounts,
    /// Number of claims that hold a selected device.
    pub claims: usize,
    /// Every pod that uses a selected device, in order of eviction.
    pub pods: Vec<PodImpact<'s>>,
    /// Namespaces in which a pod is evicted, sorted.
    pub namespaces: Vec<&'s str>,
    /// The first condition that the controller writes; `None` if the release writes none.
    pub condition: Option<RuleCondition>,
    /// Number of allocated devices that no slice lists.
    pub unlisted: usize,
    /// True if all numbers are upper bounds, because classes or expressions select devices and cannot be
    /// evaluated.
    pub is_upper_bound: bool,
    /// Partitions of selected devices that the scheduler can still allocate, sorted by driver, pool and name.
    /// Empty if the snapshot does not store counters.
    pub partitions: Vec<Partition<'s>>,
    /// The devices that each rule in force selects by class and expression.
    selections: selection::DevicesByRule<'s>,
}

impl Impact<'_> {
    /// Returns `at most ` if the numbers are upper bounds; otherwise an empty string.
    pub fn at_most_prefix(&self) -> &'static str {
        if self.is_upper_bound { "at most " } else { "" }
    }

    /// Returns the number of pods that are evicted, now or later.
    pub fn evicted_pod_count(&self) -> usize {
        self.pods.iter().filter(|pod| pod.outcome.is_evicted()).count()
    }

    /// Returns the evicted pods whose replacements can be evicted again. The scheduler ignores tolerationSeconds, so the
    /// replacement of a pod that tolerates the taint for a limited time may get the same device.
    pub fn pods_with_evictable_replacement(&self) -> impl Iterator<Item = &PodImpact<'_>> {
        let has_replacement = |pod: &&PodImpact<'_>| pod.outcome.is_evicted() && pod.owner.is_some();
        self.pods.iter().filter(|pod| pod.is_time_limited).filter(has_replacement)
    }
}

/// The effect of a change on a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PodOutcome {
    /// The pod is evicted immediately.
    EvictedNow,
    /// The pod is evicted at this time.
    EvictedAt(Timestamp),
    /// The pod tolerates the taint without a time limit.
    Tolerated,
    /// The pod is not affected.
    Unaffected,
}

impl PodOutcome {
    /// Returns the outcome as a word, such as `evicted-now`, without the time.
    pub fn name(self) -> &'static str {
        match self {
            PodOutcome::EvictedNow => "evicted-now",
            PodOutcome::EvictedAt(_) => "evicted-at",
            PodOutcome::Tolerated => "tolerated",
            PodOutcome::Unaffected => "unaffected",
        }
    }

    /// True if the pod is evicted, now or later.
    pub fn is_evicted(self) -> bool {
        matches!(self, PodOutcome::EvictedNow | PodOutcome::EvictedAt(_))
    }
}

/// What happens to a pod that uses a selected device, and why.
#[derive(Debug)]
pub struct PodImpact<'s> {
    /// Namespace of the pod.
    pub namespace: &'s str,
    /// Name of the pod.
    pub name: &'s str,
    /// `Kind/name` of the controlling owner.
    pub owner: Option<&'s str>,
    /// The effect on the pod.
    pub outcome: PodOutcome,
    /// The reasons for the outcome, one for each device.
    pub reasons: Vec<OutcomeReason<'s>>,
    /// True if the eviction controller counts the pod as pending eviction because of the change, or would do so if the
    /// effect were NoExecute.
    // Kept beside the reasons, because a report asks every pod: reasons are elsewhere in memory.
    is_pending: bool,
    /// True if the pod tolerates the change for a limited time.
    is_time_limited: bool,
    record: &'s record::Pod,
}

impl PodImpact<'_> {
    /// True if the change evicts the pod; false if only taints that exist already do.
    pub fn is_evicted_by_change(&self) -> bool {
        self.outcome.is_evicted() && self.is_pending
    }

    /// Returns the number of claims that the pod uses.
    pub fn claim_count(&self) -> usize {
        self.record.claims.len()
    }
}
