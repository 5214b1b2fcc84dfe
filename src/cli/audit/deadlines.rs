//! What ends soon, and what should have ended: allow entries that expire within a week, the running claims that could
//! then not be created again, and DeviceTaintRules that are expired or have no owner.
//!
//! Only reported: no exit code depends on it, because nothing is wrong with the objects as they are stored.

use serde::Serialize;

use super::AuditRun;
use crate::cli::table;
use tollgate_document::doc::Value;
use tollgate_engine::engine::{Attributes, Labels, Verdict};
use tollgate_engine::impact::Snapshot;
use tollgate_engine::policy::PolicySet;
use tollgate_engine::rules::{Level, Origin};
use tollgate_formats::gotime::{self, Timestamp};

/// The audit lists what ends within this time.
const SOON_SECONDS: i64 = 7 * 24 * 3600;

/// Policy entries that expire soon, claims that could not be created again then, and rules that are expired or have
/// no owner.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deadlines {
    expiring_entries: Vec<EntryRecord>,
    failing_claims: Vec<ClaimRecord>,
    forgotten_rules: Vec<RuleRecord>,
}

/// An allow entry that expires within a week.
#[derive(Clone, Debug, Serialize)]
struct EntryRecord {
    policy: String,
    source: String,
    entry: String,
    tolerations: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    expires: String,
}

/// A running claim that could not be created again.
#[derive(Clone, Debug, Serialize)]
struct ClaimRecord {
    namespace: String,
    name: String,
    /// From when.
    from: String,
    /// `file:line name` of the policy that then denies it.
    policy: String,
}

/// A DeviceTaintRule that is expired or has no owner.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleRecord {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired: Option<String>,
    has_owner: bool,
    devices: usize,
    idle_devices: usize,
}

/// Returns the times within a week at which allow entries expire, in order and each once.
pub(super) fn ends_soon(policies: &PolicySet, now: &str) -> Vec<String> {
    let Ok(now) = gotime::parse(now) else { return Vec::new() };
    let times = policies.expiring_entries().into_iter().map(|entry| entry.expires);
    let mut times: Vec<String> = times.filter(|time| is_soon(*time, now)).map(gotime::rfc3339).collect();
    times.dedup();
    times
}

/// True if the time is within a week from now, and not past.
fn is_soon(time: Timestamp, now: Timestamp) -> bool {
    time > now && time.seconds.saturating_sub(now.seconds) <= SOON_SECONDS
}

impl Deadlines {
    /// Adds the entries that expire soon.
    pub(super) fn add_entries(&mut self, policies: &PolicySet, now: &str) {
        let Ok(now) = gotime::parse(now) else { return };
        let entries = policies.expiring_entries().into_iter().filter(|entry| is_soon(entry.expires, now));
        self.expiring_entries.extend(entries.map(|entry| EntryRecord {
            policy: entry.policy.to_owned(),
            source: entry.source.to_owned(),
            entry: entry.entry.to_owned(),
            tolerations: entry.tolerations,
            reason: entry.reason.map(str::to_owned),
            expires: gotime::rfc3339(entry.expires),
        }));
    }

    /// Adds an allocated claim that policies admit now, if they deny it once an entry has expired.
    pub(super) fn add_claim(&mut self, run: &AuditRun<'_>, object: Value<'_>, labels: Labels<'_>) {
        let is_running =
            object.get("kind").str() == "ResourceClaim" && object.get("status").get("allocation").exists();
        let Some(last) = run.ends_soon.last().filter(|_| is_running) else { return };
        let denial_at = |now: &str| denying_policy(run, object, labels, now);
        // Most claims do not depend on an entry that expires.
        if denial_at(last).is_none() || denial_at(&run.now).is_some() {
            return;
        }
        let first = run.ends_soon.iter().find_map(|time| Some((time, denial_at(time)?)));
        if let Some((from, policy)) = first {
            let text = |name: &str| object.get("metadata").get(name).str().to_owned();
            let (namespace, name) = (text("namespace"), text("name"));
            self.failing_claims.push(ClaimRecord { namespace, name, from: from.clone(), policy });
        }
    }

    /// Adds the rules that are expired or have no owner.
    pub(super) fn add_rules(&mut self, snapshot: &Snapshot, now: &str) {
        let Ok(now) = gotime::parse(now) else { return };
        self.forgotten_rules.extend(snapshot.forgotten_rules(now).map(|rule| RuleRecord {
            name: rule.name.to_owned(),
            expired: rule.expired_at.map(gotime::rfc3339),
            has_owner: !rule.is_ownerless,
            devices: rule.devices,
            idle_devices: rule.idle,
        }));
    }

    /// Returns a table for each kind of deadline; empty if there are none.
    pub(super) fn tables(&self) -> String {
        let entries = self.expiring_entries.iter().map(|entry| {
            let name = format!("{} {}", entry.policy, entry.entry);
            vec![
                entry.expires.clone(),
                name,
                format!("{}{}", entry.tolerations, in_brackets(entry.reason.as_deref())),
            ]
        });
        let claims = self.failing_claims.iter().map(|claim| {
            vec![claim.from.clone(), format!("{}/{}", claim.namespace, claim.name), claim.policy.clone()]
        });
        let rules = self.forgotten_rules.iter().map(|rule| {
            let expired = rule.expired.clone().unwrap_or_else(|| "-".to_owned());
            let owner = if rule.has_owner { "yes" } else { "no" };
            let (devices, idle) = (rule.devices.to_string(), rule.idle_devices.to_string());
            vec![rule.name.clone(), expired, owner.to_owned(), devices, idle]
        });
        [
            section(&["EXPIRES", "ALLOW ENTRY", "TOLERATIONS"], entries),
            section(&["FAILS FROM", "RUNNING CLAIM", "POLICY"], claims),
            section(&["DEVICETAINTRULE", "EXPIRED", "OWNER", "DEVICES", "IDLE"], rules),
        ]
        .concat()
    }
}

/// A table after an empty line; empty if it has no rows.
fn section(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() { String::new() } else { format!("\n{}", table::aligned(header, &rows)) }
}

fn in_brackets(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}

/// Returns the first policy that denies the object at that time; `None` if none does.
fn denying_policy(run: &AuditRun<'_>, object: Value<'_>, labels: Labels<'_>, now: &str) -> Option<String> {
    let Verdict::Checked(mut found) = run.engine.validate(&Attributes::create(object, "", now), labels)
    else {
        return None;
    };
    found.retain_mut(|diagnostic| run.levels.apply(diagnostic));
    let denial = found.iter().find(|one| one.origin == Origin::Policy && one.level == Level::Deny)?;
    denial.policy.as_deref().map(str::to_owned)
}
