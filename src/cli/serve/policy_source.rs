//! `--policy-source`: policies that are custom resources, from the watch to the engine.
//!
//! A thread follows the watch and triggers a reload when a spec changes; the loader then takes all policies from here.
//! If the API server is unreachable, or if the CustomResourceDefinitions of policies are deleted, the policies that
//! were loaded stay in use, and the status reports it.
//!
//! Invariant: no policies are handed out before all kinds were listed, so an incomplete set is never used.

mod condition;
mod report;
mod status;
mod stored;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use tokio::time::Instant;

use crate::cli::clock;
use crate::cli::manifests::parse_namespace;
use crate::cli::outcome::Failure;
use crate::cluster::{
    Cluster, LeaseHandle, LeaseSettings, ObjectWatch, POLICY_KINDS, POLICY_LEASE, WatchState,
    WatchedKindStatus,
};
use crate::registration::WebhookDestination;
use crate::server::{BackgroundTask, ReloadTrigger, Server};
use status::StatusWriter;
use stored::StoredPolicies;
use tollgate_engine::policy::PolicyResource;
use tollgate_formats::gotime;

/// Interval at which the watched policies are read if no event arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which the watched policies are read while a deletion is to be confirmed.
const MISSING_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time for which a policy must be missing before discovery is asked whether its kind is still installed. An API
/// server announces the deletion of a CustomResourceDefinition before it deletes the objects, but not all API
/// servers know it at the same time.
const DELETION_CHECK_DELAY: Duration = Duration::from_millis(500);

/// Where policies come from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct PolicySourceArgs {
    /// Where policies are stored: `files` (--policy), `cluster` (custom resources), or both, separated by commas
    ///
    /// `cluster` requires --cluster and the CustomResourceDefinitions of Tollgate. If a file and a custom resource have
    /// the same kind and name, the file counts.
    #[arg(long, value_name = "SOURCE", env = "TOLLGATE_POLICY_SOURCE", value_delimiter = ',')]
    #[arg(default_value = "files")]
    policy_source: Vec<PolicyLocation>,

    /// Namespace of the Lease `tollgate-policies`. The replica that holds it writes the status of policies, and removes
    /// webhook entries that are no longer needed
    #[arg(long, value_name = "NAME", env = "TOLLGATE_POLICY_LEASE_NAMESPACE", value_parser = parse_namespace)]
    #[arg(default_value = WebhookDestination::DEFAULT_NAMESPACE, hide_short_help = true)]
    policy_lease_namespace: String,
}

/// A place for policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PolicyLocation {
    /// The files and folders of --policy
    Files,
    /// The custom resources of the cluster
    Cluster,
}

impl PolicySourceArgs {
    /// True if policies are custom resources.
    pub(super) fn uses_custom_resources(&self) -> bool {
        self.policy_source.contains(&PolicyLocation::Cluster)
    }

    /// Returns an error if `--policy-source` contradicts other flags.
    pub(super) fn check_flags(&self, watches_cluster: bool, has_files: bool) -> Result<(), Failure> {
        if self.uses_custom_resources() && !watches_cluster {
            let message = "--policy-source cluster requires --cluster or --cluster=labels, because policies can depend \
                           on namespace labels";
            return Err(Failure::Usage(message.to_owned()));
        }
        if has_files && !self.policy_source.contains(&PolicyLocation::Files) {
            let message =
                "--policy requires a --policy-source with `files`; use --policy-source files,cluster";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(())
    }

    /// Starts to watch the policies; `None` if all of them are in files.
    pub(super) fn start_watch(&self, cluster: &Cluster) -> Option<Arc<ClusterPolicySource>> {
        let (cluster, stored) = (cluster.clone(), Mutex::default());
        let start = || ClusterPolicySource { watch: cluster.watch_policies(), cluster, stored };
        self.uses_custom_resources().then(start).map(Arc::new)
    }

    /// Follows the policies for the life of the process, and lets the replica that holds the Lease write their status.
    /// Returns this Lease, and the tasks that report to `/readyz` and `/metrics`.
    pub(super) fn follow_and_write_status(
        &self,
        source: &Arc<ClusterPolicySource>,
        server: &Server,
    ) -> Result<(Vec<BackgroundTask>, LeaseHandle), Failure> {
        let serving = server.serving();
        let lease = source.cluster.start_holding_lease(LeaseSettings {
            namespace: self.policy_lease_namespace.clone(),
            name: POLICY_LEASE.to_owned(),
            holder: own_lease_identity(),
            now: || gotime::micro_time(clock::timestamp()),
            is_wanted: Arc::new(move || serving.is_serving()),
        });
        let writer = StatusWriter::new(source.clone(), lease.clone(), server.engine_handle());
        let tasks = report::readyz_and_metrics_tasks(source, &lease, &writer, server.engine_handle());
        let (followed, trigger) = (source.clone(), server.reload_trigger());
        spawn_thread("policies", move || followed.follow_watch(&trigger))?;
        spawn_thread("policy-status", move || writer.run())?;
        Ok((tasks, lease))
    }
}

/// The watch of policies that are custom resources in a cluster, and the policies that it has shown.
#[derive(Debug)]
pub(super) struct ClusterPolicySource {
    cluster: Cluster,
    watch: ObjectWatch,
    stored: Mutex<StoredPolicies>,
}

impl ClusterPolicySource {
    /// Returns all policies with their revision; `None` before all kinds were listed once.
    pub(super) fn policies(&self) -> Option<(u64, Vec<PolicyResource>)> {
        let stored = self.lock();
        stored.is_synced.then(|| (stored.revision, stored.to_policy_resources()))
    }

