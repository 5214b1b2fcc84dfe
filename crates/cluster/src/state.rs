//! A watch of the cluster state that evictions depend on: slices, claims, pods, rules, PodDisruptionBudgets.
//!
//! Objects go from the API server's text straight into the records of an [`impact::Snapshot`]. Only the fields needed
//! for impact are cached, and only pods that use claims. Requests share the snapshot: it is copied only if it changes
//! while it is read.
//!
//! The size of the snapshot is limited. If its objects take more memory, the largest are left out, and are read again
//! with the next list once there is enough memory.
//!
//! Invariant: no snapshot is returned before everything was listed once; it comes with its age if it may be out of
//! date, and with the number of objects that could not be read or were left out.
//!
//! [`impact::Snapshot`]: tollgate_engine::impact::Snapshot

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Cluster;
use super::client::FULL_OBJECTS;
use super::listed_kind::{
    DEVICE_TAINT_RULES, ListedKind, POD_DISRUPTION_BUDGETS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES,
};
use super::watch::{ObjectKeys, ObjectSink, Reflector, StoreOutcome, WatchedResource, namespace_and_name};
use super::watch_health::{WatchHealth, WatchStatus};
use tollgate_document::doc::Value;
use tollgate_engine::Timestamp;
use tollgate_engine::impact::{ClusterState, RemovedObject, Snapshot, SnapshotKind};

/// A kind of object in the snapshot, and the resource that is watched for it.
#[derive(Clone, Copy, Debug)]
struct SnapshotResource {
    kind: SnapshotKind,
    resource: WatchedResource,
}

const fn snapshot_resource(kind: SnapshotKind, listed: ListedKind, page: usize) -> SnapshotResource {
    let (accept, accept_watch) = (FULL_OBJECTS, FULL_OBJECTS);
    let (keep, max_nodes) = (kind.fields_without_details(), kind.max_kept_keys_and_values());
    SnapshotResource {
        kind,
        resource: WatchedResource { kind: listed, accept, accept_watch, page, keep, max_nodes },
    }
}

/// The kinds that impact needs. Pages have hundreds of small objects, or dozens of slices with up to 128 devices.
const SNAPSHOT_RESOURCES: [SnapshotResource; 5] = [
    snapshot_resource(SnapshotKind::Slice, RESOURCE_SLICES, 24),
    snapshot_resource(SnapshotKind::Claim, RESOURCE_CLAIMS, 200),
    snapshot_resource(SnapshotKind::Pod, PODS, 200),
    snapshot_resource(SnapshotKind::Rule, DEVICE_TAINT_RULES, 200),
    snapshot_resource(SnapshotKind::Budget, POD_DISRUPTION_BUDGETS, 200),
];

/// Watches the objects that impact needs, and keeps a snapshot of them current.
#[derive(Clone, Debug)]
pub struct StateWatch(Arc<CachedState>);

/// The snapshot that the watches of all kinds update, and the health of each watch.
#[derive(Debug)]
struct CachedState {
    snapshot: Mutex<Arc<Snapshot>>,
    /// Maximum number of bytes that the snapshot may take.
    limit: usize,
    kinds: [Arc<SnapshotKindWatch>; SNAPSHOT_RESOURCES.len()],
}

/// The health of the watch of one kind.
#[derive(Debug)]
struct SnapshotKindWatch {
    watched: SnapshotResource,
    health: Arc<WatchHealth>,
    /// Whether objects were left out for lack of memory since the last list.
    has_shed: AtomicBool,
}

impl StateWatch {
    /// Starts to watch all kinds that impact needs. The snapshot takes at most `limit` bytes: beyond that, the largest
    /// objects are left out.
    pub fn start_watch(cluster: &Cluster, limit: usize) -> StateWatch {
        let kinds = SNAPSHOT_RESOURCES.map(|watched| {
            let health = Arc::new(WatchHealth::new(watched.resource.kind.resource));
            Arc::new(SnapshotKindWatch { watched, health, has_shed: AtomicBool::default() })
        });
        let state = Arc::new(CachedState { snapshot: Mutex::default(), limit, kinds });
        for own in &state.kinds {
            let sink = SnapshotSink { state: state.clone(), own: own.clone() };
            Reflector::start(cluster, own.watched.resource, Arc::new(sink), own.health.clone());
        }
        StateWatch(state)
    }

    /// The current snapshot of the cluster; `None` until every kind was listed once.
    pub fn current(&self) -> Option<ClusterState> {
        let (mut oldest, mut unreadable) = (None, 0);
        for SnapshotKindWatch { health, .. } in self.0.kinds.iter().map(Arc::as_ref) {
            if !health.is_synced() {
                return None;
            }
            oldest = oldest.max(health.age_if_stale());
            unreadable += health.unreadable_count();
        }
        Some(ClusterState {
            snapshot: self.0.lock().clone(),
            age_seconds_if_stale: oldest.map(|age| age.as_secs()),
            unreadable_objects: unreadable,
        })
    }

