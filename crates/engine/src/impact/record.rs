//! The records of a snapshot: owned and small, with only the fields that impact reads.
//!
//! Records are created once (`read`) and never changed. Snapshots share them, so copying a snapshot is cheap.

use std::sync::Arc;

use super::interner::InternedStr;
use super::placement::SlicePlacement;
use super::slots::Slot;
use super::uid::Uid;
use crate::tolerance::{TaintFields, TolerationFields, matches};
use tollgate_api::labels::LabelRequirement;
use tollgate_api::profile::Profile;
use tollgate_formats::gotime::Timestamp;

/// A taint of a device or of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taint {
    pub key: Arc<str>,
    pub value: Arc<str>,
    pub effect: Arc<str>,
    /// `timeAdded`; the server fills it in, so a stored taint has one.
    pub added: Option<Timestamp>,
    /// `evictionsPerSecond` (draft r2)
    pub rate: Option<i64>,
    /// The ResourceSlicePatch that adds the taint (draft r1).
    pub patch: Option<Arc<TaintingPatch>>,
}

/// A ResourceSlicePatch, as the source of a taint.
#[derive(PartialEq, Eq, Debug)]
pub struct TaintingPatch {
    pub name: Box<str>,
    /// True if it selects by class, and the state has no classes.
    pub is_conditional: bool,
}

impl Taint {
    /// True if the effect of the taint is NoExecute.
    pub fn is_no_execute(&self) -> bool {
        &*self.effect == "NoExecute"
    }

    /// Returns the fields that tolerations are compared with.
    pub(super) fn fields(&self) -> TaintFields<'_> {
        TaintFields { key: &self.key, value: &self.value, effect: &self.effect }
    }
}

/// `key=value:effect`, as people write a taint.
impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

/// A toleration in the allocation result of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toleration {
    pub key: Arc<str>,
    pub operator: Arc<str>,
    pub value: Arc<str>,
    pub effect: Arc<str>,
    /// `tolerationSeconds` of the toleration.
    pub seconds: Option<i64>,
}

impl Toleration {
    /// True if the toleration lets the scheduler use a device with this taint but does not stop the eviction
    /// controller, because it has no effect.
    pub(super) fn tolerates_scheduling_only(&self, taint: &Taint) -> bool {
        let taint_fields = TaintFields { effect: "NoExecute", ..taint.fields() };
        self.effect.is_empty() && matches(self.fields(), taint_fields)
    }

    /// Returns the fields that taints are compared with.
    pub(super) fn fields(&self) -> TolerationFields<'_> {
        TolerationFields {
            key: &self.key,
            operator: &self.operator,
            value: &self.value,
            effect: &self.effect,
        }
    }
}

/// Writes `key=value:effect` or `key exists:effect`, with `*` for an empty key.
impl std::fmt::Display for Toleration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = if self.key.is_empty() { "*" } else { &*self.key };
        match &*self.operator {
            "" | "Equal" => write!(f, "{key}={}", self.value)?,
            "Exists" => write!(f, "{key} exists")?,
            other => write!(f, "{key} {other} {}", self.value)?,
        }
        if !self.effect.is_empty() {
            write!(f, ":{}", self.effect)?;
        }
        match self.seconds {
            Some(seconds) => write!(f, " for {seconds} s"),
            None => write!(f, " forever"),
        }
    }
}

/// The device selector of a DeviceTaintRule.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RuleSelector {
    pub driver: Option<Arc<str>>,
    pub pool: Option<Arc<str>>,
    pub device: Option<Arc<str>>,
    /// `deviceClassName` and `selectors`
    pub by_class: ClassSelection,
}

/// Whether a DeviceTaintRule also selects devices by class or CEL expression, which 1.33, 1.34 and drafts support.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum ClassSelection {
    /// The rule has no such criteria.
    #[default]
    No,
    /// The rule has these criteria. They are evaluated if the snapshot stores classes and attributes.
    Yes(Arc<ClassCriteria>),
    /// The rule has such criteria, but the release does not support these fields and drops them.
    Dropped,
}

/// A device class and CEL expressions, all of which a device must match.
#[derive(PartialEq, Eq, Debug)]
pub struct ClassCriteria {
    /// `deviceClassName` of the selector.
    pub class: Option<Arc<str>>,
    /// The CEL expressions of `selectors`, in order.
    pub expressions: Box<[Box<str>]>,
}

impl RuleSelector {
    /// True if the selector matches this driver, pool and device. Absent fields match any name. Classes and
    /// expressions are ignored.
    pub(super) fn matches_driver_pool_device(&self, driver: &str, pool: &str, device: &str) -> bool {
        let fits = |wanted: &Option<InternedStr>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| &**wanted == found)
        };
        fits(&self.driver, driver) && fits(&self.pool, pool) && fits(&self.device, device)
    }
}

