//! A watch of namespace labels, for policies that select by label. Only metadata is requested.
//!
//! Invariant: unknown labels are never taken for "no labels". A namespace that is not cached yet is fetched, a few at a
//! time; if that fails, its labels are not available.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::timeout;

use super::Cluster;
use super::client::{ApiClient, ApiError};
use super::watch::{ObjectKeys, ObjectSink, Reflector, Resource};
use super::watch_health::{WatchHealth, WatchStatus};
use crate::doc::{self, Builder, Doc, Syntax, Value};

/// Media type of metadata in a list.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Media type of metadata in a watch, and of one object.
const METADATA_OF_ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const NAMESPACES: Resource = Resource {
    name: "namespaces",
    paths: &["/api/v1/namespaces"],
    accept: METADATA,
    accept_watch: METADATA_OF_ONE,
    page: 500,
    max_nodes: 4_000,
    keeps_labels: true,
};

/// Most fetches of single namespaces at the same time.
const MAX_LOOKUPS: usize = 16;

/// The labels of a namespace; empty if it has none.
pub(crate) type Labels = Arc<Doc<'static>>;

/// The result of a lookup in the cache.
#[derive(Clone, Debug)]
pub enum LabelLookup {
    /// Its labels.
    Known(Labels),
    /// Not in the cache; fetch it.
    NotCached,
    /// The first list is not complete.
    NotSynced,
}

/// A watch of the labels of all namespaces.
#[derive(Debug)]
pub struct NamespaceWatch {
    store: Arc<LabelStore>,
    health: Arc<WatchHealth>,
    cluster: Cluster,
    in_flight: Arc<AtomicUsize>,
    started: OnceLock<()>,
}

impl NamespaceWatch {
    /// Does not watch before [`NamespaceWatch::start`].
    pub fn new(cluster: &Cluster) -> NamespaceWatch {
        NamespaceWatch {
            store: Arc::default(),
            health: Arc::new(WatchHealth::new(NAMESPACES.name)),
            cluster: cluster.clone(),
            in_flight: Arc::default(),
            started: OnceLock::new(),
        }
    }

    /// Starts the watch; further calls do nothing.
    pub fn start(&self) {
        self.started.get_or_init(|| {
            let reflector = Reflector {
                client: self.cluster.client.clone(),
                timing: self.cluster.timing,
                resource: NAMESPACES,
                sink: self.store.clone(),
                health: self.health.clone(),
            };
            reflector.start(&self.cluster);
        });
    }

    /// The watch was started.
    pub fn is_started(&self) -> bool {
        self.started.get().is_some()
    }

    /// The status of the watch.
    pub fn status(&self) -> WatchStatus {
        self.health.status()
    }

    /// Number of namespaces.
    pub fn count(&self) -> usize {
        self.store.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Age of the cache, if the watch is lost.
    pub fn age(&self) -> Option<Duration> {
        self.health.age()
    }

    /// Looks up a namespace in the cache.
    pub fn labels(&self, name: &str) -> LabelLookup {
        if let Some(labels) = self.store.labels(name) {
            return LabelLookup::Known(labels);
        }
        if self.health.is_synced() { LabelLookup::NotCached } else { LabelLookup::NotSynced }
    }

    /// Fetches one namespace from the API server: it may be newer than the cache.
    pub fn fetch(&self, name: &str) -> impl Future<Output = Result<Labels, String>> + Send + use<> {
        let (client, in_flight, lookup_timeout) =
            (self.cluster.client.clone(), self.in_flight.clone(), self.cluster.timing.lookup_timeout);
        let (handle, name) = (self.cluster.handle.clone(), name.to_owned());
        async move {
            // The name becomes part of a path.
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return Err(format!("{name:?} is not a valid namespace name"));
            }
            let permit = LookupPermit::acquire(in_flight).ok_or("too many concurrent namespace lookups")?;
            let answer = handle.spawn(async move {
                let _permit = permit;
                timeout(lookup_timeout, fetch_labels(&client, &name)).await
            });
            match answer.await {
                Ok(Ok(labels)) => labels.map_err(|error| error.to_string()),
                Ok(Err(_)) => Err(format!("no response within {lookup_timeout:?}")),
                Err(error) => Err(error.to_string()),
            }
        }
    }
}

/// A permit to fetch a namespace; released on drop.
struct LookupPermit(Arc<AtomicUsize>);

impl LookupPermit {
    fn acquire(in_flight: Arc<AtomicUsize>) -> Option<LookupPermit> {
        let before = in_flight.fetch_add(1, Ordering::Relaxed);
        let permit = LookupPermit(in_flight);
        (before < MAX_LOOKUPS).then_some(permit)
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn fetch_labels(client: &ApiClient, name: &str) -> Result<Labels, ApiError> {
    let text = client.get(&format!("/api/v1/namespaces/{name}"), METADATA_OF_ONE).await?;
    let object = doc::parse(&text).map_err(|_error| ApiError::not_json())?;
    Ok(labels_of(object.root()))
}

fn labels_of(object: Value<'_>) -> Labels {
    let labels = object.get("metadata").get("labels");
    let mut builder = Builder::to_keep("", Syntax::Json, labels.size());
    builder.copy(labels);
    Arc::new(builder.finish())
}

#[derive(Debug, Default)]
struct LabelStore(RwLock<HashMap<Box<str>, Labels>>);

impl LabelStore {
    fn labels(&self, name: &str) -> Option<Labels> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<Box<str>, Labels>)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ObjectSink for LabelStore {
    fn put(&self, _: &str, object: Value<'_>) -> Result<(), String> {
        let name: Box<str> = object.get("metadata").get("name").str().into();
        let labels = labels_of(object);
        self.change(|all| drop(all.insert(name, labels)));
        Ok(())
    }

    fn remove(&self, _: &str, name: &str) {
        self.change(|all| drop(all.remove(name)));
    }

    fn retain(&self, keys: &ObjectKeys) {
        self.change(|all| all.retain(|name, _| keys.contains("", name)));
    }
}
