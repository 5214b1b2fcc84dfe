//! `tollgate serve` without its flags: binds, serves, watches certificates and policies, drains, ends.
//!
//! The handler is `engine::admit` and nothing else. A request sees one engine from start to end, even when it is
//! replaced meanwhile. SIGTERM fails readiness first; everything is served for most of the drain, what is in flight is
//! finished in the rest of it, and the process has ended when it is over.

mod admit;
mod beside;
mod body;
mod clock;
mod connection;
mod files;
mod gate;
mod log;
mod memory;
mod metrics;
mod ops;
mod policies;
mod selfmade;
mod settings;
mod stream;
mod sweep;
mod tls;
mod watch;
mod webhook;

pub use beside::{Answer, Company, Found, Job, NamespaceSource, Report, Sample, Serving};
pub use log::{Log, LogFormat};
pub use policies::{Judging, Look, ReloadHooks, Seen, What};
pub use selfmade::SelfMade;
pub use settings::{Admit, Certificates, Limits, Settings};
pub use tls::TlsVersions;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use actix_web::dev::ServerHandle;
use actix_web::rt::signal::unix::{SignalKind, signal};
use actix_web::rt::time::sleep;
use anyhow::Context as _;

use crate::engine::Engine;
use files::Source;
use gate::Gate;
use metrics::Metrics;
use policies::Policies;
use watch::Watch;

/// The end of a drain, in which no new connections are taken: a quarter of it, at most this long.
const CLOSING: Duration = Duration::from_secs(1);
/// In that time: how long nothing must have come before open connections, handshakes included, are given up.
const QUIET: Duration = Duration::from_millis(200);
/// Kept of the drain for the process to end in: the log is written, threads are joined.
const LEAVING: Duration = Duration::from_millis(100);
/// Without a drain: how long what is being judged may take.
const LAST_CALL: Duration = Duration::from_secs(1);
/// Connections that may wait until they are accepted; the system may allow fewer.
const WAITING: i32 = 4_096;
/// File descriptors that are not connections.
const OTHER_FILES: usize = 64;

/// What every worker knows.
#[derive(Debug)]
struct Shared {
    policies: Policies,
    admit: Admit,
    limits: Limits,
    gate: Arc<Gate>,
    metrics: Arc<Metrics>,
    sources: Vec<Source>,
    log: Option<Log>,
    draining: AtomicBool,
    serving: Serving,
    /// What runs beside us.
    company: OnceLock<Company>,
    /// Connections and requests ever seen; the end of the drain waits until it stands still.
    seen: AtomicU64,
}

impl Shared {
    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.company.get().into_iter().flat_map(|company| &company.jobs)
    }

    fn seen(&self) -> u64 {
        self.seen.fetch_add(1, Ordering::Relaxed)
    }
}

/// Changes what is judged by.
#[derive(Clone, Debug)]
pub struct Adapter(Arc<Shared>);

impl Adapter {
    /// Changes the engine in use, and each one that is loaded later; the last call counts.
    pub fn adapt(&self, change: impl Fn(&mut Engine) + Send + Sync + 'static) {
        self.0.policies.adapt(Box::new(change));
    }

    /// Tells of the engine in use, and of each one that is loaded later; the first call counts.
    pub fn hook(&self, hooks: ReloadHooks) {
        self.0.policies.hook(hooks);
    }

    /// Looks at the engine in use.
    pub fn engine<T>(&self, look: impl FnOnce(&Engine) -> T) -> T {
        look(&self.0.policies.current().engine)
    }
}

/// A server that has its certificates and its ports.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    shared: Arc<Shared>,
    tls: rustls::ServerConfig,
    listener: TcpListener,
    ops_listener: TcpListener,
    made: Option<Arc<SelfMade>>,
}

impl Server {
    /// Loads or makes certificates and takes the ports. With `look`, what is judged by is replaced when it changes.
    pub fn bind(
        settings: Settings,
        judging: impl Into<Judging>,
        look: Option<Look>,
        log: Option<Log>,
    ) -> anyhow::Result<Server> {
        let metrics = Arc::new(Metrics::new());
        let served = tls::Served::none_yet();
        let mut sources = Vec::new();
        let mut made = None;
        let put = served.clone();
        let put = Box::new(move |contents: &files::Contents| put.put_contents(contents));
        sources.push(match &settings.certificates {
            Certificates::Files { certificate, key } => {
                Source::files("server", vec![certificate.clone(), key.clone()], metrics.clone(), put)?
            }
            Certificates::SelfMade { directory, names } => {
                let own = Arc::new(SelfMade::open(directory.clone(), names.clone(), clock::unix())?);
                made = Some(own.clone());
                let read = Box::new(move || {
                    if own.renew(clock::unix())? {
                        tracing::info!("certificates renewed: the caBundle may have changed");
                    }
                    let (certificate, key) = own.server_pair();
                    Ok(vec![certificate.into_bytes(), key.into_bytes()])
                });
                Source::open("server", Vec::new(), metrics.clone(), read, put)?
            }
        });
        let mut clients = None;
        if let Some(authority) = &settings.client_ca {
            let check = tls::Clients::new(settings.client_names.clone());
            clients = Some(check.clone());
            let put = Box::new(move |contents: &files::Contents| check.put_contents(contents));
            sources.push(Source::files("client-ca", vec![authority.clone()], metrics.clone(), put)?);
        }
        let tls = tls::config(settings.tls_versions, served, clients)?;
        let mut limits = settings.limits;
        limits.max_memory = memory::allowed(limits.max_memory);
        limits.max_connections = connections(limits.max_connections);
        let shares = memory::divide(limits)?;
        limits.max_connections = shares.connections;
        let gate = Gate::new(limits.max_in_flight, shares, metrics.in_flight.clone(), metrics.shed.clone());
        let shared = Arc::new(Shared {
            policies: Policies::new(judging.into(), look, metrics.clone()),
            admit: settings.admit,
            limits,
            gate: Arc::new(gate),
            metrics,
            sources,
            log,
            draining: AtomicBool::new(false),
            serving: Serving::default(),
            company: OnceLock::new(),
            seen: AtomicU64::new(0),
        });
        let (listener, ops_listener) = (listen(settings.listen)?, listen(settings.ops_listen)?);
        webhook::prepare(&listener, limits.write_timeout)?;
        webhook::prepare(&ops_listener, limits.write_timeout)?;
        Ok(Server { settings, shared, tls, listener, ops_listener, made })
    }

