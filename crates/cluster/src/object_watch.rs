//! A watch of the objects of several kinds, for drains, the pages of `tollgate ui`, and policies that are custom
//! resources. A projection function selects the fields that are cached.
//!
//! Objects are shared, so a caller gets all of them at the cost of a pointer each. Changes are numbered in the order in
//! which they were read. Between kinds this is not the order in which they happened: each kind has a watch of its own.
//!
//! Invariant: after a kind was listed, its cached objects are those of the API server, except for those that are
//! counted as unreadable. The last [`MAX_REMEMBERED_CHANGES`] changes are known without gaps; a caller that asks for
//! older ones is told to read all objects again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Cluster;
use super::client::FULL_OBJECTS;
use super::list::KeptFieldsAndSizeLimit;
use super::listed_kind::ListedKind;
use super::watch::{ObjectKeys, ObjectSink, Reflector, StoreOutcome, WatchedResource};
use super::watch_health::{WatchHealth, WatchState, WatchStatus};
use tollgate_document::doc::{Builder, Doc, Syntax, Value};

/// Maximum number of changes that are remembered for [`ObjectWatch::changes_since`].
const MAX_REMEMBERED_CHANGES: usize = 10_000;
/// Interval of checks whether all kinds are listed, while a caller waits for that.
const SYNC_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time to wait for the answers about other kinds after one that may not be listed, to report all such kinds.
const MAX_WAIT_FOR_OTHER_KINDS: Duration = Duration::from_secs(1);

/// Copies the fields of an object, of the given kind and `apiVersion`, that are cached. It must keep `metadata.name`
/// and `metadata.namespace`. An error says why the object cannot be read.
pub type ProjectFn =
    Arc<dyn for<'d> Fn(&ListedKind, &str, Value<'d>) -> Result<Doc<'d>, String> + Send + Sync>;

/// An object in the cache of a watch.
#[derive(Debug)]
pub struct WatchedObject {
    pub kind: ListedKind,
    /// `apiVersion` of the object, such as `resource.k8s.io/v1`. Items of a list do not repeat it.
    pub api_version: Box<str>,
    /// Namespace of the object; empty for kinds without namespaces.
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// `metadata.resourceVersion`, which a projection need not keep.
    pub resource_version: Box<str>,
    /// The fields of the object that the projection keeps.
    pub object: Arc<Doc<'static>>,
}

/// All cached objects, and the revision of the cache that they belong to.
#[derive(Clone, Debug)]
pub struct WatchedObjects {
    /// The [`ObjectWatch::revision`] of the objects.
    pub revision: u64,
    /// In the order of the kinds; within a kind, in the order in which an API server lists them.
    pub objects: Vec<Arc<WatchedObject>>,
}

/// Which cached object has changed or was deleted.
#[derive(Clone, Debug)]
pub struct ObjectChange {
    /// The revision of the cache with which this change came.
    pub revision: u64,
    pub kind: ListedKind,
    /// Namespace of the changed object; empty for kinds without namespaces.
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// The new object; `None` if it was deleted, or can no longer be read.
    pub object: Option<Arc<WatchedObject>>,
}

/// The status of the watch of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchedKindStatus {
    pub kind: ListedKind,
    /// True if the caller cannot do without the objects of the kind.
    pub is_needed: bool,
    pub state: WatchState,
    /// The status in words, with the error if there is one.
    pub message: String,
    /// Number of objects of the kind that exist and cannot be read.
    pub unreadable: usize,
}

impl WatchedKindStatus {
    /// Returns the status on one line: `pods: the watch is interrupted: …`
    fn describe(&self) -> String {
        let resource = if self.kind.is_optional_api() {
            self.kind.kubectl_resource_name()
        } else {
            self.kind.resource.to_owned()
        };
        format!("{resource}: {}", self.message)
    }

    /// True if objects of the kind are missing that should be there.
    fn has_missing_objects(&self) -> bool {
        match self.state {
            WatchState::Current => self.unreadable > 0,
            WatchState::NotListed | WatchState::Interrupted => true,
            // Every API server serves the core kinds: another server responded.
            WatchState::NotServed => self.kind.is_always_served(),
            WatchState::Forbidden => self.is_needed,
        }
    }

    /// True if objects are missing and waiting does not help, such as without the permission to list them.
    fn has_permanent_failure(&self) -> bool {
        self.has_missing_objects() && matches!(self.state, WatchState::Forbidden | WatchState::NotServed)
    }
}

/// A watch of the objects of several kinds.
#[derive(Clone, Debug)]
pub struct ObjectWatch {
    store: Arc<ObjectStore>,
    kinds: Arc<[WatchedKind]>,
}

/// A kind that is watched, with the health of its watch.
#[derive(Debug)]
struct WatchedKind {
    kind: ListedKind,
    is_needed: bool,
    health: Arc<WatchHealth>,
}

