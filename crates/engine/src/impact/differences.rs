//! Notes about an impact: where the scheduler and the eviction controller treat the change differently, and why it
//! selects no devices. One sentence each.

use super::assess::{entry_or_all, selected_pools};
use super::record::{AllocatedDevice, ClassSelection, Rule, Taint, Toleration};
use super::selection::DevicesByRule;
use super::slots::Slot;
use super::snapshot::{Pool, Snapshot};
use super::{Impact, ImpactQuery, ProposedChange, eviction, partitions, unmatched};
use tollgate_formats::count::count_with_noun;

/// Returns one sentence for each thing that a reader of an impact should know, the most far-reaching first: upper
/// bounds, differences between scheduler and eviction controller, tolerations without effect, and why no device is
/// selected.
pub fn impact_notes(query: ImpactQuery<'_>, impact: &Impact<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let not_evaluated = impact.is_upper_bound.then(|| {
        "deviceClassName and selectors are not evaluated, so the numbers are upper bounds".to_owned()
    });
    let rule = match query.change {
        ProposedChange::Rule(rule) => rule,
        ProposedChange::Slice(slice) => {
            sentences.extend(not_evaluated);
            sentences.extend(partitions::partitions_note(query, &impact.partitions));
            note_ineffective_tolerations(query, tainted_by_slice(query, &slice.name), &mut sentences);
            note_repeated_evictions(impact, &mut sentences);
            return sentences;
        }
    };
    note_missing_selector(query, rule, &mut sentences);
    let selects_nothing = impact.counts.published == 0 && impact.counts.allocated == 0;
    // Without slices, nothing can be said about names; a dump that lacks them is reported as incomplete.
    if selects_nothing && query.snapshot.device_count() > 0 {
        let selector = rule.selector.as_ref();
        let missing = selector.and_then(|selector| unmatched::explain_missing_name(selector, query.snapshot));
        sentences.extend(missing.map(|missing| format!("the rule selects no devices: {missing}")));
    }
    sentences.extend(not_evaluated);
    sentences.extend_from_slice(impact.selections.evaluation_notes(rule));
    sentences.extend(partitions::partitions_note(query, &impact.partitions));
    if rule.selector.as_ref().is_some_and(|selector| selector.by_class == ClassSelection::Dropped) {
        sentences.push(format!(
            "{} drops deviceClassName and selectors, so the rule selects devices by the remaining criteria only",
            query.profile.name
        ));
    }
    if rule.taint.is_no_execute() || &*rule.taint.effect == "None" {
        let tainted = devices_with_tolerations_tainted_by_rule(query, rule, &impact.selections);
        note_ineffective_tolerations(query, tainted, &mut sentences);
        if impact.unlisted > 0 {
            let (is, it) = if impact.unlisted == 1 { ("is", "it") } else { ("are", "them") };
            sentences.push(format!(
                "{}{} {is} not in any ResourceSlice; the scheduler is not aware of {it}, but the eviction controller still evicts the pods",
                impact.at_most_prefix(),
                count_with_noun(impact.unlisted, "allocated device"),
            ));
        }
    }
    note_repeated_evictions(impact, &mut sentences);
    sentences
}

/// Adds a sentence if replacements of evicted pods can be evicted again.
fn note_repeated_evictions(impact: &Impact<'_>, sentences: &mut Vec<String>) {
    let hedge = impact.at_most_prefix();
    let replacements = match impact.pods_with_evictable_replacement().count() {
        0 => return,
        1 => {
            format!("the replacement for {hedge}1 evicted pod can be scheduled onto a tainted device and is")
        }
        many => {
            format!(
                "the replacements for {hedge}{many} evicted pods can be scheduled onto tainted devices and are"
            )
        }
    };
    sentences.push(format!(
        "{replacements} then evicted immediately, because tolerationSeconds counts from timeAdded; to prevent this, \
         also create a rule with effect NoSchedule and a key that these pods do not tolerate"
    ));
}

