//! `tollgate serve`: flags and environment → settings, what to tell at start, and the server until it ends.

#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod configurations;
mod load;
#[cfg(feature = "cluster")]
mod register;
#[cfg(feature = "cluster")]
mod release;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use clap::ValueEnum;
use tracing::level_filters::LevelFilter;

use super::console::{Console, shell_word};
use super::outcome::{Failure, Tally};
use super::shared::GlobalArgs;
use super::units::{parse_bytes, parse_duration};
use crate::server::{
    Certificates, Limits, Log, LogFormat, ReloadOutcome, Reloader, Server, Settings, TlsVersions,
    UnusableFiles,
};
use load::Loader;

/// Serve the admission webhook
///
/// POST /validate and /mutate over TLS; /livez, /readyz and /metrics on a plain port of its own. Without a certificate
/// it makes a CA and a certificate, and says how to register them. SIGTERM drains: not ready at once, still serving,
/// what is in flight is finished, and the process has ended within --drain.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Where the webhook listens
    #[arg(long, value_name = "ADDRESS", env = "TOLLGATE_LISTEN", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,

    /// Where health and metrics are, without TLS
    #[arg(long, value_name = "ADDRESS", env = "TOLLGATE_OPS_LISTEN", default_value = "0.0.0.0:8081")]
    ops_listen: SocketAddr,

    /// Namespace objects (YAML or JSON), for policies that select by label; a namespace that is not listed has no labels
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES", help_heading = "Validation")]
    namespaces: Option<PathBuf>,

    /// How often files are looked at even without a directory event: policies, namespaces, certificates. SIGHUP looks now
    #[arg(long, value_name = "TIME", env = "TOLLGATE_RELOAD_INTERVAL", default_value = "60s")]
    #[arg(value_parser = parse_duration)]
    reload_interval: Duration,

    /// Certificate chain, PEM; read again whenever it changes
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TLS_CERT", requires = "tls_key", help_heading = "TLS")]
    tls_cert: Option<PathBuf>,

    /// Its key, PEM: PKCS#8, PKCS#1 or SEC1
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TLS_KEY", requires = "tls_cert", help_heading = "TLS")]
    tls_key: Option<PathBuf>,

    /// Where a CA and a certificate of our own making are kept; in memory without it
    #[arg(long, value_name = "DIR", help_heading = "TLS")]
    #[arg(env = "TOLLGATE_CERT_DIR", conflicts_with = "tls_cert")]
    cert_dir: Option<PathBuf>,

    /// Names and addresses in a certificate of our own making, separated by commas
    #[arg(long, value_name = "NAME", env = "TOLLGATE_DNS_NAME", value_delimiter = ',', help_heading = "TLS")]
    #[arg(default_values_t = super::certs::names())]
    dns_name: Vec<String>,

    /// Oldest TLS version spoken
    #[arg(long, value_name = "VERSION", help_heading = "TLS")]
    #[arg(env = "TOLLGATE_TLS_MIN_VERSION", default_value = "1.3")]
    tls_min_version: MinVersion,

    /// Clients must show a certificate of this CA (PEM); read again whenever it changes
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CLIENT_CA", help_heading = "TLS")]
    client_ca: Option<PathBuf>,

    /// And it must have one of these names (common name or DNS), separated by commas
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    #[arg(env = "TOLLGATE_CLIENT_NAME", value_delimiter = ',')]
    #[arg(requires = "client_ca")]
    client_name: Vec<String>,

    /// How long to go on serving after SIGTERM, until the end of the process
    #[arg(long, value_name = "TIME", env = "TOLLGATE_DRAIN", default_value = "10s", help_heading = "Limits")]
    #[arg(value_parser = parse_duration)]
    drain: Duration,

    /// Largest AdmissionReview that is checked; a larger one is denied
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_BODY", default_value = "8MiB")]
    #[arg(value_parser = parse_bytes)]
    max_body: usize,

    /// Requests being received or judged at once; more get 503
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_IN_FLIGHT", default_value = "512")]
    max_in_flight: usize,

    /// Memory of the whole process; bodies that do not fit get 503. Lowered to the limit of the container
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_MEMORY", default_value = "256MiB")]
    #[arg(value_parser = parse_bytes)]
    max_memory: usize,

    /// Open connections, if memory is enough for so many; more wait
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_CONNECTIONS", default_value = "16384")]
    max_connections: usize,

    /// Age at which a connection is told to go, so that new replicas get their share
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_CONNECTION_AGE", default_value = "5m")]
    #[arg(value_parser = parse_duration)]
    max_connection_age: Duration,

    /// Threads that answer; as many as there are processors without it
    #[arg(long, value_name = "COUNT", env = "TOLLGATE_WORKERS", help_heading = "Limits")]
    workers: Option<usize>,

    /// How log lines look; they go to stderr
    #[arg(long, value_name = "FORMAT", help_heading = "Logs")]
    #[arg(env = "TOLLGATE_LOG_FORMAT", default_value = "json")]
    log_format: Format,

    /// What is logged: `info` has a line per decision; PUT /log-level on the plain port changes it
    #[arg(long, value_name = "LEVEL", help_heading = "Logs")]
    #[arg(env = "TOLLGATE_LOG_LEVEL", default_value = "info")]
    log_level: LevelFilter,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: cluster::ClusterArgs,
}

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// One JSON object per line
    Json,
    /// For people
    Text,
}

