//! A watch of namespace labels, for policies that select by label. Only metadata is requested.
//!
//! Invariant: unknown labels are never taken for "no labels". A namespace that is not cached yet is fetched, a few at a
//! time; if that fails, its labels are not available.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Cluster;
use super::api_error::ApiError;
use super::client::ApiClient;
use super::listed_kind;
use super::watch::{ObjectKeys, ObjectSink, Reflector, StoreOutcome, WatchedResource};
use super::watch_health::{WatchHealth, WatchStatus};
use tollgate_document::doc::{self, Builder, Doc, Syntax, Value};
use tollgate_engine::impact::SnapshotKind;

/// Media type that requests a list with only the metadata of objects.
const METADATA_MEDIA_TYPE: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Media type that requests only the metadata of one object or of the objects in a watch.
const OBJECT_METADATA_MEDIA_TYPE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const NAMESPACES: WatchedResource = WatchedResource {
    kind: listed_kind::NAMESPACES,
    accept: METADATA_MEDIA_TYPE,
    accept_watch: OBJECT_METADATA_MEDIA_TYPE,
    page: 500,
    keep: SnapshotKind::Namespace.fields_without_details(),
    max_nodes: SnapshotKind::Namespace.max_kept_keys_and_values(),
};

/// Maximum size in bytes of the labels of one namespace; larger ones are not used.
const MAX_LABELS_BYTES: usize = 64 << 10;
const MAX_METADATA_BYTES: usize = 2 << 20;

/// Maximum number of single namespaces that are fetched at the same time.
const MAX_CONCURRENT_FETCHES: usize = 16;

/// The labels of a namespace; empty if it has none.
pub(crate) type Labels = Arc<Doc<'static>>;

/// The result of a lookup in the cache.
#[derive(Clone, Debug)]
pub enum LabelsInCache {
    /// The namespace is cached, with these labels.
    Known(Labels),
    /// The namespace is not in the cache; the caller can fetch it.
    NotCached,
    /// The first list of namespaces is not complete.
    NotSynced,
}

/// A watch of the labels of all namespaces.
#[derive(Debug)]
pub struct NamespaceLabelWatch {
    store: Arc<LabelStore>,
    health: Arc<WatchHealth>,
    cluster: Cluster,
    lookups: Arc<Semaphore>,
    started: OnceLock<()>,
}

impl NamespaceLabelWatch {
    /// A watch that does not run before [`NamespaceLabelWatch::start`]. The cached labels take at most `limit` bytes:
    /// beyond that, the largest are not cached, but fetched when they are needed.
    pub fn new(cluster: &Cluster, limit: usize) -> NamespaceLabelWatch {
        NamespaceLabelWatch {
            store: Arc::new(LabelStore { labels: RwLock::default(), limit }),
            health: Arc::new(WatchHealth::new(NAMESPACES.kind.resource)),
            cluster: cluster.clone(),
            lookups: Arc::new(Semaphore::new(MAX_CONCURRENT_FETCHES)),
            started: OnceLock::new(),
        }
    }

    /// Starts the watch; further calls do nothing.
    pub fn start(&self) {
        self.started.get_or_init(|| {
            Reflector::start(&self.cluster, NAMESPACES, self.store.clone(), self.health.clone());
        });
    }

    /// True if the watch of namespaces was started.
    pub fn is_started(&self) -> bool {
        self.started.get().is_some()
    }

    /// The status of the watch.
    pub fn status(&self) -> WatchStatus {
        self.health.status()
    }

    /// Returns the number of cached namespaces.
    pub fn cached_count(&self) -> usize {
        self.store.labels.read().unwrap_or_else(PoisonError::into_inner).all.len()
    }

    /// Returns the age of the cached labels, if the watch is interrupted; `None` if they are current, or if nothing was
    /// listed yet.
    pub fn age_if_stale(&self) -> Option<Duration> {
        self.health.age_if_stale()
    }

    /// Looks up a namespace in the cache.
    pub fn labels(&self, name: &str) -> LabelsInCache {
        if let Some(labels) = self.store.labels(name) {
            return LabelsInCache::Known(labels);
        }
        if self.health.is_synced() { LabelsInCache::NotCached } else { LabelsInCache::NotSynced }
    }

