//! The times at which a set of policies changes by itself: allow entries that expire, and policies that start to deny.
//!
//! The caller decides which times are soon enough for a warning.

use super::PolicySet;
use super::entries::CommonEntryFields;
use super::kind::{PolicyKind, PolicySpec};
use super::resource::PolicyResourceState;
use super::taint::TaintPolicy;
use super::toleration::TolerationPolicy;
use crate::rules::FindingLevel;
use tollgate_formats::gotime::Timestamp;

/// An allow entry of a TolerationPolicy that expires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpiringTolerationAllowEntry<'s> {
    /// The name of the policy.
    pub policy: &'s str,
    /// `file:line` of the policy.
    pub source: &'s str,
    /// Path of the entry, such as `allow[0]`.
    pub entry: &'s str,
    /// The tolerations of the entry, such as `{key: a/b, effects: [NoSchedule]}`.
    pub tolerations: String,
    /// `reason` of the entry.
    pub reason: Option<&'s str>,
    /// The time at which the entry expires.
    pub expires: Timestamp,
}

/// A policy that denies only from some time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnforcementStart<'s> {
    pub kind: PolicyKind,
    /// The name of the policy.
    pub policy: &'s str,
    /// `enforceFrom` of the policy.
    pub from: Timestamp,
}

/// The entry of a policy resource that expires next, and when.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EntryExpiry {
    /// Time of the expiry.
    pub time: Timestamp,
    /// The entry and its key, such as `allow[0] gpu.example.com/degraded`.
    pub entry: String,
}

impl PolicyResourceState {
    /// Returns the entry of `allow` or `deny` that expires next; `None` if none expires after `now`.
    pub fn next_expiry(&self, now: Timestamp) -> Option<EntryExpiry> {
        let entries = entry_fields_and_keys(&self.policy.as_ref()?.spec);
        let expiry = |(terms, key): (&CommonEntryFields, String)| {
            let time = terms.expires.filter(|time| *time > now)?;
            Some(EntryExpiry { time, entry: format!("{} {key}", terms.location) })
        };
        entries.into_iter().filter_map(expiry).min()
    }

    /// Returns the paths of the entries that have expired, such as `allow[0]`, each with the time.
    pub fn expired_entries(&self, now: Timestamp) -> Vec<(&str, Timestamp)> {
        let spec = self.policy.as_ref().map(|policy| &policy.spec);
        let terms = spec.into_iter().flat_map(entry_fields_and_keys).map(|(terms, _)| terms);
        terms.filter_map(|terms| Some((&*terms.location, terms.expired_at(Some(now))?))).collect()
    }
}

impl PolicySet {
    /// Returns the allow entries of TolerationPolicies that expire or have expired, the first to expire first.
    pub fn toleration_allow_entries_by_expiry(&self) -> Vec<ExpiringTolerationAllowEntry<'_>> {
        let mut entries = Vec::new();
        for policy in &self.policies {
            let grants =
                policy.spec.toleration().into_iter().flat_map(TolerationPolicy::allow_and_default_entries);
            entries.extend(grants.filter_map(|grant| {
                Some(ExpiringTolerationAllowEntry {
                    policy: &policy.name,
                    source: &policy.source,
                    entry: &grant.terms.location,
                    tolerations: grant.describe(),
                    reason: grant.terms.reason.as_deref(),
                    expires: grant.terms.expires?,
                })
            }));
        }
        entries.sort_by_key(|entry| entry.expires);
        entries
    }

    /// Returns the policies with `action: Deny` and `enforceFrom`, past or future.
    pub fn deny_policies_with_enforce_from(&self) -> impl Iterator<Item = EnforcementStart<'_>> {
        let denying = self.policies.iter().filter(|policy| policy.action == FindingLevel::Deny);
        denying.filter_map(|policy| {
            let from = policy.enforce_from?;
            Some(EnforcementStart { kind: policy.spec.kind(), policy: &policy.name, from })
        })
    }
}

/// Returns the common fields of each entry of a policy, with the key of the entry; none for kinds without entries.
pub(super) fn entry_fields_and_keys(spec: &PolicySpec) -> Vec<(&CommonEntryFields, String)> {
    let tolerations =
        spec.toleration().into_iter().flat_map(TolerationPolicy::allow_default_and_deny_entries);
    let taints = spec.taint().into_iter().flat_map(TaintPolicy::allow_and_deny_entries);
    tolerations
        .map(|entry| (&entry.terms, entry.entry.keys.to_string()))
        .chain(taints.map(|entry| (&entry.terms, entry.key.to_string())))
        .collect()
}
