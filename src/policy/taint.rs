//! TaintPolicy: which taints drivers and DeviceTaintRules may publish, and what their data looks like.
//!
//! A taint is allowed if some entry contains it. As with tolerations, the `allow` lists of one action add up and a deny
//! entry wins. `${driver}` in a key is the driver of the slice or of the rule's selector; a rule without a driver matches
//! all drivers, so it matches policies for any driver and no `${driver}` entry of an allow list.

use super::entries::{DRIVER_PLACEHOLDER, TaintEntry, key_matches, yaml_scalar};
use super::json_schema::Schema;
use super::kind::PolicySpec;
use super::load::SchemaSource;
use super::schema::PolicyFaults;
use super::{MatchedPolicy, ViolationReport};
use crate::admission::DecodedAttributes;
use crate::api::view::{self, Taint};
use crate::doc::Value;
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::Level;
use crate::rules::policy::{POLICY_TAINT, POLICY_TAINT_DATA};
use crate::site::{Site, walk};

/// What a TaintPolicy says.
#[derive(Debug)]
pub(super) struct TaintPolicy {
    allow: Option<Vec<TaintEntry>>,
    deny: Vec<TaintEntry>,
    data: Vec<DataRequirement>,
    max_evictions: Option<i64>,
}

/// The requirements for the data of some keys.
#[derive(Debug)]
struct DataRequirement {
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
        faults: &mut PolicyFaults,
    ) -> TaintPolicy {
        let allow = spec.get("allow");
        let data_at = at.field("data");
        let mut data = Vec::new();
        for (index, item) in spec.get("data").items().enumerate() {
            data.push(DataRequirement {
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
pub(super) fn check(
    policies: &[MatchedPolicy<'_>],
    admission: &DecodedAttributes<'_>,
    report: &mut ViolationReport<'_>,
) {
    if !policies.iter().any(|matched| matches!(matched.policy.spec, PolicySpec::Taint(_))) {
        return;
    }
    let driver = driver_of(admission);
    let of_level = |level: Level| {
        let ours = policies.iter().filter(move |matched| matched.policy.action == level);
        ours.filter(|matched| matched.policy.scope.matches_driver(driver)).copied().collect::<Vec<_>>()
    };
    let groups = [Level::Deny, Level::Warn, Level::Audit].map(of_level);
    walk(admission, &mut |site| {
        let Site::Taint { at, taint } = site else { return };
        for group in &groups {
            check_entries(group, driver, at, taint.taint, admission, report);
            for (matched, policy) in taint_policies(group).filter(|(matched, _)| matched.binds) {
                policy.check_limit(matched, at, taint.taint, report);
                policy.check_data(matched, driver, at, taint.taint, report);
            }
        }
    });
}

/// The driver of a slice, or of the selector of a rule or patch; empty if there is none.
fn driver_of<'d>(admission: &DecodedAttributes<'d>) -> &'d str {
    match admission.object.body {
        view::Body::Slice(slice) => slice.spec().driver(),
        view::Body::Rule(rule) => rule.selected_driver(),
        view::Body::Patch(patch) => patch.selected_driver(),
        _ => "",
    }
}

fn taint_policies<'s>(
    policies: &[MatchedPolicy<'s>],
) -> impl Iterator<Item = (MatchedPolicy<'s>, &'s TaintPolicy)> + Clone {
    policies.iter().filter_map(|matched| match &matched.policy.spec {
        PolicySpec::Taint(policy) => Some((*matched, policy)),
        _ => None,
    })
}

fn check_entries(
    policies: &[MatchedPolicy<'_>],
    driver: &str,
    at: &Path<'_>,
    taint: Taint<'_>,
    admission: &DecodedAttributes<'_>,
    report: &mut ViolationReport<'_>,
) {
    let has =
        |entry: &TaintEntry, driver: &str| entry.matches(taint.key(), taint.value(), taint.effect(), driver);
    // An object without a driver affects all drivers: that must not bypass a deny entry.
    let denied_driver = if driver.is_empty() { "*" } else { driver };
    for (matched, policy) in taint_policies(policies).filter(|(matched, _)| matched.binds) {
        let live =
            |entry: &&TaintEntry| admission.now.time.is_none() || !entry.terms.is_expired(admission.now.time);
        if let Some(entry) = policy.deny.iter().filter(live).find(|entry| has(entry, denied_driver)) {
            let (location, entry, because) =
                (&entry.terms.location, entry.describe(), entry.terms.reason_suffix());
            let detail = format!(
                "taint {} is denied by {location} {entry}{because} in {}",
                describe(taint),
                matched.policy.describe()
            );
            report.report(matched.policy, POLICY_TAINT, at, ErrorType::Forbidden, detail);
            report.shorten_last(matched.policy, format_args!("taint {} is denied", describe(taint)));
        }
    }
    let Some((restricting, _)) =
        taint_policies(policies).find(|(matched, policy)| matched.binds && policy.allow.is_some())
    else {
        return;
    };
    let all = || {
        taint_policies(policies)
            .flat_map(|(matched, policy)| policy.allow.iter().flatten().map(move |entry| (matched, entry)))
    };
    let entries = || all().filter(|(_, entry)| !entry.terms.is_expired(admission.now.time));
    if entries().any(|(_, entry)| has(entry, driver)) {
        return;
    }
    let near =
        entries().find(|(_, entry)| entry.matches_key(taint.key(), driver)).or_else(|| entries().next());
    let lapsed = all().find_map(|(matched, entry)| {
        let end = entry.terms.expired_at(admission.now.time)?;
        has(entry, driver).then_some((matched, entry, end))
    });
    let (culprit, why) = match (lapsed, near) {
        (Some((matched, entry, end)), _) => {
            let (location, because) = (&entry.terms.location, entry.terms.reason_suffix());
            let (entry, policy, end) =
                (entry.describe(), matched.policy.describe(), crate::gotime::rfc3339(end));
            (matched, format!("{location} {entry}{because} in {policy} expired at {end}"))
        }
        (None, Some((matched, entry))) => {
            let lacks = if !entry.matches_key(taint.key(), driver) {
                match (entry.key.contains(DRIVER_PLACEHOLDER), driver) {
                    (true, "") => needs_driver(admission),
                    (true, driver) => format!("does not allow key {} for driver {driver:?}", taint.key()),
                    (false, _) => format!("does not allow key {}", taint.key()),
                }
            } else if entry.matches(taint.key(), taint.value(), first_effect(entry), driver) {
                format!("does not allow effect {}", taint.effect())
            } else {
                format!("does not allow value {:?}", taint.value())
            };
            let (location, because, policy) =
                (&entry.terms.location, entry.terms.reason_suffix(), matched.policy.describe());
            let entry = entry.describe();
            (matched, format!("the closest entry, {location} {entry}{because} in {policy}, {lacks}"))
        }
        (None, None) => (restricting, format!("{} allows no taints", restricting.policy.describe())),
    };
    let detail = format!("taint {} is not allowed: {why}", describe(taint));
    report.report(culprit.policy, POLICY_TAINT, at, ErrorType::Forbidden, detail);
    report.shorten_last(culprit.policy, format_args!("taint {} is not allowed", describe(taint)));
}

/// Why an entry with `${driver}` matches no taint of an object without a driver.
fn needs_driver(admission: &DecodedAttributes<'_>) -> String {
    let (what, field) = match admission.object.body {
        view::Body::Rule(_) => ("rule", "deviceSelector.driver"),
        view::Body::Patch(_) => ("patch", "devices.filter.driver"),
        _ => ("object", "driver"),
    };
    format!(
        "matches no key, because the {what} does not set the driver that replaces `${{driver}}`: set `{field}`"
    )
}

fn first_effect(entry: &TaintEntry) -> &'static str {
    entry.terms.effects.names().next().unwrap_or_default()
}

/// `a/b=c:NoExecute`
fn describe(taint: Taint<'_>) -> String {
    let value =
        if taint.value().is_empty() { String::new() } else { format!("={}", yaml_scalar(taint.value())) };
    format!("{}{value}:{}", yaml_scalar(taint.key()), taint.effect())
}

impl TaintPolicy {
    fn check_limit(
        &self,
        matched: MatchedPolicy<'_>,
        at: &Path<'_>,
        taint: Taint<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        if let (Some(most), Some(rate)) = (self.max_evictions, taint.evictions_per_second())
            && rate > most
        {
            let detail = format!("{rate} exceeds the maximum of {most} set by {}", matched.policy.describe());
            let at = at.field("evictionsPerSecond");
            report.report_value(
                matched.policy,
                POLICY_TAINT,
                &at,
                ErrorType::Invalid,
                BadValue::Int(rate),
                detail,
            );
            report.shorten_last(matched.policy, format_args!("{rate} exceeds the maximum of {most}"));
        }
    }

    fn check_data(
        &self,
        matched: MatchedPolicy<'_>,
        driver: &str,
        at: &Path<'_>,
        taint: Taint<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let data_at = at.field("data");
        for wanted in self.data.iter().filter(|data| key_matches(&data.key, taint.key(), driver)) {
            let policy = matched.policy.describe();
            if taint.data().is_null() {
                if wanted.required {
                    let detail = format!("data is required for key {} by {policy}", taint.key());
                    report.report(matched.policy, POLICY_TAINT_DATA, &data_at, ErrorType::Required, detail);
                    report.shorten_last(matched.policy, "data is required for this key");
                }
                continue;
            }
            let schema = wanted.schema.as_ref();
            report.check_json(matched.policy, POLICY_TAINT_DATA, schema, taint.data(), &data_at);
        }
    }
}
