//! The labels of namespaces, watched: for policies that select by label. Only metadata is asked for.
//!
//! Invariant: what is not known is never "no labels". A namespace that the watch has not told of yet is asked for,
//! one by one and few at a time; if that fails the answer is that nothing is known.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::timeout;

use super::Cluster;
use super::ask::{Client, Trouble};
use super::fresh::{Fresh, Freshness};
use super::watch::{Follower, Keys, Resource, Sink};
use crate::doc::{self, Builder, Doc, Syntax, Value};

/// Only the metadata of objects in lists and watches.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// In a watch, and of one object, it has another name.
const METADATA_OF_ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const NAMESPACES: Resource = Resource {
    name: "namespaces",
    paths: &["/api/v1/namespaces"],
    accept: METADATA,
    accept_watch: METADATA_OF_ONE,
    page: 500,
};

/// Namespaces that are asked for one by one at the same time; more are not known.
const MOST_ASKED: usize = 16;

/// The labels of a namespace; empty if it has none.
pub type Labels = Arc<Doc<'static>>;

/// What is known of a namespace.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// Its labels.
    Known(Labels),
    /// It was not told of; ask for it.
    Missing,
    /// Nothing is known of any namespace yet.
    NotRead,
}

/// The labels of all namespaces.
#[derive(Debug)]
pub struct Namespaces {
    store: Arc<Store>,
    fresh: Arc<Fresh>,
    cluster: Cluster,
    asked: Arc<AtomicUsize>,
    begun: OnceLock<()>,
}

impl Namespaces {
    /// Nothing is watched before somebody asks.
    pub fn new(cluster: &Cluster) -> Namespaces {
        Namespaces {
            store: Arc::default(),
            fresh: Arc::new(Fresh::new(NAMESPACES.name)),
            cluster: cluster.clone(),
            asked: Arc::default(),
            begun: OnceLock::new(),
        }
    }

    /// Begins to watch; once is enough.
    pub fn begin(&self) {
        self.begun.get_or_init(|| {
            let follower = Follower {
                client: self.cluster.client.clone(),
                timing: self.cluster.timing,
                resource: NAMESPACES,
                sink: self.store.clone(),
                fresh: self.fresh.clone(),
            };
            follower.begin(&self.cluster);
        });
    }

    /// True if somebody has asked.
    pub fn is_begun(&self) -> bool {
        self.begun.get().is_some()
    }

    /// How current it is.
    pub fn freshness(&self) -> Freshness {
        self.fresh.look()
    }

    /// Number of namespaces.
    pub fn count(&self) -> usize {
        self.store.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How old what is known is, if the watch is lost.
    pub fn age(&self) -> Option<Duration> {
        self.fresh.age()
    }

    /// What is known of a namespace.
    pub fn labels(&self, name: &str) -> Lookup {
        if let Some(labels) = self.store.labels(name) {
            return Lookup::Known(labels);
        }
        if self.fresh.is_synced() { Lookup::Missing } else { Lookup::NotRead }
    }

    /// Asks the API server for one namespace: it may be younger than what the watch has told.
    pub fn ask(&self, name: &str) -> impl Future<Output = Result<Labels, String>> + Send + use<> {
        let (client, asked, patience) =
            (self.cluster.client.clone(), self.asked.clone(), self.cluster.timing.lookup);
        let (handle, name) = (self.cluster.handle.clone(), name.to_owned());
        async move {
            // It becomes part of a path.
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return Err(format!("{name:?} is no name of a namespace"));
            }
            let place = Place::take(asked).ok_or("too many namespaces are being asked for")?;
            let answer = handle.spawn(async move {
                let _place = place;
                timeout(patience, read(&client, &name)).await
            });
            match answer.await {
                Ok(Ok(labels)) => labels.map_err(|trouble| trouble.to_string()),
                Ok(Err(_)) => Err(format!("no answer in {patience:?}")),
                Err(error) => Err(error.to_string()),
            }
        }
    }
}

/// One of the few places to ask for a namespace; given back with the value.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(asked: Arc<AtomicUsize>) -> Option<Place> {
        let before = asked.fetch_add(1, Ordering::Relaxed);
        let place = Place(asked);
        (before < MOST_ASKED).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn read(client: &Client, name: &str) -> Result<Labels, Trouble> {
    let text = client.get(&format!("/api/v1/namespaces/{name}"), METADATA_OF_ONE).await?;
    let object =
        doc::parse(&text).map_err(|error| Trouble::Unreachable(format!("not JSON: {}", error.detail)))?;
    Ok(labels_of(object.root()))
}

fn labels_of(object: Value<'_>) -> Labels {
    let labels = object.get("metadata").get("labels");
    let mut builder = Builder::to_keep("", Syntax::Json, labels.size());
    builder.copy(labels);
    Arc::new(builder.finish())
}

#[derive(Debug, Default)]
struct Store(RwLock<HashMap<Box<str>, Labels>>);

impl Store {
    fn labels(&self, name: &str) -> Option<Labels> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<Box<str>, Labels>)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Sink for Store {
    fn put(&self, _: &str, object: Value<'_>) -> Result<(), String> {
        let name: Box<str> = object.get("metadata").get("name").str().into();
        let labels = labels_of(object);
        self.change(|all| drop(all.insert(name, labels)));
        Ok(())
    }

    fn remove(&self, _: &str, name: &str) {
        self.change(|all| drop(all.remove(name)));
    }

    fn retain(&self, keys: &Keys) {
        self.change(|all| all.retain(|name, _| keys.contains("", name)));
    }
}
