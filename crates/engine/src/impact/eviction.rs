//! When a pod is evicted: the arithmetic of the eviction controller.
//!
//! A toleration counts only if its own effect is NoExecute; by the words of the drafts also if it has none, and then
//! its seconds are ignored. Of those that match, one without seconds means forever, otherwise the smallest wins;
//! seconds are multiplied in 64 bits, so a large number wraps around into the past. The earliest taint of any device
//! decides for a claim, the earliest claim for a pod.

use super::kinds::SnapshotKind;
use super::record::{
    AllocatedDevice, Claim, ClaimSource, Pod, Rule, Slice, Taint, TaintingPatch, Toleration,
};
use super::selection::DevicesByRule;
use super::slots::Slot;
use super::snapshot::{Pool, Snapshot};
use super::{ProposedChange, cost};
use crate::tolerance::{TaintFields, matches};
use tollgate_api::profile::Profile;
use tollgate_formats::gotime::Timestamp;

/// Nanoseconds since 1970: wide enough for every time and every delay.
pub(super) type UnixNanos = i128;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Converts a time to nanoseconds since 1970.
pub(super) fn unix_nanos(time: Timestamp) -> UnixNanos {
    UnixNanos::from(time.seconds) * UnixNanos::from(NANOS_PER_SECOND) + UnixNanos::from(time.nanos)
}

/// Converts nanoseconds since 1970 to a time.
#[expect(clippy::cast_possible_truncation, reason = "the quotient and the rest of a sum of 64-bit numbers")]
pub(super) fn from_unix_nanos(nanos: UnixNanos) -> Timestamp {
    let second = UnixNanos::from(NANOS_PER_SECOND);
    Timestamp { seconds: nanos.div_euclid(second) as i64, nanos: nanos.rem_euclid(second) as u32 }
}

/// How long an allocated device's tolerations tolerate a taint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tolerance<'s> {
    /// No effective toleration matches the taint.
    No,
    /// The toleration tolerates the taint for this number of seconds.
    For(&'s Toleration, i64),
    /// The toleration tolerates the taint without a time limit.
    Forever(&'s Toleration),
}

/// Returns for how long the tolerations tolerate a taint, as if its effect were NoExecute, and which of them decides.
// upstream v1.36 Controller.claimEvictionTime
pub(super) fn no_execute_tolerance<'s>(
    tolerations: impl Iterator<Item = &'s Toleration>,
    taint: &Taint,
    profile: &Profile,
) -> Tolerance<'s> {
    let taint_fields = TaintFields { effect: "NoExecute", ..taint.fields() };
    let mut shortest: Option<(&Toleration, i64)> = None;
    for toleration in tolerations {
        let of_every_effect = toleration.effect.is_empty() && profile.empty_effect_stops_eviction;
        let counts = of_every_effect || &*toleration.effect == "NoExecute";
        if !counts || !matches(toleration.fields(), taint_fields) {
            continue;
        }
        let Some(seconds) = toleration.seconds.filter(|_| !of_every_effect) else {
            return Tolerance::Forever(toleration);
        };
        if shortest.is_none_or(|(_, shortest)| seconds.max(0) < shortest.max(0)) {
            shortest = Some((toleration, seconds));
        }
    }
    shortest.map_or(Tolerance::No, |(toleration, seconds)| Tolerance::For(toleration, seconds))
}

/// Returns when a taint evicts pods that tolerate it that long; `None` if never, as for a taint without `timeAdded`.
pub(super) fn eviction_time(taint: &Taint, tolerance: Tolerance<'_>) -> Option<UnixNanos> {
    let added = unix_nanos(taint.added?);
    match tolerance {
        Tolerance::Forever(_) => None,
        Tolerance::No => Some(added),
        // Go multiplies in 64 bits and does not check: above 9223372036 the delay wraps around.
        Tolerance::For(_, seconds) => {
            let delay = seconds.max(0).wrapping_mul(NANOS_PER_SECOND);
            Some(added + UnixNanos::from(delay))
        }
    }
}

