//! `tollgate serve` without its flags: binds the ports, serves, reloads certificates and policies, drains.
//!
//! Requests go to `engine::admit` and nowhere else. A request uses one engine from start to end, even if a reload
//! replaces it meanwhile. SIGTERM fails readiness first. The server keeps serving for most of the drain, finishes
//! requests in flight in the rest of it, and the process has exited when the drain is over.

mod background;
mod body;
mod cert_files;
mod clock;
mod connection;
mod eviction;
mod handler;
mod limiter;
mod log;
mod memory;
mod metrics;
mod ops;
mod reload;
mod self_signed;
mod server_files;
mod settings;
mod stream;
mod sweep;
mod tls;
mod trust;
mod watch;
mod webhook;

pub use background::{
    BackgroundTask, BackgroundTasks, ComponentStatus, LabelsFuture, MetricSample, NamespaceLabelCache,
    NamespaceLabelsResult, ServingFlag,
};
pub use log::{Log, LogFormat};
pub use reload::{ReloadHooks, ReloadOutcome, ReloadResult, Reloader, ServingConfig};
pub use self_signed::SelfSignedCerts;
pub use server_files::RegisteredCa;
pub use settings::RespondFn;
pub use settings::{CertificateSettings, Limits, RegisteredAddress, Settings};
pub use tls::TlsVersions;
pub use trust::{Untrusted, check_ca_bundle_is_unexpired, check_server_cert};
pub use watch::ReloadTrigger;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::rt::signal::unix::{SignalKind, signal};
use actix_web::rt::time::sleep;
use anyhow::Context as _;

use cert_files::CertificateSource;
use limiter::LoadLimiter;
use metrics::Metrics;
use reload::ReloadableConfig;
use server_files::ServerFiles;
use tollgate_engine::engine::Engine;

/// Last part of a drain, in which no new connections are accepted: a quarter of the drain, at most this long.
const MAX_CLOSING_TIME: Duration = Duration::from_secs(1);
/// During the last part of a drain, open connections, handshakes included, are dropped after this long without any
/// activity.
const QUIET_PERIOD: Duration = Duration::from_millis(200);
/// Reserved at the end of the drain for the process to exit: the log is flushed, threads are joined.
const EXIT_RESERVE: Duration = Duration::from_millis(100);
/// Time limit for requests in flight if there is no drain.
const IN_FLIGHT_TIMEOUT_WITHOUT_DRAIN: Duration = Duration::from_secs(1);
/// Length of the accept queue; the system may allow less.
const LISTEN_BACKLOG: i32 = 4_096;
/// Number of file descriptors that are kept for everything but connections.
const RESERVED_DESCRIPTORS: usize = 64;

/// The state that all workers of the server share.
struct SharedState {
    config: ReloadableConfig,
    respond: RespondFn,
    limits: Limits,
    limiter: Arc<LoadLimiter>,
    metrics: Arc<Metrics>,
    sources: Vec<CertificateSource>,
    log: Option<Log>,
    draining: AtomicBool,
    serving: ServingFlag,
    /// Background tasks attached by the caller: `/readyz` and `/metrics` report their status, and requests are decided by
    /// their namespace labels.
    background: OnceLock<BackgroundTasks>,
    /// Number of connections and requests so far; the end of the drain waits until it stops changing.
    activity: AtomicU64,
}

impl SharedState {
    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    fn tasks(&self) -> impl Iterator<Item = &BackgroundTask> {
        self.background.get().into_iter().flat_map(|background| &background.tasks)
    }

    /// The watched namespaces, if there are any.
    fn namespaces(&self) -> Option<&dyn NamespaceLabelCache> {
        self.background.get().and_then(|background| background.namespaces.as_deref())
    }

    /// Counts a connection or request; returns the number so far.
    fn increment_activity_counter(&self) -> u64 {
        self.activity.fetch_add(1, Ordering::Relaxed)
    }
}

/// Gives other parts of the program access to the engine in use.
#[derive(Clone)]
pub struct EngineHandle(Arc<SharedState>);

