//! The client of an API server: keeps the webhook registered, watches the objects that policies, impact and drains
//! need, lists objects for commands that end, and sends the writes of a drain. It decides nothing about objects. Start
//! with [`Cluster::start_without_connecting`].
//!
//! All requests to the API server run on one thread. The webhook reads only what that thread has cached, so an API
//! server that is slow, unreachable or refuses does not delay admission.
//!
//! Invariant: every error of the API server is reported (log, status), and retried unless the caller decides about
//! that; nothing here ends the process, and no request is sent unless a flag or a command enables it.

mod api_calls;
mod api_error;
mod client;
mod dry_run;
mod exec_plugin;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod kubeconfig;
mod lease;
mod list;
mod listed_kind;
mod namespaces;
mod object_watch;
mod page;
mod policy_resources;
mod proxy;
mod register;
mod retry;
mod server_info;
mod state;
mod token_file;
mod version;
mod watch;
mod watch_health;
mod watch_lines;
mod write_request;

pub use api_calls::{API_CALLS, ApiCall, CallTarget, NeededBy, ObjectNames};
pub use api_error::ApiError;
pub use client::{ApiEndpoint, ClusterTarget};
pub use dry_run::{CreateResponse, DryRunCreate};
pub use lease::{LeaseHandle, LeaseSettings, LeaseStatus};
pub use list::{KeptFieldsAndSizeLimit, ListEvent, ListOutcome};
pub use listed_kind::{
    ADMISSION_POLICIES, CLAIM_TEMPLATES, CLASSIC_DRA_CLAIMS, CLASSIC_DRA_CLASSES, COSCHEDULING_POD_GROUPS,
    CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, DEVICE_CLASSES, DEVICE_TAINT_RULES, FOUNDATIONDB, JOB_SETS, JOBS,
    LEADER_WORKER_SETS, ListedKind, NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS,
    POLICY_KINDS, REPLICA_SETS, RESOURCE_CLAIMS, RESOURCE_SLICES, SNAPSHOT_KINDS, STATEFUL_SETS,
    WORKLOAD_KINDS,
};
pub use namespaces::{LabelsInCache, NamespaceLabelWatch};
pub use object_watch::{
    ObjectChange, ObjectWatch, ProjectFn, WatchedKindStatus, WatchedObject, WatchedObjects,
};
pub use policy_resources::POLICY_LEASE;
pub use register::{DesiredConfig, DesiredConfigForCaBundleFn, WebhookRegistration};
pub use retry::Timing;
pub use server_info::ServerInfo;
pub use state::StateWatch;
pub use version::ServerRelease;
pub use watch_health::{WatchState, WatchStatus};
pub use write_request::{AccessAttributes, DRAIN_LEASE, DrainApiRequest};

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::runtime::{Builder, Handle};

use client::ApiClient;

/// A client of one cluster, and the thread on which its requests run.
#[derive(Clone, Debug)]
pub struct Cluster {
    client: ApiClient,
    handle: Handle,
}

impl Cluster {
    /// Reads a kubeconfig or the service account of the pod, and starts the thread. It does not connect: the API server
    /// may start later.
    pub fn start_without_connecting(target: ClusterTarget<'_>, timing: Timing) -> anyhow::Result<Cluster> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let client = {
            let _inside = runtime.enter();
            ApiClient::from_target_without_connecting(target, timing)?
        };
        std::thread::Builder::new()
            .name("cluster".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        Ok(Cluster { client, handle })
    }

    /// Returns the context of the kubeconfig and the URL of the API server.
    pub fn endpoint(&self) -> &ApiEndpoint {
        &self.client.endpoint
    }

    /// The same cluster with other timeouts and intervals.
    #[must_use]
    pub fn with_timing(&self, timing: Timing) -> Cluster {
        Cluster { client: self.client.with_timing(timing), handle: self.handle.clone() }
    }

    /// Runs one request on the cluster's thread and waits for its response. Must not be called on that thread.
    fn block_on_request<T: Send + 'static, F>(&self, ask: impl FnOnce(ApiClient) -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel();
        let work = ask(self.client.clone());
        self.spawn(async move {
            let _ = sender.send(work.await);
        });
        receiver.recv().unwrap_or_else(|_| Err(ApiError::Unreachable("the client has ended".to_owned())))
    }

    /// Runs a task on the cluster's thread, for the life of the process.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }
}

/// The status of a registration, shared with `/readyz?verbose` and `/metrics`.
#[derive(Debug, Default)]
pub struct SharedRegistrationStatus(Mutex<RegistrationStatus>);

/// Whether a webhook configuration is registered, and why not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RegistrationStatus {
    /// True if the stored webhook configuration is as desired.
    pub ok: bool,
    /// True if the configuration was as desired at least once, or if nothing calls the webhook yet.
    pub settled: bool,
    /// A text that says whether the webhook configuration is registered, and why not.
    pub message: String,
    /// Number of writes of the configuration.
    pub done: u64,
    /// Number of failed requests.
    pub failed: u64,
    /// Number of changes by others that were reverted.
    pub reverts: u64,
    /// The last [`WebhookRegistration::revision`] that was registered.
    pub revision: u64,
}

impl SharedRegistrationStatus {
    /// Returns the current status of the registration.
    pub fn get(&self) -> RegistrationStatus {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update(self: &Arc<SharedRegistrationStatus>, change: impl FnOnce(&mut RegistrationStatus)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
