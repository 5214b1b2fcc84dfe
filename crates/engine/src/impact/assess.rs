//! Applies a change to a snapshot: which devices, claims and pods are affected, and what happens to each pod.

use std::collections::BTreeMap;

use super::condition::{ImpactCounts, initial_condition};
use super::eviction::{self, NotEvictedReason, TaintOnDevice, TaintSource, Tolerance, UnixNanos};
use super::interner::InternedStr;
use super::rate_limit::{self, DueEviction};
use super::reason::{OutcomeReason, ReasonKind};
use super::record::{AllocatedDevice, Pod, Rule};
use super::selection::EvaluatedRules;
use super::slots::Slot;
use super::snapshot::{Pool, Snapshot};
use super::{ChangedSlice, Impact, ImpactQuery, PodImpact, PodOutcome, ProposedChange, partitions};
use tollgate_api::profile::Profile;

/// Computes the impact of a change, with a reason for every pod.
pub fn assess<'s>(query: ImpactQuery<'s>) -> Impact<'s> {
    let assessment = Assessment::new(query, true);
    let found = assessment.find_affected();
    let now = eviction::unix_nanos(query.at);
    let mut pods: Vec<AssessedPod<'s>> = Vec::with_capacity(found.pods.len());
    pods.extend(found.pods.iter().filter_map(|slot| assessment.pod_impact(*slot, now)));
    sort_by_eviction(&mut pods);
    if assessment.has_rate_limits {
        delay_by_rate_limits(&mut pods, now);
        sort_by_eviction(&mut pods);
    }
    let is_upper_bound = assessment.is_upper_bound() || pods.iter().any(|assessed| assessed.is_conditional);
    let pods: Vec<PodImpact<'s>> = pods.into_iter().map(|assessed| assessed.pod).collect();
    let namespaces_of =
        |which: fn(&&PodImpact<'s>) -> bool| pods.iter().filter(which).map(|pod| pod.namespace);
    let counts = found.counts(namespaces_of(|pod| pod.is_pending));
    let (_, namespaces) = count_and_distinct(namespaces_of(|pod| pod.outcome.is_evicted()));
    let condition = match query.change {
        ProposedChange::Rule(rule) if query.profile.rule_status => {
            Some(initial_condition(&rule.taint.effect, counts, is_upper_bound))
        }
        ProposedChange::Rule(_) | ProposedChange::Slice(_) => None,
    };
    let (claims, unlisted) = (found.claims.len(), found.unlisted);
    // Which devices are selected is not known if the numbers are upper bounds.
    let partitions = if is_upper_bound {
        Vec::new()
    } else {
        partitions::partitions_left_untainted_by_change(query, &assessment.rules)
    };
    let rules = assessment.rules;
    Impact { counts, claims, pods, namespaces, condition, unlisted, is_upper_bound, partitions, rules }
}

/// Computes only the numbers of [`assess`], which is cheaper: for callers that need them on every request.
pub fn impact_counts(query: ImpactQuery<'_>) -> ImpactCounts {
    // Taints of other rules decide when pods are evicted, not whether the change evicts them.
    let assessment = Assessment::new(query, false);
    let found = assessment.find_affected();
    let now = eviction::unix_nanos(query.at);
    let pods = found.pods.iter().filter_map(|slot| assessment.pod_impact(*slot, now));
    let pending = pods.filter(|assessed| assessed.pod.is_pending);
    found.counts(pending.map(|assessed| assessed.pod.namespace))
}

/// The impact on a pod, with the data that determines its position in the order of evictions.
struct AssessedPod<'s> {
    when: UnixNanos,
    pod: PodImpact<'s>,
    /// The taints that evict it, if evictions are rate-limited; otherwise empty.
    evictions: Vec<DueEviction<'s>>,
    /// True if a taint other than the proposed one evicts the pod, but only if a class or an expression matches that
    /// cannot be evaluated.
    is_conditional: bool,
}

/// Sorts pods in order of eviction, then by name: first evicted pods, then pods that tolerate the taint, then unaffected
/// pods. The keys are computed first, because pods are large.
fn sort_by_eviction(pods: &mut [AssessedPod<'_>]) {
    pods.sort_by_cached_key(|AssessedPod { when, pod, .. }| {
        let is_unaffected = pod.outcome == PodOutcome::Unaffected;
        (!pod.outcome.is_evicted(), is_unaffected, *when, pod.namespace, pod.name)
    });
}

/// Returns the number of pods, given the namespace of each, and these namespaces, each once, sorted by name.
fn count_and_distinct<'s>(pods: impl Iterator<Item = &'s str>) -> (usize, Vec<&'s str>) {
    let (mut count, mut namespaces) = (0, Vec::new());
    for namespace in pods {
        count += 1;
        // Pods of one namespace mostly follow each other, so few names are left to sort.
        if namespaces.last() != Some(&namespace) {
            namespaces.push(namespace);
        }
    }
    namespaces.sort_unstable();
    namespaces.dedup();
    (count, namespaces)
}