    /// Fetches the labels of one namespace from the API server, because it may be newer than the cache.
    pub fn fetch_namespace_labels(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Labels, String>> + Send + use<> {
        let (client, lookups, lookup_timeout) =
            (self.cluster.client.clone(), self.lookups.clone(), self.cluster.client.timing.lookup_timeout);
        let (handle, name) = (self.cluster.handle.clone(), name.to_owned());
        async move {
            // The name becomes part of a path.
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return Err(format!("{name:?} is not a valid namespace name"));
            }
            let permit = lookups.try_acquire_owned().ok().ok_or("too many concurrent namespace lookups")?;
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

/// Gets a namespace from the API server and returns its labels.
async fn fetch_labels(client: &ApiClient, name: &str) -> Result<Labels, ApiError> {
    let path = format!("/api/v1/namespaces/{name}");
    let text = client.get_object(&path, OBJECT_METADATA_MEDIA_TYPE, MAX_METADATA_BYTES).await?;
    let object = doc::parse_kept(&text, NAMESPACES.keep, NAMESPACES.max_nodes)
        .map_err(|error| ApiError::Unexpected(error.detail))?;
    copy_labels_within_size_limit(object.root()).map_err(ApiError::Unexpected)
}

/// The labels of a namespace; an error if they are too large to be used in policies.
fn copy_labels_within_size_limit(object: Value<'_>) -> Result<Labels, String> {
    let labels = object.get("metadata").get("labels");
    let texts =
        |value: Value<'_>| value.self_and_descendants().map(|text| text.text_bytes().len()).sum::<usize>();
    if texts(labels) > MAX_LABELS_BYTES {
        return Err(format!("its labels have more than {} KiB", MAX_LABELS_BYTES >> 10));
    }
    let mut builder = Builder::with_exact_capacity("", Syntax::Json, labels.node_count());
    builder.copy(labels);
    Ok(Arc::new(builder.finish()))
}

/// The cached labels of all namespaces, filled by the watch.
#[derive(Debug)]
struct LabelStore {
    labels: RwLock<LabelsByNamespace>,
    /// Maximum number of bytes that the cached labels may take.
    limit: usize,
}

/// Labels by the name of their namespace, and how many bytes they take.
#[derive(Debug, Default)]
struct LabelsByNamespace {
    all: HashMap<Box<str>, Labels>,
    /// Number of bytes that the cached labels take.
    bytes: usize,
}

/// Estimated bytes of memory for a namespace in the map, in addition to its labels.
const ENTRY_OVERHEAD_BYTES: usize = 128;

/// Bytes that a namespace takes in the cache, with its name.
fn entry_bytes(name: &str, labels: &Labels) -> usize {
    ENTRY_OVERHEAD_BYTES + name.len() + labels.memory_bytes_without_source()
}

impl LabelsByNamespace {
    fn insert(&mut self, name: &str, labels: Labels) {
        self.remove(name);
        self.bytes += entry_bytes(name, &labels);
        self.all.insert(name.into(), labels);
    }

    fn remove(&mut self, name: &str) {
        if let Some(labels) = self.all.remove(name) {
            self.bytes -= entry_bytes(name, &labels);
        }
    }

    /// Removes the largest entries if all take more than `limit` bytes, until they take a sixteenth less than that.
    fn shed_largest_entries(&mut self, limit: usize) {
        if self.bytes <= limit {
            return;
        }
        let mut sizes: Vec<(usize, Box<str>)> =
            self.all.iter().map(|(name, labels)| (entry_bytes(name, labels), name.clone())).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        for (_, name) in sizes {
            if self.bytes <= limit - limit / 16 {
                break;
            }
            self.remove(&name);
        }
    }
}

impl LabelStore {
    fn labels(&self, name: &str) -> Option<Labels> {
        self.labels.read().unwrap_or_else(PoisonError::into_inner).all.get(name).cloned()
    }

    fn change(&self, change: impl FnOnce(&mut LabelsByNamespace)) {
        change(&mut self.labels.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ObjectSink for LabelStore {
    fn put(&self, _: &str, object: Value<'_>) -> Result<StoreOutcome, String> {
        let name = object.get("metadata").get("name").str();
        let labels = copy_labels_within_size_limit(object);
        self.change(|all| match &labels {
            Ok(labels) => {
                all.insert(name, labels.clone());
                all.shed_largest_entries(self.limit);
            }
            Err(_) => all.remove(name),
        });
        labels.map(|_| StoreOutcome::Yes)
    }

    fn remove(&self, _: &str, name: &str) {
        self.change(|all| all.remove(name));
    }

    fn retain(&self, keys: &ObjectKeys) {
        self.change(|all| {
            let gone: Vec<Box<str>> =
                all.all.keys().filter(|name| !keys.contains("", name)).cloned().collect();
            for name in &gone {
                all.remove(name);
            }
        });
    }
}
