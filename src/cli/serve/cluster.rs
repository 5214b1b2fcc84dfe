//! The parts of `tollgate serve` that need an API server: watches, release, registration.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;

use super::policy_source::{ClusterPolicySource, PolicySourceArgs};
use super::register::RegisterArgs;
use super::release::follow_server_release_and_gates;
use crate::cli::clock;
use crate::cli::outcome::Failure;
use crate::cli::shared::ReleaseArgs;
use crate::cli::units::parse_duration;
use crate::cluster::{Cluster, LabelsInCache, NamespaceLabelWatch, StateWatch, Timing, WatchStatus};
use crate::server::{
    BackgroundTask, BackgroundTasks, CertificateSettings, ComponentStatus, EngineHandle, LabelsFuture,
    MetricSample, NamespaceLabelCache, NamespaceLabelsResult, Server,
};
use tollgate_engine::engine::{self, Engine, OwnedLabels};

/// The flags of `tollgate serve` that need a cluster.
#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    #[command(flatten)]
    pub(super) register: RegisterArgs,

    /// Watch the cluster (read-only) for its release, namespace labels and pods
    ///
    /// Uses the release and feature gates of the cluster unless flags override them, and namespace labels in policies.
    /// Warns about the pods that a DeviceTaintRule evicts. Requires a kubeconfig or a service account.
    #[arg(long, value_name = "WHAT", env = "TOLLGATE_CLUSTER", conflicts_with = "namespaces")]
    #[arg(num_args = 0..=1, require_equals = true, default_value = "nothing", default_missing_value = "all")]
    #[arg(hide_default_value = true, help_heading = "Cluster")]
    cluster: WatchScope,

    #[command(flatten)]
    policies: PolicySourceArgs,

    /// Maximum delay between retries of a failed request to the API server
    #[arg(long, value_name = "TIME", env = "TOLLGATE_CLUSTER_RETRY", default_value = "30s")]
    #[arg(value_parser = parse_duration, help_heading = "Cluster")]
    #[arg(hide_short_help = true)]
    cluster_retry: Duration,
}

/// How much of the cluster is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WatchScope {
    /// Namespace labels, ResourceSlices, ResourceClaims, pods, DeviceTaintRules and PDBs
    #[value(alias = "true", alias = "1")]
    All,
    /// Only namespace labels, and only if a policy selects namespaces by label
    Labels,
    /// Nothing
    #[value(alias = "false", alias = "0", alias = "")]
    Nothing,
}

/// The cluster that the server watches: its client, state and policies.
#[derive(Debug)]
pub(super) struct OpenedCluster {
    cluster: Cluster,
    /// Maximum memory for the labels of namespaces, in bytes.
    labels_bytes: usize,
    state: Option<StateWatch>,
    /// The policies of the cluster; `None` if all policies are in files.
    pub(super) policies: Option<Arc<ClusterPolicySource>>,
}

impl OpenedCluster {
    /// Returns the engine with access to the watched state, if there is one.
    pub(super) fn engine_with_watched_state(&self, engine: Engine) -> Engine {
        match self.state.clone() {
            Some(state) => engine.with_cluster(engine::ClusterSource::from_fn(move || state.current())),
            None => engine,
        }
    }
}

impl ClusterArgs {
    /// Returns an error if `--policy-source` contradicts other flags.
    pub(super) fn check_policy_source(&self, has_files: bool) -> Result<(), Failure> {
        self.policies.check_flags(self.cluster != WatchScope::Nothing, has_files)
    }

    /// True if the server caches objects of the cluster, which its memory limit must allow for.
    pub(super) fn caches_state(&self) -> bool {
        self.cluster != WatchScope::Nothing
    }

