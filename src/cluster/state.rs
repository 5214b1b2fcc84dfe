//! A watch of the cluster state that evictions depend on: slices, claims, pods, rules, PodDisruptionBudgets.
//!
//! Objects go from the API server's text straight into the records of an [`impact::Snapshot`]. Only the fields needed
//! for impact are cached, and only pods that use claims. Requests share the snapshot: it is copied only if it changes
//! while it is read.
//!
//! Invariant: no snapshot is returned before everything was listed once; it comes with its age if it may be out of
//! date, and with the number of objects that could not be read.
//!
//! [`impact::Snapshot`]: crate::impact::Snapshot

use std::sync::{Arc, Mutex, PoisonError};

use super::Cluster;
use super::client::FULL_OBJECTS;
use super::watch::{ObjectKeys, ObjectSink, Reflector, Resource};
use super::watch_health::{WatchHealth, WatchStatus};
use crate::doc::Value;
use crate::impact::{ClusterState, Snapshot, SnapshotKind};

/// A watched kind.
#[derive(Clone, Copy, Debug)]
struct WatchedKind {
    kind: SnapshotKind,
    /// `ResourceSlice`
    name: &'static str,
    resource: Resource,
}

const fn watched_kind(
    kind: SnapshotKind,
    name: &'static str,
    resource: &'static str,
    paths: &'static [&'static str],
    page: usize,
) -> WatchedKind {
    let (max_nodes, keeps_labels) = match kind {
        // 128 devices with their attributes; drivers write them.
        SnapshotKind::Slice => (200_000, false),
        SnapshotKind::Claim | SnapshotKind::Rule => (20_000, false),
        _ => (20_000, true),
    };
    let (accept, accept_watch) = (FULL_OBJECTS, FULL_OBJECTS);
    let resource = Resource { name: resource, paths, accept, accept_watch, page, max_nodes, keeps_labels };
    WatchedKind { kind, name, resource }
}

/// The kinds that impact needs. Pages have hundreds of small objects, or dozens of slices with up to 128 devices.
const WATCHED_KINDS: [WatchedKind; 5] = [
    watched_kind(
        SnapshotKind::Slice,
        "ResourceSlice",
        "resourceslices",
        &[
            "/apis/resource.k8s.io/v1/resourceslices",
            "/apis/resource.k8s.io/v1beta2/resourceslices",
            "/apis/resource.k8s.io/v1beta1/resourceslices",
        ],
        24,
    ),
    watched_kind(
        SnapshotKind::Claim,
        "ResourceClaim",
        "resourceclaims",
        &[
            "/apis/resource.k8s.io/v1/resourceclaims",
            "/apis/resource.k8s.io/v1beta2/resourceclaims",
            "/apis/resource.k8s.io/v1beta1/resourceclaims",
        ],
        200,
    ),
    watched_kind(SnapshotKind::Pod, "Pod", "pods", &["/api/v1/pods"], 200),
    watched_kind(
        SnapshotKind::Rule,
        "DeviceTaintRule",
        "devicetaintrules",
        &[
            "/apis/resource.k8s.io/v1/devicetaintrules",
            "/apis/resource.k8s.io/v1beta2/devicetaintrules",
            "/apis/resource.k8s.io/v1alpha3/devicetaintrules",
        ],
        200,
    ),
    watched_kind(
        SnapshotKind::Budget,
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        &["/apis/policy/v1/poddisruptionbudgets"],
        200,
    ),
];

/// The watched state of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct StateWatch {
    snapshot: Arc<Mutex<Arc<Snapshot>>>,
    health: Arc<[Arc<WatchHealth>]>,
}

impl StateWatch {
    /// Starts the watches.
    pub(crate) fn watch(cluster: &Cluster) -> StateWatch {
        let snapshot: Arc<Mutex<Arc<Snapshot>>> = Arc::default();
        let mut health = Vec::new();
        for watched in WATCHED_KINDS {
            let reflector = Reflector {
                client: cluster.client.clone(),
                timing: cluster.timing,
                resource: watched.resource,
                sink: Arc::new(SnapshotSink { snapshot: snapshot.clone(), watched }),
                health: Arc::new(WatchHealth::new(watched.resource.name)),
            };
            health.push(reflector.health.clone());
            reflector.start(cluster);
        }
        StateWatch { snapshot, health: health.into() }
    }

    /// The current snapshot; `None` until everything was listed once.
    pub(crate) fn current(&self) -> Option<ClusterState> {
        let (mut oldest, mut unreadable) = (None, 0);
        for health in self.health.iter() {
            if !health.is_synced() {
                return None;
            }
            oldest = oldest.max(health.age());
            unreadable += health.unreadable_count();
        }
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(ClusterState {
            snapshot,
            stale_seconds: oldest.map(|age| age.as_secs()),
            unreadable_objects: unreadable,
        })
    }

    /// The watched resources, such as `resourceslices`.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &'static str> {
        self.health.iter().map(|health| health.resource())
    }

    /// The status of a resource's watch, and how many of its objects are cached; `None` if it is not watched.
    pub(crate) fn status(&self, resource: &str) -> Option<(WatchStatus, usize)> {
        let health = self.health.iter().find(|health| health.resource() == resource)?;
        let watched = WATCHED_KINDS.iter().find(|watched| watched.resource.name == resource)?;
        // Counted under the lock: a clone would make the next change copy the snapshot.
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        Some((health.status(), snapshot.count(watched.kind)))
    }
}

/// Puts the objects of one kind into the snapshot.
struct SnapshotSink {
    snapshot: Arc<Mutex<Arc<Snapshot>>>,
    watched: WatchedKind,
}

impl SnapshotSink {
    fn change<T>(&self, change: impl FnOnce(&mut Snapshot) -> T) -> T {
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut snapshot))
    }
}

impl ObjectSink for SnapshotSink {
    fn put(&self, path: &str, object: Value<'_>) -> Result<(), String> {
        let (api_version, kind) = (api_version(path), self.watched.name);
        let applied = self.change(|snapshot| snapshot.apply_as(api_version, kind, object));
        applied.map(|_| ()).map_err(|unreadable| unreadable.to_string())
    }

    fn remove(&self, namespace: &str, name: &str) {
        self.change(|snapshot| snapshot.remove(self.watched.kind, namespace, name));
    }

    fn retain(&self, keys: &ObjectKeys) {
        self.change(|snapshot| {
            snapshot.retain(self.watched.kind, |namespace, name| keys.contains(namespace, name));
        });
    }
}

/// `/apis/policy/v1/poddisruptionbudgets` → `policy/v1`: items of a list have no apiVersion.
fn api_version(path: &str) -> &str {
    let group = path.strip_prefix("/apis/").or_else(|| path.strip_prefix("/api/")).unwrap_or(path);
    group.rsplit_once('/').map_or(group, |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::{SnapshotKind, WATCHED_KINDS, api_version};

    #[test]
    fn every_path_is_of_its_kind() {
        for watched in WATCHED_KINDS {
            for path in watched.resource.paths {
                assert_eq!(SnapshotKind::of(api_version(path), watched.name), Some(watched.kind), "{path}");
                assert!(path.ends_with(watched.resource.name), "{path}");
            }
        }
    }
}
