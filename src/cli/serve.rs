//! `tollgate serve`: turns flags and environment into settings, prints how to register, and runs the server.

mod cluster;
mod configurations;
mod load;
mod policy_source;
mod register;
mod release;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use clap::ValueEnum;
use tracing::level_filters::LevelFilter;

use super::console::{Console, quote_for_shell};
use super::outcome::{ExitCounts, Failure};
use super::shared::EngineArgs;
use super::units::{
    parse_bytes, parse_duration, parse_duration_at_least_10ms, parse_nonzero_count, parse_size_at_least_4kib,
};
use crate::server::{
    CertificateSettings, Limits, Log, LogFormat, ReloadOutcome, Reloader, Server, Settings, TlsVersions,
    UnusableSettings,
};
use load::ServingLoader;

/// Serve the admission webhook
///
/// Serves /validate and /mutate over TLS, and /livez, /readyz, /metrics and /log-level on a separate port without TLS.
/// Without --tls-cert, creates a self-signed CA and certificate, and prints the command that registers the webhook.
/// After SIGTERM, the server reports that it is not ready, continues to serve requests, and exits within the time set
/// by --drain.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Address on which to serve the webhook
    #[arg(long, value_name = "ADDRESS", env = "TOLLGATE_LISTEN", default_value = "0.0.0.0:8443")]
    listen: SocketAddr,

    /// Address on which to serve health checks and metrics, without TLS
    #[arg(long, value_name = "ADDRESS", env = "TOLLGATE_OPS_LISTEN", default_value = "0.0.0.0:8081")]
    ops_listen: SocketAddr,

    /// YAML or JSON file with Namespace objects, for policies that select namespaces by label
    ///
    /// Namespaces that are not in the file are treated as having no labels other than kubernetes.io/metadata.name.
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES", help_heading = "Rules")]
    #[arg(hide_short_help = true)]
    namespaces: Option<PathBuf>,

    /// Interval at which the files with policies, namespaces and certificates are checked for changes, in addition to
    /// file system events; SIGHUP triggers a check immediately
    #[arg(long, value_name = "TIME", env = "TOLLGATE_RELOAD_INTERVAL", default_value = "60s")]
    #[arg(value_parser = parse_duration_at_least_10ms)]
    #[arg(hide_short_help = true)]
    reload_interval: Duration,

    /// PEM file with the certificate chain; reloaded when it changes
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TLS_CERT", requires = "tls_key", help_heading = "TLS")]
    tls_cert: Option<PathBuf>,

    /// PEM file with the private key of the certificate (PKCS#8, PKCS#1 or SEC1)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TLS_KEY", requires = "tls_cert", help_heading = "TLS")]
    tls_key: Option<PathBuf>,

    /// Directory for the self-signed CA and certificate (default: keep them in memory)
    #[arg(long, value_name = "DIR", help_heading = "TLS")]
    #[arg(env = "TOLLGATE_CERT_DIR", conflicts_with = "tls_cert")]
    cert_dir: Option<PathBuf>,

    /// DNS names and IP addresses in the self-signed certificate, separated by commas
    #[arg(long, value_name = "NAME", env = "TOLLGATE_DNS_NAME", value_delimiter = ',', help_heading = "TLS")]
    #[arg(default_values_t = super::certs::default_cert_names(), value_parser = super::certs::parse_certificate_name)]
    dns_name: Vec<String>,

    /// Minimum TLS version
    #[arg(long, value_name = "VERSION", help_heading = "TLS")]
    #[arg(env = "TOLLGATE_TLS_MIN_VERSION", default_value = "1.3")]
    #[arg(hide_short_help = true)]
    tls_min_version: MinTlsVersion,

    /// PEM file with the CA of the client certificates; if set, clients must present a certificate. The file is
    /// reloaded when it changes
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CLIENT_CA", help_heading = "TLS")]
    #[arg(hide_short_help = true)]
    client_ca: Option<PathBuf>,

    /// Accepted common names or DNS names in client certificates, separated by commas (default: any)
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    #[arg(env = "TOLLGATE_CLIENT_NAME", value_delimiter = ',')]
    #[arg(requires = "client_ca")]
    #[arg(hide_short_help = true)]
    client_name: Vec<String>,

    /// Time between SIGTERM and exit, during which the server continues to serve requests
    #[arg(long, value_name = "TIME", env = "TOLLGATE_DRAIN", default_value = "10s", help_heading = "Limits")]
    #[arg(value_parser = parse_duration)]
    #[arg(hide_short_help = true)]
    drain: Duration,

    /// Maximum size of an AdmissionReview; requests with a larger AdmissionReview are denied
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_BODY", default_value = "8MiB")]
    #[arg(value_parser = parse_size_at_least_4kib)]
    #[arg(hide_short_help = true)]
    max_body: usize,

    /// Maximum number of concurrent requests; additional requests are rejected with HTTP status 503
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_IN_FLIGHT", default_value = "512")]
    #[arg(value_parser = parse_nonzero_count)]
    #[arg(hide_short_help = true)]
    max_in_flight: usize,

    /// Memory limit of the process
    ///
    /// If the container has a lower limit, that limit applies. Requests that would exceed the limit are rejected with
    /// HTTP status 503.
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_MEMORY", default_value = "256MiB")]
    #[arg(value_parser = parse_bytes)]
    #[arg(hide_short_help = true)]
    max_memory: usize,

    /// Maximum number of open connections; --max-memory can lower this number. An additional connection replaces one
    /// of the client address that has the most
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_CONNECTIONS", default_value = "16384")]
    #[arg(value_parser = parse_nonzero_count)]
    #[arg(hide_short_help = true)]
    max_connections: usize,

    /// Maximum age of a connection; older connections are closed so that new replicas receive their share of the
    /// requests
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    #[arg(env = "TOLLGATE_MAX_CONNECTION_AGE", default_value = "5m")]
    #[arg(value_parser = parse_duration)]
    #[arg(hide_short_help = true)]
    max_connection_age: Duration,

    /// Number of worker threads (default: the number of CPUs)
    #[arg(long, value_name = "COUNT", env = "TOLLGATE_WORKERS", help_heading = "Limits")]
    #[arg(value_parser = parse_nonzero_count)]
    #[arg(hide_short_help = true)]
    workers: Option<usize>,

    /// Format of the log lines on stderr
    #[arg(long, value_name = "FORMAT", help_heading = "Logs")]
    #[arg(env = "TOLLGATE_LOG_FORMAT", default_value = "json")]
    #[arg(hide_short_help = true)]
    log_format: LogFormatArg,

    /// Log level; `info` logs every decision
    ///
    /// To change the level at runtime, send a PUT request to /log-level on --ops-listen.
    #[arg(long, value_name = "LEVEL", help_heading = "Logs")]
    #[arg(env = "TOLLGATE_LOG_LEVEL", default_value = "info")]
    log_level: LevelFilter,

    #[command(flatten)]
    cluster: cluster::ClusterArgs,

    #[command(flatten)]
    engine: EngineArgs,
}

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LogFormatArg {
    /// One JSON object per line
    Json,
    /// Human-readable text
    Text,
}

