//! TaintPolicy: which taints drivers and DeviceTaintRules may publish, and what their data looks like.
//!
//! A taint is allowed if an `allow` entry includes it. As with tolerations, the `allow` lists of one action add up and
//! a deny entry wins. `${driver}` in a key is the driver of the slice or of the rule's selector; a rule without a
//! driver matches all drivers, so it matches policies for any driver and no `${driver}` entry of an allow list.
//!
//! Invariant: an object costs at most [`MAX_COMPARED_TAINTS`] taints times the entries, and [`MAX_MATCH_STEPS`] to
//! match their keys.

mod compared;

pub(super) use compared::TaintPoliciesToCompare;

use std::borrow::Cow;

use super::entries::{DRIVER_PLACEHOLDER, TaintEntry, quote_unless_plain, replace_driver_placeholder};
use super::json_schema::{JsonCheck, Schema};
use super::kind::{PolicySpec, policies_of_kind};
use super::load::SchemaSource;
use super::matching::MAX_DRIVER_BYTES;
use super::schema::PolicyFaults;
use super::{MAX_DENYING_POLICIES, MatchedPolicy, Policy, ViolationReport, glob};
use crate::admission::DecodedAttributes;
use crate::rules::FindingLevel;
use crate::rules::table::{POLICY_TAINT, POLICY_TAINT_DATA};
use crate::site::{TaintTolerationOrSelector, visit_taints_tolerations_and_selectors};
use tollgate_api::view::{self, Taint};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::gotime::{self, Timestamp};

/// Maximum number of taints of an object that are compared with entries: as many as 128 devices with 16
/// taints each, or 64 with 32. No API server accepts more in a slice. An object with more is denied.
const MAX_COMPARED_TAINTS: usize = 128 * 16;
/// Maximum number of steps to match the keys of an object with patterns: some tenths of a second. Only very
/// many patterns with `?` and very long keys take more; such an object is denied.
const MAX_MATCH_STEPS: usize = 1 << 30;
/// Maximum length in bytes of a key that is matched; API servers accept no longer one.
const MAX_KEY_BYTES: usize = 253 + 1 + 63;

/// The compiled `spec` of a TaintPolicy, without the fields that all kinds of policies share.
#[derive(Debug)]
pub(super) struct TaintPolicy {
    /// The allow list; `None` allows all taints.
    allow: Option<Vec<TaintEntry>>,
    deny: Vec<TaintEntry>,
    data: Vec<DataRequirement>,
    max_evictions: Option<i64>,
}

/// The requirements for the data of taints whose key matches a glob.
#[derive(Debug)]
struct DataRequirement {
    key: Box<str>,
    required: bool,
    schema: Option<Schema>,
}

impl TaintPolicy {
    /// Compiles the `spec` of a TaintPolicy, and reports errors.
    pub(super) fn read(
        spec: Value<'_>,
        at: &Path<'_>,
        schemas: &mut SchemaSource<'_>,
        faults: &mut PolicyFaults,
    ) -> TaintPolicy {
        let allow = spec.get("allow");
        let data_at = at.field("data");
        let mut data = Vec::new();
        for (index, item) in spec.get("data").items().enumerate() {
            data.push(DataRequirement {
                key: item.get("key").str().into(),
                required: item.get("required").bool().unwrap_or_default(),
                schema: schemas.compile_schema_of(item, &data_at.index(index), faults),
            });
        }
        TaintPolicy {
            allow: allow.exists().then(|| TaintEntry::read_all(allow, "allow")),
            deny: TaintEntry::read_all(spec.get("deny"), "deny"),
            data,
            max_evictions: spec.get("maxEvictionsPerSecond").int(),
        }
    }

    /// Returns the entries of `allow` and `deny`.
    pub(super) fn allow_and_deny_entries(&self) -> impl Iterator<Item = &TaintEntry> {
        self.allow.iter().flatten().chain(&self.deny)
    }
}