    /// Connects to the cluster and starts the watches; `None` if no flag needs a cluster. Cached objects take at
    /// most `state_bytes`.
    pub(super) fn connect_and_watch(
        &self,
        release: &ReleaseArgs,
        state_bytes: usize,
    ) -> Result<Option<OpenedCluster>, Failure> {
        if self.cluster == WatchScope::Nothing && !self.register.is_enabled() {
            if release.uses_cluster_release() {
                let message = "--kubernetes cluster and --context require --cluster or --register";
                return Err(Failure::Usage(message.to_owned()));
            }
            return Ok(None);
        }
        let cluster = Cluster::start_without_connecting(
            release.server.context.target(),
            self.retry_and_backoff_timing(),
        )
        .map_err(|error| Failure::Input(format!("{error:#}")))?;
        let labels_bytes = state_bytes / 8;
        let watch = || StateWatch::start_watch(&cluster, state_bytes - labels_bytes);
        let state = (self.cluster == WatchScope::All).then(watch);
        let policies = self.policies.start_watch(&cluster);
        Ok(Some(OpenedCluster { cluster, labels_bytes, state, policies }))
    }

    /// Attaches to the server everything that runs in the background: watches, the release of the API server,
    /// policies and registration.
    pub(super) fn attach_background_tasks(
        &self,
        opened: &OpenedCluster,
        server: &Server,
        certificates: &CertificateSettings,
        release: &ReleaseArgs,
    ) -> Result<(), Failure> {
        let OpenedCluster { cluster, labels_bytes, state, policies } = opened;
        let mut background = BackgroundTasks::default();
        // Without a flag that names a profile, it is that of the API server.
        let is_asked = self.cluster != WatchScope::Nothing || release.uses_cluster_release();
        if is_asked && !release.kubernetes_flag_names_only_fixed_profiles() {
            let gates = release.server.gate_choice().cloned();
            background.tasks.extend(follow_server_release_and_gates(cluster, server.engine_handle(), gates));
        }
        if self.cluster != WatchScope::Nothing {
            let namespaces = Arc::new(WatchedNamespaces(NamespaceLabelWatch::new(cluster, *labels_bytes)));
            if server.policies_need_namespace_labels() {
                namespaces.start_label_watch_if_not_running();
            }
            background.tasks.push(namespace_watch_status_task(namespaces.clone(), server.engine_handle()));
            background.namespaces = Some(namespaces);
        }
        if let Some(state) = state {
            background.tasks.extend(
                state.resources().map(|resource| resource_watch_status_task(state.clone(), resource)),
            );
            background.tasks.push(cached_state_status_task(state.clone()));
        }
        let mut lease = None;
        if let Some(policies) = policies {
            let (tasks, held) = self.policies.follow_and_write_status(policies, server)?;
            background.tasks.extend(tasks);
            lease = Some(held);
        }
        let (serving, before) = (server.serving(), background.tasks.clone());
        // The webhook is not registered before its caches are complete.
        let is_ready = move || serving.is_serving() && before.iter().all(|task| (task.status)().ready);
        let ready: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(is_ready);
        background.tasks.extend(self.register.start_registration(
            cluster,
            server,
            certificates,
            &ready,
            lease,
        )?);
        server.attach(background);
        Ok(())
    }

    fn retry_and_backoff_timing(&self) -> Timing {
        let usual = Timing::default();
        let max_backoff = self.cluster_retry.max(Duration::from_millis(1));
        // A short retry interval shortens this, too.
        let stable_after = usual.stable_after.min(max_backoff * 2);
        Timing {
            max_backoff,
            min_backoff: usual.min_backoff.min(max_backoff),
            stable_after,
            not_served_delay: max_backoff.saturating_mul(10),
            check_interval: usual.check_interval.min(max_backoff),
            ..usual
        }
    }
}

/// A source of namespace labels that reads them from a watched cluster.
#[derive(Debug)]
struct WatchedNamespaces(NamespaceLabelWatch);

impl NamespaceLabelCache for WatchedNamespaces {
    fn start_label_watch_if_not_running(&self) {
        self.0.start();
    }

    fn is_synced(&self) -> bool {
        self.0.status().synced
    }

    fn cached_labels(&self, namespace: &str) -> NamespaceLabelsResult {
        match self.0.labels(namespace) {
            LabelsInCache::Known(labels) => NamespaceLabelsResult::Known(OwnedLabels(labels)),
            LabelsInCache::NotCached => NamespaceLabelsResult::NotCached,
            LabelsInCache::NotSynced => NamespaceLabelsResult::Unavailable,
        }
    }

    fn age_seconds_if_stale(&self) -> Option<u64> {
        self.0.age_if_stale().map(|age| age.as_secs())
    }

