//! Compares what taints affect before and after an update, to decide whether findings of the stored object excuse new
//! ones.
//!
//! A selector reaches no more than the stored one if it has all of its criteria. Effects are ordered None, NoSchedule,
//! NoExecute; rates by their number, where none is the draft's default; an earlier time evicts sooner. A taint with
//! another key or value is a different taint, because other pods tolerate it. This module knows neither findings nor
//! policies.
//!
//! Invariant: [`ReachChange::Within`] means that no device gets a taint, a stronger effect, a faster or an earlier
//! eviction that it did not have, whatever devices there are. What cannot be compared is [`ReachChange::Wider`].

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::admission::DecodedAttributes;
use tollgate_api::view::{DevicePatch, ObjectBody, Slice, Taint, TaintRuleSpec, TaintSelector, View};
use tollgate_document::doc::Value;
use tollgate_formats::gotime::Timestamp;

/// How an update changes what the taints of an object reach: which devices, how strongly and how soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReachChange {
    /// The taints may affect more, so that stored findings do not excuse new ones.
    Wider,
    /// The taints affect the same or less, and nothing else changes.
    Within,
    /// Undecided for the object as a whole; findings are compared one by one.
    Other,
}

/// Evictions per second of a taint that does not set them, in draft r2.
const DEFAULT_EVICTIONS_PER_SECOND: i64 = 10;

/// Maximum number of list items that are searched. Valid lists are not longer, and this bounds the time for
/// hostile ones.
const MAX_SEARCHED_ITEMS: usize = 128;

/// Compares what the taints of an object reach after an update with what they reach before.
pub fn taint_reach_change(admission: &DecodedAttributes<'_>) -> ReachChange {
    // The server ignores the spec in a status request.
    if admission.is_status() {
        return ReachChange::Other;
    }
    match (admission.old_object.map(|old| old.body), admission.object.body) {
        (Some(ObjectBody::Rule(old)), ObjectBody::Rule(new)) => rule_reach_change(old.spec(), new.spec()),
        (Some(ObjectBody::Patch(old)), ObjectBody::Patch(new)) => {
            patch_reach_change(old.spec().devices(), new.spec().devices())
        }
        // Devices go by their names, and those are names within a pool.
        (Some(ObjectBody::Slice(old)), ObjectBody::Slice(new)) if !is_same_driver_and_pool(old, new) => {
            ReachChange::Wider
        }
        _ => ReachChange::Other,
    }
}

/// True if both slices list devices of the same driver and pool.
fn is_same_driver_and_pool(old: Slice<'_>, new: Slice<'_>) -> bool {
    let (old, new) = (old.spec(), new.spec());
    (old.driver(), old.pool().name()) == (new.driver(), new.pool().name())
}

/// Compares the devices and pods that a rule and the stored rule affect.
fn rule_reach_change(old: TaintRuleSpec<'_>, new: TaintRuleSpec<'_>) -> ReachChange {
    let (old_taint, new_taint) = (old.taint(), new.taint());
    let evicts = new_taint.effect() == "NoExecute";
    let selects_more = match (old.device_selector(), new.device_selector()) {
        (None, None) => false,
        // To the scheduler that is every device, to the eviction controller none.
        (None, Some(_)) => evicts,
        (Some(_), None) => true,
        (Some(old), Some(new)) => !is_new_selector_same_or_narrower(old, new),
    };
    let is_other = !has_same_key_and_value(old_taint, new_taint);
    let affects_pods = new_taint.effect() != "None";
    if selects_more
        || !TaintStrength::from_taint(old_taint)
            .is_at_least_as_strong_as(&TaintStrength::from_taint(new_taint))
        || is_other && affects_pods
    {
        ReachChange::Wider
    } else if is_other || !has_same_description_and_data(old_taint, new_taint) {
        ReachChange::Other
    } else {
        ReachChange::Within
    }
}