/// Oldest version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum MinTlsVersion {
    /// For old clients and proxies
    #[value(name = "1.2")]
    Tls12,
    /// Supported by all API servers
    #[value(name = "1.3")]
    Tls13,
}

/// True for `localhost` and loopback addresses, which only this machine reaches.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let format = match self.log_format {
            LogFormatArg::Json => LogFormat::Json,
            LogFormatArg::Text => LogFormat::Text,
        };
        let log = Log::install(format, self.log_level, Box::new(std::io::stderr()))?;
        let policies = &self.engine.policies.paths;
        if let Some(path) =
            policies.iter().chain(&self.namespaces).find(|path| !load::can_be_read_again(path))
        {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "{path}: must be a file or folder, because `serve` reloads it when it changes"
            )));
        }
        self.cluster.check_policy_source(!policies.is_empty())?;
        let opened = self
            .cluster
            .connect_and_watch(&self.engine.release, self.server_settings().limits.cluster_state_bytes())?;
        let engine = self.engine.serving_engine_without_policies()?;
        let engine = opened.iter().fold(engine, |engine, opened| opened.engine_with_watched_state(engine));
        let resources = opened.as_ref().and_then(|opened| opened.policies.clone());
        let mut loader = ServingLoader::new(engine, policies.clone(), self.namespaces.clone(), resources);
        let config = match loader.reload().outcome {
            ReloadOutcome::Loaded(config) | ReloadOutcome::LoadedWithLastFiles(config, _) => *config,
            ReloadOutcome::Invalid(faults) => return Err(Failure::Inputs(faults)),
            ReloadOutcome::Unchanged => loader.engine.clone().into(),
        };
        let reloader = loader.has_reloadable_inputs().then(|| Box::new(move || loader.reload()) as Reloader);
        let server =
            Server::bind(self.server_settings(), config, reloader, Some(log)).map_err(|error| match error
                .downcast()
            {
                Ok(UnusableSettings::Certificates(why)) => Failure::Input(why),
                Ok(UnusableSettings::Limits(why)) => Failure::Usage(why),
                Err(error) => Failure::Internal(error),
            })?;
        if let Some(opened) = &opened {
            let (certificates, release) = (self.certificates(), &self.engine.release);
            self.cluster.attach_background_tasks(opened, &server, &certificates, release)?;
        }
        // A closed pipe or a full disk must not stop the webhook.
        if let Err(failure) = self.print_startup(&server, console) {
            let why = failure.message();
            tracing::warn!(why, "cannot write to stdout");
            console.discard_output();
        }
        server.run()?;
        Ok(ExitCounts::default())
    }

    /// Returns the certificate files that the flags name, or else settings for a self-signed certificate.
    fn certificates(&self) -> CertificateSettings {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                CertificateSettings::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => CertificateSettings::SelfSigned {
                directory: self.cert_dir.clone(),
                names: self.self_signed_certificate_names(),
            },
        }
    }

    /// Returns the names in the self-signed certificate: those of `--dns-name`, the one that is registered, and
    /// the address on which the webhook listens.
    fn self_signed_certificate_names(&self) -> Vec<String> {
        let called = self.cluster.register.advertised_host_name();
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

    /// Returns the host at which an API server outside of the cluster reaches the webhook: a name in the
    /// certificate that is not that of the Service, if possible not a loopback one. An IPv6 address is in
    /// brackets, as in URLs.
    fn host_for_webhook_url(&self) -> Option<String> {
        let names = self.self_signed_certificate_names();
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

    fn server_settings(&self) -> Settings {
        let mut settings = Settings::new(self.listen, self.ops_listen);
        settings.certificates = self.certificates();
        settings.registered_address = self.cluster.register.registered_address(&settings.certificates);
        settings.tls_versions = match self.tls_min_version {
            MinTlsVersion::Tls12 => TlsVersions::Tls12AndTls13,
            MinTlsVersion::Tls13 => TlsVersions::Tls13,
        };
        settings.client_ca.clone_from(&self.client_ca);
        settings.client_names.clone_from(&self.client_name);
        settings.limits = Limits {
            max_body: self.max_body,
            max_in_flight: self.max_in_flight,
            max_connections: self.max_connections,
            max_memory: self.max_memory,
            caches_state: self.cluster.caches_state(),
            ..Limits::default()
        };
        settings.workers = self.workers.unwrap_or(settings.workers);
        settings.drain = self.drain;
        settings.max_connection_age = self.max_connection_age;
        settings.reload_period = self.reload_interval;
        settings
    }

    /// Prints the addresses of the server, and the command that registers it.
    fn print_startup(&self, server: &Server, console: &mut Console) -> Result<(), Failure> {
        let (webhook, ops) = (server.webhook_address()?, server.ops_address()?);
        writeln!(console, "webhook   https://{webhook}/validate and https://{webhook}/mutate")?;
        writeln!(console, "health    http://{ops}/readyz?verbose, http://{ops}/metrics")?;
        if let Some(bundle) = server.self_signed_ca_bundle() {
            let bundle = base64::engine::general_purpose::STANDARD.encode(bundle);
            writeln!(console, "caBundle  {bundle}")?;
            let from = match &self.cert_dir {
                Some(directory) => {
                    format!("--cert-dir {}", quote_for_shell(&directory.display().to_string()))
                }
                None => format!("--ca-bundle {bundle}"),
            };
            if let (false, Some(host)) = (self.cluster.register.is_enabled(), self.host_for_webhook_url()) {
                let port = webhook.port();
                write!(console, "register  tollgate manifests --url https://{host}:{port} {from}")?;
                for path in &self.engine.policies.paths {
                    write!(console, " --policy {}", quote_for_shell(&path.display().to_string()))?;
                }
                writeln!(console, " | kubectl apply -f -")?;
                if is_loopback(&host) {
                    writeln!(
                        console,
                        "          if the API server runs on another machine, set --dns-name to the name of this \
                         machine"
                    )?;
                }
            }
        }
        Ok(console.flush_stdout()?)
    }
}
