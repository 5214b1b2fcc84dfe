//! A subject against a snapshot: which devices, which claims, which pods, and what becomes of each.

use std::collections::BTreeMap;

use super::because::{Because, What};
use super::condition::{Counts, condition};
use super::eviction::{self, Hit, Moment, Source, Spared, Tolerance};
use super::names::Name;
use super::record::{Allocated, Pod, Rule};
use super::slots::Slot;
use super::snapshot::{Pool, Snapshot};
use super::{Impact, Outcome, PodImpact, Question, Subject, timeline};
use crate::profile::Profile;

/// Says what will happen.
pub fn assess<'s>(question: Question<'s>) -> Impact<'s> {
    let view = View::of(question);
    let found = view.search();
    let now = eviction::moment(question.at);
    let mut pods: Vec<(Moment, PodImpact<'s>)> =
        found.pods.iter().filter_map(|slot| view.pod(*slot, now)).collect();
    pods.sort_by_key(|(when, pod)| (rank(pod.outcome), *when, pod.namespace, pod.name));
    if let Subject::Rule(rule) = question.subject
        && let Some(rate) = rule.taint.rate.or(question.profile.eviction_rate)
    {
        view.pace(&mut pods, now, rate);
    }
    let pods: Vec<PodImpact<'s>> = pods.into_iter().map(|(_, pod)| pod).collect();
    let counts = Counts { published: found.published, allocated: found.allocated, ..pending(&pods) };
    let mut namespaces: Vec<&str> =
        pods.iter().filter(|pod| pod.outcome.is_evicted()).map(|pod| pod.namespace).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let condition = match question.subject {
        Subject::Rule(rule) if question.profile.rule_status => Some(condition(&rule.taint.effect, counts)),
        Subject::Rule(_) | Subject::Slice(_) => None,
    };
    Impact { counts, claims: found.claims, pods, namespaces, condition, unlisted: found.unlisted }
}

