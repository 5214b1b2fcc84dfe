//! TolerationPolicy: which tolerations the claims of a namespace may have, and which they get.
//!
//! For each action by itself: if a policy with an `allow` list binds the user, every toleration must be covered by
//! the union of what all matching policies of that action allow; and no deny entry of a policy that binds may
//! match. Default tolerations are always allowed, so that an allow list does not deny what the policy adds.
//!
//! Invariant: an object costs at most [`MAX_COMPARED_TOLERATIONS`] tolerations times the entries, however many it has.

use super::entries::{CommonEntryFields, TolerationEntry};
use super::kind::{PolicySpec, policies_of_kind};
use super::schema::PolicyFaults;
use super::{MAX_DENYING_POLICIES, MatchedPolicy, Policy, ViolationReport};
use crate::admission::DecodedAttributes;
use crate::rules::FindingLevel;
use crate::rules::table::POLICY_TOLERATION;
use crate::site::{TaintTolerationOrSelector, visit_taints_tolerations_and_selectors};
use crate::tolerance::coverage::{
    EffectSet, KeyPattern, PolicyEntry, Shortfall, ToleratedTaints, nearest_entry, uncovered_effects,
};
use tollgate_api::profile::Profile;
use tollgate_api::view::Toleration;
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_formats::gotime::{self, Timestamp};

mod added;
mod compared;
mod listed;
mod written;

pub(super) use added::default_toleration_edits;
pub(super) use compared::{DefaultTolerationsToCompare, TolerationPoliciesToCompare};
pub use listed::{ListedEntry, ListedTolerationEntries};
pub(super) use written::WrittenToleration;
use written::allowed_instead;

/// Maximum number of tolerations of an object that are compared with entries: as many as a claim that an API
/// server accepts (32 requests with 8 alternatives each) has within the documented limit of 16. An object
/// with more violates the policies.
const MAX_COMPARED_TOLERATIONS: usize = 32 * 8 * 16;

/// The compiled `spec` of a TolerationPolicy, without the fields that all kinds of policies share.
#[derive(Debug)]
pub(super) struct TolerationPolicy {
    allow: Option<Vec<TolerationEntry>>,
    pub(super) deny: Vec<TolerationEntry>,
    /// True if tolerations must name a key.
    require_key: bool,
    defaults: Vec<WrittenToleration>,
    /// The defaults as allow entries.
    default_entries: Vec<TolerationEntry>,
}

impl TolerationPolicy {
    /// Compiles the `spec` of a TolerationPolicy, and reports errors.
    pub(super) fn read(spec: Value<'_>, at: &Path<'_>, faults: &mut PolicyFaults) -> TolerationPolicy {
        let allow = spec.get("allow");
        let require_key = spec.get("requireKey").bool().unwrap_or_default();
        let defaults_at = at.field("defaults");
        let mut defaults = Vec::new();
        let mut default_entries = Vec::new();
        let deny = TolerationEntry::read_all(spec.get("deny"), "deny");
        for (index, item) in spec.get("defaults").items().enumerate() {
            let default = WrittenToleration::read_with_default_operator(item);
            let default_at = defaults_at.index(index);
            if default.has_useless_seconds() {
                faults.report(&default_at.field("tolerationSeconds"), "applies only to `effect: NoExecute`");
            }
            if default.has_useless_value() {
                faults.report(&default_at.field("value"), "must be empty for `operator: Exists`");
            }
            if require_key && default.key().is_none() {
                faults.report(
                    &default_at,
                    "this policy denies its own default: set `key`, or remove `requireKey`",
                );
            }
            if let Some(grant) = deny
                .iter()
                .find(|grant| grant.entry.intersects(&default.tolerated_taints_with_duration(false)))
            {
                faults.report(
                    &default_at,
                    format!(
                        "this policy denies its own default: the toleration matches {}",
                        grant.terms.location
                    ),
                );
            }
            default_entries.push(allow_entry_for_default(&default, index));
            defaults.push(default);
        }
        TolerationPolicy {
            allow: allow.exists().then(|| TolerationEntry::read_all(allow, "allow")),
            deny,
            require_key,
            defaults,
            default_entries,
        }
    }