    /// Where the webhook listens.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Where health and metrics are.
    pub fn ops_address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.ops_listener.local_addr()?)
    }

    /// The CAs of a self-made certificate, PEM.
    pub fn ca_bundle(&self) -> Option<String> {
        self.made.as_ref().map(|made| made.ca_bundle())
    }

    /// What makes the certificates, if we do.
    pub fn self_made(&self) -> Option<Arc<SelfMade>> {
        self.made.clone()
    }

    /// Tells whether we answer.
    pub fn serving(&self) -> Serving {
        self.shared.serving.clone()
    }

    /// Takes note of what runs beside us; what is told a second time is not heard.
    pub fn accompany(&self, company: Company) {
        let _ = self.shared.company.set(company);
    }

    /// Some policy that was loaded asks for the labels of namespaces.
    pub fn needs_labels(&self) -> bool {
        self.shared.policies.current().engine.policies.needs_labels()
    }

    /// Changes what is judged by while we serve.
    pub fn adapter(&self) -> Adapter {
        Adapter(self.shared.clone())
    }

    /// Serves until SIGTERM or SIGINT, and then until the drain is over.
    pub fn run(self) -> anyhow::Result<()> {
        let watched = self.shared.clone();
        let watch = watch::spawn(self.settings.reload_period, move |asked| {
            watched.sources.iter().for_each(Source::reload);
            let mut directories = watched.policies.reload(asked);
            directories.extend(watched.sources.iter().flat_map(|source| source.directories.iter().cloned()));
            directories
        })?;
        actix_web::rt::System::new().block_on(self.serve(watch))
    }

    async fn serve(self, watch: Watch) -> anyhow::Result<()> {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut hang_up = signal(SignalKind::hangup())?;
        let drain = self.settings.drain;
        let shared = self.shared.clone();
        let webhook = self.start()?;
        shared.serving.set(true);
        let Limits { max_memory, max_connections, .. } = shared.limits;
        tracing::info!(mebibytes = max_memory >> 20, connections = max_connections, "serving");
        std::future::poll_fn(|cx| {
            while hang_up.poll_recv(cx).is_ready() {
                watch.ask();
            }
            match (term.poll_recv(cx), int.poll_recv(cx)) {
                (Poll::Pending, Poll::Pending) => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
        let began = clock::instant();
        shared.draining.store(true, Ordering::Relaxed);
        shared.serving.set(false);
        let seconds = drain.as_secs();
        tracing::info!(seconds, "draining: not ready, still serving");
        let closing = CLOSING.min(drain / 4);
        sleep(drain.saturating_sub(closing)).await;
        let last = if drain.is_zero() { LAST_CALL } else { drain.saturating_sub(LEAVING.min(closing / 2)) };
        finish(&shared, &webhook, QUIET.min(closing / 2), began + last).await;
        tracing::info!("drained");
        if let Some(log) = &shared.log {
            log.close();
        }
        Ok(())
    }

    /// Starts both ports; the handle is the webhook's.
    fn start(self) -> anyhow::Result<ServerHandle> {
        let Server { settings, shared, tls, listener, ops_listener, .. } = self;
        let webhook = webhook::start(&settings, shared.clone(), tls, listener)?;
        let ops = webhook::start_ops(shared, ops_listener)?;
        let handle = webhook.handle();
        actix_web::rt::spawn(webhook);
        actix_web::rt::spawn(ops);
        Ok(handle)
    }
}

/// Takes no new connections, answers what is still asked on the open ones, and returns when nothing was for `quiet`, or
/// at the end.
async fn finish(shared: &Shared, webhook: &ServerHandle, quiet: Duration, end: Instant) {
    webhook.pause().await;
    let mut last = (shared.seen.load(Ordering::Relaxed), clock::instant());
    while clock::instant() < end {
        let seen = shared.seen.load(Ordering::Relaxed);
        if seen != last.0 || shared.gate.in_flight() > 0 {
            last = (seen, clock::instant());
        } else if last.1.elapsed() >= quiet {
            return;
        }
        sleep(Duration::from_millis(10).min(quiet)).await;
    }
}

/// A socket that waits for clients.
fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    // The standard library lets 128 wait; one that finds no place tries again only after a second.
    rustix::net::listen(&listener, WAITING).with_context(|| format!("cannot listen on {address}"))?;
    Ok(listener)
}

/// As many connections as asked for and as the system lets us have, after asking for as many files as it gives.
fn connections(most: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    most.min(files.saturating_sub(OTHER_FILES)).max(1)
}
