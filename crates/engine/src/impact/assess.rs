//! Applies a change to a snapshot: which devices, claims and pods are affected, and what happens to each pod.

use std::collections::BTreeMap;

use super::condition::{ImpactCounts, initial_condition};
use super::eviction::{self, NotEvictedReason, TaintOnDevice, TaintSource, Tolerance, UnixNanos};
use super::interner::InternedStr;
use super::rate_limit::{self, DueEviction};
use super::reason::{OutcomeReason, ReasonKind};
use super::record::{AllocatedDevice, Pod, Rule};
use super::selection::DevicesByRule;
use super::slots::Slot;
use super::snapshot::{Pool, Snapshot};
use super::{ChangedSlice, Impact, ImpactQuery, PodImpact, PodOutcome, ProposedChange, partitions};
use tollgate_api::profile::Profile;

/// Computes the impact of a change, with a reason for every pod.
pub fn assess<'s>(query: ImpactQuery<'s>) -> Impact<'s> {
    let assessment = Assessment::new(query);
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
    let pending = pods.iter().filter(|pod| pod.is_pending);
    let counts = ImpactCounts {
        published: found.published,
        allocated: found.allocated,
        namespaces: distinct_namespaces(pending.clone()).len(),
        pods: pending.count(),
    };
    let namespaces = distinct_namespaces(pods.iter().filter(|pod| pod.outcome.is_evicted()));
    let condition = match query.change {
        ProposedChange::Rule(rule) if query.profile.rule_status => {
            Some(initial_condition(&rule.taint.effect, counts, is_upper_bound))
        }
        ProposedChange::Rule(_) | ProposedChange::Slice(_) => None,
    };
    let (claims, unlisted) = (found.claims, found.unlisted);
    // Which devices are selected is not known if the numbers are upper bounds.
    let partitions = if is_upper_bound {
        Vec::new()
    } else {
        partitions::partitions_left_untainted_by_change(query, &assessment.selections)
    };
    let selections = assessment.selections;
    Impact { counts, claims, pods, namespaces, condition, unlisted, is_upper_bound, partitions, selections }
}