/// Checks the taints of an object against the TaintPolicies that match.
pub(super) fn check_taints(policies: &[MatchedPolicy<'_>], report: &mut ViolationReport<'_>) {
    let admission = report.admission;
    if !policies.iter().any(|matched| matches!(matched.policy.spec, PolicySpec::Taint(_))) {
        return;
    }
    let group = |level| {
        TaintEntryGroup::from_policies(
            policies,
            level,
            driver_of_slice_or_selector(admission),
            admission.now.time,
        )
    };
    let groups: Vec<_> = FindingLevel::ALL.into_iter().rev().filter_map(group).collect();
    let cost: usize = groups.iter().map(TaintEntryGroup::match_steps_per_key_byte).sum();
    let (mut count, mut compared, mut steps) = (0, 0, 0);
    visit_taints_tolerations_and_selectors(admission, &mut |site| {
        let TaintTolerationOrSelector::Taint { at, taint } = site else { return };
        count += 1;
        steps += cost * taint.taint.key().len().min(MAX_KEY_BYTES);
        if count <= MAX_COMPARED_TAINTS && steps <= MAX_MATCH_STEPS {
            compared = count;
            for group in &groups {
                group.check_taint(at, taint.taint, report);
            }
        }
    });
    for group in groups.iter().filter(|_| count > compared) {
        report.report_excess(group.speaker, POLICY_TAINT, "taints", count, compared);
    }
}

/// Returns the driver of a slice, or of the selector of a rule or patch; empty if there is none or no server would
/// accept it.
pub(super) fn driver_of_slice_or_selector<'d>(admission: &DecodedAttributes<'d>) -> &'d str {
    let driver = match admission.object.body {
        view::ObjectBody::Slice(slice) => slice.spec().driver(),
        view::ObjectBody::Rule(rule) => rule.selected_driver(),
        view::ObjectBody::Patch(patch) => patch.selected_driver(),
        _ => "",
    };
    if driver.len() > MAX_DRIVER_BYTES { "" } else { driver }
}

/// An entry of a policy, with `${driver}` replaced in its key.
#[derive(Debug)]
struct EntryWithResolvedDriver<'s> {
    policy: &'s Policy,
    entry: &'s TaintEntry,
    key: Cow<'s, str>,
}

impl EntryWithResolvedDriver<'_> {
    /// True if the entry includes the taint.
    fn matches(&self, taint: Taint<'_>) -> bool {
        self.entry.terms.covers_value_and_effect(taint.value(), taint.effect()) && self.matches_key(taint)
    }

    /// True if the entry includes taints with this key.
    fn matches_key(&self, taint: Taint<'_>) -> bool {
        glob::matches(&self.key, taint.key())
    }
}

/// A TaintPolicy that restricts the user, with its data requirements for the driver of the object.
#[derive(Debug)]
struct RestrictingTaintPolicy<'s> {
    policy: &'s Policy,
    spec: &'s TaintPolicy,
    /// The keys of `data`, with the driver filled in.
    data_keys: Vec<Cow<'s, str>>,
}

/// The entries of all TaintPolicies with the same action that match a request, which together decide about each taint.
#[derive(Debug)]
struct TaintEntryGroup<'s> {
    /// The first policy in force that restricts the user; messages about the object as a whole name it.
    speaker: &'s Policy,
    /// The first policy in force with an allow list that restricts the user; `None` if every taint is allowed.
    restricting: Option<&'s Policy>,
    allowed: Vec<EntryWithResolvedDriver<'s>>,
    expired: Vec<EntryWithResolvedDriver<'s>>,
    /// Deny entries, grouped by policy.
    denied: Vec<EntryWithResolvedDriver<'s>>,
    binding: Vec<RestrictingTaintPolicy<'s>>,
    driver: &'s str,
}

