//! TaintPolicy: which taints drivers and DeviceTaintRules may publish, and what their data looks like.
//!
//! A taint is one point, so covering it is finding an entry that has it. As with tolerations, `allow` lists of one
//! action add up and a deny entry wins. `${driver}` in a key is the driver of the slice, or of the rule's selector;
//! a rule that names no driver touches every driver, so it matches policies of all drivers and no `${driver}` entry.

use super::grants::{DRIVER, TaintEntry, key_matches, yaml};
use super::json_schema::Schema;
use super::kind::PolicySpec;
use super::load::SchemaSource;
use super::schema::Faults;
use super::{Matched, Report};
use crate::admission::Attributes;
use crate::api::view::{self, Taint};
use crate::doc::Value;
use crate::field::Path;
use crate::finding::{BadValue, Kind};
use crate::rules::Level;
use crate::rules::policy::{POLICY_TAINT, POLICY_TAINT_DATA};
use crate::site::{Site, walk};

/// What a TaintPolicy says.
#[derive(Debug)]
pub(super) struct TaintPolicy {
    allow: Option<Vec<TaintEntry>>,
    deny: Vec<TaintEntry>,
    data: Vec<Data>,
    max_evictions: Option<i64>,
}

/// What the data of some keys must look like.
#[derive(Debug)]
struct Data {
    key: Box<str>,
    required: bool,
    schema: Option<Schema>,
}

impl TaintPolicy {
    /// Reads `spec`.
    pub(super) fn read(
        spec: Value<'_>,
        at: &Path<'_>,
        schemas: &SchemaSource<'_>,
        faults: &mut Faults,
    ) -> TaintPolicy {
        let allow = spec.get("allow");
        let data_at = at.field("data");
        let mut data = Vec::new();
        for (index, item) in spec.get("data").items().enumerate() {
            data.push(Data {
                key: item.get("key").str().into(),
                required: item.get("required").bool().unwrap_or_default(),
                schema: schemas.read(item, &data_at.index(index), faults),
            });
        }
        TaintPolicy {
            allow: allow.exists().then(|| TaintEntry::read_all(allow, "allow")),
            deny: TaintEntry::read_all(spec.get("deny"), "deny"),
            data,
            max_evictions: spec.get("maxEvictionsPerSecond").int(),
        }
    }
}

/// Checks every taint of an object.
pub(super) fn check(matched: &[Matched<'_>], admission: &Attributes<'_>, report: &mut Report<'_>) {
    if !matched.iter().any(|one| matches!(one.policy.spec, PolicySpec::Taint(_))) {
        return;
    }
    let driver = driver_of(admission);
    let of_level = |level: Level| {
        let ours = matched.iter().filter(move |one| one.policy.action == level);
        ours.filter(|one| one.policy.scope.has_driver(driver)).copied().collect::<Vec<_>>()
    };
    let groups = [Level::Deny, Level::Warn, Level::Audit].map(of_level);
    walk(admission, &mut |site| {
        let Site::Taint { at, taint } = site else { return };
        for group in &groups {
            check_entries(group, driver, at, taint.taint, admission, report);
            for (one, policy) in each(group).filter(|(one, _)| one.binds) {
                policy.check_limit(one, at, taint.taint, report);
                policy.check_data(one, driver, at, taint.taint, report);
            }
        }
    });
}

/// The driver a slice, a rule or a patch speaks for; empty if it names none.
fn driver_of<'d>(admission: &Attributes<'d>) -> &'d str {
    match admission.object.body {
        view::Body::Slice(slice) => slice.spec().driver(),
        view::Body::Rule(rule) => rule.selected_driver(),
        view::Body::Patch(patch) => patch.selected_driver(),
        _ => "",
    }
}

fn each<'s>(matched: &[Matched<'s>]) -> impl Iterator<Item = (Matched<'s>, &'s TaintPolicy)> + Clone {
    matched.iter().filter_map(|one| match &one.policy.spec {
        PolicySpec::Taint(policy) => Some((*one, policy)),
        _ => None,
    })
}

