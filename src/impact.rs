//! What a DeviceTaintRule, or a changed ResourceSlice, will do: devices → claims → pods → when and why. Pure.
//!
//! A [`Snapshot`] is the state of the cluster, filled from a dump or by a watcher; [`assess`] holds a [`Subject`]
//! against it and follows the eviction controller of the profile's release step by step, so that the numbers are its
//! own. Nothing here reads a clock: the moment is given. It judges nothing; limits are policy's business.
//!
//! Invariant: for the same snapshot, subject, profile and moment the answer is the same, in the same order.

mod assess;
mod because;
mod budgets;
mod condition;
mod differences;
mod eviction;
mod names;
pub mod patches;
mod read;
mod record;
pub mod replacement;
mod shape;
mod slots;
mod snapshot;
mod timeline;

use std::sync::Arc;

pub use assess::{assess, count};
pub use because::{Because, Brief};
pub use budgets::{BudgetImpact, budgets};
pub use condition::{Condition, Counts, EVICTION_IN_PROGRESS, condition};
pub use differences::differences;
pub use eviction::{Source, Spared, Tolerance};
pub use read::Unreadable;
pub use record::{ByClass, Rule, Selector, Taint, Toleration};
use snapshot::version_of;
pub use snapshot::{Kind, Snapshot};

use crate::api::view::{self, View as _};
use crate::doc::Value;
use crate::gotime::Timestamp;
use crate::profile::{ApiKind, Profile, Version};

/// What is asked about.
#[derive(Debug)]
pub enum Subject {
    /// A rule, instead of the stored one of the same name.
    Rule(Rule),
    /// A slice that the snapshot already holds in its new form, by name.
    Slice(Arc<str>),
}

impl Subject {
    /// A rule as it will be stored: decoded, with its defaults filled in.
    pub fn rule(rule: view::TaintRule<'_>) -> Subject {
        Subject::Rule(read::rule(rule, &mut names::Names::default()))
    }

    /// A rule as somebody wrote it, or with another effect, and as `kubectl apply` would have it stored over what is
    /// there: a time that was not given is kept or made, and made anew where the release does so.
    // upstream v1.36 devicetaintrule strategy PrepareForUpdate
    pub fn applied(
        object: Value<'_>,
        effect: Option<&str>,
        stored: &Snapshot,
        profile: &Profile,
        now: Timestamp,
    ) -> Result<Subject, Unreadable> {
        let version = version_of(object.get("apiVersion").str()).unwrap_or(Version::V1);
        read::check(ApiKind::DeviceTaintRule, version, object)?;
        let mut rule = read::rule(view::TaintRule::of(object), &mut names::Names::default());
        if let Some(selector) = rule.selector.as_mut().filter(|selector| selector.by_class == ByClass::Yes)
            && !profile.rule_class_selectors
        {
            selector.by_class = ByClass::Dropped;
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
        Ok(Subject::Rule(rule))
    }

    /// A slice as its driver wrote it: the snapshot takes it in, and the question is what its taints do.
    pub fn published(object: Value<'_>, state: &mut Snapshot, now: Timestamp) -> Result<Subject, Unreadable> {
        let version = version_of(object.get("apiVersion").str()).unwrap_or(Version::V1);
        state.apply_slice(object, version, Some(Timestamp { nanos: 0, ..now }))?;
        Ok(Subject::Slice(read::name_of(view::Slice::of(object).metadata()).into()))
    }

    /// It also selects by class or expression, which is not looked at here: numbers are the most it can be.
    pub fn is_at_most(&self) -> bool {
        self.by_class() == ByClass::Yes
    }

    fn by_class(&self) -> ByClass {
        match self {
            Subject::Rule(Rule { selector: Some(selector), .. }) => selector.by_class,
            Subject::Rule(_) | Subject::Slice(_) => ByClass::No,
        }
    }

    /// The name of the rule or slice.
    pub fn name(&self) -> &str {
        match self {
            Subject::Rule(rule) => &rule.name,
            Subject::Slice(name) => name,
        }
    }
}

/// A state of the cluster, and whether it can be relied on.
#[derive(Clone, Debug)]
pub struct Known {
    /// The state.
    pub snapshot: Arc<Snapshot>,
    /// Seconds since it was true, if it may not be true any more: a watch is lost. `None`: it is current.
    pub stale: Option<u64>,
    /// Objects of the cluster that cannot be read: every number may be too small.
    pub holes: usize,
}

impl Known {
    /// ` (as of 70 s ago)`, ` (1 object unreadable)`, or nothing if it can be relied on.
    /// Short: a warning has 120 characters.
    pub fn caveat(&self) -> String {
        let age = self.stale.map(|seconds| format!("as of {seconds} s ago"));
        let holes = match self.holes {
            0 => None,
            1 => Some("1 object unreadable".to_owned()),
            holes => Some(format!("{holes} objects unreadable")),
        };
        let both: Vec<String> = age.into_iter().chain(holes).collect();
        if both.is_empty() { String::new() } else { format!(" ({})", both.join(", ")) }
    }
}

/// One question.
#[derive(Clone, Copy, Debug)]
pub struct Question<'s> {
    /// The state of the cluster.
    pub snapshot: &'s Snapshot,
    /// What is asked about.
    pub subject: &'s Subject,
    /// Whose eviction controller.
    pub profile: &'s Profile,
    /// The moment at which the change takes effect.
    pub at: Timestamp,
}

