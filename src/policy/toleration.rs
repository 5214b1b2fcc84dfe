//! TolerationPolicy: which tolerations the claims of a namespace may have, and which they get.
//!
//! For each action by itself: if a policy with an `allow` list binds the user, every toleration must be covered by
//! the union of what all matching policies of that action allow; and no deny entry of a policy that binds may
//! match. Default tolerations are always allowed, so that an allow list does not deny what the policy adds.

use super::entries::{EntryTerms, TolerationEntry, yaml_scalar};
use super::kind::PolicySpec;
use super::schema::PolicyFaults;
use super::{MatchedPolicy, ViolationReport};
use crate::admission::DecodedAttributes;
use crate::api::view::{Toleration, View as _};
use crate::defaults::Edit;
use crate::doc::{Change, New, Value, ValueKind};
use crate::field::Path;
use crate::finding::ErrorType;
use crate::profile::Profile;
use crate::rules::Level;
use crate::rules::policy::POLICY_TOLERATION;
use crate::site::{self, Site, walk};
use crate::tolerance::coverage::{
    Effects, KeyPattern, PolicyEntry, Shortfall, ToleratedTaints, nearest, uncovered,
};

/// What a TolerationPolicy says.
#[derive(Debug)]
pub(super) struct TolerationPolicy {
    allow: Option<Vec<TolerationEntry>>,
    deny: Vec<TolerationEntry>,
    defaults: Vec<DefaultToleration>,
    /// The defaults as allow entries.
    default_entries: Vec<TolerationEntry>,
}

/// A toleration to add.
#[derive(Clone, Debug)]
struct DefaultToleration {
    key: Box<str>,
    operator: Box<str>,
    value: Box<str>,
    effect: Box<str>,
    seconds: Option<i64>,
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
            let default = DefaultToleration::read(item);
            let default_at = defaults_at.index(index);
            if &*default.operator == "Exists" && !default.value.is_empty() {
                faults.report(&default_at.field("value"), "must be empty for operator Exists");
            }
            if let Some(grant) = deny.iter().find(|grant| grant.entry.intersects(&default.tolerated())) {
                faults.report(
                    &default_at,
                    format!("this policy denies what it adds: {}", grant.terms.location),
                );
            }
            default_entries.push(default.to_entry(index));
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

impl DefaultToleration {
    fn read(item: Value<'_>) -> DefaultToleration {
        let operator = item.get("operator").str();
        DefaultToleration {
            key: item.get("key").str().into(),
            operator: if operator.is_empty() { "Equal" } else { operator }.into(),
            value: item.get("value").str().into(),
            effect: item.get("effect").str().into(),
            seconds: item.get("tolerationSeconds").int(),
        }
    }

    fn tolerated(&self) -> ToleratedTaints<'_> {
        ToleratedTaints {
            key: Some(&*self.key).filter(|key| !key.is_empty()),
            value: (&*self.operator == "Equal").then_some(&*self.value),
            effects: if self.effect.is_empty() { Effects::KNOWN } else { Effects::named(&self.effect) },
            seconds: self.seconds.map(|seconds| seconds.max(0)),
        }
    }

