//! What the snapshot keeps of each object: owned, small, and nothing that impact does not read.
//!
//! Records are made once (`read`) and never changed; a snapshot shares them, so copying one is cheap.

use std::sync::Arc;

use super::names::Name;
use super::slots::Slot;
use crate::gotime::Timestamp;
use crate::tolerance::{Mark, Terms, matches};

/// A taint of a device or of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taint {
    /// `key`
    pub key: Arc<str>,
    /// `value`
    pub value: Arc<str>,
    /// `effect`
    pub effect: Arc<str>,
    /// `timeAdded`; the server fills it in, so a stored taint has one.
    pub added: Option<Timestamp>,
    /// `evictionsPerSecond` (draft r2)
    pub rate: Option<i64>,
}

impl Taint {
    /// True if it evicts.
    pub fn evicts(&self) -> bool {
        &*self.effect == "NoExecute"
    }

    pub(super) fn mark(&self) -> Mark<'_> {
        Mark { key: &self.key, value: &self.value, effect: &self.effect }
    }
}

/// `key=value:effect`, as people write a taint.
impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

/// A toleration of an allocation result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toleration {
    /// `key`
    pub key: Arc<str>,
    /// `operator`
    pub operator: Arc<str>,
    /// `value`
    pub value: Arc<str>,
    /// `effect`
    pub effect: Arc<str>,
    /// `tolerationSeconds`
    pub seconds: Option<i64>,
}

impl Toleration {
    /// True if it tolerates the taint for the scheduler and, having no effect, not for the eviction controller.
    pub(super) fn schedules_only(&self, taint: &Taint) -> bool {
        let mark = Mark { effect: "NoExecute", ..taint.mark() };
        self.effect.is_empty() && matches(self.terms(), mark)
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        Terms { key: &self.key, operator: &self.operator, value: &self.value, effect: &self.effect }
    }
}

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

/// Which devices a rule selects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selector {
    /// `driver`
    pub driver: Option<Arc<str>>,
    /// `pool`
    pub pool: Option<Arc<str>>,
    /// `device`
    pub device: Option<Arc<str>>,
    /// `deviceClassName` or `selectors`
    pub by_class: ByClass,
}

/// Whether a rule also selects by class or expression, which need attributes that a snapshot does not keep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ByClass {
    /// It does not.
    #[default]
    No,
    /// It does: what is counted is the most it can be.
    Yes,
    /// It says so, and the release does not know such fields: it is stored without them.
    Dropped,
}

impl Selector {
    pub(super) fn selects(&self, driver: &str, pool: &str, device: &str) -> bool {
        let fits =
            |wanted: &Option<Name>, found: &str| wanted.as_ref().is_none_or(|wanted| &**wanted == found);
        fits(&self.driver, driver) && fits(&self.pool, pool) && fits(&self.device, device)
    }
}

/// A DeviceTaintRule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// `metadata.name`, or `metadata.generateName`
    pub name: Arc<str>,
    /// `spec.deviceSelector`
    pub selector: Option<Selector>,
    /// `spec.taint`
    pub taint: Taint,
}

/// A ResourceSlice.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) name: Name,
    pub(super) driver: Name,
    pub(super) pool: Name,
    pub(super) generation: i64,
    /// Sorted by name.
    pub(super) devices: Box<[Device]>,
    /// Some device has a taint that evicts, or the slice taints devices of its pool.
    pub(super) tainted: bool,
    /// Taints of devices that other slices of the pool list (draft r2).
    pub(super) taints: Box<[(Name, Taint)]>,
}

impl Slice {
    pub(super) fn device(&self, name: &str) -> Option<&Device> {
        let found = self.devices.binary_search_by(|device| (*device.name).cmp(name)).ok()?;
        self.devices.get(found)
    }
}

/// A device of a slice.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: Name,
    /// Only those that evict.
    pub(super) taints: Box<[Taint]>,
}

/// Tolerations that many results share.
pub(super) type Tolerations = Arc<[Toleration]>;

/// A ResourceClaim.
#[derive(Debug)]
pub(super) struct Claim {
    /// The owner that controls it: `uid`, and its name if it is a PodGroup.
    pub(super) owner: Option<Owner>,
    /// `None`: not allocated.
    pub(super) results: Option<Box<[Allocated]>>,
    pub(super) reserved: Box<[Reservation]>,
}

#[derive(Debug)]
pub(super) struct Owner {
    pub(super) uid: Box<str>,
    pub(super) pod_group: Option<Name>,
}

/// One allocated device.
#[derive(Debug)]
pub(super) struct Allocated {
    pub(super) driver: Name,
    pub(super) pool: Name,
    pub(super) device: Name,
    /// The number of the pool; set when the claim is kept, and its own for as long as the claim is.
    pub(super) place: Slot,
    /// What counts: copied by the scheduler.
    pub(super) tolerations: Tolerations,
    /// What the request says, where the copy says something else.
    pub(super) requested: Option<Tolerations>,
}

/// Who may use a claim.
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) uid: Box<str>,
    /// The name, if it is a PodGroup.
    pub(super) pod_group: Option<Name>,
}

/// A Pod that uses claims.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) namespace: Name,
    pub(super) name: Name,
    pub(super) uid: Box<str>,
    /// `Kind/name` of the owner that controls it.
    pub(super) owner: Option<Name>,
    /// It runs on a node.
    pub(super) scheduled: bool,
    /// It is being deleted.
    pub(super) deleting: bool,
    /// The PodGroup it is part of.
    pub(super) group: Option<Name>,
    /// Sorted by key; shared with other pods.
    pub(super) labels: Arc<[(Name, Name)]>,
    pub(super) claims: Box<[Reference]>,
}

/// A claim that a pod uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reference {
    /// The number of the claim, its own for as long as the pod is kept.
    pub(super) slot: Slot,
    pub(super) by: By,
}

/// How a pod came to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// It names the claim.
    Name,
    /// The claim was made for the pod, and must belong to it.
    Template,
    /// Through an extended resource: the eviction controller does not look there.
    ExtendedResource,
}

/// A PodDisruptionBudget.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) name: Name,
    /// `None` selects nothing.
    pub(super) selector: Option<Labels>,
    /// `status.disruptionsAllowed`
    pub(super) allowed: i64,
}

/// A label selector.
#[derive(Debug)]
pub(super) struct Labels {
    pub(super) equal: Box<[(Name, Name)]>,
    pub(super) expressions: Box<[Expression]>,
}

#[derive(Debug)]
pub(super) struct Expression {
    pub(super) key: Name,
    pub(super) operator: Name,
    pub(super) values: Box<[Name]>,
}

impl Labels {
    /// True if a pod with those labels is selected. An unknown operator selects nothing.
    pub(super) fn select(&self, labels: &[(Name, Name)]) -> bool {
        let value = |key: &Name| labels.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        self.equal.iter().all(|(key, wanted)| value(key) == Some(wanted))
            && self.expressions.iter().all(|expression| {
                let found = value(&expression.key);
                let listed = found.is_some_and(|found| expression.values.contains(found));
                match &*expression.operator {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => found.is_some(),
                    "DoesNotExist" => found.is_none(),
                    _ => false,
                }
            })
    }
}
