//! TolerationPolicy: which tolerations the claims of a namespace may have, and which they get.
//!
//! For each action by itself: if a policy with an `allow` list binds the user, every toleration must be covered by
//! the union of what all matching policies of that action allow; and no deny entry of a policy that binds may
//! match. Default tolerations are always allowed, so that an allow list does not deny what the policy adds.

use super::entries::{EntryTerms, TolerationEntry};
use super::kind::PolicySpec;
use super::schema::PolicyFaults;
use super::{MatchedPolicy, ViolationReport};
use crate::admission::DecodedAttributes;
use crate::api::view::{Toleration, View as _};
use crate::defaults::Edit;
use crate::doc::{Change, New, Value, ValueKind};
use crate::field::Path;
use crate::finding::ErrorType;
use crate::names::{self, KeyWord, Unit};
use crate::profile::Profile;
use crate::rules::Level;
use crate::rules::policy::POLICY_TOLERATION;
use crate::site::{self, Site, walk};
use crate::tolerance::coverage::{
    Effects, KeyPattern, PolicyEntry, Shortfall, ToleratedTaints, nearest, uncovered,
};

mod written;

use written::{WrittenToleration, allowed_instead};

/// What a TolerationPolicy says.
#[derive(Debug)]
pub(super) struct TolerationPolicy {
    allow: Option<Vec<TolerationEntry>>,
    deny: Vec<TolerationEntry>,
    defaults: Vec<WrittenToleration>,
    /// The defaults as allow entries.
    default_entries: Vec<TolerationEntry>,
}

impl TolerationPolicy {
    /// Reads `spec`.
    pub(super) fn read(spec: Value<'_>, at: &Path<'_>, faults: &mut PolicyFaults) -> TolerationPolicy {
        let allow = spec.get("allow");
        let defaults_at = at.field("defaults");
        let mut defaults = Vec::new();
        let mut default_entries = Vec::new();
        let deny = TolerationEntry::read_all(spec.get("deny"), "deny", at, faults);
        for (index, item) in spec.get("defaults").items().enumerate() {
            let default = WrittenToleration::read(item);
            let default_at = defaults_at.index(index);
            if default.has_useless_value() {
                faults.report(&default_at.field("value"), "must be empty for `operator: Exists`");
            }
            report_malformed(&default, &default_at, faults);
            if let Some(grant) = deny.iter().find(|grant| grant.entry.intersects(&default.tolerated())) {
                faults.report(
                    &default_at,
                    format!(
                        "this policy denies its own default: the toleration matches {}",
                        grant.terms.location
                    ),
                );
            }
            default_entries.push(default_entry(&default, index));
            defaults.push(default);
        }
        TolerationPolicy {
            allow: allow.exists().then(|| TolerationEntry::read_all(allow, "allow", at, faults)),
            deny,
            defaults,
            default_entries,
        }
    }

    /// The allow entries, including the defaults.
    pub(super) fn allowed_entries(&self) -> impl Iterator<Item = &TolerationEntry> + Clone {
        self.allow.iter().flatten().chain(&self.default_entries)
    }

    /// True if it has an allow list.
    pub(super) fn has_allow_list(&self) -> bool {
        self.allow.is_some()
    }

    /// True if it adds tolerations.
    pub(super) fn has_defaults(&self) -> bool {
        !self.defaults.is_empty()
    }

    /// The deny entries.
    pub(super) fn denied_entries(&self) -> &[TolerationEntry] {
        &self.deny
    }
}

/// A default that the API server would refuse: every claim that gets it would be rejected.
fn report_malformed(default: &WrittenToleration, at: &Path<'_>, faults: &mut PolicyFaults) {
    let tolerated = default.tolerated();
    if let Some(key) = tolerated.key {
        names::label_key(key, Unit::Bytes, KeyWord::LabelKey, &mut |detail| {
            faults.report(&at.field("key"), format!("{key:?} is not a taint key: {detail}"));
        });
    }
    if let Some(value) = tolerated.value {
        names::label_value(value, Unit::Bytes, &mut |detail| {
            faults.report(&at.field("value"), format!("{value:?} is not a taint value: {detail}"));
        });
    }
}

/// A default as an allow entry.
fn default_entry(default: &WrittenToleration, index: usize) -> TolerationEntry {
    let tolerated = default.tolerated();
    let values = tolerated.value.map(|value| vec![value.into()]);
    let keys = tolerated.key.map_or(KeyPattern::Any, |key| KeyPattern::Exact(key.into()));
    let terms = EntryTerms {
        location: format!("defaults[{index}]").into(),
        values: values.clone(),
        effects: tolerated.effects,
        reason: None,
        expires: None,
    };
    TolerationEntry {
        entry: PolicyEntry { keys, values, effects: tolerated.effects, seconds: tolerated.seconds },
        terms,
    }
}

