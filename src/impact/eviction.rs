//! When a pod is evicted: the eviction controller's arithmetic and nothing else.
//!
//! A toleration counts only if it says NoExecute itself; of those that match, one without seconds means forever and
//! else the smallest wins; seconds are multiplied in 64 bits, so a large number wraps around into the past. The
//! earliest taint of any device decides for a claim, the earliest claim for a pod.

use super::record::{Allocated, By, Claim, Pod, Rule, Slice, Taint, Toleration};
use super::snapshot::{Pool, Snapshot};
use crate::gotime::Timestamp;
use crate::profile::Profile;
use crate::tolerance::{Mark, matches};

/// Nanoseconds since 1970: wide enough for every time and every delay.
pub(super) type Moment = i128;

const SECOND: i64 = 1_000_000_000;

pub(super) fn moment(time: Timestamp) -> Moment {
    Moment::from(time.seconds) * Moment::from(SECOND) + Moment::from(time.nanos)
}

#[expect(clippy::cast_possible_truncation, reason = "the quotient and the rest of a sum of 64-bit numbers")]
pub(super) fn timestamp(moment: Moment) -> Timestamp {
    let second = Moment::from(SECOND);
    Timestamp { seconds: moment.div_euclid(second) as i64, nanos: moment.rem_euclid(second) as u32 }
}

/// What an allocated device's tolerations make of a taint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tolerance<'s> {
    /// Nothing that counts tolerates it.
    No,
    /// Tolerated for a while.
    For(&'s Toleration),
    /// Tolerated for good.
    Forever(&'s Toleration),
}

/// What counts of those tolerations against that taint, taken as NoExecute.
// upstream v1.36 Controller.claimEvictionTime
pub(super) fn tolerance<'s>(tolerations: &'s [Toleration], taint: &Taint) -> Tolerance<'s> {
    let mark = Mark { effect: "NoExecute", ..taint.mark() };
    let mut shortest: Option<&Toleration> = None;
    for toleration in tolerations {
        if &*toleration.effect != "NoExecute" || !matches(toleration.terms(), mark) {
            continue;
        }
        let Some(seconds) = toleration.seconds else { return Tolerance::Forever(toleration) };
        let known = shortest.and_then(|shortest| shortest.seconds);
        if known.is_none_or(|known| seconds.max(0) < known.max(0)) {
            shortest = Some(toleration);
        }
    }
    shortest.map_or(Tolerance::No, Tolerance::For)
}

/// When a taint evicts; `None` if never, which a taint without a time does too.
pub(super) fn when(taint: &Taint, tolerance: Tolerance<'_>) -> Option<Moment> {
    let added = moment(taint.added?);
    match tolerance {
        Tolerance::Forever(_) => None,
        Tolerance::No => Some(added),
        // Go multiplies in 64 bits and does not look: above 9223372036 the delay is negative or some other one.
        Tolerance::For(toleration) => {
            let delay = toleration.seconds.unwrap_or_default().max(0).wrapping_mul(SECOND);
            Some(added + Moment::from(delay))
        }
    }
}

/// Where a taint comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source<'s> {
    /// A DeviceTaintRule.
    Rule(&'s str),
    /// A ResourceSlice.
    Slice(&'s str),
}

/// One taint on one allocated device, and what its tolerations make of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit<'s> {
    pub(super) source: Source<'s>,
    pub(super) taint: &'s Taint,
    pub(super) tolerance: Tolerance<'s>,
}

impl Hit<'_> {
    /// When it evicts.
    pub(super) fn when(&self) -> Option<Moment> {
        when(self.taint, self.tolerance)
    }
}

/// The slices of the newest generation of a result's pool.
fn slices<'s>(snapshot: &'s Snapshot, result: &Allocated) -> impl Iterator<Item = &'s Slice> + use<'s> {
    snapshot.pool(result.place).into_iter().flat_map(Pool::current)
}

/// True if a slice lists the device.
pub(super) fn is_published(snapshot: &Snapshot, result: &Allocated) -> bool {
    slices(snapshot, result).any(|slice| slice.device(&result.device).is_some())
}

/// True if the eviction controller of that release holds a rule to be about the device.
// upstream v1.36 ruleMatchesDevice
pub(super) fn is_selected(rule: &Rule, result: &Allocated, snapshot: &Snapshot, profile: &Profile) -> bool {
    let selected = match &rule.selector {
        None => profile.rules_act_through_slices,
        Some(selector) => selector.selects(&result.driver, &result.pool, &result.device),
    };
    selected && (!profile.rules_act_through_slices || is_published(snapshot, result))
}

/// Every taint that could evict the users of a result: first those of slices, then those of rules.
pub(super) fn hits<'s>(
    snapshot: &'s Snapshot,
    rules: &[&'s Rule],
    profile: &Profile,
    result: &'s Allocated,
    mut visit: impl FnMut(Hit<'s>),
) {
    let mut listed = false;
    let mut of = |source, taint| {
        let tolerance = tolerance(&result.tolerations, taint);
        visit(Hit { source, taint, tolerance });
    };
    for slice in slices(snapshot, result).filter(|slice| slice.tainted) {
        if !listed && let Some(device) = slice.device(&result.device) {
            // Of two slices that list a device only one is looked at.
            listed = true;
            device.taints.iter().for_each(|taint| of(Source::Slice(&slice.name), taint));
        }
        let own = slice.taints.iter().filter(|(device, _)| *device == result.device);
        own.for_each(|(_, taint)| of(Source::Slice(&slice.name), taint));
    }
    for rule in rules.iter().filter(|rule| is_selected(rule, result, snapshot, profile)) {
        of(Source::Rule(&rule.name), &rule.taint);
    }
}

/// Why a pod that uses a claim is not evicted with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spared {
    /// It runs on no node yet.
    NotScheduled,
    /// The claim was made for another pod.
    NotItsClaim,
    /// The claim is not reserved for it.
    NotReserved,
    /// It uses the claim through an extended resource, where the controller does not look.
    ExtendedResource,
    /// It is being deleted already.
    Deleting,
}

/// Why the controller does not count that pod for that claim, if it does not.
// upstream v1.36 Controller.podEvictionTime
pub(super) fn spared(pod: &Pod, by: By, claim: &Claim, profile: &Profile) -> Option<Spared> {
    let group = pod.group.as_ref().filter(|_| profile.reserves_for_pod_groups);
    let is_group = |name: &Option<super::names::Name>| group.is_some() && name.as_ref() == group;
    if by == By::ExtendedResource {
        return Some(Spared::ExtendedResource);
    }
    if !pod.scheduled {
        return Some(Spared::NotScheduled);
    }
    let owned =
        || claim.owner.as_ref().is_some_and(|owner| owner.uid == pod.uid || is_group(&owner.pod_group));
    if by == By::Template && !owned() {
        return Some(Spared::NotItsClaim);
    }
    let reserved = claim.reserved.iter().any(|user| user.uid == pod.uid || is_group(&user.pod_group));
    (!reserved).then_some(Spared::NotReserved)
}