/// The object that contains a taint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaintSource<'s> {
    /// A DeviceTaintRule.
    Rule(&'s Rule),
    /// A ResourceSlice.
    Slice(&'s str),
    /// A ResourceSlicePatch (draft r1).
    Patch(&'s TaintingPatch),
}

impl TaintSource<'_> {
    /// True if the source of the taint also selects devices by class or expression, and these cannot be evaluated.
    pub(super) fn has_unevaluated_criteria(self, selections: &DevicesByRule<'_>) -> bool {
        match self {
            TaintSource::Rule(rule) => selections.has_unevaluated_criteria(rule),
            TaintSource::Slice(_) => false,
            TaintSource::Patch(patch) => patch.is_conditional,
        }
    }
}

/// A taint on an allocated device, and how long it is tolerated.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaintOnDevice<'s> {
    pub(super) source: TaintSource<'s>,
    pub(super) taint: &'s Taint,
    pub(super) tolerance: Tolerance<'s>,
}

impl TaintOnDevice<'_> {
    /// Returns when this taint evicts the users of the device; `None` if never.
    pub(super) fn eviction_time(&self) -> Option<UnixNanos> {
        eviction_time(self.taint, self.tolerance)
    }
}

/// Returns the slices of the newest generation of the pool that an allocated device is in.
fn current_slices<'s>(
    snapshot: &'s Snapshot,
    result: &AllocatedDevice,
) -> impl Iterator<Item = &'s Slice> + use<'s> {
    snapshot.pools.get_even_if_free(result.pool_slot).into_iter().flat_map(Pool::current_slices)
}

/// True if the eviction controller of that release applies the rule to the allocated device.
// upstream v1.36 ruleMatchesDevice
pub(super) fn rule_selects(
    rule: &Rule,
    selections: &DevicesByRule<'_>,
    result: &AllocatedDevice,
    snapshot: &Snapshot,
    profile: &Profile,
) -> bool {
    let selected = match &rule.selector {
        None => profile.missing_selector_evicts,
        Some(selector) => {
            selector.matches_driver_pool_device(&result.driver, &result.pool, &result.device)
                && selections.criteria_may_select_device(rule, result.pool_slot, &result.device)
        }
    };
    let is_published =
        || current_slices(snapshot, result).any(|slice| slice.device(&result.device).is_some());
    selected && (!profile.rules_act_through_slices || is_published())
}

/// The rules that can taint devices, and the devices that they select by class and expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct RulesInForce<'a, 's> {
    pub(super) rules: &'a [&'s Rule],
    pub(super) selections: &'a DevicesByRule<'s>,
}

/// Calls `visit` for every taint that could evict the pods that use an allocated device: first the taints of
/// slices, then those of rules.
pub(super) fn visit_evicting_taints_of_device<'s>(
    snapshot: &'s Snapshot,
    in_force: RulesInForce<'_, 's>,
    profile: &Profile,
    result: &'s AllocatedDevice,
    mut visit: impl FnMut(TaintOnDevice<'s>),
) {
    let mut listed = false;
    let mut of = |source, taint| {
        let tolerance = no_execute_tolerance(result.tolerations_for_eviction(profile), taint, profile);
        visit(TaintOnDevice { source, taint, tolerance });
    };
    for slice in current_slices(snapshot, result).filter(|slice| slice.tainted) {
        if !listed && let Some(device) = slice.device(&result.device) {
            // If two slices list a device, only the first one counts.
            listed = true;
            for taint in &device.taints {
                let patch = taint.patch.as_deref().map(TaintSource::Patch);
                of(patch.unwrap_or(TaintSource::Slice(&slice.name)), taint);
            }
        }
        let own = slice.taints.iter().filter(|(device, _)| *device == result.device);
        own.for_each(|(_, taint)| of(TaintSource::Slice(&slice.name), taint));
    }
    let selects = |rule: &&&Rule| rule_selects(rule, in_force.selections, result, snapshot, profile);
    for rule in in_force.rules.iter().filter(selects) {
        of(TaintSource::Rule(rule), &rule.taint);
    }
}