/// Computes only the numbers of [`assess`], which is cheaper: for callers that need them on every request.
pub fn impact_counts(query: ImpactQuery<'_>) -> ImpactCounts {
    let assessment =
        Assessment { checks_listing: query.profile.rules_act_through_slices, ..Assessment::new(query) };
    let found = assessment.find_affected();
    let mut counts =
        ImpactCounts { published: found.published, allocated: found.allocated, ..ImpactCounts::default() };
    let mut namespaces: Vec<&str> = Vec::new();
    for pod in
        found.pods.iter().filter_map(|slot| assessment.snapshot.pods.get_even_if_free(*slot)?.as_deref())
    {
        if assessment.is_pending_eviction(pod) {
            counts.pods += 1;
            if namespaces.last() != Some(&&*pod.namespace) {
                namespaces.push(&pod.namespace);
            }
        }
    }
    namespaces.sort_unstable();
    namespaces.dedup();
    counts.namespaces = namespaces.len();
    counts
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

/// Sorts pods in order of eviction, then by name. The keys are computed first, because pods are large.
fn sort_by_eviction(pods: &mut [AssessedPod<'_>]) {
    pods.sort_by_cached_key(|AssessedPod { when, pod, .. }| {
        (outcome_rank(pod.outcome), *when, pod.namespace, pod.name)
    });
}

/// Returns the sort key of an outcome: first evicted pods, then pods that tolerate the taint, then unaffected
/// pods.
fn outcome_rank(outcome: PodOutcome) -> u8 {
    match outcome {
        PodOutcome::EvictedNow | PodOutcome::EvictedAt(_) => 0,
        PodOutcome::Tolerated => 1,
        PodOutcome::Unaffected => 2,
    }
}

/// Returns the namespaces of some pods, each once, sorted by name.
fn distinct_namespaces<'i, 's: 'i>(pods: impl Iterator<Item = &'i PodImpact<'s>>) -> Vec<&'s str> {
    let mut namespaces: Vec<&str> = pods.map(|pod| pod.namespace).collect();
    // Pods of one namespace mostly follow each other, so few names are left to sort.
    namespaces.dedup();
    namespaces.sort_unstable();
    namespaces.dedup();
    namespaces
}

/// What a change affects: the numbers of devices and claims, and the pods that use these claims.
#[derive(Default)]
struct AffectedObjects {
    published: usize,
    allocated: usize,
    unlisted: usize,
    claims: usize,
    pods: Vec<Slot>,
    /// Which claims and pods were added already, by slot, so that each is counted once.
    added_claims: Vec<bool>,
    added_pods: Vec<bool>,
}

/// One computation of an impact: the query, the DeviceTaintRules in force including the proposed one, and the devices
/// that they select.
struct Assessment<'s> {
    query: ImpactQuery<'s>,
    snapshot: &'s Snapshot,
    /// The rules in force, including the proposed one.
    rules: Vec<&'s Rule>,
    /// The devices that the rules select by class and expression.
    selections: DevicesByRule<'s>,
    /// True if the change can evict pods: a rule with the effect NoExecute, or any slice.
    evicts: bool,
    /// True if it is checked whether a slice lists each allocated device; false where only numbers are needed that do
    /// not depend on it.
    checks_listing: bool,
    /// True if evictions have a rate (draft r2).
    has_rate_limits: bool,
}

impl<'s> Assessment<'s> {
    fn new(query: ImpactQuery<'s>) -> Assessment<'s> {
        let snapshot = query.snapshot;
        let stored = snapshot.rules().filter(|rule| rule.taint.is_no_execute());
        let (rules, evicts): (Vec<&Rule>, bool) = match query.change {
            ProposedChange::Slice(_) => (stored.collect(), true),
            ProposedChange::Rule(proposed) => {
                // The proposed rule comes last, so that it wins no tie.
                let others = stored.filter(|rule| rule.name != proposed.name);
                (others.chain([proposed]).collect(), proposed.taint.is_no_execute())
            }
        };
        let has_rate_limits = evicts && query.profile.documented.eviction_rate;
        let selections = DevicesByRule::new(snapshot, &rules, query.profile);
        Assessment { query, snapshot, rules, selections, evicts, checks_listing: true, has_rate_limits }
    }

    /// True if the change selects devices by class or expression, and these cannot be evaluated.
    fn is_upper_bound(&self) -> bool {
        match self.query.change {
            ProposedChange::Rule(rule) => self.selections.has_unevaluated_criteria(rule),
            ProposedChange::Slice(slice) => slice.has_unevaluated_criteria(),
        }
    }

    /// Finds the devices that the change affects, and the claims and pods that use them.
    fn find_affected(&self) -> AffectedObjects {
        let mut found = AffectedObjects::default();
        found.added_claims.resize(self.snapshot.claims.slot_count_including_free(), false);
        found.added_pods.resize(self.snapshot.pods.slot_count_including_free(), false);
        match self.query.change {
            ProposedChange::Rule(rule) => self.add_rule_devices_and_users(rule, &mut found),
            ProposedChange::Slice(slice) => self.add_tainted_slice_devices_and_users(slice, &mut found),
        }
        found
    }

    /// Adds the devices that the proposed DeviceTaintRule selects, and the claims and pods that use them, pool by pool.
    fn add_rule_devices_and_users(&self, rule: &Rule, found: &mut AffectedObjects) {
        let device = rule.selector.as_ref().and_then(|selector| selector.device.as_deref());
        let is_evaluated = self.selections.has_evaluated_criteria(rule);
        for (slot, pool) in selected_pools(self.snapshot, rule, self.query.profile) {
            if is_evaluated {
                let selects = |name: &str| self.selections.criteria_may_select_device(rule, slot, name);
                self.add_pool_devices_and_users(pool, device, Some(&selects), found);
            } else {
                self.add_pool_devices_and_users(pool, device, None, found);
            }
        }
    }

    /// Adds the device with that name in a pool, or all its devices if `device` is `None`, and the claims and pods that
    /// use them. `selects` restricts the devices further.
    fn add_pool_devices_and_users(
        &self,
        pool: &Pool,
        device: Option<&str>,
        selects: Option<&dyn Fn(&str) -> bool>,
        found: &mut AffectedObjects,
    ) {
        for slice in pool.current_slices() {
            found.published += match (device, selects) {
                (None, None) => slice.devices.len(),
                (None, Some(selects)) => slice.devices.iter().filter(|device| selects(&device.name)).count(),
                (Some(name), _) => {
                    usize::from(slice.device(name).is_some() && selects.is_none_or(|selects| selects(name)))
                }
            };
        }
        let mut take = |name: &str, claims: &[Slot]| {
            if selects.is_some_and(|selects| !selects(name)) {
                return;
            }
            let listed =
                !self.checks_listing || pool.current_slices().any(|slice| slice.device(name).is_some());
            if !listed && self.query.profile.rules_act_through_slices {
                return;
            }
            found.allocated += claims.len();
            found.unlisted += if listed { 0 } else { claims.len() };
            for slot in claims {
                self.add_claim_and_pods(*slot, found);
            }
        };
        match device {
            Some(name) => {
                if let Some(claims) = pool.allocated.get(name) {
                    take(name, claims);
                }
            }
            None => pool.allocated.iter().for_each(|(name, claims)| take(name, claims)),
        }
    }

    /// Adds the tainted devices of a changed slice, and the claims and pods that use them; nothing if the slice is not
    /// of its pool's newest generation.
    fn add_tainted_slice_devices_and_users(&self, change: &ChangedSlice, found: &mut AffectedObjects) {
        let Some(slice) = self.snapshot.slice(&change.name) else { return };
        let Some(pool) = self.snapshot.pool_named(&slice.driver, &slice.pool) else { return };
        if !pool.current_slices().any(|current| current.name == change.name) {
            return;
        }
        let tainted = slice.devices.iter().filter(|device| !device.taints.is_empty());
        let mut names: Vec<&str> = tainted.map(|device| &*device.name).collect();
        names.extend(slice.taints.iter().map(|(device, _)| &**device));
        names.sort_unstable();
        names.dedup();
        if let Some(patch) = &change.patch {
            names.retain(|name| patch.devices.iter().any(|device| **device == **name));
        }
        for device in names {
            found.published += usize::from(pool.current_slices().any(|slice| slice.device(device).is_some()));
            let claims = pool.allocated.get(device).map(Vec::as_slice).unwrap_or_default();
            found.allocated += claims.len();
            for slot in claims {
                self.add_claim_and_pods(*slot, found);
            }
        }
    }

    /// Counts a claim and adds the pods that use it, unless they were added before.
    fn add_claim_and_pods(&self, slot: Slot, found: &mut AffectedObjects) {
        if !mark_added(&mut found.added_claims, slot) {
            return;
        }
        found.claims += 1;
        let Some(entry) = self.snapshot.claims.get_even_if_free(slot) else { return };
        found.pods.extend(entry.pods.iter().copied().filter(|pod| mark_added(&mut found.added_pods, *pod)));
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

    /// Calls `visit` for every taint that could evict the users of an allocated device.
    fn visit_evicting_taints_of_device(
        &self,
        result: &'s AllocatedDevice,
        visit: impl FnMut(TaintOnDevice<'s>),
    ) {
        let rules = eviction::RulesInForce { rules: &self.rules, selections: &self.selections };
        eviction::visit_evicting_taints_of_device(self.snapshot, rules, self.query.profile, result, visit);
    }

    /// True if the eviction controller counts the pod as pending eviction because of the change.
    fn is_pending_eviction(&self, pod: &'s Pod) -> bool {
        let mut pending = false;
        if !pod.deleting {
            self.visit_allocated_devices_of_pod(pod, |_, not_evicted, result| {
                pending = pending || not_evicted.is_none() && self.evicts_users_of(result);
            });
        }
        pending
    }

    /// True if the change evicts the users of an allocated device, now or later.
    fn evicts_users_of(&self, result: &'s AllocatedDevice) -> bool {
        match self.query.change {
            ProposedChange::Rule(rule) => {
                eviction::rule_selects(rule, &self.selections, result, self.snapshot, self.query.profile)
                    && eviction::eviction_time(
                        &rule.taint,
                        eviction::no_execute_tolerance(
                            result.tolerations_for_eviction(self.query.profile),
                            &rule.taint,
                            self.query.profile,
                        ),
                    )
                    .is_some()
            }
            ProposedChange::Slice(_) => {
                let mut hit = false;
                self.visit_evicting_taints_of_device(result, |found| {
                    hit |= self.is_from_proposed_change(found.source) && found.eviction_time().is_some()
                });
                hit
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
            self.visit_evicting_taints_of_device(result, |hit| {
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
                    reasons.push(reason(ReasonKind::ProposedTaint { taint, tolerance, evicts: self.evicts }));
                    earliest = earliest.into_iter().chain(when).min();
                    tolerated |= matches!(tolerance, Tolerance::Forever(_));
                    is_time_limited |= matches!(tolerance, Tolerance::For(..));
                } else if let Some(when) = when
                    && other.is_none_or(|(known, ..)| when < known)
                {
                    let is_conditional = source.has_unevaluated_criteria(&self.selections);
                    let kind = ReasonKind::OtherTaint { taint, source, tolerance, is_conditional };
                    other = Some((when, reason(kind), is_conditional));
                }
            });
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
    let slots = drivers.into_iter().flatten().flat_map(move |pools| entry_or_all(pools, pool.as_ref()));
    slots.filter_map(|slot| Some((*slot, snapshot.pools.get_even_if_free(*slot)?)))
}

/// Returns the entry with that name, if there is one; all entries if `name` is `None`.
pub(super) fn entry_or_all<'m, T>(
    map: &'m BTreeMap<InternedStr, T>,
    name: Option<&InternedStr>,
) -> impl Iterator<Item = &'m T> + use<'m, T> {
    let (one, all) = match name {
        Some(name) => (map.get(name), None),
        None => (None, Some(map.values())),
    };
    one.into_iter().chain(all.into_iter().flatten())
}

/// Marks a slot as added; true if it was not added before.
fn mark_added(added: &mut [bool], slot: Slot) -> bool {
    added.get_mut(slot.index()).is_some_and(|added| !std::mem::replace(added, true))
}