/// Compares the devices and pods that a patch and the stored patch affect.
fn patch_reach_change(old: DevicePatch<'_>, new: DevicePatch<'_>) -> ReachChange {
    if !is_new_selector_same_or_narrower(filter_or_empty(old), filter_or_empty(new)) {
        return ReachChange::Wider;
    }
    let (before, after) = (old.taints(), new.taints());
    let has = |taint: Taint<'_>| {
        before.iter().any(|stored| {
            has_same_key_and_value(stored, taint)
                && TaintStrength::from_taint(stored)
                    .is_at_least_as_strong_as(&TaintStrength::from_taint(taint))
                && has_same_description_and_data(stored, taint)
        })
    };
    let is_short = before.len() <= MAX_SEARCHED_ITEMS && after.len() <= MAX_SEARCHED_ITEMS;
    let is_same = |name: &str| old.json().get(name).to_json() == new.json().get(name).to_json();
    // Of two patches the one of higher priority counts.
    let is_rest_same =
        ["attributes", "capacity"].into_iter().all(is_same) && new.priority() <= old.priority();
    if is_short && is_rest_same && after.iter().all(has) { ReachChange::Within } else { ReachChange::Other }
}

/// Returns the filter of a patch; an empty filter if it has none, because both select all devices.
pub(crate) fn filter_or_empty(patch: DevicePatch<'_>) -> TaintSelector<'_> {
    patch.filter().unwrap_or(TaintSelector::of(Value::absent()))
}

/// True if the new selector has every criterion of the old one, so that it matches nothing that the old one does not
/// match.
pub(crate) fn is_new_selector_same_or_narrower(old: TaintSelector<'_>, new: TaintSelector<'_>) -> bool {
    let keeps = |old: Option<&str>, new: Option<&str>| old.is_none() || old == new;
    let expressions = |selector: TaintSelector<'_>| -> HashSet<String> {
        selector.selectors().iter().map(|one| one.json().to_json()).collect()
    };
    keeps(old.driver(), new.driver())
        && keeps(old.pool(), new.pool())
        && keeps(old.device(), new.device())
        && keeps(old.device_class_name(), new.device_class_name())
        // All expressions of a selector must hold, so additional ones only make it select less.
        && (old.selectors().is_empty() || expressions(old).is_subset(&expressions(new)))
}

/// True if both taints have the same key and value, so that the same tolerations match them. Effects are
/// ignored.
pub fn has_same_key_and_value(old: Taint<'_>, new: Taint<'_>) -> bool {
    (old.key(), old.value()) == (new.key(), new.value())
}

/// True if both have the same description and data.
fn has_same_description_and_data(old: Taint<'_>, new: Taint<'_>) -> bool {
    old.description() == new.description() && old.data().raw_json() == new.data().raw_json()
}

/// The strength of a taint: its effect, eviction rate and time.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TaintStrength {
    rank: Option<usize>,
    rate: i64,
    time: Reverse<Option<Timestamp>>,
    /// The effect, if no release knows it; otherwise empty.
    unknown: Box<str>,
}

impl TaintStrength {
    pub(super) fn from_taint(taint: Taint<'_>) -> TaintStrength {
        let rank = effect_rank(taint.effect());
        TaintStrength {
            rank,
            rate: taint.evictions_per_second().unwrap_or(DEFAULT_EVICTIONS_PER_SECOND),
            time: Reverse(taint.time_added()),
            unknown: if rank.is_none() { taint.effect().into() } else { Box::default() },
        }
    }

    /// True if the taint with strength `new` is not stronger than this one.
    pub(super) fn is_at_least_as_strong_as(&self, new: &TaintStrength) -> bool {
        if new.rate > self.rate {
            return false;
        }
        match (self.rank, new.rank) {
            // What evicts no more has no time to be early by, and the server itself sets a new one.
            (Some(old), Some(new)) if new < old => true,
            (Some(old), Some(new)) if new > old => false,
            (None, _) | (_, None) if self.rank != new.rank || self.unknown != new.unknown => false,
            // A taint without a time counts as earlier than any with one.
            _ => self.time.0.is_none_or(|old| new.time.0.is_some_and(|new| new >= old)),
        }
    }
}

/// Returns the rank of an effect, from 0 for None to 2 for NoExecute; `None` if it is unknown.
fn effect_rank(effect: &str) -> Option<usize> {
    ["None", "NoSchedule", "NoExecute"].iter().position(|name| *name == effect)
}