/// Only the numbers: for those who ask on every request.
pub fn count(question: Question<'_>) -> Counts {
    let view = View { lists: question.profile.rules_act_through_slices, ..View::of(question) };
    let found = view.search();
    let mut counts = Counts { published: found.published, allocated: found.allocated, ..Counts::default() };
    let mut namespaces: Vec<&str> = Vec::new();
    for pod in found.pods.iter().filter_map(|slot| view.snapshot.pods().get(*slot)?.as_deref()) {
        if view.is_pending(pod) {
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

/// Evicted pods first, in time; then those that stay and why.
fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::EvictedNow | Outcome::EvictedAt(_) => 0,
        Outcome::Tolerated => 1,
        Outcome::Unaffected => 2,
    }
}

/// Pods that the controller would count as pending if the taint were NoExecute.
fn pending(pods: &[PodImpact<'_>]) -> Counts {
    let would = |pod: &&PodImpact<'_>| pod.because.iter().any(Because::evicts);
    let mut namespaces: Vec<&str> = pods.iter().filter(would).map(|pod| pod.namespace).collect();
    let pods = namespaces.len();
    namespaces.sort_unstable();
    namespaces.dedup();
    Counts { pods, namespaces: namespaces.len(), ..Counts::default() }
}

/// What the search found.
#[derive(Default)]
struct Found {
    published: usize,
    allocated: usize,
    unlisted: usize,
    claims: usize,
    pods: Vec<Slot>,
}

/// A question made ready.
struct View<'s> {
    question: Question<'s>,
    snapshot: &'s Snapshot,
    /// The rules in force, the one asked about included.
    rules: Vec<&'s Rule>,
    /// The taint has the effect NoExecute.
    acts: bool,
    /// It matters whether a slice lists a device.
    lists: bool,
}

impl<'s> View<'s> {
    fn of(question: Question<'s>) -> View<'s> {
        let snapshot = question.snapshot;
        let stored = snapshot.rules().filter(|rule| rule.taint.evicts());
        let (rules, acts) = match question.subject {
            Subject::Slice(_) => (stored.collect(), true),
            Subject::Rule(asked) => {
                // The rule comes last: its taint is a tie-break of nobody.
                let others = stored.filter(|rule| rule.name != asked.name);
                (others.chain([asked]).collect(), asked.taint.evicts())
            }
        };
        View { question, snapshot, rules, acts, lists: true }
    }

    /// Devices, claims and the pods that use them.
    fn search(&self) -> Found {
        let mut found = Found::default();
        let mut seen = Seen { claims: vec![false; self.snapshot.claims().len()], pods: Vec::new() };
        seen.pods.resize(self.snapshot.pods().len(), false);
        match self.question.subject {
            Subject::Rule(rule) => self.search_rule(rule, &mut found, &mut seen),
            Subject::Slice(name) => self.search_slice(name, &mut found, &mut seen),
        }
        found
    }

    fn search_rule(&self, rule: &Rule, found: &mut Found, seen: &mut Seen) {
        let device = rule.selector.as_ref().and_then(|selector| selector.device.as_deref());
        for pool in pools(self.snapshot, rule, self.question.profile) {
            self.search_pool(pool, device, found, seen);
        }
    }

    fn search_pool(&self, pool: &Pool, device: Option<&str>, found: &mut Found, seen: &mut Seen) {
        for slice in pool.current() {
            found.published += match device {
                None => slice.devices.len(),
                Some(name) => usize::from(slice.device(name).is_some()),
            };
        }
        let mut take = |name: &str, claims: &[Slot]| {
            let listed = !self.lists || pool.current().any(|slice| slice.device(name).is_some());
            if !listed && self.question.profile.rules_act_through_slices {
                return;
            }
            found.allocated += claims.len();
            found.unlisted += if listed { 0 } else { claims.len() };
            for slot in claims {
                self.take_claim(*slot, found, seen);
            }
        };
        match device {
            Some(name) => {
                if let Some(claims) = pool.allocated().get(name) {
                    take(name, claims);
                }
            }
            None => pool.allocated().iter().for_each(|(name, claims)| take(name, claims)),
        }
    }

    fn search_slice(&self, name: &str, found: &mut Found, seen: &mut Seen) {
        let Some(slice) = self.snapshot.slice(name) else { return };
        let Some(pool) = self.snapshot.pool_named(&slice.driver, &slice.pool) else { return };
        if !pool.current().any(|current| *current.name == *name) {
            return;
        }
        let tainted = slice.devices.iter().filter(|device| !device.taints.is_empty());
        let mut names: Vec<&str> = tainted.map(|device| &*device.name).collect();
        names.extend(slice.taints.iter().map(|(device, _)| &**device));
        names.sort_unstable();
        names.dedup();
        for device in names {
            found.published += usize::from(pool.current().any(|slice| slice.device(device).is_some()));
            let claims = pool.allocated().get(device).map(Vec::as_slice).unwrap_or_default();
            found.allocated += claims.len();
            for slot in claims {
                self.take_claim(*slot, found, seen);
            }
        }
    }

    fn take_claim(&self, slot: Slot, found: &mut Found, seen: &mut Seen) {
        if !first(&mut seen.claims, slot) {
            return;
        }
        found.claims += 1;
        let Some(entry) = self.snapshot.claims().get(slot) else { return };
        found.pods.extend(entry.pods.iter().copied().filter(|pod| first(&mut seen.pods, *pod)));
    }

    /// True if the taint is the one that was asked about.
    fn is_asked(&self, source: Source<'_>) -> bool {
        match (self.question.subject, source) {
            (Subject::Rule(rule), Source::Rule(name)) => &*rule.name == name,
            (Subject::Slice(slice), Source::Slice(name)) => &**slice == name,
            _ => false,
        }
    }

    /// Each allocated device of a pod's claims, with why the controller does not look, if it does not.
    fn devices(&self, pod: &'s Pod, mut visit: impl FnMut(&'s str, Option<Spared>, &'s Allocated)) {
        for reference in &pod.claims {
            let claims = self.snapshot.claims();
            let record = claims.get(reference.slot).and_then(|entry| entry.record.as_deref());
            let (Some(claim), Some((_, name))) = (record, claims.key(reference.slot)) else { continue };
            let spared = eviction::spared(pod, reference.by, claim, self.question.profile);
            for result in claim.results.iter().flatten() {
                visit(name, spared, result);
            }
        }
    }

    fn hits(&self, result: &'s Allocated, visit: impl FnMut(Hit<'s>)) {
        eviction::hits(self.snapshot, &self.rules, self.question.profile, result, visit);
    }

    /// True if the controller counts the pod as pending because of what was asked about.
    fn is_pending(&self, pod: &'s Pod) -> bool {
        let mut pending = false;
        if !pod.deleting {
            self.devices(pod, |_, spared, result| {
                pending = pending || spared.is_none() && self.is_hit(result);
            });
        }
        pending
    }

    /// True if what was asked about evicts the users of a device at some time.
    fn is_hit(&self, result: &'s Allocated) -> bool {
        match self.question.subject {
            Subject::Rule(rule) => {
                eviction::is_selected(rule, result, self.snapshot, self.question.profile)
                    && eviction::when(&rule.taint, eviction::tolerance(&result.tolerations, &rule.taint))
                        .is_some()
            }
            Subject::Slice(_) => {
                let mut hit = false;
                self.hits(result, |found| hit |= self.is_asked(found.source) && found.when().is_some());
                hit
            }
        }
    }

    /// What becomes of a pod; `None` if no device of it is meant after all.
    fn pod(&self, slot: Slot, now: Moment) -> Option<(Moment, PodImpact<'s>)> {
        let pod: &'s Pod = self.snapshot.pods().get(slot)?.as_deref()?;
        let mut because = Vec::new();
        let mut earliest: Option<Moment> = None;
        let mut other: Option<(Moment, Because<'s>)> = None;
        let mut tolerated = false;
        self.devices(pod, |claim, spared, result| {
            let reason = |what| Because { namespace: &pod.namespace, claim, device: result, what };
            let spared = spared.or(pod.deleting.then_some(Spared::Deleting));
            self.hits(result, |hit| {
                let Hit { taint, source, tolerance } = hit;
                if let Some(spared) = spared {
                    if self.is_asked(source) {
                        because.push(reason(What::Spared(spared)));
                    }
                    return;
                }
                let when = hit.when();
                if self.is_asked(source) {
                    because.push(reason(What::Taint { taint, tolerance, acts: self.acts }));
                    earliest = earliest.into_iter().chain(when).min();
                    tolerated |= matches!(tolerance, Tolerance::Forever(_));
                } else if let Some(when) = when
                    && other.is_none_or(|(known, _)| when < known)
                {
                    other = Some((when, reason(What::Other { taint, source, tolerance })));
                }
            });
        });
        if because.is_empty() {
            return None;
        }
        let outcome = match (earliest, other) {
            (Some(_), _) if !self.acts => Outcome::Unaffected,
            (Some(own), other) => {
                let when = own.min(other.map_or(own, |(when, _)| when));
                because.extend(other.filter(|(when, _)| *when < own).map(|(_, because)| because));
                earliest = Some(when);
                if when <= now { Outcome::EvictedNow } else { Outcome::EvictedAt(eviction::timestamp(when)) }
            }
            (None, other) => {
                because.extend(other.filter(|_| self.acts).map(|(_, because)| because));
                if tolerated { Outcome::Tolerated } else { Outcome::Unaffected }
            }
        };
        let impact = PodImpact {
            namespace: &pod.namespace,
            name: &pod.name,
            owner: pod.owner.as_deref(),
            outcome,
            because,
            record: pod,
        };
        // What is overdue goes at once, in the order of names.
        Some((earliest.unwrap_or(now).max(now), impact))
    }

    /// Spreads the evictions as draft r2's limiter would.
    fn pace(&self, pods: &mut [(Moment, PodImpact<'s>)], now: Moment, rate: i64) {
        if !self.acts {
            return;
        }
        let evicted = pods.iter().filter(|(_, pod)| pod.outcome.is_evicted()).count();
        let mut moments: Vec<Moment> = pods.iter().take(evicted).map(|(when, _)| *when).collect();
        timeline::paced(&mut moments, now, rate);
        for ((when, pod), moment) in pods.iter_mut().zip(moments) {
            *when = moment;
            if moment > now {
                pod.outcome = Outcome::EvictedAt(eviction::timestamp(moment));
            }
        }
    }
}

/// The pools in which the eviction controller of that release looks for a rule's devices.
pub(super) fn pools<'s>(
    snapshot: &'s Snapshot,
    rule: &Rule,
    profile: &Profile,
) -> impl Iterator<Item = &'s Pool> {
    let (driver, pool) = match &rule.selector {
        Some(selector) => (selector.driver.clone(), selector.pool.clone()),
        None => (None, None),
    };
    let selects = rule.selector.is_some() || profile.rules_act_through_slices;
    let drivers = selects.then(|| named(snapshot.drivers(), driver.as_ref()));
    let slots = drivers.into_iter().flatten().flat_map(move |pools| named(pools, pool.as_ref()));
    slots.filter_map(|slot| snapshot.pool(*slot))
}

/// The entry of a name, or all of them.
fn named<'m, T>(map: &'m BTreeMap<Name, T>, name: Option<&Name>) -> impl Iterator<Item = &'m T> + use<'m, T> {
    let (one, all) = match name {
        Some(name) => (map.get(name), None),
        None => (None, Some(map.values())),
    };
    one.into_iter().chain(all.into_iter().flatten())
}

/// What was met before.
struct Seen {
    claims: Vec<bool>,
    pods: Vec<bool>,
}

/// True the first time.
fn first(seen: &mut [bool], slot: Slot) -> bool {
    seen.get_mut(slot.index()).is_some_and(|seen| !std::mem::replace(seen, true))
}