impl<'s> TaintEntryGroup<'s> {
    /// Collects the entries for the driver of the policies with that action; `None` if none of them binds the user.
    fn from_policies(
        policies: &[MatchedPolicy<'s>],
        level: FindingLevel,
        driver: &'s str,
        now: Option<Timestamp>,
    ) -> Option<TaintEntryGroup<'s>> {
        let is_ours = move |matched: &MatchedPolicy<'_>| {
            matched.policy.action == level && matched.policy.scope.matches_named_or_unknown_driver(driver)
        };
        let ours =
            || policies_of_kind(policies, PolicySpec::taint).filter(move |(matched, _)| is_ours(matched));
        let binding = || ours().filter(|(matched, _)| matched.binds);
        let in_force_since = |policy: &&'s Policy| policy.future_deny_time(now);
        let speaker = binding().map(|(matched, _)| matched.policy).min_by_key(in_force_since)?;
        let restricting =
            binding().filter(|(_, spec)| spec.allow.is_some()).map(|(matched, _)| matched.policy);
        let restricting = restricting.min_by_key(in_force_since);
        let grant = |policy: &'s Policy, entry: &'s TaintEntry, driver| EntryWithResolvedDriver {
            policy,
            entry,
            key: replace_driver_placeholder(&entry.key, driver),
        };
        // Without a clock, a deny entry does not expire.
        let is_live = |entry: &&TaintEntry| now.is_none() || !entry.terms.is_expired(now);
        // An object without a driver affects all drivers: that must not bypass a deny entry.
        let denied_driver = if driver.is_empty() { "*" } else { driver };
        let denied = binding().flat_map(|(matched, spec)| {
            let live = spec.deny.iter().filter(is_live);
            live.map(move |entry| grant(matched.policy, entry, denied_driver))
        });
        let (expired, allowed) = ours()
            .filter(|_| restricting.is_some())
            .flat_map(|(matched, spec)| {
                spec.allow.iter().flatten().map(move |entry| grant(matched.policy, entry, driver))
            })
            .partition(|grant| grant.entry.terms.is_expired(now));
        let binding_policy = |(matched, spec): (MatchedPolicy<'s>, &'s TaintPolicy)| RestrictingTaintPolicy {
            policy: matched.policy,
            spec,
            data_keys: spec.data.iter().map(|data| replace_driver_placeholder(&data.key, driver)).collect(),
        };
        Some(TaintEntryGroup {
            speaker,
            restricting,
            allowed,
            expired,
            denied: denied.collect(),
            binding: binding().map(binding_policy).collect(),
            driver,
        })
    }

    /// Returns the most steps that matching all entries takes for each byte of a key.
    fn match_steps_per_key_byte(&self) -> usize {
        let grants = self.allowed.iter().chain(&self.expired).chain(&self.denied).map(|grant| &grant.key);
        grants
            .chain(self.binding.iter().flat_map(|binding| &binding.data_keys))
            .map(|key| glob::match_steps_per_byte(key))
            .sum()
    }

    /// Checks one taint against the entries, the limits and the data requirements.
    fn check_taint(&self, at: &Path<'_>, taint: Taint<'_>, report: &mut ViolationReport<'_>) {
        let length = taint.key().len();
        if length > MAX_KEY_BYTES {
            let short =
                format!("a key of {length} bytes is not allowed, because API servers accept {MAX_KEY_BYTES}");
            report.report_forbidden(self.speaker, POLICY_TAINT, at, &short);
            return;
        }
        self.report_denying_policies(at, taint, report);
        if let Some(restricting) = self.restricting {
            self.check_allow_entries(restricting, at, taint, report);
        }
        let before = report.reported;
        for binding in &self.binding {
            if report.reported - before >= MAX_DENYING_POLICIES {
                return;
            }
            let policy = binding.policy;
            if let (Some(most), Some(rate)) = (binding.spec.max_evictions, taint.evictions_per_second())
                && rate > most
            {
                let detail = || format!("{rate} exceeds the maximum of {most} set by {}", policy.describe());
                report
                    .report(policy, POLICY_TAINT, &at.field("evictionsPerSecond"))
                    .invalid(BadValue::Int(rate), detail)
                    .with_warning_texts(policy, format_args!("{rate} exceeds the maximum of {most}"), None);
            }
            binding.check_data(at, taint, report);
        }
    }

    /// Reports the policies with a deny entry for the taint, at most [`MAX_DENYING_POLICIES`].
    fn report_denying_policies(&self, at: &Path<'_>, taint: Taint<'_>, report: &mut ViolationReport<'_>) {
        let by_policy = self.denied.chunk_by(|one, next| std::ptr::eq(one.policy, next.policy));
        let denials = by_policy.filter_map(|grants| grants.iter().find(|grant| grant.matches(taint)));
        for EntryWithResolvedDriver { policy, entry, .. } in denials.take(MAX_DENYING_POLICIES) {
            let explains = report.should_explain_next();
            let detail = || {
                let entry =
                    if explains { entry.describe_with_location() } else { entry.terms.location.to_string() };
                format!("taint {} is denied by {entry} in {}", describe_taint(taint), policy.describe())
            };
            let short = format_args!("taint {} is not allowed", describe_taint(taint));
            let reason = entry.terms.reason.as_deref();
            report
                .report(policy, POLICY_TAINT, at)
                .forbidden(detail)
                .with_warning_texts(policy, short, reason);
        }
    }

    /// Reports a taint that no allow entry includes; `restricting` is the policy that requires one.
    fn check_allow_entries(
        &self,
        restricting: &'s Policy,
        at: &Path<'_>,
        taint: Taint<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let admission = report.admission;
        if self.allowed.iter().any(|grant| grant.matches(taint)) {
            return;
        }
        let lapsed = self.expired.iter().find(|grant| grant.matches(taint));
        let near =
            || self.allowed.iter().find(|grant| grant.matches_key(taint)).or_else(|| self.allowed.first());
        let closest = lapsed.or_else(near);
        let policy = closest.map_or(restricting, |grant| grant.policy);
        let explains = report.should_explain_next();
        let detail = || {
            let (named, policy) = (describe_taint(taint), policy.describe());
            let Some(grant) = closest.filter(|_| explains) else {
                return if explains {
                    format!("taint {named} is not allowed: {policy} allows no taints")
                } else {
                    format!("taint {named} is not allowed by {policy}")
                };
            };
            let entry = format!("{} in {policy}", grant.entry.describe_with_location());
            let end = grant.entry.terms.expired_at(admission.now.time).filter(|_| lapsed.is_some());
            let why = if let Some(end) = end {
                format!("{entry} expired at {}", gotime::rfc3339(end))
            } else {
                let lacks = self.describe_shortfall(grant, taint, admission);
                format!("the closest entry, {entry}, {lacks}")
            };
            format!("taint {named} is not allowed: {why}")
        };
        let short = format_args!("taint {} is not allowed", describe_taint(taint));
        report
            .report(policy, POLICY_TAINT, at)
            .with_level_of(restricting)
            .forbidden(detail)
            .with_warning_texts(policy, short, None);
    }

    /// Returns why an allow entry does not include the taint, as a phrase that continues a sentence about the entry.
    fn describe_shortfall(
        &self,
        grant: &EntryWithResolvedDriver<'_>,
        taint: Taint<'_>,
        admission: &DecodedAttributes<'_>,
    ) -> String {
        let terms = &grant.entry.terms;
        if !grant.matches_key(taint) {
            match (grant.entry.key.contains(DRIVER_PLACEHOLDER), self.driver) {
                (true, "") => missing_driver_hint(admission),
                (true, driver) => format!("does not allow key {} for driver {driver:?}", taint.key()),
                (false, _) => format!("does not allow key {}", taint.key()),
            }
        } else if terms
            .covers_value_and_effect(taint.value(), terms.effects.names().next().unwrap_or_default())
        {
            format!("does not allow effect {}", taint.effect())
        } else {
            format!("does not allow value {:?}", taint.value())
        }
    }
}