fn check_entries(
    matched: &[Matched<'_>],
    driver: &str,
    at: &Path<'_>,
    taint: Taint<'_>,
    admission: &Attributes<'_>,
    report: &mut Report<'_>,
) {
    let has =
        |entry: &TaintEntry, driver: &str| entry.has(taint.key(), taint.value(), taint.effect(), driver);
    // What names no driver is of any driver: that must not be a way around a deny entry.
    let denied_driver = if driver.is_empty() { "*" } else { driver };
    for (one, policy) in each(matched).filter(|(one, _)| one.binds) {
        let live =
            |entry: &&TaintEntry| admission.now.time.is_none() || !entry.terms.is_over(admission.now.time);
        if let Some(entry) = policy.deny.iter().filter(live).find(|entry| has(entry, denied_driver)) {
            let (place, entry, because) = (&entry.terms.place, entry.told(), entry.terms.because());
            let detail =
                format!("taint {} is denied by {place} {entry}{because}, {}", told(taint), one.policy.told());
            report.say(one.policy, POLICY_TAINT, at, Kind::Forbidden, detail);
        }
    }
    let Some((restricting, _)) = each(matched).find(|(one, policy)| one.binds && policy.allow.is_some())
    else {
        return;
    };
    let entries = || {
        each(matched)
            .flat_map(|(one, policy)| policy.allow.iter().flatten().map(move |entry| (one, entry)))
            .filter(|(_, entry)| !entry.terms.is_over(admission.now.time))
    };
    if entries().any(|(_, entry)| has(entry, driver)) {
        return;
    }
    let near = entries().find(|(_, entry)| entry.has_key(taint.key(), driver)).or_else(|| entries().next());
    let (culprit, why) = match near {
        Some((one, entry)) => {
            let lacks = if !entry.has_key(taint.key(), driver) {
                let filled = if entry.key.contains(DRIVER) {
                    format!(" for driver {driver:?}")
                } else {
                    String::new()
                };
                format!("has not key {}{filled}", taint.key())
            } else if entry.has(taint.key(), taint.value(), first_effect(entry), driver) {
                format!("has not effect {}", taint.effect())
            } else {
                format!("has not value {:?}", taint.value())
            };
            let (place, entry, policy) = (&entry.terms.place, entry.told(), one.policy.told());
            (one, format!("the nearest entry, {place} {entry}, {lacks}; {policy}"))
        }
        None => (restricting, format!("nothing is allowed here, {}", restricting.policy.told())),
    };
    let detail = format!("taint {} is not allowed: {why}", told(taint));
    report.say(culprit.policy, POLICY_TAINT, at, Kind::Forbidden, detail);
}

fn first_effect(entry: &TaintEntry) -> &'static str {
    entry.terms.effects.names().next().unwrap_or_default()
}

/// `a/b=c:NoExecute`
fn told(taint: Taint<'_>) -> String {
    let value = if taint.value().is_empty() { String::new() } else { format!("={}", yaml(taint.value())) };
    format!("{}{value}:{}", yaml(taint.key()), taint.effect())
}

impl TaintPolicy {
    fn check_limit(&self, one: Matched<'_>, at: &Path<'_>, taint: Taint<'_>, report: &mut Report<'_>) {
        if let (Some(most), Some(rate)) = (self.max_evictions, taint.evictions_per_second())
            && rate > most
        {
            let detail = format!("at most {most}, {}", one.policy.told());
            let at = at.field("evictionsPerSecond");
            report.say_value(one.policy, POLICY_TAINT, &at, Kind::Invalid, BadValue::Int(rate), detail);
        }
    }

    fn check_data(
        &self,
        one: Matched<'_>,
        driver: &str,
        at: &Path<'_>,
        taint: Taint<'_>,
        report: &mut Report<'_>,
    ) {
        let data_at = at.field("data");
        for wanted in self.data.iter().filter(|data| key_matches(&data.key, taint.key(), driver)) {
            let told = one.policy.told();
            if taint.data().is_null() {
                if wanted.required {
                    let detail = format!("taints with key {} carry data, {told}", taint.key());
                    report.say(one.policy, POLICY_TAINT_DATA, &data_at, Kind::Required, detail);
                }
                continue;
            }
            let schema = wanted.schema.as_ref();
            report.check_json(one.policy, POLICY_TAINT_DATA, schema, taint.data(), &data_at);
        }
    }
}