    /// Returns the entries of `allow`, and those derived from `defaults`: a policy allows its default tolerations, even
    /// without an allow list.
    pub(super) fn allow_and_default_entries(&self) -> impl Iterator<Item = &TolerationEntry> + Clone {
        self.allow.iter().flatten().chain(&self.default_entries)
    }

    /// True if the policy has an allow list, so that it denies every other toleration.
    pub(super) fn has_allow_list(&self) -> bool {
        self.allow.is_some()
    }

    /// True if the policy adds tolerations to new claims.
    pub(super) fn has_default_tolerations(&self) -> bool {
        !self.defaults.is_empty()
    }
}

/// Returns an allow entry for a default toleration.
fn allow_entry_for_default(default: &WrittenToleration, index: usize) -> TolerationEntry {
    let tolerated = default.tolerated_taints_with_duration(false);
    let keys = tolerated.key.map_or(KeyPattern::Any, |key| KeyPattern::Exact(key.into()));
    let terms = CommonEntryFields {
        location: format!("defaults[{index}]").into(),
        values: tolerated.value.map(|value| vec![value.into()]),
        effects: tolerated.effects,
        reason: None,
        expires: None,
    };
    TolerationEntry::new(keys, tolerated.seconds, terms)
}

/// True if the object has a toleration.
pub(super) fn has_tolerations(admission: &DecodedAttributes<'_>) -> bool {
    let mut found = false;
    visit_taints_tolerations_and_selectors(admission, &mut |site| {
        found |= matches!(site, TaintTolerationOrSelector::Toleration { .. })
    });
    found
}

/// Checks the tolerations of an object against the TolerationPolicies that match.
pub(super) fn check_tolerations(policies: &[MatchedPolicy<'_>], report: &mut ViolationReport<'_>) {
    let (admission, profile) = (report.admission, report.context.profile);
    let group = |level| TolerationEntryGroup::from_policies(policies, level, admission.now.time);
    let groups: Vec<_> = FindingLevel::ALL.into_iter().rev().filter_map(group).collect();
    if groups.is_empty() {
        return;
    }
    let mut count = 0;
    visit_taints_tolerations_and_selectors(admission, &mut |site| {
        let TaintTolerationOrSelector::Toleration { at, toleration } = site else { return };
        count += 1;
        if count <= MAX_COMPARED_TOLERATIONS {
            let checked = TolerationToCheck { at, toleration, admission, profile };
            for group in &groups {
                group.check_toleration(&checked, report);
            }
        }
    });
    for group in groups.iter().filter(|_| count > MAX_COMPARED_TOLERATIONS) {
        report.report_excess(
            group.speaker,
            POLICY_TOLERATION,
            "tolerations",
            count,
            MAX_COMPARED_TOLERATIONS,
        );
    }
}

/// A toleration that is being checked, with the request that contains it.
struct TolerationToCheck<'c> {
    at: &'c Path<'c>,
    toleration: Toleration<'c>,
    admission: &'c DecodedAttributes<'c>,
    profile: &'c Profile,
}

impl TolerationToCheck<'_> {
    /// Returns `toleration {key: a/b} in namespace "ml"`.
    fn describe(&self) -> String {
        let namespace = self.admission.effective_namespace_if_namespaced().unwrap_or_default();
        format!(
            "toleration {} in namespace {namespace:?}",
            WrittenToleration::from_toleration(self.toleration)
        )
    }

    /// Returns the short text for a webhook warning, such as `toleration of a/b is not allowed`.
    fn not_allowed_text(&self) -> impl std::fmt::Display {
        let key = match self.toleration.key() {
            "" => "all keys",
            key => key,
        };
        std::fmt::from_fn(move |f| write!(f, "toleration of {key} is not allowed"))
    }
}

/// Returns the taints that a toleration matches, and for how long: forever in releases that ignore the seconds of a
/// toleration without an effect.
fn tolerated_taints<'d>(toleration: Toleration<'d>, profile: &Profile) -> ToleratedTaints<'d> {
    let written = ToleratedTaints::from_toleration(toleration);
    let ignores_seconds = profile.empty_effect_stops_eviction && toleration.effect().is_empty();
    ToleratedTaints { seconds: written.seconds.filter(|_| !ignores_seconds), ..written }
}

