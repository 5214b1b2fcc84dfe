//! A live cluster: who we are registered with, and what its API server tells us. A shell.
//!
//! Everything is asked on one thread of its own; the webhook only ever reads what that thread has put down, so an API
//! server that is slow, gone or unwilling costs no request anything.
//!
//! Invariant: whatever the API server answers is told (log, standing) and tried again later; nothing here ends the
//! process, and nothing is asked that was not asked for by a flag.

mod ask;
mod fresh;
mod namespaces;
mod register;
mod retry;
mod state;
mod version;
mod watch;

pub use ask::Trouble;
pub use fresh::{Fresh, Freshness};
pub use namespaces::{Labels, Lookup, Namespaces};
pub use register::{Registration, Wanted};
pub use retry::Timing;
pub use state::State;
pub use version::Release;

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};

use ask::Client;

/// The way to one cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    client: Client,
    handle: Handle,
    timing: Timing,
}

impl Cluster {
    /// Reads a kubeconfig (the one given, else `KUBECONFIG`, `~/.kube/config`) or what a pod is given, and starts the
    /// thread. It does not connect: the API server may come later than we do.
    pub fn open(kubeconfig: Option<&Path>, timing: Timing) -> anyhow::Result<Cluster> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let client = runtime.block_on(Client::open(kubeconfig, timing))?;
        std::thread::Builder::new()
            .name("cluster".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        Ok(Cluster { client, handle, timing })
    }

    /// Runs on the cluster's thread for as long as the process lives.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// How one of the cluster's jobs stands. Shared with whoever tells it: `/readyz?verbose`, `/metrics`.
#[derive(Debug, Default)]
pub struct Standing(Mutex<Progress>);

/// What is known of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// It is as it should be.
    pub ok: bool,
    /// It was so at least once, or nobody depends on it yet.
    pub settled: bool,
    /// For people.
    pub says: String,
    /// What was done, ever.
    pub done: u64,
    /// What the API server refused or did not answer, ever.
    pub failed: u64,
    /// The last [`Registration::revision`] that is in place.
    pub revision: u64,
}

impl Standing {
    /// How it stands now.
    pub fn state(&self) -> Progress {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(self: &Arc<Standing>, change: impl FnOnce(&mut Progress)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