impl Snapshot {
    /// Stores a proposed DeviceTaintRule, so that later queries include it. Does nothing for a changed slice, which the
    /// snapshot contains already.
    pub fn store_proposed_rule(&mut self, change: ProposedChange) {
        if let ProposedChange::Rule(rule) = change {
            self.put_rule(rule);
        }
    }

    /// Stores the record of a rule, replacing the previous one.
    pub(super) fn put_rule(&mut self, rule: Rule) {
        self.remove(SnapshotKind::Rule, "", &rule.name);
        self.bytes += cost::rule_bytes(&rule);
        self.rules.insert(std::sync::Arc::clone(&rule.name), std::sync::Arc::new(rule));
    }

    /// Returns when the taints of a device evict the pods that use it with these tolerations; `None` if never. The pods
    /// and claims of the snapshot do not matter.
    pub fn device_eviction_time(
        &self,
        (driver, pool, device): (&str, &str, &str),
        tolerations: &[Toleration],
        profile: &Profile,
    ) -> Option<Timestamp> {
        let rules: Vec<&Rule> = self.rules().filter(|rule| rule.taint.is_no_execute()).collect();
        let result = AllocatedDevice {
            driver: driver.into(),
            pool: pool.into(),
            device: device.into(),
            pool_slot: self.pools.find(driver, pool).unwrap_or(Slot::NONE),
            copied: tolerations.into(),
            requested: None,
        };
        let selections = DevicesByRule::new(self, &rules, profile);
        let in_force = RulesInForce { rules: &rules, selections: &selections };
        let mut earliest: Option<UnixNanos> = None;
        visit_evicting_taints_of_device(self, in_force, profile, &result, |hit| {
            earliest = earliest.into_iter().chain(hit.eviction_time()).min();
        });
        earliest.map(from_unix_nanos)
    }
}

/// Why the eviction controller ignores a pod for one of its claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NotEvictedReason {
    /// The pod is not scheduled yet.
    NotScheduled,
    /// The claim was made for another pod.
    NotItsClaim,
    /// The claim is not reserved for it.
    NotReserved,
    /// The pod uses the claim through an extended resource, which the controller ignores.
    ExtendedResource,
    /// The pod is already being deleted.
    Deleting,
}

impl NotEvictedReason {
    /// Returns the reason as a word, such as `not-scheduled`.
    pub(super) fn name(self) -> &'static str {
        match self {
            NotEvictedReason::NotScheduled => "not-scheduled",
            NotEvictedReason::NotItsClaim => "not-its-claim",
            NotEvictedReason::NotReserved => "not-reserved",
            NotEvictedReason::ExtendedResource => "extended-resource",
            NotEvictedReason::Deleting => "deleting",
        }
    }
}

/// Returns why the eviction controller does not evict that pod because of that claim; `None` if a taint on the claim's
/// devices can evict it.
// upstream v1.36 Controller.podEvictionTime
pub(super) fn why_not_evicted(
    pod: &Pod,
    source: ClaimSource,
    claim: &Claim,
    profile: &Profile,
) -> Option<NotEvictedReason> {
    let group = pod.group.as_ref().filter(|_| profile.reserves_for_pod_groups);
    let is_group = |name: &Option<super::interner::InternedStr>| group.is_some() && name.as_ref() == group;
    if source == ClaimSource::ExtendedResource {
        return Some(NotEvictedReason::ExtendedResource);
    }
    if !pod.scheduled {
        return Some(NotEvictedReason::NotScheduled);
    }
    let owned =
        || claim.owner.as_ref().is_some_and(|owner| owner.uid == pod.uid || is_group(&owner.pod_group));
    if source == ClaimSource::Template && !owned() {
        return Some(NotEvictedReason::NotItsClaim);
    }
    let reserved = claim.reserved.iter().any(|user| user.uid == pod.uid || is_group(&user.pod_group));
    (!reserved).then_some(NotEvictedReason::NotReserved)
}