impl WatchedKind {
    fn status(&self) -> WatchedKindStatus {
        WatchedKindStatus {
            kind: self.kind,
            is_needed: self.is_needed,
            state: self.health.watch_state(),
            message: self.health.status().message,
            unreadable: self.health.unreadable_count(),
        }
    }
}

impl ObjectWatch {
    /// Starts to list and watch the kinds, for the life of the process. Without the permission to list one of the
    /// `needed` kinds, the watch does not become complete; one of the `wanted` kinds is then left out with a note.
    /// Kinds that the API server does not serve have no objects. `role` names the manifests with the permissions.
    pub fn start(
        cluster: &Cluster,
        needed: &[ListedKind],
        wanted: &[ListedKind],
        project: &ProjectFn,
        role: &'static str,
    ) -> ObjectWatch {
        let kinds: Arc<[WatchedKind]> = (needed.iter().map(|kind| (kind, true)))
            .chain(wanted.iter().map(|kind| (kind, false)))
            .map(|(kind, is_needed)| {
                let health = Arc::new(WatchHealth::with_cluster_role_folder(kind.resource, role));
                WatchedKind { kind: *kind, is_needed, health }
            })
            .collect();
        let store = Arc::new(ObjectStore::with_kinds(kinds.len()));
        for (index, watched) in kinds.iter().enumerate() {
            let KeptFieldsAndSizeLimit { keep, max_nodes } = KeptFieldsAndSizeLimit::WHOLE_OBJECTS;
            let (kind, page) = (watched.kind, watched.kind.page);
            let (accept, accept_watch) = (FULL_OBJECTS, FULL_OBJECTS);
            let resource = WatchedResource { kind, accept, accept_watch, page, keep, max_nodes };
            let sink = KindSink { store: store.clone(), index, kind, project: project.clone() };
            Reflector::start(cluster, resource, Arc::new(sink), watched.health.clone());
        }
        ObjectWatch { store, kinds }
    }

    /// True if every kind was listed, or has no objects that could be listed.
    pub fn is_synced(&self) -> bool {
        self.kinds.iter().all(|watched| {
            watched.health.is_synced()
                || (!watched.is_needed && watched.health.watch_state() == WatchState::Forbidden)
        })
    }

    /// Waits until every kind is listed. An error says what is missing: the needed kinds that may not be listed or
    /// watched, as soon as the other kinds have answered, or everything after the timeout. Must not be called on the
    /// cluster's thread.
    pub fn wait_until_synced(&self, timeout: Duration) -> Result<(), Vec<String>> {
        let mut end = Instant::now() + timeout;
        loop {
            let statuses = self.status();
            let missing: Vec<_> = statuses.iter().filter(|status| status.has_missing_objects()).collect();
            let (permanent, other): (Vec<_>, Vec<_>) =
                missing.iter().partition(|status| status.has_permanent_failure());
            if permanent.is_empty() && self.is_synced() {
                return Ok(());
            }
            if !permanent.is_empty() {
                end = end.min(Instant::now() + MAX_WAIT_FOR_OTHER_KINDS);
            }
            if !permanent.is_empty() && other.is_empty() || Instant::now() >= end {
                let reported = if permanent.is_empty() { other } else { permanent };
                return Err(reported.into_iter().map(WatchedKindStatus::describe).collect());
            }
            std::thread::sleep(SYNC_CHECK_INTERVAL);
        }
    }

    /// Returns for how long some watch has been down; `None` if all are current.
    pub fn watch_down_for(&self) -> Option<Duration> {
        self.kinds.iter().filter_map(|watched| watched.health.watch_down_for()).max()
    }

    /// The status of each kind, the needed ones first.
    pub fn status(&self) -> Vec<WatchedKindStatus> {
        self.kinds.iter().map(WatchedKind::status).collect()
    }

    /// The watch of one kind, with its counters; `None` if the kind is not watched.
    pub fn status_of_kind(&self, kind: &ListedKind) -> Option<WatchStatus> {
        let watched = self.kinds.iter().find(|watched| watched.kind == *kind)?;
        Some(watched.health.status())
    }

    /// Returns messages about missing data: kinds that are not listed yet, interrupted watches, and objects that
    /// cannot be read.
    pub fn missing_data_messages(&self) -> Vec<String> {
        let statuses = self.status();
        statuses
            .iter()
            .filter(|status| status.has_missing_objects())
            .map(WatchedKindStatus::describe)
            .collect()
    }

    /// Returns notes about optional kinds that are left out because the user may not list them.
    pub fn omitted_kind_notes(&self) -> Vec<String> {
        let is_left_out =
            |status: &&WatchedKindStatus| !status.is_needed && status.state == WatchState::Forbidden;
        self.status().iter().filter(is_left_out).map(WatchedKindStatus::describe).collect()
    }

