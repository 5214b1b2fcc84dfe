//! Semantic differences between two sets of policies: which requests does only one of them refuse?
//!
//! Policies compare requests with finitely many patterns, values, numbers and times, so finitely many representative
//! requests stand for all: namespaces, labels and users ([`contexts`]), moments in time, and what an object contains
//! (the [`ComparedAspect`]s, which the kinds of policies implement). Both sets are asked about each of them, so how a
//! policy is written does not matter. Expressions and JSON Schemas are compared by their canonical texts; a
//! request can satisfy or violate each of them independently of the others.
//!
//! Invariant: what cannot be decided is [`ChangeEffect::Unknown`], never [`ChangeEffect::None`].

mod aspects;
mod contexts;
mod expressions;
mod fields;
mod names;
mod schemas;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

pub use aspects::verdict_word;
pub(super) use aspects::{ComparedAspect, SampleContext, sample_drivers, sample_keys};
use aspects::{FoundDifference, compare_aspects};
use contexts::{RequestGroup, SampleRequests};
pub use fields::FieldChange;
pub(super) use schemas::CanonicalSchemas;

use super::deadlines::entry_fields_and_keys;
use super::{MatchedPolicy, Policy, PolicySet};
use crate::engine::LoadedNamespaces;
use tollgate_document::doc;
use tollgate_formats::gotime::{self, Timestamp};

/// Maximum number of combinations of namespaces, users, conditions and times that are compared.
const MAX_COMBINATIONS: usize = 100_000;
/// Maximum number of namespaces that are named as examples.
const MAX_EXAMPLES: usize = 3;

tollgate_formats::named_enum! {
    /// The effect of a change on the set of allowed requests.
    #[derive(PartialOrd, Ord)]
    pub enum ChangeEffect {
        /// The same requests are allowed.
        None = "none",
        /// Fewer requests are allowed.
        Stricter = "stricter",
        /// It cannot be decided whether requests are allowed.
        Unknown = "unknown",
        /// More requests are allowed.
        Wider = "wider",
        /// Some additional requests are allowed, and some are no longer allowed.
        Both = "both",
    }
}

impl ChangeEffect {
    /// Combines two effects into the effect of both changes together: wider and stricter is both, and anything with an
    /// unknown effect is unknown. The order of several effects does not matter.
    #[must_use]
    pub fn combined_with(self, other: ChangeEffect) -> ChangeEffect {
        match (self.min(other), self.max(other)) {
            (ChangeEffect::Stricter, ChangeEffect::Wider) => ChangeEffect::Both,
            (ChangeEffect::Unknown, _) => ChangeEffect::Unknown,
            (_, stronger) => stronger,
        }
    }

    /// True if it may be that more requests are allowed.
    pub fn may_widen(self) -> bool {
        matches!(self, ChangeEffect::Wider | ChangeEffect::Both | ChangeEffect::Unknown)
    }

    /// True if it may be that fewer requests are allowed.
    pub fn may_tighten(self) -> bool {
        matches!(self, ChangeEffect::Stricter | ChangeEffect::Both | ChangeEffect::Unknown)
    }
}

tollgate_formats::named_enum! {
    /// The kind of change to a policy.
    pub enum ChangeKind {
        Added = "added",
        Removed = "removed",
        Changed = "changed",
    }
}

/// A policy that is added, removed or changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyChange {
    /// Kind of the policy, such as `TaintRulePolicy`.
    pub kind: &'static str,
    pub name: String,
    pub change: ChangeKind,
    /// Location of the policy in the new set, or in the old set if it was removed.
    pub source: String,
    /// The effect of the change, together with all other changes.
    pub effect: ChangeEffect,
    /// The fields that change; empty if the policy is added or removed.
    pub fields: Vec<FieldChange>,
}

/// Requests that the two policy sets treat differently, with example namespaces and users.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerdictDifference {
    pub effect: ChangeEffect,
    /// The policies whose change makes the difference: `TolerationPolicy research`.
    pub policies: Vec<String>,
    /// Description of the affected requests.
    pub what: String,
    /// The result for these requests under the old set, such as `denied`.
    pub before: &'static str,
    /// The result for these requests under the new set.
    pub after: &'static str,
    /// Example namespaces for the difference; empty if it applies in all, or if the objects are
    /// cluster-scoped.
    pub namespaces: Vec<String>,
    /// An example user for the difference; `None` if it applies to users whom no policy names.
    pub user: Option<String>,
    /// The affected kinds of objects.
    pub resources: Vec<&'static str>,
    /// The operation, if the difference applies to only one.
    pub operation: Option<&'static str>,
    /// The time from which the difference applies, if not immediately.
    pub from: Option<String>,
}