/// An entry of a TolerationPolicy, with the policy that contains it.
type EntryWithPolicy<'s> = (&'s Policy, &'s TolerationEntry);

/// The entries of all TolerationPolicies with the same action that match a request, which together decide about each
/// toleration.
struct TolerationEntryGroup<'s> {
    /// The first policy in force that can deny something; messages about the object as a whole name it.
    speaker: &'s Policy,
    /// The first policy in force with an allow list that restricts the user; `None` if every toleration is allowed.
    restricting: Option<&'s Policy>,
    /// The first policy in force with `requireKey` that applies to the user.
    requires_key: Option<&'s Policy>,
    allowed: Vec<EntryWithPolicy<'s>>,
    expired: Vec<EntryWithPolicy<'s>>,
    /// Deny entries, grouped by policy.
    denied: Vec<EntryWithPolicy<'s>>,
    now: Option<Timestamp>,
}

impl<'s> TolerationEntryGroup<'s> {
    /// Collects the entries of the policies with that action; `None` if none of them can deny a toleration.
    fn from_policies(
        policies: &[MatchedPolicy<'s>],
        level: FindingLevel,
        now: Option<Timestamp>,
    ) -> Option<TolerationEntryGroup<'s>> {
        let ours = || {
            policies_of_kind(policies, PolicySpec::toleration)
                .filter(move |(matched, _)| matched.policy.action == level)
        };
        let binding = || {
            let binding = ours().filter(|(matched, _)| matched.binds);
            binding.map(|(matched, policy)| (matched.policy, policy))
        };
        // Before it is in force, a policy restricts nothing, but what it allows counts: a warning must be about what
        // will be denied.
        let in_force_since = |policy: &&'s Policy| policy.future_deny_time(now);
        let restricting = binding().filter(|(_, spec)| spec.has_allow_list()).map(|(policy, _)| policy);
        let restricting = restricting.min_by_key(in_force_since);
        // Without a clock, a deny entry does not expire.
        let is_live = |grant: &&TolerationEntry| now.is_none() || !grant.terms.is_expired(now);
        let denied: Vec<EntryWithPolicy<'s>> = binding()
            .flat_map(|(policy, spec)| spec.deny.iter().filter(is_live).map(move |grant| (policy, grant)))
            .collect();
        let keyed = binding().filter(|(_, spec)| spec.require_key).map(|(policy, _)| policy);
        let requires_key = keyed.min_by_key(in_force_since);
        let denying = denied.iter().map(|(policy, _)| *policy).min_by_key(in_force_since);
        let speakers = restricting.into_iter().chain(denying).chain(requires_key);
        let speaker = speakers.min_by_key(in_force_since)?;
        let (expired, allowed) = ours()
            .flat_map(|(matched, spec)| {
                spec.allow_and_default_entries().map(move |grant| (matched.policy, grant))
            })
            .partition(|(_, grant)| grant.terms.is_expired(now));
        Some(TolerationEntryGroup { speaker, restricting, requires_key, allowed, expired, denied, now })
    }

    /// Returns the effects for which no allow entry covers these taints; empty if all are covered.
    fn uncovered_effects(&self, taints: &ToleratedTaints<'_>) -> EffectSet {
        uncovered_effects(taints, strip_policies_from_entries(&self.allowed))
    }

    /// Returns the allow entry that comes nearest to covering these taints, and what it lacks.
    fn nearest_allow_entry(&self, taints: &ToleratedTaints<'_>) -> Option<(EntryWithPolicy<'s>, Shortfall)> {
        let missing = self.uncovered_effects(taints);
        let missing = if missing.is_empty() { taints.effects } else { missing };
        let (index, shortfall) = nearest_entry(taints, missing, strip_policies_from_entries(&self.allowed))?;
        self.allowed.get(index).map(|grant| (*grant, shortfall))
    }