    /// Returns the revision of the policies, which grows with each change; `None` before all kinds were listed
    /// once.
    pub(super) fn revision(&self) -> Option<u64> {
        let stored = self.lock();
        stored.is_synced.then_some(stored.revision)
    }

    fn lock(&self) -> MutexGuard<'_, StoredPolicies> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the watch, and triggers a reload after each change.
    fn follow_watch(&self, trigger: &ReloadTrigger) {
        let (mut seen, mut not_served) = (0, Vec::new());
        loop {
            self.log_missing_definitions(&mut not_served);
            let wait = if self.lock().has_missing() { MISSING_POLL_INTERVAL } else { POLL_INTERVAL };
            seen = self.watch.wait_for_change(seen, wait);
            let before = self.revision();
            self.copy_watched_policies();
            if self.revision() != before {
                trigger.notify_changed();
            }
        }
    }

    /// Logs which CustomResourceDefinitions are missing, or are installed again. `before` are those that were
    /// missing at the last call.
    fn log_missing_definitions(&self, before: &mut Vec<String>) {
        let missing: Vec<String> = (self.watch.status().iter())
            .filter(|status| status.state == WatchState::NotServed)
            .map(|status| status.kind.kubectl_resource_name())
            .collect();
        if missing == *before {
            return;
        }
        let (resources, count) = (missing.join(", "), self.lock().len());
        match (missing.is_empty(), self.revision().is_some()) {
            (true, _) => tracing::info!("the CustomResourceDefinitions of policies are installed again"),
            (false, true) => tracing::warn!(
                resources,
                count,
                "the CustomResourceDefinitions of policies are missing; the last policies stay in use"
            ),
            (false, false) => tracing::warn!(
                resources,
                "the CustomResourceDefinitions of policies are missing; not ready until they are installed"
            ),
        }
        *before = missing;
    }

    /// Copies the policies from the watch, and removes those that were deleted. If discovery no longer lists their
    /// kind, they stay in use.
    fn copy_watched_policies(&self) {
        let is_listed = |kind| self.watch.status_of_kind(kind).is_some_and(|watch| watch.lists > 0);
        // Before the objects are read: what was listed by now is among them.
        let is_complete = POLICY_KINDS.iter().all(is_listed);
        let objects = self.watch.objects().objects;
        let now = Instant::now();
        let missing = {
            let mut stored = self.lock();
            if !stored.is_synced && !is_complete {
                return;
            }
            stored.update_from_watch(&objects, now);
            stored.is_synced = true;
            stored.kinds_with_policies_missing_for(DELETION_CHECK_DELAY, now)
        };
        if missing.is_empty() {
            return;
        }
        // While nobody answers, policies stay in use.
        let Ok(installed) = self.cluster.creatable_policy_kinds() else { return };
        for kind in missing.iter().filter(|kind| installed.contains(kind)) {
            // The watch must be the one that says so: the kind may have been installed again meanwhile.
            let is_current = |status: &WatchedKindStatus| {
                status.kind == *kind && matches!(status.state, WatchState::Current)
            };
            if self.watch.status().iter().any(is_current) {
                self.lock().remove_missing_of_kind(kind, DELETION_CHECK_DELAY, now);
            }
        }
    }
}

/// Returns the identity of this process in the Lease: the name of the pod, and a number that no other process
/// has.
fn own_lease_identity() -> String {
    let host = std::env::var_os("HOSTNAME").and_then(|host| host.into_string().ok());
    let number = RandomState::new().hash_one(std::process::id()) & 0xffff_ffff;
    format!("{}_{number:08x}", host.as_deref().filter(|host| !host.is_empty()).unwrap_or("tollgate"))
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|error| Failure::Internal(error.into()))
}
