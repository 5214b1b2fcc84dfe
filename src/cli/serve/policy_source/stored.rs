//! The policies in the cluster, including those that have disappeared from the watch and may not have been deleted.
//!
//! A policy that the watch no longer has may have been deleted by somebody, or together with its
//! CustomResourceDefinition, or the API server may not serve it for the moment. So it stays in use, marked as missing,
//! until discovery confirms that its kind is still installed ([`StoredPolicies::remove_missing_of_kind`]).
//!
//! Not here: requests and clocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::condition::StoredStatus;
use crate::cluster::{ListedKind, WatchedObject};
use tollgate_engine::policy::{PolicyKind, PolicyResource};

/// A policy that is stored in the cluster, or that has disappeared and is still in use.
#[derive(Debug)]
pub(super) struct StoredPolicy {
    pub(super) kind: ListedKind,
    pub(super) resource: PolicyResource,
    /// `metadata.resourceVersion`
    pub(super) version: Box<str>,
    pub(super) status: StoredStatus,
    /// Number of the last update in which the watch contained the policy.
    seen: u64,
    /// When the policy disappeared from the watch; `None` if the watch contains it.
    missing_since: Option<Instant>,
}

/// All policies that the watch contains, and those that have disappeared from it but stay in use.
#[derive(Debug, Default)]
pub(super) struct StoredPolicies {
    /// True if all kinds were listed once.
    pub(super) is_synced: bool,
    all: BTreeMap<(PolicyKind, Box<str>), StoredPolicy>,
    /// Grows with each change of a spec.
    pub(super) revision: u64,
    /// Grows with each change, also of a status.
    pub(super) changes: u64,
    /// Grows with each update.
    updates: u64,
}

impl StoredPolicies {
    /// Returns the number of policies, including missing ones.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns all policies, in the form that the engine loads.
    pub(super) fn to_policy_resources(&self) -> Vec<PolicyResource> {
        self.all.values().map(|policy| policy.resource.clone()).collect()
    }

    /// Returns the policies that the watch contains, without those that have disappeared.
    pub(super) fn policies_in_watch(&self) -> impl Iterator<Item = &StoredPolicy> {
        self.all.values().filter(|policy| policy.missing_since.is_none())
    }

    /// Adds or replaces the objects of the watch, and marks the other policies as missing.
    pub(super) fn update_from_watch(&mut self, objects: &[Arc<WatchedObject>], now: Instant) {
        self.updates += 1;
        for object in objects {
            let Some(kind) = PolicyKind::parse(object.kind.kind) else { continue };
            let key = (kind, object.name.clone());
            match self.all.get_mut(&key) {
                Some(known) if known.version == object.resource_version => {
                    (known.seen, known.missing_since) = (self.updates, None);
                }
                known => {
                    let policy = StoredPolicy::read(kind, object, self.updates);
                    let is_same = known.is_some_and(|known| {
                        let (old, new) = (&known.resource, &policy.resource);
                        !old.uid.is_empty() && (&old.uid, old.generation) == (&new.uid, new.generation)
                    });
                    self.revision += u64::from(!is_same);
                    self.changes += 1;
                    self.all.insert(key, policy);
                }
            }
        }
        for policy in self.all.values_mut().filter(|policy| policy.seen != self.updates) {
            policy.missing_since.get_or_insert(now);
        }
    }

    /// True if the watch no longer has some of the policies.
    pub(super) fn has_missing(&self) -> bool {
        self.all.values().any(|policy| policy.missing_since.is_some())
    }

    /// The kinds of the policies that have been missing for this long.
    pub(super) fn kinds_with_policies_missing_for(&self, delay: Duration, now: Instant) -> Vec<ListedKind> {
        let mut kinds: Vec<ListedKind> = Vec::new();
        for policy in self.all.values().filter(|policy| policy.is_missing_for(delay, now)) {
            if !kinds.contains(&policy.kind) {
                kinds.push(policy.kind);
            }
        }
        kinds
    }

