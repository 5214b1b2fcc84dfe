//! TolerationPolicy: which tolerations the claims of a namespace may have, and which they get.
//!
//! For each action by itself: if a policy with an `allow` list binds the user, every toleration must be covered by
//! the union of what all matching policies of that action allow; and no deny entry of a policy that binds may be
//! hit. A default toleration is allowed by being one, or it would trip over the list it comes from.

use super::grants::{Grant, Terms, yaml};
use super::kind::PolicySpec;
use super::schema::Faults;
use super::{Matched, Report};
use crate::admission::Attributes;
use crate::api::view::{Toleration, View as _};
use crate::defaults::Edit;
use crate::doc::{Change, Kind as Json, New, Value};
use crate::field::Path;
use crate::finding::Kind;
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
    allow: Option<Vec<Grant>>,
    deny: Vec<Grant>,
    defaults: Vec<Default>,
    /// What the defaults reach, as entries.
    granted: Vec<Grant>,
}

/// A toleration to add.
#[derive(Clone, Debug)]
struct Default {
    key: Box<str>,
    operator: Box<str>,
    value: Box<str>,
    effect: Box<str>,
    seconds: Option<i64>,
}

impl TolerationPolicy {
    /// Reads `spec`.
    pub(super) fn read(spec: Value<'_>, at: &Path<'_>, faults: &mut Faults) -> TolerationPolicy {
        let allow = spec.get("allow");
        let defaults_at = at.field("defaults");
        let mut defaults = Vec::new();
        let mut granted = Vec::new();
        let deny = Grant::read_all(spec.get("deny"), "deny", at, faults);
        for (index, item) in spec.get("defaults").items().enumerate() {
            let default = Default::read(item);
            let default_at = defaults_at.index(index);
            if &*default.operator == "Exists" && !default.value.is_empty() {
                faults.say(&default_at.field("value"), "must be empty for operator Exists");
            }
            if let Some(grant) = deny.iter().find(|grant| grant.entry.intersects(&default.reach())) {
                faults.say(&default_at, format!("this policy denies what it adds: {}", grant.terms.place));
            }
            granted.push(default.granted(index));
            defaults.push(default);
        }
        TolerationPolicy {
            allow: allow.exists().then(|| Grant::read_all(allow, "allow", at, faults)),
            deny,
            defaults,
            granted,
        }
    }

    /// What it allows, defaults included.
    pub(super) fn grants(&self) -> impl Iterator<Item = &Grant> + Clone {
        self.allow.iter().flatten().chain(&self.granted)
    }

    /// True if it turns restriction on.
    pub(super) fn restricts(&self) -> bool {
        self.allow.is_some()
    }

    /// True if it adds tolerations.
    pub(super) fn has_defaults(&self) -> bool {
        !self.defaults.is_empty()
    }

    /// What it denies.
    pub(super) fn denials(&self) -> &[Grant] {
        &self.deny
    }
}

impl Default {
    fn read(item: Value<'_>) -> Default {
        let operator = item.get("operator").str();
        Default {
            key: item.get("key").str().into(),
            operator: if operator.is_empty() { "Equal" } else { operator }.into(),
            value: item.get("value").str().into(),
            effect: item.get("effect").str().into(),
            seconds: item.get("tolerationSeconds").int(),
        }
    }

