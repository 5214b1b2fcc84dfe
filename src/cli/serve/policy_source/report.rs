//! What `/readyz?verbose` and `/metrics` say about policies that are custom resources.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ClusterPolicySource;
use super::status::StatusWriter;
use crate::cli::clock;
use crate::cli::serve::cluster::watch_samples;
use crate::cluster::{LeaseHandle, ListedKind, POLICY_KINDS, WatchState, WatchStatus, WatchedKindStatus};
use crate::server::{BackgroundTask, ComponentStatus, EngineHandle, MetricSample};
use tollgate_engine::policy::{Acceptance, PolicyResourceState, PolicySet};

/// A deletion is confirmed within this time. A policy that is missing for longer stays in use, because its kind
/// is gone as well.
const DELETION_CONFIRMATION_TIME: Duration = Duration::from_secs(3);
/// Maximum number of rejected policies that a message names.
const MAX_NAMED_POLICIES: usize = 3;
/// Command that installs the CustomResourceDefinitions of the policy kinds.
const INSTALL_CRDS_COMMAND: &str =
    "install them with `tollgate schema crd | kubectl apply --server-side -f -`";

/// Returns the tasks that report the policies and the Lease in `/readyz` and `/metrics`.
pub(super) fn readyz_and_metrics_tasks(
    source: &Arc<ClusterPolicySource>,
    lease: &LeaseHandle,
    writer: &StatusWriter,
    engine: EngineHandle,
) -> Vec<BackgroundTask> {
    let source = source.clone();
    let policies = move || source_status(&source, &engine);
    let (lease, writer) = (lease.clone(), writer.clone());
    vec![
        BackgroundTask { name: "policy-source", status: Arc::new(policies) },
        BackgroundTask { name: "policy-lease", status: Arc::new(move || lease_status(&lease, &writer)) },
    ]
}

fn source_status(source: &ClusterPolicySource, engine: &EngineHandle) -> ComponentStatus {
    let statuses = source.watch.status();
    let watches: Vec<WatchStatus> =
        POLICY_KINDS.iter().filter_map(|kind| source.watch.status_of_kind(kind)).collect();
    let (count, has_missing, kept) = {
        let stored = source.lock();
        let kept = stored.kinds_with_policies_missing_for(DELETION_CONFIRMATION_TIME, Instant::now());
        (stored.len(), stored.has_missing(), kept)
    };
    let is_ready = source.revision().is_some() && !engine.awaits_policies();
    let set = engine.with_engine(|engine| engine.policies.clone());
    let problems = out_of_date_reasons(&statuses, &kept);
    let rejected = rejected_policies(&set);
    let message = match (is_ready, problems.is_empty()) {
        (false, false) => format!("the policies of the cluster are not known yet: {}", problems.join("; ")),
        (false, true) => "the policies of the cluster are not loaded yet".to_owned(),
        (true, false) => {
            format!("the last policies of the cluster ({count}) stay in use: {}", problems.join("; "))
        }
        (true, true) if rejected.is_empty() => format!("ok (policies in the cluster: {count})"),
        (true, true) => rejected_text(count, &rejected),
    };
    let is_current = problems.is_empty() && !has_missing;
    let age = watches.iter().filter_map(|watch| watch.age).max().unwrap_or_default().as_secs();
    let mut samples = policy_set_samples(&set);
    let gauge = |name, help, value| MetricSample { name, help, label: None, value };
    let age = i64::try_from(age).unwrap_or(i64::MAX);
    samples.push(gauge(
        "policy_source_ok",
        "1 if the policies of the cluster are loaded and up to date",
        i64::from(is_ready && is_current),
    ));
    let synced = if is_ready { clock::unix_seconds().saturating_sub(age) } else { 0 };
    samples.push(gauge(
        "policy_source_sync_timestamp_seconds",
        "Time at which the policies of the cluster were last known to be up to date; 0 if they were not loaded yet",
        synced,
    ));
    for (status, watch) in statuses.iter().zip(watches) {
        let current = status.state == WatchState::Current;
        let is_of_kind = |state: &&PolicyResourceState| state.kind.name() == status.kind.kind;
        let count = set.policy_resource_states().iter().filter(is_of_kind).count();
        samples.extend(watch_samples(status.kind.resource, &watch, current, count));
    }
    ComponentStatus {
        ready: is_ready,
        degraded: !problems.is_empty() || !rejected.is_empty(),
        message,
        samples,
    }
}