    /// Returns the revision of the cache, which grows by one with each change of a cached object.
    pub fn revision(&self) -> u64 {
        self.store.lock().revision
    }

    /// Waits until the revision is greater than that, or the timeout has passed. Returns the current revision. Must not
    /// be called on the cluster's thread.
    pub fn wait_for_change(&self, after: u64, timeout: Duration) -> u64 {
        let waited =
            self.store.changed.wait_timeout_while(self.store.lock(), timeout, |all| all.revision <= after);
        waited.unwrap_or_else(PoisonError::into_inner).0.revision
    }

    /// Returns all cached objects, and the revision of the cache.
    pub fn objects(&self) -> WatchedObjects {
        let all = self.store.lock();
        let objects = all.by_kind.iter().flat_map(|objects| objects.values().cloned()).collect();
        WatchedObjects { revision: all.revision, objects }
    }

    /// One cached object; the namespace is empty for kinds without one.
    pub fn get(&self, kind: &ListedKind, namespace: &str, name: &str) -> Option<Arc<WatchedObject>> {
        let index = self.kinds.iter().position(|watched| watched.kind == *kind)?;
        self.store.lock().by_kind.get(index)?.get(&object_key(namespace, name)).cloned()
    }

    /// The changes after that revision, in order; `None` if some of them are no longer remembered, so that the caller
    /// has to get all objects again.
    pub fn changes_since(&self, revision: u64) -> Option<Vec<ObjectChange>> {
        let all = self.store.lock();
        let count = usize::try_from(all.revision.saturating_sub(revision)).ok()?;
        let first = all.changes.len().checked_sub(count)?;
        Some(all.changes.range(first..).cloned().collect())
    }
}