/// Returns why an entry with `${driver}` matches no taint of an object that names no driver, as a phrase about the
/// entry.
fn missing_driver_hint(admission: &DecodedAttributes<'_>) -> String {
    let (what, field) = match admission.object.body {
        view::ObjectBody::Rule(_) => ("rule", "deviceSelector.driver"),
        view::ObjectBody::Patch(_) => ("patch", "devices.filter.driver"),
        _ => ("object", "driver"),
    };
    format!(
        "matches no key, because the {what} does not set the driver that replaces `${{driver}}`: set `{field}`"
    )
}

/// Returns a taint for messages, such as `a/b=c:NoExecute`.
fn describe_taint(taint: Taint<'_>) -> String {
    let value = if taint.value().is_empty() {
        String::new()
    } else {
        format!("={}", quote_unless_plain(taint.value()))
    };
    format!("{}{value}:{}", quote_unless_plain(taint.key()), taint.effect())
}

impl RestrictingTaintPolicy<'_> {
    /// Checks the data of a taint against the requirements for its key.
    fn check_data(&self, at: &Path<'_>, taint: Taint<'_>, report: &mut ViolationReport<'_>) {
        let data_at = at.field("data");
        let before = report.reported;
        let keyed = self.spec.data.iter().zip(&self.data_keys);
        for (wanted, _) in keyed.filter(|(_, key)| glob::matches(key, taint.key())) {
            if report.reported - before >= MAX_DENYING_POLICIES {
                return;
            }
            if taint.data().is_null_or_absent() {
                if wanted.required {
                    let (key, policy) = (taint.key(), self.policy);
                    report
                        .report(policy, POLICY_TAINT_DATA, &data_at)
                        .required(|| format!("data is required for key {key} by {}", policy.describe()))
                        .with_warning_texts(policy, "data is required for this key", None);
                }
                continue;
            }
            let check = JsonCheck::Contents(wanted.schema.as_ref());
            report.check_json(self.policy, POLICY_TAINT_DATA, check, taint.data(), &data_at);
        }
    }
}