/// True if an object has some toleration.
pub(super) fn has_tolerations(admission: &DecodedAttributes<'_>) -> bool {
    let mut found = false;
    walk(admission, &mut |site| found |= matches!(site, Site::Toleration { .. }));
    found
}

/// Checks every toleration of an object.
pub(super) fn check(
    policies: &[MatchedPolicy<'_>],
    admission: &DecodedAttributes<'_>,
    report: &mut ViolationReport<'_>,
) {
    let ours = || policies.iter().filter(|matched| matches!(matched.policy.spec, PolicySpec::Toleration(_)));
    if ours().next().is_none() {
        return;
    }
    let groups = [Level::Deny, Level::Warn, Level::Audit]
        .map(|level| ours().filter(|matched| matched.policy.action == level).copied().collect::<Vec<_>>());
    walk(admission, &mut |site| {
        if let Site::Toleration { at, toleration } = site {
            for group in &groups {
                check_one(group, at, toleration, admission, report);
            }
        }
    });
}

fn check_one(
    policies: &[MatchedPolicy<'_>],
    at: &Path<'_>,
    toleration: Toleration<'_>,
    admission: &DecodedAttributes<'_>,
    report: &mut ViolationReport<'_>,
) {
    let tolerated = ToleratedTaints::of(toleration);
    let said = || {
        format!(
            "toleration {} in namespace {:?}",
            WrittenToleration::of(toleration),
            admission.object_namespace().unwrap_or_default()
        )
    };
    // Without a clock, a deny entry does not expire.
    let now = admission.now.time;
    let binding = || toleration_policies(policies).filter(|(matched, _)| matched.binds);
    let denial = |(matched, policy): (MatchedPolicy<'_>, &'_ TolerationPolicy),
                  taints: &ToleratedTaints<'_>| {
        let live = |grant: &&TolerationEntry| now.is_none() || !grant.terms.is_expired(now);
        let found = policy.denied_entries().iter().filter(live).find(|grant| grant.entry.intersects(taints));
        found.map(|grant| {
            format!(
                "it matches taints denied by {} {}{} in {}",
                grant.terms.location,
                grant.describe(),
                grant.terms.reason_suffix(),
                matched.policy.describe()
            )
        })
    };
    let grants = || {
        toleration_policies(policies)
            .flat_map(|(matched, policy)| policy.allowed_entries().map(move |grant| (matched, grant)))
    };
    let live = || grants().filter(|(_, grant)| !grant.terms.is_expired(now));
    let restricting = binding().find(|(_, policy)| policy.has_allow_list());
    let is_allowed = |taints: &ToleratedTaints<'_>| {
        let is_covered =
            restricting.is_none() || uncovered(taints, live().map(|(_, grant)| &grant.entry)).is_empty();
        is_covered && binding().all(|pair| denial(pair, taints).is_none())
    };
    let entry_near = |taints: &ToleratedTaints<'_>| {
        let missing = uncovered(taints, live().map(|(_, grant)| &grant.entry));
        let missing = if missing.is_empty() { taints.effects } else { missing };
        let near = nearest(taints, missing, live().map(|(_, grant)| &grant.entry));
        near.and_then(|(index, shortfall)| live().nth(index).map(|found| (found, shortfall)))
    };
    // Ends the refusal with something to paste, taken from the entries that come nearest.
    let offer = || {
        let near_taints =
            |taints: &ToleratedTaints<'_>| entry_near(taints).map(|((_, grant), _)| &grant.entry);
        let near = allowed_instead(&WrittenToleration::of(toleration), near_taints, is_allowed);
        let texts: Vec<String> = near.iter().map(ToString::to_string).collect();
        if texts.is_empty() { String::new() } else { format!("; allowed instead: {}", texts.join(" and ")) }
    };
    for pair in binding() {
        if let Some(why) = denial(pair, &tolerated) {
            let detail = format!("{} is denied: {why}{}", said(), offer());
            report.report(pair.0.policy, POLICY_TOLERATION, at, ErrorType::Forbidden, detail);
            report
                .shorten_last(pair.0.policy, format_args!("toleration of {} is denied", subject(toleration)));
        }
    }
    let Some((restricting, _)) = restricting else { return };
    let missing = uncovered(&tolerated, live().map(|(_, grant)| &grant.entry));
    if missing.is_empty() {
        return;
    }
    let near = entry_near(&tolerated);
    let lapsed = grants().find_map(|(matched, grant)| {
        let end = grant.terms.expired_at(now)?;
        let was_covered = !covered_by(&grant.entry, &tolerated).and(missing).is_empty();
        was_covered.then_some((matched, grant, end))
    });
    // Where nothing is allowed any more: what was, until when and why.
    let expired_note = || {
        let expired = || grants().filter(|(_, grant)| grant.terms.is_expired(now));
        let (index, _) = nearest(&tolerated, missing, expired().map(|(_, grant)| &grant.entry))?;
        let (matched, grant) = expired().nth(index)?;
        let (location, because) = (&grant.terms.location, grant.terms.reason_suffix());
        let end = crate::gotime::rfc3339(grant.terms.expired_at(now)?);
        let is_same = std::ptr::eq(matched.policy, restricting.policy);
        let of = if is_same { String::new() } else { format!(" in {}", matched.policy.describe()) };
        Some(format!("; {location} {}{because}{of} expired at {end}", grant.describe()))
    };
    let offered = offer();
    let (reporting, why) = match (lapsed, near) {
        (Some((matched, grant, end)), _) => {
            let (location, entry, end) =
                (&grant.terms.location, grant.describe(), crate::gotime::rfc3339(end));
            let because = grant.terms.reason_suffix();
            (
                matched,
                format!("{location} {entry}{because} in {} expired at {end}", matched.policy.describe()),
            )
        }
        (None, Some(((matched, grant), shortfall))) => {
            let lacks = describe_shortfall(shortfall, &tolerated, grant);
            let (location, entry, because, policy) = (
                &grant.terms.location,
                grant.describe(),
                grant.terms.reason_suffix(),
                matched.policy.describe(),
            );
            (matched, format!("the closest entry, {location} {entry}{because} in {policy}, {lacks}"))
        }
        (None, None) => {
            let policy = restricting.policy.describe();
            let expired = expired_note().unwrap_or_default();
            (restricting, format!("{policy} allows no tolerations in this namespace{expired}"))
        }
    };
    let detail = format!("{} is not allowed: {why}{offered}", said());
    report.report(reporting.policy, POLICY_TOLERATION, at, ErrorType::Forbidden, detail);
    report
        .shorten_last(reporting.policy, format_args!("toleration of {} is not allowed", subject(toleration)));
}