/// The cache that the watches of all kinds share.
#[derive(Debug)]
struct ObjectStore {
    objects: Mutex<CachedObjects>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CachedObjects {
    revision: u64,
    /// For each kind, in the order of the kinds, its objects by [`object_key`].
    by_kind: Vec<BTreeMap<String, Arc<WatchedObject>>>,
    /// The last changes, one for each revision.
    changes: VecDeque<ObjectChange>,
}

/// The key by which an API server orders objects: `NAMESPACE/NAME`.
fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl ObjectStore {
    fn with_kinds(kinds: usize) -> ObjectStore {
        let by_kind = std::iter::repeat_with(BTreeMap::new).take(kinds).collect();
        let objects = CachedObjects { by_kind, ..CachedObjects::default() };
        ObjectStore { objects: Mutex::new(objects), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, CachedObjects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedObjects {
    fn add_change(&mut self, change: ObjectChange) {
        if self.changes.len() >= MAX_REMEMBERED_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }

    /// Stores an object of the kind with that index, and records the change.
    fn put(&mut self, kind_index: usize, object: WatchedObject) {
        let Some(objects) = self.by_kind.get_mut(kind_index) else { return };
        self.revision += 1;
        let (revision, object) = (self.revision, Arc::new(object));
        let WatchedObject { kind, namespace, name, .. } = &*object;
        objects.insert(object_key(namespace, name), object.clone());
        let (kind, namespace, name) = (*kind, namespace.clone(), name.clone());
        self.add_change(ObjectChange { revision, kind, namespace, name, object: Some(object) });
    }

    /// Removes an object of the kind with that index, and records the change.
    fn remove(&mut self, kind_index: usize, key: &str) {
        let removed = self.by_kind.get_mut(kind_index).and_then(|objects| objects.remove(key));
        let Some(removed) = removed else { return };
        self.revision += 1;
        let (revision, kind) = (self.revision, removed.kind);
        let (namespace, name) = (removed.namespace.clone(), removed.name.clone());
        self.add_change(ObjectChange { revision, kind, namespace, name, object: None });
    }
}

/// Stores the objects of one kind that a watch reads.
struct KindSink {
    store: Arc<ObjectStore>,
    /// Index of the kind in the store.
    index: usize,
    kind: ListedKind,
    project: ProjectFn,
}

impl KindSink {
    /// Copies the fields of an object that the projection keeps, so that the text of the whole object can be freed.
    fn projected_copy(&self, api_version: &str, object: Value<'_>) -> Result<Arc<Doc<'static>>, String> {
        let kept = (self.project)(&self.kind, api_version, object)?;
        let mut copy = Builder::with_exact_capacity("", Syntax::Json, kept.root().node_count());
        copy.copy(kept.root());
        Ok(Arc::new(copy.finish()))
    }
}

impl ObjectSink for KindSink {
    fn put(&self, api_version: &str, object: Value<'_>) -> Result<StoreOutcome, String> {
        let metadata = object.get("metadata");
        let text = |field: &str| metadata.get(field).str();
        let (namespace, name, resource_version) = (text("namespace"), text("name"), text("resourceVersion"));
        let key = object_key(namespace, name);
        // A list after an interruption repeats what did not change.
        let is_same = |stored: &Arc<WatchedObject>| {
            !resource_version.is_empty()
                && *stored.resource_version == *resource_version
                && *stored.api_version == *api_version
        };
        let stored = self.store.lock().by_kind.get(self.index).and_then(|all| all.get(&key)).cloned();
        if stored.as_ref().is_some_and(is_same) {
            return Ok(StoreOutcome::Yes);
        }
        let copied = self.projected_copy(api_version, object);
        let mut all = self.store.lock();
        let outcome = match copied {
            Ok(object) => {
                let (kind, api_version) = (self.kind, api_version.into());
                let (namespace, name) = (namespace.into(), name.into());
                let resource_version = resource_version.into();
                let object = WatchedObject { kind, api_version, namespace, name, resource_version, object };
                all.put(self.index, object);
                Ok(StoreOutcome::Yes)
            }
            Err(why) => {
                all.remove(self.index, &key);
                Err(why)
            }
        };
        drop(all);
        self.store.changed.notify_all();
        outcome
    }

    fn remove(&self, namespace: &str, name: &str) {
        self.store.lock().remove(self.index, &object_key(namespace, name));
        self.store.changed.notify_all();
    }

    fn retain(&self, keys: &ObjectKeys) {
        let mut all = self.store.lock();
        let is_gone = |object: &&Arc<WatchedObject>| !keys.contains(&object.namespace, &object.name);
        let objects = all.by_kind.get(self.index).into_iter().flat_map(BTreeMap::values);
        let gone: Vec<String> =
            objects.filter(is_gone).map(|object| object_key(&object.namespace, &object.name)).collect();
        for key in &gone {
            all.remove(self.index, key);
        }
        drop(all);
        self.store.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arc, KindSink, ListedKind, MAX_REMEMBERED_CHANGES, ObjectSink as _, ObjectStore, ObjectWatch,
        ProjectFn,
    };
    use crate::listed_kind::{NODES, PODS};
    use tollgate_document::doc;

    fn sinks() -> (ObjectWatch, [KindSink; 2]) {
        let store = Arc::new(ObjectStore::with_kinds(2));
        let project: ProjectFn = Arc::new(|_, _, object| {
            let mut copy = doc::Builder::with_capacity("", doc::Syntax::Json, object.node_count());
            copy.copy(object);
            Ok(copy.finish())
        });
        let sink = |index, kind: ListedKind| KindSink {
            store: store.clone(),
            index,
            kind,
            project: project.clone(),
        };
        (ObjectWatch { store: store.clone(), kinds: [].into() }, [sink(0, NODES), sink(1, PODS)])
    }

    fn put(sink: &KindSink, namespace: &str, name: &str, version: &str) {
        let text = format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","resourceVersion":"{version}"}}}}"#
        );
        sink.put("v1", doc::parse(&text).expect("JSON").root()).expect("stored");
    }

    #[test]
    fn changes_are_numbered_and_repetitions_are_none() {
        let (watch, [nodes, pods]) = sinks();
        put(&pods, "a", "p", "1");
        put(&nodes, "", "n", "2");
        put(&pods, "a-b", "p", "3");
        put(&pods, "a", "p", "1");
        assert_eq!(watch.revision(), 3, "the last one is the first again");
        put(&pods, "a", "p", "4");
        pods.remove("a-b", "p");
        pods.remove("a-b", "p");
        let changes = watch.changes_since(2).expect("remembered");
        let found: Vec<_> = changes
            .iter()
            .map(|change| (change.revision, &*change.namespace, &*change.name, change.object.is_some()))
            .collect();
        assert_eq!(found, [(3, "a-b", "p", true), (4, "a", "p", true), (5, "a-b", "p", false)]);
        assert!(watch.changes_since(5).is_some_and(|changes| changes.is_empty()));
        put(&pods, "a-b", "p", "6");
        let names: Vec<String> = watch
            .objects()
            .objects
            .iter()
            .map(|object| super::object_key(&object.namespace, &object.name))
            .collect();
        assert_eq!(names, ["n", "a-b/p", "a/p"], "as an API server orders them");
    }

    #[test]
    fn forgotten_changes_are_said_to_be_gone() {
        let (watch, [_, pods]) = sinks();
        for version in 0..=MAX_REMEMBERED_CHANGES {
            put(&pods, "a", "p", &version.to_string());
        }
        assert!(watch.changes_since(0).is_none());
        assert_eq!(watch.changes_since(1).map(|changes| changes.len()), Some(MAX_REMEMBERED_CHANGES));
    }
}