/// The result of comparing two policy sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyDiff {
    /// The effect of all changes together.
    pub effect: ChangeEffect,
    pub changes: Vec<PolicyChange>,
    pub differences: Vec<VerdictDifference>,
    /// Reasons why the comparison is incomplete; empty if it is complete.
    pub incomplete: Vec<String>,
}

/// Returns the meaning of a policy as a text: its kind, its spec as JSON and its schema files. Policies with equal
/// texts mean the same.
fn comparison_text(policy: &Policy) -> String {
    let spec = doc::parse(&policy.json).map(|parsed| parsed.root().get("spec").to_json());
    format!("{} {} {:?}", policy.spec.kind().name(), spec.unwrap_or_default(), policy.schema_files)
}

/// Returns the times at which the meaning of a policy changes by itself: `enforceFrom`, and when its entries expire.
fn enforcement_and_expiry_times(policy: &Policy) -> impl Iterator<Item = Timestamp> {
    let expiries = entry_fields_and_keys(&policy.spec).into_iter().filter_map(|(terms, _)| terms.expires);
    expiries.chain(policy.enforce_from)
}

impl PolicySet {
    /// Returns what `new` allows and refuses compared with this set, from `now` on. If namespaces are given, only these
    /// are compared; otherwise all that can exist.
    pub fn diff(&self, new: &PolicySet, namespaces: Option<&LoadedNamespaces>, now: Timestamp) -> PolicyDiff {
        let mut comparison = PolicySetComparison::new(self, new, now);
        for policy in self.policies.iter().chain(&new.policies).filter(|policy| policy.broken.is_some()) {
            comparison.incomplete.insert(format!("{} cannot be evaluated", policy.title()));
        }
        let contexts = SampleRequests::from_policies(&self.policies, &new.policies, namespaces);
        comparison.incomplete.extend(contexts.incomplete.iter().cloned());
        for group in &contexts.groups {
            comparison.compare_group(group, &contexts);
        }
        comparison.into_diff(contexts.namespaces.len())
    }
}

/// Where a difference occurs: for which policies, namespaces, users, kinds and operations, and from when on.
#[derive(Default)]
struct DifferenceOccurrences {
    policies: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    /// The simplest user for whom the difference was found: index and description.
    user: Option<(usize, Option<String>)>,
    resources: BTreeSet<&'static str>,
    operations: BTreeSet<&'static str>,
    from: Option<Timestamp>,
}

/// What is known while two policy sets are compared, and the differences found so far.
struct PolicySetComparison<'s> {
    old: &'s PolicySet,
    new: &'s PolicySet,
    now: Timestamp,
    times: Vec<Timestamp>,
    /// Titles of policies that differ or are in only one set.
    changed: BTreeSet<String>,
    /// For the policies of both sets, in order: policies with equal meaning have the same number.
    meanings: Vec<usize>,
    found: BTreeMap<FoundDifference, DifferenceOccurrences>,
    /// Results of earlier comparisons, because many groups of requests have the same policies.
    known: BTreeMap<SampleContextKey, Vec<(FoundDifference, Vec<String>)>>,
    combinations: usize,
    incomplete: BTreeSet<String>,
}

/// Everything that the comparison of two sets depends on for one combination: the policies that match, the time, the
/// object and the user.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SampleContextKey {
    /// Indices of the policies that apply, and whether they bind the user.
    matched: Vec<(usize, bool)>,
    time: usize,
    operation: &'static str,
    resource: &'static str,
    acknowledges: Vec<bool>,
}