    fn reach(&self) -> ToleratedTaints<'_> {
        ToleratedTaints {
            key: Some(&*self.key).filter(|key| !key.is_empty()),
            value: (&*self.operator == "Equal").then_some(&*self.value),
            effects: if self.effect.is_empty() { Effects::KNOWN } else { Effects::named(&self.effect) },
            seconds: self.seconds.map(|seconds| seconds.max(0)),
        }
    }

    fn granted(&self, index: usize) -> Grant {
        let reach = self.reach();
        let values = reach.value.map(|value| vec![value.into()]);
        let keys = reach.key.map_or(KeyPattern::Any, |key| KeyPattern::Exact(key.into()));
        let terms = Terms {
            place: format!("defaults[{index}]").into(),
            values: values.clone(),
            effects: reach.effects,
            reason: None,
            expires: None,
        };
        Grant { entry: PolicyEntry { keys, values, effects: reach.effects, seconds: reach.seconds }, terms }
    }

    fn written(&self) -> New {
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
pub(super) fn check(matched: &[Matched<'_>], admission: &Attributes<'_>, report: &mut Report<'_>) {
    let ours = || matched.iter().filter(|one| matches!(one.policy.spec, PolicySpec::Toleration(_)));
    if ours().next().is_none() {
        return;
    }
    let groups = [Level::Deny, Level::Warn, Level::Audit]
        .map(|level| ours().filter(|one| one.policy.action == level).copied().collect::<Vec<_>>());
    walk(admission, &mut |site| {
        if let Site::Toleration { at, toleration } = site {
            for group in &groups {
                check_one(group, at, toleration, admission, report);
            }
        }
    });
}

fn check_one(
    matched: &[Matched<'_>],
    at: &Path<'_>,
    toleration: Toleration<'_>,
    admission: &Attributes<'_>,
    report: &mut Report<'_>,
) {
    let reach = ToleratedTaints::of(toleration);
    let said = || {
        format!(
            "toleration {} in namespace {:?}",
            told(toleration),
            admission.object_namespace().unwrap_or_default()
        )
    };
    for (one, policy) in each(matched).filter(|(one, _)| one.binds) {
        // A denial that has no clock to end by goes on.
        let live = |grant: &&Grant| admission.now.time.is_none() || !grant.terms.is_over(admission.now.time);
        if let Some(grant) = policy.denials().iter().filter(live).find(|grant| grant.entry.intersects(&reach))
        {
            let detail = format!(
                "{} is denied: it reaches taints of {} {}{}, {}",
                said(),
                grant.terms.place,
                grant.told(),
                grant.terms.because(),
                one.policy.told()
            );
            report.say(one.policy, POLICY_TOLERATION, at, Kind::Forbidden, detail);
        }
    }
    let Some((restricting, _)) = each(matched).find(|(one, policy)| one.binds && policy.restricts()) else {
        return;
    };
    let grants = || each(matched).flat_map(|(one, policy)| policy.grants().map(move |grant| (one, grant)));
    let live = || grants().filter(|(_, grant)| !grant.terms.is_over(admission.now.time));
    let missing = uncovered(&reach, live().map(|(_, grant)| &grant.entry));
    if missing.is_empty() {
        return;
    }
    let near = nearest(&reach, missing, live().map(|(_, grant)| &grant.entry));
    let near = near.and_then(|(index, lack)| live().nth(index).map(|found| (found, lack)));
    let lapsed = grants().find(|(_, grant)| {
        grant.terms.is_over(admission.now.time) && !covered_by(&grant.entry, &reach).and(missing).is_empty()
    });
    let (culprit, why) = match (lapsed, near) {
        (Some((one, grant)), _) => {
            let end = grant.terms.expires.map(crate::gotime::rfc3339).unwrap_or_default();
            let entry = grant.told();
            (one, format!("{} {entry} allowed it until {end}, {}", grant.terms.place, one.policy.told()))
        }
        (None, Some(((one, grant), lack))) => {
            let lacks = lacking(lack, &reach, grant);
            let (place, entry, policy) = (&grant.terms.place, grant.told(), one.policy.told());
            (one, format!("the nearest entry, {place} {entry}, {lacks}; {policy}"))
        }
        (None, None) => (restricting, format!("nothing is allowed here, {}", restricting.policy.told())),
    };
    report.say(
        culprit.policy,
        POLICY_TOLERATION,
        at,
        Kind::Forbidden,
        format!("{} is not allowed: {why}", said()),
    );
}

fn covered_by(entry: &PolicyEntry, reach: &ToleratedTaints<'_>) -> Effects {
    reach.effects.without(uncovered(reach, [entry]))
}

fn each<'s>(matched: &[Matched<'s>]) -> impl Iterator<Item = (Matched<'s>, &'s TolerationPolicy)> + Clone {
    matched.iter().filter_map(|one| match &one.policy.spec {
        PolicySpec::Toleration(policy) => Some((*one, policy)),
        _ => None,
    })
}

/// What an entry lacks, as a sentence about the entry.
fn lacking(lack: Shortfall, reach: &ToleratedTaints<'_>, grant: &Grant) -> String {
    let mut lacks = Vec::new();
    if lack.keys {
        lacks.push(match reach.key {
            Some(key) => format!("has not key {key}"),
            None => "has not every key, which a toleration without key reaches".to_owned(),
        });
    }
    if lack.values {
        lacks.push(match reach.value {
            Some(value) => format!("has not value {value:?}"),
            None => "has not every value, which operator Exists reaches".to_owned(),
        });
    }
    if !lack.effects.is_empty() {
        let names: Vec<&str> = lack.effects.names().collect();
        lacks.push(format!("has not effect {}", names.join(" and ")));
    }
    if let (Some(limit), seconds) = (lack.seconds.and(grant.entry.seconds), reach.seconds) {
        lacks.push(match seconds {
            Some(seconds) => format!("allows {limit}s of NoExecute, not {seconds}s"),
            None => format!("allows {limit}s of NoExecute, not forever"),
        });
    }
    lacks.join(", ")
}

/// `{key: a/b, operator: Exists, effect: NoExecute}`
fn told(toleration: Toleration<'_>) -> String {
    let mut fields = Vec::new();
    let texts = [
        ("key", toleration.key()),
        ("operator", toleration.operator()),
        ("value", toleration.value()),
        ("effect", toleration.effect()),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        fields.push(format!("{name}: {}", yaml(text)));
    }
    fields.extend(toleration.toleration_seconds().map(|seconds| format!("tolerationSeconds: {seconds}")));
    format!("{{{}}}", fields.join(", "))
}

/// The tolerations to add to a new claim or template.
pub(super) fn defaults(matched: &[Matched<'_>], admission: &Attributes<'_>, profile: &Profile) -> Vec<Edit> {
    let wanted = || each(matched).filter(|(one, _)| one.binds).flat_map(|(_, policy)| &policy.defaults);
    let mut edits = Vec::new();
    if wanted().next().is_none() {
        return edits;
    }
    let limit = profile.documented.tolerations.unwrap_or(usize::MAX);
    site::requests(admission.object, &mut |at, request| {
        let list = site::tolerations_of(request);
        let mut added: Vec<&Default> = Vec::new();
        for default in wanted() {
            let reach = default.reach();
            let is_there = list.iter().any(|given| ToleratedTaints::of(given).contains(&reach))
                || added.iter().any(|other| other.reach().contains(&reach));
            if !is_there && list.len() + added.len() < limit {
                added.push(default);
            }
        }
        let list_at = at.field("tolerations");
        if added.is_empty() {
        } else if list.value().kind() == Json::Array {
            for (index, default) in added.into_iter().enumerate() {
                let change = Change::Append { list: list.value().index(), value: default.written() };
                edits.push(Edit { at: list_at.index(list.len() + index).owned(), change });
            }
        } else {
            let value = New::List(added.into_iter().map(Default::written).collect());
            let change = if list.value().exists() {
                Change::Replace { node: list.value().index(), value }
            } else {
                Change::Add { object: request.value().index(), key: "tolerations", value }
            };
            edits.push(Edit { at: list_at.owned(), change });
        }
    });
    edits
}