    fn fetch(&self, namespace: &str) -> LabelsFuture {
        let answer = self.0.fetch_namespace_labels(namespace);
        Box::pin(async move { answer.await.map(OwnedLabels) })
    }
}

fn namespace_watch_status_task(namespaces: Arc<WatchedNamespaces>, engine: EngineHandle) -> BackgroundTask {
    let status = move || {
        if namespaces.0.is_started() {
            let status = component_status("namespaces", namespaces.0.status(), namespaces.0.cached_count());
            // While new policies wait for labels, those in use answer without.
            let is_needed = engine.with_engine(|engine| engine.policies.needs_namespace_labels());
            ComponentStatus { ready: status.ready || !is_needed, ..status }
        } else {
            let message = "not watched: no policy selects namespaces by label".to_owned();
            ComponentStatus { ready: true, message, ..ComponentStatus::default() }
        }
    };
    BackgroundTask { name: "namespaces", status: Arc::new(status) }
}

fn resource_watch_status_task(state: StateWatch, resource: &'static str) -> BackgroundTask {
    let status = move || match state.status_and_object_count(resource) {
        Some((watch, count)) => component_status(resource, watch, count),
        None => ComponentStatus { message: "not watched".to_owned(), ..ComponentStatus::default() },
    };
    BackgroundTask { name: resource, status: Arc::new(status) }
}

/// Returns a task that reports how much memory the cached objects take, and how many taint rules are expired or
/// have no owner.
fn cached_state_status_task(state: StateWatch) -> BackgroundTask {
    let status = move || {
        let (used, limit) = state.used_and_allowed_bytes();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let sample = |name, help, count| MetricSample { name, help, label: None, value: number(count) };
        let (expired, ownerless) = state.expired_and_unowned_rule_counts(clock::timestamp());
        let samples = vec![
            sample(
                "rules_expired",
                "DeviceTaintRules with effect NoSchedule or NoExecute whose annotation tollgate.dev/expires is in the past",
                expired,
            ),
            sample(
                "rules_without_owner",
                "DeviceTaintRules with effect NoSchedule or NoExecute without the annotation tollgate.dev/owner",
                ownerless,
            ),
            sample("state_bytes", "Estimated memory of the cached cluster state", used),
            sample(
                "state_limit_bytes",
                "Memory that the cached cluster state can use; if it is used up, the largest objects are not cached",
                limit,
            ),
        ];
        let message = format!("{} of {} MiB used", used.div_ceil(1 << 20), limit >> 20);
        ComponentStatus { ready: true, message, samples, ..ComponentStatus::default() }
    };
    BackgroundTask { name: "cluster-state", status: Arc::new(status) }
}

/// Returns the status of a watch: ready once everything was listed. A watch that is interrupted later is
/// degraded, and the server stays ready.
fn component_status(resource: &'static str, watch: WatchStatus, count: usize) -> ComponentStatus {
    let current = watch.synced && watch.age.is_none();
    let samples = watch_samples(resource, &watch, current, count);
    ComponentStatus { ready: watch.synced, degraded: !current, message: watch.message, samples }
}

/// Returns the metrics of a watch with `count` cached objects.
pub(super) fn watch_samples(
    resource: &'static str,
    watch: &WatchStatus,
    is_current: bool,
    count: usize,
) -> Vec<MetricSample> {
    let label = Some(("resource", resource));
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let sample = |name, help, value| MetricSample { name, help, label, value };
    let objects = i64::try_from(count).unwrap_or(i64::MAX);
    vec![
        sample("watch_ok", "1 if the cached objects are up to date", i64::from(is_current)),
        sample(
            "watch_age_seconds",
            "Age of the cached objects if the watch is interrupted, otherwise 0",
            number(watch.age.unwrap_or_default().as_secs()),
        ),
        sample("watch_objects", "Cached objects; for pods, only those that use claims", objects),
        sample(
            "watch_lists_total",
            "Complete lists that were received for the resource",
            number(watch.lists),
        ),
        sample("watch_failures_total", "Failed list and watch requests", number(watch.failed)),
        sample(
            "watch_unreadable_total",
            "Objects that could not be decoded or were not cached, to limit memory",
            number(watch.unreadable),
        ),
    ]
}
