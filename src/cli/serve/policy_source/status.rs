//! Writes the status of policies, in the replica that holds the Lease, and only if it changes.
//!
//! Not here: what the status says (`condition`). Invariant: at most [`MAX_REQUESTS_PER_SECOND`] requests are sent in a
//! second, however many policies there are; a request that is refused is not repeated at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::ClusterPolicySource;
use crate::cli::clock;
use crate::cluster::{ApiError, LeaseHandle, ListedKind};
use crate::server::EngineHandle;
use tollgate_engine::policy::PolicySet;

/// Maximum number of requests per second. Writing the status of 1,000 policies takes 50 seconds.
const MAX_REQUESTS_PER_SECOND: u32 = 20;
/// Interval at which the writer checks for changed statuses.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Interval at which the writer recomputes all statuses even if no policy changed, because entries expire.
const EXPIRY_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Pause after a request that was refused or got no response.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Writes the status of policies. Clones share the counters.
#[derive(Clone)]
pub(super) struct StatusWriter {
    source: Arc<ClusterPolicySource>,
    lease: LeaseHandle,
    engine: EngineHandle,
    counters: Arc<WriteCounters>,
}

/// Numbers of requests to write a status that succeeded and that failed.
#[derive(Debug, Default)]
struct WriteCounters {
    written: AtomicU64,
    failed: AtomicU64,
}

/// The status of a policy that has to be written, as a patch.
struct PendingStatus {
    kind: ListedKind,
    name: String,
    patch: String,
}

impl StatusWriter {
    pub(super) fn new(
        source: Arc<ClusterPolicySource>,
        lease: LeaseHandle,
        engine: EngineHandle,
    ) -> StatusWriter {
        StatusWriter { source, lease, engine, counters: Arc::default() }
    }

    /// Returns the numbers of requests that succeeded and that failed.
    pub(super) fn succeeded_and_failed_writes(&self) -> (u64, u64) {
        let WriteCounters { written, failed } = &*self.counters;
        (written.load(Ordering::Relaxed), failed.load(Ordering::Relaxed))
    }

    /// Writes changed statuses for the life of the process, while this replica holds the Lease.
    pub(super) fn run(&self) {
        // The policies and the set for which nothing was left to write, and when that was.
        let mut done: Option<(u64, Arc<PolicySet>, Instant)> = None;
        loop {
            std::thread::sleep(POLL_INTERVAL);
            if !self.lease.is_held() || self.engine.awaits_policies() {
                done = None;
                continue;
            }
            let set = self.engine.with_engine(|engine| engine.policies.clone());
            let changes = self.source.lock().changes;
            let is_done = |(at, of, since): &(u64, Arc<PolicySet>, Instant)| {
                *at == changes && Arc::ptr_eq(of, &set) && since.elapsed() < EXPIRY_POLL_INTERVAL
            };
            if done.as_ref().is_some_and(is_done) {
                continue;
            }
            let pending = self.pending_statuses(&set);
            if pending.is_empty() {
                done = Some((changes, set, Instant::now()));
                continue;
            }
            self.write_statuses(pending);
        }
    }

    /// Returns the statuses that differ from the stored ones. Skips policies whose stored version is not the one
    /// in use.
    fn pending_statuses(&self, set: &PolicySet) -> Vec<PendingStatus> {
        let now = clock::timestamp();
        let stored = self.source.lock();
        let mut pending = Vec::new();
        for policy in stored.policies_in_watch() {
            let resource = &policy.resource;
            let state = set
                .policy_resource_states()
                .binary_search_by(|state| (state.kind, &*state.name).cmp(&(resource.kind, &*resource.name)));
            let state = state
                .ok()
                .and_then(|index| set.policy_resource_states().get(index))
                .filter(|state| (&*state.uid, state.generation) == (&*resource.uid, resource.generation));
            let patch = state.and_then(|state| policy.status.status_patch(state, &policy.version, now));
            let name = resource.name.to_string();
            pending.extend(patch.map(|patch| PendingStatus { kind: policy.kind, name, patch }));
        }
        pending
    }

    /// Writes these statuses one after the other, as long as this replica holds the Lease.
    fn write_statuses(&self, pending: Vec<PendingStatus>) {
        for PendingStatus { kind, name, patch } in pending {
            if !self.lease.is_held() {
                return;
            }
            match self.source.cluster.patch_policy_status(&kind, &name, patch) {
                Ok(()) => _ = self.counters.written.fetch_add(1, Ordering::Relaxed),
                // It was changed or deleted since; the watch brings what it is now.
                Err(ApiError::Status { code: 404 | 409, .. }) => {}
                Err(error) => {
                    self.counters.failed.fetch_add(1, Ordering::Relaxed);
                    let kind = kind.kind;
                    tracing::warn!(kind, name, "cannot write the status of a policy; retrying: {error}");
                    std::thread::sleep(FAILURE_PAUSE);
                    return;
                }
            }
            std::thread::sleep(Duration::from_secs(1) / MAX_REQUESTS_PER_SECOND);
        }
    }
}
