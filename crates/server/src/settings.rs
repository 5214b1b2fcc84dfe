//! Settings of the server. The caller validates them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::TlsVersions;
use tollgate_api::review::Request;
use tollgate_engine::engine::{Decision, Engine, respond};

/// The function that writes the answer to a request. Tests replace it with one that fails or is slow.
pub type RespondFn = fn(&Engine, &Request<'_>, &Decision) -> Vec<u8>;

/// Settings of the webhook server: addresses, certificates and limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address of the webhook.
    pub listen: SocketAddr,
    /// Address of health checks and metrics, without TLS.
    pub ops_listen: SocketAddr,
    /// The certificate of the server: files, or self-signed.
    pub certificates: CertificateSettings,
    /// How an API server calls the server; certificates from files must fit that.
    pub registered_address: Option<RegisteredAddress>,
    /// Supported versions of TLS.
    pub tls_versions: TlsVersions,
    /// CA of the clients that may connect; without it, all clients may.
    pub client_ca: Option<PathBuf>,
    /// Allowed names of those clients; all clients of that CA if empty.
    pub client_names: Vec<String>,
    /// Limits on what clients may use.
    pub limits: Limits,
    /// Number of worker threads.
    pub workers: usize,
    /// Time from SIGTERM to the end of the process; requests are served meanwhile.
    pub drain: Duration,
    /// Age at which a client connection is closed, so that clients connect to new replicas.
    pub max_connection_age: Duration,
    /// Interval of reloads without a directory event.
    pub reload_period: Duration,
    /// The function that writes an AdmissionReview response; see [`RespondFn`].
    pub respond: RespondFn,
}

impl Settings {
    /// Default settings, with a self-signed certificate in memory.
    pub fn new(listen: SocketAddr, ops_listen: SocketAddr) -> Settings {
        Settings {
            listen,
            ops_listen,
            certificates: CertificateSettings::SelfSigned {
                directory: None,
                names: vec!["localhost".to_owned()],
            },
            registered_address: None,
            tls_versions: TlsVersions::Tls13,
            client_ca: None,
            client_names: Vec::new(),
            limits: Limits::default(),
            workers: std::thread::available_parallelism().map_or(2, usize::from),
            drain: Duration::from_secs(10),
            max_connection_age: Duration::from_mins(5),
            reload_period: Duration::from_mins(1),
            respond: |engine, request, decision| respond(engine, request, decision).encode_admission_review(),
        }
    }
}

/// How an API server calls a server that registers itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisteredAddress {
    /// The host name that it connects to.
    pub host: String,
    /// PEM file with the CAs that are registered with a certificate from files; `None` if something else registers
    /// them.
    pub ca: Option<PathBuf>,
}

/// The source of the server's certificate: files, or a self-signed one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CertificateSettings {
    /// Files written by another process.
    Files {
        /// Certificate chain, PEM, with the server's certificate first.
        certificate: PathBuf,
        /// Private key, PEM: PKCS#8, PKCS#1 or SEC1.
        key: PathBuf,
    },
    /// Self-signed.
    SelfSigned {
        /// Directory of the certificates (default: in memory).
        directory: Option<PathBuf>,
        /// DNS names and addresses of the server.
        names: Vec<String>,
    },
}

/// Limits on the connections, requests and memory that clients may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest body in bytes.
    pub max_body: usize,
    /// Maximum number of requests in flight; more are rejected with 503.
    pub max_in_flight: usize,
    /// Maximum number of open connections. Lowered if the memory limit does not suffice for so many; a connection
    /// beyond it displaces another.
    pub max_connections: usize,
    /// Memory limit of the whole process, in bytes.
    pub max_memory: usize,
    /// True if a share of the memory limit is reserved for the cached state of a cluster.
    pub caches_state: bool,
    /// Time limit for the TLS handshake, and for the head of each request from its first byte.
    pub head_timeout: Duration,
    /// Time limit for receiving the body of a request.
    pub body_timeout: Duration,
    /// Time that a connection may be open without a request: between two requests, and before the first.
    pub idle_timeout: Duration,
    /// Time limit for a client to read a response.
    pub write_timeout: Duration,
}

impl Limits {
    /// Bytes of the memory limit that are for the cached state of a cluster.
    pub fn cluster_state_bytes(&self) -> usize {
        super::memory::cluster_state_share(super::memory::effective_memory_limit(self.max_memory))
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_body: 8 << 20,
            max_in_flight: 512,
            max_connections: 16_384,
            // The memory limit of the deployment manifest.
            max_memory: 256 << 20,
            caches_state: false,
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(10),
            // Longer than the 90 seconds after which Go's client closes an idle connection, so that the client is
            // first.
            idle_timeout: Duration::from_mins(2),
            write_timeout: Duration::from_secs(10),
        }
    }
}