impl EngineHandle {
    /// Applies a change to the engine in use and to every engine loaded later; replaces the change of an earlier call.
    pub fn customize_current_and_later_engines(&self, change: impl Fn(&mut Engine) + Send + Sync + 'static) {
        self.0.config.customize_current_and_later_engines(Box::new(change));
    }

    /// Sets the hooks for every engine loaded from now on, and calls `after` with the engine in use. Later calls are
    /// ignored, except that they call `after` once.
    pub fn set_hooks_once_and_call_after_hook(&self, hooks: ReloadHooks) {
        self.0.config.set_hooks_once_and_call_after_hook(hooks);
    }

    /// True if requests fail because the policies of a source, such as the cluster, were not read yet.
    pub fn awaits_policies(&self) -> bool {
        self.0.config.current().awaits_policies
    }

    /// Calls `read` with the engine in use and returns its result.
    pub fn with_engine<T>(&self, read: impl FnOnce(&Engine) -> T) -> T {
        read(&self.0.config.current().engine)
    }
}

/// A server with loaded certificates and bound ports.
pub struct Server {
    settings: Settings,
    shared: Arc<SharedState>,
    tls: rustls::ServerConfig,
    listener: TcpListener,
    ops_listener: TcpListener,
    self_signed: Option<Arc<SelfSignedCerts>>,
    registered_ca: RegisteredCa,
    trigger: ReloadTrigger,
    /// The receiving end of reload triggers, taken when the server starts to reload.
    triggers: Option<watch::TriggerReceiver>,
}

/// The error of a server that cannot start because of what it was told: no fault of the program.
#[derive(Debug)]
pub enum UnusableSettings {
    /// The certificate files, or the directory of the self-signed certificates, cannot be used.
    Certificates(String),
    /// The limits contradict each other, or the container has too little memory for them.
    Limits(String),
}

impl UnusableSettings {
    fn certificates(error: &anyhow::Error) -> anyhow::Error {
        UnusableSettings::Certificates(format!("{error:#}")).into()
    }
}

