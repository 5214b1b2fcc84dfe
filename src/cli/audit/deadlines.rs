//! What ends soon, and what should have ended: allow entries that expire within a week, the running claims that could
//! then not be created again, and DeviceTaintRules that are expired or have no owner.
//!
//! Only reported: no exit code depends on it, because nothing is wrong with the objects as they are stored.

use super::AuditSettings;
use crate::cli::table;
use crate::report::record::{Json, record};
use tollgate_document::doc::Value;
use tollgate_engine::engine::{Attributes, LabelsIfKnown, Verdict};
use tollgate_engine::impact::Snapshot;
use tollgate_engine::policy::PolicySet;
use tollgate_engine::rules::{FindingLevel, RuleOrigin};
use tollgate_formats::gotime::{self, Timestamp};

/// Allow entries that expire within this time are listed.
const WEEK_SECONDS: i64 = 7 * 24 * 3600;

/// Allow entries that expire within a week, the running claims that need them, and forgotten DeviceTaintRules: as
/// JSON records and as rows of tables.
#[derive(Debug, Default)]
pub(super) struct ExpiriesAndForgottenRules {
    /// Allow entries that expire within a week.
    pub(super) expiring_entries: Vec<Json>,
    entry_rows: Vec<Vec<String>>,
    /// Running claims that policies would deny, were they created again after an entry has expired.
    pub(super) failing_claims: Vec<Json>,
    claim_rows: Vec<Vec<String>>,
    /// DeviceTaintRules that are expired or have no owner.
    pub(super) forgotten_rules: Vec<Json>,
    rule_rows: Vec<Vec<String>>,
}

/// Returns the times within a week at which allow entries expire, in order and each once.
pub(super) fn expirations_within_week(policies: &PolicySet, now: &str) -> Vec<String> {
    let Ok(now) = gotime::parse_rfc3339(now) else { return Vec::new() };
    let times = policies.toleration_allow_entries_by_expiry().into_iter().map(|entry| entry.expires);
    let mut times: Vec<String> =
        times.filter(|time| is_within_next_week(*time, now)).map(gotime::rfc3339).collect();
    times.dedup();
    times
}

/// True if the time is within a week from now, and not past.
fn is_within_next_week(time: Timestamp, now: Timestamp) -> bool {
    time > now && time.seconds.saturating_sub(now.seconds) <= WEEK_SECONDS
}

impl ExpiriesAndForgottenRules {
    /// Adds the allow entries that expire within a week.
    pub(super) fn add_expiring_entries(&mut self, policies: &PolicySet, now: &str) {
        let Ok(now) = gotime::parse_rfc3339(now) else { return };
        for entry in policies
            .toleration_allow_entries_by_expiry()
            .into_iter()
            .filter(|entry| is_within_next_week(entry.expires, now))
        {
            let (expires, has_reason) = (gotime::rfc3339(entry.expires), entry.reason.is_some());
            self.expiring_entries.push(record! {
                "policy": entry.policy,
                "source": entry.source,
                "entry": entry.entry,
                "tolerations": entry.tolerations,
                "reason" if has_reason: entry.reason,
                "expires": expires,
            });
            let reason = entry.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let tolerations = format!("{}{reason}", entry.tolerations);
            self.entry_rows.push(vec![expires, format!("{} {}", entry.policy, entry.entry), tolerations]);
        }
    }

    /// Adds an allocated claim that policies admit now, if they deny it once an entry has expired.
    pub(super) fn add_claim_if_soon_denied(
        &mut self,
        run: &AuditSettings<'_>,
        object: Value<'_>,
        labels: LabelsIfKnown<'_>,
    ) {
        let is_running =
            object.get("kind").str() == "ResourceClaim" && object.get("status").get("allocation").exists();
        let Some(last) = run.expirations_within_week.last().filter(|_| is_running) else { return };
        let denial_at = |now: &str| denying_policy(run, object, labels, now);
        // Most claims do not depend on an entry that expires.
        if denial_at(last).is_none() || denial_at(&run.now).is_some() {
            return;
        }
        let first = run.expirations_within_week.iter().find_map(|time| Some((time, denial_at(time)?)));
        if let Some((from, policy)) = first {
            let text = |name: &str| object.get("metadata").get(name).str();
            let (namespace, name) = (text("namespace"), text("name"));
            let record = record! { "namespace": namespace, "name": name, "from": from, "policy": policy };
            self.failing_claims.push(record);
            self.claim_rows.push(vec![from.clone(), format!("{namespace}/{name}"), policy]);
        }
    }

    /// Adds the DeviceTaintRules of the cluster that are expired or have no owner.
    pub(super) fn add_forgotten_rules(&mut self, snapshot: &Snapshot, now: &str) {
        let Ok(now) = gotime::parse_rfc3339(now) else { return };
        for rule in snapshot.forgotten_rules(now) {
            let expired = rule.expired_at.map(gotime::rfc3339);
            self.forgotten_rules.push(record! {
                "name": rule.name,
                "expired" if given: expired,
                "hasOwner": !rule.is_ownerless,
                "devices": rule.devices,
                "idleDevices": rule.idle,
            });
            let expired = expired.unwrap_or_else(|| "-".to_owned());
            let owner = if rule.is_ownerless { "no" } else { "yes" };
            let (devices, idle) = (rule.devices.to_string(), rule.idle.to_string());
            self.rule_rows.push(vec![rule.name.to_owned(), expired, owner.to_owned(), devices, idle]);
        }
    }

    /// Returns a table for each kind of deadline; empty if there are none.
    pub(super) fn tables(&self) -> String {
        [
            table_section(&["EXPIRES", "ALLOW ENTRY", "TOLERATIONS"], &self.entry_rows),
            table_section(&["FAILS FROM", "RUNNING CLAIM", "POLICY"], &self.claim_rows),
            table_section(&["DEVICETAINTRULE", "EXPIRED", "OWNER", "DEVICES", "IDLE"], &self.rule_rows),
        ]
        .concat()
    }
}

/// Returns an empty line and a table; an empty text if there are no rows.
fn table_section(header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() { String::new() } else { format!("\n{}", table::format_table(header, rows)) }
}

/// Returns the first policy that denies the object at that time; `None` if none does.
fn denying_policy(
    run: &AuditSettings<'_>,
    object: Value<'_>,
    labels: LabelsIfKnown<'_>,
    now: &str,
) -> Option<String> {
    let Verdict::Checked(mut found) = run.engine.validate(&Attributes::for_create(object, "", now), labels)
    else {
        return None;
    };
    found.retain_mut(|diagnostic| run.levels.set_level_if_reported(diagnostic));
    let denial =
        found.iter().find(|one| one.origin == RuleOrigin::Policy && one.level == FindingLevel::Deny)?;
    denial.policy.as_deref().map(str::to_owned)
}