impl<'s> PolicySetComparison<'s> {
    fn new(old: &'s PolicySet, new: &'s PolicySet, now: Timestamp) -> PolicySetComparison<'s> {
        let by_title = |set: &'s PolicySet| -> BTreeMap<String, String> {
            set.policies.iter().map(|policy| (policy.title(), comparison_text(policy))).collect()
        };
        let (before, after) = (by_title(old), by_title(new));
        let all = before.keys().chain(after.keys()).cloned();
        let changed = all.filter(|title| before.get(title) != after.get(title)).collect();
        let both = || old.policies.iter().chain(&new.policies);
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let meanings = both()
            .map(|policy| {
                let next = numbers.len();
                *numbers.entry(comparison_text(policy)).or_insert(next)
            })
            .collect();
        let later = both().flat_map(|policy| enforcement_and_expiry_times(policy)).filter(|time| *time > now);
        let times: BTreeSet<Timestamp> = later.chain([now]).collect();
        PolicySetComparison {
            old,
            new,
            now,
            times: times.into_iter().collect(),
            changed,
            meanings,
            found: BTreeMap::new(),
            known: BTreeMap::new(),
            combinations: 0,
            incomplete: BTreeSet::new(),
        }
    }

    /// Compares the sets for one group of requests: for each user, each outcome of match conditions, at each time.
    fn compare_group(&mut self, group: &RequestGroup, contexts: &SampleRequests) {
        let conditions = |index: &usize| contexts.conditions.get(*index).into_iter().flatten().cloned();
        let count = self.old.policies.len();
        let side = |old: bool| -> BTreeSet<String> {
            let ours = group.applying.iter().filter(|index| (**index < count) == old);
            ours.flat_map(conditions).collect()
        };
        let (assignments, is_complete) = expressions::condition_combinations(&side(true), &side(false));
        if !is_complete {
            self.incomplete.insert("too many match conditions apply to the same requests".to_owned());
        }
        for (number, user) in contexts.users.get(&group.kind).into_iter().flatten().enumerate() {
            for (holding, is_certain) in &assignments {
                let applies =
                    |index: &&usize| conditions(index).all(|condition| holding.contains(&condition));
                let matched: Vec<(usize, bool)> = group
                    .applying
                    .iter()
                    .filter(applies)
                    .map(|index| (*index, !user.exempt.contains(index)))
                    .collect();
                if self.both_sets_apply_equal_policies(&matched) {
                    continue;
                }
                for time in 0..self.times.len() {
                    self.combinations += 1;
                    if self.combinations > MAX_COMBINATIONS {
                        self.incomplete.insert("too many combinations of policies".to_owned());
                        return;
                    }
                    let key = SampleContextKey {
                        matched: matched.clone(),
                        time,
                        operation: group.operation.name(),
                        resource: group.kind.name(),
                        acknowledges: user.acknowledges.clone(),
                    };
                    let results = match self.known.get(&key) {
                        Some(known) => known.clone(),
                        None => self.compare_policies(&key, group, &user.json),
                    };
                    self.known.entry(key).or_insert_with(|| results.clone());
                    for (found, policies) in results {
                        // Such requests may not exist.
                        let effect = if *is_certain { found.effect } else { ChangeEffect::Unknown };
                        let at = self.found.entry(FoundDifference { effect, ..found }).or_default();
                        at.policies.extend(policies);
                        at.namespaces.extend(group.namespaces.iter().cloned());
                        at.resources.insert(group.kind.name());
                        at.operations.insert(group.operation.name());
                        if at.user.as_ref().is_none_or(|(known, _)| *known > number) {
                            at.user = Some((number, user.title.clone()));
                        }
                        at.from = at.from.into_iter().chain(self.times.get(time).copied()).min();
                    }
                }
            }
        }
    }

    /// True if the policies of both sets that match mean the same, and so do the exemptions from them.
    fn both_sets_apply_equal_policies(&self, matched: &[(usize, bool)]) -> bool {
        let count = self.old.policies.len();
        let side = |old: bool| -> BTreeSet<(Option<&usize>, bool)> {
            let ours = matched.iter().filter(|(index, _)| (*index < count) == old);
            ours.map(|(index, binds)| (self.meanings.get(*index), *binds)).collect()
        };
        side(true) == side(false)
    }

    /// Returns the differences between the matching policies of both sets, for one combination that was not compared
    /// before, each with the policies that cause it.
    fn compare_policies(
        &mut self,
        key: &SampleContextKey,
        group: &RequestGroup,
        user: &str,
    ) -> Vec<(FoundDifference, Vec<String>)> {
        let (Ok(user), Some(now)) = (doc::parse(user), self.times.get(key.time)) else { return Vec::new() };
        let count = self.old.policies.len();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (index, binds) in &key.matched {
            let (list, policy) = match index.checked_sub(count) {
                None => (&mut before, self.old.policies.get(*index)),
                Some(index) => (&mut after, self.new.policies.get(index)),
            };
            list.extend(policy.map(|policy| MatchedPolicy { policy, binds: *binds }));
        }
        let circumstances = SampleContext {
            kind: group.kind,
            operation: group.operation,
            user: user.root(),
            now: *now,
            incomplete: Cell::new(false),
        };
        let results = compare_aspects(&before, &after, &circumstances, &self.changed);
        if circumstances.incomplete.get() {
            self.incomplete.insert("the patterns of drivers or keys have too many combinations".to_owned());
        }
        results
    }

    /// Adds differences in `failurePolicy`, which no sample request shows.
    fn compare_failure_policies(&mut self) {
        for old in &self.old.policies {
            let title = old.title();
            let Some(new) = self.new.policies.iter().find(|new| new.title() == title) else { continue };
            let (before, after) = (old.expressions.ignores_failures, new.expressions.ignores_failures);
            let is_known = self.found.iter().any(|(found, at)| {
                found.effect != ChangeEffect::None && at.policies.contains(&title) && found.is_about_failures
            });
            if before != after && !is_known {
                let result = |ignores: bool| if ignores { "allowed" } else { "refused" };
                let found = FoundDifference {
                    effect: if after { ChangeEffect::Wider } else { ChangeEffect::Stricter },
                    what: "requests to which the policy applies, if it cannot be evaluated".to_owned(),
                    before: result(before),
                    after: result(after),
                    is_about_failures: false,
                };
                self.found.entry(found).or_default().policies.insert(title);
            }
        }
    }

    fn into_diff(mut self, namespaces: usize) -> PolicyDiff {
        self.compare_failure_policies();
        let mut changes = self.policy_changes();
        let mut differences = Vec::new();
        let mut effect = ChangeEffect::None;
        for (found, at) in std::mem::take(&mut self.found) {
            effect = effect.combined_with(found.effect);
            for change in &mut changes {
                if at.policies.contains(&format!("{} {}", change.kind, change.name)) {
                    change.effect = change.effect.combined_with(found.effect);
                }
            }
            let everywhere = at.namespaces.len() == namespaces;
            let operation = at.operations.first().copied().filter(|_| at.operations.len() == 1);
            differences.push(VerdictDifference {
                effect: found.effect,
                policies: at.policies.into_iter().collect(),
                what: found.what,
                before: found.before,
                after: found.after,
                namespaces: if everywhere { Vec::new() } else { shortest_names(at.namespaces) },
                user: at.user.and_then(|(_, title)| title),
                resources: at.resources.into_iter().collect(),
                operation,
                from: at.from.filter(|from| *from > self.now).map(gotime::rfc3339),
            });
        }
        effect = changes.iter().fold(effect, |all, change| all.combined_with(change.effect));
        if !self.incomplete.is_empty() {
            effect = effect.combined_with(ChangeEffect::Unknown);
        }
        differences.sort_by_key(|difference| std::cmp::Reverse(difference.effect));
        PolicyDiff { effect, changes, differences, incomplete: self.incomplete.into_iter().collect() }
    }

    /// Returns the policies that are added, removed or changed. The effect of a change is unknown at first if it is in
    /// a field that no sample request covers.
    fn policy_changes(&self) -> Vec<PolicyChange> {
        let find =
            |set: &'s PolicySet, wanted: &str| set.policies.iter().find(|policy| policy.title() == wanted);
        let all = self.old.policies.iter().chain(&self.new.policies).map(|policy| policy.title());
        let mut changes = Vec::new();
        for name in all.collect::<BTreeSet<String>>() {
            let (before, after) = (find(self.old, &name), find(self.new, &name));
            let fields = match (before, after) {
                (Some(before), Some(after)) => fields::changed_fields(before, after),
                _ => Vec::new(),
            };
            let (change, policy) = match (before, after) {
                (None, Some(after)) => (ChangeKind::Added, after),
                (Some(before), None) => (ChangeKind::Removed, before),
                (Some(_), Some(after)) if !fields.is_empty() => (ChangeKind::Changed, after),
                _ => continue,
            };
            let effect = if fields.iter().all(fields::is_covered_by_samples) {
                ChangeEffect::None
            } else {
                ChangeEffect::Unknown
            };
            changes.push(PolicyChange {
                kind: policy.spec.kind().name(),
                name: policy.name.to_string(),
                change,
                source: policy.source.to_string(),
                effect,
                fields,
            });
        }
        changes
    }
}

/// Returns a few of the names as examples, the shortest first.
fn shortest_names(names: BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_key(String::len);
    names.truncate(MAX_EXAMPLES);
    names
}