/// Oldest version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum MinVersion {
    /// For old probes and middleboxes
    #[value(name = "1.2")]
    Tls12,
    /// What every API server speaks
    #[value(name = "1.3")]
    Tls13,
}

/// Only this machine finds it.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl Arguments {
    pub(super) fn run(&self, shared: &GlobalArgs, console: &mut Console) -> Result<Tally, Failure> {
        let format = match self.log_format {
            Format::Json => LogFormat::Json,
            Format::Text => LogFormat::Text,
        };
        let log = Log::install(format, self.log_level, Box::new(std::io::stderr()))?;
        if let Some(path) =
            shared.policy.iter().chain(&self.namespaces).find(|path| !load::can_be_read_again(path))
        {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "{path}: serve reads it again when it changes; give a file or folder"
            )));
        }
        #[cfg(feature = "cluster")]
        let opened = self.cluster.open(shared)?;
        let engine = shared.serving_engine()?;
        #[cfg(feature = "cluster")]
        let engine = opened.iter().fold(engine, |engine, opened| opened.configure_engine(engine));
        let mut loader = Loader::new(engine, shared.policy.clone(), self.namespaces.clone());
        let config = match loader.reload().outcome {
            ReloadOutcome::Loaded(config) => *config,
            ReloadOutcome::Invalid(faults) => return Err(Failure::Input(faults.join("\n"))),
            ReloadOutcome::Unchanged => loader.engine.clone().into(),
        };
        let reloader = (!loader.has_no_files()).then(|| Box::new(move || loader.reload()) as Reloader);
        let server =
            Server::bind(self.settings(), config, reloader, Some(log)).map_err(|error| match error
                .downcast::<UnusableFiles>(
            ) {
                Ok(unusable) => Failure::Input(unusable.to_string()),
                Err(error) => Failure::Internal(error),
            })?;
        #[cfg(feature = "cluster")]
        if let Some(opened) = &opened {
            let profiles = self.cluster.profile_source(shared);
            self.cluster.attach_to(opened, &server, &self.certificates(), profiles)?;
        }
        // A closed pipe or a full disk must not stop the webhook.
        if let Err(failure) = self.print_startup(&server, shared, console) {
            let why = failure.message();
            tracing::warn!(why, "nothing can be written to stdout");
            console.discard();
        }
        server.run()?;
        Ok(Tally::default())
    }

    fn certificates(&self) -> Certificates {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                Certificates::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Certificates::SelfSigned { directory: self.cert_dir.clone(), names: self.names() },
        }
    }

    /// The names of the self-signed certificate: those of the command line, the one we register, and the address on which
    /// the webhook listens.
    fn names(&self) -> Vec<String> {
        #[cfg(feature = "cluster")]
        let called = self.cluster.advertised_name();
        #[cfg(not(feature = "cluster"))]
        let called: Option<String> = None;
        let address = self.listen.ip();
        let address = (!address.is_unspecified()).then(|| address.to_string());
        let mut names = self.dns_name.clone();
        for name in called.into_iter().chain(address) {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                names.push(name);
            }
        }
        names
    }

    /// Where an API server outside of this process finds it: a name in the certificate that is not the Service's, a public
    /// one if there is any. In a URL, so an IPv6 address is in brackets.
    fn reachable_host(&self) -> Option<String> {
        let names = self.names();
        let address = self.listen.ip();
        let listens = address.is_loopback().then(|| address.to_string());
        let of_this_machine = || names.iter().filter(|name| !name.contains(".svc") && !name.contains('*'));
        let public = || of_this_machine().find(|name| !is_loopback(name));
        let host = listens
            .as_ref()
            .or_else(public)
            .or_else(|| of_this_machine().find(|name| name.parse::<IpAddr>().is_ok()));
        let host = host.or_else(|| of_this_machine().next())?;
        Some(if host.contains(':') { format!("[{host}]") } else { host.clone() })
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.listen, self.ops_listen);
        settings.certificates = self.certificates();
        settings.tls_versions = match self.tls_min_version {
            MinVersion::Tls12 => TlsVersions::Tls12AndTls13,
            MinVersion::Tls13 => TlsVersions::Tls13,
        };
        settings.client_ca.clone_from(&self.client_ca);
        settings.client_names.clone_from(&self.client_name);
        settings.limits = Limits {
            max_body: self.max_body,
            max_in_flight: self.max_in_flight,
            max_connections: self.max_connections,
            max_memory: self.max_memory,
            ..Limits::default()
        };
        settings.workers = self.workers.unwrap_or(settings.workers);
        settings.drain = self.drain;
        settings.max_connection_age = self.max_connection_age;
        settings.reload_period = self.reload_interval;
        settings
    }

    #[cfg(feature = "cluster")]
    fn registers(&self) -> bool {
        self.cluster.registers()
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    fn registers(&self) -> bool {
        false
    }

    /// Where it is, and how to register it.
    fn print_startup(
        &self,
        server: &Server,
        shared: &GlobalArgs,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let (webhook, ops) = (server.address()?, server.ops_address()?);
        writeln!(console, "webhook   https://{webhook}/validate and https://{webhook}/mutate")?;
        writeln!(console, "health    http://{ops}/readyz?verbose, http://{ops}/metrics")?;
        if let Some(bundle) = server.ca_bundle() {
            let bundle = base64::engine::general_purpose::STANDARD.encode(bundle);
            writeln!(console, "caBundle  {bundle}")?;
            let from = match &self.cert_dir {
                Some(directory) => format!("--cert-dir {}", shell_word(&directory.display().to_string())),
                None => format!("--ca-bundle {bundle}"),
            };
            if let (false, Some(host)) = (self.registers(), self.reachable_host()) {
                let port = webhook.port();
                write!(console, "register  tollgate manifests --url https://{host}:{port} {from}")?;
                for path in &shared.policy {
                    write!(console, " --policy {}", shell_word(&path.display().to_string()))?;
                }
                writeln!(console, " | kubectl apply -f -")?;
                if is_loopback(&host) {
                    writeln!(
                        console,
                        "          for an API server on another machine, serve with --dns-name and the name of this one"
                    )?;
                }
            }
        }
        Ok(console.finish()?)
    }
}