/// Adds a sentence if the rule has no selector, saying which devices the scheduler and the eviction controller then
/// apply it to.
fn note_missing_selector(query: ImpactQuery<'_>, rule: &Rule, sentences: &mut Vec<String>) {
    if rule.selector.is_some() || &*rule.taint.effect == "None" {
        return;
    }
    let devices = query.snapshot.device_count();
    let (schedules, evicts) =
        (query.profile.allocation.rule_without_selector_taints_all, query.profile.missing_selector_evicts);
    sentences.push(match (schedules, evicts) {
        (true, true) => {
            format!("the selector is missing: the scheduler and the eviction controller apply the rule to all {devices} devices")
        }
        (true, false) => format!(
            "the selector is missing: the scheduler applies the rule to all {devices} devices, but the eviction controller applies it to none"
        ),
        (false, _) => "the selector is missing: the rule selects no devices; in Kubernetes 1.37.0 and earlier, the \
                       scheduler applies it to every device (fixed after 1.37.0)"
            .to_owned(),
    });
}

/// Adds sentences about claims that tolerate the taint when they are scheduled, but not when pods are evicted: because
/// the toleration has no effect, was not copied to the allocation, or its seconds overflow.
fn note_ineffective_tolerations<'s>(
    query: ImpactQuery<'s>,
    tainted: impl Iterator<Item = TaintedAllocatedDevice<'s>>,
    sentences: &mut Vec<String>,
) {
    let [mut no_effect, mut not_copied, mut overflow] = <[DistinctClaims; 3]>::default();
    for TaintedAllocatedDevice { slot, result, taint } in tainted {
        let copied = eviction::no_execute_tolerance(
            result.tolerations_for_eviction(query.profile),
            taint,
            query.profile,
        );
        if copied == eviction::Tolerance::No {
            let requested: &[Toleration] = result.requested.as_deref().unwrap_or_default();
            let mut everywhere = result.copied.iter().chain(requested);
            if !query.profile.empty_effect_stops_eviction
                && everywhere.any(|toleration| toleration.tolerates_scheduling_only(taint))
            {
                no_effect.add_unless_last(slot);
            }
            if eviction::no_execute_tolerance(requested.iter(), taint, query.profile)
                != eviction::Tolerance::No
            {
                not_copied.add_unless_last(slot);
            }
        }
        if let eviction::Tolerance::For(_, seconds) = copied
            && seconds > MAX_SECONDS_IN_NANOS
        {
            overflow.add_unless_last(slot);
        }
    }
    no_effect.push_toleration_sentence(query, sentences, |claims| {
        format!("{claims} without an effect; the scheduler accepts such a toleration, but the eviction controller does not")
    });
    let why = if query.profile.copies_tolerations {
        "the allocation does not contain the toleration, so the eviction controller ignores it".to_owned()
    } else {
        format!(
            "{} does not copy tolerations to the allocation, so the eviction controller ignores them",
            query.profile.name
        )
    };
    not_copied
        .push_toleration_sentence(query, sentences, |claims| format!("{claims} in the request, but {why}"));
    overflow.push_toleration_sentence(query, sentences, |claims| {
        format!("{claims} for more than {MAX_SECONDS_IN_NANOS} seconds, which overflows in the eviction controller")
    });
}

/// Maximum number of seconds whose nanoseconds fit into 64 bits.
const MAX_SECONDS_IN_NANOS: i64 = i64::MAX / 1_000_000_000;

/// An allocated device, the slot of the claim that has it, and a taint that the change puts on it.
struct TaintedAllocatedDevice<'s> {
    slot: Slot,
    result: &'s AllocatedDevice,
    taint: &'s Taint,
}

