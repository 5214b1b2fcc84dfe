//! The state of the cluster that evictions depend on, watched: slices, claims, pods, rules, budgets.
//!
//! Objects go from the API server's text straight into the records of an [`impact::Snapshot`], which keep what impact
//! reads and nothing else; of pods, only those that use claims. What a request holds is shared with it: the snapshot
//! is copied only if it changes at the very moment somebody reads it.
//!
//! Invariant: nothing is known before everything was read once, and what may not be true any more says how old it is, and
//! what could not be read is told with every number that it may be missing from.
//!
//! [`impact::Snapshot`]: crate::impact::Snapshot

use std::sync::{Arc, Mutex, PoisonError};

use super::Cluster;
use super::ask::OBJECTS;
use super::fresh::{Fresh, Freshness};
use super::watch::{Follower, Keys, Resource, Sink};
use crate::doc::Value;
use crate::impact::{ClusterState, Snapshot, SnapshotKind};

/// One kind that is watched.
#[derive(Clone, Copy, Debug)]
struct Watched {
    kind: SnapshotKind,
    /// `ResourceSlice`
    name: &'static str,
    resource: Resource,
}

const fn watched(
    kind: SnapshotKind,
    name: &'static str,
    resource: &'static str,
    paths: &'static [&'static str],
    page: usize,
) -> Watched {
    let resource = Resource { name: resource, paths, accept: OBJECTS, accept_watch: OBJECTS, page };
    Watched { kind, name, resource }
}

/// What impact reads. Pages hold what is small by the hundreds and slices, which have up to 128 devices, by the dozen.
const WATCHED: [Watched; 5] = [
    watched(
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
    watched(
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
    watched(SnapshotKind::Pod, "Pod", "pods", &["/api/v1/pods"], 200),
    watched(
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
    watched(
        SnapshotKind::Budget,
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        &["/apis/policy/v1/poddisruptionbudgets"],
        200,
    ),
];

/// The watched state.
#[derive(Clone, Debug)]
pub struct State {
    snapshot: Arc<Mutex<Arc<Snapshot>>>,
    fresh: Arc<[Arc<Fresh>]>,
}

impl State {
    /// Begins to watch.
    pub fn watch(cluster: &Cluster) -> State {
        let snapshot: Arc<Mutex<Arc<Snapshot>>> = Arc::default();
        let mut fresh = Vec::new();
        for watched in WATCHED {
            let follower = Follower {
                client: cluster.client.clone(),
                timing: cluster.timing,
                resource: watched.resource,
                sink: Arc::new(Filling { snapshot: snapshot.clone(), watched }),
                fresh: Arc::new(Fresh::new(watched.resource.name)),
            };
            fresh.push(follower.fresh.clone());
            follower.begin(cluster);
        }
        State { snapshot, fresh: fresh.into() }
    }

    /// What is known now; `None` until everything was read once.
    pub fn known(&self) -> Option<ClusterState> {
        let (mut oldest, mut holes) = (None, 0);
        for fresh in self.fresh.iter() {
            if !fresh.is_synced() {
                return None;
            }
            oldest = oldest.max(fresh.age());
            holes += fresh.holes();
        }
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(ClusterState {
            snapshot,
            stale_seconds: oldest.map(|age| age.as_secs()),
            unreadable_objects: holes,
        })
    }

    /// What is watched, as `resourceslices`.
    pub fn resources(&self) -> impl Iterator<Item = &'static str> {
        self.fresh.iter().map(|fresh| fresh.resource())
    }

    /// How current a resource is, and how many objects of it are kept.
    pub fn look(&self, resource: &str) -> (Freshness, usize) {
        let fresh = self.fresh.iter().find(|fresh| fresh.resource() == resource);
        let kind = WATCHED.iter().find(|watched| watched.resource.name == resource);
        // Counted under the lock: a clone would make the next change copy everything.
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let count = kind.map_or(0, |watched| snapshot.count(watched.kind));
        (fresh.map(|fresh| fresh.look()).unwrap_or_default(), count)
    }
}

/// Puts the objects of one kind into the snapshot.
struct Filling {
    snapshot: Arc<Mutex<Arc<Snapshot>>>,
    watched: Watched,
}

impl Filling {
    fn change<T>(&self, change: impl FnOnce(&mut Snapshot) -> T) -> T {
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut snapshot))
    }
}

impl Sink for Filling {
    fn put(&self, path: &str, object: Value<'_>) -> Result<(), String> {
        let (api_version, kind) = (api_version(path), self.watched.name);
        let applied = self.change(|snapshot| snapshot.apply_as(api_version, kind, object));
        applied.map(|_| ()).map_err(|unreadable| unreadable.to_string())
    }

    fn remove(&self, namespace: &str, name: &str) {
        self.change(|snapshot| snapshot.remove(self.watched.kind, namespace, name));
    }

    fn retain(&self, keys: &Keys) {
        self.change(|snapshot| {
            snapshot.retain(self.watched.kind, |namespace, name| keys.contains(namespace, name));
        });
    }
}

/// `/apis/policy/v1/poddisruptionbudgets` → `policy/v1`: items of a list do not say what they are.
fn api_version(path: &str) -> &str {
    let group = path.strip_prefix("/apis/").or_else(|| path.strip_prefix("/api/")).unwrap_or(path);
    group.rsplit_once('/').map_or(group, |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::{SnapshotKind, WATCHED, api_version};

    #[test]
    fn every_path_is_of_its_kind() {
        for watched in WATCHED {
            for path in watched.resource.paths {
                assert_eq!(SnapshotKind::of(api_version(path), watched.name), Some(watched.kind), "{path}");
                assert!(path.ends_with(watched.resource.name), "{path}");
            }
        }
    }
}
