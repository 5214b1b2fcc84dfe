//! Where the engine learns of the cluster: a snapshot, and how old it is. The shell that watches tells both.

use std::sync::Arc;

pub use crate::impact::Known;
use crate::impact::Snapshot;

/// Where the state of the cluster comes from; asked once per request, so a request sees one state.
#[derive(Clone)]
pub struct Cluster(Arc<dyn Fn() -> Option<Known> + Send + Sync>);

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cluster")
    }
}

impl Cluster {
    /// A source that is asked for every request; `None` until the cluster has been seen once.
    pub fn watched(source: impl Fn() -> Option<Known> + Send + Sync + 'static) -> Cluster {
        Cluster(Arc::new(source))
    }

    /// A state that does not change.
    pub fn fixed(snapshot: Arc<Snapshot>) -> Cluster {
        Cluster::watched(move || Some(Known { snapshot: Arc::clone(&snapshot), stale: None }))
    }

    /// The state now.
    pub fn known(&self) -> Option<Known> {
        (self.0)()
    }
}