/// Returns the allocated devices that the taints of a slice are for; none if the slice is not of its pool's newest
/// generation.
fn tainted_by_slice<'s>(
    query: ImpactQuery<'s>,
    name: &str,
) -> impl Iterator<Item = TaintedAllocatedDevice<'s>> {
    let snapshot = query.snapshot;
    let slice = snapshot.slice(name);
    let pool = slice.and_then(|slice| snapshot.pool_named(&slice.driver, &slice.pool));
    let is_current = |pool: &&Pool| pool.current_slices().any(|current| *current.name == *name);
    let mut tainted = Vec::new();
    if let (Some(slice), Some(pool)) = (slice, pool.filter(is_current)) {
        let own = slice.devices.iter().flat_map(|device| device.taints.iter().map(|t| (&device.name, t)));
        let others = slice.taints.iter().map(|(device, taint)| (device, taint));
        for (device, taint) in own.chain(others) {
            let claims = pool.allocated.get(device).into_iter().flatten();
            let results = claims.flat_map(|slot| {
                allocated_devices_of_claim(snapshot, *slot).map(move |result| (*slot, result))
            });
            let of_device = results.filter(|(_, result)| {
                result.device == *device && result.pool == slice.pool && result.driver == slice.driver
            });
            tainted.extend(of_device.map(|(slot, result)| TaintedAllocatedDevice { slot, result, taint }));
        }
    }
    tainted.sort_by_key(|tainted| tainted.slot);
    tainted.into_iter()
}

/// Returns the allocated devices of the claim in a slot.
fn allocated_devices_of_claim(snapshot: &Snapshot, slot: Slot) -> impl Iterator<Item = &AllocatedDevice> {
    let claim = snapshot.claims.get_even_if_free(slot).and_then(|entry| entry.record.as_deref());
    claim.into_iter().flat_map(|claim| claim.results.iter().flatten())
}

/// Returns the allocated devices with tolerations that a rule selects, claim by claim.
fn devices_with_tolerations_tainted_by_rule<'s>(
    query: ImpactQuery<'s>,
    rule: &'s Rule,
    selections: &DevicesByRule<'s>,
) -> impl Iterator<Item = TaintedAllocatedDevice<'s>> {
    let device = rule.selector.as_ref().and_then(|selector| selector.device.as_ref());
    let allocated = selected_pools(query.snapshot, rule, query.profile)
        .flat_map(move |(_, pool)| entry_or_all(&pool.allocated, device));
    let mut slots: Vec<Slot> = allocated.flatten().copied().collect();
    slots.sort_unstable();
    slots.dedup();
    slots.into_iter().flat_map(move |slot| {
        allocated_devices_of_claim(query.snapshot, slot)
            .filter(|result| !result.copied.is_empty() || result.requested.is_some())
            .filter(move |result| {
                eviction::rule_selects(rule, selections, result, query.snapshot, query.profile)
            })
            .map(move |result| TaintedAllocatedDevice { slot, result, taint: &rule.taint })
    })
}

/// The claims that one note is about, each once, in the order in which they were found.
#[derive(Default)]
struct DistinctClaims {
    claims: Vec<Slot>,
}

impl DistinctClaims {
    /// Adds a claim, unless it is the one that was added last.
    fn add_unless_last(&mut self, slot: Slot) {
        if self.claims.last() != Some(&slot) {
            self.claims.push(slot);
        }
    }

    /// Adds `sentence` about the claims, of which only the first is named; nothing if there are none.
    fn push_toleration_sentence(
        &self,
        query: ImpactQuery<'_>,
        sentences: &mut Vec<String>,
        sentence: impl Fn(String) -> String,
    ) {
        let names = self.claims.iter().filter_map(|slot| query.snapshot.claims.key(*slot));
        let Some((namespace, name)) = names.clone().min() else { return };
        let claims = match names.count() - 1 {
            0 => format!("claim {namespace}/{name} tolerates the taint"),
            others => {
                let others = count_with_noun(others, "other claim");
                format!("claim {namespace}/{name} and {others} tolerate the taint")
            }
        };
        sentences.push(sentence(claims));
    }
}