/// The fields of a DeviceTaintRule that evictions depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// `metadata.name`, or `metadata.generateName`
    pub name: Arc<str>,
    /// `spec.deviceSelector` of the rule.
    pub selector: Option<RuleSelector>,
    /// `spec.taint` of the rule.
    pub taint: Taint,
    /// The annotation `tollgate.dev/expires`, if it is a time.
    pub expires: Option<Timestamp>,
    /// True if it has the annotation `tollgate.dev/owner`.
    pub has_owner: bool,
}

impl Rule {
    /// Returns the device class and CEL expressions of the rule, if it has any and the release has these fields.
    pub(super) fn class_criteria(&self) -> Option<&ClassCriteria> {
        match &self.selector.as_ref()?.by_class {
            ClassSelection::Yes(criteria) => Some(criteria),
            ClassSelection::No | ClassSelection::Dropped => None,
        }
    }
}

/// The fields of a ResourceSlice that evictions depend on.
#[derive(Debug)]
pub(super) struct Slice {
    /// Bytes of memory that it counts for (`cost`).
    pub(super) bytes: usize,
    pub(super) name: InternedStr,
    pub(super) driver: InternedStr,
    pub(super) pool: InternedStr,
    pub(super) generation: i64,
    /// The devices, sorted by name.
    pub(super) devices: Box<[Device]>,
    /// The nodes that can use the devices.
    pub(super) placement: SlicePlacement,
    /// True if one of `devices` has a taint with effect NoExecute, or if `taints` is not empty.
    pub(super) tainted: bool,
    /// Taints with effect NoExecute that this slice adds to devices of other slices of its pool (draft r2).
    pub(super) taints: Box<[(InternedStr, Taint)]>,
    /// Attributes and capacities in the order of `devices`, as a JSON list, because they are read only for rules that
    /// select by class or expression. `None` if the snapshot does not store them.
    pub(super) bodies: Option<Box<str>>,
    /// The shared counters that devices consume; empty if the snapshot does not store them.
    pub(super) consumption: Box<[CounterConsumption]>,
    /// The counter sets that devices of the pool consume from, by name; empty if the snapshot does not store them.
    pub(super) counter_sets: Box<[(InternedStr, Counters)]>,
}

/// Counters with amounts in billionths, none of them zero; shared by slices and devices.
pub(super) type Counters = Arc<[(InternedStr, i128)]>;

impl Slice {
    /// Returns the device of that name, if the slice lists it.
    pub(super) fn device(&self, name: &str) -> Option<&Device> {
        let found = self.devices.binary_search_by(|device| (*device.name).cmp(name)).ok()?;
        self.devices.get(found)
    }
}

/// A device of a ResourceSlice, with its taints.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: InternedStr,
    /// The taints with the effect NoExecute.
    pub(super) taints: Box<[Taint]>,
}

/// The counters that a device consumes from one counter set.
#[derive(Debug)]
pub(super) struct CounterConsumption {
    /// The index of the device in its slice.
    pub(super) device: usize,
    /// True if the slice taints the device with NoSchedule or NoExecute.
    pub(super) is_tainted: bool,
    pub(super) counter_set: InternedStr,
    pub(super) counters: Counters,
}

/// The selectors of a DeviceClass.
#[derive(Debug)]
pub(super) struct DeviceClass {
    /// Bytes of memory that it counts for (`cost`).
    pub(super) bytes: usize,
    /// The CEL expressions of its selectors, in order.
    pub(super) expressions: Box<[Box<str>]>,
}

/// A list of tolerations, which allocation results with equal tolerations share.
pub(super) type Tolerations = Arc<[Toleration]>;

/// The fields of a ResourceClaim that evictions depend on.
#[derive(Debug)]
pub(super) struct Claim {
    /// Bytes of memory that it counts for (`cost`).
    pub(super) bytes: usize,
    /// The object that controls the claim: its `uid`, and its name if it is a PodGroup. The controller evicts a pod for
    /// a claim from a template only if the pod, or its PodGroup, controls the claim.
    pub(super) owner: Option<ClaimUser>,
    /// The only node on which its pods can run; `None` if there may be several.
    pub(super) node: Option<InternedStr>,
    /// The allocated devices; `None` if the claim is not allocated.
    pub(super) results: Option<Box<[AllocatedDevice]>>,
    pub(super) reserved: Box<[ClaimUser]>,
}