    /// Returns the first entry of each policy that denies to tolerate these taints, at most [`MAX_DENYING_POLICIES`].
    fn first_denying_entry_per_policy(
        &self,
        taints: &ToleratedTaints<'_>,
    ) -> impl Iterator<Item = EntryWithPolicy<'s>> {
        let by_policy = self.denied.chunk_by(|(one, _), (next, _)| std::ptr::eq(*one, *next));
        by_policy
            .filter_map(|grants| grants.iter().find(|(_, grant)| grant.entry.intersects(taints)))
            .take(MAX_DENYING_POLICIES)
            .copied()
    }

    fn is_allowed(&self, taints: &ToleratedTaints<'_>) -> bool {
        (self.restricting.is_none() || self.uncovered_effects(taints).is_empty())
            && (self.requires_key.is_none() || taints.key.is_some())
            && self.first_denying_entry_per_policy(taints).next().is_none()
    }

    fn check_toleration(&self, checked: &TolerationToCheck<'_>, report: &mut ViolationReport<'_>) {
        let tolerated = tolerated_taints(checked.toleration, checked.profile);
        self.report_denying_policies(checked, &tolerated, report);
        if tolerated.key.is_none() {
            self.report_missing_key_if_required(checked, report);
        }
        self.check_allow_entries(checked, &tolerated, report);
    }

    /// Reports the policies with a deny entry that matches a toleration, each once and for its first such entry; at most
    /// [`MAX_DENYING_POLICIES`].
    fn report_denying_policies(
        &self,
        checked: &TolerationToCheck<'_>,
        tolerated: &ToleratedTaints<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        for (policy, grant) in self.first_denying_entry_per_policy(tolerated) {
            let explains = report.should_explain_next();
            let detail = || {
                let (entry, offered) = if explains {
                    (grant.describe_with_location(), self.allowed_instead_text(checked))
                } else {
                    (grant.terms.location.to_string(), String::new())
                };
                let (toleration, policy) = (checked.describe(), policy.describe());
                format!("{toleration} is denied: it matches taints denied by {entry} in {policy}{offered}")
            };
            let reason = grant.terms.reason.as_deref();
            report.report(policy, POLICY_TOLERATION, checked.at).forbidden(detail).with_warning_texts(
                policy,
                checked.not_allowed_text(),
                reason,
            );
        }
    }

    /// Reports a toleration without a key, if a policy requires one.
    fn report_missing_key_if_required(
        &self,
        checked: &TolerationToCheck<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let Some(policy) = self.requires_key else { return };
        let short = "toleration without a key matches every taint: set `key`";
        let explains = report.should_explain_next();
        let detail = || {
            let offered = if explains { self.allowed_instead_text(checked) } else { String::new() };
            let (toleration, policy) = (checked.describe(), policy.describe());
            format!(
                "{toleration} is not allowed: it has no key, so it matches the taints of all keys: set `key`; required by {policy}{offered}"
            )
        };
        report
            .report(policy, POLICY_TOLERATION, checked.at)
            .forbidden(detail)
            .with_warning_texts(policy, short, None);
    }

    /// Reports a toleration that the allow entries do not cover, if a policy has an allow list.
    fn check_allow_entries(
        &self,
        checked: &TolerationToCheck<'_>,
        tolerated: &ToleratedTaints<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let Some(restricting) = self.restricting else { return };
        let missing = self.uncovered_effects(tolerated);
        if missing.is_empty() {
            return;
        }
        let was_covered = |grant: &&EntryWithPolicy<'s>| {
            !grant.1.entry.covered_effects(tolerated).intersection(missing).is_empty()
        };
        let lapsed = self.expired.iter().find(was_covered).copied();
        // Comparing with all entries once more is for the explanation only.
        let explains = report.should_explain_next();
        let near = if explains { self.nearest_allow_entry(tolerated) } else { None };
        let policy = lapsed.or(near.map(|(grant, _)| grant)).map_or(restricting, |(policy, _)| policy);
        let detail = || {
            let why = match (lapsed, near) {
                _ if !explains => {
                    return format!("{} is not allowed by {}", checked.describe(), policy.describe());
                }
                (Some((_, grant)), _) => {
                    self.describe_expired_entry(grant, &format!(" in {}", policy.describe()))
                }
                (None, Some(((_, grant), shortfall))) => {
                    let lacks = describe_shortfall(shortfall, tolerated, grant);
                    let (entry, policy) = (grant.describe_with_location(), policy.describe());
                    format!("the closest entry, {entry} in {policy}, {lacks}")
                }
                (None, None) => {
                    let expired =
                        self.nearest_expired_entry_note(tolerated, missing, policy).unwrap_or_default();
                    format!("{} allows no tolerations in this namespace{expired}", policy.describe())
                }
            };
            format!("{} is not allowed: {why}{}", checked.describe(), self.allowed_instead_text(checked))
        };
        let short = checked.not_allowed_text();
        report
            .report(policy, POLICY_TOLERATION, checked.at)
            .with_level_of(restricting)
            .forbidden(detail)
            .with_warning_texts(policy, short, None);
    }

    /// Returns `; allowed instead: …` with tolerations to paste, from the nearest entries; empty if none is near.
    fn allowed_instead_text(&self, checked: &TolerationToCheck<'_>) -> String {
        let near = allowed_instead(
            &WrittenToleration::from_toleration(checked.toleration),
            checked.profile,
            |taints| self.nearest_allow_entry(taints).map(|((_, grant), _)| &grant.entry),
            |taints| self.is_allowed(taints),
        );
        let texts: Vec<String> = near.iter().map(ToString::to_string).collect();
        if texts.is_empty() { String::new() } else { format!("; allowed instead: {}", texts.join(" and ")) }
    }

    /// Returns an expired entry for messages: `allow[0] {key: a/b} expired at 2026-01-02T00:00:00Z`; `of` follows the
    /// entry.
    fn describe_expired_entry(&self, grant: &TolerationEntry, of: &str) -> String {
        let end = grant.terms.expired_at(self.now).map(gotime::rfc3339).unwrap_or_default();
        format!("{}{of} expired at {end}", grant.describe_with_location())
    }

    /// Returns what the nearest expired entry allowed, until when and why; `None` if no entry has expired.
    fn nearest_expired_entry_note(
        &self,
        tolerated: &ToleratedTaints<'_>,
        missing: EffectSet,
        policy: &Policy,
    ) -> Option<String> {
        let (index, _) = nearest_entry(tolerated, missing, strip_policies_from_entries(&self.expired))?;
        let (of, grant) = *self.expired.get(index)?;
        let of = if std::ptr::eq(of, policy) { String::new() } else { format!(" in {}", of.describe()) };
        Some(format!("; {}", self.describe_expired_entry(grant, &of)))
    }
}