/// The key of a toleration, or what stands for it.
fn subject(toleration: Toleration<'_>) -> &str {
    match toleration.key() {
        "" => "all keys",
        key => key,
    }
}

fn covered_by(entry: &PolicyEntry, tolerated: &ToleratedTaints<'_>) -> Effects {
    tolerated.effects.without(uncovered(tolerated, [entry]))
}

fn toleration_policies<'s>(
    policies: &[MatchedPolicy<'s>],
) -> impl Iterator<Item = (MatchedPolicy<'s>, &'s TolerationPolicy)> + Clone {
    policies.iter().filter_map(|matched| match &matched.policy.spec {
        PolicySpec::Toleration(policy) => Some((*matched, policy)),
        _ => None,
    })
}

/// What an entry lacks, as a phrase about the entry.
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
        lacks.push(format!("does not allow effect {}", names.join(" and ")));
    }
    if let Some(limit) = shortfall.seconds.and(grant.entry.seconds) {
        lacks.push(format!("limits NoExecute to {limit}s: set `tolerationSeconds` to {limit} or less"));
    }
    lacks.join(", and ")
}

/// The tolerations to add to a new claim or template.
pub(super) fn defaults(
    policies: &[MatchedPolicy<'_>],
    admission: &DecodedAttributes<'_>,
    profile: &Profile,
) -> Vec<Edit> {
    let wanted = || {
        toleration_policies(policies)
            .filter(|(matched, _)| matched.binds && matched.policy.adds_defaults())
            .flat_map(|(_, policy)| &policy.defaults)
    };
    let mut edits = Vec::new();
    if wanted().next().is_none() {
        return edits;
    }
    let limit = profile.documented.tolerations.unwrap_or(usize::MAX);
    site::visit_requests(admission.object, &mut |at, request| {
        let list = site::tolerations_of(request);
        let mut added: Vec<&WrittenToleration> = Vec::new();
        for default in wanted() {
            let tolerated = default.tolerated();
            let is_there = list.iter().any(|given| ToleratedTaints::of(given).contains(&tolerated))
                || added.iter().any(|other| other.tolerated().contains(&tolerated));
            if !is_there && list.len() + added.len() < limit {
                added.push(default);
            }
        }
        let list_at = at.field("tolerations");
        if added.is_empty() {
        } else if list.value().kind() == ValueKind::Array {
            for (index, default) in added.into_iter().enumerate() {
                let change = Change::Append { list: list.value().index(), value: default.to_new() };
                edits.push(Edit { at: list_at.index(list.len() + index).owned(), change });
            }
        } else {
            let value = New::List(added.into_iter().map(WrittenToleration::to_new).collect());
            let change = if list.value().exists() {
                Change::Replace { node: list.value().index(), value }
            } else {
                Change::Add { object: request.json().index(), key: "tolerations", value }
            };
            edits.push(Edit { at: list_at.owned(), change });
        }
    });
    edits
}