/// Returns why the policies may be out of date. Policies of the `kept` kinds have disappeared, but stay in use.
fn out_of_date_reasons(statuses: &[WatchedKindStatus], kept: &[ListedKind]) -> Vec<String> {
    let concerned = |state: WatchState| statuses.iter().filter(move |status| status.state == state);
    let names = |state: WatchState| -> String {
        concerned(state).map(|status| status.kind.kubectl_resource_name()).collect::<Vec<_>>().join(", ")
    };
    let mut problems = Vec::new();
    if concerned(WatchState::NotServed).next().is_some() {
        problems.push(format!(
            "the API server does not serve {}; the CustomResourceDefinitions are missing: {INSTALL_CRDS_COMMAND}",
            names(WatchState::NotServed)
        ));
    }
    // All kinds have the same problem in most cases, so it is said once for each state.
    for state in [WatchState::NotListed, WatchState::Forbidden, WatchState::Interrupted] {
        let first = concerned(state).next();
        problems.extend(first.map(|first| format!("{}: {}", names(state), first.message)));
    }
    let is_kept =
        |status: &&WatchedKindStatus| status.state == WatchState::Current && kept.contains(&status.kind);
    problems.extend(statuses.iter().filter(is_kept).map(|status| {
        let name = status.kind.kubectl_resource_name();
        format!("{name}: policies were deleted together with their CustomResourceDefinition")
    }));
    problems
}

/// Returns the policies of the cluster in a set that are invalid.
fn rejected_policies(set: &PolicySet) -> Vec<&PolicyResourceState> {
    set.policy_resource_states()
        .iter()
        .filter(|state| matches!(state.acceptance, Acceptance::Rejected(_)))
        .collect()
}

fn rejected_text(count: usize, rejected: &[&PolicyResourceState]) -> String {
    let error = |state: &&PolicyResourceState| {
        let error = match &state.acceptance {
            Acceptance::Rejected(errors) => errors.first().map(ToString::to_string).unwrap_or_default(),
            Acceptance::Accepted | Acceptance::ReplacedByFile => String::new(),
        };
        format!("{}/{}: {error}", state.kind.name(), state.name)
    };
    let mut errors: Vec<String> = rejected.iter().take(MAX_NAMED_POLICIES).map(error).collect();
    if rejected.len() > MAX_NAMED_POLICIES {
        errors.push(format!("and {} more", rejected.len() - MAX_NAMED_POLICIES));
    }
    format!(
        "invalid policies in the cluster: {} of {count}; requests that they match get their failurePolicy: {}",
        rejected.len(),
        errors.join("; ")
    )
}

/// Returns the metrics about the policies in use, by source, and about the policies in the cluster, by state.
fn policy_set_samples(set: &PolicySet) -> Vec<MetricSample> {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let of = |is: fn(&Acceptance) -> bool| {
        set.policy_resource_states().iter().filter(|state| is(&state.acceptance)).count()
    };
    let accepted = of(|acceptance| *acceptance == Acceptance::Accepted);
    let rejected = of(|acceptance| matches!(acceptance, Acceptance::Rejected(_)));
    let replaced = of(|acceptance| *acceptance == Acceptance::ReplacedByFile);
    let in_force = accepted + rejected;
    let by_source = |source, count| MetricSample {
        name: "policies_by_source",
        help: "Number of policies in use, by source",
        label: Some(("source", source)),
        value: number(count),
    };
    let by_state = |state, count| MetricSample {
        name: "policy_resources",
        help: "Number of policies in the cluster, by state: accepted, rejected (invalid; requests that they match get \
               their failurePolicy) or replaced by a file",
        label: Some(("state", state)),
        value: number(count),
    };
    vec![
        by_source("files", set.len().saturating_sub(in_force)),
        by_source("cluster", in_force),
        by_state("accepted", accepted),
        by_state("rejected", rejected),
        by_state("replaced", replaced),
    ]
}

/// Returns the status of the Lease for writing policy statuses, on which no request depends.
fn lease_status(lease: &LeaseHandle, writer: &StatusWriter) -> ComponentStatus {
    let status = lease.status();
    let (written, failed) = writer.succeeded_and_failed_writes();
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let sample = |name, help, value| MetricSample { name, help, label: None, value };
    let samples = vec![
        sample(
            "policy_lease_held",
            "1 if this replica writes the status of policies and removes webhook entries that are no longer needed",
            i64::from(status.is_held),
        ),
        sample(
            "policy_status_writes_total",
            "Number of times that the status of a policy was written",
            count(written),
        ),
        sample(
            "policy_status_failures_total",
            "Failed requests to write the status of a policy",
            count(failed),
        ),
    ];
    ComponentStatus { ready: true, degraded: status.is_failing, message: status.message, samples }
}