fn strip_policies_from_entries<'g>(
    grants: &'g [EntryWithPolicy<'_>],
) -> impl Iterator<Item = &'g PolicyEntry> {
    grants.iter().map(|(_, grant)| &grant.entry)
}

/// Returns why an entry does not cover a toleration, as a phrase about the entry.
fn describe_shortfall(
    shortfall: Shortfall,
    tolerated: &ToleratedTaints<'_>,
    grant: &TolerationEntry,
) -> String {
    let mut lacks = Vec::new();
    if shortfall.keys {
        lacks.push(match tolerated.key {
            Some(key) => format!("does not allow key {key}"),
            None => "does not allow every key, but a toleration without a key matches all of them".to_owned(),
        });
    }
    if shortfall.values {
        lacks.push(match tolerated.value {
            Some(value) => format!("does not allow value {value:?}"),
            None => "does not allow every value, but `operator: Exists` matches all of them".to_owned(),
        });
    }
    if !shortfall.effects.is_empty() {
        let names: Vec<&str> = shortfall.effects.names().collect();
        lacks.push(match names.as_slice() {
            [] => "does not allow an effect that Kubernetes does not have".to_owned(),
            names => format!("does not allow effect {}", names.join(" and ")),
        });
    }
    if let Some(limit) = shortfall.seconds.and(grant.entry.seconds) {
        let effect = if tolerated.effects == EffectSet::KNOWN { "`effect: NoExecute` and " } else { "" };
        // Only if nothing else is lacking, fewer seconds are enough.
        let remedy = format!(": set {effect}`tolerationSeconds` to {limit} or less");
        lacks.push(format!("limits NoExecute to {limit}s{}", if lacks.is_empty() { &remedy } else { "" }));
    }
    lacks.join(", and ")
}