    fn to_entry(&self, index: usize) -> TolerationEntry {
        let tolerated = self.tolerated();
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

    fn to_new(&self) -> New {
        let mut fields = Vec::new();
        for (name, text) in [("key", &self.key), ("operator", &self.operator), ("value", &self.value)] {
            if !text.is_empty() {
                fields.push((name, New::Str(text.clone())));
            }
        }
        if !self.effect.is_empty() {
            fields.push(("effect", New::Str(self.effect.clone())));
        }
        if let Some(seconds) = self.seconds {
            fields.push(("tolerationSeconds", New::Int(seconds)));
        }
        New::Object(fields)
    }
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
            describe(toleration),
            admission.object_namespace().unwrap_or_default()
        )
    };
    for (matched, policy) in toleration_policies(policies).filter(|(matched, _)| matched.binds) {
        // Without a clock, a deny entry does not expire.
        let live = |grant: &&TolerationEntry| {
            admission.now.time.is_none() || !grant.terms.is_expired(admission.now.time)
        };
        if let Some(grant) =
            policy.denied_entries().iter().filter(live).find(|grant| grant.entry.intersects(&tolerated))
        {
            let detail = format!(
                "{} is denied: it reaches taints of {} {}{}, {}",
                said(),
                grant.terms.location,
                grant.describe(),
                grant.terms.reason_suffix(),
                matched.policy.describe()
            );
            report.report(matched.policy, POLICY_TOLERATION, at, ErrorType::Forbidden, detail);
        }
    }
    let Some((restricting, _)) =
        toleration_policies(policies).find(|(matched, policy)| matched.binds && policy.has_allow_list())
    else {
        return;
    };
    let grants = || {
        toleration_policies(policies)
            .flat_map(|(matched, policy)| policy.allowed_entries().map(move |grant| (matched, grant)))
    };
    let live = || grants().filter(|(_, grant)| !grant.terms.is_expired(admission.now.time));
    let missing = uncovered(&tolerated, live().map(|(_, grant)| &grant.entry));
    if missing.is_empty() {
        return;
    }
    let near = nearest(&tolerated, missing, live().map(|(_, grant)| &grant.entry));
    let near = near.and_then(|(index, shortfall)| live().nth(index).map(|found| (found, shortfall)));
    let lapsed = grants().find_map(|(matched, grant)| {
        let end = grant.terms.expired_at(admission.now.time)?;
        let was_covered = !covered_by(&grant.entry, &tolerated).and(missing).is_empty();
        was_covered.then_some((matched, grant, end))
    });
    let (reporting, why) = match (lapsed, near) {
        (Some((matched, grant, end)), _) => {
            let (end, entry) = (crate::gotime::rfc3339(end), grant.describe());
            (
                matched,
                format!(
                    "{} {entry} allowed it until {end}, {}",
                    grant.terms.location,
                    matched.policy.describe()
                ),
            )
        }
        (None, Some(((matched, grant), shortfall))) => {
            let lacks = describe_shortfall(shortfall, &tolerated, grant);
            let (location, entry, policy) =
                (&grant.terms.location, grant.describe(), matched.policy.describe());
            (matched, format!("the nearest entry, {location} {entry}, {lacks}; {policy}"))
        }
        (None, None) => (restricting, format!("nothing is allowed here, {}", restricting.policy.describe())),
    };
    report.report(
        reporting.policy,
        POLICY_TOLERATION,
        at,
        ErrorType::Forbidden,
        format!("{} is not allowed: {why}", said()),
    );
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
            Some(key) => format!("has not key {key}"),
            None => "has not every key, which a toleration without key reaches".to_owned(),
        });
    }
    if shortfall.values {
        lacks.push(match tolerated.value {
            Some(value) => format!("has not value {value:?}"),
            None => "has not every value, which operator Exists reaches".to_owned(),
        });
    }
    if !shortfall.effects.is_empty() {
        let names: Vec<&str> = shortfall.effects.names().collect();
        lacks.push(format!("has not effect {}", names.join(" and ")));
    }
    if let (Some(limit), seconds) = (shortfall.seconds.and(grant.entry.seconds), tolerated.seconds) {
        lacks.push(match seconds {
            Some(seconds) => format!("allows {limit}s of NoExecute, not {seconds}s"),
            None => format!("allows {limit}s of NoExecute, not forever"),
        });
    }
    lacks.join(", ")
}

/// `{key: a/b, operator: Exists, effect: NoExecute}`
fn describe(toleration: Toleration<'_>) -> String {
    let mut fields = Vec::new();
    let texts = [
        ("key", toleration.key()),
        ("operator", toleration.operator()),
        ("value", toleration.value()),
        ("effect", toleration.effect()),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        fields.push(format!("{name}: {}", yaml_scalar(text)));
    }
    fields.extend(toleration.toleration_seconds().map(|seconds| format!("tolerationSeconds: {seconds}")));
    format!("{{{}}}", fields.join(", "))
}

/// The tolerations to add to a new claim or template.
pub(super) fn defaults(
    policies: &[MatchedPolicy<'_>],
    admission: &DecodedAttributes<'_>,
    profile: &Profile,
) -> Vec<Edit> {
    let wanted = || {
        toleration_policies(policies)
            .filter(|(matched, _)| matched.binds)
            .flat_map(|(_, policy)| &policy.defaults)
    };
    let mut edits = Vec::new();
    if wanted().next().is_none() {
        return edits;
    }
    let limit = profile.documented.tolerations.unwrap_or(usize::MAX);
    site::visit_requests(admission.object, &mut |at, request| {
        let list = site::tolerations_of(request);
        let mut added: Vec<&DefaultToleration> = Vec::new();
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
            let value = New::List(added.into_iter().map(DefaultToleration::to_new).collect());
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