impl std::fmt::Display for UnusableSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (UnusableSettings::Certificates(why) | UnusableSettings::Limits(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for UnusableSettings {}

impl Server {
    /// Loads or creates certificates and binds the ports. With a `reloader`, the configuration is replaced when it
    /// changes.
    pub fn bind(
        settings: Settings,
        config: impl Into<ServingConfig>,
        reloader: Option<Reloader>,
        log: Option<Log>,
    ) -> anyhow::Result<Server> {
        let metrics = Arc::new(Metrics::new());
        let resolver = tls::CertificateResolver::empty();
        let mut sources = Vec::new();
        let mut self_signed = None;
        let registered_ca = RegisteredCa::default();
        sources.push(match &settings.certificates {
            CertificateSettings::Files { certificate, key } => {
                let files = ServerFiles {
                    certificate: certificate.clone(),
                    key: key.clone(),
                    address: settings.registered_address.clone(),
                    resolver: resolver.clone(),
                    ca: registered_ca.clone(),
                };
                files.into_source(metrics.clone())?
            }
            CertificateSettings::SelfSigned { directory, names } => {
                let own = Arc::new(
                    SelfSignedCerts::load_or_create(directory.clone(), names.clone(), clock::unix_seconds())
                        .map_err(|error| UnusableSettings::certificates(&error))?,
                );
                self_signed = Some(own.clone());
                let read = Box::new(move || {
                    if own.renew_if_needed(clock::unix_seconds())? {
                        tracing::info!("certificates renewed; the caBundle may have changed");
                    }
                    let (certificate, key) = own.server_cert_and_key()?;
                    Ok(vec![certificate.into_bytes(), key.into_bytes()])
                });
                let put = resolver.clone();
                let put = Box::new(move |contents: &cert_files::FileContents| {
                    put.set_from_files_and_get_expiry(contents)
                });
                CertificateSource::load_and_apply("server", Vec::new(), metrics.clone(), read, put)?
            }
        });
        let mut clients = None;
        if let Some(authority) = &settings.client_ca {
            let check = tls::ClientVerifier::new(settings.client_names.clone());
            clients = Some(check.clone());
            let put = Box::new(move |contents: &cert_files::FileContents| {
                check.set_ca_from_files_and_get_expiry(contents)
            });
            sources.push(CertificateSource::from_file("client-ca", authority.clone(), metrics.clone(), put)?);
        }
        let tls = tls::server_config(settings.tls_versions, resolver, clients)?;
        let mut limits = settings.limits;
        limits.max_memory = memory::effective_memory_limit(limits.max_memory);
        let reserved = RESERVED_DESCRIPTORS + webhook::max_connections_beyond_limit(settings.workers);
        limits.max_connections = raise_file_limit_for_connections(limits.max_connections, reserved);
        let plan = memory::divide_memory(limits)?;
        limits.max_connections = plan.connections;
        let limiter =
            LoadLimiter::new(limits.max_in_flight, plan, metrics.in_flight.clone(), metrics.shed.clone());
        let shared = Arc::new(SharedState {
            config: ReloadableConfig::new(config.into(), reloader, metrics.clone()),
            respond: settings.respond,
            limits,
            limiter: Arc::new(limiter),
            metrics,
            sources,
            log,
            draining: AtomicBool::new(false),
            serving: ServingFlag::default(),
            background: OnceLock::new(),
            activity: AtomicU64::new(0),
        });
        let (listener, ops_listener) = (listen(settings.listen)?, listen(settings.ops_listen)?);
        webhook::set_send_buffer_and_write_timeout(&listener, limits.write_timeout)?;
        webhook::set_send_buffer_and_write_timeout(&ops_listener, limits.write_timeout)?;
        let (trigger, triggers) = watch::reload_channel();
        let triggers = Some(triggers);
        Ok(Server {
            settings,
            shared,
            tls,
            listener,
            ops_listener,
            self_signed,
            registered_ca,
            trigger,
            triggers,
        })
    }

    /// Returns the address of the webhook port.
    pub fn webhook_address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Returns the address of the port for health checks and metrics.
    pub fn ops_address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.ops_listener.local_addr()?)
    }

    /// The CA certificates of a self-signed server certificate, PEM; `None` if the certificate comes from files.
    pub fn self_signed_ca_bundle(&self) -> Option<String> {
        self.self_signed.as_ref().map(|self_signed| self_signed.ca_bundle())
    }

    /// The self-signed certificates; `None` if the certificate comes from files.
    pub fn self_signed(&self) -> Option<Arc<SelfSignedCerts>> {
        self.self_signed.clone()
    }

    /// The CA of [`Settings::registered_address`].
    pub fn registered_ca(&self) -> RegisteredCa {
        self.registered_ca.clone()
    }

    /// A flag that says whether the server answers requests.
    pub fn serving(&self) -> ServingFlag {
        self.shared.serving.clone()
    }

    /// Attaches background tasks: `/readyz` and `/metrics` report their status, and requests are decided by their
    /// namespace labels, if they have any. A second call is ignored.
    pub fn attach(&self, background: BackgroundTasks) {
        let _ = self.shared.background.set(background);
    }

    /// True if a loaded policy selects by namespace labels.
    pub fn policies_need_namespace_labels(&self) -> bool {
        self.shared.config.current().engine.policies.needs_namespace_labels()
    }

    /// Returns a handle that triggers reloads while the server runs.
    pub fn reload_trigger(&self) -> ReloadTrigger {
        self.trigger.clone()
    }

    /// Access to the engine while the server runs.
    pub fn engine_handle(&self) -> EngineHandle {
        EngineHandle(self.shared.clone())
    }

    /// Serves until SIGTERM or SIGINT, and then until the drain is over.
    pub fn run(mut self) -> anyhow::Result<()> {
        let watched = self.shared.clone();
        watched.config.current().warn_if_labels_are_missing(watched.namespaces());
        let waiting = self.shared.clone();
        let is_waiting = move || waiting.config.still_waits_after_apply_attempt(waiting.namespaces());
        let reload = move |requested| {
            watched.sources.iter().for_each(CertificateSource::reload_if_changed);
            let mut directories =
                watched.config.reload_returning_directories_to_watch(requested, watched.namespaces());
            directories.extend(watched.sources.iter().flat_map(|source| source.directories.iter().cloned()));
            directories
        };
        if let Some(triggers) = self.triggers.take() {
            watch::spawn_reloader(
                self.trigger.clone(),
                triggers,
                self.settings.reload_period,
                is_waiting,
                reload,
            )?;
        }
        actix_web::rt::System::new().block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut hang_up = signal(SignalKind::hangup())?;
        let drain = self.settings.drain;
        let (shared, trigger) = (self.shared.clone(), self.trigger.clone());
        let webhook = self.start_listeners()?;
        shared.serving.set(true);
        let Limits { max_memory, max_connections, .. } = shared.limits;
        tracing::info!(mebibytes = max_memory >> 20, connections = max_connections, "serving");
        std::future::poll_fn(|cx| {
            while hang_up.poll_recv(cx).is_ready() {
                trigger.request_reload();
            }
            match (term.poll_recv(cx), int.poll_recv(cx)) {
                (Poll::Pending, Poll::Pending) => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
        let began = clock::monotonic_now();
        shared.draining.store(true, Ordering::Relaxed);
        shared.serving.set(false);
        let seconds = drain.as_secs();
        tracing::info!(seconds, "draining: not ready, still serving");
        let closing = MAX_CLOSING_TIME.min(drain / 4);
        sleep(drain.saturating_sub(closing)).await;
        let last = if drain.is_zero() {
            IN_FLIGHT_TIMEOUT_WITHOUT_DRAIN
        } else {
            drain.saturating_sub(EXIT_RESERVE.min(closing / 2))
        };
        pause_accepting_and_wait_until_quiet(&shared, &webhook, QUIET_PERIOD.min(closing / 2), began + last)
            .await;
        tracing::info!("drained");
        if let Some(log) = &shared.log {
            log.close();
        }
        Ok(())
    }

    /// Starts both listeners; the handle is the webhook's.
    fn start_listeners(self) -> anyhow::Result<ServerHandle> {
        let Server { settings, shared, tls, listener, ops_listener, .. } = self;
        let webhook = webhook::start_webhook(&settings, shared.clone(), tls, listener)?;
        let ops = webhook::start_health_and_metrics_server(shared, ops_listener)?;
        let handle = webhook.handle();
        actix_web::rt::spawn(webhook);
        actix_web::rt::spawn(ops);
        Ok(handle)
    }
}

/// Stops accepting connections and serves requests on the open ones. Returns after `quiet` without activity, at the
/// latest at `end`.
async fn pause_accepting_and_wait_until_quiet(
    shared: &SharedState,
    webhook: &ServerHandle,
    quiet: Duration,
    end: Instant,
) {
    webhook.pause().await;
    let mut last = (shared.activity.load(Ordering::Relaxed), clock::monotonic_now());
    while clock::monotonic_now() < end {
        let seen = shared.activity.load(Ordering::Relaxed);
        if seen != last.0 || shared.limiter.in_flight() > 0 {
            last = (seen, clock::monotonic_now());
        } else if last.1.elapsed() >= quiet {
            return;
        }
        sleep(Duration::from_millis(10).min(quiet)).await;
    }
}

/// Binds a listening socket.
fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    // The standard library sets a backlog of 128; a client that finds it full tries again only after a second.
    rustix::net::listen(&listener, LISTEN_BACKLOG).with_context(|| format!("cannot listen on {address}"))?;
    Ok(listener)
}

/// Raises the limit of open files as far as the system allows. Returns how many connections fit beside `reserved`
/// files, at most `most`.
fn raise_file_limit_for_connections(most: usize, reserved: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    most.min(files.saturating_sub(reserved)).max(1)
}