impl Claim {
    /// True if all allocated devices are of the same pool.
    pub(super) fn uses_one_pool(&self) -> bool {
        let mut pools = self.results.iter().flatten().map(|result| (&result.driver, &result.pool));
        let first = pools.next();
        first.is_some() && pools.all(|pool| Some(pool) == first)
    }
}

/// A pod or PodGroup that controls a claim or may use it.
#[derive(Debug)]
pub(super) struct ClaimUser {
    pub(super) uid: Uid,
    /// The name, if it is a PodGroup.
    pub(super) pod_group: Option<InternedStr>,
}

/// A device in the allocation result of a claim, with the tolerations that apply to it.
#[derive(Debug)]
pub(super) struct AllocatedDevice {
    pub(super) driver: InternedStr,
    pub(super) pool: InternedStr,
    pub(super) device: InternedStr,
    /// The slot of the pool; set when the claim is stored and valid as long as the claim is.
    pub(super) pool_slot: Slot,
    /// The tolerations that the scheduler copied from the request to the allocation.
    pub(super) copied: Tolerations,
    /// The request's tolerations where they differ from the copy.
    pub(super) requested: Option<Tolerations>,
}

impl AllocatedDevice {
    /// Returns the tolerations that are effective for evictions: those copied to the allocation and, in
    /// releases that read them, those of the request.
    pub(super) fn tolerations_for_eviction(&self, profile: &Profile) -> impl Iterator<Item = &Toleration> {
        let requested = self.requested.as_ref().filter(|_| profile.requests_stop_eviction);
        self.copied.iter().chain(requested.into_iter().flat_map(|list| list.iter()))
    }
}

/// The fields of a pod with claims that evictions depend on.
#[derive(Debug)]
pub(super) struct Pod {
    /// Bytes of memory that it counts for (`cost`).
    pub(super) bytes: usize,
    pub(super) namespace: InternedStr,
    pub(super) name: InternedStr,
    pub(super) uid: Uid,
    /// `Kind/name` of the owner that controls it.
    pub(super) owner: Option<InternedStr>,
    /// True if it is assigned to a node.
    pub(super) scheduled: bool,
    /// True if it is being deleted.
    pub(super) deleting: bool,
    /// Whether its PodDisruptionBudgets protect it.
    pub(super) protection: BudgetProtection,
    /// The PodGroup it is part of.
    pub(super) group: Option<InternedStr>,
    /// Sorted by key; shared with other pods.
    pub(super) labels: Arc<[(InternedStr, InternedStr)]>,
    pub(super) claims: Box<[ClaimReference]>,
}

impl Budget {
    /// True if the budget selects pods with these labels.
    pub(super) fn selects(&self, labels: &[(InternedStr, InternedStr)]) -> bool {
        let label = |key: &str| labels.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value);
        let all = |selector: &Vec<LabelRequirement<InternedStr>>| {
            selector.iter().all(|wanted| wanted.holds(label(&wanted.key)))
        };
        self.selector.as_ref().is_some_and(all)
    }
}

/// Whether PodDisruptionBudgets keep the Eviction API from evicting a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BudgetProtection {
    /// All of them do.
    Full,
    /// The pod is not Ready. If only one selects it, that one may let it go.
    NotReady,
    /// None of them does: the pod runs no containers yet or any more.
    None,
}

impl BudgetProtection {
    /// True if the budget, one of `selecting` budgets that select the pod, protects it.
    pub(super) fn is_protected_by(self, budget: &Budget, selecting: usize) -> bool {
        match self {
            BudgetProtection::Full => true,
            BudgetProtection::NotReady => selecting > 1 || !budget.lets_unready_pods_go,
            BudgetProtection::None => false,
        }
    }
}

/// A claim that a pod uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ClaimReference {
    /// The slot of the claim, valid as long as the pod is stored.
    pub(super) slot: Slot,
    pub(super) source: ClaimSource,
}

/// How a pod references a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClaimSource {
    /// By name.
    Name,
    /// The claim was generated for the pod, which must own it.
    Template,
    /// Through an extended resource, which the eviction controller ignores.
    ExtendedResource,
}

/// The fields of a PodDisruptionBudget that decide which evictions it allows.
#[derive(Debug)]
pub(super) struct Budget {
    /// Bytes of memory that it counts for (`cost`).
    pub(super) bytes: usize,
    pub(super) name: InternedStr,
    /// The pod selector; `None` selects nothing.
    pub(super) selector: Option<Vec<LabelRequirement<InternedStr>>>,
    /// `status.disruptionsAllowed` of the PodDisruptionBudget.
    pub(super) allowed: i64,
    /// True if the Eviction API lets pods go that are not Ready.
    pub(super) lets_unready_pods_go: bool,
}