    /// Removes the policies of a kind that have been missing for this long, because they were deleted.
    pub(super) fn remove_missing_of_kind(&mut self, kind: &ListedKind, delay: Duration, now: Instant) {
        let before = self.all.len();
        self.all.retain(|_, policy| policy.kind != *kind || !policy.is_missing_for(delay, now));
        let is_changed = self.all.len() != before;
        self.revision += u64::from(is_changed);
        self.changes += u64::from(is_changed);
    }
}

impl StoredPolicy {
    fn read(kind: PolicyKind, object: &WatchedObject, seen: u64) -> StoredPolicy {
        let root = object.object.root();
        StoredPolicy {
            kind: object.kind,
            resource: PolicyResource::new(kind, root.to_json()),
            version: object.resource_version.clone(),
            status: StoredStatus::read(root.get("status")),
            seen,
            missing_since: None,
        }
    }

    fn is_missing_for(&self, delay: Duration, now: Instant) -> bool {
        self.missing_since.is_some_and(|since| now.saturating_duration_since(since) >= delay)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Duration, Instant, StoredPolicies, WatchedObject};
    use crate::cluster::POLICY_KINDS;
    use tollgate_document::doc::{self, Builder, Syntax};

    fn object(kind: usize, name: &str, uid: &str, generation: i64, version: &str) -> Arc<WatchedObject> {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{uid}","generation":{generation}}},"spec":{{}}}}"#
        );
        let parsed = doc::parse(&text).expect("JSON");
        let mut copy = Builder::with_exact_capacity("", Syntax::Json, parsed.root().node_count());
        copy.copy(parsed.root());
        Arc::new(WatchedObject {
            kind: POLICY_KINDS[kind],
            api_version: "tollgate.dev/v1alpha1".into(),
            namespace: "".into(),
            name: name.into(),
            resource_version: version.into(),
            object: Arc::new(copy.finish()),
        })
    }

    const DELAY: Duration = Duration::from_millis(500);

    #[test]
    fn only_a_change_of_a_spec_is_a_new_revision() {
        let mut stored = StoredPolicies::default();
        let now = Instant::now();
        stored.update_from_watch(&[object(0, "a", "u", 1, "1"), object(1, "a", "v", 1, "2")], now);
        assert_eq!((stored.revision, stored.changes, stored.len()), (2, 2, 2));
        stored.update_from_watch(&[object(0, "a", "u", 1, "3"), object(1, "a", "v", 1, "2")], now);
        assert_eq!((stored.revision, stored.changes), (2, 3), "a status");
        stored.update_from_watch(&[object(0, "a", "u", 2, "4"), object(1, "a", "v", 1, "2")], now);
        assert_eq!((stored.revision, stored.changes), (3, 4), "a spec");
        stored.update_from_watch(&[object(0, "a", "w", 2, "5"), object(1, "a", "v", 1, "2")], now);
        assert_eq!((stored.revision, stored.changes), (4, 5), "deleted and created again");
    }

    #[test]
    fn a_missing_policy_stays_in_use_until_its_deletion_is_certain() {
        let mut stored = StoredPolicies::default();
        let start = Instant::now();
        stored.update_from_watch(&[object(0, "a", "u", 1, "1"), object(1, "b", "v", 1, "2")], start);
        stored.update_from_watch(&[object(1, "b", "v", 1, "2")], start);
        assert!(stored.has_missing() && stored.kinds_with_policies_missing_for(DELAY, start).is_empty());
        assert_eq!((stored.len(), stored.policies_in_watch().count(), stored.revision), (2, 1, 2));
        let later = start + DELAY;
        assert_eq!(stored.kinds_with_policies_missing_for(DELAY, later), [POLICY_KINDS[0]]);
        stored.remove_missing_of_kind(&POLICY_KINDS[1], DELAY, later);
        assert_eq!((stored.len(), stored.revision), (2, 2), "another kind");
        // The watch has it again: it was never gone.
        stored.update_from_watch(&[object(0, "a", "u", 1, "1"), object(1, "b", "v", 1, "2")], later);
        assert!(!stored.has_missing());
        stored.update_from_watch(&[object(1, "b", "v", 1, "2")], later);
        stored.remove_missing_of_kind(&POLICY_KINDS[0], DELAY, later + DELAY);
        assert_eq!((stored.len(), stored.revision, stored.has_missing()), (1, 3, false));
    }
}