    /// Returns the names of the watched resources, such as `resourceslices`.
    pub fn resources(&self) -> impl Iterator<Item = &'static str> {
        self.0.kinds.iter().map(|own| own.health.resource())
    }

    /// The status of a resource's watch, and how many of its objects are cached; `None` if it is not watched.
    pub fn status_and_object_count(&self, resource: &str) -> Option<(WatchStatus, usize)> {
        let own = self.0.kinds.iter().find(|own| own.health.resource() == resource)?;
        // Counted under the lock: a clone would make the next change copy the snapshot.
        let snapshot = self.0.lock();
        Some((own.health.status(), snapshot.count(own.watched.kind)))
    }

    /// Returns the number of rules with effect NoSchedule or NoExecute that have expired, and the number that have
    /// no owner.
    pub fn expired_and_unowned_rule_counts(&self, now: Timestamp) -> (usize, usize) {
        self.0.lock().count_expired_and_unowned_blocking_rules(now)
    }

    /// Returns the memory that the snapshot takes and may take, in bytes.
    pub fn used_and_allowed_bytes(&self) -> (usize, usize) {
        (self.0.lock().estimated_bytes(), self.0.limit)
    }
}

impl CachedState {
    fn lock(&self) -> MutexGuard<'_, Arc<Snapshot>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_snapshot<T>(&self, change: impl FnOnce(&mut Snapshot) -> T) -> T {
        change(Arc::make_mut(&mut self.lock()))
    }

    /// Records objects that were left out of the snapshot, each at the watch of its kind.
    fn record_objects_left_out_for_memory(&self, left_out: &[RemovedObject]) {
        for object in left_out {
            if let Some(own) = self.kinds.iter().find(|own| own.watched.kind == object.kind) {
                own.has_shed.store(true, Ordering::Relaxed);
                own.health.add_unreadable(
                    &object.namespace,
                    &object.name,
                    &self.memory_limit_message(object),
                );
            }
        }
    }

    /// Returns the message that an object does not fit into the memory limit of the snapshot.
    fn memory_limit_message(&self, object: &RemovedObject) -> String {
        format!(
            "takes {} bytes, and the cached objects may take {} MiB: it is among the largest of them",
            object.bytes,
            self.limit >> 20
        )
    }
}

/// Stores the objects of one kind in the snapshot.
struct SnapshotSink {
    state: Arc<CachedState>,
    own: Arc<SnapshotKindWatch>,
}

impl ObjectSink for SnapshotSink {
    fn put(&self, api_version: &str, object: Value<'_>) -> Result<StoreOutcome, String> {
        let SnapshotResource { kind, resource } = self.own.watched;
        let (namespace, name) = namespace_and_name(object);
        let (applied, is_stored, left_out) = self.state.change_snapshot(|snapshot| {
            let applied = snapshot.apply_as_type(api_version, resource.kind.kind, object);
            let is_stored = snapshot.has(kind, namespace, name);
            (applied, is_stored, snapshot.shed_largest_until_below_byte_limit(self.state.limit))
        });
        let (own, others): (Vec<_>, Vec<_>) = left_out.into_iter().partition(|object| {
            object.kind == kind && *object.namespace == *namespace && *object.name == *name
        });
        self.state.record_objects_left_out_for_memory(&others);
        applied.map_err(|unreadable| unreadable.to_string())?;
        if let Some(object) = own.first() {
            self.own.has_shed.store(true, Ordering::Relaxed);
            return Err(self.state.memory_limit_message(object));
        }
        Ok(if is_stored { StoreOutcome::Yes } else { StoreOutcome::NotNeeded })
    }

    fn remove(&self, namespace: &str, name: &str) {
        self.state.change_snapshot(|snapshot| snapshot.remove(self.own.watched.kind, namespace, name));
    }

    fn retain(&self, keys: &ObjectKeys) {
        self.state.change_snapshot(|snapshot| {
            snapshot.retain(self.own.watched.kind, |namespace, name| keys.contains(namespace, name));
        });
    }

    fn take_relist_request_after_memory_freed(&self) -> bool {
        let has_room = self.state.lock().estimated_bytes() <= self.state.limit / 4 * 3;
        has_room && self.own.has_shed.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{SNAPSHOT_RESOURCES, SnapshotKind};

    #[test]
    fn every_version_is_of_its_kind() {
        for watched in SNAPSHOT_RESOURCES {
            let kind = watched.resource.kind;
            for version in kind.versions {
                let found = SnapshotKind::from_type_meta(&kind.api_version(version), kind.kind);
                assert_eq!(found, Some(watched.kind), "{version}");
            }
        }
    }
}