/// What a change affects: the numbers of devices, the claims that hold them, and the pods that use these claims.
#[derive(Default)]
struct AffectedObjects {
    published: usize,
    allocated: usize,
    unlisted: usize,
    claims: Vec<Slot>,
    pods: Vec<Slot>,
}

impl AffectedObjects {
    /// Returns the numbers for these devices and the pods that the change evicts, given the namespace of each pod.
    fn counts<'s>(&self, evicted: impl Iterator<Item = &'s str>) -> ImpactCounts {
        let (pods, namespaces) = count_and_distinct(evicted);
        let (published, allocated) = (self.published, self.allocated);
        ImpactCounts { published, allocated, pods, namespaces: namespaces.len() }
    }

    /// Adds the claims that hold an affected device, once for each allocation result.
    fn add_allocated(&mut self, claims: &[Slot]) {
        self.allocated += claims.len();
        self.claims.extend(claims);
    }
}

/// One computation of an impact: the query, the DeviceTaintRules in force including the proposed one, and the devices
/// that they select.
struct Assessment<'s> {
    query: ImpactQuery<'s>,
    snapshot: &'s Snapshot,
    /// The rules in force, including the proposed one.
    rules: EvaluatedRules<'s>,
    /// True if the change can evict pods: a rule with the effect NoExecute, or any slice.
    evicts: bool,
    /// True if evictions have a rate (draft r2).
    has_rate_limits: bool,
}