impl Question<'_> {
    /// Devices that the scheduler keeps pods from: all that slices list if the selector is missing.
    pub fn tainted(&self, counts: Counts) -> usize {
        match self.subject {
            Subject::Rule(Rule { selector: None, .. }) => self.snapshot.devices(),
            Subject::Rule(_) | Subject::Slice(_) => counts.published,
        }
    }

    /// Numbers counted for this question, in words: `selects 3 devices, evicts 2 pods in 1 namespace`.
    pub fn told(&self, counts: Counts) -> String {
        let effect = match self.subject {
            Subject::Rule(rule) => &*rule.taint.effect,
            Subject::Slice(_) => "NoExecute",
        };
        let most = if self.subject.is_at_most() { "at most " } else { "" };
        let devices = counted(self.tainted(counts), "device");
        let pods = counted(counts.pods, "pod");
        let namespaces = counted(counts.namespaces, "namespace");
        match effect {
            "NoExecute" => format!("selects {most}{devices}, evicts {most}{pods} in {namespaces}"),
            "None" => {
                format!("selects {most}{devices}, would evict {most}{pods} in {namespaces} as NoExecute")
            }
            _ => format!("selects {most}{devices}, evicts nothing"),
        }
    }
}

/// `1 pod`, `2 pods`
fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The answer.
#[derive(Debug)]
pub struct Impact<'s> {
    /// What the controller counts, for the subject as if it were NoExecute.
    pub counts: Counts,
    /// Claims that hold a matched device.
    pub claims: usize,
    /// Every pod that uses a matched device, in order of eviction.
    pub pods: Vec<PodImpact<'s>>,
    /// Namespaces in which a pod is evicted, in order.
    pub namespaces: Vec<&'s str>,
    /// The first condition the controller writes; `None` if the release writes none.
    pub condition: Option<Condition>,
    /// Allocated devices that no slice lists.
    pub unlisted: usize,
}

impl Impact<'_> {
    /// Pods that are evicted, now or later.
    pub fn evicted(&self) -> usize {
        self.pods.iter().filter(|pod| pod.outcome.is_evicted()).count()
    }
}

/// What becomes of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Evicted at once.
    EvictedNow,
    /// Evicted later.
    EvictedAt(Timestamp),
    /// It tolerates the taint for good.
    Tolerated,
    /// Nothing happens to it.
    Unaffected,
}

impl Outcome {
    /// `evicted-now`
    pub fn name(self) -> &'static str {
        match self {
            Outcome::EvictedNow => "evicted-now",
            Outcome::EvictedAt(_) => "evicted-at",
            Outcome::Tolerated => "tolerated",
            Outcome::Unaffected => "unaffected",
        }
    }

    /// True if it is evicted, now or later.
    pub fn is_evicted(self) -> bool {
        matches!(self, Outcome::EvictedNow | Outcome::EvictedAt(_))
    }
}

/// A pod that uses a matched device.
#[derive(Debug)]
pub struct PodImpact<'s> {
    /// Its namespace.
    pub namespace: &'s str,
    /// Its name.
    pub name: &'s str,
    /// `Kind/name` of the owner that controls it.
    pub owner: Option<&'s str>,
    /// What becomes of it.
    pub outcome: Outcome,
    /// Why, device by device.
    pub because: Vec<Because<'s>>,
    record: &'s record::Pod,
}