impl<'s> Assessment<'s> {
    /// Prepares the computation; `with_others` is false to leave out the stored rules.
    fn new(query: ImpactQuery<'s>, with_others: bool) -> Assessment<'s> {
        let snapshot = query.snapshot;
        let stored = snapshot.rules().filter(|rule| with_others && rule.taint.is_no_execute());
        let (rules, evicts): (Vec<&Rule>, bool) = match query.change {
            ProposedChange::Slice(_) => (stored.collect(), true),
            ProposedChange::Rule(proposed) => {
                // The proposed rule comes last, so that it wins no tie.
                let others = stored.filter(|rule| rule.name != proposed.name);
                (others.chain([proposed]).collect(), proposed.taint.is_no_execute())
            }
        };
        let has_rate_limits = evicts && query.profile.documented.eviction_rate;
        let rules = EvaluatedRules::new(snapshot, rules.into_iter(), query.profile);
        Assessment { query, snapshot, rules, evicts, has_rate_limits }
    }

    /// True if the change selects devices by class or expression, and these cannot be evaluated.
    fn is_upper_bound(&self) -> bool {
        match self.query.change {
            ProposedChange::Rule(rule) => self.rules.has_unevaluated_criteria(rule),
            ProposedChange::Slice(slice) => slice.has_unevaluated_criteria(),
        }
    }

    /// Finds the devices that the change affects, and the claims and pods that use them, each once.
    fn find_affected(&self) -> AffectedObjects {
        let mut found = AffectedObjects::default();
        match self.query.change {
            ProposedChange::Rule(rule) => self.add_rule_devices_and_claims(rule, &mut found),
            ProposedChange::Slice(slice) => self.add_tainted_slice_devices_and_claims(slice, &mut found),
        }
        let claims = &self.snapshot.claims;
        found.claims.sort_unstable();
        found.claims.dedup();
        let entries = found.claims.iter().filter_map(|slot| claims.get_even_if_free(*slot));
        found.pods = entries.flat_map(|entry| entry.pods.iter().copied()).collect();
        found.pods.sort_unstable();
        found.pods.dedup();
        found
    }

    /// Adds the devices that the proposed DeviceTaintRule selects, and the claims that hold them, pool by pool.
    fn add_rule_devices_and_claims(&self, rule: &Rule, found: &mut AffectedObjects) {
        let device = rule.selector.as_ref().and_then(|selector| selector.device.as_ref());
        for (slot, pool) in selected_pools(self.snapshot, rule, self.query.profile) {
            let selects = |name: &str| self.rules.criteria_may_select_device(rule, slot, name);
            for slice in pool.current_slices() {
                found.published += match device {
                    Some(name) => usize::from(slice.device(name).is_some() && selects(name)),
                    None => slice.devices.iter().filter(|device| selects(&device.name)).count(),
                };
            }
            for (name, claims) in entry_or_all(&pool.allocated, device).filter(|(name, _)| selects(name)) {
                if pool.lists(name) {
                    found.add_allocated(claims);
                } else if !self.query.profile.rules_act_through_slices {
                    found.unlisted += claims.len();
                    found.add_allocated(claims);
                }
            }
        }
    }

    /// Adds the tainted devices of a changed slice, and the claims that hold them; nothing if the slice is not of its
    /// pool's newest generation.
    fn add_tainted_slice_devices_and_claims(&self, change: &ChangedSlice, found: &mut AffectedObjects) {
        let Some((slice, pool)) = self.snapshot.current_slice_and_pool(&change.name) else { return };
        let tainted = slice.devices.iter().filter(|device| !device.taints.is_empty());
        let mut names: Vec<&str> = tainted.map(|device| &*device.name).collect();
        names.extend(slice.taints.iter().map(|(device, _)| &**device));
        names.sort_unstable();
        names.dedup();
        if let Some(patch) = &change.patch {
            names.retain(|name| patch.devices.iter().any(|device| **device == **name));
        }
        for device in names {
            found.published += usize::from(pool.lists(device));
            found.add_allocated(pool.allocated.get(device).map(Vec::as_slice).unwrap_or_default());
        }
    }

    /// True if a taint from that source belongs to the proposed change.
    fn is_from_proposed_change(&self, source: TaintSource<'_>) -> bool {
        match (self.query.change, source) {
            (ProposedChange::Rule(rule), TaintSource::Rule(source)) => rule.name == source.name,
            (ProposedChange::Slice(ChangedSlice { name, patch: None }), TaintSource::Slice(source)) => {
                &**name == source
            }
            (ProposedChange::Slice(ChangedSlice { patch: Some(patch), .. }), TaintSource::Patch(source)) => {
                patch.name == source.name
            }
            _ => false,
        }
    }

    /// Calls `visit` for each allocated device of a pod's claims, with the name of the claim and, if the controller
    /// ignores the pod for that claim, the reason.
    fn visit_allocated_devices_of_pod(
        &self,
        pod: &'s Pod,
        mut visit: impl FnMut(&'s str, Option<NotEvictedReason>, &'s AllocatedDevice),
    ) {
        for reference in &pod.claims {
            let claims = &self.snapshot.claims;
            let record = claims.get_even_if_free(reference.slot).and_then(|entry| entry.record.as_deref());
            let (Some(claim), Some((_, name))) = (record, claims.key(reference.slot)) else { continue };
            let not_evicted = eviction::why_not_evicted(pod, reference.source, claim, self.query.profile);
            for result in claim.results.iter().flatten() {
                visit(name, not_evicted, result);
            }
        }
    }

    /// Returns what happens to a pod, and why; `None` if the change affects none of its devices.
    fn pod_impact(&self, slot: Slot, now: UnixNanos) -> Option<AssessedPod<'s>> {
        let pod: &'s Pod = self.snapshot.pods.get_even_if_free(slot)?.as_deref()?;
        // Most pods have one reason: room for four, which a first push makes, is most of a report's memory.
        let mut reasons = Vec::with_capacity(1);
        let mut earliest: Option<UnixNanos> = None;
        let mut other: Option<(UnixNanos, OutcomeReason<'s>, bool)> = None;
        let mut tolerated = false;
        let mut is_time_limited = false;
        let mut evictions: Vec<DueEviction<'s>> = Vec::new();
        self.visit_allocated_devices_of_pod(pod, |claim, not_evicted, result| {
            let reason = |kind| OutcomeReason { namespace: &pod.namespace, claim, device: result, kind };
            let not_evicted = not_evicted.or(pod.deleting.then_some(NotEvictedReason::Deleting));
            eviction::visit_evicting_taints_of_device(
                self.snapshot,
                &self.rules,
                self.query.profile,
                result,
                |hit| {
                    let TaintOnDevice { taint, source, tolerance } = hit;
                    if let Some(not_evicted) = not_evicted {
                        if self.is_from_proposed_change(source) {
                            reasons.push(reason(ReasonKind::NotEvicted(not_evicted)));
                        }
                        return;
                    }
                    let when = hit.eviction_time();
                    if let Some(due) = when.filter(|_| self.has_rate_limits) {
                        let rate = taint.rate.or(self.query.profile.eviction_rate);
                        evictions.push(DueEviction { due, taint, rate });
                    }
                    if self.is_from_proposed_change(source) {
                        reasons.push(reason(ReasonKind::ProposedTaint {
                            taint,
                            tolerance,
                            evicts: self.evicts,
                        }));
                        earliest = earliest.into_iter().chain(when).min();
                        tolerated |= matches!(tolerance, Tolerance::Forever(_));
                        is_time_limited |= matches!(tolerance, Tolerance::For(..));
                    } else if let Some(when) = when
                        && other.is_none_or(|(known, ..)| when < known)
                    {
                        let is_conditional = source.has_unevaluated_criteria(&self.rules);
                        let kind = ReasonKind::OtherTaint { taint, source, tolerance, is_conditional };
                        other = Some((when, reason(kind), is_conditional));
                    }
                },
            );
        });
        // A patch may have left the eviction to another one that overwrites its taint.
        let is_patched =
            matches!(self.query.change, ProposedChange::Slice(ChangedSlice { patch: Some(_), .. }));
        if reasons.is_empty() && !(is_patched && other.is_some()) {
            return None;
        }
        // What evicts it sooner than the change does, or instead.
        let other = other.filter(|(when, ..)| self.evicts && earliest.is_none_or(|own| *when < own));
        let mut due = earliest.filter(|_| self.evicts);
        let mut is_conditional = false;
        if let Some((when, reason, depends)) = other {
            due = Some(when);
            is_conditional = depends;
            // First where it is the only one that evicts: of many reasons, two are shown.
            reasons.insert(if earliest.is_none() { 0 } else { reasons.len() }, reason);
        }
        let outcome = match due {
            Some(when) if when <= now => PodOutcome::EvictedNow,
            Some(when) => PodOutcome::EvictedAt(eviction::from_unix_nanos(when)),
            None if earliest.is_none() && tolerated => PodOutcome::Tolerated,
            None => PodOutcome::Unaffected,
        };
        let impact = PodImpact {
            namespace: &pod.namespace,
            name: &pod.name,
            owner: pod.owner.as_deref(),
            outcome,
            is_pending: earliest.is_some(),
            is_time_limited,
            reasons,
            record: pod,
        };
        // Overdue evictions happen immediately, in the order of names.
        let when = due.or(earliest).unwrap_or(now).max(now);
        Some(AssessedPod { when, pod: impact, evictions, is_conditional })
    }
}

/// Moves the evictions to the times that the rate limiters of draft r2 allow. The pods must be in
/// the order of [`sort_by_eviction`], evicted pods first.
fn delay_by_rate_limits(pods: &mut [AssessedPod<'_>], now: UnixNanos) {
    let evicted = pods.iter().filter(|assessed| assessed.pod.outcome.is_evicted()).count();
    let evictions: Vec<&[DueEviction<'_>]> =
        pods.iter().take(evicted).map(|assessed| assessed.evictions.as_slice()).collect();
    let moments = rate_limit::rate_limited_eviction_times(&evictions, now);
    for (assessed, moment) in pods.iter_mut().zip(moments) {
        assessed.when = moment;
        if moment > now {
            assessed.pod.outcome = PodOutcome::EvictedAt(eviction::from_unix_nanos(moment));
        }
    }
}

/// Returns the pools in which the eviction controller of the release searches for a rule's devices.
pub(super) fn selected_pools<'s>(
    snapshot: &'s Snapshot,
    rule: &Rule,
    profile: &Profile,
) -> impl Iterator<Item = (Slot, &'s Pool)> {
    let (driver, pool) = match &rule.selector {
        Some(selector) => (selector.driver.clone(), selector.pool.clone()),
        None => (None, None),
    };
    let selects = rule.selector.is_some() || profile.missing_selector_evicts;
    let drivers = selects.then(|| entry_or_all(&snapshot.drivers, driver.as_ref()));
    let slots = drivers.into_iter().flatten().flat_map(move |(_, pools)| entry_or_all(pools, pool.as_ref()));
    slots.filter_map(|(_, slot)| Some((*slot, snapshot.pools.get_even_if_free(*slot)?)))
}

/// Returns the entry with that name, if there is one; all entries if `name` is `None`.
pub(super) fn entry_or_all<'m, T>(
    map: &'m BTreeMap<InternedStr, T>,
    name: Option<&InternedStr>,
) -> impl Iterator<Item = (&'m InternedStr, &'m T)> + use<'m, T> {
    let (one, all) = match name {
        Some(name) => (map.get_key_value(name), None),
        None => (None, Some(map.iter())),
    };
    one.into_iter().chain(all.into_iter().flatten())
}
